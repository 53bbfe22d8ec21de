//! Pages that were made lately. What a page of workspaces says follows from the organization's ledger, the caller and
//! the address alone; until one of them changes, it need not be made again.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use taco_domain::id::OrganizationId;
use taco_domain::permission::Actor;

/// A few for everyone who looks again and again.
const KEPT: usize = 32;
const LARGEST: usize = 128 * 1024;

/// Everything that a page follows from.
#[derive(PartialEq, Eq, Debug)]
pub(crate) struct PageKey {
    pub(crate) organization: OrganizationId,
    /// How far the organization's ledger was read.
    pub(crate) seq: u64,
    pub(crate) actor: Actor,
    /// Path and query.
    pub(crate) address: String,
}

#[derive(Clone, Default, Debug)]
pub(crate) struct KeptPages(Arc<Mutex<VecDeque<(PageKey, Bytes)>>>);

impl KeptPages {
    pub(crate) fn get(&self, key: &PageKey) -> Option<Bytes> {
        let pages = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        pages.iter().find(|(kept, _)| kept == key).map(|(_, page)| page.clone())
    }

    pub(crate) fn keep(&self, key: PageKey, page: Bytes) {
        if page.len() > LARGEST {
            return;
        }
        let mut pages = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // What an older state said will not be asked for again.
        pages.retain(|(kept, _)| kept.organization != key.organization || kept.seq == key.seq);
        pages.truncate(KEPT - 1);
        pages.push_front((key, page));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_is_kept_until_anything_changes_that_it_follows_from() {
        let organization = OrganizationId::from_random([1; 16]);
        let key = |seq: u64, actor: Actor, address: &str| PageKey { organization, seq, actor, address: address.into() };
        let pages = KeptPages::default();
        pages.keep(key(1, Actor::Anonymous, "/a"), Bytes::from_static(b"page"));
        assert!(pages.get(&key(1, Actor::Anonymous, "/a")).is_some());
        for other in [
            key(2, Actor::Anonymous, "/a"),
            key(1, Actor::Organization(organization), "/a"),
            key(1, Actor::Anonymous, "/b"),
        ] {
            assert_eq!(pages.get(&other), None, "{other:?}");
        }
        pages.keep(key(2, Actor::Anonymous, "/b"), Bytes::from_static(b"page"));
        assert_eq!(pages.get(&key(1, Actor::Anonymous, "/a")), None, "it is out of date");
    }

    #[test]
    fn few_are_kept_and_none_that_is_large() {
        let organization = OrganizationId::from_random([1; 16]);
        let key = |number: usize| {
            let address = number.to_string();
            PageKey { organization, seq: 1, actor: Actor::Anonymous, address }
        };
        let pages = KeptPages::default();
        pages.keep(key(0), vec![0; LARGEST + 1].into());
        assert_eq!(pages.get(&key(0)), None);
        for number in 0..=KEPT {
            pages.keep(key(number), Bytes::new());
        }
        assert_eq!(pages.get(&key(0)), None);
        assert!((1..=KEPT).all(|number| pages.get(&key(number)).is_some()));
    }
}
