//! OAuth tokens: with what taco asks a forge. An OAuth client has none or one of them.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use taco_tables::{Record, indexes, references};
use taco_words::id_kinds;

use crate::attribute::InvalidAttribute;
use crate::oauth_client::OauthClientId;

id_kinds! {
    /// A token with which a forge is asked.
    OauthTokenId = "ot";
}

const MAX_SSH_KEY_BYTES: usize = 64 * 1024;

/// A token with which a forge is asked. The API never shows its text again.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, Debug)]
pub struct OauthToken {
    pub id: OauthTokenId,
    pub client: OauthClientId,
    /// The token's text, encrypted by the writer of the record.
    pub sealed_text: String,
    /// Private SSH key with which repositories with submodules are cloned, encrypted by the writer of the record.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sealed_ssh_key: Option<String>,
    pub created_at: Timestamp,
}

impl OauthToken {
    /// Name under which its SSH key is encrypted.
    pub fn ssh_key_name(id: OauthTokenId) -> String {
        format!("{id} ssh-key")
    }
}

impl Record for OauthToken {
    const KIND: &'static str = "oauth-token";
    const NOUN: &'static str = "OAuth token";
    const PART_OF: &'static [&'static str] = &["client"];
    type Id = OauthTokenId;
    type Indexes = OauthTokenIndexes;

    fn id(&self) -> &OauthTokenId {
        &self.id
    }

    references! {
        "client": OauthClientId, cascade(|tokens, id| tokens.by().client.get(id));
    }

    fn sealed_mut(&mut self) -> Vec<(String, &mut String)> {
        let text = (self.id.to_string(), &mut self.sealed_text);
        let key = self.sealed_ssh_key.as_mut().map(|key| (Self::ssh_key_name(self.id), key));
        std::iter::once(text).chain(key).collect()
    }
}

indexes! {
    pub struct OauthTokenIndexes for OauthToken {
        pub age: (Timestamp, OauthTokenId) => |token| [(token.created_at, token.id)];
        pub client: OauthClientId => |token| [token.client];
    }
}

/// Checks that a text has the form of a private key as OpenSSH and OpenSSL write it.
pub fn check_ssh_key(text: &str) -> Result<(), InvalidAttribute> {
    let refuse = |detail: String| Err(InvalidAttribute::new("ssh-key", detail));
    if text.len() > MAX_SSH_KEY_BYTES {
        return refuse(format!("Ssh key is too long (maximum is {MAX_SSH_KEY_BYTES} bytes)"));
    }
    let mut lines = text.trim().lines().map(str::trim);
    let kind = lines.next().and_then(|line| line.strip_prefix("-----BEGIN ")?.strip_suffix("-----"));
    let end = lines.next_back().and_then(|line| line.strip_prefix("-----END ")?.strip_suffix("-----"));
    let is_key = kind.is_some_and(|kind| kind.ends_with("PRIVATE KEY") && Some(kind) == end);
    if !is_key || lines.all(str::is_empty) {
        return refuse(
            "Ssh key is invalid: it is a private key in PEM, from its BEGIN line to its END line".to_owned(),
        );
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_private_key_has_a_beginning_an_end_and_something_between() {
        for (text, is_key) in [
            ("-----BEGIN RSA PRIVATE KEY-----\nMIIC\n-----END RSA PRIVATE KEY-----", true),
            ("\n-----BEGIN OPENSSH PRIVATE KEY-----\r\nb3Bl\r\n-----END OPENSSH PRIVATE KEY-----\r\n", true),
            ("-----BEGIN RSA PRIVATE KEY-----\n-----END RSA PRIVATE KEY-----", false),
            ("-----BEGIN RSA PRIVATE KEY-----\nMIIC\n-----END EC PRIVATE KEY-----", false),
            ("-----BEGIN PUBLIC KEY-----\nMIIC\n-----END PUBLIC KEY-----", false),
            ("-----BEGIN RSA PRIVATE KEY-----", false),
            ("random", false),
            ("", false),
        ] {
            assert_eq!(check_ssh_key(text).is_ok(), is_key, "{text}");
        }
    }
}
