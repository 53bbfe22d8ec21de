//! Tokens of phases at every way to change a state: what runs in a phase reads, and only the agent of an apply sends one.

use axum::http::StatusCode;
use harness::api_server::{Answer, ApiServer, Client};
use serde_json::{Value, json};
use taco_control_plane::TakenPhase;

use crate::agent_door::{path, planned, send, take};
use crate::runs::{act, given_workspace, start_run};
use crate::states::{announcement, described, given_member, lock, path_of, push, state};

/// Every request that could change a workspace's state or its lock, with what it is called.
async fn attempts(client: &Client, workspace: &str, older: &str) -> Vec<(&'static str, Answer)> {
    let bytes = state(77, "smuggled", "by a run");
    let within = format!("/api/v2/workspaces/{workspace}");
    let backend = "/api/http-backend/acme/web";
    let mut described = described(77, "smuggled", &bytes);
    described["data"]["attributes"]["force"] = json!(true);
    let rollback = json!({ "data": { "type": "state-versions", "relationships": {
        "rollback-state-version": { "data": { "type": "state-versions", "id": older } } } } });
    let raw = |method: &'static str, path: String, body: Vec<u8>| {
        let client = client.clone();
        async move { client.send(method, &path, Some("application/json"), body).await }
    };
    let info = br#"{"ID":"one","Operation":"apply"}"#.to_vec();
    vec![
        ("lock", lock(client, workspace).await),
        ("write at once", client.post(&format!("{within}/state-versions"), &described).await),
        ("announce", client.post(&format!("{within}/state-versions"), &announcement(77, "smuggled", &bytes)).await),
        ("restore", client.patch(&format!("{within}/state-versions"), &rollback).await),
        ("remove", client.act(&format!("/api/v2/state-versions/{older}/actions/soft_delete_backing_data")).await),
        ("lock by the http backend", raw("LOCK", format!("{backend}/lock"), info.clone()).await),
        ("write by the http backend", raw("POST", backend.to_owned(), bytes.clone()).await),
        ("write by the http backend with a lock", raw("POST", format!("{backend}?ID=one"), bytes).await),
        ("unlock by the http backend", raw("UNLOCK", format!("{backend}/lock"), info).await),
        ("unlock", client.act(&format!("{within}/actions/unlock")).await),
        ("force-unlock", client.act(&format!("{within}/actions/force-unlock")).await),
    ]
}

/// State and lock, which must stay as they are.
async fn state_and_lock(admin: &Client, workspace: &str) -> Value {
    let read = admin.get(&format!("/api/v2/workspaces/{workspace}")).await.expect(StatusCode::OK);
    let versions = admin.get(&format!("/api/v2/workspaces/{workspace}/state-versions")).await.expect(StatusCode::OK);
    let versions = versions.data();
    let versions: Vec<_> = versions.as_array().expect("a list").iter().map(|version| version["id"].clone()).collect();
    json!([versions, read.attribute("locked"), read.data()["relationships"]["locked-by"]])
}

/// A workspace with two states, the older of which is returned as well.
async fn given_states(server: &ApiServer) -> (String, String) {
    let workspace = given_workspace(server).await;
    let admin = server.admin();
    lock(&admin, &workspace).await.expect(StatusCode::OK);
    let older = push(&admin, &workspace, 1, "one", "a").await.expect(StatusCode::CREATED).id();
    push(&admin, &workspace, 2, "one", "b").await.expect(StatusCode::CREATED);
    admin.act(&format!("/api/v2/workspaces/{workspace}/actions/unlock")).await.expect(StatusCode::OK);
    (workspace, older)
}

async fn changes_nothing(server: &ApiServer, phase: &TakenPhase, workspace: &str, older: &str) {
    let admin = server.admin();
    let before = state_and_lock(&admin, workspace).await;
    for token in [&phase.run_token, &phase.token] {
        let client = server.with_token(token);
        client.get(&format!("/api/v2/workspaces/{workspace}")).await.expect(StatusCode::OK);
        for (what, answer) in attempts(&client, workspace, older).await {
            assert_eq!(answer.status, StatusCode::NOT_FOUND, "{what}: {:?}", answer.bytes);
        }
    }
    assert_eq!(state_and_lock(&admin, workspace).await, before);
}

