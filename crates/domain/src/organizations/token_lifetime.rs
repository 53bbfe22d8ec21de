//! Maximum lifetimes of an organization's tokens.

use jiff::{SignedDuration, Timestamp, ToSpan, tz::TimeZone};
use serde::{Deserialize, Serialize};

use crate::attribute::{InvalidAttribute, shown};
use crate::organization::Organization;
use crate::token::TokenKind;

/// Default lifetime of a token.
const DEFAULT_YEARS: i32 = 2;
const HOUR: i64 = 60 * 60 * 1000;
/// Two years of 365.2425 days, as Terraform Cloud counts them.
const TWO_YEARS: i64 = 63_113_904_000;

/// The longest life of one kind of tokens.
#[derive(Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Debug)]
pub struct TokenLifetime {
    pub milliseconds: i64,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
}

/// Changes to one kind in a request, spelled as on the wire.
#[derive(Clone, Deserialize, Debug)]
#[serde(rename_all = "kebab-case")]
pub struct TokenLifetimePatch {
    pub token_type: String,
    pub max_ttl_ms: i64,
}

/// Agents' tokens are not among them: agents run unattended, with no person there to give them a new one.
pub const LIMITED: [TokenKind; 4] = [TokenKind::Organization, TokenKind::Team, TokenKind::User, TokenKind::AuditTrail];

/// Name of a kind of tokens in Terraform Cloud.
pub fn word_of(kind: TokenKind) -> &'static str {
    match kind {
        TokenKind::User => "user",
        TokenKind::Team => "team",
        TokenKind::Organization => "organization",
        TokenKind::AuditTrail => "audit_trails",
        TokenKind::AgentPool => "agent_pool",
    }
}

impl Organization {
    /// The limit of one kind of tokens: what somebody set, or two years since the beginning.
    pub fn token_lifetime(&self, kind: TokenKind) -> TokenLifetime {
        let (created_at, updated_at) = (self.created_at, self.created_at);
        let default = TokenLifetime { milliseconds: TWO_YEARS, created_at, updated_at };
        self.token_lifetimes.get(word_of(kind)).copied().unwrap_or(default)
    }

    /// Maximum lifetime of such tokens; `None` if unlimited.
    pub fn longest_life(&self, kind: TokenKind) -> Option<SignedDuration> {
        let limited = self.max_ttl_enabled && LIMITED.contains(&kind);
        limited.then(|| SignedDuration::from_millis(self.token_lifetime(kind).milliseconds))
    }

    /// The organization after some limits were set.
    pub fn with_token_lifetimes(
        &self,
        patches: &[TokenLifetimePatch],
        now: Timestamp,
    ) -> Result<Self, InvalidAttribute> {
        let invalid = |detail: String| InvalidAttribute::new("token-ttl-policies", detail);
        if patches.is_empty() {
            return Err(invalid("Token TTL policies must name at least one kind of tokens".to_owned()));
        }
        let mut changed = self.clone();
        for TokenLifetimePatch { token_type, max_ttl_ms } in patches {
            let Some(kind) = LIMITED.into_iter().find(|kind| word_of(*kind) == token_type) else {
                let known = LIMITED.map(word_of).join(", ");
                return Err(invalid(format!("Token type must be one of {known}; it is {}", shown(token_type))));
            };
            if !(HOUR..=TWO_YEARS).contains(max_ttl_ms) {
                let range = format!("from {HOUR} (an hour) to {TWO_YEARS} (two years)");
                return Err(invalid(format!("Max TTL ms must be {range}; for {token_type} it is {max_ttl_ms}")));
            }
            let created_at = self.token_lifetimes.get(word_of(kind)).map_or(now, |before| before.created_at);
            let lifetime = TokenLifetime { milliseconds: *max_ttl_ms, created_at, updated_at: now };
            changed.token_lifetimes.insert(word_of(kind).to_owned(), lifetime);
        }
        Ok(changed)
    }
}

