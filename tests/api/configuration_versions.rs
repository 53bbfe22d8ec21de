//! Configurations: announced, uploaded to an address that is its own credential, given up.

mod archives;

use axum::http::StatusCode;
use harness::api_server::{Answer, ApiServer, Client};
use harness::configurations::packed;
use harness::permission_site::CONFIGURATION;
use serde_json::{Value, json};

use crate::states::path_of;

pub(crate) fn archive(content: &str) -> Vec<u8> {
    packed(&[("main.tf", content)])
}

pub(crate) async fn announce(client: &Client, workspace: &str, attributes: Value) -> Answer {
    let body = json!({ "data": { "type": "configuration-versions", "attributes": attributes } });
    client.post(&format!("/api/v2/workspaces/{workspace}/configuration-versions"), &body).await
}

pub(crate) async fn upload(server: &ApiServer, announced: &Answer, bytes: Vec<u8>) -> Answer {
    let anyone = server.with_authorization(None);
    anyone.send("PUT", &path_of(&announced.attribute("upload-url")), None, bytes).await
}

/// The id of a configuration that runs can use, with a README.
pub(crate) async fn given_configuration(server: &ApiServer, workspace: &str) -> String {
    server.given_configuration(workspace, &CONFIGURATION).await
}

async fn given_workspace(server: &ApiServer) -> String {
    server.given_organization("acme").await;
    server.given_workspace("acme", "web").await
}

async fn status(client: &Client, id: &str) -> Value {
    let read = client.get(&format!("/api/v2/configuration-versions/{id}")).await.expect(StatusCode::OK);
    assert_eq!(read.attribute("upload-url"), Value::Null, "the address is shown once");
    read.attribute("status")
}

#[tokio::test]
async fn a_configuration_can_be_used_when_its_archive_is_there() {
    let server = ApiServer::start().await;
    let admin = server.admin();
    let workspace = given_workspace(&server).await;
    let announced = announce(&admin, &workspace, json!({ "auto-queue-runs": false })).await.expect(StatusCode::CREATED);
    let id = announced.id();
    assert_eq!((announced.attribute("status"), announced.attribute("source")), (json!("pending"), json!("tfe-api")));
    let download = format!("/api/v2/configuration-versions/{id}/download");
    admin.get(&download).await.expect(StatusCode::NOT_FOUND);

    upload(&server, &announced, archive("first")).await.expect(StatusCode::OK);
    assert_eq!(status(&admin, &id).await, "uploaded");
    upload(&server, &announced, archive("first")).await.expect(StatusCode::OK);
    upload(&server, &announced, archive("second")).await.expect(StatusCode::OK);
    assert_eq!(admin.get(&download).await.expect(StatusCode::OK).bytes, archive("second"));

    crate::runs::start_run(&admin, &workspace, json!({})).await.expect(StatusCode::CREATED);
    upload(&server, &announced, archive("second")).await.expect(StatusCode::OK);
    upload(&server, &announced, archive("third")).await.expect(StatusCode::CONFLICT);
    assert_eq!(admin.get(&download).await.bytes, archive("second"), "what a run uses stays");

    let listed = admin.get(&format!("/api/v2/workspaces/{workspace}/configuration-versions")).await;
    assert_eq!(listed.data().as_array().map(Vec::len), Some(1));
    let read = admin.get(&format!("/api/v2/workspaces/{workspace}?include=current_configuration_version")).await;
    assert_eq!(read.data()["relationships"]["current-configuration-version"]["data"]["id"], id.as_str());
    assert_eq!(read.json()["included"][0]["id"], id.as_str());
}

#[tokio::test]
async fn a_workspace_comes_with_its_readme_where_that_is_asked_for() {
    let server = ApiServer::start().await;
    let admin = server.admin();
    let workspace = given_workspace(&server).await;
    let path = format!("/api/v2/workspaces/{workspace}?include=readme");
    let before = admin.get(&path).await.expect(StatusCode::OK);
    assert_eq!((&before.json()["included"], &before.data()["relationships"]["readme"]), (&Value::Null, &Value::Null));
    let alone = format!("/api/v2/workspaces/{workspace}/readme");
    assert_eq!(admin.get(&alone).await.expect(StatusCode::OK).json(), json!({ "data": null }));
    let announced = announce(&admin, &workspace, json!({ "auto-queue-runs": false })).await.expect(StatusCode::CREATED);
    let archive = packed(&[("main.tf", ""), ("README.md", "# The network")]);
    upload(&server, &announced, archive).await.expect(StatusCode::OK);
    let read = admin.get(&path).await.expect(StatusCode::OK);
    let named = &read.data()["relationships"]["readme"]["data"];
    let included = &read.json()["included"][0];
    assert_eq!((&included["type"], &included["id"]), (&json!("workspace-readme"), &named["id"]));
    assert_eq!(included["attributes"]["raw-markdown"], "# The network");
    assert_eq!(admin.get(&alone).await.expect(StatusCode::OK).data(), *included);
}

