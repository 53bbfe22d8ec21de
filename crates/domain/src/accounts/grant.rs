//! `terraform login`: a person's consent, as a code that the client exchanges for a token once.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use taco_tables::{Record, indexes};
pub use taco_words::terraform_files::{LOGIN_CLIENT as CLIENT, LOGIN_PORTS as PORTS};

use crate::id::{GrantId, TokenId, UserId};
use crate::secret::SecretHash;

/// Lifetime of a code: how long it can be exchanged.
pub const LIFETIME: SignedDuration = SignedDuration::from_secs(60);

/// A consent given to a client. The code's text is not stored, only its hash.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, Debug)]
pub struct Grant {
    pub id: GrantId,
    pub hash: SecretHash,
    pub user: UserId,
    pub client: String,
    pub redirect_uri: String,
    /// PKCE with S256: the base64url of the SHA-256 of what only the client knows.
    pub code_challenge: String,
    pub created_at: Timestamp,
    pub expires_at: Timestamp,
    /// Expiry of the token that the person chose; without it, the default lifetime.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token_expires_at: Option<Timestamp>,
    /// The token that was given for the code. A second exchange revokes it: someone has stolen the code.
    pub token: Option<TokenId>,
}

/// Reason for not exchanging a code. Clients get `invalid_grant` for all of them; the log gets the reason.
#[derive(Clone, Copy, PartialEq, Eq, thiserror::Error, Debug)]
pub enum GrantRefusal {
    #[error("the code was exchanged before, so the token that it gave is revoked")]
    Used(TokenId),
    #[error("the code has expired")]
    Expired,
    #[error("the code was given to another client")]
    OtherClient,
    #[error("the code was given for another redirect address")]
    OtherRedirect,
    #[error("the code verifier does not match the challenge")]
    WrongVerifier,
}

impl Grant {
    /// Checks whether the code may be exchanged now by a client that presents these values.
    pub fn check(&self, client: &str, redirect_uri: &str, verifier: &str, now: Timestamp) -> Result<(), GrantRefusal> {
        if let Some(token) = self.token {
            return Err(GrantRefusal::Used(token));
        }
        if self.expires_at <= now {
            return Err(GrantRefusal::Expired);
        }
        if self.client != client {
            return Err(GrantRefusal::OtherClient);
        }
        if self.redirect_uri != redirect_uri {
            return Err(GrantRefusal::OtherRedirect);
        }
        // Both sides are hashes of a secret, so the time of this comparison tells nothing worth knowing.
        if challenge_of(verifier) != self.code_challenge {
            return Err(GrantRefusal::WrongVerifier);
        }
        Ok(())
    }
}

/// Checks the redirect URI and the code challenge of an authorization request.
pub fn check_authorization(redirect_uri: &str, code_challenge: &str) -> Result<(), AuthorizationRefusal> {
    // Exactly what the CLIs send, so that no other page on the machine gets the code.
    let port = redirect_uri.strip_prefix("http://localhost:").and_then(|rest| rest.strip_suffix("/login"));
    let port = port.filter(|port| port.bytes().all(|byte| byte.is_ascii_digit()));
    if !port.and_then(|port| port.parse().ok()).is_some_and(|port: u16| PORTS.contains(&port)) {
        return Err(AuthorizationRefusal::Redirect);
    }
    if URL_SAFE_NO_PAD.decode(code_challenge).is_ok_and(|hash| hash.len() == 32) {
        Ok(())
    } else {
        Err(AuthorizationRefusal::Challenge)
    }
}

/// Reason for refusing to ask for consent at all. After [`Self::Redirect`] the browser must not be redirected.
#[derive(Clone, Copy, PartialEq, Eq, thiserror::Error, Debug)]
pub enum AuthorizationRefusal {
    #[error("the redirect address must be http://localhost:PORT/login with a port that this site allows")]
    Redirect,
    #[error("the code challenge must be the base64url of a SHA-256 hash (method S256)")]
    Challenge,
}

/// The S256 challenge that belongs to a verifier.
pub fn challenge_of(verifier: &str) -> String {
    URL_SAFE_NO_PAD.encode(Sha256::digest(verifier))
}

impl Record for Grant {
    const KIND: &'static str = "grant";
    type Id = GrantId;
    type Indexes = GrantIndexes;

    fn id(&self) -> &GrantId {
        &self.id
    }
}

indexes! {
    pub struct GrantIndexes for Grant {
        pub hash: SecretHash => |grant| [grant.hash];
        /// Expiry, for the cleanup of old ones.
        pub expires_at: Timestamp => |grant| [grant.expires_at];
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::secret::HashKey;

    #[test]
    fn the_challenge_is_the_one_of_the_standard() {
        // The example of RFC 7636, appendix B.
        let challenge = challenge_of("dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk");
        assert_eq!(challenge, "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM");
    }

    #[test]
    fn only_the_cli_on_this_machine_gets_a_code() {
        let challenge = challenge_of("verifier");
        let ask = check_authorization;
        assert_eq!(ask("http://localhost:10000/login", &challenge), Ok(()));
        assert_eq!(ask("http://localhost:10009/login", &challenge), Ok(()));
        for redirect in [
            "",
            "http://localhost:9999/login",
            "http://localhost:10010/login",
            "https://localhost:10000/login",
            "http://localhost:10000/login/",
            "http://localhost:10000/login?x",
            "http://localhost:10000@evil.test:10000/login",
            "http://127.0.0.1:10000/login",
            "http://evil.test:10000/login",
            "http://localhost:+10000/login",
        ] {
            assert_eq!(ask(redirect, &challenge), Err(AuthorizationRefusal::Redirect), "{redirect}");
        }
        for challenge in ["", "verifier", "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM="] {
            let result = ask("http://localhost:10000/login", challenge);
            assert_eq!(result, Err(AuthorizationRefusal::Challenge), "{challenge}");
        }
    }

    #[test]
    fn a_code_is_exchanged_once_by_the_one_who_asked_for_it() {
        let moment = |text: &str| -> Timestamp { text.parse().expect("a timestamp") };
        let grant = Grant {
            id: GrantId::from_random([1; 16]),
            hash: HashKey::new([0; 32]).hash("code", "x"),
            user: UserId::from_random([2; 16]),
            client: "terraform-cli".into(),
            redirect_uri: "http://localhost:10000/login".into(),
            code_challenge: challenge_of("verifier"),
            created_at: moment("2026-01-01T00:00:00Z"),
            expires_at: moment("2026-01-01T00:01:00Z"),
            token_expires_at: None,
            token: None,
        };
        let token = TokenId::from_random([3; 16]);
        let used = Grant { token: Some(token), ..grant.clone() };
        let in_time = "2026-01-01T00:00:59Z";
        let here = "http://localhost:10000/login";
        for (grant, client, redirect, verifier, now, expected) in [
            (&grant, "terraform-cli", here, "verifier", in_time, Ok(())),
            (&grant, "other", here, "verifier", in_time, Err(GrantRefusal::OtherClient)),
            (
                &grant,
                "terraform-cli",
                "http://localhost:1/login",
                "verifier",
                in_time,
                Err(GrantRefusal::OtherRedirect),
            ),
            (&grant, "terraform-cli", here, "guess", in_time, Err(GrantRefusal::WrongVerifier)),
            (&grant, "terraform-cli", here, "verifier", "2026-01-01T00:01:00Z", Err(GrantRefusal::Expired)),
            (&used, "terraform-cli", here, "verifier", in_time, Err(GrantRefusal::Used(token))),
        ] {
            assert_eq!(grant.check(client, redirect, verifier, moment(now)), expected);
        }
    }
}
