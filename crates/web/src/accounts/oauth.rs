//! `/oauth/token`: a client's code, which [`crate::consent`] gave, becomes a token. Answers are JSON, as RFC 6749 has it.

use axum::Json;
use axum::extract::State;
use axum::extract::rejection::FormRejection;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde::Deserialize;
use serde_json::json;
use taco_control_plane::{CodeExchange, Error};
use taco_domain::grant::CLIENT;

use crate::Web;

#[derive(Deserialize)]
pub(crate) struct TokenRequest {
    grant_type: String,
    client_id: String,
    code: String,
    code_verifier: String,
    redirect_uri: String,
}

fn refusal(status: StatusCode, error: &str, description: &str) -> Response {
    (status, Json(json!({ "error": error, "error_description": description }))).into_response()
}

/// `POST /oauth/token`
pub(crate) async fn token(State(web): State<Web>, form: Result<axum::Form<TokenRequest>, FormRejection>) -> Response {
    let refuse = |error, description: &str| refusal(StatusCode::BAD_REQUEST, error, description);
    let form = match form {
        Ok(axum::Form(form)) => form,
        Err(rejection) => return refuse("invalid_request", &rejection.body_text()),
    };
    if form.grant_type != "authorization_code" {
        return refuse("unsupported_grant_type", "the only grant type is authorization_code");
    }
    if form.client_id != CLIENT {
        return refuse("invalid_client", "there is no such client");
    }
    let exchange = CodeExchange {
        client: form.client_id,
        redirect_uri: form.redirect_uri,
        code: form.code,
        code_verifier: form.code_verifier,
    };
    match web.control_plane.exchange_code(exchange).await {
        Ok(issued) => Json(json!({ "access_token": issued.text.reveal(), "token_type": "bearer" })).into_response(),
        Err(error @ (Error::Unavailable(_) | Error::Corrupt(_) | Error::Sealed(_))) => {
            tracing::error!(event = "oauth_exchange_failed", ?error, "a code could not be exchanged");
            refusal(StatusCode::SERVICE_UNAVAILABLE, "server_error", &error.to_string())
        }
        Err(error) => {
            tracing::info!(%error, "a code was refused");
            refuse("invalid_grant", &error.to_string())
        }
    }
}
