//! What a request may be at most. The limits on its head are in `connections`, which sees the head first.

use std::time::Duration;

use axum::extract::Request;
use axum::http::StatusCode;
use axum::middleware::Next;
use axum::response::Response;

use crate::error_document::error_document;

/// Of a body that a handler takes whole. Routes that stream uploads set their own.
pub(crate) const BODY: usize = 1024 * 1024;

/// A body may take as long as it needs, but not pause for longer.
pub(crate) const BODY_PAUSE: Duration = Duration::from_secs(30);

/// For handlers that have nothing to wait for but the bucket, which gives up earlier.
pub(crate) const HANDLER: Duration = Duration::from_secs(30);

const PATH: usize = 2048;
const PARAMETERS: usize = 100;

/// Refuses addresses that no client of ours makes.
pub(crate) async fn address(request: Request, next: Next) -> Response {
    let uri = request.uri();
    if uri.path().len() > PATH {
        let detail = format!("A path may have {PATH} bytes; this one has {}.", uri.path().len());
        return error_document(StatusCode::URI_TOO_LONG, "path too long", &detail);
    }
    let parameters = uri.query().map_or(0, |query| 1 + query.matches('&').count());
    if parameters > PARAMETERS {
        let detail = format!("There may be {PARAMETERS} query parameters; here are {parameters}.");
        return error_document(StatusCode::BAD_REQUEST, "too many query parameters", &detail);
    }
    next.run(request).await
}
