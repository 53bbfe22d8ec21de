//! What a workspace's current state manages.

use axum::extract::State;
use taco_control_plane::{Caller, ControlPlane, WorkspaceRef};
use taco_domain::id::WorkspaceId;

use crate::document::{Document, Resource};
use crate::error::ApiError;
use crate::path::InPath;
use crate::query::Query;

/// `GET /api/v2/workspaces/{workspace}/resources`
pub(crate) async fn list(
    State(control_plane): State<ControlPlane>,
    caller: Caller,
    InPath(workspace): InPath<WorkspaceId>,
    query: Query,
) -> Result<Document, ApiError> {
    let listed = control_plane.workspace_resources(&caller, &WorkspaceRef::Id(workspace), query.page()?).await?;
    Ok(Document::page(listed.map(|view| Resource::new("resources", &view.id, &view))))
}
