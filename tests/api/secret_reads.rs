//! Reads of secrets: the reader is in the audit trail before they have the secret.

use axum::http::StatusCode;
use harness::api_server::{Answer, ApiServer, Client};
use harness::held_bucket::HeldBucket;
use jiff::SignedDuration;
use serde_json::{Value, json};

use crate::agent_door::{planned, send, take};
use crate::configuration_versions::given_configuration;
use crate::runs::start_run;
use crate::states::{announcement, given_member, lock, path_of, push, state};

/// Reads of secrets in the audit trail, oldest first: by whom, what, and of which thing.
async fn reads(server: &ApiServer) -> Vec<(String, String, String)> {
    let path = "/api/v2/organizations/acme/audit-trail?page[size]=100";
    let trail = server.admin().get(path).await.expect(StatusCode::OK).data();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let read = |event: &Value| {
        let (by, of) = (text(&event["auth"]["accessor_id"]), text(&event["resource"]["id"]));
        (by, text(&event["resource"]["action"]), of)
    };
    let all = trail.as_array().expect("a list").iter().rev().map(read);
    all.filter(|(_, action, _)| action.ends_with("read")).collect()
}

/// A workspace with a state that has a secret, and the state's id.
async fn given_secret(server: &ApiServer) -> (String, String) {
    server.given_organization("acme").await;
    let workspace = server.given_workspace("acme", "web").await;
    let admin = server.admin();
    lock(&admin, &workspace).await.expect(StatusCode::OK);
    let version = push(&admin, &workspace, 1, "one", "hunter2").await.expect(StatusCode::CREATED).id();
    admin.act(&format!("/api/v2/workspaces/{workspace}/actions/unlock")).await.expect(StatusCode::OK);
    (workspace, version)
}

async fn id_of(client: &Client) -> String {
    client.get("/api/v2/account/details").await.expect(StatusCode::OK).id()
}

/// Follows the address that a client is told.
async fn download(client: &Client, version: &str) -> Answer {
    let shown = client.get(&format!("/api/v2/state-versions/{version}")).await.expect(StatusCode::OK);
    client.get(&path_of(&shown.attribute("hosted-state-download-url"))).await
}

#[tokio::test]
async fn every_door_tells_the_audit_trail_who_reads_a_secret() {
    let server = ApiServer::start().await;
    let (workspace, version) = given_secret(&server).await;
    let outputs = format!("/api/v2/state-versions/{version}/outputs");
    let listed = server.admin().get(&outputs).await.expect(StatusCode::OK).data();
    let secret = listed.as_array().expect("a list").iter().find(|output| output["attributes"]["sensitive"] == true);
    let secret = secret.expect("a secret")["id"].as_str().expect("an id").to_owned();
    let admin = id_of(&server.admin()).await;
    let mut expected = vec![(admin, "output.read".to_owned(), version.clone())];
    assert_eq!(reads(&server).await, expected);

    for (number, (action, path)) in [
        ("state.read", "/api/http-backend/acme/web".to_owned()),
        ("output.read", outputs),
        ("output.read", format!("/api/v2/state-version-outputs/{secret}")),
        ("output.read", format!("/api/v2/state-versions/{version}?include=outputs")),
        ("state.read", "signed".to_owned()),
        ("state.read", "redirect".to_owned()),
    ]
    .into_iter()
    .enumerate()
    {
        let reader = given_member(&server, &format!("reader{number}"), &workspace, "read").await;
        let answer = match path.as_str() {
            "signed" => download(&reader, &version).await,
            "redirect" => {
                let moved = reader.get(&format!("/api/v2/state-versions/{version}/download")).await;
                let address = moved.expect(StatusCode::TEMPORARY_REDIRECT).headers["location"].clone();
                reader.get(&path_of(&json!(address.to_str().expect("text")))).await
            }
            path => reader.get(path).await,
        };
        let answer = answer.expect(StatusCode::OK);
        assert!(String::from_utf8_lossy(&answer.bytes).contains("hunter2"), "{path}: {answer:?}");
        expected.push((id_of(&reader).await, action.to_owned(), version.clone()));
        assert_eq!(reads(&server).await, expected, "{path}");
    }
}

