//! A user's place in an organization.

use std::collections::BTreeSet;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use taco_tables::{Record, indexes, references};

use crate::id::{MembershipId, TeamId, UserId};
use crate::invitation::InvitationLink;
use crate::name::{Email, NameKey};
use crate::secret::SecretHash;
use crate::site::Site;
use crate::user::User;

#[derive(Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Debug)]
#[serde(rename_all = "kebab-case")]
pub enum MembershipStatus {
    Active,
    /// Its person has not accepted it: it opens nothing.
    Invited,
}

#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, Debug)]
pub struct Membership {
    pub id: MembershipId,
    /// While it is an invitation, an id that no user has: whose account has the address is not for the organization to
    /// know.
    pub user: UserId,
    /// The address that was invited. Its user may have another one.
    pub email: Email,
    pub status: MembershipStatus,
    #[serde(default)]
    pub teams: BTreeSet<TeamId>,
    pub created_at: Timestamp,
    /// The link with which it can be accepted; gone when it was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub link: Option<InvitationLink>,
}

impl Membership {
    /// True if its user belongs to the organization. Versions before invitations had to be accepted wrote them without
    /// a link, and admitted the user with the id at once: those members stay.
    pub fn is_in_effect(&self) -> bool {
        self.status == MembershipStatus::Active || self.link.is_none()
    }

    /// True if it waits for an answer. One of an earlier version does while the site knows no user with its id.
    pub fn is_pending(&self, site: &Site) -> bool {
        self.status == MembershipStatus::Invited && (self.link.is_some() || !site.users.contains(&self.user))
    }

    /// True if this user may answer it without the link: it is pending, and a site admin has verified that the address
    /// is theirs. An address that only its user claims grants nothing.
    pub fn is_offered_to(&self, user: &User, site: &Site) -> bool {
        self.is_pending(site) && user.has_verified_email() && user.email.key() == self.email.key()
    }

    /// The same membership when its person has accepted it.
    pub fn accepted_by(&self, user: UserId) -> Self {
        Self { user, status: MembershipStatus::Active, link: None, ..self.clone() }
    }
}

/// The id that earlier versions gave the user of an address. Sites go on knowing their first admin by it; no other user
/// gets such an id any more, so that what was offered to an address is not offered to an earlier owner of it.
pub fn invited_user(email: &Email) -> UserId {
    let digest: [u8; 32] = Sha256::digest(format!("user of {}", email.key().as_str())).into();
    let mut random = [0; 16];
    random.copy_from_slice(&digest[..16]);
    UserId::from_random(random)
}

impl Record for Membership {
    const KIND: &'static str = "membership";
    const PART_OF: &'static [&'static str] = &["user", "teams"];
    const UNIQUE: &'static [&'static str] = &["email"];
    type Id = MembershipId;
    type Indexes = MembershipIndexes;

    fn id(&self) -> &MembershipId {
        &self.id
    }

    references! {
        "teams": TeamId, unlink(|members, id| members.by().team.get(id), |member| member.teams.remove(id));
    }
}

indexes! {
    pub struct MembershipIndexes for Membership {
        /// Unique.
        pub user: UserId => |membership| [membership.user];
        /// The order of lists.
        pub email: NameKey, unique "email" => |membership| [membership.email.key()];
        pub team: TeamId => |membership| membership.teams.clone();
        pub link: SecretHash => |membership| membership.link.map(|link| link.hash);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::OrganizationId;
    use crate::secret::HashKey;

    #[test]
    fn an_address_has_one_user_however_it_is_written() {
        let user = |email: &str| invited_user(&email.parse().expect("legal"));
        assert_eq!(user("Jane@acme.test"), user("jane@ACME.test"));
        assert_ne!(user("jane@acme.test"), user("joe@acme.test"));
    }

    fn jane(verified: Option<&str>) -> User {
        User {
            id: UserId::from_random([1; 16]),
            username: "jane".parse().expect("legal"),
            email: "jane@acme.test".parse().expect("legal"),
            password: None,
            site_admin: false,
            suspended: false,
            service_account: false,
            verified_email: verified.map(|email| email.parse().expect("legal")),
            created_at: Timestamp::UNIX_EPOCH,
            updated_at: Timestamp::UNIX_EPOCH,
        }
    }

    fn invitation(email: &str) -> Membership {
        let hash = HashKey::new([3; 32]).hash("invitation", "text");
        Membership {
            id: MembershipId::within(OrganizationId::from_random([2; 16]).organization_prefix(), [2; 16]),
            user: UserId::from_random([9; 16]),
            email: email.parse().expect("legal"),
            status: MembershipStatus::Invited,
            teams: BTreeSet::new(),
            created_at: Timestamp::UNIX_EPOCH,
            link: Some(InvitationLink::new(hash, Timestamp::UNIX_EPOCH)),
        }
    }

    #[test]
    fn an_invitation_opens_nothing_until_it_is_accepted() {
        let invited = invitation("jane@acme.test");
        assert!(!invited.is_in_effect() && invited.is_pending(&Site::default()));
        let accepted = invited.accepted_by(jane(None).id);
        assert!(accepted.is_in_effect() && !accepted.is_pending(&Site::default()));
        assert_eq!((accepted.user, accepted.link), (jane(None).id, None));
    }

    #[test]
    fn an_invitation_is_offered_to_whose_address_was_verified() {
        let site = Site::default();
        for (email, verified, offered) in [
            ("Jane@acme.test", Some("jane@acme.test"), true),
            ("jane@acme.test", None, false),
            // Verified was the one before.
            ("jane@acme.test", Some("jane@elsewhere.test"), false),
            ("jane@elsewhere.test", Some("jane@elsewhere.test"), false),
            ("joe@acme.test", Some("jane@acme.test"), false),
        ] {
            assert_eq!(invitation(email).is_offered_to(&jane(verified), &site), offered, "{email} {verified:?}");
        }
        let accepted = invitation("jane@acme.test").accepted_by(UserId::from_random([8; 16]));
        assert!(!accepted.is_offered_to(&jane(Some("jane@acme.test")), &site), "someone else has taken it");
    }

    #[test]
    fn members_of_earlier_versions_stay_and_their_open_invitations_wait() {
        let old = Membership { link: None, ..invitation("jane@acme.test") };
        assert!(old.is_in_effect());
        let mut site = Site::default();
        assert!(old.is_pending(&site), "nobody has the id");
        assert!(old.is_offered_to(&jane(Some("jane@acme.test")), &site));
        let user = User { id: old.user, ..jane(None) };
        site.users.put(&user).expect("put");
        assert!(!old.is_pending(&site), "they were let in");
    }
}
