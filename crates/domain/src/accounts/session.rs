use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};
use taco_tables::{Record, indexes};

use crate::id::{SessionId, UserId};
use crate::secret::SecretHash;

/// A session ends after this time without use.
pub const IDLE: SignedDuration = SignedDuration::from_hours(8);
/// A session ends after this time in any case.
pub const MAX_SESSION_LIFETIME: SignedDuration = SignedDuration::from_hours(7 * 24);
/// A use is remembered once in this time, see [`Session::use_to_remember`].
const PRECISION: SignedDuration = SignedDuration::from_mins(15);

/// A browser in which someone is logged in. The cookie's text is not stored, only its hash; being a record, it ends
/// on every server at once when it is deleted.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, Debug)]
pub struct Session {
    pub id: SessionId,
    pub hash: SecretHash,
    pub user: UserId,
    pub created_at: Timestamp,
    pub last_used_at: Timestamp,
    /// Address it was opened from, so that its owner recognises it.
    pub address: Option<String>,
    pub user_agent: Option<String>,
}

impl Session {
    /// Expiry of the session unless it is used again.
    pub fn ends_at(&self) -> Timestamp {
        let idle = self.last_used_at.checked_add(IDLE).unwrap_or(Timestamp::MAX);
        let longest = self.created_at.checked_add(MAX_SESSION_LIFETIME).unwrap_or(Timestamp::MAX);
        idle.min(longest)
    }

    pub fn is_open(&self, now: Timestamp) -> bool {
        now < self.ends_at()
    }

    /// The session as it should be stored after a use at `now`; `None` while the last remembered use is near enough.
    pub fn use_to_remember(&self, now: Timestamp) -> Option<Self> {
        let due = now.duration_since(self.last_used_at) >= PRECISION;
        due.then(|| Self { last_used_at: now, ..self.clone() })
    }
}

impl Record for Session {
    const KIND: &'static str = "session";
    const PART_OF: &'static [&'static str] = &["user"];
    type Id = SessionId;
    type Indexes = SessionIndexes;

    fn id(&self) -> &SessionId {
        &self.id
    }
}

indexes! {
    pub struct SessionIndexes for Session {
        pub hash: SecretHash => |session| [session.hash];
        pub user: UserId => |session| [session.user];
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::secret::HashKey;

    #[test]
    fn a_session_ends_when_idle_and_after_a_week_in_any_case() {
        let moment = |text: &str| -> Timestamp { text.parse().expect("a timestamp") };
        let session = Session {
            id: SessionId::from_random([1; 16]),
            hash: HashKey::new([0; 32]).hash("session", "x"),
            user: UserId::from_random([2; 16]),
            created_at: moment("2026-01-01T00:00:00Z"),
            last_used_at: moment("2026-01-01T00:00:00Z"),
            address: None,
            user_agent: None,
        };
        assert!(session.is_open(moment("2026-01-01T07:59:59Z")));
        assert!(!session.is_open(moment("2026-01-01T08:00:00Z")));
        assert_eq!(session.use_to_remember(moment("2026-01-01T00:14:59Z")), None);
        let used = session.use_to_remember(moment("2026-01-01T00:15:00Z")).expect("due");
        assert!(used.is_open(moment("2026-01-01T08:14:59Z")));
        let busy = Session { last_used_at: moment("2026-01-07T23:00:00Z"), ..session };
        assert!(busy.is_open(moment("2026-01-07T23:59:59Z")));
        assert!(!busy.is_open(moment("2026-01-08T00:00:00Z")));
    }
}
