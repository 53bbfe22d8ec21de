//! Run tasks: who may have what asked about runs, what is asked, and what an answer does to a run.

use axum::http::StatusCode;
use harness::api_server::{Answer, ApiServer, Client};
use harness::permission_site::{attributes, next_phase};
use harness::webhook_receiver::{Received, WebhookReceiver};
use jiff::SignedDuration;
use serde_json::{Value, json};
use taco_agent_protocol::phase_path;
use taco_control_plane::AttendedTask;
use taco_domain::history::HistoryRules;
use taco_tfc_api::routes;

use crate::run_phases::{applied, execute, planned};
use crate::runs::{act, given_workspace, read_run, start_run, status};
use crate::states::path_of;

const KEY: &str = "a key that only the task knows";
const ALL_STAGES: [&str; 4] = ["pre_plan", "post_plan", "pre_apply", "post_apply"];

/// A task as attributes.
fn task(receiver: &WebhookReceiver) -> Value {
    json!({ "name": "scan", "url": receiver.url(), "category": "task", "hmac-key": KEY, "description": "looks" })
}

async fn create(client: &Client, values: Value) -> Answer {
    client.post("/api/v2/organizations/acme/tasks", &attributes("tasks", values)).await
}

fn attachment(task: &str, level: &str, stages: &[&str]) -> Value {
    json!({ "data": { "type": "workspace-tasks", "attributes": { "enforcement-level": level, "stages": stages },
        "relationships": { "task": { "data": { "type": "tasks", "id": task } } } } })
}

async fn attach(client: &Client, workspace: &str, task: &str, level: &str, stages: &[&str]) -> Answer {
    let path = format!("/api/v2/workspaces/{workspace}/tasks");
    client.post(&path, &attachment(task, level, stages)).await
}

/// A workspace whose runs are asked about in these stages, and the receiver of the requests.
async fn asked_in(stages: &[&str], level: &str) -> (ApiServer, WebhookReceiver, String) {
    let (server, receiver) = (ApiServer::start().await, WebhookReceiver::start().await);
    let admin = server.admin();
    let workspace = given_workspace(&server).await;
    let id = create(&admin, task(&receiver)).await.expect(StatusCode::CREATED).id();
    attach(&admin, &workspace, &id, level, stages).await.expect(StatusCode::CREATED);
    (server, receiver, workspace)
}

/// Does what is due about tasks, once, as servers do.
async fn attend(server: &ApiServer) -> Vec<AttendedTask> {
    let mut attended = Vec::new();
    for org in server.control_plane.all_organizations().await.expect("organizations") {
        for due in server.control_plane.due_tasks(&org) {
            attended.push(server.control_plane.attend_task(&org, due).await.expect("a bucket"));
        }
    }
    attended
}

fn answer(status: &str) -> Value {
    attributes("task-results", json!({ "status": status, "message": format!("it has {status}") }))
}

/// Sends an answer to the newest request, as its task does.
async fn answered(server: &ApiServer, request: &Received, body: &Value) -> Answer {
    let asked = request.json();
    let token = asked["access_token"].as_str().expect("a token");
    server.with_token(token).patch(&path_of(&asked["task_result_callback_url"]), body).await
}

/// Asks the next task, and lets it answer.
async fn answer_next(server: &ApiServer, receiver: &WebhookReceiver, status: &str) -> Received {
    assert_eq!(attend(server).await, [AttendedTask::Asked]);
    let request = receiver.received().pop().expect("a request");
    answered(server, &request, &answer(status)).await.expect(StatusCode::OK);
    request
}

async fn stages(client: &Client, run: &str) -> Vec<(String, String)> {
    let listed = client.get(&format!("/api/v2/runs/{run}/task-stages")).await.expect(StatusCode::OK).data();
    let text = |value: &Value| value.as_str().expect("text").to_owned();
    let stage = |one: &Value| (text(&one["attributes"]["stage"]), text(&one["attributes"]["status"]));
    listed.as_array().expect("a list").iter().map(stage).collect()
}

