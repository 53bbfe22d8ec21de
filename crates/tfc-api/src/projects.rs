//! Projects.

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use jiff::Timestamp;
use serde::Serialize;
use taco_control_plane::{Caller, ControlPlane, ProjectFilter, ProjectView};
use taco_domain::execution::{Execution, ExecutionMode};
use taco_domain::id::ProjectId;
use taco_domain::permission::Action;
use taco_domain::project::ProjectPatch;

use crate::body::Body;
use crate::document::{Document, Identifier, Resource};
use crate::error::ApiError;
use crate::path::InPath;
use crate::query::Query;
use crate::tag_bindings::{self, effective_bindings_of_project};
use crate::{organizations, tag_bindings::sent_bindings};

pub(crate) const KIND: &str = "projects";

#[derive(Serialize)]
#[serde(rename_all = "kebab-case")]
struct Attributes<'a> {
    name: &'a str,
    description: &'a str,
    created_at: Timestamp,
    default_execution_mode: ExecutionMode,
    auto_destroy_activity_duration: Option<&'a str>,
    is_unified: bool,
    workspace_count: usize,
    setting_overwrites: Overwrites,
    permissions: Permissions,
}

#[derive(Serialize)]
#[serde(rename_all = "kebab-case")]
struct Overwrites {
    default_execution_mode: bool,
    default_agent_pool: bool,
}

#[derive(Serialize)]
#[serde(rename_all = "kebab-case")]
struct Permissions {
    can_read: bool,
    can_update: bool,
    can_destroy: bool,
    can_create_workspace: bool,
    can_move_workspace: bool,
    can_manage_teams: bool,
}

pub(crate) fn resource(caller: &Caller, view: &ProjectView) -> Resource {
    let ProjectView { project, open } = view;
    let may = |action| caller.may(action, view.resource()).allowed;
    let execution: Execution = open.state.default_execution(&project.id);
    let overwrites = project.default_execution.is_some();
    let attributes = Attributes {
        name: project.name.as_str(),
        description: &project.description,
        created_at: project.created_at,
        default_execution_mode: execution.mode,
        auto_destroy_activity_duration: project.auto_destroy_activity_duration.as_deref(),
        is_unified: false,
        workspace_count: open.state.workspaces_in(project.id).count(),
        setting_overwrites: Overwrites { default_execution_mode: overwrites, default_agent_pool: overwrites },
        permissions: Permissions {
            can_read: may(Action::ReadProject),
            can_update: may(Action::UpdateProject),
            can_destroy: may(Action::DeleteProject),
            can_create_workspace: may(Action::CreateWorkspace),
            can_move_workspace: may(Action::MoveWorkspace),
            can_manage_teams: may(Action::ManageProjectTeams),
        },
    };
    let bindings = effective_bindings_of_project(project);
    Resource::new(KIND, project.id, &attributes)
        .has_one("organization", organizations::identifier(open.entry().name.as_str()))
        .has_optional("default-agent-pool", execution.agent_pool.map(|pool| Identifier::new("agent-pools", pool)))
        .has_many("effective-tag-bindings", bindings.iter().map(|binding| binding.identifier(tag_bindings::EFFECTIVE)))
        .related(format!("/api/v2/projects/{}/effective-tag-bindings", project.id))
        .link("self", format!("/api/v2/projects/{}", project.id))
}

fn read_patch(body: Body) -> Result<ProjectPatch, ApiError> {
    let sent = body.resource::<ProjectPatch>(KIND)?;
    let pool = sent.to_one("default-agent-pool")?;
    let tag_bindings = sent_bindings(&sent, "tag-bindings")?;
    let default_agent_pool_id = sent.attributes.default_agent_pool_id.or(pool);
    Ok(ProjectPatch { default_agent_pool_id, tag_bindings, ..sent.attributes })
}

/// `GET /api/v2/organizations/{organization}/projects`
pub(crate) async fn list(
    State(control_plane): State<ControlPlane>,
    caller: Caller,
    InPath(organization): InPath<String>,
    query: Query,
) -> Result<Document, ApiError> {
    let filter = ProjectFilter {
        names: query.list("filter[names]").into_iter().map(str::to_owned).collect(),
        query: query.get("q").map(str::to_owned),
        tagged: query.tagged(),
    };
    let listed = control_plane.projects(&caller, &organization, &filter, query.page()?).await?;
    let included: Vec<Resource> = listed.items.iter().flat_map(|view| included(view, &query)).collect();
    Ok(Document::page(listed.map(|view| resource(&caller, &view))).including(included))
}

fn included(view: &ProjectView, query: &Query) -> Vec<Resource> {
    if !query.includes("effective-tag-bindings") {
        return Vec::new();
    }
    let bindings = effective_bindings_of_project(&view.project);
    bindings.iter().map(|binding| binding.resource(tag_bindings::EFFECTIVE)).collect()
}

/// `POST /api/v2/organizations/{organization}/projects`
pub(crate) async fn create(
    State(control_plane): State<ControlPlane>,
    caller: Caller,
    InPath(organization): InPath<String>,
    body: Body,
) -> Result<Response, ApiError> {
    let view = control_plane.create_project(&caller, &organization, read_patch(body)?).await?;
    Ok((StatusCode::CREATED, Document::one(resource(&caller, &view))).into_response())
}

/// `GET /api/v2/projects/{project}`
pub(crate) async fn read(
    State(control_plane): State<ControlPlane>,
    caller: Caller,
    InPath(project): InPath<ProjectId>,
    query: Query,
) -> Result<Document, ApiError> {
    let view = control_plane.project(&caller, project).await?;
    Ok(Document::one(resource(&caller, &view)).including(included(&view, &query)))
}

/// `PATCH /api/v2/projects/{project}`
pub(crate) async fn update(
    State(control_plane): State<ControlPlane>,
    caller: Caller,
    InPath(project): InPath<ProjectId>,
    body: Body,
) -> Result<Document, ApiError> {
    let view = control_plane.update_project(&caller, project, read_patch(body)?).await?;
    Ok(Document::one(resource(&caller, &view)))
}

/// `DELETE /api/v2/projects/{project}`
pub(crate) async fn delete(
    State(control_plane): State<ControlPlane>,
    caller: Caller,
    InPath(project): InPath<ProjectId>,
) -> Result<StatusCode, ApiError> {
    control_plane.delete_project(&caller, project).await?;
    Ok(StatusCode::NO_CONTENT)
}
