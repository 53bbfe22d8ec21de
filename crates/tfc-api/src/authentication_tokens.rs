//! Tokens of every kind, as resources and by id.

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use taco_control_plane::{Caller, ControlPlane, IssuedToken, NewToken};
use taco_domain::id::TokenId;
use taco_domain::token::{Token, TokenHolder};

use crate::body::Body;
use crate::document::{Document, Identifier, Resource};
use crate::error::ApiError;
use crate::path::InPath;
use crate::users;

pub(crate) const KIND: &str = "authentication-tokens";

#[derive(Serialize)]
#[serde(rename_all = "kebab-case")]
struct Attributes<'a> {
    created_at: Timestamp,
    last_used_at: Option<Timestamp>,
    description: Option<&'a str>,
    /// Only in the answer to the request that made it.
    token: Option<String>,
    expired_at: Option<Timestamp>,
}

/// The attributes of a request for a token.
#[derive(Default, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
struct Wanted {
    description: Option<String>,
    expired_at: Option<Timestamp>,
}

/// What a request says about the token it wants. It may say nothing at all.
pub(crate) fn wanted(body: Body) -> Result<NewToken, ApiError> {
    let wanted: Wanted = body.action()?;
    Ok(NewToken { description: wanted.description, expires_at: wanted.expired_at })
}

pub(crate) fn resource(token: &Token, text: Option<String>) -> Resource {
    let attributes = Attributes {
        created_at: token.created_at,
        last_used_at: token.last_used_at,
        description: token.description.as_deref(),
        token: text,
        expired_at: token.expires_at,
    };
    let resource =
        Resource::new(KIND, token.id, &attributes).has_optional("created-by", users::author(&token.created_by));
    match token.holder {
        TokenHolder::Team(team) => resource.has_one("team", Identifier::new("teams", team)),
        _ => resource,
    }
}

/// The one answer that has the token's text.
pub(crate) fn issued(issued: &IssuedToken) -> Response {
    let document = Document::one(resource(&issued.token, Some(issued.text.reveal())));
    (StatusCode::CREATED, document).into_response()
}

/// `GET /api/v2/authentication-tokens/{token}`
pub(crate) async fn read(
    State(control_plane): State<ControlPlane>,
    caller: Caller,
    InPath(token): InPath<TokenId>,
) -> Result<Document, ApiError> {
    Ok(Document::one(resource(&control_plane.token_with_id(&caller, token).await?, None)))
}

/// `DELETE /api/v2/authentication-tokens/{token}`
pub(crate) async fn delete(
    State(control_plane): State<ControlPlane>,
    caller: Caller,
    InPath(token): InPath<TokenId>,
) -> Result<StatusCode, ApiError> {
    control_plane.revoke_token(&caller, token).await?;
    Ok(StatusCode::NO_CONTENT)
}
