use axum::Json;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde_json::json;
use taco_agent_protocol::LogConflict;
use taco_control_plane::Error;

/// Error response to an agent.
pub(crate) enum AgentError {
    Refused(Error),
    /// Its log goes on elsewhere.
    LogConflict(LogConflict),
}

impl From<Error> for AgentError {
    fn from(error: Error) -> Self {
        Self::Refused(error)
    }
}

impl IntoResponse for AgentError {
    fn into_response(self) -> Response {
        let error = match self {
            Self::LogConflict(conflict) => return (StatusCode::CONFLICT, Json(conflict)).into_response(),
            Self::Refused(error) => error,
        };
        let status = match &error {
            Error::NotFound(_) => StatusCode::NOT_FOUND,
            Error::Invalid { .. } => StatusCode::UNPROCESSABLE_ENTITY,
            Error::Conflict(_) => StatusCode::CONFLICT,
            Error::Denied(_) => StatusCode::FORBIDDEN,
            Error::Unauthorized(_) => StatusCode::UNAUTHORIZED,
            Error::TooLarge { .. } => StatusCode::PAYLOAD_TOO_LARGE,
            Error::TooManyRequests { .. } => StatusCode::TOO_MANY_REQUESTS,
            Error::Unavailable(cause) => {
                tracing::warn!(event = "agent_request_unavailable", %cause, "an agent's request has to wait");
                StatusCode::SERVICE_UNAVAILABLE
            }
            Error::Corrupt(cause) => {
                tracing::error!(
                    event = "agent_request_corrupt_data", %cause,
                    "an agent's request met something damaged"
                );
                StatusCode::INTERNAL_SERVER_ERROR
            }
            Error::Sealed(cause) => {
                tracing::error!(
                    event = "agent_request_decryption_failed",
                    cause,
                    "an agent's request met something that cannot be opened"
                );
                StatusCode::INTERNAL_SERVER_ERROR
            }
        };
        let document = json!({"errors": [{"status": status.as_str(), "title": status.canonical_reason(), "detail": error.to_string()}]});
        (status, Json(document)).into_response()
    }
}

/// The token of a request.
pub(crate) fn bearer(headers: &HeaderMap) -> Result<&str, AgentError> {
    let value = headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
    let token = value.and_then(|value| value.strip_prefix("Bearer ")).map(str::trim);
    let missing = || Error::Unauthorized("send a token as `Authorization: Bearer …`".to_owned());
    Ok(token.ok_or_else(missing)?)
}
