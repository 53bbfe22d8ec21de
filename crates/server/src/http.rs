//! The routes of all doors, and what surrounds every one of them.

use std::convert::Infallible;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::task::{Context, Poll};

use axum::Router;
use axum::extract::{DefaultBodyLimit, Request};
use axum::http::header::{ACCEPT, HeaderValue, X_CONTENT_TYPE_OPTIONS};
use axum::http::{Method, StatusCode};
use axum::response::{IntoResponse as _, Response};
use futures::FutureExt as _;
use futures::future::BoxFuture;
use taco_ledger::SharedRng;
use tower::layer::layer_fn;
use tower::{Service, ServiceExt as _};
use tower_http::CompressionLevel;
use tower_http::compression::CompressionLayer;
use tracing::Instrument as _;

use crate::error_document::error_document;
use crate::observe::Observer;
use crate::{body_pace, limits};

/// Surrounds routes with what each of them needs: a request id, the access log, limits, and an answer where there is
/// no route or a handler panics.
///
/// Browsers get `nothing_here` where there is no route; everyone else a document.
pub fn surround(routes: Router, nothing_here: Option<Router>, rng: SharedRng) -> Router {
    let observer = Observer::new(rng);
    let layer = layer_fn(move |inner| WithCommonLayers { inner, observer: observer.clone() });
    let no_such_path = move |request: Request| no_such_path(nothing_here, request);
    routes.fallback(no_such_path).method_not_allowed_fallback(no_such_method).layer(layer)
}

/// A route and what surrounds it. Every request pays for this, and pays a box and a clone of the route for each layer
/// of its own: so it is one.
#[derive(Clone)]
struct WithCommonLayers<S> {
    inner: S,
    observer: Observer,
}

impl<S> Service<Request> for WithCommonLayers<S>
where
    S: Service<Request, Response = Response, Error = Infallible>,
    S::Future: Send + 'static,
{
    type Response = Response;
    type Error = Infallible;
    type Future = BoxFuture<'static, Result<Response, Infallible>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, mut request: Request) -> Self::Future {
        let observation = self.observer.begin(&mut request);
        if let Some(mut refused) = limits::refuse_head(&request) {
            return Box::pin(async move {
                observation.end(forbid_sniffing(&mut refused));
                Ok(refused)
            });
        }
        let (mut request, pace) = body_pace::enforce(request);
        DefaultBodyLimit::max(limits::MAX_BODY_BYTES).apply(&mut request);
        let span = observation.span();
        let answering = span.in_scope(|| catch_unwind(AssertUnwindSafe(|| self.inner.call(request))));
        Box::pin(async move {
            let answered = match answering {
                Ok(answering) => AssertUnwindSafe(answering).catch_unwind().instrument(span).await,
                Err(panic) => Err(panic),
            };
            let response = answered.unwrap_or_else(|_| Ok(after_panic()));
            let mut response = pace.explain(response?);
            observation.end(forbid_sniffing(&mut response));
            Ok(response)
        })
    }
}

/// Browsers take an answer for what it says it is.
fn forbid_sniffing(response: &mut Response) -> &mut Response {
    response.headers_mut().entry(X_CONTENT_TYPE_OPTIONS).or_insert(HeaderValue::from_static("nosniff"));
    response
}

/// Compresses pages for browsers that support it, but not streams of events, of which each has to arrive at once.
///
/// The compression ratio of a page tells a little about its secrets to someone who sees its length and chooses some of
/// its text. The proof in our forms is the only lasting secret on a page, and a form needs its origin as well.
pub fn packed(routes: Router) -> Router {
    // More would cost more time than it saves on the way.
    routes.layer(CompressionLayer::new().quality(CompressionLevel::Fastest))
}

async fn no_such_path(nothing_here: Option<Router>, request: Request) -> Response {
    if let Some(page) = nothing_here.filter(|_| wants_html(&request)) {
        return page.oneshot(request).await.into_response();
    }
    let path: String = request.uri().path().chars().take(100).collect();
    error_document(StatusCode::NOT_FOUND, "not found", &format!("There is nothing at {path:?}."))
}

/// Browsers that navigate say so; programs take anything or JSON.
fn wants_html(request: &Request) -> bool {
    let accepted = request.headers().get(ACCEPT).and_then(|accepted| accepted.to_str().ok());
    request.method() == Method::GET && accepted.is_some_and(|accepted| accepted.contains("text/html"))
}

async fn no_such_method(method: Method, request: Request) -> Response {
    let path: String = request.uri().path().chars().take(100).collect();
    let detail = format!("{method} is not possible at {path:?}; the header `allow` lists what is.");
    error_document(StatusCode::METHOD_NOT_ALLOWED, "method not allowed", &detail)
}

/// The panic's own message went to the log.
fn after_panic() -> Response {
    let detail = "Something went wrong on our side. The server's log tells more under this answer's x-request-id.";
    error_document(StatusCode::INTERNAL_SERVER_ERROR, "internal error", detail)
}
