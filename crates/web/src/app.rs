//! All routes of this door.

use axum::Router;
use axum::middleware::{from_fn_with_state, map_response};
use axum::response::Redirect;
use axum::routing::{any, get, post};

use crate::error::{self, PageError};
use crate::{Web, consent, landing, login, oauth, password_link, security_headers, style_sheet, tokens};

impl Web {
    /// The routes as one service.
    pub fn into_router(self) -> Router {
        Router::new()
            .route("/", get(|| async { Redirect::to("/app") }))
            .route("/login", get(login::show).post(login::log_in))
            .route("/logout", post(login::log_out))
            .route("/setup/{secret}", get(password_link::show).post(password_link::set_password))
            .route("/oauth/authorize", get(consent::show).post(consent::decide))
            .route("/oauth/token", post(oauth::token))
            .route("/app", get(landing::show))
            .route("/app/settings/tokens", get(tokens::list).post(tokens::create))
            .route("/app/settings/tokens/{token_id}/revoke", post(tokens::revoke))
            .route("/app/{*path}", any(|| async { PageError::not_found("page") }))
            .route(&style_sheet::path(), get(style_sheet::serve))
            .method_not_allowed_fallback(error::no_such_method)
            .layer(from_fn_with_state(self.clone(), error::render))
            .layer(map_response(security_headers::add))
            .with_state(self)
    }
}
