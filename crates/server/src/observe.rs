//! Every request gets an id, a line in the access log and a place in the metrics.
//!
//! None of them holds the path, the query or a header: a path can hold a name, and a query or header a secret. The
//! route stands for the path, which also bounds how many series Prometheus has to keep.

use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use axum::extract::{MatchedPath, Request};
use axum::http::{HeaderName, HeaderValue, Method, StatusCode};
use axum::response::Response;
use metrics::{Counter, Histogram};
use taco_ledger::SharedRng;
use tokio::time::Instant;
use tracing::Span;

use crate::access_log::ACCESS;

const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// Placeholder for the status in the access log and the metrics when the client went away meanwhile.
const GONE: &str = "gone";

/// Observes the requests of one listener. Clones share what they count.
#[derive(Clone)]
pub(crate) struct Observer {
    rng: SharedRng,
    series: Arc<AllSeries>,
}

impl Observer {
    /// Requires that the metrics recorder was installed before.
    pub(crate) fn new(rng: SharedRng) -> Self {
        Self { rng, series: Arc::default() }
    }

    /// Gives a request its id, and writes down what becomes of it.
    pub(crate) fn begin(&self, request: &mut Request) -> Observation {
        let id = self.request_id(request);
        // Handlers find the id here, whether the client sent it or not.
        request.headers_mut().insert(REQUEST_ID, id.clone());
        // An error's span is there at every log level, and so the id is on every line.
        let span = tracing::error_span!("request", request_id = id.to_str().unwrap_or_default());
        Observation {
            begun: Instant::now(),
            method: known(request.method()),
            route: request.extensions().get::<MatchedPath>().cloned(),
            id: Some(id),
            status: None,
            span,
            series: Arc::clone(&self.series),
        }
    }

    /// The client's own id, if it could be one, so that logs of several programs can be matched.
    fn request_id(&self, request: &Request) -> HeaderValue {
        let is_sane = |id: &&HeaderValue| {
            let bytes = id.as_bytes();
            (1..=128).contains(&bytes.len())
                && bytes.iter().all(|byte| byte.is_ascii_alphanumeric() || b"-_.:=+/".contains(byte))
        };
        let given = request.headers().get(REQUEST_ID).filter(is_sane).cloned();
        given.unwrap_or_else(|| HeaderValue::try_from(self.rng.unique()).expect("hexadecimal digits fit in a header"))
    }
}

/// Observed data of a request. It is recorded when dropped, so also if the client went away meanwhile.
pub(crate) struct Observation {
    begun: Instant,
    method: &'static str,
    route: Option<MatchedPath>,
    /// Request id, until it is on the response.
    id: Option<HeaderValue>,
    status: Option<StatusCode>,
    span: Span,
    series: Arc<AllSeries>,
}

impl Observation {
    /// Span for log lines about the request.
    pub(crate) fn span(&self) -> Span {
        self.span.clone()
    }

    /// The request was answered.
    pub(crate) fn end(mut self, response: &mut Response) {
        if let Some(id) = self.id.take() {
            response.headers_mut().insert(REQUEST_ID, id);
        }
        self.status = Some(response.status());
    }
}

impl Drop for Observation {
    fn drop(&mut self) {
        let route = self.route.as_ref().map_or("unmatched", MatchedPath::as_str);
        let (method, elapsed) = (self.method, self.begun.elapsed());
        let status = self.status.as_ref().map_or(GONE, StatusCode::as_str);
        let ms = elapsed.as_micros() as f64 / 1000.0;
        self.span.in_scope(|| tracing::info!(target: ACCESS, method, route, status, ms));
        self.series.count(route, method, self.status, elapsed);
    }
}

/// The counters and histograms of all requests so far. To look one up by its labels costs the recorder several copies
/// of them, so those that were used once are kept. There are as many as Prometheus has series.
#[derive(Default)]
struct AllSeries(RwLock<HashMap<String, Vec<Series>>>);

/// Metrics of the requests of one route, one method and one status.
struct Series {
    method: &'static str,
    status: Option<StatusCode>,
    requests: Counter,
    seconds: Histogram,
}

impl Series {
    fn new(route: &str, method: &'static str, status: Option<StatusCode>) -> Self {
        let text = status.as_ref().map_or(GONE, StatusCode::as_str);
        let labels = [("route", route.to_owned()), ("method", method.to_owned()), ("status", text.to_owned())];
        let requests = metrics::counter!("taco_http_requests_total", &labels);
        let seconds = metrics::histogram!("taco_http_request_seconds", &labels);
        Self { method, status, requests, seconds }
    }

    fn count(&self, elapsed: Duration) {
        self.requests.increment(1);
        self.seconds.record(elapsed);
    }
}

impl AllSeries {
    fn count(&self, route: &str, method: &'static str, status: Option<StatusCode>, elapsed: Duration) {
        let is_wanted = |series: &&Series| series.status == status && series.method == method;
        let known = self.0.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(series) = known.get(route).and_then(|of_route| of_route.iter().find(is_wanted)) {
            return series.count(elapsed);
        }
        drop(known);
        let series = Series::new(route, method, status);
        series.count(elapsed);
        let mut known = self.0.write().unwrap_or_else(PoisonError::into_inner);
        let of_route = known.entry(route.to_owned()).or_default();
        // Another request may have been first; both count for the same series.
        if !of_route.iter().any(|known| is_wanted(&known)) {
            of_route.push(series);
        }
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
