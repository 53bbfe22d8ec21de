//! Variable sets, and what they are applied to.

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use jiff::Timestamp;
use serde::Serialize;
use serde::de::DeserializeOwned;
use taco_control_plane::{
    Caller, ControlPlane, ListChange, Listed, NewVariableSet, ProjectView, VariableSetTargets, VariableSetView,
    WorkspaceRef, WorkspaceView,
};
use taco_domain::id::{ProjectId, VariableSetId, WorkspaceId};
use taco_domain::permission::Action;
use taco_domain::variable::VariablePatch;
use taco_domain::variable_set::VariableSetPatch;

use crate::body::{Body, NoAttributes, Sent};
use crate::document::{Document, Identifier, Resource};
use crate::error::ApiError;
use crate::path::InPath;
use crate::query::Query;
use crate::{organizations, projects, variables, workspaces};

pub(crate) const KIND: &str = "varsets";

#[derive(Serialize)]
#[serde(rename_all = "kebab-case")]
struct Attributes<'a> {
    name: &'a str,
    description: &'a str,
    global: bool,
    priority: bool,
    created_at: Timestamp,
    var_count: usize,
    workspace_count: usize,
    project_count: usize,
}

fn resource(caller: &Caller, view: &VariableSetView) -> Resource {
    let VariableSetView { set, open } = view;
    let (workspaces, projects) = (view.workspaces_seen_by(caller), view.projects_seen_by(caller));
    let attributes = Attributes {
        name: set.name.as_str(),
        description: &set.description,
        global: set.global,
        priority: set.priority,
        created_at: set.created_at,
        var_count: view.variables().count(),
        workspace_count: workspaces.len(),
        project_count: projects.len(),
    };
    let organization = organizations::identifier(open.entry().name.as_str());
    let parent = set.parent.map(|project| Identifier::new(projects::KIND, project));
    Resource::new(KIND, set.id, &attributes)
        .has_one("organization", organization.clone())
        .has_one("parent", parent.unwrap_or(organization))
        .has_many("vars", view.variables().map(|variable| Identifier::new(variables::KIND, variable.id)))
        .has_many("workspaces", workspaces.into_iter().map(|id| Identifier::new(workspaces::KIND, id)))
        .has_many("projects", projects.into_iter().map(|id| Identifier::new(projects::KIND, id)))
        .link("self", format!("/api/v2/varsets/{}", set.id))
}

/// What the query wants beside a set. Whoever sees a set need not see all that it is applied to.
fn included(caller: &Caller, view: &VariableSetView, query: &Query) -> Vec<Resource> {
    let VariableSetView { set, open } = view;
    let mut included = Vec::new();
    if query.includes("vars") {
        included.extend(view.variables().map(variables::resource));
    }
    if query.includes("workspaces") {
        let found = set.workspaces.iter().filter_map(|id| open.state.workspaces.get(id));
        let views = found.map(|workspace| WorkspaceView { workspace: workspace.clone(), open: open.clone() });
        let seen = views.filter(|view| caller.may(Action::ReadWorkspace, view.resource()).allowed);
        included.extend(seen.map(|view| workspaces::resource(caller, &view)));
    }
    if query.includes("projects") {
        let found = set.projects.iter().filter_map(|id| open.state.projects.get(id));
        let views = found.map(|project| ProjectView { project: project.clone(), open: open.clone() });
        let seen = views.filter(|view| caller.may(Action::ReadProject, view.resource()).allowed);
        included.extend(seen.map(|view| projects::resource(caller, &view)));
    }
    included
}

fn document(caller: &Caller, view: &VariableSetView, query: &Query) -> Document {
    Document::one(resource(caller, view)).including(included(caller, view, query))
}

fn page(caller: &Caller, listed: Listed<VariableSetView>, query: &Query) -> Document {
    let beside: Vec<Resource> = listed.items.iter().flat_map(|view| included(caller, view, query)).collect();
    Document::page(listed.map(|view| resource(caller, &view))).including(beside)
}

fn ids<A, I: FromStr<Err: fmt::Display> + Ord>(named: &[Sent<A>]) -> Result<BTreeSet<I>, ApiError> {
    named.iter().map(Sent::id).collect()
}

fn related<A, I: FromStr<Err: fmt::Display> + Ord>(
    sent: &Sent<A>,
    name: &str,
    kind: &str,
) -> Result<Option<BTreeSet<I>>, ApiError> {
    sent.to_many::<NoAttributes>(name, kind)?.map(|named| ids(&named)).transpose()
}

fn read_patch(sent: &Sent<VariableSetPatch>) -> Result<VariableSetPatch, ApiError> {
    let workspaces = related(sent, "workspaces", workspaces::KIND)?;
    let projects = related(sent, "projects", projects::KIND)?;
    Ok(VariableSetPatch { workspaces, projects, ..sent.attributes.clone() })
}

fn attributes_of<A: DeserializeOwned + Clone>(sent: &[Sent<A>]) -> Vec<A> {
    sent.iter().map(|item| item.attributes.clone()).collect()
}

/// `GET /api/v2/organizations/{organization}/varsets`
pub(crate) async fn list(
    State(control_plane): State<ControlPlane>,
    caller: Caller,
    InPath(organization): InPath<String>,
    query: Query,
) -> Result<Document, ApiError> {
    let listed = control_plane.variable_sets(&caller, &organization, query.get("q"), query.page()?).await?;
    Ok(page(&caller, listed, &query))
}

