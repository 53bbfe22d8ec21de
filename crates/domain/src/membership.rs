//! A user's place in an organization.

use std::collections::BTreeSet;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use taco_tables::{Record, indexes};

use crate::id::{MembershipId, TeamId, UserId};
use crate::name::{Email, NameKey};

/// An invitation counts like a membership as soon as its user exists: see [`invited_user`].
#[derive(Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Debug)]
#[serde(rename_all = "kebab-case")]
pub enum MembershipStatus {
    Active,
    Invited,
}

#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, Debug)]
pub struct Membership {
    pub id: MembershipId,
    pub user: UserId,
    pub email: Email,
    pub status: MembershipStatus,
    #[serde(default)]
    pub teams: BTreeSet<TeamId>,
    pub created_at: Timestamp,
}

/// The id that the user of an address will have. An organization can so invite someone whom the site does not know
/// yet, and is right as soon as it does, without a change that spans two ledgers. Someone who moves to an address
/// later keeps another id, and takes no invitation over.
pub fn invited_user(email: &Email) -> UserId {
    let digest: [u8; 32] = Sha256::digest(format!("user of {}", email.key().as_str())).into();
    let mut random = [0; 16];
    random.copy_from_slice(&digest[..16]);
    UserId::from_random(random)
}

impl Record for Membership {
    const KIND: &'static str = "membership";
    type Id = MembershipId;
    type Indexes = MembershipIndexes;

    fn id(&self) -> &MembershipId {
        &self.id
    }
}

indexes! {
    pub struct MembershipIndexes for Membership {
        /// Unique.
        pub user: UserId => |membership| [membership.user];
        /// Unique, and the order of lists.
        pub email: NameKey => |membership| [membership.email.key()];
        pub team: TeamId => |membership| membership.teams.clone();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_has_one_user_however_it_is_written() {
        let user = |email: &str| invited_user(&email.parse().expect("legal"));
        assert_eq!(user("Jane@acme.test"), user("jane@ACME.test"));
        assert_ne!(user("jane@acme.test"), user("joe@acme.test"));
    }
}