/// Expiry of a token created at `now`: as requested, or after two years, and never after the `longest` lifetime.
pub fn token_expiry(
    asked: Option<Timestamp>,
    longest: Option<SignedDuration>,
    now: Timestamp,
) -> Result<Timestamp, InvalidAttribute> {
    let latest = longest.map_or(Timestamp::MAX, |longest| now.checked_add(longest).unwrap_or(Timestamp::MAX));
    match asked {
        Some(end) if end <= now => {
            let detail = format!("Expired at must be in the future; it is {end}, and now is {now}");
            Err(InvalidAttribute::new("expired-at", detail))
        }
        Some(end) if end > latest => {
            let detail = format!("Expired at may be {latest} at the latest: the organization limits it; it is {end}");
            Err(InvalidAttribute::new("expired-at", detail))
        }
        Some(end) => Ok(end),
        None => {
            let end = now.to_zoned(TimeZone::UTC).checked_add(DEFAULT_YEARS.years());
            Ok(end.map_or(Timestamp::MAX, |end| end.timestamp()).min(latest))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::OrganizationId;

    fn moment(text: &str) -> Timestamp {
        text.parse().expect("a time")
    }

    fn organization() -> Organization {
        let email = "owner@acme.test".parse().expect("an address");
        let made = Organization::new(OrganizationId::from_random([1; 16]), email, moment("2026-01-01T00:00:00Z"));
        Organization { max_ttl_enabled: true, ..made }
    }

    fn patch(token_type: &str, max_ttl_ms: i64) -> TokenLifetimePatch {
        TokenLifetimePatch { token_type: token_type.to_owned(), max_ttl_ms }
    }

    #[test]
    fn a_token_expires_when_asked_or_after_two_years() {
        let now = moment("2026-01-01T00:00:00Z");
        assert_eq!(token_expiry(None, None, now), Ok(moment("2028-01-01T00:00:00Z")));
        assert_eq!(token_expiry(Some(moment("2026-01-02T00:00:00Z")), None, now), Ok(moment("2026-01-02T00:00:00Z")));
        let refusal = token_expiry(Some(now), None, now).expect_err("in the past");
        assert!(refusal.detail.contains("future"), "{refusal}");
    }

    #[test]
    fn no_token_lives_longer_than_its_organization_lets_it() {
        let now = moment("2026-01-01T00:00:00Z");
        let day = Some(SignedDuration::from_hours(24));
        assert_eq!(token_expiry(None, day, now), Ok(moment("2026-01-02T00:00:00Z")));
        assert_eq!(token_expiry(Some(moment("2026-01-02T00:00:00Z")), day, now), Ok(moment("2026-01-02T00:00:00Z")));
        let refusal = token_expiry(Some(moment("2026-01-02T00:00:01Z")), day, now).expect_err("too late");
        assert!(refusal.detail.contains("2026-01-02T00:00:00Z at the latest"), "{refusal}");
    }

    #[test]
    fn limits_hold_while_they_are_switched_on() {
        let now = moment("2026-02-01T00:00:00Z");
        let limited = organization().with_token_lifetimes(&[patch("team", 24 * HOUR)], now).expect("limits");
        assert_eq!(limited.longest_life(TokenKind::Team), Some(SignedDuration::from_hours(24)));
        assert_eq!(limited.longest_life(TokenKind::User), Some(SignedDuration::from_millis(TWO_YEARS)));
        assert_eq!(limited.longest_life(TokenKind::AgentPool), None);
        assert_eq!(limited.token_lifetime(TokenKind::Team).created_at, now);
        let without = Organization { max_ttl_enabled: false, ..limited };
        assert_eq!(without.longest_life(TokenKind::Team), None);
    }

    #[test]
    fn limits_that_make_no_sense_are_refused() {
        for (patches, part) in [
            (vec![], "at least one"),
            (vec![patch("robot", HOUR)], "organization, team, user, audit_trails"),
            (vec![patch("team", HOUR - 1)], "an hour"),
            (vec![patch("team", TWO_YEARS + 1)], "two years"),
        ] {
            let refusal = organization().with_token_lifetimes(&patches, Timestamp::UNIX_EPOCH).expect_err("refused");
            assert!(refusal.detail.contains(part), "{refusal}");
        }
    }
}
