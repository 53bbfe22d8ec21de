//! Variable sets, and what they are applied to.

use axum::http::StatusCode;
use axum::response::IntoResponse;
use jiff::Timestamp;
use serde::Serialize;
use taco_control_plane::{ListChange, NewVariableSet, VariableSetTargets, VariableSetView};
use taco_domain::variable::VariablePatch;
use taco_domain::variable_set::VariableSetPatch;

use crate::body::RequestResource;
use crate::document::{Document, Identifier, ResourceObject};
use crate::error::ApiError;
use crate::request::{Answer, ApiRequest, no_content};
use crate::resource::Resource;
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

impl Resource for VariableSetView {
    const KIND: &'static str = KIND;
    const INCLUDES: &'static [&'static str] = &["vars", "workspaces", "projects"];

    fn object(&self, request: &ApiRequest) -> Result<ResourceObject, ApiError> {
        let Self { set, org } = self;
        let (workspaces, projects) = (self.workspaces_seen_by(&request.caller), self.projects_seen_by(&request.caller));
        let attributes = Attributes {
            name: set.name.as_str(),
            description: &set.description,
            global: set.global,
            priority: set.priority,
            created_at: set.created_at,
            var_count: self.variables().count(),
            workspace_count: workspaces.len(),
            project_count: projects.len(),
        };
        let organization = organizations::identifier(org.entry().name.as_str());
        let parent = set.parent.map(|project| Identifier::new(projects::KIND, project));
        Ok(ResourceObject::new(KIND, set.id, &attributes)
            .has_one("organization", organization.clone())
            .has_one("parent", parent.unwrap_or(organization))
            .has_many("vars", self.variables().map(|variable| Identifier::new(variables::KIND, variable.id)))
            .has_many("workspaces", workspaces.into_iter().map(|id| Identifier::new(workspaces::KIND, id)))
            .has_many("projects", projects.into_iter().map(|id| Identifier::new(projects::KIND, id)))
            .link("self", format!("/api/v2/varsets/{}", set.id)))
    }

    async fn include(&self, name: &str, request: &ApiRequest, document: &mut Document) -> Result<(), ApiError> {
        match name {
            "vars" => document.include_all(self.variables(), request),
            "workspaces" => document.include_all(&self.readable_workspaces(&request.caller), request),
            _ => document.include_all(&self.readable_projects(&request.caller), request),
        }
    }
}

fn patch(sent: &RequestResource<VariableSetPatch>) -> Result<VariableSetPatch, ApiError> {
    let workspaces = sent.ids("workspaces", workspaces::KIND)?;
    let projects = sent.ids("projects", projects::KIND)?;
    Ok(VariableSetPatch { workspaces, projects, ..sent.attributes.clone() })
}

/// `GET /api/v2/organizations/{organization}/varsets`
pub(crate) async fn list(request: ApiRequest) -> Answer {
    let ApiRequest { control_plane, caller, query, .. } = &request;
    let organization = request.organization()?;
    request.page(control_plane.variable_sets(caller, organization, query.get("q"), query.page()?).await?).await
}

/// `GET /api/v2/workspaces/{workspace}/varsets`
pub(crate) async fn list_of_workspace(request: ApiRequest) -> Answer {
    let ApiRequest { control_plane, caller, query, .. } = &request;
    let (workspace, text, page) = (request.workspace()?, query.get("q"), query.page()?);
    request.page(control_plane.variable_sets_of_workspace(caller, &workspace, text, page).await?).await
}

/// `GET /api/v2/projects/{project}/varsets`
pub(crate) async fn list_of_project(request: ApiRequest) -> Answer {
    let ApiRequest { control_plane, caller, query, .. } = &request;
    let (project, text, page) = (request.id("project")?, query.get("q"), query.page()?);
    request.page(control_plane.variable_sets_of_project(caller, project, text, page).await?).await
}

/// `POST /api/v2/organizations/{organization}/varsets`
pub(crate) async fn create(request: ApiRequest) -> Answer {
    let sent = request.resource::<VariableSetPatch>(KIND).await?;
    let variables = sent.to_many::<VariablePatch>("vars", variables::KIND)?.unwrap_or_default();
    let new = NewVariableSet {
        patch: patch(&sent)?,
        parent: sent.to_one_of("parent", projects::KIND)?,
        variables: variables.into_iter().map(|variable| variable.attributes).collect(),
    };
    let view = request.control_plane.create_variable_set(&request.caller, request.organization()?, new).await?;
    // Go-tfe wants related resources with what it writes, too.
    Ok((StatusCode::CREATED, request.document(&view).await?).into_response())
}

/// `GET /api/v2/varsets/{variable_set}`
pub(crate) async fn read(request: ApiRequest) -> Answer {
    request.one(&request.control_plane.variable_set(&request.caller, request.id("variable_set")?).await?).await
}

/// `PATCH /api/v2/varsets/{variable_set}`
pub(crate) async fn update(request: ApiRequest) -> Answer {
    let (set, patch) = (request.id("variable_set")?, patch(&request.resource(KIND).await?)?);
    request.one(&request.control_plane.update_variable_set(&request.caller, set, patch).await?).await
}

/// `DELETE /api/v2/varsets/{variable_set}`
pub(crate) async fn delete(request: ApiRequest) -> Answer {
    request.control_plane.delete_variable_set(&request.caller, request.id("variable_set")?).await?;
    no_content()
}

async fn change_workspaces(request: &ApiRequest, change: ListChange) -> Answer {
    let set = request.id("variable_set")?;
    let targets = VariableSetTargets::Workspaces(request.ids(workspaces::KIND).await?);
    request.control_plane.apply_variable_set(&request.caller, set, targets, change).await?;
    no_content()
}

async fn change_projects(request: &ApiRequest, change: ListChange) -> Answer {
    let set = request.id("variable_set")?;
    let targets = VariableSetTargets::Projects(request.ids(projects::KIND).await?);
    request.control_plane.apply_variable_set(&request.caller, set, targets, change).await?;
    no_content()
}

/// `POST /api/v2/varsets/{variable_set}/relationships/workspaces`
pub(crate) async fn add_workspaces(request: ApiRequest) -> Answer {
    change_workspaces(&request, ListChange::Add).await
}

/// `DELETE /api/v2/varsets/{variable_set}/relationships/workspaces`
pub(crate) async fn remove_workspaces(request: ApiRequest) -> Answer {
    change_workspaces(&request, ListChange::Remove).await
}

/// `POST /api/v2/varsets/{variable_set}/relationships/projects`
pub(crate) async fn add_projects(request: ApiRequest) -> Answer {
    change_projects(&request, ListChange::Add).await
}

/// `DELETE /api/v2/varsets/{variable_set}/relationships/projects`
pub(crate) async fn remove_projects(request: ApiRequest) -> Answer {
    change_projects(&request, ListChange::Remove).await
}
