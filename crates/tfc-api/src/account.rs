//! The caller's own account.

use axum::extract::State;
use taco_control_plane::{AccountPatch, Caller, ControlPlane};

use crate::body::Body;
use crate::document::Document;
use crate::error::ApiError;
use crate::users;

/// `GET /api/v2/account/details`
pub(crate) async fn read(State(control_plane): State<ControlPlane>, caller: Caller) -> Result<Document, ApiError> {
    Ok(Document::one(users::resource(&control_plane.account(&caller).await?)))
}

/// `PATCH /api/v2/account/update`
pub(crate) async fn update(
    State(control_plane): State<ControlPlane>,
    caller: Caller,
    body: Body,
) -> Result<Document, ApiError> {
    let patch = body.resource::<AccountPatch>(users::KIND)?.attributes;
    let account = control_plane.account(&caller).await?;
    Ok(Document::one(users::resource(&control_plane.update_user(&caller, account.id, patch).await?)))
}
