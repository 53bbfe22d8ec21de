//! Resources that a workspace's current state manages.

use axum::response::IntoResponse;

use crate::document::{Document, ResourceObject};
use crate::request::{Answer, ApiRequest};

/// `GET /api/v2/workspaces/{workspace}/resources`
pub(crate) async fn list(request: ApiRequest) -> Answer {
    let (workspace, page) = (request.workspace()?, request.query.page()?);
    let listed = request.control_plane.workspace_resources(&request.caller, &workspace, page).await?;
    Ok(Document::page(listed.map(|view| ResourceObject::new("resources", &view.id, &view))).into_response())
}
