//! How long an organization lets tokens live: what Terraform Cloud calls its token TTL policies.

use axum::extract::State;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use taco_control_plane::{Caller, ControlPlane, Listed, TokenLifetimeView};
use taco_domain::token_lifetime::{TokenLifetimePatch, word_of};

use crate::body::Body;
use crate::document::{Document, Resource};
use crate::error::ApiError;
use crate::path::InPath;
use crate::query::Query;

const KIND: &str = "organization-token-ttl-policies";

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

fn resource(view: &TokenLifetimeView) -> Resource {
    let attributes = Attributes {
        token_type: word_of(view.kind),
        max_ttl_ms: view.lifetime.milliseconds,
        created_at: view.lifetime.created_at,
        updated_at: view.lifetime.updated_at,
    };
    Resource::new(KIND, view.id, &attributes)
}

/// `GET /api/v2/organizations/{organization}/token-ttl-policies`
pub(crate) async fn list(
    State(control_plane): State<ControlPlane>,
    caller: Caller,
    InPath(organization): InPath<String>,
    query: Query,
) -> Result<Document, ApiError> {
    let views = control_plane.token_lifetimes(&caller, &organization).await?;
    Ok(Document::page(Listed::from_all(views.iter().map(resource), query.page()?)))
}

/// `PATCH /api/v2/organizations/{organization}/token-ttl-policies`
pub(crate) async fn update(
    State(control_plane): State<ControlPlane>,
    caller: Caller,
    InPath(organization): InPath<String>,
    body: Body,
) -> Result<Document, ApiError> {
    let Patches { token_ttl_policies } = body.resource::<Patches>(KIND)?.attributes;
    let views = control_plane.update_token_lifetimes(&caller, &organization, token_ttl_policies).await?;
    Ok(Document::many(views.iter().map(resource).collect()))
}