/// `GET /api/v2/workspaces/{workspace}/varsets`
pub(crate) async fn list_of_workspace(
    State(control_plane): State<ControlPlane>,
    caller: Caller,
    InPath(workspace): InPath<WorkspaceId>,
    query: Query,
) -> Result<Document, ApiError> {
    let wanted = WorkspaceRef::Id(workspace);
    let listed = control_plane.variable_sets_of_workspace(&caller, &wanted, query.get("q"), query.page()?).await?;
    Ok(page(&caller, listed, &query))
}

/// `GET /api/v2/projects/{project}/varsets`
pub(crate) async fn list_of_project(
    State(control_plane): State<ControlPlane>,
    caller: Caller,
    InPath(project): InPath<ProjectId>,
    query: Query,
) -> Result<Document, ApiError> {
    let listed = control_plane.variable_sets_of_project(&caller, project, query.get("q"), query.page()?).await?;
    Ok(page(&caller, listed, &query))
}

/// `POST /api/v2/organizations/{organization}/varsets`
pub(crate) async fn create(
    State(control_plane): State<ControlPlane>,
    caller: Caller,
    InPath(organization): InPath<String>,
    query: Query,
    body: Body,
) -> Result<Response, ApiError> {
    let sent = body.resource::<VariableSetPatch>(KIND)?;
    let variables = sent.to_many::<VariablePatch>("vars", variables::KIND)?.unwrap_or_default();
    let new = NewVariableSet {
        patch: read_patch(&sent)?,
        parent: sent.to_one_of("parent", projects::KIND)?,
        variables: attributes_of(&variables),
    };
    let view = control_plane.create_variable_set(&caller, &organization, new).await?;
    Ok((StatusCode::CREATED, document(&caller, &view, &query)).into_response())
}

/// `GET /api/v2/varsets/{variable_set}`
pub(crate) async fn read(
    State(control_plane): State<ControlPlane>,
    caller: Caller,
    InPath(set): InPath<VariableSetId>,
    query: Query,
) -> Result<Document, ApiError> {
    let view = control_plane.variable_set(&caller, set).await?;
    Ok(document(&caller, &view, &query))
}

/// `PATCH /api/v2/varsets/{variable_set}`
pub(crate) async fn update(
    State(control_plane): State<ControlPlane>,
    caller: Caller,
    InPath(set): InPath<VariableSetId>,
    query: Query,
    body: Body,
) -> Result<Document, ApiError> {
    let patch = read_patch(&body.resource(KIND)?)?;
    let view = control_plane.update_variable_set(&caller, set, patch).await?;
    Ok(document(&caller, &view, &query))
}

/// `DELETE /api/v2/varsets/{variable_set}`
pub(crate) async fn delete(
    State(control_plane): State<ControlPlane>,
    caller: Caller,
    InPath(set): InPath<VariableSetId>,
) -> Result<StatusCode, ApiError> {
    control_plane.delete_variable_set(&caller, set).await?;
    Ok(StatusCode::NO_CONTENT)
}

async fn change_workspaces(
    control_plane: &ControlPlane,
    caller: &Caller,
    set: VariableSetId,
    body: Body,
    change: ListChange,
) -> Result<StatusCode, ApiError> {
    let targets = VariableSetTargets::Workspaces(ids(&body.resources::<NoAttributes>(workspaces::KIND)?)?);
    control_plane.apply_variable_set(caller, set, targets, change).await?;
    Ok(StatusCode::NO_CONTENT)
}

async fn change_projects(
    control_plane: &ControlPlane,
    caller: &Caller,
    set: VariableSetId,
    body: Body,
    change: ListChange,
) -> Result<StatusCode, ApiError> {
    let targets = VariableSetTargets::Projects(ids(&body.resources::<NoAttributes>(projects::KIND)?)?);
    control_plane.apply_variable_set(caller, set, targets, change).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// `POST /api/v2/varsets/{variable_set}/relationships/workspaces`
pub(crate) async fn add_workspaces(
    State(control_plane): State<ControlPlane>,
    caller: Caller,
    InPath(set): InPath<VariableSetId>,
    body: Body,
) -> Result<StatusCode, ApiError> {
    change_workspaces(&control_plane, &caller, set, body, ListChange::Add).await
}

/// `DELETE /api/v2/varsets/{variable_set}/relationships/workspaces`
pub(crate) async fn remove_workspaces(
    State(control_plane): State<ControlPlane>,
    caller: Caller,
    InPath(set): InPath<VariableSetId>,
    body: Body,
) -> Result<StatusCode, ApiError> {
    change_workspaces(&control_plane, &caller, set, body, ListChange::Remove).await
}

/// `POST /api/v2/varsets/{variable_set}/relationships/projects`
pub(crate) async fn add_projects(
    State(control_plane): State<ControlPlane>,
    caller: Caller,
    InPath(set): InPath<VariableSetId>,
    body: Body,
) -> Result<StatusCode, ApiError> {
    change_projects(&control_plane, &caller, set, body, ListChange::Add).await
}

/// `DELETE /api/v2/varsets/{variable_set}/relationships/projects`
pub(crate) async fn remove_projects(
    State(control_plane): State<ControlPlane>,
    caller: Caller,
    InPath(set): InPath<VariableSetId>,
    body: Body,
) -> Result<StatusCode, ApiError> {
    change_projects(&control_plane, &caller, set, body, ListChange::Remove).await
}
