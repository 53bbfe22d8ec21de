//! Limits on requests. Those on the head are in `connections`, which sees the head first; the pace of the body is in
//! `body_pace`.

use std::time::Duration;

use axum::extract::Request;
use axum::http::StatusCode;
use axum::response::Response;

use crate::error_document::error_document;

/// Limit of a body that a handler takes whole. Routes that stream uploads set their own.
pub(crate) const MAX_BODY_BYTES: usize = 1024 * 1024;

/// Timeout for handlers that have nothing to wait for but the bucket, which gives up earlier.
pub(crate) const HANDLER_TIMEOUT: Duration = Duration::from_secs(30);

/// Marks a request whose head says both that its body is chunked and how long it is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AmbiguousLength;

const MAX_PATH_BYTES: usize = 2048;
const MAX_QUERY_PARAMETERS: usize = 100;

/// Refuses heads that no client of ours makes.
pub(crate) fn refuse_head(request: &Request) -> Option<Response> {
    if request.extensions().get::<AmbiguousLength>().is_some() {
        let detail = "Content-Length and Transfer-Encoding are both there; a request has one of them.";
        return Some(error_document(StatusCode::BAD_REQUEST, "bad request", detail));
    }
    let uri = request.uri();
    if uri.path().len() > MAX_PATH_BYTES {
        let detail = format!("A path may have {MAX_PATH_BYTES} bytes; this one has {}.", uri.path().len());
        return Some(error_document(StatusCode::URI_TOO_LONG, "path too long", &detail));
    }
    let parameters = uri.query().map_or(0, |query| 1 + query.matches('&').count());
    if parameters > MAX_QUERY_PARAMETERS {
        let detail = format!("There may be {MAX_QUERY_PARAMETERS} query parameters; here are {parameters}.");
        return Some(error_document(StatusCode::BAD_REQUEST, "too many query parameters", &detail));
    }
    None
}
