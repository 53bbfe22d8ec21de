//! OAuth tokens. Their texts and SSH keys go in and never come out.

use jiff::Timestamp;
use serde::Serialize;
use taco_domain::oauth_token::OauthToken;

use crate::document::{Identifier, ResourceObject};
use crate::error::ApiError;
use crate::oauth_clients;
use crate::request::{Answer, ApiRequest, no_content};
use crate::resource::Resource;

pub(crate) const KIND: &str = "oauth-tokens";

#[derive(Serialize)]
#[serde(rename_all = "kebab-case")]
struct Attributes {
    uid: Option<&'static str>,
    created_at: Timestamp,
    has_ssh_key: bool,
    service_provider_user: Option<&'static str>,
}

impl Resource for OauthToken {
    const KIND: &'static str = KIND;

    fn object(&self, _: &ApiRequest) -> Result<ResourceObject, ApiError> {
        let attributes = Attributes {
            uid: None,
            created_at: self.created_at,
            has_ssh_key: self.sealed_ssh_key.is_some(),
            service_provider_user: None,
        };
        Ok(ResourceObject::new(KIND, self.id, &attributes)
            .has_one("oauth-client", Identifier::new(oauth_clients::KIND, self.client))
            .link("self", format!("/api/v2/oauth-tokens/{}", self.id)))
    }
}

/// `GET /api/v2/organizations/{organization}/oauth-tokens`
pub(crate) async fn list(request: ApiRequest) -> Answer {
    let ApiRequest { control_plane, caller, query, .. } = &request;
    request.page(control_plane.oauth_tokens(caller, request.organization()?, query.page()?).await?).await
}

/// `GET /api/v2/oauth-clients/{oauth_client}/oauth-tokens`
pub(crate) async fn list_of_client(request: ApiRequest) -> Answer {
    let ApiRequest { control_plane, caller, query, .. } = &request;
    request.page(control_plane.oauth_tokens_of(caller, request.id("oauth_client")?, query.page()?).await?).await
}

/// `GET /api/v2/oauth-tokens/{oauth_token}`
pub(crate) async fn read(request: ApiRequest) -> Answer {
    request.one(&request.control_plane.oauth_token(&request.caller, request.id("oauth_token")?).await?).await
}

/// `PATCH /api/v2/oauth-tokens/{oauth_token}`
pub(crate) async fn update(request: ApiRequest) -> Answer {
    let (token, patch) = (request.id("oauth_token")?, request.attributes(KIND).await?);
    request.changed(&request.control_plane.update_oauth_token(&request.caller, token, patch).await?)
}

/// `DELETE /api/v2/oauth-tokens/{oauth_token}`
pub(crate) async fn delete(request: ApiRequest) -> Answer {
    request.control_plane.delete_oauth_token(&request.caller, request.id("oauth_token")?).await?;
    no_content()
}
