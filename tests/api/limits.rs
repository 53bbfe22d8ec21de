//! Requests that are too large or too late.

use std::sync::Arc;

use axum::body::Body;
use axum::http::StatusCode;
use bytes::Bytes;
use futures::stream;
use harness::api_server::ApiServer;
use jiff::SignedDuration;
use serde_json::json;
use taco_control_plane::LARGEST_STATE;
use taco_ledger::Location;

use crate::configuration_versions::announce as announce_configuration;
use crate::states::{announcement, lock, path_of, push, state};

const PIECE: usize = 1024 * 1024;

/// A state that never ends in time: one byte more than is allowed, without a length announced beforehand.
fn one_byte_too_many() -> Body {
    let beginning = Bytes::from_static(br#"{"version":4,"serial":2,"lineage":"a","outputs":{},"resources":["#);
    let rest = LARGEST_STATE + 1 - beginning.len() as u64;
    let piece = Bytes::from(vec![b' '; PIECE]);
    let pieces = (0..rest.div_ceil(PIECE as u64)).map(move |number| {
        let left = usize::try_from(rest - number * PIECE as u64).unwrap_or(PIECE);
        piece.slice(..left.min(PIECE))
    });
    Body::from_stream(stream::iter([beginning].into_iter().chain(pieces).map(Ok::<_, std::io::Error>)))
}

#[tokio::test]
async fn a_state_that_is_too_large_is_refused_and_changes_nothing() {
    // In memory it would take as much memory.
    let directory = tempfile::tempdir().expect("a directory");
    let bucket = Location::directory(directory.path()).open().expect("a bucket");
    let server = ApiServer::start_on(Arc::new(bucket)).await;
    let admin = server.admin();
    server.given_organization("acme").await;
    let workspace = server.given_workspace("acme", "web").await;
    lock(&admin, &workspace).await.expect(StatusCode::OK);
    push(&admin, &workspace, 1, "a", "x").await.expect(StatusCode::CREATED);

    let body = json!({ "data": { "type": "state-versions", "attributes": {
        "serial": 2, "lineage": "a", "md5": "0".repeat(32),
    } } });
    let announced = admin.post(&format!("/api/v2/workspaces/{workspace}/state-versions"), &body).await;
    let upload = path_of(&announced.expect(StatusCode::CREATED).attribute("hosted-state-upload-url"));
    let anyone = server.with_authorization(None);
    server.given_workspace("acme", "other").await;
    let backend = "/api/http-backend/acme/other";
    admin.send("LOCK", &format!("{backend}/lock"), None, r#"{"ID":"one"}"#).await.expect(StatusCode::OK);
    // Tofu sends JSON along with a state that it encrypts. It is not kept, but all of it has to come and go.
    let encrypted = server.given_workspace("acme", "encrypted").await;
    lock(&admin, &encrypted).await.expect(StatusCode::OK);
    let state_of_tofu = br#"{"serial":1,"lineage":"a","encrypted_data":"xx","encryption_version":"v0","meta":{}}"#;
    let versions = format!("/api/v2/workspaces/{encrypted}/state-versions");
    let announced = admin.post(&versions, &announcement(1, "a", state_of_tofu)).await.expect(StatusCode::CREATED);
    let address = |attribute: &str| path_of(&announced.attribute(attribute));
    anyone.send("PUT", &address("hosted-state-upload-url"), None, state_of_tofu.to_vec()).await.expect(StatusCode::OK);
    for answer in [
        anyone.send("PUT", &address("hosted-json-state-upload-url"), None, one_byte_too_many()).await,
        anyone.send("PUT", &upload, None, one_byte_too_many()).await,
        admin.send("POST", &format!("{backend}?ID=one"), None, one_byte_too_many()).await,
    ] {
        let detail = answer.expect(StatusCode::PAYLOAD_TOO_LARGE).error().0;
        assert!(detail.contains("268435456 bytes"), "{detail}");
    }
    admin.get(backend).await.expect(StatusCode::NO_CONTENT);
    let web = admin.get("/api/http-backend/acme/web").await.expect(StatusCode::OK);
    assert_eq!(web.bytes, state(1, "a", "x"));
}

#[tokio::test]
async fn addresses_for_uploads_end() {
    let server = ApiServer::start().await;
    let admin = server.admin();
    server.given_organization("acme").await;
    let workspace = server.given_workspace("acme", "web").await;
    lock(&admin, &workspace).await.expect(StatusCode::OK);
    let body = json!({ "data": { "type": "state-versions", "attributes": {
        "serial": 1, "lineage": "a", "md5": "0".repeat(32),
    } } });
    let announced = admin.post(&format!("/api/v2/workspaces/{workspace}/state-versions"), &body).await;
    let announced = announced.expect(StatusCode::CREATED);
    let configuration = announce_configuration(&admin, &workspace, json!({})).await.expect(StatusCode::CREATED);
    // The last first: once its state was refused, its JSON is not awaited.
    let addresses = [
        announced.attribute("hosted-json-state-upload-url"),
        announced.attribute("hosted-state-upload-url"),
        configuration.attribute("upload-url"),
    ];
    let anyone = server.with_authorization(None);
    for address in &addresses {
        let early = anyone.send("PUT", &path_of(address), None, "nonsense").await;
        assert_ne!(early.status, StatusCode::NOT_FOUND, "{address}");
    }
    server.pass(SignedDuration::from_hours(26));
    let altered = format!("{}x", path_of(&addresses[0]));
    let refused = anyone.send("PUT", &altered, None, "nonsense").await.expect(StatusCode::NOT_FOUND);
    for address in &addresses {
        let late = anyone.send("PUT", &path_of(address), None, "nonsense").await.expect(StatusCode::NOT_FOUND);
        assert_eq!(late.bytes, refused.bytes, "nobody learns what is wrong with an address");
    }
}
