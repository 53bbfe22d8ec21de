//! Error responses: a JSON:API document, as terraform and its libraries expect.

use axum::Json;
use axum::http::StatusCode;
use axum::http::header::{CONTENT_TYPE, HeaderValue};
use axum::response::{IntoResponse, Response};
use serde_json::json;

/// `detail` helps the caller and gives nothing away.
pub fn error_document(status: StatusCode, title: &str, detail: &str) -> Response {
    let document = json!({ "errors": [{ "status": status.as_str(), "title": title, "detail": detail }] });
    let mut response = (status, Json(document)).into_response();
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/vnd.api+json"));
    response
}
