//! Ids as Terraform Cloud writes them: a prefix that tells the kind, and 16 base58 characters.
//!
//! An id within an organization begins with the first five characters of the organization's own id, its [`OrganizationPrefix`].
//! So `GET /workspaces/ws-…`, which names no organization, leads to one ledger without asking any other.

use std::fmt;

use sha2::{Digest, Sha256};
use taco_tables::{KeyBytes, SortKey};

/// Characters of an id after its prefix.
pub const LENGTH: usize = 16;
const PREFIX_LENGTH: usize = 5;
/// Bitcoin's alphabet: without `0`, `O`, `I` and `l`, which people confuse.
const ALPHABET: &[u8; 58] = b"123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz";

/// The part of an id that tells its organization. No two organizations share one.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct OrganizationPrefix([u8; PREFIX_LENGTH]);

impl OrganizationPrefix {
    /// Organization prefix of a text that looks like an id of any kind.
    pub fn of(id: &str) -> Option<Self> {
        let (_, characters) = id.rsplit_once('-')?;
        let characters = <[u8; LENGTH]>::try_from(characters.as_bytes()).ok()?;
        let is_id = characters.iter().all(|character| ALPHABET.contains(character));
        is_id.then(|| Self::at(&characters))
    }

    /// Prefix of the characters of an id.
    pub fn at(characters: &[u8; LENGTH]) -> Self {
        let mut prefix = [0; PREFIX_LENGTH];
        prefix.copy_from_slice(&characters[..PREFIX_LENGTH]);
        Self(prefix)
    }
}

impl SortKey for OrganizationPrefix {
    fn encode(&self, key: &mut KeyBytes) {
        self.0.encode(key);
    }
}

impl fmt::Display for OrganizationPrefix {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(text(&self.0))
    }
}

impl fmt::Debug for OrganizationPrefix {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, formatter)
    }
}

/// Error for a text that is not an id; it shows the expected form.
#[derive(Clone, PartialEq, Eq, thiserror::Error, Debug)]
#[error("this is not an id of the kind {prefix}-…: after the prefix it has 16 letters and digits")]
pub struct InvalidId {
    pub prefix: &'static str,
}

/// Characters of an id as text.
pub fn text(characters: &[u8]) -> &str {
    std::str::from_utf8(characters).unwrap_or_default()
}

/// Characters of a new id.
pub fn base58(random: [u8; 16]) -> [u8; LENGTH] {
    let mut rest = u128::from_be_bytes(random);
    let mut characters = [0; LENGTH];
    for character in &mut characters {
        *character = ALPHABET[usize::try_from(rest % 58).unwrap_or_default()];
        rest /= 58;
    }
    characters
}

/// Characters of an id that begins with `prefix`.
pub fn parse(prefix: &'static str, id: &str) -> Result<[u8; LENGTH], InvalidId> {
    let characters = id.strip_prefix(prefix).and_then(|rest| rest.strip_prefix('-'));
    match characters.and_then(|characters| <[u8; LENGTH]>::try_from(characters.as_bytes()).ok()) {
        Some(characters) if characters.iter().all(|character| ALPHABET.contains(character)) => Ok(characters),
        _ => Err(InvalidId { prefix }),
    }
}

/// Characters of an id that belongs to an organization.
pub fn within(prefix: OrganizationPrefix, mut characters: [u8; LENGTH]) -> [u8; LENGTH] {
    characters[..PREFIX_LENGTH].copy_from_slice(&prefix.0);
    characters
}

/// Characters that depend on the organization and the purpose alone.
pub fn derived(prefix: &OrganizationPrefix, purpose: &str) -> [u8; LENGTH] {
    let digest: [u8; 32] =
        Sha256::new().chain_update(prefix.0).chain_update([0]).chain_update(purpose).finalize().into();
    let mut random = [0; 16];
    random.copy_from_slice(&digest[..16]);
    base58(random)
}

/// Number of times that an id can be turned before it comes back to what it was.
pub const MAX_TURNS: usize = 58 * 58;

/// The characters of an id with the last two moved on in the alphabet, as a number of two digits.
pub fn turned(characters: [u8; LENGTH], times: usize) -> String {
    let digit = |character: u8| ALPHABET.iter().position(|other| *other == character).unwrap_or_default();
    let mut turned = characters;
    let number = digit(characters[LENGTH - 2]) * 58 + digit(characters[LENGTH - 1]);
    let number = (number + times) % MAX_TURNS;
    turned[LENGTH - 2] = ALPHABET[number / 58];
    turned[LENGTH - 1] = ALPHABET[number % 58];
    text(&turned).to_owned()
}

