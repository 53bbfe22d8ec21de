//! `/versions`: what runs here, and which engines runs can have without a download. What agents of pools have is their
//! organizations' business.

use axum::Json;
use axum::extract::State;
use serde::Serialize;
use taco_control_plane::{ControlPlane, EnginesAtAgents};

#[derive(Serialize)]
pub(crate) struct Versions {
    server: &'static str,
    engines: EnginesAtAgents,
}

/// `GET /versions`
pub(crate) async fn versions(State(control_plane): State<ControlPlane>) -> Json<Versions> {
    let engines = control_plane.presence().engines_within_servers();
    Json(Versions { server: env!("CARGO_PKG_VERSION"), engines })
}
