//! Tokens of every kind, as resources and by id.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use taco_control_plane::{IssuedToken, NewToken};
use taco_domain::token::{Token, TokenHolder};

use crate::body::Body;
use crate::document::{Identifier, ResourceObject};
use crate::error::ApiError;
use crate::request::{Answer, ApiRequest, no_content};
use crate::resource::Resource;
use crate::users;

const KIND: &str = "authentication-tokens";

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

/// Attributes of a new token. The body may be empty.
pub(crate) fn new_token(body: Body) -> Result<NewToken, ApiError> {
    let wanted: Wanted = body.action()?;
    Ok(NewToken { description: wanted.description, expires_at: wanted.expired_at })
}

fn object(token: &Token, text: Option<String>) -> ResourceObject {
    let attributes = Attributes {
        created_at: token.created_at,
        last_used_at: token.last_used_at,
        description: token.description.as_deref(),
        token: text,
        expired_at: token.expires_at,
    };
    let object =
        ResourceObject::new(KIND, token.id, &attributes).has_optional("created-by", users::author(&token.created_by));
    match token.holder {
        TokenHolder::Team(team) => object.has_one("team", Identifier::new("teams", team)),
        _ => object,
    }
}

impl Resource for Token {
    const KIND: &'static str = KIND;

    fn object(&self, _: &ApiRequest) -> Result<ResourceObject, ApiError> {
        Ok(object(self, None))
    }
}

/// In the one answer that has the token's text.
impl Resource for IssuedToken {
    const KIND: &'static str = KIND;

    fn object(&self, _: &ApiRequest) -> Result<ResourceObject, ApiError> {
        Ok(object(&self.token, Some(self.text.reveal())))
    }
}

/// `GET /api/v2/authentication-tokens/{token}`
pub(crate) async fn read(request: ApiRequest) -> Answer {
    request.one(&request.control_plane.token_with_id(&request.caller, request.id("token")?).await?).await
}

/// `DELETE /api/v2/authentication-tokens/{token}`
pub(crate) async fn delete(request: ApiRequest) -> Answer {
    request.control_plane.revoke_token(&request.caller, request.id("token")?).await?;
    no_content()
}
