//! An invitation: a membership that was not accepted yet.
//!
//! Its link holds a text that is shown once, to the person who invites, and that names the ledger where its hash is:
//!
//! ```text
//! taco_i_<organization>_<secret>
//! ```

use std::fmt;
use std::str::FromStr;

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

use crate::id::OrganizationId;
use crate::secret::{HashKey, Secret, SecretHash};

/// Lifetime of an invitation link. The invitation itself stays until it is answered or withdrawn.
pub const INVITATION_LINK_LIFETIME: SignedDuration = SignedDuration::from_hours(14 * 24);

/// The link of an invitation, as its membership's record has it.
#[derive(Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Debug)]
pub struct InvitationLink {
    /// The hash of the link's text.
    pub hash: SecretHash,
    pub expires_at: Timestamp,
}

impl InvitationLink {
    pub fn new(hash: SecretHash, now: Timestamp) -> Self {
        Self { hash, expires_at: now.checked_add(INVITATION_LINK_LIFETIME).unwrap_or(Timestamp::MAX) }
    }

    pub fn is_open(&self, now: Timestamp) -> bool {
        now < self.expires_at
    }
}

/// Contents of an invitation link. Anyone who has it may accept the invitation, once.
#[derive(Clone, PartialEq, Eq)]
pub struct InvitationText {
    pub organization: OrganizationId,
    secret: Secret,
}

/// A text that no invitation has.
#[derive(Clone, Copy, PartialEq, Eq, thiserror::Error, Debug)]
#[error("this is no invitation of taco: those begin with taco_i_")]
pub struct InvalidInvitation;

impl InvitationText {
    pub fn new(organization: OrganizationId, secret: Secret) -> Self {
        Self { organization, secret }
    }

    /// The text itself: for the answer to the request that made the link, and for nothing else.
    pub fn reveal(&self) -> String {
        format!("taco_i_{}_{}", self.organization.characters(), self.secret.reveal())
    }

    pub fn hash(&self, key: &HashKey) -> SecretHash {
        key.hash("invitation", &self.reveal())
    }
}

/// Takes the text, or the whole link that ends with it.
impl FromStr for InvitationText {
    type Err = InvalidInvitation;

    fn from_str(text: &str) -> Result<Self, InvalidInvitation> {
        let text = text.trim().rsplit('/').next().unwrap_or_default();
        let parts: Vec<&str> = text.split('_').collect();
        let ["taco", "i", organization, secret] = parts[..] else { return Err(InvalidInvitation) };
        let organization = OrganizationId::from_characters(organization).map_err(|_| InvalidInvitation)?;
        Ok(Self { organization, secret: secret.parse().map_err(|_| InvalidInvitation)? })
    }
}

/// Logs must not have it.
impl fmt::Debug for InvitationText {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("InvitationText(…)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::token::TokenText;

    fn text() -> InvitationText {
        InvitationText::new(OrganizationId::from_random([1; 16]), Secret::from_random([2; 32]))
    }

    #[test]
    fn the_text_and_the_link_mean_the_same() {
        let revealed = text().reveal();
        assert_eq!(revealed.parse(), Ok(text()));
        assert_eq!(format!("https://taco.test/app/settings/invitations/{revealed}").parse(), Ok(text()));
        for wrong in ["", "taco_i_", "taco_i_x_y", "taco_u_x", &format!("{revealed}x"), &revealed[1..]] {
            assert_eq!(wrong.parse::<InvitationText>(), Err(InvalidInvitation), "{wrong}");
        }
    }

    #[test]
    fn an_invitation_is_no_token_and_stands_in_no_log() {
        assert!(text().reveal().parse::<TokenText>().is_err());
        assert!(!format!("{:?}", text()).contains(&text().reveal()));
    }

    #[test]
    fn a_link_ends() {
        let now = Timestamp::UNIX_EPOCH;
        let link = InvitationLink::new(text().hash(&HashKey::new([3; 32])), now);
        assert!(link.is_open(now));
        assert!(!link.is_open(now + INVITATION_LINK_LIFETIME));
    }
}
