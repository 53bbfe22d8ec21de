//! `/.well-known/terraform.json`: where terraform finds which service of ours.

use axum::Json;
use serde_json::{Value, json};
use taco_domain::grant::{CLIENT, PORTS};

/// If only some of the `tfe` versions were there, clients that want another would say that taco lacks it.
pub(crate) async fn discovery() -> Json<Value> {
    Json(json!({
        "tfe.v2": "/api/v2/",
        "tfe.v2.1": "/api/v2/",
        "tfe.v2.2": "/api/v2/",
        "state.v2": "/api/v2/",
        "modules.v1": "/api/registry/v1/modules/",
        "providers.v1": "/api/registry/v1/providers/",
        "login.v1": {
            "client": CLIENT,
            "grant_types": ["authz_code"],
            "authz": "/oauth/authorize",
            "token": "/oauth/token",
            // The last is excluded.
            "ports": [PORTS.start(), PORTS.end() + 1],
        },
    }))
}