/// Lets the plan end, with all its files.
async fn plan_with_files(server: &ApiServer) {
    let phase = next_phase(server, "acme").await;
    let agent = server.agent_with_token(&phase.token);
    let outcome = json!({ "outcome": "planned", "has_changes": true, "counts": { "additions": 1 },
        "generated_configuration": false, "engine": { "engine": "terraform", "version": "1.11.4" } });
    let files = ["plan", "json-plan", "redacted-plan"].map(|word| (word, r#"{"format_version":"1.2"}"#.to_owned()));
    for (word, body) in files.into_iter().chain([("outcome", outcome.to_string())]) {
        let path = format!("{}/{word}", phase_path(&phase.attempt));
        agent.send("PUT", &path, None, body).await.expect(StatusCode::NO_CONTENT);
    }
}

#[tokio::test]
async fn a_run_asks_its_tasks_at_every_stage_of_its_way() {
    let (server, receiver, workspace) = asked_in(&ALL_STAGES, "mandatory").await;
    let admin = server.admin();
    let test = receiver.received().remove(0);
    assert_eq!(
        (test.json()["access_token"].clone(), test.json()["stage"].clone()),
        (json!("test-token"), json!("test"))
    );
    assert!(test.is_task_signed_with(KEY) && !test.is_task_signed_with("another"));

    let run = start_run(&admin, &workspace, json!({ "message": "Move it" })).await.id();
    let read = read_run(&admin, &run).await;
    assert_eq!(read.attribute("status"), "pre_plan_running");
    assert_eq!(read.attribute("taco-wait-reasons")[0]["detail"], "waiting for the pre-plan task scan");
    let pending = |stage: &str| (stage.to_owned(), "pending".to_owned());
    let mut expected = vec![("pre_plan".to_owned(), "running".to_owned())];
    expected.extend(["post_plan", "pre_apply", "post_apply"].map(pending));
    assert_eq!(stages(&admin, &run).await, expected, "clients look once, at the beginning");

    let request = answer_next(&server, &receiver, "passed").await;
    let asked = request.json();
    assert!(request.is_task_signed_with(KEY));
    assert!(request.header("user-agent").is_some_and(|agent| agent.starts_with("TFC/1.0 (+http")));
    assert_eq!((asked["stage"].clone(), asked["run_id"].clone()), (json!("pre_plan"), json!(run)));
    assert_eq!((asked["workspace_name"].clone(), asked["organization_name"].clone()), (json!("web"), json!("acme")));
    assert_eq!((asked["run_message"].clone(), asked["is_speculative"].clone()), (json!("Move it"), json!(false)));
    assert_eq!(asked["capabilities"], json!({ "outcomes": true }));
    assert_eq!(asked["task_result_enforcement_level"], "mandatory");
    assert_eq!(asked.get("plan_json_api_url"), None, "there is no plan yet");
    assert_eq!(status(&admin, &run).await, "plan_queued");

    plan_with_files(&server).await;
    assert_eq!(status(&admin, &run).await, "post_plan_running");
    act(&admin, &run, "apply").await.expect(StatusCode::CONFLICT);
    assert_eq!(attend(&server).await, [AttendedTask::Asked]);
    let request = receiver.received().pop().expect("a request");
    let asked = request.json();
    let own = server.with_token(asked["access_token"].as_str().expect("a token"));
    let plan = own.get(&path_of(&asked["plan_json_api_url"])).await.expect(StatusCode::OK);
    assert_eq!(plan.bytes, r#"{"format_version":"1.2"}"#);
    own.get(&path_of(&asked["configuration_version_download_url"])).await.expect(StatusCode::OK);
    answered(&server, &request, &answer("running")).await.expect(StatusCode::OK);
    assert_eq!(status(&admin, &run).await, "post_plan_running");
    answered(&server, &request, &answer("passed")).await.expect(StatusCode::OK);
    own.get(&path_of(&asked["plan_json_api_url"])).await.expect(StatusCode::UNAUTHORIZED);
    assert_eq!(status(&admin, &run).await, "planned");

    act(&admin, &run, "apply").await.expect(StatusCode::ACCEPTED);
    assert_eq!(status(&admin, &run).await, "pre_apply_running");
    answer_next(&server, &receiver, "passed").await;
    assert_eq!(status(&admin, &run).await, "apply_queued");
    execute(&server, applied()).await;
    assert_eq!(status(&admin, &run).await, "applied");
    answer_next(&server, &receiver, "failed").await;
    let ended = stages(&admin, &run).await;
    assert!(ended.iter().all(|(_, status)| status == "passed"), "after the apply nothing can be stopped: {ended:?}");

    let path = format!("/api/v2/runs/{run}?include=task_stages");
    let included = admin.get(&path).await.json()["included"].clone();
    assert_eq!(included.as_array().map(Vec::len), Some(4));
    let stage = included[1]["id"].as_str().expect("an id").to_owned();
    let read = admin.get(&format!("/api/v2/task-stages/{stage}?include=task_results")).await.expect(StatusCode::OK);
    assert!(read.attribute("status-timestamps")["passed-at"].is_string());
    let result = &read.json()["included"][0];
    assert_eq!(result["attributes"]["message"], "it has passed");
    assert_eq!(
        (result["attributes"]["task-name"].clone(), result["type"].clone()),
        (json!("scan"), json!("task-results"))
    );
    let path = format!("/api/v2/task-results/{}?include=task_stage", result["id"].as_str().expect("an id"));
    let read = admin.get(&path).await.expect(StatusCode::OK);
    assert_eq!(read.json()["included"][0]["id"], stage.as_str());
    assert_eq!(attend(&server).await, [], "nothing is due any more");
}

#[tokio::test]
async fn a_mandatory_failure_stops_the_run_and_an_advisory_one_does_not() {
    for (level, expected) in [("mandatory", "errored"), ("advisory", "planned")] {
        let (server, receiver, workspace) = asked_in(&["post_plan"], level).await;
        let admin = server.admin();
        let run = start_run(&admin, &workspace, json!({})).await.id();
        let next = start_run(&admin, &workspace, json!({})).await.id();
        execute(&server, planned(true)).await;
        answer_next(&server, &receiver, "failed").await;
        assert_eq!(status(&admin, &run).await, expected);
        if expected == "errored" {
            let events = admin.get(&format!("/api/v2/runs/{run}/run-events")).await.data();
            let last = events.as_array().and_then(|events| events.last()).expect("an event")["attributes"].clone();
            let why = "The run was stopped: the mandatory task scan failed in the Post-plan stage";
            assert_eq!(last["description"], why);
            assert_eq!(status(&admin, &next).await, "plan_queued", "the next one begins");
        }
    }
}

#[tokio::test]
async fn a_task_that_says_nothing_is_given_up() {
    let (server, receiver, workspace) = asked_in(&["pre_plan"], "mandatory").await;
    let admin = server.admin();
    let run = start_run(&admin, &workspace, json!({})).await.id();
    assert_eq!(attend(&server).await, [AttendedTask::Asked]);
    let request = receiver.received().pop().expect("a request");
    server.pass(SignedDuration::from_mins(9));
    answered(&server, &request, &answer("running")).await.expect(StatusCode::OK);
    server.pass(SignedDuration::from_mins(9));
    assert_eq!(attend(&server).await, []);
    server.pass(SignedDuration::from_mins(1));
    assert_eq!(attend(&server).await, [AttendedTask::GivenUp]);
    assert_eq!(status(&admin, &run).await, "errored");
    let plan = admin.get(&format!("/api/v2/runs/{run}/plan")).await;
    let why = "The run was stopped: the mandatory task scan gave no answer in the Pre-plan stage";
    assert_eq!(plan.attribute("taco-error"), why);
    answered(&server, &request, &answer("passed")).await.expect(StatusCode::CONFLICT);
    assert_eq!(status(&admin, &run).await, "errored");
}

#[tokio::test]
async fn a_task_is_asked_again_while_that_may_help() {
    let (server, receiver, workspace) = asked_in(&["pre_plan"], "advisory").await;
    let admin = server.admin();
    let run = start_run(&admin, &workspace, json!({})).await.id();
    receiver.answers_with([500, 503]);
    assert_eq!(attend(&server).await, [AttendedTask::Failed]);
    assert_eq!(attend(&server).await, [], "not at once");
    server.pass(SignedDuration::from_secs(2));
    assert_eq!(attend(&server).await, [AttendedTask::Failed]);
    server.pass(SignedDuration::from_secs(4));
    assert_eq!(attend(&server).await, [AttendedTask::Asked]);
    let received = receiver.received();
    let ids: Vec<_> = received[1..].iter().map(Received::delivery).collect();
    assert_eq!(ids, [ids[0].clone(), ids[0].clone(), ids[0].clone()], "each attempt says that it is the same");
    answered(&server, &received[3], &answer("passed")).await.expect(StatusCode::OK);
    assert_eq!(status(&admin, &run).await, "plan_queued");

    execute(&server, planned(false)).await;
    let refused = start_run(&admin, &workspace, json!({})).await.id();
    receiver.answers_with([404]);
    assert_eq!(attend(&server).await, [AttendedTask::GivenUp], "asking again would not help");
    assert_eq!(status(&admin, &refused).await, "plan_queued", "it was advisory");
}

#[tokio::test]
async fn an_answer_counts_once_and_only_with_its_own_token() {
    let (server, receiver, workspace) = asked_in(&["pre_plan"], "advisory").await;
    let admin = server.admin();
    let run = start_run(&admin, &workspace, json!({})).await.id();
    let speculative = start_run(&admin, &workspace, json!({ "plan-only": true })).await.id();
    assert_eq!(attend(&server).await.len(), 2);
    let received = receiver.received();
    let of = |run: &str| received.iter().find(|one| one.json()["run_id"] == run).expect("a request").clone();
    let (first, second) = (of(&run), of(&speculative));
    assert_eq!(second.json()["is_speculative"], true);
    let callback = path_of(&first.json()["task_result_callback_url"]);
    let other = server.with_token(second.json()["access_token"].as_str().expect("a token"));
    other.patch(&callback, &answer("passed")).await.expect(StatusCode::NOT_FOUND);
    admin.patch(&callback, &answer("passed")).await.expect(StatusCode::NOT_FOUND);
    for token in [None, Some("Bearer test-token"), Some("Bearer taco_task_x_9999999999_00")] {
        let anyone = server.with_authorization(token);
        anyone.patch(&callback, &answer("passed")).await.expect(StatusCode::UNAUTHORIZED);
    }
    for (body, words) in [
        (answer("errored"), "Status must be one of running, passed, failed; it is \"errored\""),
        (attributes("task-results", json!({})), "Status can't be blank"),
        (
            attributes("task-results", json!({ "status": "passed", "url": "javascript:alert(1)" })),
            "Url must begin with",
        ),
        (
            json!({ "data": { "type": "task-results", "attributes": { "status": "passed" }, "relationships": {
                "outcomes": { "data": [{ "type": "task-result-outcomes", "attributes": { "description": "x" } }] } } } }),
            "An outcome must have an outcome-id",
        ),
    ] {
        let refused = answered(&server, &first, &body).await.expect(StatusCode::UNPROCESSABLE_ENTITY);
        assert!(refused.error().0.contains(words), "{}", refused.error().0);
    }
    assert_eq!(status(&admin, &run).await, "pre_plan_running");
    answered(&server, &first, &answer("failed")).await.expect(StatusCode::OK);
    answered(&server, &first, &answer("failed")).await.expect(StatusCode::OK);
    answered(&server, &first, &answer("passed")).await.expect(StatusCode::CONFLICT);
    act(&admin, &speculative, "cancel").await.expect(StatusCode::ACCEPTED);
    answered(&server, &second, &answer("passed")).await.expect(StatusCode::CONFLICT);
    assert_eq!(stages(&admin, &speculative).await, [("pre_plan".to_owned(), "canceled".to_owned())]);
    server.pass(SignedDuration::from_mins(61));
    answered(&server, &first, &answer("failed")).await.expect(StatusCode::UNAUTHORIZED);
}

#[tokio::test]
async fn the_token_of_a_task_opens_nothing_else() {
    let (server, receiver, workspace) = asked_in(&["post_plan"], "mandatory").await;
    let admin = server.admin();
    let earlier = start_run(&admin, &workspace, json!({})).await;
    plan_with_files(&server).await;
    answer_next(&server, &receiver, "passed").await;
    act(&admin, &earlier.id(), "discard").await.expect(StatusCode::ACCEPTED);
    let run = start_run(&admin, &workspace, json!({})).await;
    plan_with_files(&server).await;
    assert_eq!(attend(&server).await, [AttendedTask::Asked]);
    let asked = receiver.received().pop().expect("a request").json();
    let own = server.with_token(asked["access_token"].as_str().expect("a token"));
    let plan = |run: &Answer| run.data()["relationships"]["plan"]["data"]["id"].as_str().expect("an id").to_owned();
    own.get(&format!("/api/v2/plans/{}/json-output", plan(&run))).await.expect(StatusCode::OK);
    own.get(&format!("/api/v2/plans/{}/json-output", plan(&earlier))).await.expect(StatusCode::NOT_FOUND);
    let other = server.given_configuration(&workspace, &[("main.tf", "")]).await;
    let path = format!("/api/v2/configuration-versions/{other}/download");
    own.get(&path).await.expect(StatusCode::NOT_FOUND);
    let names = [
        ("{organization}", "acme".to_owned()),
        ("{workspace}", workspace),
        ("{run}", run.id()),
        ("{plan}", plan(&run)),
        ("{task}", "task-x".to_owned()),
    ];
    for route in routes::all() {
        let opens = ["/plans/{plan}/json-output", "/download", "/runs/{run}/plan/json-output", "/callback"];
        let is_open =
            matches!(route.access, routes::Access::Public | routes::Access::SignedAddress | routes::Access::Token);
        if is_open || opens.iter().any(|end| route.path.ends_with(end)) {
            continue;
        }
        let path = names.iter().fold(route.path.to_owned(), |path, (word, name)| path.replace(word, name));
        let query =
            route.sample_query.map(|query| query.replace("{organization}", "acme").replace("{workspace_name}", "web"));
        let path = query.map_or(path.clone(), |query| format!("{path}?{query}"));
        for method in route.methods {
            let body = if *method == "GET" { "" } else { r#"{"data":{"attributes":{"name":"x"}}}"# };
            let answer = own.send(method, &path, Some("application/vnd.api+json"), body).await;
            assert!(answer.status.is_client_error(), "{method} {path}: {}", answer.status);
        }
    }
    assert_eq!(status(&admin, &run.id()).await, "post_plan_running", "nothing happened");
}

#[tokio::test]
async fn outcomes_are_kept_with_their_result() {
    let (server, receiver, workspace) = asked_in(&["pre_plan"], "mandatory").await;
    let admin = server.admin();
    let run = start_run(&admin, &workspace, json!({})).await.id();
    attend(&server).await;
    let request = receiver.received().pop().expect("a request");
    let outcome = json!({ "type": "task-result-outcomes", "attributes": { "outcome-id": "CVE-1",
        "description": "An old library", "body": "# Details\nMany.", "url": "https://scan.test/1",
        "tags": { "Severity": [{ "label": "High", "level": "error" }, { "label": "x", "level": "purple" }] } } });
    let body = json!({ "data": { "type": "task-results", "attributes": { "status": "failed", "message": "1 finding",
        "url": "https://scan.test/" }, "relationships": { "outcomes": { "data": [outcome] } } } });
    answered(&server, &request, &body).await.expect(StatusCode::OK);
    let id = request.json()["task_result_id"].as_str().expect("an id").to_owned();
    let read = admin.get(&format!("/api/v2/task-results/{id}")).await.expect(StatusCode::OK);
    assert_eq!((read.attribute("url"), read.attribute("taco-outcomes-count")), (json!("https://scan.test/"), json!(1)));
    let listed = admin.get(&format!("/api/v2/task-results/{id}/outcomes")).await.expect(StatusCode::OK).data();
    let kept = &listed[0]["attributes"];
    assert_eq!((kept["outcome-id"].clone(), kept["body"].clone()), (json!("CVE-1"), json!("# Details\nMany.")));
    assert_eq!(kept["tags"]["Severity"][1], json!({ "label": "x", "level": "none" }));
    assert_eq!(status(&admin, &run).await, "errored");
}

#[tokio::test]
async fn a_task_of_all_workspaces_is_asked_everywhere_and_a_disabled_one_nowhere() {
    let (server, receiver) = (ApiServer::start().await, WebhookReceiver::start().await);
    let admin = server.admin();
    let workspace = given_workspace(&server).await;
    let global = json!({ "enabled": true, "stages": ["post_plan", "pre_plan"], "enforcement-level": "mandatory" });
    let mut values = task(&receiver);
    values["global-configuration"] = global.clone();
    let made = create(&admin, values).await.expect(StatusCode::CREATED);
    assert_eq!((made.attribute("global-configuration"), made.attribute("hmac-key")), (global, Value::Null));
    let run = start_run(&admin, &workspace, json!({})).await.id();
    let read = admin.get(&format!("/api/v2/runs/{run}/task-stages?include=task_results")).await;
    assert_eq!(read.data().as_array().map(Vec::len), Some(2));
    let result = &read.json()["included"][0]["attributes"];
    assert_eq!(
        (result["workspace-task-id"].clone(), result["workspace-task-enforcement-level"].clone()),
        (Value::Null, json!("mandatory"))
    );
    act(&admin, &run, "cancel").await.expect(StatusCode::ACCEPTED);
    let path = format!("/api/v2/tasks/{}", made.id());
    admin.patch(&path, &attributes("tasks", json!({ "enabled": false }))).await.expect(StatusCode::OK);
    let run = start_run(&admin, &workspace, json!({})).await.id();
    assert_eq!((status(&admin, &run).await, stages(&admin, &run).await), (json!("plan_queued"), Vec::new()));
}

#[tokio::test]
async fn what_cannot_be_is_refused_with_what_can() {
    let (server, receiver) = (ApiServer::start().await, WebhookReceiver::start().await);
    let admin = server.admin();
    let workspace = given_workspace(&server).await;
    let with = |name: &str, value: Value| {
        let mut values = task(&receiver);
        values[name] = value;
        values
    };
    for (values, attribute, words) in [
        (with("name", json!("")), "name", "can't be blank"),
        (with("url", json!("")), "url", "Url can't be blank"),
        (with("url", json!("ftp://a.test")), "url", "http"),
        (with("url", json!("http://169.254.169.254/latest")), "url", "not"),
        (with("url", json!("https://user:secret@a.test/")), "url", "user"),
        (with("category", json!("policy")), "category", "must be \"task\""),
        (with("global-configuration", json!({ "stages": ["later"] })), "global-configuration", "one of pre_plan"),
        (
            with("global-configuration", json!({ "enforcement-level": "hard" })),
            "global-configuration",
            "one of advisory",
        ),
    ] {
        let refused = create(&admin, values).await.expect(StatusCode::UNPROCESSABLE_ENTITY);
        let (detail, pointer) = refused.error();
        assert_eq!(pointer, Some(format!("/data/attributes/{attribute}")), "{detail}");
        assert!(detail.contains(words), "{detail}");
    }
    receiver.answers_with([400]);
    let refused = create(&admin, task(&receiver)).await.expect(StatusCode::UNPROCESSABLE_ENTITY);
    assert_eq!(refused.error().0, "The task answered the test request with 400; expected 200");
    let mut pooled = attributes("tasks", task(&receiver));
    pooled["data"]["relationships"] =
        json!({ "agent-pool": { "data": { "type": "agent-pools", "id": "apool-none" } } });
    let refused =
        admin.post("/api/v2/organizations/acme/tasks", &pooled).await.expect(StatusCode::UNPROCESSABLE_ENTITY);
    assert_eq!(refused.error().0, "The provided agent pool does not exist");

    let id = create(&admin, task(&receiver)).await.expect(StatusCode::CREATED).id();
    let again = create(&admin, task(&receiver)).await.expect(StatusCode::UNPROCESSABLE_ENTITY);
    assert!(again.error().0.contains("already been taken"));
    for (task, level, stages, words) in [
        ("task-nonsense", "advisory", vec!["post_plan"], "task-"),
        (id.as_str(), "", vec!["post_plan"], "one of advisory, mandatory"),
        (id.as_str(), "advisory", vec![], "at least one"),
        (id.as_str(), "advisory", vec!["during"], "it is \"during\""),
    ] {
        let refused = attach(&admin, &workspace, task, level, &stages).await.expect(StatusCode::UNPROCESSABLE_ENTITY);
        assert!(refused.error().0.contains(words), "{}", refused.error().0);
    }
    attach(&admin, &workspace, &id, "advisory", &["post_plan"]).await.expect(StatusCode::CREATED);
    let twice = attach(&admin, &workspace, &id, "mandatory", &["pre_plan"]).await;
    assert!(twice.expect(StatusCode::UNPROCESSABLE_ENTITY).error().0.contains("attached to the workspace already"));
}

/// Clients send only what changes, with empty texts and without a type.
#[tokio::test]
async fn requests_are_taken_as_the_provider_sends_them() {
    let (server, receiver) = (ApiServer::start().await, WebhookReceiver::start().await);
    let admin = server.admin();
    let workspace = given_workspace(&server).await;
    let values = json!({ "name": "scan", "url": receiver.url(), "category": "task", "hmac-key": "", "enabled": true });
    let made = admin.post("/api/v2/organizations/acme/tasks", &json!({ "data": { "attributes": values } })).await;
    let id = made.expect(StatusCode::CREATED).id();
    assert_eq!(receiver.received()[0].header("x-tfc-task-signature"), Some(""), "without a key nothing is signed");
    let path = format!("/api/v2/tasks/{id}");
    let sparse = json!({ "data": { "type": "tasks", "attributes": { "description": "new" } } });
    let changed = admin.patch(&path, &sparse).await.expect(StatusCode::OK);
    assert_eq!((changed.attribute("description"), changed.attribute("enabled")), (json!("new"), json!(true)));
    assert_eq!(receiver.received().len(), 1, "nothing changed that has to be tried");
    let old = json!({ "data": { "type": "workspace-tasks", "attributes": { "enforcement-level": "mandatory", "stage": "pre_plan" },
        "relationships": { "task": { "data": { "type": "tasks", "id": id } } } } });
    let attached = admin.post(&format!("/api/v2/workspaces/{workspace}/tasks"), &old).await.expect(StatusCode::CREATED);
    assert_eq!((attached.attribute("stage"), attached.attribute("stages")), (json!("pre_plan"), json!(["pre_plan"])));
    let own = format!("/api/v2/workspaces/{workspace}/tasks/{}", attached.id());
    let stages = json!({ "data": { "attributes": { "stages": ["pre_plan", "post_plan"] } } });
    let changed = admin.patch(&own, &stages).await.expect(StatusCode::OK);
    assert_eq!(
        (changed.attribute("enforcement-level"), changed.attribute("stages")),
        (json!("mandatory"), json!(["pre_plan", "post_plan"]))
    );
    let read = admin.get(&format!("{path}?include=workspace_tasks")).await.expect(StatusCode::OK);
    assert_eq!(read.json()["included"][0]["id"], attached.id());
    let elsewhere = server.given_workspace("acme", "other").await;
    admin.get(&format!("/api/v2/workspaces/{elsewhere}/tasks/{}", attached.id())).await.expect(StatusCode::NOT_FOUND);
    admin.delete(&path).await.expect(StatusCode::NO_CONTENT);
    admin.get(&own).await.expect(StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn stages_and_results_are_found_when_their_run_has_left_memory() {
    let rules = HistoryRules { keep: 0, batch: 1, settled_after: SignedDuration::ZERO };
    let (server, receiver) = (ApiServer::with_history(rules).await, WebhookReceiver::start().await);
    let admin = server.admin();
    let workspace = given_workspace(&server).await;
    let id = create(&admin, task(&receiver)).await.expect(StatusCode::CREATED).id();
    attach(&admin, &workspace, &id, "mandatory", &["pre_plan"]).await.expect(StatusCode::CREATED);
    let run = start_run(&admin, &workspace, json!({})).await.id();
    answer_next(&server, &receiver, "failed").await;
    let request = receiver.received().pop().expect("a request");
    admin.delete(&format!("/api/v2/tasks/{id}")).await.expect(StatusCode::NO_CONTENT);
    // Runs of the current configuration stay.
    server.given_configuration(&workspace, &[("main.tf", "# another")]).await;
    for _ in 0..4 {
        server.pass(SignedDuration::from_mins(1));
        start_run(&admin, &workspace, json!({})).await;
        execute(&server, planned(false)).await;
    }
    server.pass(SignedDuration::from_hours(1));
    while server.control_plane.archive_finished().await.expect("a bucket").more {}
    assert!(!server.ledger().await.last_seen().runs.contains(&run.parse().expect("an id")), "it has left");
    assert_eq!(stages(&admin, &run).await, [("pre_plan".to_owned(), "failed".to_owned())]);
    let result = request.json()["task_result_id"].as_str().expect("an id").to_owned();
    let read = admin.get(&format!("/api/v2/task-results/{result}?include=task_stage")).await.expect(StatusCode::OK);
    let stage = read.json()["included"][0]["id"].as_str().expect("an id").to_owned();
    admin.get(&format!("/api/v2/task-stages/{stage}")).await.expect(StatusCode::OK);
    assert_eq!(read.attribute("task-name"), "scan", "names are kept as they were");
}
