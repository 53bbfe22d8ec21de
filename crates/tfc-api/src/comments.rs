//! What people say about a run.

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use taco_control_plane::{Caller, ControlPlane, Listed};
use taco_domain::comment::Comment;
use taco_domain::id::{CommentId, RunId};

use crate::body::Body;
use crate::document::{Document, Resource};
use crate::error::ApiError;
use crate::path::InPath;
use crate::query::Query;
use crate::users;

pub(crate) const KIND: &str = "comments";

#[derive(Serialize)]
#[serde(rename_all = "kebab-case")]
struct Attributes<'a> {
    body: &'a str,
    created_at: Timestamp,
}

pub(crate) fn resource(comment: &Comment) -> Resource {
    Resource::new(KIND, comment.id, &Attributes { body: &comment.body, created_at: comment.created_at })
        .has_optional("created-by", users::user(&comment.created_by))
        .link("self", format!("/api/v2/comments/{}", comment.id))
}

/// `GET /api/v2/runs/{run}/comments`
pub(crate) async fn list(
    State(control_plane): State<ControlPlane>,
    caller: Caller,
    InPath(run): InPath<RunId>,
    query: Query,
) -> Result<Document, ApiError> {
    let comments = control_plane.run(&caller, run).await?.comments();
    Ok(Document::page(Listed::from_all(comments.iter().map(resource), query.page()?)))
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Sent {
    body: String,
}

/// `POST /api/v2/runs/{run}/comments`
pub(crate) async fn create(
    State(control_plane): State<ControlPlane>,
    caller: Caller,
    InPath(run): InPath<RunId>,
    body: Body,
) -> Result<Response, ApiError> {
    let sent: Sent = body.resource(KIND)?.attributes;
    let comment = control_plane.create_comment(&caller, run, sent.body).await?;
    Ok((StatusCode::CREATED, Document::one(resource(&comment))).into_response())
}

/// `GET /api/v2/comments/{comment}`
pub(crate) async fn read(
    State(control_plane): State<ControlPlane>,
    caller: Caller,
    InPath(comment): InPath<CommentId>,
) -> Result<Document, ApiError> {
    Ok(Document::one(resource(&control_plane.comment(&caller, comment).await?)))
}
