//! Users' own tokens.

use crate::authentication_tokens::new_token;
use crate::request::{Answer, ApiRequest};

/// `GET /api/v2/users/{user}/authentication-tokens`
pub(crate) async fn list(request: ApiRequest) -> Answer {
    request.page_of(request.control_plane.user_tokens(&request.caller, request.id("user")?).await?).await
}

/// `POST /api/v2/users/{user}/authentication-tokens`
pub(crate) async fn create(request: ApiRequest) -> Answer {
    let (user, new) = (request.id("user")?, new_token(request.body().await?)?);
    request.created(&request.control_plane.create_user_token(&request.caller, user, new).await?)
}
