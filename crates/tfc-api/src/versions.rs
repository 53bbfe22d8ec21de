//! `/versions`: what runs here, and which engines runs can have without a download.

use std::collections::{BTreeMap, BTreeSet};

use axum::Json;
use axum::extract::State;
use serde::Serialize;
use taco_control_plane::ControlPlane;

#[derive(Serialize)]
pub(crate) struct Versions {
    server: &'static str,
    /// By the engine's name, those that any agent has.
    engines: BTreeMap<String, BTreeSet<String>>,
}

/// `GET /versions`
pub(crate) async fn versions(State(control_plane): State<ControlPlane>) -> Json<Versions> {
    let mut engines: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for engine in control_plane.presence().agents().iter().flat_map(|agent| &agent.engines) {
        if let Some((name, version)) = engine.split_once(' ') {
            engines.entry(name.to_owned()).or_default().insert(version.to_owned());
        }
    }
    Json(Versions { server: env!("CARGO_PKG_VERSION"), engines })
}