#[tokio::test]
async fn what_is_no_archive_is_refused_and_can_be_sent_again() {
    let server = ApiServer::start().await;
    let admin = server.admin();
    let workspace = given_workspace(&server).await;
    let announced = announce(&admin, &workspace, json!({ "auto-queue-runs": true })).await.expect(StatusCode::CREATED);
    for bytes in [b"PK\x03\x04".to_vec(), b"\x1f".to_vec(), Vec::new()] {
        let refused = upload(&server, &announced, bytes).await.expect(StatusCode::UNPROCESSABLE_ENTITY);
        assert!(refused.error().0.contains("gzip"), "{refused:?}");
        let read = admin.get(&format!("/api/v2/configuration-versions/{}", announced.id())).await;
        assert_eq!(read.attribute("status"), "errored");
        assert!(read.attribute("error-message").as_str().is_some_and(|words| words.contains("gzip")));
    }
    let body = json!({ "data": { "relationships": {
        "workspace": { "data": { "type": "workspaces", "id": workspace } },
        "configuration-version": { "data": { "type": "configuration-versions", "id": announced.id() } },
    } } });
    let refused = admin.post("/api/v2/runs", &body).await.expect(StatusCode::UNPROCESSABLE_ENTITY);
    assert!(refused.error().0.contains("errored"), "{refused:?}");
    let altered = path_of(&announced.attribute("upload-url")) + "0";
    server.admin().send("PUT", &altered, None, archive("x")).await.expect(StatusCode::NOT_FOUND);
    upload(&server, &announced, archive("better")).await.expect(StatusCode::OK);
    let runs = admin.get(&format!("/api/v2/workspaces/{workspace}/runs")).await;
    assert_eq!(runs.data().as_array().map(Vec::len), Some(1), "the upload starts the run");
}

#[tokio::test]
async fn an_upload_starts_the_run_that_was_wished_for() {
    let server = ApiServer::start().await;
    let admin = server.admin();
    let workspace = given_workspace(&server).await;
    let announced = announce(&admin, &workspace, json!({ "speculative": true })).await.expect(StatusCode::CREATED);
    upload(&server, &announced, archive("a")).await.expect(StatusCode::OK);
    upload(&server, &announced, archive("a")).await.expect(StatusCode::OK);
    let runs = admin.get(&format!("/api/v2/workspaces/{workspace}/runs")).await.data();
    assert_eq!(runs.as_array().map(Vec::len), Some(1), "and starts it once");
    let attributes = &runs[0]["attributes"];
    assert_eq!((&attributes["plan-only"], &attributes["status"]), (&json!(true), &json!("plan_queued")));
    assert_eq!(attributes["source"], "tfe-configuration-version");
}

#[tokio::test]
async fn a_configuration_that_nothing_needs_can_be_given_up() {
    let server = ApiServer::start().await;
    let admin = server.admin();
    let workspace = given_workspace(&server).await;
    let act = |id: &str, action: &str| format!("/api/v2/configuration-versions/{id}/actions/{action}");
    let pending = announce(&admin, &workspace, json!({ "provisional": true })).await.id();
    admin.act(&act(&pending, "archive")).await.expect(StatusCode::UNPROCESSABLE_ENTITY);
    let first = given_configuration(&server, &workspace).await;
    let refused = admin.act(&act(&first, "archive")).await.expect(StatusCode::UNPROCESSABLE_ENTITY);
    for words in ["transition not allowed", "configuration could not be archived because it is current"] {
        assert!(refused.error().0.contains(words), "{refused:?}");
    }
    given_configuration(&server, &workspace).await;
    admin.act(&act(&first, "soft_delete_backing_data")).await.expect(StatusCode::ACCEPTED);
    let download = format!("/api/v2/configuration-versions/{first}/download");
    admin.get(&download).await.expect(StatusCode::NOT_FOUND);
    admin.act(&act(&first, "restore_backing_data")).await.expect(StatusCode::ACCEPTED);
    admin.get(&download).await.expect(StatusCode::OK);
    admin.act(&act(&first, "archive")).await.expect(StatusCode::ACCEPTED);
    admin.act(&act(&first, "archive")).await.expect(StatusCode::ACCEPTED);
    assert_eq!(status(&admin, &first).await, "archived");
    admin.get(&download).await.expect(StatusCode::NOT_FOUND);
    admin.act(&act(&first, "nonsense")).await.expect(StatusCode::NOT_FOUND);
}
