//! `/api/v2/ping`: clients read the headers.

use axum::http::StatusCode;

/// `GET /api/v2/ping`: clients read the headers.
pub(crate) async fn ping() -> StatusCode {
    StatusCode::NO_CONTENT
}
