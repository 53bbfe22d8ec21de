//! A workspace's lock: who may write its state.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::attribute::{InvalidAttribute, as_plain_text, is_plain_text};
use crate::author::Author;

/// Maximum length of a text in a lock, in characters. People who meet the lock are shown all of them.
const LONGEST_TEXT: usize = 512;

/// Lock of a workspace: its holder, since when, why and from where.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, Debug)]
pub struct Lock {
    pub holder: Author,
    /// The holder's name when it took the lock, so that no lookup is needed to show it.
    pub holder_name: String,
    pub since: Timestamp,
    pub reason: Option<String>,
    /// The client's address and what it calls itself.
    pub from: Option<String>,
    /// The lock was taken through the `http` backend, and is let go by its id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub http: Option<LockInfo>,
}

/// Lock info sent by a client of the `http` backend, spelled as on the wire.
#[derive(Clone, PartialEq, Eq, Default, Serialize, Deserialize, Debug)]
#[serde(rename_all = "PascalCase", default)]
pub struct LockInfo {
    #[serde(rename = "ID")]
    pub id: String,
    pub operation: String,
    pub info: String,
    pub who: String,
    pub version: String,
    pub created: String,
    pub path: String,
}

impl LockInfo {
    /// Lock info as it may be stored. A lock is released by its id, which therefore has to be one that can be stored;
    /// the rest is for people, who have no control over what their client sends there, so what is too long is left out.
    pub fn checked(self) -> Result<Self, InvalidAttribute> {
        let length = self.id.chars().count();
        if !(1..=LONGEST_TEXT).contains(&length) || !is_plain_text(&self.id) {
            let detail = format!("The lock must have an ID of 1 to {LONGEST_TEXT} characters, without invisible ones");
            return Err(InvalidAttribute::new("ID", detail));
        }
        let kept = |text: &str| as_plain_text(text, LONGEST_TEXT);
        Ok(Self {
            operation: kept(&self.operation),
            info: kept(&self.info),
            who: kept(&self.who),
            version: kept(&self.version),
            created: kept(&self.created),
            path: kept(&self.path),
            id: self.id,
        })
    }
}

/// Reason given for a lock, validated. An empty one counts as none.
pub fn check_reason(reason: Option<String>) -> Result<Option<String>, InvalidAttribute> {
    match reason.filter(|reason| !reason.is_empty()) {
        Some(text) if text.chars().count() > LONGEST_TEXT || !is_plain_text(&text) => {
            let detail = format!(
                "The reason must be at most {LONGEST_TEXT} characters of plain text, without control characters; this \
                 has {}",
                text.chars().count()
            );
            Err(InvalidAttribute::new("reason", detail))
        }
        reason => Ok(reason),
    }
}

/// Claimed holder of the lock.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Claim {
    /// Through the API: as its author.
    Api(Author),
    /// Through the `http` backend: with the id of its lock, if it locks at all.
    Http { author: Author, lock_id: Option<String> },
}

/// Reason why a lock cannot be taken, used or released.
#[derive(Clone, PartialEq, Eq, thiserror::Error, Debug)]
pub enum LockConflict {
    #[error("The workspace {}", .0.in_words())]
    Locked(Box<Lock>),
    #[error("The workspace is not locked: lock it first")]
    Unlocked,
    #[error("The workspace is already unlocked")]
    AlreadyUnlocked,
}

impl Lock {
    /// `is locked by User jane since …`: clients look for the first four words.
    pub fn in_words(&self) -> String {
        let Self { holder, holder_name, since, reason, from, .. } = self;
        let mut words = format!("is locked by {} {holder_name} since {since:.0}", holder.kind());
        if let Some(from) = from {
            words.push_str(&format!(" from {from}"));
        }
        if let Some(reason) = reason {
            words.push_str(&format!(" ({reason})"));
        }
        words
    }

    /// True if the claimant holds the lock.
    pub fn is_held_by(&self, claim: &Claim) -> bool {
        match (&self.http, claim) {
            (None, Claim::Api(author)) => self.holder == *author,
            // The id is shown to everyone who meets the lock, so that the id alone proves nothing.
            (Some(info), Claim::Http { author, lock_id: Some(id) }) => info.id == *id && self.holder == *author,
            // A client that uses both ways keeps them apart: a lock of one is not a lock of the other.
            (None, Claim::Http { .. }) | (Some(_), _) => false,
        }
    }

    /// The id by which clients of the `http` backend know it.
    pub fn http_id(&self) -> Option<&str> {
        self.http.as_ref().map(|info| info.id.as_str())
    }
}

