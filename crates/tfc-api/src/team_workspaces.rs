//! What a team may do in a workspace.

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use taco_control_plane::{Caller, ControlPlane};
use taco_domain::id::{TeamId, TeamWorkspaceId, WorkspaceId};
use taco_domain::team_access::{RunsRight, StateRight, TeamWorkspace, VariablesRight, WorkspaceRole};
use taco_domain::team_access_patch::{MocksRight, TeamWorkspacePatch};

use crate::body::Body;
use crate::document::{Document, Identifier, Resource};
use crate::error::ApiError;
use crate::path::InPath;
use crate::query::Query;
use crate::{teams, workspaces};

pub(crate) const KIND: &str = "team-workspaces";

/// The rights are told for fixed roles too: what they come to.
#[derive(Serialize)]
#[serde(rename_all = "kebab-case")]
struct Attributes {
    access: WorkspaceRole,
    runs: RunsRight,
    variables: VariablesRight,
    state_versions: StateRight,
    sentinel_mocks: MocksRight,
    workspace_locking: bool,
    run_tasks: bool,
    policy_overrides: bool,
}

fn resource(access: &TeamWorkspace) -> Resource {
    let rights = access.rights();
    let attributes = Attributes {
        access: access.access,
        runs: rights.runs,
        variables: rights.variables,
        state_versions: rights.state_versions,
        sentinel_mocks: rights.sentinel_mocks.into(),
        workspace_locking: rights.workspace_locking,
        run_tasks: rights.run_tasks,
        policy_overrides: rights.policy_overrides,
    };
    Resource::new(KIND, access.id, &attributes)
        .has_one("team", Identifier::new(teams::KIND, access.team))
        .has_one("workspace", Identifier::new(workspaces::KIND, access.workspace))
        .link("self", format!("/api/v2/team-workspaces/{}", access.id))
}

/// `GET /api/v2/team-workspaces?filter[workspace][id]=…`
pub(crate) async fn list(
    State(control_plane): State<ControlPlane>,
    caller: Caller,
    query: Query,
) -> Result<Document, ApiError> {
    let workspace: WorkspaceId = query.id("filter[workspace][id]")?;
    let listed = control_plane.team_workspaces(&caller, workspace, query.page()?).await?;
    Ok(Document::page(listed.map(|access| resource(&access))))
}

/// `POST /api/v2/team-workspaces`
pub(crate) async fn create(
    State(control_plane): State<ControlPlane>,
    caller: Caller,
    body: Body,
) -> Result<Response, ApiError> {
    let sent = body.resource::<TeamWorkspacePatch>(KIND)?;
    let (team, workspace): (TeamId, WorkspaceId) = (sent.required("team")?, sent.required("workspace")?);
    let access = control_plane.add_team_workspace(&caller, team, workspace, sent.attributes).await?;
    Ok((StatusCode::CREATED, Document::one(resource(&access))).into_response())
}

/// `GET /api/v2/team-workspaces/{access}`
pub(crate) async fn read(
    State(control_plane): State<ControlPlane>,
    caller: Caller,
    InPath(access): InPath<TeamWorkspaceId>,
) -> Result<Document, ApiError> {
    Ok(Document::one(resource(&control_plane.team_workspace(&caller, access).await?)))
}

/// `PATCH /api/v2/team-workspaces/{access}`
pub(crate) async fn update(
    State(control_plane): State<ControlPlane>,
    caller: Caller,
    InPath(access): InPath<TeamWorkspaceId>,
    body: Body,
) -> Result<Document, ApiError> {
    let patch: TeamWorkspacePatch = body.resource(KIND)?.attributes;
    Ok(Document::one(resource(&control_plane.update_team_workspace(&caller, access, patch).await?)))
}

/// `DELETE /api/v2/team-workspaces/{access}`
pub(crate) async fn delete(
    State(control_plane): State<ControlPlane>,
    caller: Caller,
    InPath(access): InPath<TeamWorkspaceId>,
) -> Result<StatusCode, ApiError> {
    control_plane.remove_team_workspace(&caller, access).await?;
    Ok(StatusCode::NO_CONTENT)
}
