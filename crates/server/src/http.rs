//! The routes of all doors, and what surrounds every one of them.

use std::any::Any;

use axum::Router;
use axum::extract::{DefaultBodyLimit, Request};
use axum::http::header::{HeaderValue, X_CONTENT_TYPE_OPTIONS};
use axum::http::{Method, StatusCode, Uri};
use axum::middleware::{from_fn, from_fn_with_state};
use axum::response::Response;
use taco_ledger::Dice;
use tower::ServiceBuilder;
use tower_http::CompressionLevel;
use tower_http::catch_panic::CatchPanicLayer;
use tower_http::compression::CompressionLayer;
use tower_http::set_header::SetResponseHeaderLayer;

use crate::error_document::error_document;
use crate::observe::observe;
use crate::{body_pace, limits};

/// Surrounds routes with what each of them needs: a request id, the access log, limits, and an answer where there is
/// no route or a handler panics.
pub fn surround(routes: Router, dice: Dice) -> Router {
    routes
        .fallback(no_such_path)
        .method_not_allowed_fallback(no_such_method)
        // From the outside inwards.
        .layer(
            ServiceBuilder::new()
                .layer(from_fn_with_state(dice, observe))
                .layer(SetResponseHeaderLayer::if_not_present(
                    X_CONTENT_TYPE_OPTIONS,
                    HeaderValue::from_static("nosniff"),
                ))
                .layer(CatchPanicLayer::custom(after_panic))
                .layer(from_fn(limits::head))
                .layer(from_fn(body_pace::enforce))
                .layer(DefaultBodyLimit::max(limits::BODY)),
        )
}

/// Packs pages for browsers that can unpack them, but not streams of events, of which each has to arrive at once.
///
/// How well a page packs tells a little about its secrets to someone who sees its length and chooses some of its
/// text. The proof in our forms is the only lasting secret on a page, and a form needs its origin beside it.
pub fn packed(routes: Router) -> Router {
    // More would cost more time than it saves on the way.
    routes.layer(CompressionLayer::new().quality(CompressionLevel::Fastest))
}

async fn no_such_path(uri: Uri) -> Response {
    let path: String = uri.path().chars().take(100).collect();
    error_document(StatusCode::NOT_FOUND, "not found", &format!("There is nothing at {path:?}."))
}

async fn no_such_method(method: Method, request: Request) -> Response {
    let path: String = request.uri().path().chars().take(100).collect();
    let detail = format!("{method} is not possible at {path:?}; the header `allow` lists what is.");
    error_document(StatusCode::METHOD_NOT_ALLOWED, "method not allowed", &detail)
}

/// The panic's own message went to the log.
fn after_panic(_: Box<dyn Any + Send>) -> Response {
    let detail = "Something went wrong on our side. The server's log tells more under this answer's x-request-id.";
    error_document(StatusCode::INTERNAL_SERVER_ERROR, "internal error", detail)
}