#[tokio::test]
async fn a_plan_changes_no_state_by_any_route_and_of_an_apply_only_its_agent() {
    let server = ApiServer::start().await;
    let admin = server.admin();
    let (workspace, older) = given_states(&server).await;
    let bytes = String::from_utf8(state(3, "one", "c")).expect("text");

    start_run(&admin, &workspace, json!({ "plan-only": true })).await.expect(StatusCode::CREATED);
    let speculative = take(&server).await;
    changes_nothing(&server, &speculative, &workspace, &older).await;
    send(&server, &speculative, "state", bytes.clone()).await.expect(StatusCode::CONFLICT);
    send(&server, &speculative, "outcome", planned()).await.expect(StatusCode::NO_CONTENT);

    let run = start_run(&admin, &workspace, json!({})).await.id();
    let plan = take(&server).await;
    changes_nothing(&server, &plan, &workspace, &older).await;
    send(&server, &plan, "state", bytes.clone()).await.expect(StatusCode::CONFLICT);
    send(&server, &plan, "outcome", planned()).await.expect(StatusCode::NO_CONTENT);
    act(&admin, &run, "apply").await.expect(StatusCode::ACCEPTED);

    let apply = take(&server).await;
    changes_nothing(&server, &apply, &workspace, &older).await;
    let own = server.agent_with_token(&apply.run_token);
    own.send("PUT", &path(&apply, "state"), None, bytes.clone()).await.expect(StatusCode::UNAUTHORIZED);
    send(&server, &apply, "state", bytes).await.expect(StatusCode::NO_CONTENT);
    let current = admin.get(&format!("/api/v2/workspaces/{workspace}/current-state-version")).await;
    assert_eq!(current.attribute("serial"), 3);
    assert_eq!(current.data()["relationships"]["run"]["data"]["id"], run);
}

#[tokio::test]
async fn whoever_may_plan_changes_no_state() {
    let server = ApiServer::start().await;
    let (workspace, older) = given_states(&server).await;
    let planner = given_member(&server, "bob", &workspace, "plan").await;
    let before = state_and_lock(&server.admin(), &workspace).await;
    for (what, answer) in attempts(&planner, &workspace, &older).await {
        assert_eq!(answer.status, StatusCode::NOT_FOUND, "{what}: {:?}", answer.bytes);
    }
    assert_eq!(state_and_lock(&server.admin(), &workspace).await, before);
}

#[tokio::test]
async fn the_address_of_an_announced_state_ends_with_the_right_to_write_it() {
    let server = ApiServer::start().await;
    let admin = server.admin();
    let (workspace, _) = given_states(&server).await;
    let writer = given_member(&server, "bob", &workspace, "write").await;
    lock(&writer, &workspace).await.expect(StatusCode::OK);
    let bytes = state(3, "one", "c");
    let announced = announcement(3, "one", &bytes);
    let announced = writer.post(&format!("/api/v2/workspaces/{workspace}/state-versions"), &announced).await;
    let announced = announced.expect(StatusCode::CREATED);
    let members = admin.get("/api/v2/organizations/acme/organization-memberships?q=bob").await.data();
    let member = members[0]["id"].as_str().expect("an id").to_owned();
    admin.delete(&format!("/api/v2/organization-memberships/{member}")).await.expect(StatusCode::NO_CONTENT);
    let nobody = server.with_authorization(None);
    for address in ["hosted-state-upload-url", "hosted-json-state-upload-url"] {
        let path = path_of(&announced.attribute(address));
        nobody.send("PUT", &path, None, bytes.clone()).await.expect(StatusCode::NOT_FOUND);
    }
    let current = admin.get(&format!("/api/v2/workspaces/{workspace}/current-state-version")).await;
    assert_eq!(current.attribute("serial"), 2);
}

