//! Every request gets an id, a line in the access log and a place in the metrics.
//!
//! None of them holds the path, the query or a header: a path can hold a name, and a query or header a secret. The
//! route stands for the path, which also bounds how many series Prometheus has to keep.

use axum::extract::{MatchedPath, Request, State};
use axum::http::{HeaderName, HeaderValue, Method, StatusCode};
use axum::middleware::Next;
use axum::response::Response;
use taco_ledger::Dice;
use tokio::time::Instant;
use tracing::{Instrument, Span};

const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

pub(crate) async fn observe(State(dice): State<Dice>, mut request: Request, next: Next) -> Response {
    let id = request_id(&request, &dice);
    // Handlers find the id here, whether the client sent it or not.
    request.headers_mut().insert(REQUEST_ID, id.clone());
    let mut observation = Observation::begin(&request, &id);
    let span = observation.span.clone();
    let mut response = next.run(request).instrument(span).await;
    response.headers_mut().insert(REQUEST_ID, id);
    observation.status = Some(response.status());
    response
}

/// The client's own id, if it could be one, so that logs of several programs can be matched.
fn request_id(request: &Request, dice: &Dice) -> HeaderValue {
    let is_sane = |id: &&HeaderValue| {
        let bytes = id.as_bytes();
        (1..=128).contains(&bytes.len())
            && bytes.iter().all(|byte| byte.is_ascii_alphanumeric() || b"-_.:=+/".contains(byte))
    };
    let given = request.headers().get(REQUEST_ID).filter(is_sane).cloned();
    given.unwrap_or_else(|| HeaderValue::try_from(dice.unique()).expect("hexadecimal digits fit in a header"))
}

/// What is known of a request. It is written down when dropped, so also where the client went away meanwhile.
struct Observation {
    begun: Instant,
    method: &'static str,
    route: String,
    status: Option<StatusCode>,
    span: Span,
}

impl Observation {
    fn begin(request: &Request, id: &HeaderValue) -> Self {
        let route = request.extensions().get::<MatchedPath>().map_or("unmatched", MatchedPath::as_str).to_owned();
        let id = id.to_str().unwrap_or_default();
        // An error's span is there at every log level, and so the id is on every line.
        let span = tracing::error_span!("request", request_id = id);
        Self { begun: Instant::now(), method: known(request.method()), route, status: None, span }
    }
}

impl Drop for Observation {
    fn drop(&mut self) {
        let (method, route, elapsed) = (self.method, self.route.as_str(), self.begun.elapsed());
        let status = self.status.map_or("gone".to_owned(), |status| status.as_str().to_owned());
        let ms = elapsed.as_micros() as f64 / 1000.0;
        self.span.in_scope(|| tracing::info!(target: "taco_server::access", method, route, status, ms));
        let labels = [("route", self.route.clone()), ("method", method.to_owned()), ("status", status)];
        metrics::counter!("taco_http_requests_total", &labels).increment(1);
        metrics::histogram!("taco_http_request_seconds", &labels).record(elapsed);
    }
}

/// Clients may make up methods; series in Prometheus must not grow with them.
fn known(method: &Method) -> &'static str {
    match method.as_str() {
        "GET" => "GET",
        "HEAD" => "HEAD",
        "POST" => "POST",
        "PUT" => "PUT",
        "PATCH" => "PATCH",
        "DELETE" => "DELETE",
        "OPTIONS" => "OPTIONS",
        "LOCK" => "LOCK",
        "UNLOCK" => "UNLOCK",
        _ => "other",
    }
}
