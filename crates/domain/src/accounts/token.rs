//! API tokens. The text names the ledger that holds its hash, so that one look-up finds it:
//!
//! ```text
//! taco_u_<secret>                 a user's, in the site's ledger
//! taco_t_<organization>_<secret>  a team's; o an organization's; l for its audit trail; a an agent pool's
//! ```

use std::fmt;
use std::str::FromStr;

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};
use taco_tables::{KeyBytes, Record, SortKey, indexes, references};

use crate::attribute::{InvalidAttribute, is_plain_text, shown};
use crate::author::Author;
use crate::id::{AgentPoolId, OrganizationId, TeamId, TokenId, UserId};
use crate::secret::{HashKey, Secret, SecretHash};

/// A use is remembered once in this time: a commit for each request would be noise.
const LAST_USE_PRECISION_SECONDS: i64 = 60 * 60;

/// Owner whose rights a token has.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, Debug)]
#[serde(rename_all = "kebab-case")]
pub enum TokenHolder {
    User(UserId),
    Team(TeamId),
    /// The organization in whose ledger the token is.
    Organization,
    AuditTrail,
    AgentPool(AgentPoolId),
}

impl SortKey for TokenHolder {
    fn encode(&self, key: &mut KeyBytes) {
        match self {
            Self::User(id) => (0_u8, *id).encode(key),
            Self::Team(id) => (1_u8, *id).encode(key),
            Self::Organization => 2_u8.encode(key),
            Self::AuditTrail => 3_u8.encode(key),
            Self::AgentPool(id) => (4_u8, *id).encode(key),
        }
    }
}

impl TokenHolder {
    pub fn kind(&self) -> TokenKind {
        match self {
            Self::User(_) => TokenKind::User,
            Self::Team(_) => TokenKind::Team,
            Self::Organization => TokenKind::Organization,
            Self::AuditTrail => TokenKind::AuditTrail,
            Self::AgentPool(_) => TokenKind::AgentPool,
        }
    }
}

/// The kinds of tokens.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum TokenKind {
    User,
    Team,
    Organization,
    AuditTrail,
    AgentPool,
}

impl TokenKind {
    const ALL: [Self; 5] = [Self::User, Self::Team, Self::Organization, Self::AuditTrail, Self::AgentPool];

    fn letter(self) -> &'static str {
        match self {
            Self::User => "u",
            Self::Team => "t",
            Self::Organization => "o",
            Self::AuditTrail => "l",
            Self::AgentPool => "a",
        }
    }

    fn is_site_wide(self) -> bool {
        self == Self::User
    }
}

/// A token as its owner types it.
#[derive(Clone, PartialEq, Eq)]
pub struct TokenText {
    pub kind: TokenKind,
    /// `None` for the site's ledger.
    pub organization: Option<OrganizationId>,
    secret: Secret,
}

/// A text that no token has.
#[derive(Clone, Copy, PartialEq, Eq, thiserror::Error, Debug)]
#[error("this is no token of taco: those begin with taco_")]
pub struct InvalidToken;

impl TokenText {
    pub fn of_user(secret: Secret) -> Self {
        Self { kind: TokenKind::User, organization: None, secret }
    }

    /// Token of every kind but a user's.
    pub fn of_organization(kind: TokenKind, organization: OrganizationId, secret: Secret) -> Self {
        Self { kind, organization: (!kind.is_site_wide()).then_some(organization), secret }
    }

    /// The text itself: for the answer to the request that made the token, and for nothing else.
    pub fn reveal(&self) -> String {
        match self.organization {
            None => format!("taco_{}_{}", self.kind.letter(), self.secret.reveal()),
            Some(id) => format!("taco_{}_{}_{}", self.kind.letter(), id.characters(), self.secret.reveal()),
        }
    }

    pub fn hash(&self, key: &HashKey) -> SecretHash {
        key.hash("token", &self.reveal())
    }
}

impl FromStr for TokenText {
    type Err = InvalidToken;

    fn from_str(text: &str) -> Result<Self, InvalidToken> {
        let parts: Vec<&str> = text.split('_').collect();
        let (letter, organization, secret) = match parts[..] {
            ["taco", letter, secret] => (letter, None, secret),
            ["taco", letter, organization, secret] => {
                let organization = OrganizationId::from_characters(organization).map_err(|_| InvalidToken)?;
                (letter, Some(organization), secret)
            }
            _ => return Err(InvalidToken),
        };
        let kind = TokenKind::ALL.into_iter().find(|kind| kind.letter() == letter).ok_or(InvalidToken)?;
        if kind.is_site_wide() != organization.is_none() {
            return Err(InvalidToken);
        }
        Ok(Self { kind, organization, secret: secret.parse().map_err(|_| InvalidToken)? })
    }
}

/// Logs must not have it.
impl fmt::Debug for TokenText {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{:?} token (…)", self.kind)
    }
}

/// Metadata of a token. Its text is shown once and never stored.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, Debug)]
pub struct Token {
    pub id: TokenId,
    pub hash: SecretHash,
    pub holder: TokenHolder,
    pub description: Option<String>,
    pub created_at: Timestamp,
    pub created_by: Author,
    pub expires_at: Option<Timestamp>,
    /// Within an hour, see [`Self::use_to_remember`].
    pub last_used_at: Option<Timestamp>,
    /// It comes from the organization's token: made with it, or with a token of which this is true. Then it may do no more
    /// than that may, whatever its holder is given later.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub from_organization: bool,
}

/// A token's time is over.
#[derive(Clone, Copy, PartialEq, Eq, thiserror::Error, Debug)]
#[error("the token expired at {0}")]
pub struct Expired(pub Timestamp);

