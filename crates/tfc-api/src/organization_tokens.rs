//! An organization's own token, and the one that reads its audit trail: `?token=audit-trails`.

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use taco_control_plane::{Caller, ControlPlane, OrganizationTokenKind};
use taco_domain::attribute::shown;

use crate::authentication_tokens::{issued, resource, wanted};
use crate::body::Body;
use crate::document::Document;
use crate::error::ApiError;
use crate::path::InPath;
use crate::query::Query;

fn kind(query: &Query) -> Result<OrganizationTokenKind, ApiError> {
    match query.get("token") {
        None | Some("organization") => Ok(OrganizationTokenKind::Organization),
        Some("audit-trails") => Ok(OrganizationTokenKind::AuditTrail),
        Some(other) => {
            let detail = format!("token must be organization or audit-trails; it is {}", shown(other));
            Err(ApiError::parameter("token", detail))
        }
    }
}

/// `GET /api/v2/organizations/{organization}/authentication-token`
pub(crate) async fn read(
    State(control_plane): State<ControlPlane>,
    caller: Caller,
    InPath(organization): InPath<String>,
    query: Query,
) -> Result<Document, ApiError> {
    let token = control_plane.organization_token(&caller, &organization, kind(&query)?).await?;
    Ok(Document::one(resource(&token, None)))
}

/// `POST /api/v2/organizations/{organization}/authentication-token`
pub(crate) async fn create(
    State(control_plane): State<ControlPlane>,
    caller: Caller,
    InPath(organization): InPath<String>,
    query: Query,
    body: Body,
) -> Result<Response, ApiError> {
    let new = wanted(body)?;
    Ok(issued(&control_plane.create_organization_token(&caller, &organization, kind(&query)?, new).await?))
}

/// `DELETE /api/v2/organizations/{organization}/authentication-token`
pub(crate) async fn delete(
    State(control_plane): State<ControlPlane>,
    caller: Caller,
    InPath(organization): InPath<String>,
    query: Query,
) -> Result<StatusCode, ApiError> {
    control_plane.delete_organization_token(&caller, &organization, kind(&query)?).await?;
    Ok(StatusCode::NO_CONTENT)
}
