//! Queue of a workspace's runs, its lock, the reasons why runs wait, and everything that lets the next one begin.

use axum::http::StatusCode;
use harness::api_server::{ApiServer, Client};
use serde_json::{Value, json};

use crate::runs::{act, given_workspace, read_run, start_run, status};
use crate::states::lock;

async fn reasons(client: &Client, run: &str) -> Vec<Value> {
    let reasons = read_run(client, run).await.attribute("taco-wait-reasons");
    reasons.as_array().expect("a list").iter().map(|reason| reason["reason"].clone()).collect()
}

#[tokio::test]
async fn runs_take_turns_and_say_why_they_wait() {
    let server = ApiServer::start().await;
    let admin = server.admin();
    let workspace = given_workspace(&server).await;
    let mut runs = Vec::new();
    for _ in 0..3 {
        runs.push(start_run(&admin, &workspace, json!({})).await.expect(StatusCode::CREATED).id());
    }
    assert_eq!(status(&admin, &runs[0]).await, "plan_queued");
    assert_eq!(reasons(&admin, &runs[0]).await, ["no-agent"]);
    let waits = read_run(&admin, &runs[2]).await;
    assert_eq!(waits.attribute("status"), "pending");
    let reason = &waits.attribute("taco-wait-reasons")[0];
    assert_eq!((&reason["run"], &reason["ahead"]), (&json!(runs[0]), &json!(2)));
    assert!(reason["detail"].as_str().is_some_and(|words| words.contains("waiting for 2 earlier runs")), "{reason}");

    act(&admin, &runs[1], "discard").await.expect(StatusCode::ACCEPTED);
    act(&admin, &runs[0], "cancel").await.expect(StatusCode::ACCEPTED);
    assert_eq!(status(&admin, &runs[2]).await, "plan_queued", "the next one begins in the same moment");
    let read = admin.get(&format!("/api/v2/workspaces/{workspace}")).await;
    assert_eq!(read.data()["relationships"]["locked-by"]["data"]["id"], runs[2].as_str());
    act(&admin, &runs[0], "cancel").await.expect(StatusCode::CONFLICT);
    let refused = act(&admin, &runs[2], "apply").await.expect(StatusCode::CONFLICT);
    assert_eq!(refused.error().0, "the run is plan_queued; apply needs a run that is planned, planned_and_saved");
    let canceled = read_run(&admin, &runs[0]).await;
    assert!(
        canceled.attribute("canceled-at").is_string() && canceled.attribute("force-cancel-available-at").is_string()
    );
}

#[tokio::test]
async fn a_lock_holds_runs_back_and_unlocking_lets_them_begin() {
    let server = ApiServer::start().await;
    let admin = server.admin();
    let workspace = given_workspace(&server).await;
    lock(&admin, &workspace).await.expect(StatusCode::OK);
    let run = start_run(&admin, &workspace, json!({})).await.expect(StatusCode::CREATED).id();
    let speculative = start_run(&admin, &workspace, json!({ "plan-only": true })).await.id();
    assert_eq!(status(&admin, &speculative).await, "plan_queued", "what changes nothing waits for nobody");
    assert_eq!(reasons(&admin, &run).await, ["locked"]);
    let unlock = format!("/api/v2/workspaces/{workspace}/actions/unlock");
    let unlocked = admin.act(&unlock).await.expect(StatusCode::OK);
    assert_eq!(unlocked.data()["relationships"]["locked-by"]["data"]["id"], run.as_str());
    assert_eq!(status(&admin, &run).await, "plan_queued");

    let refused = admin.act(&unlock).await.expect(StatusCode::CONFLICT);
    assert!(refused.error().0.contains("is locked by Run"), "{refused:?}");
    let force = format!("/api/v2/workspaces/{workspace}/actions/force-unlock");
    let refused = admin.act(&force).await.expect(StatusCode::CONFLICT);
    assert!(refused.error().0.contains("discard or cancel the run"), "{refused:?}");
    lock(&admin, &workspace).await.expect(StatusCode::CONFLICT);
    act(&admin, &run, "cancel").await.expect(StatusCode::ACCEPTED);
    lock(&admin, &workspace).await.expect(StatusCode::OK);
    let next = start_run(&admin, &workspace, json!({})).await.id();
    assert_eq!(status(&admin, &next).await, "pending");
    admin.act(&force).await.expect(StatusCode::OK);
    assert_eq!(status(&admin, &next).await, "plan_queued", "force lets it begin as well");
}

#[tokio::test]
async fn an_organization_shows_what_it_has_to_do() {
    let server = ApiServer::start().await;
    let admin = server.admin();
    let workspace = given_workspace(&server).await;
    let first = start_run(&admin, &workspace, json!({})).await.id();
    start_run(&admin, &workspace, json!({})).await.expect(StatusCode::CREATED);
    let speculative = start_run(&admin, &workspace, json!({ "plan-only": true })).await.id();
    let queue = admin.get("/api/v2/organizations/acme/runs/queue").await.expect(StatusCode::OK).data();
    let entry = |index: usize| (queue[index]["id"].clone(), queue[index]["attributes"]["position-in-queue"].clone());
    assert_eq!(queue.as_array().map(Vec::len), Some(2), "what is behind another run is not in it");
    assert_eq!((entry(0), entry(1)), ((json!(first), json!(0)), (json!(speculative), json!(1))));
    let capacity = admin.get("/api/v2/organizations/acme/capacity").await.expect(StatusCode::OK);
    assert_eq!((capacity.attribute("pending"), capacity.attribute("running")), (json!(3), json!(0)));
}

#[tokio::test]
async fn force_lets_a_run_begin_before_those_ahead() {
    let server = ApiServer::start().await;
    let admin = server.admin();
    let workspace = given_workspace(&server).await;
    let mut runs = Vec::new();
    for _ in 0..3 {
        runs.push(start_run(&admin, &workspace, json!({})).await.expect(StatusCode::CREATED).id());
    }
    act(&admin, &runs[0], "force-execute").await.expect(StatusCode::CONFLICT);
    act(&admin, &runs[2], "force-execute").await.expect(StatusCode::ACCEPTED);
    assert_eq!(status(&admin, &runs[0]).await, "canceled");
    assert_eq!(status(&admin, &runs[1]).await, "discarded");
    assert_eq!(status(&admin, &runs[2]).await, "plan_queued");
    act(&admin, &runs[2], "cancel").await.expect(StatusCode::ACCEPTED);
    lock(&admin, &workspace).await.expect(StatusCode::OK);
    let behind_a_lock = start_run(&admin, &workspace, json!({})).await.id();
    let refused = act(&admin, &behind_a_lock, "force-execute").await.expect(StatusCode::CONFLICT);
    assert!(refused.error().0.contains("unlock it first"), "{refused:?}");
}

#[tokio::test]
async fn a_workspace_goes_with_its_runs() {
    let server = ApiServer::start().await;
    let admin = server.admin();
    let workspace = given_workspace(&server).await;
    let run = start_run(&admin, &workspace, json!({})).await.id();
    admin.act(&format!("/api/v2/workspaces/{workspace}/actions/safe-delete")).await.expect(StatusCode::CONFLICT);
    admin.delete(&format!("/api/v2/workspaces/{workspace}")).await.expect(StatusCode::NO_CONTENT);
    admin.get(&format!("/api/v2/runs/{run}")).await.expect(StatusCode::NOT_FOUND);
    assert_eq!(admin.get("/api/v2/organizations/acme/runs/queue").await.data(), json!([]));
}