impl Token {
    /// True if it may do no more than the organization's token may.
    pub fn is_from_organization(&self) -> bool {
        self.from_organization || matches!(self.created_by, Author::Organization(_))
    }

    /// Checks that it has not expired at `now`.
    pub fn check(&self, now: Timestamp) -> Result<(), Expired> {
        match self.expires_at {
            Some(end) if end <= now => Err(Expired(end)),
            _ => Ok(()),
        }
    }

    /// Lifetime from its creation to its expiry; `None` if it does not expire.
    pub fn life(&self) -> Option<SignedDuration> {
        self.expires_at.map(|end| end.duration_since(self.created_at))
    }

    /// The token as it should be stored after a use at `now`; `None` while the last remembered use is near enough.
    pub fn use_to_remember(&self, now: Timestamp) -> Option<Self> {
        let due = |last: Timestamp| now.as_second() - last.as_second() >= LAST_USE_PRECISION_SECONDS;
        self.last_used_at.is_none_or(due).then(|| Self { last_used_at: Some(now), ..self.clone() })
    }
}

/// Description of a token by its creator, validated.
pub fn token_description(text: Option<String>) -> Result<Option<String>, InvalidAttribute> {
    const MAX_DESCRIPTION_CHARACTERS: usize = 512;
    match text.filter(|text| !text.is_empty()) {
        Some(text) if text.chars().count() > MAX_DESCRIPTION_CHARACTERS || !is_plain_text(&text) => {
            Err(InvalidAttribute::new(
                "description",
                format!(
                    "Description may have at most {MAX_DESCRIPTION_CHARACTERS} visible characters; it is {}",
                    shown(&text)
                ),
            ))
        }
        text => Ok(text),
    }
}

impl Record for Token {
    const KIND: &'static str = "token";
    const PART_OF: &'static [&'static str] = &["holder"];
    type Id = TokenId;
    type Indexes = TokenIndexes;

    fn id(&self) -> &TokenId {
        &self.id
    }

    references! {
        "holder": TeamId, cascade(|tokens, id| tokens.by().holder.get(&TokenHolder::Team(*id)));
        "holder": AgentPoolId, cascade(|tokens, id| tokens.by().holder.get(&TokenHolder::AgentPool(*id)));
    }
}

indexes! {
    pub struct TokenIndexes for Token {
        pub hash: SecretHash => |token| [token.hash];
        pub holder: TokenHolder => |token| [token.holder];
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn secret() -> Secret {
        Secret::from_random([3; 32])
    }

    fn moment(text: &str) -> Timestamp {
        text.parse().expect("a timestamp")
    }

    fn token() -> Token {
        Token {
            id: TokenId::from_random([1; 16]),
            hash: HashKey::new([0; 32]).hash("token", "x"),
            holder: TokenHolder::User(UserId::from_random([2; 16])),
            description: None,
            created_at: moment("2026-01-01T00:00:00Z"),
            created_by: Author::Taco,
            expires_at: Some(moment("2026-02-01T00:00:00Z")),
            last_used_at: None,
            from_organization: false,
        }
    }

    #[test]
    fn a_token_names_its_ledger() {
        let organization = OrganizationId::from_random([7; 16]);
        for kind in TokenKind::ALL {
            let token = match kind {
                TokenKind::User => TokenText::of_user(secret()),
                _ => TokenText::of_organization(kind, organization, secret()),
            };
            let read: TokenText = token.reveal().parse().expect("a token");
            assert_eq!(read, token);
            assert_eq!(read.organization, (kind != TokenKind::User).then_some(organization));
        }
    }

    #[test]
    fn what_is_no_token_is_refused() {
        let secret = secret();
        let organization = OrganizationId::from_random([7; 16]);
        for text in [
            String::new(),
            "bad".to_owned(),
            format!("taco_x_{}", secret.reveal()),
            format!("taco_o_{}", secret.reveal()),
            format!("taco_u_{}_{}", organization.characters(), secret.reveal()),
            format!("taco_o_{}_{}", "x".repeat(15), secret.reveal()),
            format!("taco_u_{}x", secret.reveal()),
            format!("taco_u_{}_", secret.reveal()),
            format!("Bearer taco_u_{}", secret.reveal()),
        ] {
            assert_eq!(text.parse::<TokenText>(), Err(InvalidToken), "{text:?}");
        }
    }

    #[test]
    fn an_expired_token_says_when() {
        let token = token();
        assert_eq!(token.check(moment("2026-01-31T23:59:59Z")), Ok(()));
        let expired = token.check(moment("2026-02-01T00:00:00Z")).expect_err("expired");
        assert_eq!(expired.to_string(), "the token expired at 2026-02-01T00:00:00Z");
        assert_eq!(Token { expires_at: None, ..token }.check(moment("2999-01-01T00:00:00Z")), Ok(()));
    }

    #[test]
    fn a_use_is_remembered_once_an_hour() {
        let first = token().use_to_remember(moment("2026-01-02T10:00:00Z")).expect("the first use");
        assert_eq!(first.use_to_remember(moment("2026-01-02T10:59:59Z")), None);
        assert!(first.use_to_remember(moment("2026-01-02T11:00:00Z")).is_some());
    }

    #[test]
    fn a_description_is_short_and_visible() {
        assert_eq!(token_description(Some(String::new())), Ok(None));
        assert_eq!(token_description(Some("ci".into())), Ok(Some("ci".into())));
        assert!(token_description(Some("x".repeat(513))).is_err());
        assert!(token_description(Some("a\u{202e}".into())).is_err());
    }
}