/// Result of taking a lock: taken now, or held already by the same claimant.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Taken {
    Now,
    /// The request was repeated, or a run's own client locks what the run holds already.
    Before,
}

/// Checks whether `wanted` may be taken.
pub fn take_lock(current: Option<&Lock>, wanted: &Lock) -> Result<Taken, LockConflict> {
    let Some(current) = current else { return Ok(Taken::Now) };
    let same_holder = current.holder == wanted.holder;
    let same_http = same_holder && current.http.is_some() && current.http_id() == wanted.http_id();
    let same_run = same_holder && matches!(wanted.holder, Author::Run(_));
    if same_http || same_run { Ok(Taken::Before) } else { Err(LockConflict::Locked(Box::new(current.clone()))) }
}

/// Checks whether the claimant may release the lock. `Ok` also for a run that releases one that it keeps: see
/// [`keeps_lock`].
pub fn release_lock(current: Option<&Lock>, claim: &Claim) -> Result<(), LockConflict> {
    match current {
        None => Err(LockConflict::AlreadyUnlocked),
        Some(lock) if lock.is_held_by(claim) => Ok(()),
        Some(lock) => Err(LockConflict::Locked(Box::new(lock.clone()))),
    }
}

/// True if the claimant released the lock before, so that nothing is left to do. Clients of the `http` backend retry a
/// request whose response was lost. `last_released` is the id of the last lock that was released.
pub fn released_before(current: Option<&Lock>, last_released: Option<&str>, claim: &Claim) -> bool {
    match claim {
        Claim::Http { lock_id: Some(id), .. } => {
            last_released == Some(id) && !current.is_some_and(|lock| lock.is_held_by(claim))
        }
        Claim::Http { lock_id: None, .. } | Claim::Api(_) => false,
    }
}

/// A run holds its workspace until it ends: the client inside it may unlock, and nothing happens.
pub fn keeps_lock(lock: &Lock) -> bool {
    matches!(lock.holder, Author::Run(_))
}

