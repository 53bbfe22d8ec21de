//! Runs: how they start, what is refused, how they are found.

use axum::http::StatusCode;
use harness::api_server::{Answer, ApiServer, Client};
use serde_json::{Value, json};

use crate::configuration_versions::{announce, archive, given_configuration, upload};

pub(crate) fn run_body(workspace: &str, configuration: Option<&str>, attributes: Value) -> Value {
    let mut relationships = json!({ "workspace": { "data": { "type": "workspaces", "id": workspace } } });
    if let Some(id) = configuration {
        relationships["configuration-version"] = json!({ "data": { "type": "configuration-versions", "id": id } });
    }
    json!({ "data": { "type": "runs", "attributes": attributes, "relationships": relationships } })
}

/// Starts a run of the newest configuration.
pub(crate) async fn start_run(client: &Client, workspace: &str, attributes: Value) -> Answer {
    client.start_run(workspace, attributes).await
}

/// A workspace with a configuration.
pub(crate) async fn given_workspace(server: &ApiServer) -> String {
    server.given_organization("acme").await;
    let workspace = server.given_workspace("acme", "web").await;
    given_configuration(server, &workspace).await;
    workspace
}

pub(crate) async fn read_run(client: &Client, id: &str) -> Answer {
    client.get(&format!("/api/v2/runs/{id}")).await.expect(StatusCode::OK)
}

pub(crate) async fn status(client: &Client, id: &str) -> Value {
    read_run(client, id).await.attribute("status")
}

pub(crate) async fn act(client: &Client, id: &str, action: &str) -> Answer {
    client.post(&format!("/api/v2/runs/{id}/actions/{action}"), &json!({})).await
}

#[tokio::test]
async fn a_run_has_all_that_clients_cannot_do_without() {
    let server = ApiServer::start().await;
    let admin = server.admin();
    let workspace = given_workspace(&server).await;
    let run = start_run(&admin, &workspace, json!({ "message": "hello", "variables": [] })).await;
    let run = run.expect(StatusCode::CREATED);
    let data = run.data();
    for part in ["workspace", "plan", "apply", "configuration-version", "created-by"] {
        assert!(data["relationships"][part]["data"]["id"].is_string(), "{part}");
    }
    assert_eq!(data["relationships"]["run-events"]["data"].as_array().map(Vec::len), Some(2));
    assert_eq!(run.attribute("permissions")["can-apply"], true);
    assert_eq!(run.attribute("actions")["is-cancelable"], true);
    assert_eq!((run.attribute("status"), run.attribute("source")), (json!("plan_queued"), json!("tfe-api")));
    assert_eq!((run.attribute("message"), run.attribute("variables")), (json!("hello"), Value::Null));
    assert!(run.attribute("created-at").as_str().is_some_and(|time| time.ends_with('Z')));
    assert!(run.attribute("status-timestamps")["plan-queueable-at"].is_string());

    let id = run.id();
    let path = format!("/api/v2/runs/{id}?include=plan,apply,workspace,created_by,configuration_version,task_stages,x");
    let included = admin.get(&path).await.expect(StatusCode::OK).json()["included"].clone();
    let mut kinds: Vec<_> = included.as_array().expect("a list").iter().map(|one| one["type"].clone()).collect();
    kinds.sort_by_key(Value::to_string);
    assert_eq!(kinds, ["applies", "configuration-versions", "plans", "users", "workspaces"]);
    for path in ["run-events", "task-stages", "policy-checks", "comments"] {
        assert!(admin.get(&format!("/api/v2/runs/{id}/{path}")).await.expect(StatusCode::OK).data().is_array());
    }
    let read = admin.get(&format!("/api/v2/workspaces/{workspace}?include=current_run.plan")).await;
    assert_eq!(read.data()["relationships"]["current-run"]["data"]["id"], id.as_str());
    assert_eq!((read.attribute("locked"), read.attribute("taco-engine")), (json!(true), json!("terraform")));
    assert_eq!(read.json()["included"].as_array().map(Vec::len), Some(2));
}

#[tokio::test]
async fn the_client_decides_what_its_log_looks_like() {
    let server = ApiServer::start().await;
    let admin = server.admin();
    let workspace = given_workspace(&server).await;
    for (headers, source) in [
        (vec![], "tfe-api"),
        (vec![("terraform-version", "1.11.4")], "terraform"),
        (vec![("terraform-version", "1.11.4"), ("x-terraform-integration", "cloud")], "terraform+cloud"),
    ] {
        let body = run_body(&workspace, None, json!({ "plan-only": true })).to_string();
        let answer = admin.send_with("POST", "/api/v2/runs", &headers, body).await.expect(StatusCode::CREATED);
        assert_eq!(answer.attribute("source"), source);
        let run = answer.id().parse().expect("an id");
        let view = server.control_plane.run(&server.admin_caller().await, run).await.expect("the run");
        assert_eq!(view.run.structured_output, source != "terraform", "{source}");
    }
}

