//! `/.well-known/terraform.json`: where terraform finds which service of ours.

use axum::Json;
use serde_json::{Value, json};

/// Clients listen on one of these ports for the answer to a login; the last is excluded.
const FIRST_PORT: u16 = 10_000;
const LAST_PORT: u16 = 10_010;

/// If only some of the `tfe` versions were there, clients that want another would say that taco lacks it.
pub(crate) async fn discovery() -> Json<Value> {
    Json(json!({
        "tfe.v2": "/api/v2/",
        "tfe.v2.1": "/api/v2/",
        "tfe.v2.2": "/api/v2/",
        "state.v2": "/api/v2/",
        "login.v1": {
            "client": "terraform-cli",
            "grant_types": ["authz_code"],
            "authz": "/oauth/authorize",
            "token": "/oauth/token",
            "ports": [FIRST_PORT, LAST_PORT],
        },
    }))
}
