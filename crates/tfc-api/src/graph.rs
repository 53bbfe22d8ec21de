//! The graph of states: all of it, why one unit is as fresh as it is, and the history of its outputs. Attributes of a graph
//! and of a reason are the documents that scripts read, with the names that `taco graph --format json` and `taco why --json` give
//! them.

pub(crate) mod dependencies;
pub(crate) mod output_commits;

use serde::Serialize;

use crate::document::{Document, ResourceObject};
use crate::request::{Answer, ApiRequest};

/// A document that has no id of its own.
fn document(kind: &'static str, id: impl ToString, attributes: &impl Serialize, path: String) -> Answer {
    use axum::response::IntoResponse as _;
    Ok(Document::one(ResourceObject::new(kind, id, attributes).link("self", path)).into_response())
}

/// `GET /api/v2/organizations/{organization}/graph`
pub(crate) async fn read(request: ApiRequest) -> Answer {
    let organization = request.organization()?;
    let (org, graph) = request.control_plane.graph(&request.caller, organization).await?;
    let name = &org.entry().name;
    document("graphs", name, &graph, format!("/api/v2/organizations/{name}/graph"))
}

/// `GET /api/v2/workspaces/{workspace}/why`
pub(crate) async fn why(request: ApiRequest) -> Answer {
    let why = request.control_plane.why(&request.caller, &request.workspace()?).await?;
    let id = request.name("workspace")?;
    document("reasons", id, &why, format!("/api/v2/workspaces/{id}/why"))
}
