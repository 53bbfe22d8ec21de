//! Runs whose phases are executed: decisions, logs, plans, and what follows an apply. The agent here speaks to the
//! control plane itself.

use axum::http::StatusCode;
use harness::api_server::{Answer, ApiServer, Client};
use jiff::SignedDuration;
use serde_json::{Value, json};
use taco_control_plane::{DueWait, PhaseCaller, PhaseOutcome, PhaseRequest, PlanForm, RequestInfo};
use taco_domain::engine::Engine;
use taco_domain::phase::ResourceCounts;

use crate::runs::{act, given_workspace, read_run, run_body, start_run, status};
use crate::states::path_of;

/// Takes the next phase, as an agent within a server does, and gets its token.
pub(crate) async fn token_of_the_next_phase(server: &ApiServer) -> String {
    let agent = server.control_plane.id_for_agent_within();
    let open = server.control_plane.all_organizations().await.expect("organizations").remove(0);
    let taken = server.control_plane.take_phase(&open, PhaseRequest::within(agent, "within")).await.expect("a bucket");
    taken.expect("a phase is ready").token
}

/// The same, as someone who may send what the phase makes.
pub(crate) async fn take(server: &ApiServer) -> PhaseCaller {
    let token = token_of_the_next_phase(server).await;
    server.control_plane.phase_caller(&token, RequestInfo::default()).await.expect("a phase's token")
}

fn engine() -> (Engine, String) {
    (Engine::Terraform, "1.11.4".to_owned())
}

pub(crate) fn planned(has_changes: bool) -> PhaseOutcome {
    let counts = ResourceCounts { additions: 1, ..ResourceCounts::default() };
    PhaseOutcome::Planned {
        has_changes,
        counts,
        generated_configuration: false,
        engine: engine(),
        policies: Vec::new(),
    }
}

pub(crate) fn applied() -> PhaseOutcome {
    PhaseOutcome::Applied { counts: ResourceCounts { additions: 1, ..ResourceCounts::default() }, engine: engine() }
}

/// Executes the next phase.
pub(crate) async fn execute(server: &ApiServer, outcome: PhaseOutcome) {
    let phase = take(server).await;
    server.control_plane.finish_phase(&phase, outcome).await.expect("the phase ends");
}

async fn part(client: &Client, run: &str, name: &str) -> Answer {
    client.get(&format!("/api/v2/runs/{run}/{name}")).await.expect(StatusCode::OK)
}

#[tokio::test]
async fn a_plan_is_confirmed_and_applied() {
    let server = ApiServer::start().await;
    let admin = server.admin();
    let workspace = given_workspace(&server).await;
    let run = start_run(&admin, &workspace, json!({})).await.id();
    execute(&server, planned(true)).await;
    let read = read_run(&admin, &run).await;
    assert_eq!((read.attribute("status"), read.attribute("has-changes")), (json!("planned"), json!(true)));
    assert_eq!(
        (read.attribute("actions")["is-confirmable"].clone(), read.attribute("terraform-version")),
        (json!(true), json!("1.11.4"))
    );
    assert_eq!(read.attribute("taco-wait-reasons")[0]["reason"], "approval");
    let plan = part(&admin, &run, "plan").await;
    assert_eq!((plan.attribute("status"), plan.attribute("resource-additions")), (json!("finished"), json!(1)));

    let confirm = format!("/api/v2/runs/{run}/actions/apply");
    admin.post(&confirm, &json!({ "comment": "go" })).await.expect(StatusCode::ACCEPTED);
    admin.post(&confirm, &json!({})).await.expect(StatusCode::CONFLICT);
    let read = read_run(&admin, &run).await;
    assert_eq!(read.attribute("status"), "apply_queued");
    assert!(read.data()["relationships"]["confirmed-by"]["data"]["id"].is_string());
    assert_eq!(read.data()["relationships"]["comments"]["data"].as_array().map(Vec::len), Some(1));
    execute(&server, applied()).await;
    assert_eq!(status(&admin, &run).await, "applied");
    assert_eq!(part(&admin, &run, "apply").await.attribute("status"), "finished");
    let read = admin.get(&format!("/api/v2/workspaces/{workspace}")).await;
    assert_eq!((read.attribute("locked"), read.attribute("workspace-kpis-runs-count")), (json!(false), json!(1)));
    let events = admin.get(&format!("/api/v2/runs/{run}/run-events")).await.data();
    let actions: Vec<_> =
        events.as_array().expect("a list").iter().map(|event| event["attributes"]["action"].clone()).collect();
    assert_eq!(actions, ["created", "plan_queued", "planning", "planned", "confirmed", "applying", "applied"]);
}

