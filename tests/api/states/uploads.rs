//! Bytes on their way to an announced state, and what becomes of it when they are not the right ones.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::http::StatusCode;
use bytes::Bytes;
use futures::{StreamExt, stream};
use harness::api_server::{Answer, ApiServer};
use taco_ledger::Location;
use tokio::runtime::Builder;
use tokio::sync::watch;
use tokio::time::timeout;

use super::{announcement, lock, locked_workspace, path_of, push, state};

/// Long enough for a machine that is busy with other tests.
const UPLOAD_TIMEOUT: Duration = Duration::from_secs(60);

async fn announce(server: &ApiServer, workspace: &str, serial: u64, bytes: &[u8]) -> Answer {
    let path = format!("/api/v2/workspaces/{workspace}/state-versions");
    server.admin().post(&path, &announcement(serial, "a", bytes)).await.expect(StatusCode::CREATED)
}

fn address(announced: &Answer) -> String {
    path_of(&announced.attribute("hosted-state-upload-url"))
}

fn json_address(announced: &Answer) -> String {
    path_of(&announced.attribute("hosted-json-state-upload-url"))
}

async fn put(server: &ApiServer, address: &str, body: impl Into<Body>) -> Answer {
    server.with_authorization(None).send("PUT", address, None, body).await
}

/// A body whose last byte comes when someone says so.
fn slow(bytes: Vec<u8>, mut go: watch::Receiver<bool>) -> Body {
    let mut beginning = Bytes::from(bytes);
    let end = beginning.split_off(beginning.len() - 1);
    let end = stream::once(async move {
        go.wait_for(|go| *go).await.expect("the sender is there");
        Ok::<_, io::Error>(end)
    });
    Body::from_stream(stream::iter([Ok(beginning)]).chain(end))
}

/// On a directory with few blocking threads, so that few clients would be enough to take them all.
#[test]
fn clients_that_take_their_time_hold_up_nobody() {
    let runtime = Builder::new_current_thread().enable_all().max_blocking_threads(2).build().expect("a runtime");
    runtime.block_on(async {
        let directory = tempfile::tempdir().expect("a directory");
        let bucket = Location::directory(directory.path()).open().expect("a bucket");
        let server = Arc::new(ApiServer::start_on(Arc::new(bucket)).await);
        server.given_organization("acme").await;
        let large = state(1, "a", &"x".repeat(2 * 1024 * 1024));
        let (say, go) = watch::channel(false);
        let mut slow_ones = Vec::new();
        for number in 0..6 {
            let workspace = server.given_workspace("acme", &format!("slow-{number}")).await;
            lock(&server.admin(), &workspace).await.expect(StatusCode::OK);
            let address = address(&announce(&server, &workspace, 1, &large).await);
            let (server, body) = (Arc::clone(&server), slow(large.clone(), go.clone()));
            slow_ones.push(tokio::spawn(async move { put(&server, &address, body).await }));
        }
        // They begin.
        tokio::time::sleep(Duration::from_millis(200)).await;
        let honest = async {
            let workspace = server.given_workspace("acme", "honest").await;
            lock(&server.admin(), &workspace).await.expect(StatusCode::OK);
            push(&server.admin(), &workspace, 1, "a", "x").await.expect(StatusCode::CREATED);
            let address =
                address(&announce(&server, &workspace, 2, &state(2, "a", &"y".repeat(2 * 1024 * 1024))).await);
            put(&server, &address, state(2, "a", &"y".repeat(2 * 1024 * 1024))).await.expect(StatusCode::OK);
        };
        timeout(UPLOAD_TIMEOUT, honest).await.expect("the slow ones hold up nobody");
        say.send_replace(true);
        for slow in slow_ones {
            let answer = timeout(UPLOAD_TIMEOUT, slow).await.expect("an answer").expect("no panic");
            answer.expect(StatusCode::OK);
        }
    });
}

#[tokio::test]
async fn a_few_attempts_to_send_one_state_are_taken_at_a_time() {
    let server = Arc::new(ApiServer::start().await);
    let workspace = locked_workspace(&server).await;
    let bytes = state(1, "a", "x");
    let address = address(&announce(&server, &workspace, 1, &bytes).await);
    let (say, go) = watch::channel(false);
    let mut attempts = Vec::new();
    for _ in 0..4 {
        let (server, address, body) = (Arc::clone(&server), address.clone(), slow(bytes.clone(), go.clone()));
        attempts.push(tokio::spawn(async move { put(&server, &address, body).await }));
    }
    tokio::time::sleep(Duration::from_millis(100)).await;
    let refused = put(&server, &address, bytes.clone()).await.expect(StatusCode::CONFLICT);
    assert!(refused.error().0.contains("already in progress"), "{:?}", refused.error());
    say.send_replace(true);
    for attempt in attempts {
        attempt.await.expect("no panic").expect(StatusCode::OK);
    }
    put(&server, &address, bytes).await.expect(StatusCode::OK);
}

