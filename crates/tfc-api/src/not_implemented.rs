//! Not implemented (yet): lists of things that cannot be created here. Clients that look are told that there are none,
//! which is true, and not that they asked for something strange.

use axum::response::IntoResponse;
use taco_control_plane::Listed;

use crate::document::Document;
use crate::request::{Answer, ApiRequest};

fn empty_page(request: &ApiRequest) -> Answer {
    Ok(Document::page(Listed::from_all([], request.query.page()?)).into_response())
}

/// `GET /api/v2/workspaces/{workspace}/…`: assessments.
pub(crate) async fn empty_list_of_workspace(request: ApiRequest) -> Answer {
    request.control_plane.workspace_with_runs(&request.caller, &request.workspace()?).await?;
    empty_page(&request)
}

/// `GET /api/v2/runs/{run}/…`: policy checks.
pub(crate) async fn empty_list_of_run(request: ApiRequest) -> Answer {
    request.control_plane.run(&request.caller, request.id("run")?).await?;
    empty_page(&request)
}
