//! The tags that an organization's workspaces carry.

use axum::extract::State;
use axum::http::StatusCode;
use taco_control_plane::{Caller, ControlPlane, TagFilter};
use taco_domain::id::TagId;

use crate::body::{Body, NoAttributes};
use crate::document::Document;
use crate::error::ApiError;
use crate::path::InPath;
use crate::query::Query;
use crate::{tags, workspaces};

/// `GET /api/v2/organizations/{organization}/tags`
pub(crate) async fn list(
    State(control_plane): State<ControlPlane>,
    caller: Caller,
    InPath(organization): InPath<String>,
    query: Query,
) -> Result<Document, ApiError> {
    let filter = TagFilter {
        query: query.get("q").map(str::to_owned),
        not_on: query.get("filter[exclude][taggable][id]").and_then(|id| id.parse().ok()),
    };
    let (open, listed) = control_plane.organization_tags(&caller, &organization, &filter, query.page()?).await?;
    Ok(Document::page(listed.map(|tag| tags::resource(&open, &tag))))
}

/// `DELETE /api/v2/organizations/{organization}/tags`
pub(crate) async fn delete(
    State(control_plane): State<ControlPlane>,
    caller: Caller,
    InPath(organization): InPath<String>,
    body: Body,
) -> Result<StatusCode, ApiError> {
    let sent = body.resources::<NoAttributes>(tags::KIND)?;
    let ids = sent.iter().map(|tag| tag.id()).collect::<Result<Vec<_>, _>>()?;
    control_plane.delete_organization_tags(&caller, &organization, ids).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// `POST /api/v2/tags/{tag}/relationships/workspaces`
pub(crate) async fn add_workspaces(
    State(control_plane): State<ControlPlane>,
    caller: Caller,
    InPath(tag): InPath<TagId>,
    body: Body,
) -> Result<StatusCode, ApiError> {
    let sent = body.resources::<NoAttributes>(workspaces::KIND)?;
    let ids = sent.iter().map(|workspace| workspace.id()).collect::<Result<Vec<_>, _>>()?;
    control_plane.tag_workspaces(&caller, tag, ids).await?;
    Ok(StatusCode::NO_CONTENT)
}