/// A run of a workspace that may read another's state: its token, its own workspace and run.
async fn given_consumer(server: &ApiServer, producer: &str) -> (TakenPhase, String) {
    let consumer = server.given_workspace("acme", "consumer").await;
    crate::configuration_versions::given_configuration(server, &consumer).await;
    let path = format!("/api/v2/workspaces/{producer}/relationships/remote-state-consumers");
    let body = json!({ "data": [{ "type": "workspaces", "id": consumer }] });
    server.admin().post(&path, &body).await.expect(StatusCode::NO_CONTENT);
    start_run(&server.admin(), &consumer, json!({})).await.expect(StatusCode::CREATED);
    (take(server).await, consumer)
}

#[tokio::test]
async fn a_run_reads_what_runs_need_and_nothing_else() {
    let server = ApiServer::start().await;
    let admin = server.admin();
    let (producer, _) = given_states(&server).await;
    let run = start_run(&admin, &producer, json!({})).await;
    let (of_producer, plan) = (run.id(), run.data()["relationships"]["plan"]["data"]["id"].clone());
    let plan = plan.as_str().expect("an id").to_owned();
    send(&server, &take(&server).await, "outcome", planned()).await.expect(StatusCode::NO_CONTENT);
    given_member(&server, "bob", &producer, "read").await;
    let (phase, consumer) = given_consumer(&server, &producer).await;
    let (own, within) = (phase.run.id, "/api/v2/organizations/acme");
    let client = server.with_token(&phase.run_token);
    for path in [
        within.to_owned(),
        format!("{within}/entitlement-set"),
        format!("{within}/workspaces/consumer"),
        format!("{within}/workspaces/web"),
        format!("/api/v2/workspaces/{consumer}"),
        format!("/api/v2/workspaces/{producer}"),
        format!("/api/v2/workspaces/{consumer}/runs"),
        format!("/api/v2/runs/{own}"),
        format!("/api/v2/runs/{own}/plan"),
        format!("/api/v2/workspaces/{producer}/current-state-version"),
        format!("/api/v2/workspaces/{producer}/current-state-version-outputs"),
        format!("/api/v2/workspaces/{producer}/state-versions"),
    ] {
        client.get(&path).await.expect(StatusCode::OK);
    }
    for path in [
        format!("{within}/organization-memberships"),
        format!("{within}/teams"),
        format!("{within}/agent-pools"),
        format!("{within}/ssh-keys"),
        format!("{within}/explorer?type=workspaces"),
        format!("/api/v2/team-workspaces?filter[workspace][id]={consumer}"),
        format!("/api/v2/team-workspaces?filter[workspace][id]={producer}"),
        format!("/api/v2/workspaces/{consumer}/vars"),
        format!("/api/v2/workspaces/{producer}/vars"),
        format!("/api/v2/workspaces/{producer}/runs"),
        format!("/api/v2/workspaces/{producer}/readme"),
        format!("/api/v2/workspaces/{producer}/configuration-versions"),
        format!("/api/v2/workspaces/{producer}/run-triggers"),
        format!("/api/v2/workspaces/{producer}/remote-state-consumers"),
        format!("/api/v2/workspaces/{producer}/relationships/tags"),
        format!("/api/v2/runs/{of_producer}"),
        format!("/api/v2/runs/{of_producer}/comments"),
        format!("/api/v2/runs/{of_producer}/run-events"),
        format!("/api/v2/plans/{plan}"),
        format!("/api/v2/plans/{plan}/json-output-redacted"),
    ] {
        let answer = client.get(&path).await;
        assert_eq!(answer.status, StatusCode::NOT_FOUND, "{path}: {:?}", answer.bytes);
    }
    let beside = "include=current_run.plan,current_configuration_version,readme";
    let shown = client.get(&format!("/api/v2/workspaces/{producer}?{beside}")).await.expect(StatusCode::OK);
    assert!(!shown.json()["included"].to_string().contains(&of_producer), "{:?}", shown.json());
    let listed = client.get(&format!("{within}/runs")).await.expect(StatusCode::OK).data();
    assert!(!listed.to_string().contains(&of_producer), "{listed}");
}
