//! All routes of this door.

use axum::Router;
use axum::middleware::{from_fn_with_state, map_response};
use axum::response::Redirect;
use axum::routing::{any, get, post};

use crate::error::{self, PageError};
use crate::static_files::STATIC_FILES;
use crate::{Web, consent, landing, login, oauth, password_link, security_headers, theme, tokens};

impl Web {
    /// The routes as one service.
    pub fn into_router(self) -> Router {
        let pages = Router::new()
            .route("/", get(|| async { Redirect::to("/app") }))
            .route("/login", get(login::show).post(login::log_in))
            .route("/logout", post(login::log_out))
            .route("/theme", post(theme::choose))
            .route("/setup/{secret}", get(password_link::show).post(password_link::set_password))
            .route("/oauth/authorize", get(consent::show).post(consent::decide))
            .route("/oauth/token", post(oauth::token))
            .route("/app", get(landing::show))
            .route("/app/settings/tokens", get(tokens::list).post(tokens::create))
            .route("/app/settings/tokens/{token_id}/revoke", post(tokens::revoke))
            .route("/app/{*path}", any(|| async { PageError::not_found("page") }));
        STATIC_FILES
            .all()
            .into_iter()
            .fold(pages, |routes, file| routes.route(&file.path, file.serve()))
            .method_not_allowed_fallback(error::no_such_method)
            .layer(from_fn_with_state(self.clone(), error::render))
            .layer(map_response(security_headers::add))
            .with_state(self)
    }
}