/// Stamps out kinds of ids, so that none lacks parsing, display or serde. A noun that nothing else names declares its own.
#[macro_export]
macro_rules! id_kinds {
    ($($(#[$attribute:meta])* $name:ident = $prefix:literal;)*) => {$(
        $(#[$attribute])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name([u8; $crate::id::LENGTH]);

        impl $name {
            pub const PREFIX: &'static str = $prefix;

            /// An id for something that belongs to the site. Randomness is an argument.
            pub fn from_random(random: [u8; 16]) -> Self {
                Self($crate::id::base58(random))
            }

            /// An id for something that belongs to an organization.
            pub fn within(prefix: $crate::id::OrganizationPrefix, random: [u8; 16]) -> Self {
                Self($crate::id::within(prefix, $crate::id::base58(random)))
            }

            /// An id that anyone who knows the organization and `purpose` arrives at: for what must not be made twice.
            pub fn derived(prefix: $crate::id::OrganizationPrefix, purpose: &str) -> Self {
                Self($crate::id::within(prefix, $crate::id::derived(&prefix, purpose)))
            }

            /// The organization that it belongs to; meaningless for what belongs to the site.
            pub fn organization_prefix(&self) -> $crate::id::OrganizationPrefix {
                $crate::id::OrganizationPrefix::at(&self.0)
            }

            /// The 16 characters after the prefix.
            pub fn characters(&self) -> &str {
                $crate::id::text(&self.0)
            }

            /// The same characters as bytes.
            pub fn to_bytes(self) -> [u8; $crate::id::LENGTH] {
                self.0
            }

            /// The reverse of [`Self::to_bytes`].
            pub fn from_bytes(bytes: [u8; $crate::id::LENGTH]) -> Result<Self, $crate::id::InvalidId> {
                Self::from_characters($crate::id::text(&bytes))
            }

            /// The reverse of [`Self::characters`].
            pub fn from_characters(characters: &str) -> Result<Self, $crate::id::InvalidId> {
                format!("{}-{characters}", $prefix).parse()
            }
        }

        impl taco_tables::SortKey for $name {
            fn encode(&self, key: &mut taco_tables::KeyBytes) {
                taco_tables::SortKey::encode(&self.0, key);
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                write!(formatter, concat!($prefix, "-{}"), $crate::id::text(&self.0))
            }
        }

        impl std::fmt::Debug for $name {
            fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                std::fmt::Display::fmt(self, formatter)
            }
        }

        impl std::str::FromStr for $name {
            type Err = $crate::id::InvalidId;

            fn from_str(id: &str) -> Result<Self, $crate::id::InvalidId> {
                $crate::id::parse($prefix, id).map(Self)
            }
        }

        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }

        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let id = <std::borrow::Cow<'de, str> as serde::Deserialize<'de>>::deserialize(deserializer)?;
                id.parse().map_err(<D::Error as serde::de::Error>::custom)
            }
        }
    )*};
}

id_kinds! {
    /// A person, or a program with an account of its own.
    UserId = "user";
    /// Everything that belongs together: projects, workspaces, teams.
    OrganizationId = "org";
    /// A group of workspaces.
    ProjectId = "prj";
    /// A configuration's state, variables and history of runs.
    WorkspaceId = "ws";
    /// An API token; its text is never stored.
    TokenId = "at";
    /// Maximum lifetime of an organization's tokens of one kind.
    TokenLifetimeId = "ttlp";
    /// A state as it was at one moment.
    StateVersionId = "sv";
    /// One output of one state version.
    OutputId = "wsout";
    /// A tag's key, as far as an organization uses it.
    TagId = "tag";
    /// Members of an organization who share rights.
    TeamId = "team";
    /// A user's place in an organization.
    MembershipId = "ou";
    /// A team's rights in one workspace.
    TeamWorkspaceId = "tws";
    /// A team's rights in one project.
    TeamProjectId = "tprj";
    /// One plan of one configuration, and perhaps its apply.
    RunId = "run";
    /// The agents that may execute a workspace's runs.
    AgentPoolId = "apool";
    /// One process that executes phases.
    AgentId = "agent";
    /// A configuration that was, or will be, uploaded.
    ConfigurationVersionId = "cv";
    /// A run's plan. It has the run's characters.
    PlanId = "plan";
    /// A run's apply. It has the run's characters.
    ApplyId = "apply";
    /// Cost estimate of a run's plan. It has the run's characters.
    CostEstimateId = "ce";
    /// A remark about a run.
    CommentId = "wsc";
    /// Something that happened to a run.
    RunEventId = "re";
    /// An apply in one workspace starts a run in another.
    RunTriggerId = "rt";
    VariableId = "var";
    /// Variables that several workspaces share.
    VariableSetId = "varset";
    /// A browser in which someone is logged in.
    SessionId = "session";
    /// A consent given to a client, until it is exchanged for a token.
    GrantId = "grant";
    /// A link with which someone sets a password once.
    PasswordLinkId = "link";
    /// Records that left memory together.
    HistorySegmentId = "hs";
}

