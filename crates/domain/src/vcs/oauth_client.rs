//! OAuth clients: an organization's connections to forges. They are kept and shown; nothing asks a forge yet.

use std::collections::BTreeSet;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use taco_tables::{Record, indexes, references};
use taco_words::id_kinds;

use crate::attribute::{InvalidAttribute, nullable, shown};
use crate::id::{AgentPoolId, ProjectId};
use crate::name::check_label;
use crate::service_provider::ServiceProvider;

/// Maximum length of each text of a client.
const MAX_TEXT_BYTES: usize = 64 * 1024;
const MAX_ADDRESS_BYTES: usize = 2048;

id_kinds! {
    /// An organization's connection to a forge.
    OauthClientId = "oc";
}

/// An organization's connection to a forge.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, Debug)]
pub struct OauthClient {
    pub id: OauthClientId,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    pub service_provider: ServiceProvider,
    /// Where its API is.
    pub api_url: String,
    /// Where people find it.
    pub http_url: String,
    /// The consumer key, or the id under which the forge knows this organization.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rsa_public_key: Option<String>,
    /// What goes with the key, encrypted by the writer of the record.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sealed_secret: Option<String>,
    /// Every workspace of the organization may use it; otherwise those of its projects.
    pub organization_scoped: bool,
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub projects: BTreeSet<ProjectId>,
    /// The pool whose agents reach the forge.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent_pool: Option<AgentPoolId>,
    pub created_at: Timestamp,
}

impl OauthClient {
    /// Name under which its secret is encrypted.
    pub fn secret_name(id: OauthClientId) -> String {
        format!("{id} secret")
    }
}

impl Record for OauthClient {
    const KIND: &'static str = "oauth-client";
    const NOUN: &'static str = "OAuth client";
    type Id = OauthClientId;
    type Indexes = OauthClientIndexes;

    fn id(&self) -> &OauthClientId {
        &self.id
    }

    references! {
        "projects": ProjectId, unlink(|clients, id| clients.by().project.get(id), |client| client.projects.remove(id));
        "agent_pool": AgentPoolId, unlink(|clients, id| clients.by().agent_pool.get(id), |client| {
            client.agent_pool = None;
        });
    }

    fn sealed_mut(&mut self) -> Vec<(String, &mut String)> {
        let name = Self::secret_name(self.id);
        self.sealed_secret.as_mut().map(|secret| (name, secret)).into_iter().collect()
    }
}

indexes! {
    pub struct OauthClientIndexes for OauthClient {
        /// The order of lists.
        pub age: (Timestamp, OauthClientId) => |client| [(client.created_at, client.id)];
        pub project: ProjectId => |client| client.projects.clone();
        pub agent_pool: AgentPoolId => |client| client.agent_pool;
    }
}

/// The attributes of a request that makes or changes a connection, spelled as on the wire.
#[derive(Clone, Default, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
pub struct OauthClientPatch {
    #[serde(deserialize_with = "nullable")]
    pub name: Option<Option<String>>,
    pub service_provider: Option<String>,
    pub api_url: Option<String>,
    pub http_url: Option<String>,
    pub key: Option<String>,
    pub rsa_public_key: Option<String>,
    pub secret: Option<String>,
    /// For Azure DevOps Server, what is a secret elsewhere.
    pub private_key: Option<String>,
    /// Token that people made at the forge.
    pub oauth_token_string: Option<String>,
    pub organization_scoped: Option<bool>,
    /// On the wire this is a relationship.
    #[serde(skip)]
    pub projects: Option<BTreeSet<ProjectId>>,
    /// On the wire this is a relationship.
    #[serde(skip)]
    pub agent_pool: Option<Option<AgentPoolId>>,
}

impl OauthClientPatch {
    /// A new connection. Secrets, projects and the pool are the caller's to put.
    pub fn new_client(&self, id: OauthClientId, now: Timestamp) -> Result<OauthClient, InvalidAttribute> {
        let service_provider: ServiceProvider = self.service_provider.as_deref().unwrap_or_default().parse()?;
        if self.private_key.as_ref().is_some_and(|key| !key.is_empty())
            && service_provider != ServiceProvider::AdoServer
        {
            return Err(InvalidAttribute::new(
                "private-key",
                "Private key is only for Azure DevOps Server (ado_server)",
            ));
        }
        let client = OauthClient {
            id,
            name: None,
            service_provider,
            api_url: check_address("API URL", "api-url", self.api_url.as_deref())?,
            http_url: check_address("HTTP URL", "http-url", self.http_url.as_deref())?,
            key: None,
            rsa_public_key: None,
            sealed_secret: None,
            organization_scoped: true,
            projects: BTreeSet::new(),
            agent_pool: None,
            created_at: now,
        };
        self.apply(&client)
    }

