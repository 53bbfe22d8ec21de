//! The agents' door: who may send what for a phase, until when, and which agents may stay.

use std::time::Duration;

use axum::http::StatusCode;
use harness::api_server::{Answer, ApiServer, Client};
use serde_json::{Value, json};
use taco_agent_api::AgentSocket;
use taco_agent_protocol::{FromAgent, FromServer, Job, PROTOCOL, PhaseAttempt, Refusal, phase_path};
use taco_control_plane::{PhaseRequest, TakenPhase};
use taco_domain::variable::StoredValue;
use taco_ledger::Intent;
use tokio::sync::mpsc;
use tokio::time::timeout;

use crate::runs::{act, given_workspace, read_run, start_run, status};
use crate::states::path_of;

/// Takes the next phase, as an agent within a server does.
pub(crate) async fn take(server: &ApiServer) -> TakenPhase {
    let agent = server.control_plane.id_for_agent_within();
    let open = server.control_plane.all_organizations().await.expect("organizations").remove(0);
    let taken = server.control_plane.take_phase(&open, PhaseRequest::within(agent, "one")).await.expect("a bucket");
    taken.expect("a phase is ready")
}

pub(crate) fn path(phase: &TakenPhase, word: &str) -> String {
    format!("{}/{word}", phase_path(&phase.attempt))
}

/// Sends something for a phase with its agent's token.
pub(crate) async fn send(
    server: &ApiServer,
    phase: &TakenPhase,
    word: &str,
    body: impl Into<axum::body::Body>,
) -> Answer {
    server.agent_with_token(&phase.token).send("PUT", &path(phase, word), None, body).await
}

pub(crate) fn planned() -> String {
    let counts = json!({ "additions": 1 });
    let engine = json!({ "engine": "terraform", "version": "1.11.4" });
    json!({ "outcome": "planned", "has_changes": true, "counts": counts, "generated_configuration": false,
        "engine": engine })
    .to_string()
}

pub(crate) fn applied() -> String {
    let engine = json!({ "engine": "terraform", "version": "1.11.4" });
    json!({ "outcome": "applied", "counts": { "additions": 3 }, "engine": engine }).to_string()
}

fn state(serial: u64) -> String {
    json!({ "version": 4, "terraform_version": "1.11.4", "serial": serial, "lineage": "one", "outputs": {},
        "resources": [] })
    .to_string()
}

