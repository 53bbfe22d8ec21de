//! OAuth tokens: with what forges are asked. A connection makes its own; here they are shown, get an SSH key, and go.

use serde::Deserialize;
use taco_boxed::boxed;
use taco_domain::oauth_client::{OauthClient, OauthClientId};
use taco_domain::oauth_token::{OauthToken, OauthTokenId, check_ssh_key};
use taco_domain::permission::Action;
use taco_tables::Record as _;

use crate::caller::Caller;
use crate::control_plane::ControlPlane;
use crate::error::Error;
use crate::page::{Listed, PageRequest};

/// The attributes of a request that changes a token, spelled as on the wire.
#[derive(Clone, Default, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
pub struct OauthTokenPatch {
    /// Private key in PEM; an empty text takes the one away that is there.
    pub ssh_key: Option<String>,
}

#[boxed]
impl ControlPlane {
    /// The tokens of an organization, oldest first.
    pub async fn oauth_tokens(
        &self,
        caller: &Caller,
        organization: &str,
        page: PageRequest,
    ) -> Result<Listed<OauthToken>, Error> {
        let org = self.organization_named(caller, organization).await?;
        caller.require(Action::ReadDirectory, org.resource(), "organization")?;
        Ok(Listed::from_all(org.state.oauth_tokens.by().age.iter(), page).cloned())
    }

    /// The tokens of one connection.
    pub async fn oauth_tokens_of(
        &self,
        caller: &Caller,
        client: OauthClientId,
        page: PageRequest,
    ) -> Result<Listed<OauthToken>, Error> {
        let org = self.authorized_organization(caller, client.organization_prefix(), OauthClient::NOUN).await?;
        caller.require(Action::ReadDirectory, org.resource(), OauthClient::NOUN)?;
        org.get::<OauthClient>(&client)?;
        Ok(Listed::from_all(org.state.oauth_tokens.by().client.get(&client), page).cloned())
    }

    pub async fn oauth_token(&self, caller: &Caller, id: OauthTokenId) -> Result<OauthToken, Error> {
        let org = self.authorized_organization(caller, id.organization_prefix(), OauthToken::NOUN).await?;
        caller.require(Action::ReadDirectory, org.resource(), OauthToken::NOUN)?;
        org.get(&id).cloned()
    }

    /// Changes the SSH key of a token.
    pub async fn update_oauth_token(
        &self,
        caller: &Caller,
        id: OauthTokenId,
        patch: OauthTokenPatch,
    ) -> Result<OauthToken, Error> {
        let mut org = self.authorized_organization(caller, id.organization_prefix(), OauthToken::NOUN).await?;
        let sealed_ssh_key = match patch.ssh_key.as_deref() {
            None => None,
            Some("") => Some(None),
            Some(key) => {
                check_ssh_key(key)?;
                Some(Some(self.seal(&OauthToken::ssh_key_name(id), key)))
            }
        };
        org.change(caller, "oauth-token.update", self.now(), move |tx| {
            tx.require::<OauthToken>(Action::ManageVcsSettings, tx.organization())?;
            let mut token: OauthToken = tx.get(&id)?;
            if let Some(key) = &sealed_ssh_key {
                token.sealed_ssh_key.clone_from(key);
                tx.put(&token);
            }
            Ok(token)
        })
        .await
    }

    /// Deletes a token; its connection stays and cannot be used until it gets another.
    pub async fn delete_oauth_token(&self, caller: &Caller, id: OauthTokenId) -> Result<(), Error> {
        let mut org = self.authorized_organization(caller, id.organization_prefix(), OauthToken::NOUN).await?;
        org.change(caller, "oauth-token.delete", self.now(), move |tx| {
            tx.require::<OauthToken>(Action::ManageVcsSettings, tx.organization())?;
            tx.delete::<OauthToken>(&id)
        })
        .await
    }
}