    /// The connection after the request. What it is and where it is stay as they were made.
    pub fn apply(&self, client: &OauthClient) -> Result<OauthClient, InvalidAttribute> {
        let mut changed = client.clone();
        if let Some(name) = &self.name {
            let name = name.clone().filter(|name| !name.is_empty());
            name.as_deref().map_or(Ok(()), |name| check_label("Name", "name", name, 255))?;
            changed.name = name;
        }
        if let Some(key) = &self.key {
            if key.is_empty() && client.service_provider == ServiceProvider::BitbucketDataCenter && client.key.is_some()
            {
                let detail =
                    "The Consumer Key for Bitbucket Data Center must be present. Please add a value for `key`.";
                return Err(InvalidAttribute::new("key", detail));
            }
            changed.key = optional("Key", "key", key)?;
        }
        if let Some(key) = &self.rsa_public_key {
            changed.rsa_public_key = optional("RSA public key", "rsa-public-key", key)?;
        }
        if let Some(scoped) = self.organization_scoped {
            changed.organization_scoped = scoped;
        }
        Ok(changed)
    }

    /// The secret that the request brings.
    pub fn secret(&self) -> Result<Option<&str>, InvalidAttribute> {
        let sent = self.secret.as_deref().or(self.private_key.as_deref()).filter(|secret| !secret.is_empty());
        check_length("Secret", "secret", sent.unwrap_or_default()).map(|()| sent)
    }

    /// The token that the request brings.
    pub fn token(&self) -> Result<Option<&str>, InvalidAttribute> {
        let sent = self.oauth_token_string.as_deref().filter(|token| !token.is_empty());
        check_length("OAuth token", "oauth-token-string", sent.unwrap_or_default()).map(|()| sent)
    }
}

fn optional(title: &str, attribute: &'static str, text: &str) -> Result<Option<String>, InvalidAttribute> {
    check_length(title, attribute, text)?;
    Ok((!text.is_empty()).then(|| text.to_owned()))
}

fn check_length(title: &str, attribute: &'static str, text: &str) -> Result<(), InvalidAttribute> {
    if text.len() > MAX_TEXT_BYTES {
        let detail = format!("{title} is too long (maximum is {MAX_TEXT_BYTES} bytes)");
        return Err(InvalidAttribute::new(attribute, detail));
    }
    Ok(())
}

/// An address of a forge. It has no user or password, which would be shown to everyone who may see the connection.
fn check_address(title: &str, attribute: &'static str, text: Option<&str>) -> Result<String, InvalidAttribute> {
    let refuse = |detail: String| InvalidAttribute::new(attribute, detail);
    let text = text.filter(|text| !text.is_empty()).ok_or_else(|| refuse(format!("{title} can't be blank")))?;
    let rest = text.strip_prefix("https://").or_else(|| text.strip_prefix("http://")).unwrap_or_default();
    let host = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let is_plain = text.len() <= MAX_ADDRESS_BYTES && text.bytes().all(|byte| byte.is_ascii_graphic());
    if host.is_empty() || host.contains('@') || !is_plain {
        let detail = format!("{title} is an address such as https://git.example.com, and not {}", shown(text));
        return Err(refuse(detail));
    }
    Ok(text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn patch(json: &str) -> OauthClientPatch {
        serde_json::from_str(json).expect("attributes")
    }

    fn made(json: &str) -> Result<OauthClient, InvalidAttribute> {
        patch(json).new_client(OauthClientId::from_random([1; 16]), Timestamp::UNIX_EPOCH)
    }

    const DATA_CENTER: &str = r#"{"service-provider":"bitbucket_data_center","api-url":"https://b.test",
        "http-url":"https://b.test","key":"one"}"#;

    #[test]
    fn a_connection_is_as_it_was_asked_for() {
        let client = made(
            r#"{"service-provider":"github","api-url":"https://api.github.com",
            "http-url":"https://github.com","name":null,"key":""}"#,
        )
        .expect("legal");
        assert_eq!((client.name, client.key, client.organization_scoped), (None, None, true));
        assert_eq!(client.service_provider.display_name(), "GitHub");
    }

    #[test]
    fn refusals_name_the_attribute() {
        for (json, attribute) in [
            (r#"{"api-url":"https://a.test","http-url":"https://a.test"}"#, "service-provider"),
            (r#"{"service-provider":"github","http-url":"https://a.test"}"#, "api-url"),
            (r#"{"service-provider":"github","api-url":"https://a.test"}"#, "http-url"),
            (r#"{"service-provider":"github","api-url":"ftp://a.test","http-url":"https://a.test"}"#, "api-url"),
            (
                r#"{"service-provider":"github","api-url":"https://me:pw@a.test","http-url":"https://a.test"}"#,
                "api-url",
            ),
            (
                r#"{"service-provider":"github","api-url":"https://a.test","http-url":"https://a.test","private-key":"x"}"#,
                "private-key",
            ),
        ] {
            assert_eq!(made(json).expect_err(json).attribute, attribute, "{json}");
        }
    }

    #[test]
    fn a_consumer_key_can_be_changed_and_not_taken_away() {
        let client = made(DATA_CENTER).expect("legal");
        let changed = patch(r#"{"key":"two"}"#).apply(&client).expect("legal");
        assert_eq!(changed.key.as_deref(), Some("two"));
        let refused = patch(r#"{"key":""}"#).apply(&client).expect_err("it needs one");
        assert!(refused.detail.contains("must be present"), "{}", refused.detail);
        assert_eq!(patch("{}").apply(&client), Ok(client));
    }
}
