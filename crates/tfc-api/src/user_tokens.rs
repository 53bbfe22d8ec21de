//! Users' own tokens.

use axum::extract::State;
use axum::response::Response;
use taco_control_plane::{Caller, ControlPlane, Listed};
use taco_domain::id::UserId;

use crate::authentication_tokens::{issued, resource, wanted};
use crate::body::Body;
use crate::document::Document;
use crate::error::ApiError;
use crate::path::InPath;
use crate::query::Query;

/// `GET /api/v2/users/{user}/authentication-tokens`
pub(crate) async fn list(
    State(control_plane): State<ControlPlane>,
    caller: Caller,
    InPath(user): InPath<UserId>,
    query: Query,
) -> Result<Document, ApiError> {
    let tokens = control_plane.user_tokens(&caller, user).await?;
    Ok(Document::page(Listed::from_all(tokens, query.page()?).map(|token| resource(&token, None))))
}

/// `POST /api/v2/users/{user}/authentication-tokens`
pub(crate) async fn create(
    State(control_plane): State<ControlPlane>,
    caller: Caller,
    InPath(user): InPath<UserId>,
    body: Body,
) -> Result<Response, ApiError> {
    Ok(issued(&control_plane.create_user_token(&caller, user, wanted(body)?).await?))
}
