//! What a team may do in a project and in all its workspaces.

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use taco_control_plane::{Caller, ControlPlane};
use taco_domain::id::{ProjectId, TeamId, TeamProjectId};
use taco_domain::team_access::{
    ProjectRole, RunsRight, SettingsRight, StateRight, TeamProject, TeamsRight, VariablesRight,
};
use taco_domain::team_access_patch::{MocksRight, TeamProjectPatch};

use crate::body::Body;
use crate::document::{Document, Identifier, Resource};
use crate::error::ApiError;
use crate::path::InPath;
use crate::query::Query;
use crate::{projects, teams};

pub(crate) const KIND: &str = "team-projects";

#[derive(Serialize)]
#[serde(rename_all = "kebab-case")]
struct Attributes {
    access: ProjectRole,
    project_access: ProjectAccess,
    workspace_access: WorkspaceAccess,
}

#[derive(Serialize)]
#[serde(rename_all = "kebab-case")]
struct ProjectAccess {
    settings: SettingsRight,
    teams: TeamsRight,
    variable_sets: VariablesRight,
}

#[derive(Serialize)]
#[serde(rename_all = "kebab-case")]
struct WorkspaceAccess {
    runs: RunsRight,
    variables: VariablesRight,
    state_versions: StateRight,
    sentinel_mocks: MocksRight,
    create: bool,
    locking: bool,
    #[serde(rename = "move")]
    move_workspaces: bool,
    delete: bool,
    run_tasks: bool,
    policy_overrides: bool,
}

fn resource(access: &TeamProject) -> Resource {
    let (project, workspaces) = (access.rights(), access.workspace_rights());
    let attributes = Attributes {
        access: access.access,
        project_access: ProjectAccess {
            settings: project.settings,
            teams: project.teams,
            variable_sets: project.variable_sets,
        },
        workspace_access: WorkspaceAccess {
            runs: workspaces.runs,
            variables: workspaces.variables,
            state_versions: workspaces.state_versions,
            sentinel_mocks: workspaces.sentinel_mocks.into(),
            create: project.create_workspaces,
            locking: workspaces.workspace_locking,
            move_workspaces: project.move_workspaces,
            delete: project.delete_workspaces,
            run_tasks: workspaces.run_tasks,
            policy_overrides: workspaces.policy_overrides,
        },
    };
    Resource::new(KIND, access.id, &attributes)
        .has_one("team", Identifier::new(teams::KIND, access.team))
        .has_one("project", Identifier::new(projects::KIND, access.project))
        .link("self", format!("/api/v2/team-projects/{}", access.id))
}

/// `GET /api/v2/team-projects?filter[project][id]=…`
pub(crate) async fn list(
    State(control_plane): State<ControlPlane>,
    caller: Caller,
    query: Query,
) -> Result<Document, ApiError> {
    let project: ProjectId = query.id("filter[project][id]")?;
    let listed = control_plane.team_projects(&caller, project, query.page()?).await?;
    Ok(Document::page(listed.map(|access| resource(&access))))
}

/// `POST /api/v2/team-projects`
pub(crate) async fn create(
    State(control_plane): State<ControlPlane>,
    caller: Caller,
    body: Body,
) -> Result<Response, ApiError> {
    let sent = body.resource::<TeamProjectPatch>(KIND)?;
    let (team, project): (TeamId, ProjectId) = (sent.required("team")?, sent.required("project")?);
    let access = control_plane.add_team_project(&caller, team, project, sent.attributes).await?;
    Ok((StatusCode::CREATED, Document::one(resource(&access))).into_response())
}

/// `GET /api/v2/team-projects/{access}`
pub(crate) async fn read(
    State(control_plane): State<ControlPlane>,
    caller: Caller,
    InPath(access): InPath<TeamProjectId>,
) -> Result<Document, ApiError> {
    Ok(Document::one(resource(&control_plane.team_project(&caller, access).await?)))
}

/// `PATCH /api/v2/team-projects/{access}`
pub(crate) async fn update(
    State(control_plane): State<ControlPlane>,
    caller: Caller,
    InPath(access): InPath<TeamProjectId>,
    body: Body,
) -> Result<Document, ApiError> {
    let patch: TeamProjectPatch = body.resource(KIND)?.attributes;
    Ok(Document::one(resource(&control_plane.update_team_project(&caller, access, patch).await?)))
}

/// `DELETE /api/v2/team-projects/{access}`
pub(crate) async fn delete(
    State(control_plane): State<ControlPlane>,
    caller: Caller,
    InPath(access): InPath<TeamProjectId>,
) -> Result<StatusCode, ApiError> {
    control_plane.remove_team_project(&caller, access).await?;
    Ok(StatusCode::NO_CONTENT)
}
