//! A request is repeated because its answer was lost. The client sends the same again, and does not know what happened.

use std::time::Duration;

use axum::http::StatusCode;
use harness::api_server::{Answer, ApiServer, Client};
use jiff::SignedDuration;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use crate::states::{announcement, lock, locked_workspace, path_of, push, state};

fn named(kind: &str, name: &str) -> Value {
    json!({ "data": { "type": kind, "attributes": { "name": name, "email": "new@acme.test", "value": "v" } } })
}

/// Two servers on one bucket, so that everything remembered is in the bucket.
async fn two_servers() -> (ApiServer, ApiServer) {
    let here = ApiServer::start().await;
    here.given_organization("acme").await;
    let there = here.another().await;
    (here, there)
}

fn same(one: &Answer, other: &Answer) -> bool {
    (one.status, one.json()["data"]["id"].clone()) == (other.status, other.json()["data"]["id"].clone())
}

#[tokio::test]
async fn a_request_with_a_key_gets_its_first_answer_again_from_any_server() {
    let (here, there) = two_servers().await;
    let within = "/api/v2/organizations/acme";
    let email = json!({ "data": { "type": "organization-memberships", "attributes": { "email": "joe@acme.test" } } });
    for (number, (path, body)) in [
        ("/api/v2/organizations".to_owned(), named("organizations", "second")),
        (format!("{within}/workspaces"), named("workspaces", "web")),
        (format!("{within}/projects"), named("projects", "network")),
        (format!("{within}/teams"), named("teams", "operators")),
        (format!("{within}/agent-pools"), named("agent-pools", "pool")),
        (format!("{within}/ssh-keys"), named("ssh-keys", "key")),
        (format!("{within}/organization-memberships"), email),
    ]
    .into_iter()
    .enumerate()
    {
        let key = format!("create-{number}");
        let first = here.admin().with_key(&key).post(&path, &body).await.expect(StatusCode::CREATED);
        let again = there.admin().with_key(&key).post(&path, &body).await;
        assert!(same(&first, &again), "{path}: {:?}", again.json());
        let second = here.admin().with_key("another").post(&path, &body).await;
        second.expect(StatusCode::UNPROCESSABLE_ENTITY);
        here.admin().post(&path, &body).await.expect(StatusCode::UNPROCESSABLE_ENTITY);
    }
}

#[tokio::test]
async fn locks_and_deletions_with_a_key_can_be_repeated() {
    let (here, there) = two_servers().await;
    let workspace = here.given_workspace("acme", "web").await;
    let action = |name: &str| format!("/api/v2/workspaces/{workspace}/actions/{name}");
    for (name, key) in [("lock", "1"), ("unlock", "2"), ("lock", "3"), ("force-unlock", "4")] {
        here.admin().with_key(key).act(&action(name)).await.expect(StatusCode::OK);
        there.admin().with_key(key).act(&action(name)).await.expect(StatusCode::OK);
        there.admin().with_key("new").act(&action(name)).await.expect(StatusCode::CONFLICT);
        there.admin().act(&action(name)).await.expect(StatusCode::CONFLICT);
    }
    let project = here.admin().post("/api/v2/organizations/acme/projects", &named("projects", "network")).await.id();
    for (path, key) in [
        (format!("/api/v2/projects/{project}"), "5"),
        ("/api/v2/organizations/acme/workspaces/web".to_owned(), "6"),
        ("/api/v2/organizations/acme".to_owned(), "7"),
    ] {
        here.admin().with_key(key).delete(&path).await.expect(StatusCode::NO_CONTENT);
        there.admin().with_key(key).delete(&path).await.expect(StatusCode::NO_CONTENT);
        there.admin().delete(&path).await.expect(StatusCode::NOT_FOUND);
    }
}

