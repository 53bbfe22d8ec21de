//! `kill -9` of a server while it asks a run task, and while the task calls back. No request is lost, those that come twice
//! carry the same id, and each answer counts once.

use std::collections::BTreeMap;
use std::process::Command;

use harness::cuttable_proxy::CuttableProxy;
use harness::home::ServerProcess;
use harness::run_site::{RunSite, admin_of, run_that_applies_itself, text, until};
use harness::webhook_receiver::{Received, WebhookReceiver};
use serde_json::{Value, json};

/// In seconds: no agent is given up here.
const LEASE: u16 = 60;
const STAGES: [&str; 4] = ["pre_plan", "post_plan", "pre_apply", "post_apply"];

fn reaching_the_receiver(mut command: Command) -> ServerProcess {
    ServerProcess::start(command.env("TACO_OUTBOUND_ALLOW", "127.0.0.0/8"))
}

/// The requests about a stage, without tests.
fn about<'a>(received: &'a [Received], stage: &str) -> Vec<&'a Received> {
    received.iter().filter(|one| one.json()["stage"] == stage).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_can_be_killed_in_the_middle_of_every_request_and_call_back() {
    let receiver = WebhookReceiver::start().await;
    let start = |site: &RunSite| reaching_the_receiver(site.server_command(None));
    let (site, mut server) = RunSite::founded_by(None, LEASE, start).await;
    let proxy = CuttableProxy::to(&server.address).await;
    let admin = admin_of(proxy.address().trim_start_matches("http://"));
    let workspace = site.given_workspace(&admin, "web").await;
    let task = json!({ "name": "scan", "url": receiver.url(), "category": "task" });
    let task = json!({ "data": { "type": "tasks", "attributes": task } });
    let task = admin.post("/api/v2/organizations/acme/tasks", task).await["data"]["id"].clone();
    let attached = json!({ "data": { "attributes": { "enforcement-level": "mandatory", "stages": STAGES },
        "relationships": { "task": { "data": { "type": "tasks", "id": task } } } } });
    admin.post(&format!("/api/v2/workspaces/{workspace}/tasks"), attached).await;
    let agent = site.agent("one", &proxy.address());
    receiver.leaves_first_attempts_unanswered();
    let mut kill = || {
        let next = tokio::task::block_in_place(|| start(&site));
        proxy.redirect_to(&next.address);
        // Dropping the old process kills it with SIGKILL.
        drop(std::mem::replace(&mut server, next));
    };
    let run = text(&admin.post("/api/v2/runs", run_that_applies_itself(&workspace)).await["data"]["id"]);
    for stage in STAGES {
        receiver.until(stage, |received| !about(received, stage).is_empty()).await;
        kill();
        let again = receiver.until(&format!("{stage} again"), |received| about(received, stage).len() > 1).await;
        let request = about(&again, stage).last().expect("one").json();
        let own = harness::api_client::ApiClient { token: text(&request["access_token"]), ..admin.clone() };
        let callback = text(&request["task_result_callback_url"]);
        let callback = callback[callback.find("/api/").expect("a path")..].to_owned();
        let body = json!({ "data": { "type": "task-results", "attributes": { "status": "passed" } } });
        // The answer to the call-back is lost with its server, so it is sent again.
        let send = || {
            let sent = own.client.patch(format!("{}{callback}", own.origin)).bearer_auth(&own.token);
            sent.header("content-type", "application/vnd.api+json").body(body.to_string()).send()
        };
        let first = tokio::spawn(send());
        kill();
        drop(first.await);
        until(&format!("the answer about {stage} is taken"), async || {
            send().await.is_ok_and(|answered| answered.status().is_success())
        })
        .await;
    }
    assert_eq!(admin.end_of(&run).await, "applied");
    let stages = admin.get(&format!("/api/v2/runs/{run}/task-stages")).await["data"].clone();
    let statuses: Vec<String> =
        stages.as_array().expect("a list").iter().map(|stage| text(&stage["attributes"]["status"])).collect();
    assert_eq!(statuses, ["passed"; 4]);
    let mut ids: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for one in receiver.received().iter().filter(|one| one.json()["stage"] != "test") {
        let known = ids.entry(text(&one.json()["stage"])).or_default();
        if !known.contains(&one.delivery()) {
            known.push(one.delivery());
        }
    }
    assert_eq!(ids.len(), STAGES.len());
    assert!(ids.values().all(|ids| ids.len() == 1), "a request that comes again is the same: {ids:?}");
    let events = admin.get(&format!("/api/v2/runs/{run}/run-events")).await["data"].clone();
    let actions: Vec<Value> =
        events.as_array().expect("a list").iter().map(|event| event["attributes"]["action"].clone()).collect();
    let expected = [
        "created",
        "pre_plan_running",
        "plan_queued",
        "planning",
        "post_plan_running",
        "planned",
        "confirmed",
        "apply_queued",
        "applying",
        "applied",
    ];
    assert_eq!(actions, expected, "nothing was decided twice");
    drop(agent);
    site.is_sound();
}
