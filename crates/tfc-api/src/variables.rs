//! Variables of workspaces. Values that are sensitive go in and never come out.

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use jiff::Timestamp;
use serde::Serialize;
use taco_control_plane::{Caller, ControlPlane, VariableRef, WorkspaceRef};
use taco_domain::id::{VariableId, WorkspaceId};
use taco_domain::variable::{Variable, VariableCategory, VariableOwner, VariablePatch};

use crate::body::{Body, Sent};
use crate::document::{Document, Identifier, Resource};
use crate::error::ApiError;
use crate::path::InPath;
use crate::query::Query;
use crate::{variable_sets, workspaces};

pub(crate) const KIND: &str = "vars";

#[derive(Serialize)]
#[serde(rename_all = "kebab-case")]
struct Attributes<'a> {
    key: &'a str,
    value: Option<&'a str>,
    sensitive: bool,
    category: VariableCategory,
    hcl: bool,
    created_at: Timestamp,
    description: &'a str,
    version_id: String,
}

pub(crate) fn resource(variable: &Variable) -> Resource {
    let attributes = Attributes {
        key: &variable.key,
        value: variable.shown_value(),
        sensitive: variable.sensitive(),
        category: variable.category,
        hcl: variable.hcl,
        created_at: variable.created_at,
        description: &variable.description,
        version_id: variable.version_id(),
    };
    let resource = Resource::new(KIND, variable.id, &attributes);
    match variable.owner {
        VariableOwner::Workspace(id) => resource
            .has_one("configurable", Identifier::new(workspaces::KIND, id))
            .related(format!("/api/v2/workspaces/{id}"))
            .link("self", format!("/api/v2/workspaces/{id}/vars/{}", variable.id)),
        VariableOwner::VariableSet(id) => resource
            .has_one("varset", Identifier::new(variable_sets::KIND, id))
            .related(format!("/api/v2/varsets/{id}"))
            .link("self", format!("/api/v2/varsets/{id}/relationships/vars/{}", variable.id)),
    }
}

pub(crate) fn document(variables: &[Variable]) -> Document {
    Document::many(variables.iter().map(resource).collect())
}

pub(crate) fn created(variable: &Variable) -> Response {
    (StatusCode::CREATED, Document::one(resource(variable))).into_response()
}

fn in_workspace((workspace, variable): (WorkspaceId, VariableId)) -> VariableRef {
    VariableRef { id: variable, owner: Some(VariableOwner::Workspace(workspace)) }
}

/// `GET /api/v2/workspaces/{workspace}/vars`
pub(crate) async fn list(
    State(control_plane): State<ControlPlane>,
    caller: Caller,
    InPath(workspace): InPath<WorkspaceId>,
) -> Result<Document, ApiError> {
    Ok(document(&control_plane.variables(&caller, VariableOwner::Workspace(workspace)).await?))
}

/// `GET /api/v2/workspaces/{workspace}/all-vars`
pub(crate) async fn list_effective(
    State(control_plane): State<ControlPlane>,
    caller: Caller,
    InPath(workspace): InPath<WorkspaceId>,
) -> Result<Document, ApiError> {
    Ok(document(&control_plane.effective_variables(&caller, &WorkspaceRef::Id(workspace)).await?))
}

/// `POST /api/v2/workspaces/{workspace}/vars`
pub(crate) async fn create(
    State(control_plane): State<ControlPlane>,
    caller: Caller,
    InPath(workspace): InPath<WorkspaceId>,
    body: Body,
) -> Result<Response, ApiError> {
    let patch: VariablePatch = body.resource(KIND)?.attributes;
    Ok(created(&control_plane.create_variable(&caller, VariableOwner::Workspace(workspace), patch).await?))
}

/// `GET /api/v2/workspaces/{workspace}/vars/{variable}`
pub(crate) async fn read(
    State(control_plane): State<ControlPlane>,
    caller: Caller,
    InPath(path): InPath<(WorkspaceId, VariableId)>,
) -> Result<Document, ApiError> {
    Ok(Document::one(resource(&control_plane.variable(&caller, in_workspace(path)).await?)))
}

/// `PATCH /api/v2/workspaces/{workspace}/vars/{variable}`
pub(crate) async fn update(
    State(control_plane): State<ControlPlane>,
    caller: Caller,
    InPath(path): InPath<(WorkspaceId, VariableId)>,
    body: Body,
) -> Result<Document, ApiError> {
    let patch: VariablePatch = body.resource(KIND)?.attributes;
    Ok(Document::one(resource(&control_plane.update_variable(&caller, in_workspace(path), patch).await?)))
}

/// `DELETE /api/v2/workspaces/{workspace}/vars/{variable}`
pub(crate) async fn delete(
    State(control_plane): State<ControlPlane>,
    caller: Caller,
    InPath(path): InPath<(WorkspaceId, VariableId)>,
) -> Result<StatusCode, ApiError> {
    control_plane.delete_variable(&caller, in_workspace(path)).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// `GET /api/v2/vars?filter[organization][name]=…&filter[workspace][name]=…`, from before workspaces had paths of their
/// own for it; as are the following.
pub(crate) async fn list_by_name(
    State(control_plane): State<ControlPlane>,
    caller: Caller,
    query: Query,
) -> Result<Document, ApiError> {
    let required = |name: &str| {
        let value = query.get(name).map(str::to_owned);
        value.ok_or_else(|| ApiError::parameter(name, format!("{name} must be given")))
    };
    let wanted = WorkspaceRef::Named {
        organization: required("filter[organization][name]")?,
        name: required("filter[workspace][name]")?,
    };
    Ok(document(&control_plane.variables_in(&caller, &wanted).await?))
}

/// `POST /api/v2/vars`
pub(crate) async fn create_by_relationship(
    State(control_plane): State<ControlPlane>,
    caller: Caller,
    body: Body,
) -> Result<Response, ApiError> {
    let sent: Sent<VariablePatch> = body.resource(KIND)?;
    let workspace: Option<WorkspaceId> = match sent.to_one("workspace")?.flatten() {
        Some(workspace) => Some(workspace),
        None => sent.to_one("configurable")?.flatten(),
    };
    let pointer = "/data/relationships/workspace";
    let workspace = workspace.ok_or_else(|| ApiError::invalid(pointer, "The workspace must be given"))?;
    let owner = VariableOwner::Workspace(workspace);
    Ok(created(&control_plane.create_variable(&caller, owner, sent.attributes).await?))
}

/// `PATCH /api/v2/vars/{variable}`
pub(crate) async fn update_by_id(
    State(control_plane): State<ControlPlane>,
    caller: Caller,
    InPath(id): InPath<VariableId>,
    body: Body,
) -> Result<Document, ApiError> {
    let patch: VariablePatch = body.resource(KIND)?.attributes;
    let wanted = VariableRef { id, owner: None };
    Ok(Document::one(resource(&control_plane.update_variable(&caller, wanted, patch).await?)))
}

/// `DELETE /api/v2/vars/{variable}`
pub(crate) async fn delete_by_id(
    State(control_plane): State<ControlPlane>,
    caller: Caller,
    InPath(id): InPath<VariableId>,
) -> Result<StatusCode, ApiError> {
    control_plane.delete_variable(&caller, VariableRef { id, owner: None }).await?;
    Ok(StatusCode::NO_CONTENT)
}