#[tokio::test]
async fn changes_with_a_key_happen_once() {
    let (here, there) = two_servers().await;
    let workspace = here.given_workspace("acme", "web").await;
    let vars = format!("/api/v2/workspaces/{workspace}/vars");
    let variable = |value: &str| {
        let attributes = json!({ "key": "region", "value": value, "category": "terraform" });
        json!({ "data": { "type": "vars", "attributes": attributes } })
    };
    let first = here.admin().with_key("1").post(&vars, &variable("eu")).await.expect(StatusCode::CREATED);
    let again = there.admin().with_key("1").post(&vars, &variable("eu")).await;
    assert!(same(&first, &again), "{:?}", again.json());
    let path = format!("{vars}/{}", first.id());
    let changed = here.admin().with_key("2").patch(&path, &variable("us")).await.expect(StatusCode::OK);
    let again = there.admin().with_key("2").patch(&path, &variable("us")).await.expect(StatusCode::OK);
    assert_eq!(again.attribute("version-id"), changed.attribute("version-id"), "it was written once");
    let set = here.admin().post("/api/v2/organizations/acme/varsets", &named("varsets", "common")).await.id();
    let key = here.admin().post("/api/v2/organizations/acme/ssh-keys", &named("ssh-keys", "key")).await.id();
    let token = here.admin().post("/api/v2/organizations/acme/authentication-token", &json!({})).await.id();
    for (path, key) in [
        (path, "3"),
        (format!("/api/v2/varsets/{set}"), "4"),
        (format!("/api/v2/ssh-keys/{key}"), "5"),
        (format!("/api/v2/authentication-tokens/{token}"), "6"),
    ] {
        here.admin().with_key(key).delete(&path).await.expect(StatusCode::NO_CONTENT);
        there.admin().with_key(key).delete(&path).await.expect(StatusCode::NO_CONTENT);
        there.admin().delete(&path).await.expect(StatusCode::NOT_FOUND);
    }
}

#[tokio::test]
async fn a_key_belongs_to_one_request_of_one_caller_for_a_day() {
    let (here, _) = two_servers().await;
    let path = "/api/v2/organizations/acme/workspaces";
    let admin = here.admin().with_key("mine");
    let first = admin.post(path, &named("workspaces", "web")).await.expect(StatusCode::CREATED);
    let reused = admin.post("/api/v2/organizations/acme/projects", &named("projects", "network")).await;
    let (detail, _) = reused.expect(StatusCode::UNPROCESSABLE_ENTITY).error();
    assert!(detail.contains(&format!("was sent before with POST {path}")), "{detail}");

    let (_, token) = here.given_user("jane").await;
    let jane = here.with_token(&token).with_key("mine");
    jane.post(path, &named("workspaces", "web")).await.expect(StatusCode::NOT_FOUND);

    for bad in ["two words", &"x".repeat(256)] {
        here.admin().with_key(bad).post(path, &named("workspaces", "db")).await.expect(StatusCode::BAD_REQUEST);
    }
    here.pass(SignedDuration::from_hours(25));
    let late = admin.post(path, &named("workspaces", "db")).await.expect(StatusCode::CREATED);
    assert_ne!(late.id(), first.id());
}

#[tokio::test]
async fn a_refusal_is_not_remembered() {
    let (here, _) = two_servers().await;
    let workspace = here.given_workspace("acme", "web").await;
    lock(&here.admin(), &workspace).await.expect(StatusCode::OK);
    let waiting = here.admin().with_key("patience");
    lock(&waiting, &workspace).await.expect(StatusCode::CONFLICT);
    here.admin().act(&format!("/api/v2/workspaces/{workspace}/actions/unlock")).await.expect(StatusCode::OK);
    lock(&waiting, &workspace).await.expect(StatusCode::OK);
}

#[tokio::test]
async fn a_state_is_known_by_its_serial_and_bytes() {
    let (here, there) = two_servers().await;
    let workspace = here.given_workspace("acme", "web").await;
    let versions = format!("/api/v2/workspaces/{workspace}/state-versions");
    lock(&here.admin(), &workspace).await.expect(StatusCode::OK);
    let first = push(&here.admin(), &workspace, 1, "a", "x").await.expect(StatusCode::CREATED);
    let again = push(&there.admin(), &workspace, 1, "a", "x").await;
    assert!(same(&first, &again));

    let bytes = state(2, "a", "x");
    let announce = announcement(2, "a", &bytes);
    let announced = here.admin().post(&versions, &announce).await.expect(StatusCode::CREATED);
    assert!(same(&announced, &there.admin().post(&versions, &announce).await));
    let upload = path_of(&announced.attribute("hosted-state-upload-url"));
    let json_upload = path_of(&announced.attribute("hosted-json-state-upload-url"));
    for server in [&here, &there, &here] {
        let anyone = server.with_authorization(None);
        anyone.send("PUT", &upload, None, bytes.clone()).await.expect(StatusCode::OK);
        anyone.send("PUT", &json_upload, None, b"{}".to_vec()).await.expect(StatusCode::OK);
    }
    // Once the bytes are there, announcing them again leads to them, and go-tfe sends them again too.
    let again = here.admin().post(&versions, &announce).await.expect(StatusCode::CREATED);
    assert_eq!((again.id(), again.attribute("status")), (announced.id(), json!("finalized")));
    for (attribute, bytes) in [("hosted-state-upload-url", bytes), ("hosted-json-state-upload-url", b"{}".to_vec())] {
        let address = path_of(&again.attribute(attribute));
        there.with_authorization(None).send("PUT", &address, None, bytes).await.expect(StatusCode::OK);
    }
    let read = here.admin().get(&format!("/api/v2/state-versions/{}", announced.id())).await.expect(StatusCode::OK);
    assert_eq!(read.attribute("hosted-state-upload-url"), Value::Null, "who only reads sends nothing");
    let listed = here.admin().get(&versions).await.expect(StatusCode::OK);
    assert_eq!(listed.data().as_array().map(Vec::len), Some(2));
}