#[tokio::test]
async fn a_log_is_read_while_it_grows() {
    let server = ApiServer::start().await;
    let admin = server.admin();
    let workspace = given_workspace(&server).await;
    let run = start_run(&admin, &workspace, json!({})).await.id();
    let phase = take(&server).await;
    server.control_plane.append_log(&phase, 0, "\u{2}one\n".into()).await.expect("appended");
    let anyone = server.with_authorization(None);
    let address = path_of(&part(&admin, &run, "plan").await.attribute("log-read-url"));
    let read = |query: &'static str| {
        let (anyone, address) = (anyone.clone(), address.clone());
        async move { anyone.get(&format!("{address}?{query}")).await.expect(StatusCode::OK).bytes }
    };
    assert_eq!(read("limit=65536&offset=0").await, "\u{2}one\n");
    assert_eq!(read("limit=2&offset=1").await, "on");
    let (late, ()) = tokio::join!(read("limit=65536&offset=5"), async {
        server.control_plane.append_log(&phase, 5, "two\n\u{3}".into()).await.expect("appended");
    });
    assert_eq!(late, "two\n", "one who has read everything waits for more");
    let (end, ended) =
        tokio::join!(read("limit=65536&offset=9"), server.control_plane.finish_phase(&phase, planned(false)));
    ended.expect("the plan ends");
    assert_eq!(end, "\u{3}", "a plan's log ends when its plan has ended");
    assert_eq!(read("limit=65536&offset=10").await, "", "behind the end there is nothing, and that is no error");
    anyone.get(&format!("{address}?offset=x")).await.expect(StatusCode::BAD_REQUEST);
    anyone.get(&address.replace("plan-", "apply-")).await.expect(StatusCode::NOT_FOUND);
    let apply = path_of(&part(&admin, &run, "apply").await.attribute("log-read-url"));
    assert_eq!(anyone.get(&apply).await.expect(StatusCode::OK).bytes, "", "nothing was applied");
    assert_eq!(status(&admin, &run).await, "planned_and_finished");
}

/// Lets the logs of the runs that wait say why, as the scheduler does after a moment.
async fn note_waits(server: &ApiServer) {
    let plane = &server.control_plane;
    let open = plane.all_organizations().await.expect("organizations").remove(0);
    let due = plane.waits_last_seen(&open).into_iter().map(|wait| DueWait { wait, since: plane.now() }).collect();
    plane.note_waits(&open, due).await.expect("a bucket");
}

#[tokio::test]
async fn a_log_says_why_its_run_waited() {
    let server = ApiServer::start().await;
    let admin = server.admin();
    let workspace = given_workspace(&server).await;
    let first = start_run(&admin, &workspace, json!({})).await.id();
    let second = start_run(&admin, &workspace, json!({})).await.id();
    let address = path_of(&part(&admin, &second, "plan").await.attribute("log-read-url"));
    let anyone = server.with_authorization(None);
    let read = |offset: usize| {
        let (anyone, path) = (anyone.clone(), format!("{address}?limit=65536&offset={offset}"));
        async move { String::from_utf8(anyone.get(&path).await.expect(StatusCode::OK).bytes.to_vec()).expect("text") }
    };
    let (log, ()) = tokio::join!(read(0), note_waits(&server));
    assert!(log.starts_with("\u{2}Waiting since "), "{log}");
    assert!(log.ends_with(&format!(" UTC: waiting for 1 earlier run; {first} is plan queued\n")), "{log}");
    let waits = part(&admin, &second, "plan").await.attribute("taco-waits");
    assert_eq!(waits[0]["detail"], format!("waiting for 1 earlier run; {first} is plan queued"));

    // How far the other is makes no difference; that no agent executes it does.
    execute(&server, planned(true)).await;
    note_waits(&server).await;
    assert_eq!(read(0).await, log);
    admin.post(&format!("/api/v2/runs/{first}/actions/discard"), &json!({})).await.expect(StatusCode::ACCEPTED);
    let (more, ()) = tokio::join!(read(log.len()), note_waits(&server));
    assert!(more.starts_with("Waiting since ") && more.contains("no built-in agent is running"), "{more}");

    // Two agents, the first of which is lost: all of it is one text.
    let phase = take(&server).await;
    server.control_plane.append_log(&phase, 0, "\u{2}one\n".into()).await.expect("appended");
    let open = server.control_plane.all_organizations().await.expect("organizations").remove(0);
    let lost = server.control_plane.lose_phase(&open, phase.attempt, "it was silent".to_owned()).await;
    assert!(lost.expect("a bucket"));
    note_waits(&server).await;
    let phase = take(&server).await;
    server.control_plane.append_log(&phase, 0, "\u{2}two\n\u{3}".into()).await.expect("appended");
    assert_eq!(read(0).await, format!("{log}{more}one\ntwo\n"));
    server.control_plane.finish_phase(&phase, planned(true)).await.expect("the plan ends");
    assert_eq!(read(0).await, format!("{log}{more}one\ntwo\n\u{3}"));
    assert_eq!(read(log.len() + more.len() + 1).await, "ne\ntwo\n\u{3}");
}

