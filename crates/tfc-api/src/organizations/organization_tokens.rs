//! An organization's own token, and the one that reads its audit trail: `?token=audit-trails`.

use taco_control_plane::OrganizationTokenKind;
use taco_domain::attribute::shown;

use crate::authentication_tokens::new_token;
use crate::error::ApiError;
use crate::query::Query;
use crate::request::{Answer, ApiRequest, no_content};

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
pub(crate) async fn read(request: ApiRequest) -> Answer {
    let (organization, kind) = (request.organization()?, kind(&request.query)?);
    request.one(&request.control_plane.organization_token(&request.caller, organization, kind).await?).await
}

/// `POST /api/v2/organizations/{organization}/authentication-token`
pub(crate) async fn create(request: ApiRequest) -> Answer {
    let new = new_token(request.body().await?)?;
    let (organization, kind) = (request.organization()?, kind(&request.query)?);
    request.created(&request.control_plane.create_organization_token(&request.caller, organization, kind, new).await?)
}

/// `DELETE /api/v2/organizations/{organization}/authentication-token`
pub(crate) async fn delete(request: ApiRequest) -> Answer {
    let (organization, kind) = (request.organization()?, kind(&request.query)?);
    request.control_plane.delete_organization_token(&request.caller, organization, kind).await?;
    no_content()
}
