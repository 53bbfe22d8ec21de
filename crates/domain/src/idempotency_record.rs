//! Outcomes of requests that carried an idempotency key, so that a retry gets the same response.
//!
//! A client that lost the response cannot know whether its request was handled, and retries. Most requests are
//! idempotent by themselves; one that creates, locks, unlocks or deletes would be refused because of its own first
//! attempt. Only the client can tell a retry from a second request, and does so with a key that it generates.

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use taco_tables::{Record, Table, indexes};

use crate::author::Author;

/// Lifetime of an idempotency key: there are no retries after this, and the key may be used for a new request.
pub const REMEMBERED: SignedDuration = SignedDuration::from_hours(24);

/// Each new one takes some old ones away, so that they never pile up and no commit becomes large.
const FORGOTTEN_AT_ONCE: usize = 8;

/// A client's name for one of its requests.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct IdempotencyKey {
    key: String,
    /// Method and path, such as `POST /api/v2/…`: the same key for a different request is an error.
    what: String,
}

impl IdempotencyKey {
    pub const MAX_BYTES: usize = 255;

    /// `None` if the text cannot be a key.
    pub fn new(key: &str, what: String) -> Option<Self> {
        let legal = (1..=Self::MAX_BYTES).contains(&key.len()) && key.bytes().all(|byte| byte.is_ascii_graphic());
        legal.then(|| Self { key: key.to_owned(), what })
    }

    /// Keys of different callers never meet.
    fn id(&self, author: Author) -> String {
        hex::encode(Sha256::digest(format!("{author}\n{}", self.key)))
    }
}

#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, Debug)]
pub struct IdempotencyRecord {
    /// A digest of who asked and of the key.
    pub id: String,
    pub what: String,
    pub at: Timestamp,
    /// Outcome as JSON, from which the API handlers build their response.
    pub outcome: String,
}

/// The key was used for something else.
#[derive(Clone, PartialEq, Eq, thiserror::Error, Debug)]
#[error("This Idempotency-Key was sent before with {what}: each request needs a key of its own")]
pub struct KeyReused {
    pub what: String,
}

impl IdempotencyRecord {
    pub fn new(key: &IdempotencyKey, author: Author, at: Timestamp, outcome: String) -> Self {
        Self { id: key.id(author), what: key.what.clone(), at, outcome }
    }

    /// Outcome of this request's first attempt, if there was one.
    pub fn recall<'a>(
        done: &'a Table<Self>,
        key: &IdempotencyKey,
        author: Author,
        now: Timestamp,
    ) -> Result<Option<&'a Self>, KeyReused> {
        match done.get(&key.id(author)) {
            Some(before) if now.duration_since(before.at) > REMEMBERED => Ok(None),
            Some(before) if before.what != key.what => Err(KeyReused { what: before.what.clone() }),
            before => Ok(before),
        }
    }

    /// Expired records, a few at a time.
    pub fn to_forget(done: &Table<Self>, now: Timestamp) -> Vec<String> {
        let oldest = done.by().at.iter().take(FORGOTTEN_AT_ONCE);
        let over = oldest.take_while(|request| now.duration_since(request.at) > REMEMBERED);
        over.map(|request| request.id().clone()).collect()
    }
}

impl Record for IdempotencyRecord {
    const KIND: &'static str = "done-request";
    const NOUN: &'static str = "idempotency record";
    type Id = String;
    type Indexes = DoneRequestIndexes;

    fn id(&self) -> &String {
        &self.id
    }
}

indexes! {
    pub struct DoneRequestIndexes for IdempotencyRecord {
        pub at: Timestamp => |request| [request.at];
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::UserId;

    fn jane() -> Author {
        Author::User(UserId::from_random([1; 16]))
    }

    fn joe() -> Author {
        Author::User(UserId::from_random([2; 16]))
    }

    fn key(text: &str, what: &str) -> IdempotencyKey {
        IdempotencyKey::new(text, what.to_owned()).expect("a key")
    }

    fn table(requests: &[IdempotencyRecord]) -> Table<IdempotencyRecord> {
        let mut table = Table::default();
        for request in requests {
            table.put(request).expect("plain data");
        }
        table
    }

    #[test]
    fn a_repetition_is_known_by_its_key_its_caller_and_what_it_asks() {
        let now = Timestamp::UNIX_EPOCH;
        let first = key("k", "POST /a");
        let done = table(&[IdempotencyRecord::new(&first, jane(), now, "1".to_owned())]);
        let recall = |key: &IdempotencyKey, author, now| {
            IdempotencyRecord::recall(&done, key, author, now).map(|found| found.map(|found| found.outcome.clone()))
        };
        assert_eq!(recall(&first, jane(), now), Ok(Some("1".to_owned())));
        assert_eq!(recall(&first, joe(), now), Ok(None));
        assert_eq!(recall(&key("other", "POST /a"), jane(), now), Ok(None));
        assert_eq!(recall(&key("k", "POST /b"), jane(), now), Err(KeyReused { what: "POST /a".to_owned() }));
        assert_eq!(recall(&key("k", "POST /b"), jane(), now + REMEMBERED + SignedDuration::from_secs(1)), Ok(None));
    }

    #[test]
    fn a_key_is_a_short_word() {
        let long = "x".repeat(IdempotencyKey::MAX_BYTES);
        for (text, legal) in
            [("a", true), ("\"8e03978e\"", true), (long.as_str(), true), ("", false), ("a b", false), ("ä", false)]
        {
            assert_eq!(IdempotencyKey::new(text, String::new()).is_some(), legal, "{text}");
        }
        assert_eq!(IdempotencyKey::new(&format!("{long}x"), String::new()), None);
    }

    #[test]
    fn the_old_are_forgotten_a_few_at_a_time() {
        let at = |seconds| Timestamp::UNIX_EPOCH + SignedDuration::from_secs(seconds);
        let requests: Vec<_> = (0..20)
            .map(|number| IdempotencyRecord::new(&key(&number.to_string(), ""), jane(), at(number), String::new()))
            .collect();
        let done = table(&requests);
        let id = |number: usize| requests[number].id.clone();
        assert_eq!(IdempotencyRecord::to_forget(&done, at(0)), Vec::<String>::new());
        assert_eq!(IdempotencyRecord::to_forget(&done, at(2) + REMEMBERED), [id(0), id(1)]);
        assert_eq!(IdempotencyRecord::to_forget(&done, at(100) + REMEMBERED).len(), FORGOTTEN_AT_ONCE);
    }
}
