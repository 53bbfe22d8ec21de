//! Cache of responses. What a response says follows from the site, the organization, the caller and the
//! address alone; until one of them changes, it need not be made again.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use taco_control_plane::Moment;
use taco_domain::id::OrganizationId;
use taco_domain::permission::Actor;

/// Budget in bytes; when it is exceeded, the whole cache is dropped.
const MAX_CACHE_BYTES: usize = 8 * 1024 * 1024;
/// Larger responses are not cached.
const MAX_ENTRY_BYTES: usize = 512 * 1024;

/// Cache key: everything that a response follows from.
#[derive(Clone, Debug)]
pub(crate) struct CacheKey {
    pub(crate) organization: OrganizationId,
    pub(crate) moment: Moment,
    pub(crate) actor: Actor,
    /// Path and query, and everything else of the request that affects the response.
    pub(crate) address: String,
}

#[derive(Clone, Default, Debug)]
pub(crate) struct ResponseCache(Arc<Mutex<Entries>>);

#[derive(Default, Debug)]
struct Entries {
    by_organization: HashMap<OrganizationId, OrganizationEntries>,
    size: usize,
}

/// Responses about an organization as it was at one moment.
#[derive(Default, Debug)]
struct OrganizationEntries {
    moment: Moment,
    by_address: HashMap<String, Vec<(Actor, Bytes)>>,
    size: usize,
}

impl ResponseCache {
    pub(crate) fn get(&self, key: &CacheKey) -> Option<Bytes> {
        let cached = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let entries = cached.by_organization.get(&key.organization).filter(|entries| entries.moment == key.moment)?;
        let answers = entries.by_address.get(&key.address)?;
        answers.iter().find(|(actor, _)| *actor == key.actor).map(|(_, answer)| answer.clone())
    }

    pub(crate) fn insert(&self, key: CacheKey, answer: &Bytes) {
        let size = answer.len() + key.address.len();
        if size > MAX_ENTRY_BYTES {
            return;
        }
        let cached = &mut *self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if cached.size + size > MAX_CACHE_BYTES {
            *cached = Entries::default();
        }
        let entries = cached.by_organization.entry(key.organization).or_default();
        if entries.moment != key.moment {
            // What an older state said will not be asked for again.
            cached.size -= entries.size;
            *entries = OrganizationEntries { moment: key.moment, ..OrganizationEntries::default() };
        }
        entries.by_address.entry(key.address).or_default().push((key.actor, answer.clone()));
        entries.size += size;
        cached.size += size;
    }

    /// The cached response, or the one that `make` makes.
    pub(crate) fn get_or_insert_with<E>(
        &self,
        key: CacheKey,
        make: impl FnOnce() -> Result<Bytes, E>,
    ) -> Result<Bytes, E> {
        if let Some(cached) = self.get(&key) {
            return Ok(cached);
        }
        let answer = make()?;
        self.insert(key, &answer);
        Ok(answer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(organization: u64, actor: Actor, address: &str) -> CacheKey {
        CacheKey {
            organization: OrganizationId::from_random([1; 16]),
            moment: Moment { site: 1, organization },
            actor,
            address: address.to_owned(),
        }
    }

    #[test]
    fn an_answer_is_kept_until_anything_changes_that_it_follows_from() {
        let answers = ResponseCache::default();
        let asked = key(1, Actor::Anonymous, "/a");
        answers.insert(asked.clone(), &Bytes::from_static(b"answer"));
        let made = answers.get_or_insert_with(asked.clone(), || Err("it is there already"));
        assert_eq!(made, Ok(Bytes::from_static(b"answer")));
        let other_actor = Actor::Organization(asked.organization);
        let later = CacheKey { moment: Moment { site: 2, organization: 1 }, ..asked.clone() };
        for other in [key(2, Actor::Anonymous, "/a"), key(1, other_actor, "/a"), key(1, Actor::Anonymous, "/b"), later]
        {
            assert_eq!(answers.get(&other), None, "{other:?}");
        }
        answers.insert(key(2, Actor::Anonymous, "/b"), &Bytes::from_static(b"answer"));
        assert_eq!(answers.get(&asked), None, "it is out of date");
    }

    #[test]
    fn no_more_is_kept_than_fits_and_none_that_is_large() {
        let answers = ResponseCache::default();
        let numbered = |number: usize| key(1, Actor::Anonymous, &format!("/{number}"));
        answers.insert(numbered(0), &vec![0; MAX_ENTRY_BYTES + 1].into());
        assert!(answers.get(&numbered(0)).is_none());
        let answer = Bytes::from(vec![0; MAX_ENTRY_BYTES / 2]);
        for number in 0..100 {
            answers.insert(numbered(number), &answer);
            assert!(answers.get(&numbered(number)).is_some());
            assert!(answers.0.lock().expect("nobody panicked").size <= MAX_CACHE_BYTES);
        }
        assert!(answers.get(&numbered(0)).is_none());
    }

    #[test]
    fn what_a_newer_state_replaced_counts_no_more() {
        let answers = ResponseCache::default();
        for moment in 0..10 {
            answers.insert(key(moment, Actor::Anonymous, "/a"), &Bytes::from_static(b"answer"));
        }
        assert_eq!(answers.0.lock().expect("nobody panicked").size, "answer/a".len());
    }
}