impl RunId {
    /// True if a run with this id could have such an event.
    pub fn could_have(&self, event: RunEventId) -> bool {
        self.could_have_part(event.to_bytes())
    }

    /// True if a part of a run with this id could have the characters `part`, which are the run's own, turned.
    pub fn could_have_part(&self, part: [u8; LENGTH]) -> bool {
        let unturned = |id: [u8; LENGTH]| <[u8; LENGTH - 2]>::try_from(&id[..LENGTH - 2]).unwrap_or_default();
        unturned(self.to_bytes()) == unturned(part)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_its_text() {
        let id: WorkspaceId = "ws-4Tk9mXbq7cWvZpHn".parse().expect("an id");
        assert_eq!(id.to_string(), "ws-4Tk9mXbq7cWvZpHn");
        assert_eq!(serde_json::to_string(&id).expect("JSON"), r#""ws-4Tk9mXbq7cWvZpHn""#);
        assert_eq!(serde_json::from_str::<WorkspaceId>(r#""ws-4Tk9mXbq7cWvZpHn""#).expect("an id"), id);
        assert_eq!(WorkspaceId::from_characters(id.characters()), Ok(id));
    }

    #[test]
    fn a_text_that_looks_like_an_id_leads_home() {
        let id: WorkspaceId = "ws-4Tk9mXbq7cWvZpHn".parse().expect("an id");
        assert_eq!(OrganizationPrefix::of("ws-4Tk9mXbq7cWvZpHn"), Some(id.organization_prefix()));
        assert_eq!(OrganizationPrefix::of("anything-4Tk9mXbq7cWvZpHn"), Some(id.organization_prefix()));
        for text in ["workspaces", "4Tk9mXbq7cWvZpHn", "ws-4Tk9mXbq7cWvZpH", "ws-4Tk9mXbq7cWvZpH0", ""] {
            assert_eq!(OrganizationPrefix::of(text), None, "{text}");
        }
    }

    #[test]
    fn an_id_of_another_kind_is_refused() {
        assert!("ws-4Tk9mXbq7cWvZpHn".parse::<RunId>().is_err());
    }

    #[test]
    fn what_is_no_id_is_refused() {
        let long = format!("ws-{}", "a".repeat(5000));
        for text in [
            "",
            "ws",
            "ws-",
            "ws-4Tk9mXbq7cWvZpH",
            "ws-4Tk9mXbq7cWvZpHnn",
            "ws-0Tk9mXbq7cWvZpHn",
            "ws-ITk9mXbq7cWvZpHn",
            "ws-../../../../etc/p",
            "ws-%2e%2e%2f%2e%2e%2",
            "ws_4Tk9mXbq7cWvZpHn",
            "WS-4Tk9mXbq7cWvZpHn",
            " ws-4Tk9mXbq7cWvZpHn",
            "ws-4Tk9mXbq7cWvZp\u{430}",
            &long,
        ] {
            assert!(text.parse::<WorkspaceId>().is_err(), "{text:?}");
        }
    }

    #[test]
    fn every_random_value_makes_an_id_that_can_be_read_back() {
        for byte in [0, 1, 57, 58, 127, 255] {
            let id = UserId::from_random([byte; 16]);
            assert_eq!(id.to_string().parse(), Ok(id));
        }
        assert_ne!(UserId::from_random([1; 16]), UserId::from_random([2; 16]));
    }

    #[test]
    fn an_id_within_an_organization_leads_to_it() {
        let organization = OrganizationId::from_random([7; 16]);
        let workspace = WorkspaceId::within(organization.organization_prefix(), [9; 16]);
        assert_eq!(workspace.organization_prefix(), organization.organization_prefix());
        assert!(workspace.to_string().starts_with(&format!("ws-{}", organization.organization_prefix())));
    }

    #[test]
    fn a_derived_id_depends_on_the_organization_and_the_purpose_alone() {
        let here = OrganizationId::from_random([7; 16]).organization_prefix();
        let there = OrganizationId::from_random([8; 16]).organization_prefix();
        assert_eq!(ProjectId::derived(here, "default"), ProjectId::derived(here, "default"));
        assert_ne!(ProjectId::derived(here, "default"), ProjectId::derived(here, "other"));
        assert_ne!(ProjectId::derived(here, "default"), ProjectId::derived(there, "default"));
    }
}
