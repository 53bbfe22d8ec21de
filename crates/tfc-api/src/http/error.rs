//! Error responses: JSON:API errors, always.

use axum::Json;
use axum::http::header::{CONTENT_TYPE, HeaderName, HeaderValue, RETRY_AFTER, WWW_AUTHENTICATE};
use axum::http::{Method, StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use taco_control_plane::Error;
use taco_domain::InvalidAttribute;
use taco_domain::attribute::shown;

use crate::document::MEDIA_TYPE;

/// A JSON:API error response. Texts help the caller and give nothing away.
#[derive(Debug)]
pub(crate) struct ApiError {
    status: StatusCode,
    errors: Vec<ErrorObject>,
    header: Option<(HeaderName, HeaderValue)>,
}

#[derive(Serialize, Debug)]
struct ErrorObject {
    status: String,
    title: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    detail: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    source: Option<Source>,
}

#[derive(Serialize, Debug)]
struct Source {
    #[serde(skip_serializing_if = "Option::is_none")]
    pointer: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    parameter: Option<String>,
}

#[derive(Serialize)]
struct ErrorDocument<'a> {
    errors: &'a [ErrorObject],
}

impl ApiError {
    pub(crate) fn new(status: StatusCode, title: &'static str, detail: impl Into<String>) -> Self {
        let error =
            ErrorObject { status: status.as_str().to_owned(), title, detail: Some(detail.into()), source: None };
        Self { status, errors: vec![error], header: None }
    }

    /// Not there, or not for this caller to know. All such answers are the same, byte by byte.
    pub(crate) fn not_found() -> Self {
        let status = StatusCode::NOT_FOUND;
        let error = ErrorObject { status: status.as_str().to_owned(), title: "not found", detail: None, source: None };
        Self { status, errors: vec![error], header: None }
    }

    pub(crate) fn bad_request(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "bad request", detail)
    }

    /// A part of the body that cannot be as it was sent.
    pub(crate) fn invalid(pointer: impl Into<String>, detail: impl Into<String>) -> Self {
        Self::new(StatusCode::UNPROCESSABLE_ENTITY, "invalid attribute", detail)
            .at(Source { pointer: Some(pointer.into()), parameter: None })
    }

    /// A part of the query that cannot be as it was sent.
    pub(crate) fn parameter(name: &str, detail: impl Into<String>) -> Self {
        Self::bad_request(detail).at(Source { pointer: None, parameter: Some(name.to_owned()) })
    }

    pub(crate) fn unauthorized(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::UNAUTHORIZED, "unauthorized", detail).with(WWW_AUTHENTICATE, "Bearer")
    }

    pub(crate) fn too_large(limit: u64) -> Self {
        let detail = format!("the request is too large: at most {limit} bytes are taken");
        Self::new(StatusCode::PAYLOAD_TOO_LARGE, "too large", detail)
    }

    /// Tells of another thing that is wrong with the same request.
    pub(crate) fn and(mut self, other: Self) -> Self {
        self.errors.extend(other.errors);
        self
    }

    pub(crate) fn with(mut self, name: HeaderName, value: &'static str) -> Self {
        self.header = Some((name, HeaderValue::from_static(value)));
        self
    }

    fn at(mut self, source: Source) -> Self {
        if let Some(error) = self.errors.first_mut() {
            error.source = Some(source);
        }
        self
    }
}

/// No wildcard: a new kind of error must choose its status.
impl From<Error> for ApiError {
    fn from(error: Error) -> Self {
        match &error {
            Error::NotFound(_) => Self::not_found(),
            Error::Invalid { pointer, detail } => Self::invalid(pointer.clone(), detail.clone()),
            Error::Conflict(detail) => Self::new(StatusCode::CONFLICT, "conflict", detail.clone()),
            // As Terraform Cloud does. The reason may be told: the caller may know that the thing exists.
            Error::Denied(reason) => Self::new(StatusCode::NOT_FOUND, "not found", reason.clone()),
            Error::Unauthorized(reason) => Self::unauthorized(reason.clone()),
            Error::TooLarge { limit } => Self::too_large(*limit),
            Error::TooManyRequests { detail, retry_after } => {
                let refused = Self::new(StatusCode::TOO_MANY_REQUESTS, "too many requests", detail.clone());
                Self { header: Some((RETRY_AFTER, retry_after.as_secs().max(1).into())), ..refused }
            }
            Error::Unavailable(cause) => {
                tracing::warn!(event = "request_unavailable", %cause, "a request could not be served");
                Self::new(StatusCode::SERVICE_UNAVAILABLE, "service unavailable", error.to_string())
                    .with(RETRY_AFTER, "5")
            }
            Error::Sealed(cause) => {
                tracing::error!(
                    event = "request_decryption_failed",
                    cause,
                    "a request met something that no key opens"
                );
                Self::new(StatusCode::INTERNAL_SERVER_ERROR, "internal error", error.to_string())
            }
            Error::Corrupt(cause) => {
                tracing::error!(event = "request_corrupt_data", %cause, "a request met something damaged");
                Self::new(StatusCode::INTERNAL_SERVER_ERROR, "internal error", error.to_string())
            }
        }
    }
}

impl From<InvalidAttribute> for ApiError {
    fn from(invalid: InvalidAttribute) -> Self {
        Self::invalid(invalid.pointer(), invalid.detail)
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let mut response = (self.status, Json(ErrorDocument { errors: &self.errors })).into_response();
        response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(MEDIA_TYPE));
        if let Some((name, value)) = self.header {
            response.headers_mut().insert(name, value);
        }
        response
    }
}

/// Answers for paths below `/api` that nothing serves.
pub(crate) async fn no_such_path(uri: Uri) -> ApiError {
    ApiError::new(StatusCode::NOT_FOUND, "not found", format!("There is nothing at {}.", shown(uri.path())))
}

/// The router adds the header `allow`.
pub(crate) async fn no_such_method(method: Method, uri: Uri) -> ApiError {
    let detail = format!("{method} is not possible at {}; the header `allow` lists what is.", shown(uri.path()));
    ApiError::new(StatusCode::METHOD_NOT_ALLOWED, "method not allowed", detail)
}
