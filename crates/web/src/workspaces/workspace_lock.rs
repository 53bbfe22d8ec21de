//! Lock, unlock, and unlock by force: the forms on a workspace's page.

use axum::extract::{Path, State};
use axum::response::Response;
use serde::Deserialize;

use crate::Web;
use crate::error::PageError;
use crate::flash::Flash;
use crate::form::{Nothing, VisitorForm};
use crate::workspace::{address_of, named};

#[derive(Deserialize, Default)]
#[serde(default)]
pub(crate) struct Lock {
    reason: String,
}

/// `POST /app/{organization}/workspaces/{workspace}/lock`
pub(crate) async fn lock(
    State(web): State<Web>,
    Path(path): Path<(String, String)>,
    VisitorForm(visitor, form): VisitorForm<Lock>,
) -> Result<Response, PageError> {
    let reason = Some(form.reason.trim().to_owned());
    let view = web.control_plane.lock_workspace(&visitor.caller, &named(path), reason).await?;
    Ok(Flash::says(format!("Workspace {} locked.", view.workspace.name)).redirect_to(&address_of(&view)))
}

/// `POST /app/{organization}/workspaces/{workspace}/unlock`
pub(crate) async fn unlock(
    State(web): State<Web>,
    Path(path): Path<(String, String)>,
    VisitorForm(visitor, Nothing {}): VisitorForm<Nothing>,
) -> Result<Response, PageError> {
    let view = web.control_plane.unlock_workspace(&visitor.caller, &named(path)).await?;
    Ok(Flash::says(format!("Workspace {} unlocked.", view.workspace.name)).redirect_to(&address_of(&view)))
}

/// `POST /app/{organization}/workspaces/{workspace}/force-unlock`
pub(crate) async fn force_unlock(
    State(web): State<Web>,
    Path(path): Path<(String, String)>,
    VisitorForm(visitor, Nothing {}): VisitorForm<Nothing>,
) -> Result<Response, PageError> {
    let view = web.control_plane.force_unlock_workspace(&visitor.caller, &named(path)).await?;
    Ok(Flash::says(format!("Workspace {} unlocked.", view.workspace.name)).redirect_to(&address_of(&view)))
}
