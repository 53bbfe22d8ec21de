//! A newer server on the same bucket, as during an upgrade: what it wrote is neither lost nor overwritten, and what this
//! server cannot read it does not decide around.

use std::collections::BTreeMap;

use axum::http::StatusCode;
use harness::api_server::ApiServer;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use taco_control_plane::PhaseRequest;
use taco_ledger::{Intent, Ledger};
use taco_tables::{Record, tables};

use crate::runs::{act, given_workspace, read_run, start_run, status};
use crate::states::lock;

/// A run as a newer server sees it: with all its fields.
#[derive(Clone, Serialize, Deserialize)]
pub(crate) struct NewerRun {
    id: String,
    #[serde(flatten)]
    fields: BTreeMap<String, Value>,
}

impl Record for NewerRun {
    const KIND: &'static str = "run";
    type Id = String;
    type Indexes = ();

    fn id(&self) -> &String {
        &self.id
    }
}

tables! {
    pub(crate) struct NewerState {
        runs: NewerRun;
    }
}

/// Changes a run as a newer server does.
async fn change(
    ledger: &Ledger<NewerState>,
    run: &str,
    change: impl Fn(&mut BTreeMap<String, Value>) + Send + 'static,
) {
    let intent = Intent { actor: "newer".to_owned(), action: "run.change", request: None };
    let id = run.to_owned();
    let done = ledger.commit(intent, move |tx| {
        let mut run = tx.state().runs.get(&id).cloned().ok_or(())?;
        change(&mut run.fields);
        tx.put(&run);
        Ok::<_, ()>(())
    });
    done.await.expect("a commit");
}

async fn fields(ledger: &Ledger<NewerState>, run: &str) -> BTreeMap<String, Value> {
    ledger.read().await.expect("a read").runs.get(&run.to_owned()).expect("the run").fields.clone()
}

#[tokio::test]
async fn fields_of_a_newer_server_survive_whatever_this_one_changes() {
    let server = ApiServer::start().await;
    let (admin, workspace) = (server.admin(), given_workspace(&server).await);
    let run = start_run(&admin, &workspace, json!({})).await.expect(StatusCode::CREATED).id();
    let newer = server.ledger_of::<NewerState>().await;
    change(&newer, &run, |run| {
        run.insert("policy-checks".to_owned(), json!([{ "id": "pol-1" }]));
        run.get_mut("plan").and_then(Value::as_object_mut).expect("a phase").insert("cost".to_owned(), json!(7));
        let history = run.get_mut("history").and_then(Value::as_array_mut).expect("a history");
        history[0].as_object_mut().expect("an entry").insert("from".to_owned(), json!("vcs"));
    })
    .await;
    act(&admin, &run, "cancel").await.expect(StatusCode::ACCEPTED);
    assert_eq!(status(&admin, &run).await, "canceled");
    let after = fields(&newer, &run).await;
    assert_eq!(after["status"], "canceled");
    assert_eq!(
        (&after["policy-checks"], &after["plan"]["cost"]),
        (&json!([{ "id": "pol-1" }]), &json!(7)),
        "{after:?}"
    );
    assert_eq!(after["history"][0]["from"], "vcs", "{after:?}");
}

#[tokio::test]
async fn nothing_is_decided_around_a_run_that_only_a_newer_server_can_read() {
    let server = ApiServer::start().await;
    let (admin, workspace) = (server.admin(), given_workspace(&server).await);
    let other = server.given_workspace("acme", "other").await;
    let run = start_run(&admin, &workspace, json!({})).await.expect(StatusCode::CREATED).id();
    let plane = &server.control_plane;
    let open = plane.all_organizations().await.expect("organizations").remove(0);
    let taken = plane.take_phase(&open, PhaseRequest::within(plane.id_for_agent_within(), "within")).await;
    let taken = taken.expect("a bucket").expect("a phase is ready");
    let newer = server.ledger_of::<NewerState>().await;
    change(&newer, &run, |run| drop(run.insert("status".to_owned(), json!("policy_checking")))).await;
    let before = fields(&newer, &run).await;

    let here = |answer: &harness::api_server::Answer| {
        let (detail, _) = answer.error();
        assert_eq!(answer.status, StatusCode::SERVICE_UNAVAILABLE, "{detail}");
        assert!(detail.contains(&run) && detail.contains("was written by a newer server"), "{detail}");
    };
    here(&admin.get(&format!("/api/v2/runs/{run}")).await);
    here(&act(&admin, &run, "cancel").await);
    here(&start_run(&admin, &workspace, json!({})).await);
    let described = json!({ "data": { "type": "workspaces", "attributes": { "description": "the site" } } });
    here(&admin.patch(&format!("/api/v2/workspaces/{workspace}"), &described).await);
    here(&admin.delete(&format!("/api/v2/workspaces/{workspace}")).await);
    // Its agent is not told that its work is over: it goes on, and a newer server hears of it.
    let agent = server.agent_with_token(&taken.token);
    let phase = format!("/api/agent/v1/phases/{run}/plan/1");
    let sent = agent.send("PUT", &format!("{phase}/log?offset=0"), None, "a line").await;
    assert_eq!(sent.status, StatusCode::SERVICE_UNAVAILABLE, "{sent:?}");
    admin.get(&format!("/api/v2/workspaces/{workspace}")).await.expect(StatusCode::OK);
    lock(&admin, &other).await.expect(StatusCode::OK);

    assert_eq!(fields(&newer, &run).await, before, "it is as the newer server left it");
    // The newer server comes to an end with it.
    change(&newer, &run, |run| drop(run.insert("status".to_owned(), json!("errored")))).await;
    assert_eq!(read_run(&admin, &run).await.attribute("status"), "errored");
}