#[tokio::test]
async fn a_state_that_was_refused_keeps_nobody_from_unlocking() {
    let server = ApiServer::start().await;
    let admin = server.admin();
    let workspace = locked_workspace(&server).await;
    let unlock = format!("/api/v2/workspaces/{workspace}/actions/unlock");
    let right = state(1, "a", "x");
    for wrong in [b"{".to_vec(), state(2, "a", "x"), state(1, "a", "y"), vec![b' '; 2 * 1024 * 1024]] {
        let address = address(&announce(&server, &workspace, 1, &right).await);
        put(&server, &address, wrong).await.expect(StatusCode::UNPROCESSABLE_ENTITY);
        put(&server, &address, right.clone()).await.expect(StatusCode::NOT_FOUND);
        admin.act(&unlock).await.expect(StatusCode::OK);
        lock(&admin, &workspace).await.expect(StatusCode::OK);
    }
    let address = address(&announce(&server, &workspace, 1, &right).await);
    // A connection that breaks is the network's fault: the client sends again.
    let cut = stream::iter([Ok(Bytes::from_static(b"{")), Err(io::Error::other("the network is gone"))]);
    put(&server, &address, Body::from_stream(cut)).await.expect(StatusCode::UNPROCESSABLE_ENTITY);
    admin.act(&unlock).await.expect(StatusCode::UNPROCESSABLE_ENTITY);
    put(&server, &address, right).await.expect(StatusCode::OK);
    admin.act(&unlock).await.expect(StatusCode::OK);
}

#[tokio::test]
async fn what_comes_as_json_is_json_and_goes_with_its_state() {
    let server = ApiServer::start().await;
    let admin = server.admin();
    let workspace = locked_workspace(&server).await;
    let bytes = state(1, "a", "x");
    let announced = announce(&server, &workspace, 1, &bytes).await;
    let large = format!("[\"{}\"]", "x".repeat(2 * 1024 * 1024));
    for wrong in ["", "nonsense", "{}{}", &large[1..]] {
        let refused = put(&server, &json_address(&announced), wrong.to_owned()).await;
        let detail = refused.expect(StatusCode::UNPROCESSABLE_ENTITY).error().0;
        assert!(detail.contains("not JSON"), "{detail}");
    }
    put(&server, &json_address(&announced), large.clone()).await.expect(StatusCode::OK);
    put(&server, &address(&announced), bytes).await.expect(StatusCode::OK);
    push(&admin, &workspace, 2, "a", "y").await.expect(StatusCode::CREATED);
    let version = format!("/api/v2/state-versions/{}", announced.id());
    let read = admin.get(&version).await.expect(StatusCode::OK);
    let download = path_of(&read.attribute("hosted-json-state-download-url"));
    assert_eq!(admin.get(&download).await.expect(StatusCode::OK).bytes, large);

    admin.act(&format!("{version}/actions/soft_delete_backing_data")).await.expect(StatusCode::NO_CONTENT);
    let read = admin.get(&version).await.expect(StatusCode::OK);
    assert!(read.attribute("hosted-json-state-download-url").is_null());
    admin.get(&download).await.expect(StatusCode::NOT_FOUND);
    put(&server, &json_address(&announced), large.clone()).await.expect(StatusCode::NOT_FOUND);
    admin.act(&format!("{version}/actions/restore_backing_data")).await.expect(StatusCode::NO_CONTENT);
    assert_eq!(admin.get(&download).await.expect(StatusCode::OK).bytes, large);
}

#[tokio::test]
async fn of_two_who_send_different_json_at_once_one_wins() {
    let here = ApiServer::start().await;
    let there = here.another().await;
    let workspace = locked_workspace(&here).await;
    for serial in 1..=50 {
        let bytes = state(serial, "a", "x");
        let announced = announce(&here, &workspace, serial, &bytes).await;
        put(&here, &address(&announced), bytes).await.expect(StatusCode::OK);
        let json = json_address(&announced);
        let (one, other) = tokio::join!(put(&here, &json, "[1]"), put(&there, &json, "[2]"));
        let won = if one.status == StatusCode::OK { "[1]" } else { "[2]" };
        let mut both = [one.status, other.status];
        both.sort();
        assert_eq!(both, [StatusCode::OK, StatusCode::NOT_FOUND], "round {serial}");
        let read = here.admin().get(&format!("/api/v2/state-versions/{}", announced.id())).await;
        let download = path_of(&read.attribute("hosted-json-state-download-url"));
        for server in [&here, &there] {
            assert_eq!(server.admin().get(&download).await.expect(StatusCode::OK).bytes, won);
        }
    }
}

#[tokio::test]
async fn a_state_whose_data_was_deleted_is_not_brought_back_by_restoring_it() {
    let server = ApiServer::start().await;
    let admin = server.admin();
    let workspace = locked_workspace(&server).await;
    let old = push(&admin, &workspace, 1, "a", "old").await.expect(StatusCode::CREATED).id();
    push(&admin, &workspace, 2, "a", "new").await.expect(StatusCode::CREATED);
    let pending = announce(&server, &workspace, 3, &state(3, "a", "newer")).await.id();
    let delete = format!("/api/v2/state-versions/{old}/actions/soft_delete_backing_data");
    admin.act(&delete).await.expect(StatusCode::NO_CONTENT);
    for id in [old, pending] {
        let back = serde_json::json!({ "data": { "type": "state-versions", "relationships": {
            "rollback-state-version": { "data": { "type": "state-versions", "id": id } },
        } } });
        let path = format!("/api/v2/workspaces/{workspace}/state-versions");
        admin.patch(&path, &back).await.expect(StatusCode::NOT_FOUND);
    }
}