#[tokio::test]
async fn a_run_that_never_began_has_a_log_with_an_end() {
    let server = ApiServer::start().await;
    let admin = server.admin();
    let workspace = given_workspace(&server).await;
    let first = start_run(&admin, &workspace, json!({})).await.id();
    for action in ["cancel", "discard"] {
        let run = start_run(&admin, &workspace, json!({})).await.id();
        note_waits(&server).await;
        admin.post(&format!("/api/v2/runs/{run}/actions/{action}"), &json!({})).await.expect(StatusCode::ACCEPTED);
        let address = path_of(&part(&admin, &run, "plan").await.attribute("log-read-url"));
        let log = server.with_authorization(None).get(&format!("{address}?limit=65536&offset=0")).await.bytes;
        let log = String::from_utf8(log.to_vec()).expect("text");
        assert!(log.starts_with("\u{2}Waiting since ") && log.ends_with("is plan queued\n\u{3}"), "{log}");
        let end = server.with_authorization(None).get(&format!("{address}?offset={}", log.len())).await;
        assert_eq!(end.expect(StatusCode::OK).bytes, "");
    }
    assert_eq!(status(&admin, &first).await, "plan_queued");
}

#[tokio::test]
async fn a_plan_can_be_read_once_it_has_ended() {
    let server = ApiServer::start().await;
    let admin = server.admin();
    let workspace = given_workspace(&server).await;
    let run = start_run(&admin, &workspace, json!({})).await;
    let plan = run.data()["relationships"]["plan"]["data"]["id"].as_str().expect("an id").to_owned();
    let output = |form: &str| format!("/api/v2/plans/{plan}/{form}");
    let phase = take(&server).await;
    let body = |text: &'static str| futures::stream::iter([Ok::<_, std::io::Error>(bytes::Bytes::from(text))]);
    for (form, text) in [(PlanForm::Json, r#"{"whole":1}"#), (PlanForm::Redacted, r#"{"redacted":1}"#)] {
        server.control_plane.upload_plan(&phase, form, body(text)).await.expect("stored");
    }
    admin.get(&output("json-output")).await.expect(StatusCode::NO_CONTENT);
    server.control_plane.finish_phase(&phase, planned(true)).await.expect("the plan ends");
    assert_eq!(admin.get(&output("json-output")).await.expect(StatusCode::OK).json(), json!({ "whole": 1 }));
    assert_eq!(
        admin.get(&output("json-output-redacted")).await.expect(StatusCode::OK).json(),
        json!({ "redacted": 1 })
    );
    admin.get(&format!("/api/v2/runs/{}/plan/json-output", run.id())).await.expect(StatusCode::OK);

    act(&admin, &run.id(), "discard").await.expect(StatusCode::ACCEPTED);
    let failed = start_run(&admin, &workspace, json!({})).await;
    let plan = failed.data()["relationships"]["plan"]["data"]["id"].as_str().expect("an id").to_owned();
    execute(&server, PhaseOutcome::Errored { message: "no provider".to_owned(), engine: None }).await;
    admin.get(&format!("/api/v2/plans/{plan}/json-output-redacted")).await.expect(StatusCode::NOT_FOUND);
    let read = admin.get(&format!("/api/v2/plans/{plan}")).await.expect(StatusCode::OK);
    assert_eq!((read.attribute("status"), read.attribute("taco-error")), (json!("errored"), json!("no provider")));
}

#[tokio::test]
async fn an_agent_is_asked_to_stop_and_then_forced() {
    let server = ApiServer::start().await;
    let admin = server.admin();
    let workspace = given_workspace(&server).await;
    let run = start_run(&admin, &workspace, json!({})).await.id();
    let phase = take(&server).await;
    act(&admin, &run, "force-cancel").await.expect(StatusCode::CONFLICT);
    act(&admin, &run, "cancel").await.expect(StatusCode::ACCEPTED);
    act(&admin, &run, "cancel").await.expect(StatusCode::ACCEPTED);
    let asked = read_run(&admin, &run).await;
    assert_eq!(
        (asked.attribute("status"), asked.attribute("actions")["is-cancelable"].clone()),
        (json!("planning"), json!(false))
    );
    let early = act(&admin, &run, "force-cancel").await.expect(StatusCode::CONFLICT);
    let available = asked.attribute("force-cancel-available-at");
    assert!(early.error().0.contains(available.as_str().expect("a time")), "{early:?}");
    server.pass(SignedDuration::from_secs(61));
    assert_eq!(read_run(&admin, &run).await.attribute("actions")["is-force-cancelable"], true);
    act(&admin, &run, "force-cancel").await.expect(StatusCode::ACCEPTED);
    assert_eq!(status(&admin, &run).await, "planning", "until the agent has stopped it");
    server.control_plane.finish_phase(&phase, PhaseOutcome::Canceled).await.expect("stopped");
    assert_eq!(status(&admin, &run).await, "canceled");
    act(&admin, &run, "force-cancel").await.expect(StatusCode::CONFLICT);
}

#[tokio::test]
async fn a_run_that_was_canceled_while_it_planned_is_not_applied() {
    let server = ApiServer::start().await;
    let admin = server.admin();
    let workspace = given_workspace(&server).await;
    for options in [json!({ "auto-apply": true }), json!({}), json!({ "save-plan": true })] {
        let run = start_run(&admin, &workspace, options.clone()).await.id();
        let phase = take(&server).await;
        act(&admin, &run, "cancel").await.expect(StatusCode::ACCEPTED);
        // The plan was done before its agent heard of it.
        server.control_plane.finish_phase(&phase, planned(true)).await.expect("the plan ends");
        assert_eq!(status(&admin, &run).await, "canceled", "{options}");
        assert_eq!(part(&admin, &run, "apply").await.attribute("status"), "unreachable");
        let read = admin.get(&format!("/api/v2/workspaces/{workspace}")).await;
        assert_eq!(read.attribute("locked"), false, "{options}");
    }
    let run = start_run(&admin, &workspace, json!({ "auto-apply": true })).await.id();
    let phase = take(&server).await;
    act(&admin, &run, "cancel").await.expect(StatusCode::ACCEPTED);
    let failed = PhaseOutcome::Errored { message: "no provider".to_owned(), engine: None };
    server.control_plane.finish_phase(&phase, failed).await.expect("the plan ends");
    assert_eq!(status(&admin, &run).await, "errored", "that is what happened to it");

    let run = start_run(&admin, &workspace, json!({ "auto-apply": true })).await.id();
    execute(&server, planned(true)).await;
    let apply = take(&server).await;
    act(&admin, &run, "cancel").await.expect(StatusCode::ACCEPTED);
    server.control_plane.finish_phase(&apply, applied()).await.expect("the apply ends");
    assert_eq!(status(&admin, &run).await, "applied", "what was done was done");
}

#[tokio::test]
async fn a_saved_plan_blocks_nobody_and_is_applied_in_its_turn() {
    let server = ApiServer::start().await;
    let admin = server.admin();
    let workspace = given_workspace(&server).await;
    let saved = start_run(&admin, &workspace, json!({ "save-plan": true })).await.id();
    execute(&server, planned(true)).await;
    let read = read_run(&admin, &saved).await;
    assert_eq!(
        (read.attribute("status"), read.attribute("actions")["is-confirmable"].clone()),
        (json!("planned_and_saved"), json!(true))
    );
    let other = start_run(&admin, &workspace, json!({})).await.id();
    assert_eq!(status(&admin, &other).await, "plan_queued");
    act(&admin, &saved, "apply").await.expect(StatusCode::ACCEPTED);
    assert_eq!(status(&admin, &saved).await, "confirmed");
    act(&admin, &other, "cancel").await.expect(StatusCode::ACCEPTED);
    assert_eq!(status(&admin, &saved).await, "apply_queued");
    admin.delete(&format!("/api/v2/workspaces/{workspace}")).await.expect(StatusCode::NO_CONTENT);
}

#[tokio::test]
async fn a_workspace_stays_while_something_is_applied() {
    let server = ApiServer::start().await;
    let admin = server.admin();
    let workspace = given_workspace(&server).await;
    start_run(&admin, &workspace, json!({ "auto-apply": true })).await.expect(StatusCode::CREATED);
    execute(&server, planned(true)).await;
    let apply = take(&server).await;
    let path = format!("/api/v2/workspaces/{workspace}");
    let refused = admin.delete(&path).await.expect(StatusCode::CONFLICT);
    assert!(refused.error().0.contains("is applying"), "{refused:?}");
    server.control_plane.finish_phase(&apply, applied()).await.expect("applied");
    admin.delete(&path).await.expect(StatusCode::NO_CONTENT);
}

#[tokio::test(flavor = "multi_thread")]
async fn of_two_who_confirm_and_discard_at_once_one_wins() {
    let here = ApiServer::start().await;
    let there = here.another().await;
    let (left, right) = (here.admin(), there.admin());
    let workspace = given_workspace(&here).await;
    for round in 0..50 {
        let body = run_body(&workspace, None, json!({}));
        let run = left.post("/api/v2/runs", &body).await.expect(StatusCode::CREATED).id();
        execute(&here, planned(true)).await;
        let (confirmed, discarded) = tokio::join!(act(&left, &run, "apply"), act(&right, &run, "discard"));
        let won = [confirmed.status, discarded.status];
        let expected = [StatusCode::ACCEPTED, StatusCode::CONFLICT];
        assert!(won == expected || won == [expected[1], expected[0]], "{round}: {won:?}");
        let after: Value = status(&right, &run).await;
        assert_eq!(after, if confirmed.status.is_success() { "apply_queued" } else { "discarded" });
        if confirmed.status.is_success() {
            act(&left, &run, "cancel").await.expect(StatusCode::ACCEPTED);
        }
    }
}

#[tokio::test]
async fn a_plan_has_an_estimate_where_the_organization_wants_one() {
    let server = ApiServer::start().await;
    let admin = server.admin();
    let workspace = given_workspace(&server).await;
    let estimating = json!({ "data": { "type": "organizations", "attributes": { "cost-estimation-enabled": true } } });
    admin.patch("/api/v2/organizations/acme", &estimating).await.expect(StatusCode::OK);
    let run = start_run(&admin, &workspace, json!({})).await;
    let estimate = run.data()["relationships"]["cost-estimate"]["data"]["id"].as_str().expect("an id").to_owned();
    let run = run.id();
    let read = async || admin.get(&format!("/api/v2/cost-estimates/{estimate}")).await.expect(StatusCode::OK);
    assert_eq!(read().await.attribute("status"), "pending");

    execute(&server, planned(true)).await;
    assert_eq!(status(&admin, &run).await, "cost_estimated");
    let found = admin.get(&format!("/api/v2/workspaces/{workspace}/runs?filter%5Bstatus%5D=cost_estimated")).await;
    assert_eq!(found.data()[0]["id"], run);
    let read = read().await;
    assert_eq!(read.attribute("status"), "finished");
    let counts = ["resources-count", "matched-resources-count", "unmatched-resources-count"];
    assert_eq!(counts.map(|count| read.attribute(count)), [json!(1), json!(0), json!(1)], "taco has no prices");

    let confirm = format!("/api/v2/runs/{run}/actions/apply");
    admin.post(&confirm, &json!({})).await.expect(StatusCode::ACCEPTED);
    assert_eq!(status(&admin, &run).await, "apply_queued");
}