/// Checks whether the claimant may write a state.
pub fn check_lock(current: Option<&Lock>, claim: &Claim) -> Result<(), LockConflict> {
    match (current, claim) {
        (Some(lock), claim) if lock.is_held_by(claim) => Ok(()),
        (Some(lock), _) => Err(LockConflict::Locked(Box::new(lock.clone()))),
        // A client of the `http` backend may work without locking at all; serial and lineage still protect the state.
        (None, Claim::Http { lock_id: None, .. }) => Ok(()),
        (None, _) => Err(LockConflict::Unlocked),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::{RunId, UserId};

    fn jane() -> Author {
        Author::User(UserId::from_random([1; 16]))
    }

    fn joe() -> Author {
        Author::User(UserId::from_random([2; 16]))
    }

    fn run() -> Author {
        Author::Run(RunId::from_random([3; 16]))
    }

    fn lock(holder: Author) -> Lock {
        Lock {
            holder,
            holder_name: "jane".into(),
            since: "2026-01-01T00:00:00Z".parse().expect("a timestamp"),
            reason: None,
            from: None,
            http: None,
        }
    }

    fn http_lock(holder: Author, id: &str) -> Lock {
        Lock { http: Some(LockInfo { id: id.into(), ..LockInfo::default() }), ..lock(holder) }
    }

    fn http(author: Author, id: Option<&str>) -> Claim {
        Claim::Http { author, lock_id: id.map(Into::into) }
    }

    #[test]
    fn a_lock_is_taken_once() {
        for (current, wanted, expected) in [
            (None, lock(jane()), Some(Taken::Now)),
            (Some(lock(jane())), lock(joe()), None),
            (Some(lock(jane())), lock(jane()), None),
            (Some(lock(run())), lock(run()), Some(Taken::Before)),
            (Some(http_lock(jane(), "1")), http_lock(jane(), "1"), Some(Taken::Before)),
            (Some(http_lock(jane(), "1")), http_lock(jane(), "2"), None),
            (Some(http_lock(jane(), "1")), http_lock(joe(), "1"), None),
            (Some(http_lock(jane(), "1")), lock(jane()), None),
            (Some(lock(jane())), http_lock(jane(), "1"), None),
        ] {
            assert_eq!(take_lock(current.as_ref(), &wanted).ok(), expected, "{current:?} {wanted:?}");
        }
    }

    #[test]
    fn only_the_holder_writes_and_releases() {
        let free = None;
        for (current, claim, may_write, may_release) in [
            (Some(lock(jane())), Claim::Api(jane()), true, true),
            (Some(lock(jane())), Claim::Api(joe()), false, false),
            (Some(lock(run())), Claim::Api(run()), true, true),
            (Some(http_lock(jane(), "1")), http(jane(), Some("1")), true, true),
            (Some(http_lock(jane(), "1")), http(joe(), Some("1")), false, false),
            (Some(http_lock(jane(), "1")), http(jane(), Some("2")), false, false),
            (Some(http_lock(jane(), "1")), http(jane(), None), false, false),
            (Some(http_lock(jane(), "1")), Claim::Api(jane()), false, false),
            (Some(lock(jane())), http(jane(), Some("1")), false, false),
            (free.clone(), Claim::Api(jane()), false, false),
            (free.clone(), http(jane(), Some("1")), false, false),
            (free, http(jane(), None), true, false),
        ] {
            assert_eq!(check_lock(current.as_ref(), &claim).is_ok(), may_write, "write: {current:?} {claim:?}");
            assert_eq!(release_lock(current.as_ref(), &claim).is_ok(), may_release, "release: {current:?} {claim:?}");
        }
    }

    #[test]
    fn letting_go_of_a_named_lock_can_be_repeated() {
        for (current, last, claim, expected) in [
            (None, Some("1"), http(jane(), Some("1")), true),
            (Some(http_lock(joe(), "2")), Some("1"), http(jane(), Some("1")), true),
            (Some(http_lock(jane(), "1")), Some("1"), http(jane(), Some("1")), false),
            (None, Some("1"), http(jane(), Some("2")), false),
            (None, Some("1"), http(jane(), None), false),
            (None, Some("1"), Claim::Api(jane()), false),
            (None, None, http(jane(), Some("1")), false),
        ] {
            assert_eq!(released_before(current.as_ref(), last, &claim), expected, "{current:?} {last:?} {claim:?}");
        }
    }

    #[test]
    fn a_moment_is_told_to_the_second() {
        let since = "2026-01-01T00:00:00.123456789Z".parse().expect("a timestamp");
        let lock = Lock { since, ..lock(joe()) };
        assert!(lock.in_words().contains(" since 2026-01-01T00:00:00Z"), "{}", lock.in_words());
    }

    #[test]
    fn a_conflict_says_who_since_when_from_where_and_why() {
        let lock = Lock { reason: Some("deploying".into()), from: Some("10.0.0.7".into()), ..lock(jane()) };
        assert_eq!(
            LockConflict::Locked(Box::new(lock)).to_string(),
            "The workspace is locked by User jane since 2026-01-01T00:00:00Z from 10.0.0.7 (deploying)"
        );
    }

    #[test]
    fn a_reason_is_short_and_plain() {
        let long = "x".repeat(LONGEST_TEXT);
        for (reason, expected) in [
            (None, Some(None)),
            (Some(""), Some(None)),
            (Some("moving\nhouse"), Some(Some("moving\nhouse"))),
            (Some(long.as_str()), Some(Some(long.as_str()))),
            (Some(&format!("{long}x")), None),
            (Some("a\u{202e}b"), None),
            (Some("a\u{1b}[31m"), None),
        ] {
            let checked = check_reason(reason.map(str::to_owned)).ok();
            assert_eq!(checked.as_ref().map(Option::as_deref), expected, "{reason:?}");
        }
    }

    #[test]
    fn a_lock_keeps_its_id_and_as_much_of_the_rest_as_is_plain_and_short() {
        let sent = |id: &str| LockInfo {
            id: id.into(),
            who: "jane\u{202e}@host\0".into(),
            path: "x".repeat(2 * LONGEST_TEXT),
            ..LockInfo::default()
        };
        let kept = sent("6f9f").checked().expect("it can be kept");
        assert_eq!((kept.id.as_str(), kept.who.as_str()), ("6f9f", "jane@host"));
        assert_eq!((kept.info.as_str(), kept.path.len()), ("", LONGEST_TEXT));
        for id in ["", "a\0", &"x".repeat(LONGEST_TEXT + 1)] {
            assert!(sent(id).checked().is_err(), "{id:?}");
        }
    }

    #[test]
    fn lock_info_is_spelled_as_on_the_wire() {
        let json = r#"{"ID":"a","Operation":"OperationTypeApply","Info":"","Who":"jane@host","Version":"1.11.4","Created":"2026-01-01T00:00:00Z","Path":""}"#;
        let info: LockInfo = serde_json::from_str(json).expect("lock info");
        assert_eq!(info.operation, "OperationTypeApply");
        assert_eq!(serde_json::to_string(&info).expect("JSON"), json);
    }
}
