//! Reads of secrets: whole states, values of sensitive outputs, whole plans. The audit trail tells of them, and it does
//! before they are answered (`docs/decisions/0015-reads-of-secrets-are-in-the-audit-trail.md`).

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use jiff::{SignedDuration, Timestamp};
use taco_domain::id::{RunId, StateVersionId, TokenId};

use crate::caller::Caller;

/// Repeated reads of the same secret by the same reader within this time are one event.
pub(crate) const SAME_READ_WITHIN: SignedDuration = SignedDuration::from_mins(10);

/// An event that could not be written is tried again after this time, so that not every read waits for a bucket that
/// takes nothing.
pub(crate) const RETRY_AFTER: SignedDuration = SignedDuration::from_mins(1);

/// Reads that are remembered; with more, all are forgotten, and the next of each is an event again.
const MAX_REMEMBERED: usize = 20_000;

/// A secret that someone reads.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum SecretRead {
    /// All of a state.
    State(StateVersionId),
    /// Values of a state's sensitive outputs.
    Outputs(StateVersionId),
    /// A plan with the values of sensitive variables.
    Plan(RunId),
}

impl SecretRead {
    pub(crate) fn action(self) -> &'static str {
        match self {
            Self::State(_) => "state.read",
            Self::Outputs(_) => "output.read",
            Self::Plan(_) => "plan.read",
        }
    }

    pub(crate) fn id(self) -> String {
        match self {
            Self::State(id) | Self::Outputs(id) => id.to_string(),
            Self::Plan(id) => id.to_string(),
        }
    }
}

/// Reader of a secret: an actor as the audit trail spells it, and the token that they used, if it has an id.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Reader {
    pub(crate) actor: String,
    pub(crate) token: Option<TokenId>,
    pub(crate) request: Option<String>,
}

impl Reader {
    /// Someone with an address that a server signed which did not say for whom.
    pub(crate) fn unknown() -> Self {
        Self { actor: "signed-address".to_owned(), token: None, request: None }
    }
}

impl From<&Caller> for Reader {
    fn from(caller: &Caller) -> Self {
        Self { actor: caller.author().to_string(), token: caller.token, request: caller.request.id.clone() }
    }
}

type Key = (String, Option<TokenId>, SecretRead);

/// Reads of which the audit trail tells already, and until when that is enough.
#[derive(Default)]
pub(crate) struct SecretReads(Mutex<HashMap<Key, Timestamp>>);

impl SecretReads {
    pub(crate) fn is_told(&self, key: &Key, now: Timestamp) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get(key).is_some_and(|until| now < *until)
    }

    pub(crate) fn remember(&self, key: Key, until: Timestamp) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if all.len() >= MAX_REMEMBERED {
            all.clear();
        }
        all.insert(key, until);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_read_is_told_until_its_time_is_over_and_no_more_are_remembered_than_fit() {
        let reads = SecretReads::default();
        let key = |number: usize| (format!("user-{number}"), None, SecretRead::Plan(RunId::from_random([1; 16])));
        let (now, later) = (Timestamp::UNIX_EPOCH, Timestamp::UNIX_EPOCH + SAME_READ_WITHIN);
        assert!(!reads.is_told(&key(0), now));
        reads.remember(key(0), later);
        assert!(reads.is_told(&key(0), now) && !reads.is_told(&key(0), later) && !reads.is_told(&key(1), now));
        for number in 1..=MAX_REMEMBERED {
            reads.remember(key(number), later);
        }
        assert!(reads.0.lock().expect("nobody panicked").len() <= MAX_REMEMBERED);
        assert!(!reads.is_told(&key(0), now) && reads.is_told(&key(MAX_REMEMBERED), now));
    }
}
