use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use taco_tables::{Record, indexes};

use crate::id::{PasswordLinkId, UserId};
use crate::secret::SecretHash;

/// A link with which someone sets a password without having one: the first site admin, an invited user, or one who
/// forgot it. It works once; the record is deleted with the commit that sets the password.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, Debug)]
pub struct PasswordLink {
    pub id: PasswordLinkId,
    pub hash: SecretHash,
    pub user: UserId,
    pub created_at: Timestamp,
    pub expires_at: Timestamp,
}

impl PasswordLink {
    pub fn is_open(&self, now: Timestamp) -> bool {
        now < self.expires_at
    }
}

impl Record for PasswordLink {
    const KIND: &'static str = "password-link";
    const NOUN: &'static str = "password link";
    const PART_OF: &'static [&'static str] = &["user"];
    type Id = PasswordLinkId;
    type Indexes = PasswordLinkIndexes;

    fn id(&self) -> &PasswordLinkId {
        &self.id
    }
}

indexes! {
    pub struct PasswordLinkIndexes for PasswordLink {
        pub hash: SecretHash => |link| [link.hash];
        pub user: UserId => |link| [link.user];
    }
}
