//! Signed URLs stop working when their holder could not get them again.

use axum::http::StatusCode;
use harness::api_server::{ApiServer, Client};
use jiff::SignedDuration;
use serde_json::json;

use crate::agent_door::{send, take};
use crate::runs::{given_workspace, start_run};
use crate::states::{given_member, path_of};

/// A log that grows, and its run.
async fn given_log(server: &ApiServer) -> (String, String) {
    let workspace = given_workspace(server).await;
    let run = start_run(&server.admin(), &workspace, json!({})).await.id();
    let phase = take(server).await;
    send(server, &phase, "log?offset=0", "\u{2}one\n").await.expect(StatusCode::NO_CONTENT);
    (workspace, run)
}

async fn log_address(client: &Client, run: &str) -> String {
    let plan = client.get(&format!("/api/v2/runs/{run}/plan")).await.expect(StatusCode::OK);
    path_of(&plan.attribute("log-read-url"))
}

async fn membership_of(server: &ApiServer, name: &str) -> String {
    let path = format!("/api/v2/organizations/acme/organization-memberships?q={name}");
    server.admin().get(&path).await.data()[0]["id"].as_str().expect("an id").to_owned()
}

#[tokio::test]
async fn the_address_of_a_log_ends_with_the_membership() {
    let server = ApiServer::start().await;
    let (workspace, run) = given_log(&server).await;
    let reader = given_member(&server, "bob", &workspace, "read").await;
    let (his, ours) = (log_address(&reader, &run).await, log_address(&server.admin(), &run).await);
    assert_ne!(his, ours);
    let nobody = server.with_authorization(None);
    server.pass(SignedDuration::from_hours(20));
    for address in [&his, &ours] {
        let log = nobody.get(&format!("{address}?limit=65536&offset=0")).await.expect(StatusCode::OK);
        assert_eq!(log.bytes, "\u{2}one\n", "clients follow a log for hours");
    }
    let member = membership_of(&server, "bob").await;
    server.admin().delete(&format!("/api/v2/organization-memberships/{member}")).await.expect(StatusCode::NO_CONTENT);
    nobody.get(&format!("{his}?limit=65536&offset=0")).await.expect(StatusCode::NOT_FOUND);
    nobody.get(&format!("{ours}?limit=65536&offset=0")).await.expect(StatusCode::OK);
}

#[tokio::test]
async fn it_ends_with_the_token_by_which_it_came_and_nobody_changes_for_whom_it_is() {
    let server = ApiServer::start().await;
    let (_, run) = given_log(&server).await;
    let admin = server.admin();
    let account = admin.get("/api/v2/account/details").await.id();
    let issued = admin.post(&format!("/api/v2/users/{account}/authentication-tokens"), &json!({})).await;
    let client = server.with_token(issued.attribute("token").as_str().expect("a token"));
    let address = log_address(&client, &run).await;
    let nobody = server.with_authorization(None);
    nobody.get(&format!("{address}?limit=1&offset=0")).await.expect(StatusCode::OK);
    let token = issued.id();
    assert!(address.contains(&token), "{address}");
    for forged in [
        address.replace(&format!("_{token}_"), "__"),
        address.replace(&account, "user-0000000000000000"),
        address.replace(&format!("_{account}_{token}_"), "-"),
    ] {
        assert_ne!(forged, address);
        nobody.get(&format!("{forged}?limit=1&offset=0")).await.expect(StatusCode::NOT_FOUND);
    }
    admin.delete(&format!("/api/v2/authentication-tokens/{token}")).await.expect(StatusCode::NO_CONTENT);
    nobody.get(&format!("{address}?limit=1&offset=0")).await.expect(StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn whoever_waits_for_more_of_a_log_gets_none_when_they_may_not_read_it_any_more() {
    let server = ApiServer::start().await;
    let workspace = given_workspace(&server).await;
    let run = start_run(&server.admin(), &workspace, json!({})).await.id();
    let phase = take(&server).await;
    let reader = given_member(&server, "bob", &workspace, "read").await;
    let address = log_address(&reader, &run).await;
    let member = membership_of(&server, "bob").await;
    let nobody = server.with_authorization(None);
    let path = format!("{address}?limit=65536&offset=0");
    let (answer, ()) = tokio::join!(nobody.get(&path), async {
        let path = format!("/api/v2/organization-memberships/{member}");
        server.admin().delete(&path).await.expect(StatusCode::NO_CONTENT);
        send(&server, &phase, "log?offset=0", "\u{2}secret\n").await.expect(StatusCode::NO_CONTENT);
    });
    answer.expect(StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn the_addresses_of_states_and_configurations_end_with_the_membership_too() {
    let server = ApiServer::start().await;
    let workspace = given_workspace(&server).await;
    let member = given_member(&server, "bob", &workspace, "plan").await;
    let state = json!({ "version": 4, "serial": 1, "lineage": "one", "outputs": {}, "resources": [] });
    let version = server.given_state(&workspace, &state).await;
    let shown = member.get(&format!("/api/v2/state-versions/{version}")).await.expect(StatusCode::OK);
    let download = path_of(&shown.attribute("hosted-state-download-url"));
    let body = json!({ "data": { "type": "configuration-versions", "attributes": { "auto-queue-runs": false } } });
    let path = format!("/api/v2/workspaces/{workspace}/configuration-versions");
    let upload = path_of(&member.post(&path, &body).await.expect(StatusCode::CREATED).attribute("upload-url"));
    let nobody = server.with_authorization(None);
    nobody.get(&download).await.expect(StatusCode::OK);
    let id = membership_of(&server, "bob").await;
    server.admin().delete(&format!("/api/v2/organization-memberships/{id}")).await.expect(StatusCode::NO_CONTENT);
    nobody.get(&download).await.expect(StatusCode::NOT_FOUND);
    let archive = crate::configuration_versions::archive("");
    nobody.send("PUT", &upload, None, archive).await.expect(StatusCode::NOT_FOUND);
}