#[tokio::test]
async fn what_was_planned_cannot_be_replaced_before_it_is_applied() {
    let server = ApiServer::start().await;
    let admin = server.admin();
    let workspace = given_workspace(&server).await;
    let run = start_run(&admin, &workspace, json!({})).await.id();
    let plan = take(&server).await;
    for word in ["plan", "json-plan", "redacted-plan"] {
        for time in ["first", "again, because the answer was lost"] {
            assert_eq!(
                send(&server, &plan, word, r#"{"plan":1}"#).await.status,
                StatusCode::NO_CONTENT,
                "{word} {time}"
            );
        }
    }
    send(&server, &plan, "log?offset=0", "\u{2}one\u{3}").await.expect(StatusCode::NO_CONTENT);
    send(&server, &plan, "outcome", planned()).await.expect(StatusCode::NO_CONTENT);
    send(&server, &plan, "outcome", planned()).await.expect(StatusCode::NO_CONTENT);
    for (word, body) in [
        ("plan", "another"),
        ("json-plan", "{}"),
        ("redacted-plan", "{}"),
        ("log?offset=5", "another"),
        ("state", &state(1)),
    ] {
        assert_eq!(send(&server, &plan, word, body.to_owned()).await.status, StatusCode::CONFLICT, "{word}");
    }
    act(&admin, &run, "apply").await.expect(StatusCode::ACCEPTED);
    assert_eq!(send(&server, &plan, "plan", "another").await.status, StatusCode::CONFLICT);

    let apply = take(&server).await;
    let fetched = server.agent_with_token(&apply.token).get(&path(&apply, "plan")).await.expect(StatusCode::OK);
    assert_eq!(fetched.bytes, r#"{"plan":1}"#);
    let shown = admin.get(&format!("/api/v2/runs/{run}/plan/json-output")).await.expect(StatusCode::OK);
    assert_eq!(shown.json(), json!({ "plan": 1 }));
}

#[tokio::test]
async fn what_was_replaced_all_the_same_is_not_applied() {
    let server = ApiServer::start().await;
    let late = server.another().await;
    let admin = server.admin();
    let workspace = given_workspace(&server).await;
    let run = start_run(&admin, &workspace, json!({ "auto-apply": true })).await.id();
    let plan = take(&server).await;
    send(&server, &plan, "plan", "what was planned").await.expect(StatusCode::NO_CONTENT);
    // This server knows that the plan goes on, and does not look again.
    send(&late, &plan, "json-plan", r#"{"plan":1}"#).await.expect(StatusCode::NO_CONTENT);
    send(&server, &plan, "outcome", planned()).await.expect(StatusCode::NO_CONTENT);
    send(&late, &plan, "plan", "what was smuggled").await.expect(StatusCode::NO_CONTENT);
    send(&late, &plan, "redacted-plan", "{}").await.expect(StatusCode::NO_CONTENT);

    let apply = take(&server).await;
    let refused = server.agent_with_token(&apply.token).get(&path(&apply, "plan")).await;
    let refused = refused.expect(StatusCode::UNPROCESSABLE_ENTITY);
    assert!(refused.error().0.contains("nothing was applied; plan again"), "{refused:?}");
    let shown = admin.get(&format!("/api/v2/runs/{run}/plan/json-output")).await.expect(StatusCode::OK);
    assert_eq!(shown.json(), json!({ "plan": 1 }), "another server took it, and it is the same");
    let redacted = plan.run.plan_id();
    let redacted = admin.get(&format!("/api/v2/plans/{redacted}/json-output-redacted")).await;
    redacted.expect(StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn what_runs_in_a_phase_cannot_speak_for_it() {
    let server = ApiServer::start().await;
    let admin = server.admin();
    let workspace = given_workspace(&server).await;
    start_run(&admin, &workspace, json!({ "auto-apply": true })).await.expect(StatusCode::CREATED);
    for outcome in [planned(), applied()] {
        let phase = take(&server).await;
        assert_ne!(phase.token, phase.run_token);
        let own = server.agent_with_token(&phase.run_token);
        for word in ["plan", "json-plan", "redacted-plan", "log?offset=0", "state", "outcome"] {
            let refused = own.send("PUT", &path(&phase, word), None, "x").await.expect(StatusCode::UNAUTHORIZED);
            assert!(refused.error().0.contains("a run's own token"), "{refused:?}");
        }
        for word in ["configuration", "state", "plan"] {
            own.get(&path(&phase, word)).await.expect(StatusCode::UNAUTHORIZED);
        }
        // An agent that is older than the run's own token gives a run its own.
        for token in [&phase.run_token, &phase.token] {
            let through_api = server.with_token(token);
            through_api.get(&format!("/api/v2/workspaces/{workspace}")).await.expect(StatusCode::OK);
        }
        send(&server, &phase, "outcome", outcome).await.expect(StatusCode::NO_CONTENT);
        let over = server.with_token(&phase.run_token).get(&format!("/api/v2/workspaces/{workspace}")).await;
        over.expect(StatusCode::UNAUTHORIZED);
    }
}

#[tokio::test]
async fn a_phase_whose_secrets_do_not_open_says_which_and_blocks_nobody() {
    let server = ApiServer::start().await;
    let admin = server.admin();
    let workspace = given_workspace(&server).await;
    let variable = json!({ "data": { "type": "vars",
        "attributes": { "key": "PASSWORD", "value": "s3cr3t", "category": "env", "sensitive": true } } });
    admin.post(&format!("/api/v2/workspaces/{workspace}/vars"), &variable).await.expect(StatusCode::CREATED);
    let run = start_run(&admin, &workspace, json!({ "auto-apply": true })).await.id();
    send(&server, &take(&server).await, "outcome", planned()).await.expect(StatusCode::NO_CONTENT);
    assert_eq!(status(&admin, &run).await, "apply_queued");

    let intent = Intent { actor: "test".to_owned(), action: "variable.spoil", request: None };
    let ledger = server.ledger().await;
    let spoiled = ledger.commit(intent, |tx| {
        let mut variable = tx.state().variables.iter().next().cloned().ok_or(())?;
        variable.value = StoredValue::Sealed("bm90aGluZyB0aGF0IGFueW9uZSBzZWFsZWQ=".to_owned());
        tx.put(&variable);
        Ok::<_, ()>(())
    });
    spoiled.await.expect("a commit");
    let other = server.given_workspace("acme", "other").await;
    crate::configuration_versions::given_configuration(&server, &other).await;
    let next = start_run(&admin, &other, json!({})).await.id();

    assert_eq!(take(&server).await.run.id.to_string(), next, "the next one is not held up");
    let read = read_run(&admin, &run).await;
    assert_eq!(read.attribute("status"), "errored", "nobody has to wonder what it did");
    let apply = admin.get(&format!("/api/v2/runs/{run}/apply")).await.expect(StatusCode::OK);
    let error = apply.attribute("taco-error").as_str().expect("an error").to_owned();
    assert!(error.starts_with("The apply was not begun: the variable PASSWORD: "), "{error}");
    let log = server.with_authorization(None).get(&path_of(&apply.attribute("log-read-url"))).await;
    let log = String::from_utf8(log.expect(StatusCode::OK).bytes.to_vec()).expect("text");
    assert!(log.starts_with('\u{2}') && log.ends_with('\u{3}') && log.contains("PASSWORD"), "{log:?}");
    let read = admin.get(&format!("/api/v2/workspaces/{workspace}")).await.expect(StatusCode::OK);
    assert_eq!(read.attribute("locked"), false);
}

/// Loses the phase, as a server does whose agent was silent for too long.
async fn lose(server: &ApiServer, phase: &TakenPhase) {
    let open = server.control_plane.all_organizations().await.expect("organizations").remove(0);
    let lost = server.control_plane.lose_phase(&open, phase.attempt, "one was not heard for 45 s".to_owned()).await;
    assert!(lost.expect("a bucket"));
}

async fn events(admin: &Client, run: &str) -> Vec<(String, String)> {
    let events = admin.get(&format!("/api/v2/runs/{run}/run-events")).await.expect(StatusCode::OK).data();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let event = |event: &Value| (text(&event["attributes"]["action"]), text(&event["attributes"]["description"]));
    events.as_array().expect("a list").iter().map(event).collect()
}

/// An apply whose agent was given up.
async fn given_lost_apply(server: &ApiServer, workspace: &str) -> (String, TakenPhase) {
    let run = start_run(&server.admin(), workspace, json!({ "auto-apply": true })).await.id();
    let plan = take(server).await;
    send(server, &plan, "outcome", planned()).await.expect(StatusCode::NO_CONTENT);
    let apply = take(server).await;
    send(server, &apply, "log?offset=0", "\u{2}applying\n").await.expect(StatusCode::NO_CONTENT);
    send(server, &apply, "state", state(1)).await.expect(StatusCode::NO_CONTENT);
    lose(server, &apply).await;
    assert_eq!(status(&server.admin(), &run).await, "errored");
    (run, apply)
}

async fn apply_log(server: &ApiServer, run: &str) -> String {
    let apply = server.admin().get(&format!("/api/v2/runs/{run}/apply")).await.expect(StatusCode::OK);
    let address = path_of(&apply.attribute("log-read-url"));
    let read = server.with_authorization(None).get(&format!("{address}?limit=65536&offset=0")).await;
    String::from_utf8(read.expect(StatusCode::OK).bytes.to_vec()).expect("text")
}

#[tokio::test]
async fn a_state_that_comes_after_its_workspace_was_unlocked_can_be_found_and_restored() {
    let server = ApiServer::start().await;
    let admin = server.admin();
    let workspace = given_workspace(&server).await;
    let (run, apply) = given_lost_apply(&server, &workspace).await;
    let path = format!("/api/v2/workspaces/{workspace}");
    admin.post(&format!("{path}/actions/force-unlock"), &json!({})).await.expect(StatusCode::OK);
    let before = admin.get(&format!("{path}/current-state-version")).await.expect(StatusCode::OK).id();

    for _ in 0..2 {
        send(&server, &apply, "state", state(2)).await.expect(StatusCode::NO_CONTENT);
    }
    let current = || async { admin.get(&format!("{path}/current-state-version")).await.expect(StatusCode::OK) };
    assert_eq!(current().await.id(), before, "somebody may have gone on from it");
    let of_workspace = "filter%5Bworkspace%5D%5Bname%5D=web&filter%5Borganization%5D%5Bname%5D=acme";
    let listed = admin.get(&format!("/api/v2/state-versions?{of_workspace}")).await.expect(StatusCode::OK).data();
    let serials: Vec<_> =
        listed.as_array().expect("a list").iter().map(|version| &version["attributes"]["serial"]).collect();
    assert_eq!(serials, [2, 1], "it is kept, once");
    let rescued = listed[0]["id"].as_str().expect("an id");
    let download = path_of(&listed[0]["attributes"]["hosted-state-download-url"]);
    let bytes = server.with_authorization(None).get(&download).await.expect(StatusCode::OK).bytes;
    assert_eq!(bytes, state(2));
    let told = events(&admin, &run).await;
    let (_, words) = told.iter().find(|(action, _)| action == "state_rescued").expect("it is told");
    assert!(words.contains(rescued) && words.contains("restore it"), "{words}");
    assert_eq!(told.iter().filter(|(action, _)| action == "state_rescued").count(), 1);

    admin.post(&format!("{path}/actions/lock"), &json!({})).await.expect(StatusCode::OK);
    let restore = json!({ "data": { "type": "state-versions", "relationships": {
        "rollback-state-version": { "data": { "type": "state-versions", "id": rescued } } } } });
    admin.patch(&format!("{path}/state-versions"), &restore).await.expect(StatusCode::CREATED);
    assert_eq!(current().await.attribute("serial"), 2);
}

#[tokio::test]
async fn an_agent_that_comes_back_tells_how_its_apply_ended() {
    let errored = json!({ "outcome": "errored", "message": "the engine failed" }).to_string();
    for (outcome, words, stays_locked) in [
        (applied(), "one came back: it applied everything", false),
        (errored, "one came back: the engine failed", true),
        (json!({ "outcome": "canceled" }).to_string(), "one came back: it stopped the apply", true),
    ] {
        let server = ApiServer::start().await;
        let admin = server.admin();
        let workspace = given_workspace(&server).await;
        let (run, apply) = given_lost_apply(&server, &workspace).await;
        let next = start_run(&admin, &workspace, json!({})).await.id();
        let closed = apply_log(&server, &run).await;
        let unknown = "\u{2}applying\n\nError: Apply outcome unknown: one was not heard for 45 s\n\u{3}";
        assert_eq!(closed, unknown, "clients do not wait for more");

        send(&server, &apply, "state", state(2)).await.expect(StatusCode::NO_CONTENT);
        send(&server, &apply, "log?offset=10", "done\n\u{3}").await.expect(StatusCode::NO_CONTENT);
        assert_eq!(apply_log(&server, &run).await, closed, "it has not said that this is all");
        for _ in 0..2 {
            send(&server, &apply, "outcome", outcome.clone()).await.expect(StatusCode::NO_CONTENT);
        }
        let current = format!("/api/v2/workspaces/{workspace}/current-state-version");
        assert_eq!(admin.get(&current).await.expect(StatusCode::OK).attribute("serial"), 2);
        assert_eq!(status(&admin, &run).await, "errored", "what is over stays over");
        let told = events(&admin, &run).await;
        let returned: Vec<_> = told.iter().filter(|(action, _)| action == "agent_returned").collect();
        assert_eq!(returned.iter().map(|(_, words)| words.as_str()).collect::<Vec<_>>(), [words]);
        let read = admin.get(&format!("/api/v2/runs/{run}/apply")).await.expect(StatusCode::OK);
        assert_eq!(read.attribute("taco-late-outcome"), words);
        assert!(read.attribute("taco-error").as_str().is_some_and(|error| error.contains("outcome unknown")));
        assert_eq!(apply_log(&server, &run).await, "\u{2}applying\ndone\n\u{3}");
        let waits = if stays_locked { "pending" } else { "plan_queued" };
        assert_eq!(status(&admin, &next).await, waits);
        send(&server, &apply, "log?offset=16", "more").await.expect(StatusCode::CONFLICT);
    }
}

#[tokio::test]
async fn an_apply_that_did_not_end_by_itself_keeps_its_workspace_until_a_person_has_looked() {
    let server = ApiServer::start().await;
    let admin = server.admin();
    let workspace = given_workspace(&server).await;
    let killed = json!({ "outcome": "errored", "message": "terraform was killed", "incomplete": true });
    let forced = json!({ "outcome": "canceled", "incomplete": true });
    for (outcome, end, words) in
        [(killed, "errored", "terraform was killed"), (forced, "canceled", "it was stopped by force")]
    {
        let run = start_run(&admin, &workspace, json!({ "auto-apply": true })).await.id();
        send(&server, &take(&server).await, "outcome", planned()).await.expect(StatusCode::NO_CONTENT);
        let apply = take(&server).await;
        let next = start_run(&admin, &workspace, json!({})).await.id();
        for _ in 0..2 {
            send(&server, &apply, "outcome", outcome.to_string()).await.expect(StatusCode::NO_CONTENT);
        }
        assert_eq!(status(&admin, &run).await, end);
        let read = admin.get(&format!("/api/v2/runs/{run}/apply")).await.expect(StatusCode::OK);
        assert_eq!(read.attribute("taco-error"), format!("Apply outcome unknown: {words}"));
        let path = format!("/api/v2/workspaces/{workspace}");
        let read = admin.get(&path).await.expect(StatusCode::OK);
        assert_eq!(read.data()["relationships"]["locked-by"]["data"]["id"], run.as_str());
        let reason = read.attribute("locked-reason");
        assert!(reason.as_str().is_some_and(|reason| reason.contains(words) && reason.contains("force-unlock")));
        assert_eq!(status(&admin, &next).await, "pending");
        admin.post(&format!("{path}/actions/force-unlock"), &json!({})).await.expect(StatusCode::OK);
        assert_eq!(status(&admin, &next).await, "plan_queued");
        act(&admin, &next, "cancel").await.expect(StatusCode::ACCEPTED);
    }
    // A plan changes nothing, however it ends.
    start_run(&admin, &workspace, json!({})).await.expect(StatusCode::CREATED);
    let killed = json!({ "outcome": "errored", "message": "terraform was killed", "incomplete": true }).to_string();
    send(&server, &take(&server).await, "outcome", killed).await.expect(StatusCode::NO_CONTENT);
    let read = admin.get(&format!("/api/v2/workspaces/{workspace}")).await.expect(StatusCode::OK);
    assert_eq!(read.attribute("locked"), false);
}

#[tokio::test]
async fn the_beginning_of_a_long_message_is_kept() {
    let server = ApiServer::start().await;
    let admin = server.admin();
    let workspace = given_workspace(&server).await;
    let run = start_run(&admin, &workspace, json!({})).await.id();
    let message = format!("no provider {}", "ö".repeat(1_500_000));
    let outcome = json!({ "outcome": "errored", "message": message }).to_string();
    send(&server, &take(&server).await, "outcome", outcome).await.expect(StatusCode::NO_CONTENT);
    assert_eq!(status(&admin, &run).await, "errored");
    let read = admin.get(&format!("/api/v2/runs/{run}/plan")).await.expect(StatusCode::OK);
    let error = read.attribute("taco-error").as_str().expect("an error").to_owned();
    assert!(error.starts_with("no provider ö") && error.len() < 5_000, "{} bytes", error.len());
    assert!(error.ends_with("(cut off: this is the beginning of 3000012 bytes)"), "{error}");
}

#[tokio::test]
async fn a_log_whose_agents_were_all_lost_has_an_end() {
    let server = ApiServer::start().await;
    let admin = server.admin();
    let workspace = given_workspace(&server).await;
    let run = start_run(&admin, &workspace, json!({})).await.id();
    let plan = admin.get(&format!("/api/v2/runs/{run}/plan")).await.expect(StatusCode::OK);
    let address = path_of(&plan.attribute("log-read-url"));
    let anyone = server.with_authorization(None);
    let read = |offset: usize| {
        let (anyone, path) = (anyone.clone(), format!("{address}?limit=65536&offset={offset}"));
        async move { String::from_utf8(anyone.get(&path).await.expect(StatusCode::OK).bytes.to_vec()).expect("text") }
    };
    let first = take(&server).await;
    // It had ended its log, and was lost before it could say how the plan ended.
    send(&server, &first, "log?offset=0", "\u{2}one\n\u{3}").await.expect(StatusCode::NO_CONTENT);
    lose(&server, &first).await;
    let second = take(&server).await;
    send(&server, &second, "log?offset=0", "\u{2}two\n").await.expect(StatusCode::NO_CONTENT);
    let (end, ()) = tokio::join!(read(9), lose(&server, &second));
    assert_eq!(end, "\nError: The plan was lost 2 times: one was not heard for 45 s\n\u{3}", "readers are woken");
    assert_eq!(read(0).await, format!("\u{2}one\ntwo\n{end}"));
    assert_eq!(read(3).await, format!("e\ntwo\n{end}"));
    assert_eq!(read(9 + end.len()).await, "");

    let run = start_run(&admin, &workspace, json!({})).await.id();
    let silent = take(&server).await;
    act(&admin, &run, "cancel").await.expect(StatusCode::ACCEPTED);
    lose(&server, &silent).await;
    let plan = admin.get(&format!("/api/v2/runs/{run}/plan")).await.expect(StatusCode::OK);
    let log = anyone.get(&path_of(&plan.attribute("log-read-url"))).await.expect(StatusCode::OK).bytes;
    assert_eq!((plan.attribute("status"), log), (json!("canceled"), "\u{2}\u{3}".into()));
}

/// A connection to an agent, whose end the test holds.
struct Wire {
    from_agent: mpsc::UnboundedReceiver<FromAgent>,
    to_agent: mpsc::UnboundedSender<FromServer>,
}

impl AgentSocket for Wire {
    async fn hear(&mut self) -> Option<Result<FromAgent, serde_json::Error>> {
        self.from_agent.recv().await.map(Ok)
    }

    async fn say(&mut self, message: &FromServer) -> bool {
        self.to_agent.send(message.clone()).is_ok()
    }
}

/// An agent of a pool that is connected.
struct Connected {
    says: mpsc::UnboundedSender<FromAgent>,
    hears: mpsc::UnboundedReceiver<FromServer>,
}

impl Connected {
    async fn to(server: &ApiServer, token: &str) -> Self {
        let caller = server.agent_caller(token).await;
        let (says, from_agent) = mpsc::unbounded_channel();
        let (to_agent, hears) = mpsc::unbounded_channel();
        let agents = server.agents.clone();
        tokio::spawn(async move { agents.run_session(caller, Wire { from_agent, to_agent }).await });
        let hello = FromAgent::Hello {
            protocol: PROTOCOL,
            version: "1.0.0".to_owned(),
            name: "rack".to_owned(),
            agent: None,
            instance: None,
            concurrency: 2,
            engines: Vec::new(),
            running: Vec::new(),
            once: false,
        };
        says.send(hello).expect("a connection");
        Self { says, hears }
    }

    /// The next thing that it hears besides heartbeats' answers; `None` when the connection is over.
    async fn hear(&mut self) -> Option<FromServer> {
        loop {
            let heard = timeout(Duration::from_secs(20), self.hears.recv()).await.expect("something happens");
            match heard {
                Some(FromServer::Published { .. }) => {}
                other => return other,
            }
        }
    }

    async fn is_welcome(&mut self) {
        assert!(matches!(self.hear().await, Some(FromServer::Welcome { .. })));
        self.heartbeat(1, &[]);
    }

    fn heartbeat(&self, number: u64, running: &[PhaseAttempt]) {
        let _ = self.says.send(FromAgent::Heartbeat { number, running: running.to_vec(), draining: false });
    }

    async fn gets_a_job(&mut self) -> Box<Job> {
        match self.hear().await {
            Some(FromServer::Execute(job)) => job,
            other => panic!("no job: {other:?}"),
        }
    }

    /// Refusal that it gets before the connection ends.
    async fn is_refused(&mut self) -> String {
        let Some(FromServer::Refused { reason, detail }) = self.hear().await else { panic!("it may stay") };
        assert_eq!(reason, Refusal::Unauthorized);
        assert!(self.hear().await.is_none(), "the connection ends");
        detail
    }
}

/// A pool that executes the runs of a workspace: its id, and a token of its agents with its id.
async fn given_pool(server: &ApiServer, workspace: &str) -> (String, String, String) {
    let admin = server.admin();
    let pool = json!({ "data": { "type": "agent-pools", "attributes": { "name": "rack" } } });
    let pool = admin.post("/api/v2/organizations/acme/agent-pools", &pool).await.expect(StatusCode::CREATED).id();
    let token = json!({ "data": { "type": "authentication-tokens", "attributes": {
        "description": "rack 1", "expired-at": "2026-01-01T12:30:00Z" } } });
    let tokens = format!("/api/v2/agent-pools/{pool}/authentication-tokens");
    let token = admin.post(&tokens, &token).await.expect(StatusCode::CREATED);
    let mode = json!({ "execution-mode": "agent", "agent-pool-id": pool });
    let change = json!({ "data": { "type": "workspaces", "attributes": mode } });
    admin.patch(&format!("/api/v2/workspaces/{workspace}"), &change).await.expect(StatusCode::OK);
    (pool, token.attribute("token").as_str().expect("a token").to_owned(), token.id())
}

#[tokio::test(start_paused = true)]
async fn an_agent_goes_when_its_token_or_its_pool_does() {
    for (number, words) in ["token was revoked", "token expired", "pool was deleted"].into_iter().enumerate() {
        let server = ApiServer::start().await;
        let admin = server.admin();
        let workspace = given_workspace(&server).await;
        let (pool, token, token_id) = given_pool(&server, &workspace).await;
        let scheduler = server.scheduler.clone();
        let working = tokio::spawn(async move { scheduler.run(std::future::pending()).await });
        let mut agent = Connected::to(&server, &token).await;
        agent.is_welcome().await;
        start_run(&admin, &workspace, json!({})).await.expect(StatusCode::CREATED);
        let job = agent.gets_a_job().await;
        agent.heartbeat(2, &[job.phase]);

        match number {
            0 => {
                let token = format!("/api/v2/authentication-tokens/{token_id}");
                admin.delete(&token).await.expect(StatusCode::NO_CONTENT);
            }
            1 => server.pass(jiff::SignedDuration::from_mins(31)),
            _ => {
                admin.delete(&format!("/api/v2/agent-pools/{pool}")).await.expect(StatusCode::NO_CONTENT);
            }
        }
        let other = server.given_workspace("acme", "other").await;
        crate::configuration_versions::given_configuration(&server, &other).await;
        if number < 2 {
            let mode = json!({ "execution-mode": "agent", "agent-pool-id": pool });
            let change = json!({ "data": { "type": "workspaces", "attributes": mode } });
            admin.patch(&format!("/api/v2/workspaces/{other}"), &change).await.expect(StatusCode::OK);
        }
        let second = start_run(&admin, &other, json!({})).await.id();
        // It has room for one more, and ends what it has.
        tokio::time::sleep(Duration::from_secs(6)).await;
        agent.heartbeat(3, &[job.phase]);
        tokio::time::sleep(Duration::from_secs(1)).await;
        while let Ok(heard) = agent.hears.try_recv() {
            assert!(matches!(heard, FromServer::Published { .. }), "{words}: {heard:?}");
        }
        assert_eq!(status(&admin, &second).await, "plan_queued", "{words}: it gets nothing new");
        let outcome = format!("{}/outcome", phase_path(&job.phase));
        let ended = server.agent_with_token(&job.token).send("PUT", &outcome, None, planned()).await;
        assert_eq!(ended.status, StatusCode::NO_CONTENT, "{words}: that has a token of its own");
        agent.heartbeat(4, &[]);
        let detail = agent.is_refused().await;
        assert!(detail.contains(words), "{detail}");
        working.abort();
    }
}
