//! SSH keys. Their values go in and never come out.

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use taco_control_plane::{Caller, ControlPlane, SshKeyPatch};
use taco_domain::id::SshKeyId;
use taco_domain::ssh_key::SshKey;

use crate::body::Body;
use crate::document::{Document, Resource};
use crate::error::ApiError;
use crate::path::InPath;
use crate::query::Query;

pub(crate) const KIND: &str = "ssh-keys";

#[derive(Serialize)]
struct Attributes<'a> {
    name: &'a str,
}

fn resource(key: &SshKey) -> Resource {
    Resource::new(KIND, key.id, &Attributes { name: key.name.as_str() })
        .link("self", format!("/api/v2/ssh-keys/{}", key.id))
}

/// `GET /api/v2/organizations/{organization}/ssh-keys`
pub(crate) async fn list(
    State(control_plane): State<ControlPlane>,
    caller: Caller,
    InPath(organization): InPath<String>,
    query: Query,
) -> Result<Document, ApiError> {
    let listed = control_plane.ssh_keys(&caller, &organization, query.page()?).await?;
    Ok(Document::page(listed.map(|key| resource(&key))))
}

/// `POST /api/v2/organizations/{organization}/ssh-keys`
pub(crate) async fn create(
    State(control_plane): State<ControlPlane>,
    caller: Caller,
    InPath(organization): InPath<String>,
    body: Body,
) -> Result<Response, ApiError> {
    let patch: SshKeyPatch = body.resource(KIND)?.attributes;
    let key = control_plane.create_ssh_key(&caller, &organization, patch).await?;
    Ok((StatusCode::CREATED, Document::one(resource(&key))).into_response())
}

/// `GET /api/v2/ssh-keys/{key}`
pub(crate) async fn read(
    State(control_plane): State<ControlPlane>,
    caller: Caller,
    InPath(key): InPath<SshKeyId>,
) -> Result<Document, ApiError> {
    Ok(Document::one(resource(&control_plane.ssh_key(&caller, key).await?)))
}

/// `PATCH /api/v2/ssh-keys/{key}`
pub(crate) async fn update(
    State(control_plane): State<ControlPlane>,
    caller: Caller,
    InPath(key): InPath<SshKeyId>,
    body: Body,
) -> Result<Document, ApiError> {
    let patch: SshKeyPatch = body.resource(KIND)?.attributes;
    Ok(Document::one(resource(&control_plane.update_ssh_key(&caller, key, patch).await?)))
}

/// `DELETE /api/v2/ssh-keys/{key}`
pub(crate) async fn delete(
    State(control_plane): State<ControlPlane>,
    caller: Caller,
    InPath(key): InPath<SshKeyId>,
) -> Result<StatusCode, ApiError> {
    control_plane.delete_ssh_key(&caller, key).await?;
    Ok(StatusCode::NO_CONTENT)
}
