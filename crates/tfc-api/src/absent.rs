//! Lists of things that nobody can make here (yet): clients that look are told that there are none, which is true, and
//! not that they asked for something strange.

use axum::extract::State;
use taco_control_plane::{Caller, ControlPlane, Listed, WorkspaceRef};
use taco_domain::id::{RunId, WorkspaceId};

use crate::document::Document;
use crate::error::ApiError;
use crate::path::InPath;
use crate::query::Query;

fn nothing(query: &Query) -> Result<Document, ApiError> {
    Ok(Document::page(Listed::from_all([], query.page()?)))
}

/// `GET /api/v2/organizations/{organization}/…`: policies, run tasks, the registry, connections to version control.
pub(crate) async fn of_organization(
    State(control_plane): State<ControlPlane>,
    caller: Caller,
    InPath(organization): InPath<String>,
    query: Query,
) -> Result<Document, ApiError> {
    control_plane.organization(&caller, &organization).await?;
    nothing(&query)
}

/// `GET /api/v2/workspaces/{workspace}/…`: run tasks, notifications, assessments.
pub(crate) async fn of_workspace(
    State(control_plane): State<ControlPlane>,
    caller: Caller,
    InPath(workspace): InPath<WorkspaceId>,
    query: Query,
) -> Result<Document, ApiError> {
    control_plane.workspace_with_runs(&caller, &WorkspaceRef::Id(workspace)).await?;
    nothing(&query)
}

/// `GET /api/v2/runs/{run}/…`: task stages, policy checks.
pub(crate) async fn of_run(
    State(control_plane): State<ControlPlane>,
    caller: Caller,
    InPath(run): InPath<RunId>,
    query: Query,
) -> Result<Document, ApiError> {
    control_plane.run(&caller, run).await?;
    nothing(&query)
}
