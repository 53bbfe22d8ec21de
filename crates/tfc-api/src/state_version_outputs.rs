//! Outputs of states. Values of sensitive ones are there for whoever may read the whole state, except among those of a
//! workspace's current state: clients ask for them one by one.

use axum::extract::State;
use serde::Serialize;
use serde_json::value::RawValue;
use taco_control_plane::{Caller, ControlPlane, Listed, OutputView, WorkspaceRef};
use taco_domain::id::{OutputId, StateVersionId, WorkspaceId};

use crate::document::{Document, Resource};
use crate::error::ApiError;
use crate::path::InPath;
use crate::query::Query;

pub(crate) const KIND: &str = "state-version-outputs";

#[derive(Serialize)]
#[serde(rename_all = "kebab-case")]
struct Attributes<'a> {
    name: &'a str,
    sensitive: bool,
    #[serde(rename = "type")]
    type_name: &'a str,
    value: Option<&'a RawValue>,
    detailed_type: Option<&'a RawValue>,
}

pub(crate) fn resource(output: &OutputView) -> Resource {
    let attributes = Attributes {
        name: &output.name,
        sensitive: output.sensitive,
        type_name: output.type_name,
        value: output.value.as_deref(),
        detailed_type: output.detailed_type.as_deref(),
    };
    Resource::new(KIND, output.id, &attributes).link("self", format!("/api/v2/state-version-outputs/{}", output.id))
}

/// `GET /api/v2/state-versions/{state_version}/outputs`
pub(crate) async fn list(
    State(control_plane): State<ControlPlane>,
    caller: Caller,
    InPath(version): InPath<StateVersionId>,
    query: Query,
) -> Result<Document, ApiError> {
    let outputs = control_plane.outputs(&caller, version).await?;
    Ok(Document::page(Listed::from_all(outputs, query.page()?).map(|output| resource(&output))))
}

/// `GET /api/v2/workspaces/{workspace}/current-state-version-outputs`
pub(crate) async fn current(
    State(control_plane): State<ControlPlane>,
    caller: Caller,
    InPath(workspace): InPath<WorkspaceId>,
) -> Result<Document, ApiError> {
    let outputs = control_plane.current_outputs(&caller, &WorkspaceRef::Id(workspace)).await?;
    // The CLIs ask for no further page.
    Ok(Document::many(outputs.iter().map(resource).collect()))
}

/// `GET /api/v2/state-version-outputs/{output}`
pub(crate) async fn read(
    State(control_plane): State<ControlPlane>,
    caller: Caller,
    InPath(output): InPath<OutputId>,
) -> Result<Document, ApiError> {
    Ok(Document::one(resource(&control_plane.output(&caller, output).await?)))
}
