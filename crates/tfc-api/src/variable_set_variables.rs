//! Variables of variable sets.

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use taco_control_plane::{Caller, ControlPlane, VariableRef};
use taco_domain::id::{VariableId, VariableSetId};
use taco_domain::variable::{VariableOwner, VariablePatch};

use crate::body::Body;
use crate::document::Document;
use crate::error::ApiError;
use crate::path::InPath;
use crate::variables::{KIND, created, document, resource};

fn in_set((set, variable): (VariableSetId, VariableId)) -> VariableRef {
    VariableRef { id: variable, owner: Some(VariableOwner::VariableSet(set)) }
}

/// `GET /api/v2/varsets/{variable_set}/relationships/vars`
pub(crate) async fn list(
    State(control_plane): State<ControlPlane>,
    caller: Caller,
    InPath(set): InPath<VariableSetId>,
) -> Result<Document, ApiError> {
    Ok(document(&control_plane.variables(&caller, VariableOwner::VariableSet(set)).await?))
}

/// `POST /api/v2/varsets/{variable_set}/relationships/vars`
pub(crate) async fn create(
    State(control_plane): State<ControlPlane>,
    caller: Caller,
    InPath(set): InPath<VariableSetId>,
    body: Body,
) -> Result<Response, ApiError> {
    let patch: VariablePatch = body.resource(KIND)?.attributes;
    Ok(created(&control_plane.create_variable(&caller, VariableOwner::VariableSet(set), patch).await?))
}

/// `GET /api/v2/varsets/{variable_set}/relationships/vars/{set_variable}`
pub(crate) async fn read(
    State(control_plane): State<ControlPlane>,
    caller: Caller,
    InPath(path): InPath<(VariableSetId, VariableId)>,
) -> Result<Document, ApiError> {
    Ok(Document::one(resource(&control_plane.variable(&caller, in_set(path)).await?)))
}

/// `PATCH /api/v2/varsets/{variable_set}/relationships/vars/{set_variable}`
pub(crate) async fn update(
    State(control_plane): State<ControlPlane>,
    caller: Caller,
    InPath(path): InPath<(VariableSetId, VariableId)>,
    body: Body,
) -> Result<Document, ApiError> {
    let patch: VariablePatch = body.resource(KIND)?.attributes;
    Ok(Document::one(resource(&control_plane.update_variable(&caller, in_set(path), patch).await?)))
}

/// `DELETE /api/v2/varsets/{variable_set}/relationships/vars/{set_variable}`
pub(crate) async fn delete(
    State(control_plane): State<ControlPlane>,
    caller: Caller,
    InPath(path): InPath<(VariableSetId, VariableId)>,
) -> Result<StatusCode, ApiError> {
    control_plane.delete_variable(&caller, in_set(path)).await?;
    Ok(StatusCode::NO_CONTENT)
}
