//! The router: the pages of [`crate::routes`], static files, and what surrounds every answer.

use axum::Router;
use axum::middleware::{from_fn_with_state, map_response};
use axum::routing::any;
use tower_http::catch_panic::CatchPanicLayer;

use crate::error::{self, PageError};
use crate::static_files::STATIC_FILES;
use crate::{Web, flash, routes, security_headers, shown_once};

impl Web {
    /// The routes as one service.
    pub fn into_router(self) -> Router {
        let pages = routes::all().into_iter();
        let pages = pages.fold(Router::new(), |router, route| router.route(route.path, route.into_service()));
        // What no page is at. A star right behind `/app/` would leave no room for the names of organizations.
        let pages = pages.route("/app/{organization}/{workspace}/{*path}", any(no_such_page));
        let files = STATIC_FILES.all().into_iter();
        self.surround(files.fold(pages, |routes, file| routes.route(&file.path, file.serve())))
    }

    /// The page for browsers where no door has anything.
    pub fn into_nothing_here(self) -> Router {
        self.surround(Router::new().fallback(no_such_page))
    }

    /// Gives routes what every page has.
    fn surround(self, routes: Router<Self>) -> Router {
        routes
            .method_not_allowed_fallback(error::no_such_method)
            .layer(CatchPanicLayer::custom(error::after_panic))
            .layer(from_fn_with_state(self.clone(), error::render))
            .layer(from_fn_with_state(self.clone(), flash::carry))
            .layer(from_fn_with_state(self.clone(), shown_once::forget))
            .layer(map_response(security_headers::add))
            .with_state(self)
    }
}

async fn no_such_page() -> PageError {
    PageError::not_found("page")
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use axum::body::{Body, to_bytes};
    use axum::http::{Request, StatusCode};
    use axum::routing::get;
    use taco_control_plane::{NotificationSettings, Privileged, Settings};
    use taco_ledger::{Environment, MasterKey, MasterKeys, ObjectBucket, Options, Peers, SharedRng, SystemClock};
    use tower::ServiceExt;

    use super::*;

    #[tokio::test]
    async fn a_handler_that_panics_leaves_a_page_that_names_the_request_and_no_more() {
        let rng = SharedRng::from_seed(1);
        let environment = Environment {
            bucket: Arc::new(ObjectBucket::in_memory()),
            clock: Arc::new(SystemClock),
            rng: rng.clone(),
            server: "server".to_owned(),
            peers: Peers::none(),
        };
        let key = MasterKey::from_secret("a master key with more than enough characters").expect("long enough");
        let settings = Settings {
            master_keys: Arc::new(MasterKeys::new(key, Vec::new(), rng)),
            site_token: None,
            ledger: Options::default(),
            timeouts: Default::default(),
            limits: Default::default(),
            history: Default::default(),
            hosts: Vec::new(),
            notifications: NotificationSettings::default(),
            opa: None,
        };
        let control_plane = Privileged::open(environment, settings).await.expect("a control plane");
        let address = "http://taco.test".parse().expect("an address");
        let routes = Router::new().route("/panics", get(|| async { assert_eq!("a secret", "", "never") }));
        let request = Request::get("/panics").header("x-request-id", "request-1").body(Body::empty());
        let answer = Web::new(control_plane.control_plane(), &address)
            .surround(routes)
            .oneshot(request.expect("a request"))
            .await;
        let answer = answer.expect("an answer");
        assert_eq!(answer.status(), StatusCode::INTERNAL_SERVER_ERROR);
        assert!(answer.headers().contains_key("content-security-policy"));
        assert_eq!(answer.headers()["content-type"], "text/html; charset=utf-8");
        let text = to_bytes(answer.into_body(), 1 << 20).await.expect("a whole page");
        let text = String::from_utf8(text.to_vec()).expect("text");
        assert!(text.contains("Internal error") && text.contains("request-1"), "{text}");
        assert!(!text.contains("secret") && !text.contains("never"), "{text}");
    }
}
