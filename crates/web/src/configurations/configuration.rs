//! `…/configurations/{configuration}`: the archive that runs unpack, as it was uploaded.

use axum::body::Body;
use axum::extract::{Path, State};
use axum::http::header::{CONTENT_DISPOSITION, CONTENT_LENGTH, CONTENT_TYPE};
use axum::response::{IntoResponse, Response};
use taco_domain::id::ConfigurationVersionId;

use crate::Web;
use crate::configurations::require_within;
use crate::error::PageError;
use crate::visitor::Visitor;
use crate::workspace::named;

/// `GET /app/{organization}/workspaces/{workspace}/configurations/{configuration}`
pub(crate) async fn download(
    State(web): State<Web>,
    visitor: Visitor,
    Path((organization, name, id)): Path<(String, String, String)>,
) -> Result<Response, PageError> {
    let id: ConfigurationVersionId = id.parse().map_err(|_| PageError::not_found("configuration"))?;
    let workspace = web.control_plane.workspace(&visitor.caller, &named((organization, name))).await?;
    require_within(&web, &visitor, &workspace, id).await?;
    let download = web.control_plane.download_configuration(&visitor.caller, id).await?;
    let headers = [
        (CONTENT_TYPE, "application/gzip".to_owned()),
        (CONTENT_LENGTH, download.size.to_string()),
        (CONTENT_DISPOSITION, format!("attachment; filename=\"{id}.tar.gz\"")),
    ];
    Ok((headers, Body::from_stream(download.body)).into_response())
}