#[tokio::test]
async fn of_two_who_upload_the_same_at_once_both_succeed() {
    let (here, there) = two_servers().await;
    let workspace = here.given_workspace("acme", "web").await;
    lock(&here.admin(), &workspace).await.expect(StatusCode::OK);
    for serial in 1..=50 {
        let bytes = state(serial, "a", "x");
        let announce = announcement(serial, "a", &bytes);
        let versions = format!("/api/v2/workspaces/{workspace}/state-versions");
        let announced = here.admin().post(&versions, &announce).await.expect(StatusCode::CREATED);
        let upload = path_of(&announced.attribute("hosted-state-upload-url"));
        let (left, right) = (here.with_authorization(None), there.with_authorization(None));
        let (one, other) = tokio::join!(
            left.send("PUT", &upload, None, bytes.clone()),
            right.send("PUT", &upload, None, bytes.clone()),
        );
        one.expect(StatusCode::OK);
        other.expect(StatusCode::OK);
        let download = path_of(&here.admin().get(&versions).await.data()[0]["attributes"]["hosted-state-download-url"]);
        assert_eq!(there.with_authorization(None).get(&download).await.expect(StatusCode::OK).bytes, bytes);
    }
}

#[tokio::test]
async fn locks_of_the_http_backend_are_known_by_their_id() {
    const ADDRESS: &str = "/api/http-backend/acme/web";
    const LOCK: &str = "/api/http-backend/acme/web/lock";
    let (here, there) = two_servers().await;
    here.given_workspace("acme", "web").await;
    let info = |id: &str| json!({ "ID": id }).to_string();
    let both = [here.admin(), there.admin()];
    for client in &both {
        client.send("LOCK", LOCK, None, info("one")).await.expect(StatusCode::OK);
    }
    for client in &both {
        client.send("POST", &format!("{ADDRESS}?ID=one"), None, state(1, "a", "x")).await.expect(StatusCode::OK);
    }
    for client in &both {
        client.send("UNLOCK", LOCK, None, info("one")).await.expect(StatusCode::OK);
    }
    both[0].send("UNLOCK", LOCK, None, info("never held")).await.expect(StatusCode::CONFLICT);
    // A caller who locked since then keeps the lock.
    both[0].send("LOCK", LOCK, None, info("two")).await.expect(StatusCode::OK);
    both[1].send("UNLOCK", LOCK, None, info("one")).await.expect(StatusCode::OK);
    let held = both[1].send("LOCK", LOCK, None, info("three")).await.expect(StatusCode::CONFLICT);
    assert_eq!(held.json()["ID"], "two");
}

/// True if a workspace is released by itself.
async fn comes_free(client: &Client, workspace: &str) -> bool {
    let deadline = Instant::now() + Duration::from_secs(10);
    while Instant::now() < deadline {
        if client.get(&format!("/api/v2/workspaces/{workspace}")).await.attribute("locked") == false {
            return true;
        }
        sleep(Duration::from_millis(1)).await;
    }
    false
}

#[tokio::test]
async fn a_lock_whose_client_went_away_before_the_answer_is_given_back() {
    let server = ApiServer::start().await;
    let workspace = locked_workspace(&server).await;
    let unlock = format!("/api/v2/workspaces/{workspace}/actions/unlock");
    server.admin().act(&unlock).await.expect(StatusCode::OK);
    let (mut answered, mut gone) = (0, 0);
    for patience in 0..60 {
        let (admin, id) = (server.admin(), workspace.clone());
        let request = tokio::spawn(async move { lock(&admin, &id).await });
        // Each round the client goes away a little later.
        for _ in 0..patience {
            tokio::task::yield_now().await;
        }
        request.abort();
        match request.await {
            Ok(answer) => {
                answer.expect(StatusCode::OK);
                server.admin().act(&unlock).await.expect(StatusCode::OK);
                answered += 1;
            }
            Err(_) => {
                assert!(comes_free(&server.admin(), &workspace).await, "the client left after {patience} turns");
                gone += 1;
            }
        }
    }
    assert!(answered > 0 && gone > 0, "{answered} were answered, {gone} had gone");
}