#[tokio::test]
async fn a_run_that_cannot_be_is_refused_where_it_is_wrong() {
    let server = ApiServer::start().await;
    let admin = server.admin();
    server.given_organization("acme").await;
    let empty = server.given_workspace("acme", "empty").await;
    let local = server.given_workspace("acme", "local").await;
    let workspace = server.given_workspace("acme", "web").await;
    let configuration = given_configuration(&server, &workspace).await;
    let pending = announce(&admin, &workspace, json!({})).await.id();
    let change = |attributes: Value| json!({ "data": { "type": "workspaces", "attributes": attributes } });
    let mode = change(json!({ "execution-mode": "local" }));
    admin.patch(&format!("/api/v2/workspaces/{local}"), &mode).await.expect(StatusCode::OK);
    let of_workspace = "/data/relationships/workspace";
    let of_configuration = "/data/relationships/configuration-version";
    let nowhere = json!({ "data": { "type": "runs", "attributes": {} } });
    for (body, pointer, words) in [
        (nowhere, of_workspace, "must be given"),
        (run_body(&local, None, json!({})), of_workspace, "execution mode is local"),
        (run_body(&empty, None, json!({})), of_configuration, "no configuration yet"),
        (run_body(&empty, Some(&configuration), json!({})), of_configuration, "does not exist in this workspace"),
        (run_body(&workspace, Some(&pending), json!({})), of_configuration, "upload its archive first"),
        (
            run_body(&workspace, None, json!({ "is-destroy": true, "refresh-only": true })),
            "/data/attributes/refresh-only",
            "not both",
        ),
        (run_body(&workspace, None, json!({ "target-addrs": ["web"] })), "/data/attributes/target-addrs", "\"web\""),
        (run_body(&workspace, None, json!({ "replace-addrs": [1] })), "/data/attributes/replace-addrs/0", "expected"),
        (
            run_body(&workspace, None, json!({ "variables": [{ "key": "a", "value": "[1," }] })),
            "/data/attributes/variables",
            "HCL",
        ),
        (
            run_body(&workspace, None, json!({ "terraform-version": "1.0.0" })),
            "/data/attributes/terraform-version",
            "plan-only",
        ),
    ] {
        let refused = admin.post("/api/v2/runs", &body).await.expect(StatusCode::UNPROCESSABLE_ENTITY);
        let (detail, place) = refused.error();
        assert_eq!(place.as_deref(), Some(pointer), "{detail}");
        assert!(detail.contains(words), "{detail}");
    }
    let strict = change(json!({ "allow-destroy-plan": false }));
    admin.patch(&format!("/api/v2/workspaces/{workspace}"), &strict).await.expect(StatusCode::OK);
    let refused = start_run(&admin, &workspace, json!({ "is-destroy": true })).await;
    assert_eq!(
        refused.expect(StatusCode::UNPROCESSABLE_ENTITY).error().1.as_deref(),
        Some("/data/attributes/is-destroy")
    );
    let listed = admin.get("/api/v2/organizations/acme/runs").await.expect(StatusCode::OK);
    assert_eq!(listed.data(), json!([]), "and nothing has happened");
    let missing = run_body("ws-4Tk9mXbq7cWvZpHn", None, json!({}));
    admin.post("/api/v2/runs", &missing).await.expect(StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn a_runs_own_variables_are_shown_as_they_were_sent() {
    let server = ApiServer::start().await;
    let admin = server.admin();
    let workspace = given_workspace(&server).await;
    let variables = json!([{ "key": "a", "value": "\"s3cr3t\"" }, { "key": "b", "value": "Hello, World!" }]);
    let run = start_run(&admin, &workspace, json!({ "variables": variables })).await.expect(StatusCode::CREATED);
    assert_eq!(read_run(&admin, &run.id()).await.attribute("variables"), variables);
    let view = server.control_plane.run(&server.admin_caller().await, run.id().parse().expect("an id")).await;
    let stored = format!("{:?}", view.expect("the run").run);
    assert!(!stored.contains("s3cr3t") && !stored.contains("World"), "they are sealed: {stored}");
}

#[tokio::test]
async fn a_speculative_configuration_makes_a_run_that_only_plans() {
    let server = ApiServer::start().await;
    let admin = server.admin();
    let workspace = given_workspace(&server).await;
    let attributes = json!({ "auto-queue-runs": false, "speculative": true });
    let announced = announce(&admin, &workspace, attributes).await.expect(StatusCode::CREATED);
    upload(&server, &announced, archive("a")).await.expect(StatusCode::OK);
    let body = run_body(&workspace, Some(&announced.id()), json!({ "auto-apply": true }));
    let run = admin.post("/api/v2/runs", &body).await.expect(StatusCode::CREATED);
    assert_eq!((run.attribute("plan-only"), run.attribute("auto-apply")), (json!(true), json!(false)));
    let ordinary = start_run(&admin, &workspace, json!({})).await.expect(StatusCode::CREATED);
    assert_eq!(ordinary.attribute("plan-only"), false, "it is not what other runs use");
}

#[tokio::test]
async fn runs_are_found_by_what_is_known_of_them() {
    let server = ApiServer::start().await;
    let admin = server.admin();
    let workspace = given_workspace(&server).await;
    let first = start_run(&admin, &workspace, json!({ "message": "the first" })).await.id();
    let second = start_run(&admin, &workspace, json!({ "message": "the second", "is-destroy": true })).await.id();
    let third = start_run(&admin, &workspace, json!({ "plan-only": true })).await.id();
    let found = |path: String| {
        let admin = admin.clone();
        async move {
            let listed = admin.get(&path).await.expect(StatusCode::OK).data();
            let ids =
                listed.as_array().expect("a list").iter().map(|run| run["id"].as_str().expect("an id").to_owned());
            ids.collect::<Vec<_>>()
        }
    };
    for (query, expected) in [
        ("", vec![&third, &second, &first]),
        ("filter[status]=pending", vec![&second]),
        ("filter[status]=pending,plan_queued", vec![&third, &second, &first]),
        ("filter[source]=tfe-api", vec![&third, &second, &first]),
        ("filter[source]=terraform", vec![]),
        ("filter[operation]=plan_only", vec![&third]),
        ("filter[operation]=destroy", vec![&second]),
        ("filter[operation]=save_plan", vec![]),
        ("filter[status_group]=final", vec![]),
        ("filter[status_group]=non_final", vec![&third, &second, &first]),
        ("filter[timeframe]=2026", vec![&third, &second, &first]),
        ("filter[timeframe]=2025", vec![]),
        ("search[basic]=SECOND", vec![&second]),
        ("search[basic]=run-", vec![&third, &second, &first]),
        ("search[user]=admin", vec![&third, &second, &first]),
        ("search[user]=nobody", vec![]),
        ("search[commit]=abc", vec![]),
        ("filter[workspace_names]=web", vec![&third, &second, &first]),
        ("filter[workspace_names]=other", vec![]),
        ("page[size]=1&page[number]=2", vec![&second]),
        ("TagBindings=%7B+env+dev%7D&filter[unknown]=x", vec![&third, &second, &first]),
    ] {
        let of_workspace = found(format!("/api/v2/workspaces/{workspace}/runs?{query}")).await;
        assert_eq!(of_workspace.iter().collect::<Vec<_>>(), expected, "{query}");
        let of_organization = found(format!("/api/v2/organizations/acme/runs?{query}")).await;
        assert_eq!(of_organization.len(), expected.len(), "{query}");
    }
    let (_, outsider) = server.given_user("member").await;
    server.with_token(&outsider).get("/api/v2/organizations/acme/runs").await.expect(StatusCode::NOT_FOUND);
    let by_status = admin.get("/api/v2/organizations/acme/workspaces?filter[current-run][status]=plan_queued").await;
    assert_eq!(by_status.data().as_array().map(Vec::len), Some(1));
    let by_status = admin.get("/api/v2/organizations/acme/workspaces?filter[current-run][status]=applied").await;
    assert_eq!(by_status.data(), json!([]));
}

#[tokio::test]
async fn people_talk_about_a_run() {
    let server = ApiServer::start().await;
    let admin = server.admin();
    let workspace = given_workspace(&server).await;
    let run = start_run(&admin, &workspace, json!({})).await.id();
    let comments = format!("/api/v2/runs/{run}/comments");
    let body = |text: &str| json!({ "data": { "type": "comments", "attributes": { "body": text } } });
    for text in ["", &"x".repeat(5000)] {
        admin.post(&comments, &body(text)).await.expect(StatusCode::UNPROCESSABLE_ENTITY);
    }
    let comment = admin.post(&comments, &body("looks good")).await.expect(StatusCode::CREATED).id();
    assert_eq!(admin.get(&comments).await.data()[0]["attributes"]["body"], "looks good");
    assert_eq!(admin.get(&format!("/api/v2/comments/{comment}")).await.attribute("body"), "looks good");
    let events = admin.get(&format!("/api/v2/runs/{run}/run-events?include=actor,comment")).await;
    let said = events.data().as_array().expect("a list").last().expect("an event").clone();
    assert_eq!(said["attributes"]["action"], "commented");
    assert_eq!(said["relationships"]["comment"]["data"]["id"], comment.as_str());
    assert!(said["relationships"]["actor"]["data"]["id"].is_string());
    assert_eq!(events.json()["included"].as_array().map(Vec::len), Some(2));
    let id = said["id"].as_str().expect("an id");
    let event = admin.get(&format!("/api/v2/run-events/{id}")).await.expect(StatusCode::OK);
    assert_eq!(event.attribute("action"), "commented");
}

#[tokio::test]
async fn a_repeated_request_starts_one_run() {
    let server = ApiServer::start().await;
    let workspace = given_workspace(&server).await;
    let client = server.admin().with_key("once");
    let first = start_run(&client, &workspace, json!({})).await.expect(StatusCode::CREATED).id();
    let again = start_run(&client, &workspace, json!({})).await.expect(StatusCode::CREATED).id();
    assert_eq!(first, again);
    act(&server.admin().with_key("cancel"), &first, "cancel").await.expect(StatusCode::ACCEPTED);
    act(&server.admin().with_key("cancel"), &first, "cancel").await.expect(StatusCode::ACCEPTED);
    act(&server.admin(), &first, "cancel").await.expect(StatusCode::CONFLICT);
}