#[tokio::test]
async fn a_state_in_json_is_one_as_well() {
    let server = ApiServer::start().await;
    let (workspace, _) = given_secret(&server).await;
    let admin = server.admin();
    lock(&admin, &workspace).await.expect(StatusCode::OK);
    let bytes = state(2, "one", "hunter3");
    let path = format!("/api/v2/workspaces/{workspace}/state-versions");
    let announced = admin.post(&path, &announcement(2, "one", &bytes)).await.expect(StatusCode::CREATED);
    for (address, body) in
        [("hosted-state-upload-url", bytes), ("hosted-json-state-upload-url", br#"{"values":"hunter3"}"#.to_vec())]
    {
        admin.send("PUT", &path_of(&announced.attribute(address)), None, body).await.expect(StatusCode::OK);
    }
    assert_eq!(reads(&server).await, []);
    let shown = admin.get(&format!("/api/v2/state-versions/{}", announced.id())).await.expect(StatusCode::OK);
    admin.get(&path_of(&shown.attribute("hosted-json-state-download-url"))).await.expect(StatusCode::OK);
    assert_eq!(reads(&server).await, [(id_of(&admin).await, "state.read".to_owned(), announced.id())]);
}

#[tokio::test]
async fn what_is_no_secret_leaves_no_trace_and_the_same_read_again_only_one() {
    let server = ApiServer::start().await;
    let (workspace, version) = given_secret(&server).await;
    let admin = server.admin();
    for path in [
        format!("/api/v2/workspaces/{workspace}"),
        format!("/api/v2/workspaces/{workspace}/current-state-version"),
        format!("/api/v2/workspaces/{workspace}/current-state-version-outputs"),
        format!("/api/v2/workspaces/{workspace}/resources"),
        format!("/api/v2/workspaces/{workspace}/state-versions"),
        format!("/api/v2/workspaces/{workspace}/vars"),
        format!("/api/v2/state-versions/{version}"),
    ] {
        admin.get(&path).await.expect(StatusCode::OK);
    }
    assert_eq!(reads(&server).await, []);
    for _ in 0..5 {
        admin.get("/api/http-backend/acme/web").await.expect(StatusCode::OK);
        download(&admin, &version).await.expect(StatusCode::OK);
    }
    assert_eq!(reads(&server).await.len(), 1, "whoever polls does not flood the trail");
    server.pass(SignedDuration::from_mins(11));
    admin.get("/api/http-backend/acme/web").await.expect(StatusCode::OK);
    assert_eq!(reads(&server).await.len(), 2, "after a while it is worth telling again");
    lock(&admin, &workspace).await.expect(StatusCode::OK);
    push(&admin, &workspace, 2, "one", "hunter3").await.expect(StatusCode::CREATED);
    admin.get("/api/http-backend/acme/web").await.expect(StatusCode::OK);
    assert_eq!(reads(&server).await.len(), 3, "another state is another secret");
}

#[tokio::test]
async fn a_run_that_reads_what_another_workspace_shares_is_told_of() {
    let server = ApiServer::start().await;
    let (producer, version) = given_secret(&server).await;
    let consumer = server.given_workspace("acme", "consumer").await;
    given_configuration(&server, &consumer).await;
    let path = format!("/api/v2/workspaces/{producer}/relationships/remote-state-consumers");
    let body = json!({ "data": [{ "type": "workspaces", "id": consumer }] });
    server.admin().post(&path, &body).await.expect(StatusCode::NO_CONTENT);
    let run = start_run(&server.admin(), &consumer, json!({})).await.id();
    let phase = take(&server).await;
    download(&server.with_token(&phase.run_token), &version).await.expect(StatusCode::OK);
    assert_eq!(reads(&server).await, [(run, "state.read".to_owned(), version)]);
}

#[tokio::test]
async fn a_whole_plan_holds_secrets_and_a_redacted_one_none() {
    let server = ApiServer::start().await;
    let workspace = crate::runs::given_workspace(&server).await;
    let admin = server.admin();
    let run = start_run(&admin, &workspace, json!({})).await.id();
    let plan = take(&server).await;
    for word in ["plan", "json-plan", "redacted-plan"] {
        send(&server, &plan, word, r#"{"plan":1}"#).await.expect(StatusCode::NO_CONTENT);
    }
    send(&server, &plan, "outcome", planned()).await.expect(StatusCode::NO_CONTENT);
    let id = plan.run.plan_id();
    admin.get(&format!("/api/v2/plans/{id}/json-output-redacted")).await.expect(StatusCode::OK);
    assert_eq!(reads(&server).await, []);
    admin.get(&format!("/api/v2/plans/{id}/json-output")).await.expect(StatusCode::OK);
    assert_eq!(reads(&server).await, [(id_of(&admin).await, "plan.read".to_owned(), run)]);
}

#[tokio::test]
async fn a_state_can_be_read_while_the_bucket_takes_no_writes() {
    let bucket = HeldBucket::in_memory();
    let server = ApiServer::start_on(bucket.clone()).await;
    let (_, version) = given_secret(&server).await;
    bucket.set_read_only(true);
    let read = download(&server.admin(), &version).await.expect(StatusCode::OK);
    assert!(String::from_utf8_lossy(&read.bytes).contains("hunter2"));
    bucket.set_read_only(false);
    assert_eq!(reads(&server).await, []);
    server.pass(SignedDuration::from_mins(2));
    download(&server.admin(), &version).await.expect(StatusCode::OK);
    assert_eq!(reads(&server).await.len(), 1, "it is told as soon as it can be");
}
