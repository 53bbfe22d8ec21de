//! Token lifetimes: what Terraform Cloud calls an organization's token TTL policies.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use taco_control_plane::TokenLifetimeView;
use taco_domain::token_lifetime::{TokenLifetimePatch, word_of};

use crate::document::ResourceObject;
use crate::error::ApiError;
use crate::request::{Answer, ApiRequest};
use crate::resource::Resource;

#[derive(Serialize)]
#[serde(rename_all = "kebab-case")]
struct Attributes {
    token_type: &'static str,
    max_ttl_ms: i64,
    created_at: Timestamp,
    updated_at: Timestamp,
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
struct Patches {
    #[serde(default)]
    token_ttl_policies: Vec<TokenLifetimePatch>,
}

impl Resource for TokenLifetimeView {
    const KIND: &'static str = "organization-token-ttl-policies";

    fn object(&self, _: &ApiRequest) -> Result<ResourceObject, ApiError> {
        let attributes = Attributes {
            token_type: word_of(self.kind),
            max_ttl_ms: self.lifetime.milliseconds,
            created_at: self.lifetime.created_at,
            updated_at: self.lifetime.updated_at,
        };
        Ok(ResourceObject::new(Self::KIND, self.id, &attributes))
    }
}

/// `GET /api/v2/organizations/{organization}/token-ttl-policies`
pub(crate) async fn list(request: ApiRequest) -> Answer {
    request.page_of(request.control_plane.token_lifetimes(&request.caller, request.organization()?).await?).await
}

/// `PATCH /api/v2/organizations/{organization}/token-ttl-policies`
pub(crate) async fn update(request: ApiRequest) -> Answer {
    let Patches { token_ttl_policies } = request.attributes(TokenLifetimeView::KIND).await?;
    let organization = request.organization()?;
    let updated = request.control_plane.update_token_lifetimes(&request.caller, organization, token_ttl_policies);
    request.all(&updated.await?).await
}
