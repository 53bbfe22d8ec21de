//! Walks: units are planned and applied in the order of what they use of each other.

use std::collections::BTreeMap;

use axum::http::StatusCode;
use harness::api_server::{Answer, ApiServer, Client};
use serde_json::{Value, json};
use taco_control_plane::PhaseOutcome;

use crate::configuration_versions::given_configuration;
use crate::run_phases::{applied, execute, planned};

const WALKS: &str = "/api/v2/organizations/acme/walks";

fn walk(attributes: Value) -> Value {
    json!({ "data": { "type": "walks", "attributes": attributes } })
}

/// Says that one workspace uses an output of another.
async fn declare(client: &Client, consumer: &str, producer: &str) {
    let attributes = json!({ "producer": producer, "outputs": ["id"] });
    let body = json!({ "data": { "type": "dependencies", "attributes": attributes } });
    client.post(&format!("/api/v2/workspaces/{consumer}/dependencies"), &body).await.expect(StatusCode::CREATED);
}

/// An organization with `network`, `database` that uses it, and `app` that uses both.
async fn given_three(server: &ApiServer) -> BTreeMap<&'static str, String> {
    server.given_organization("acme").await;
    let admin = server.admin();
    let mut ids = BTreeMap::new();
    for name in ["app", "database", "network"] {
        let id = server.given_workspace("acme", name).await;
        given_configuration(server, &id).await;
        ids.insert(name, id);
    }
    declare(&admin, &ids["database"], "network").await;
    declare(&admin, &ids["app"], "network").await;
    declare(&admin, &ids["app"], "database").await;
    ids
}

/// Takes the steps that can be taken, as any server does.
async fn advance(server: &ApiServer) {
    for org in server.control_plane.all_organizations().await.expect("organizations") {
        server.control_plane.advance_walks(&org).await.expect("steps");
    }
}

async fn state_of(client: &Client, walk: &str) -> String {
    let walk = client.get(&format!("/api/v2/walks/{walk}")).await.expect(StatusCode::OK);
    walk.attribute("state").as_str().expect("a word").to_owned()
}

/// States of the nodes, in order, and how many runs each had.
async fn nodes(client: &Client, walk: &str) -> Vec<(String, String, usize)> {
    let nodes = client.get(&format!("/api/v2/walks/{walk}/nodes")).await.expect(StatusCode::OK).data();
    let text = |value: &Value| value.as_str().expect("a text").to_owned();
    let node = |node: &Value| {
        let node = &node["attributes"];
        let runs = node["runs"].as_array().expect("a list").len();
        if ["done", "cut_off", "failed", "canceled", "blocked"].contains(&node["state"].as_str().expect("a word")) {
            assert!(node["reason"].as_str().is_some_and(|reason| reason.len() > 5), "{node}");
        }
        (text(&node["unit"]), text(&node["state"]), runs)
    };
    nodes.as_array().expect("a list").iter().map(node).collect()
}

fn rows(rows: &[(&str, &str, usize)]) -> Vec<(String, String, usize)> {
    rows.iter().map(|(unit, state, runs)| ((*unit).to_owned(), (*state).to_owned(), *runs)).collect()
}

async fn begin(client: &Client, attributes: Value) -> String {
    client.post(WALKS, &walk(attributes)).await.expect(StatusCode::CREATED).id()
}

async fn act(client: &Client, walk: &str, action: &str) -> Answer {
    client.post(&format!("/api/v2/walks/{walk}/actions/{action}"), &json!({})).await
}

#[tokio::test]
async fn units_are_applied_in_order_each_when_someone_approves() {
    let server = ApiServer::start().await;
    let admin = server.admin();
    given_three(&server).await;
    let id = begin(&admin, json!({ "kind": "apply", "from": ["network"] })).await;
    assert_eq!(
        nodes(&admin, &id).await,
        rows(&[("network", "waiting", 0), ("database", "waiting", 0), ("app", "waiting", 0)])
    );
    advance(&server).await;
    advance(&server).await;
    assert_eq!(nodes(&admin, &id).await[0], ("network".to_owned(), "planning".to_owned(), 1));
    execute(&server, planned(true)).await;
    advance(&server).await;
    assert_eq!(state_of(&admin, &id).await, "needs_approval");
    act(&admin, &id, "approve").await.expect(StatusCode::OK);
    assert_eq!(nodes(&admin, &id).await[0].1, "applying", "nobody waits for the next look");
    assert_eq!(act(&admin, &id, "approve").await.status, StatusCode::CONFLICT);
    execute(&server, applied()).await;
    advance(&server).await;
    assert_eq!(
        nodes(&admin, &id).await,
        rows(&[("network", "done", 1), ("database", "planning", 1), ("app", "waiting", 0)])
    );
    // What finds nothing to change needs no approval.
    execute(&server, planned(false)).await;
    advance(&server).await;
    execute(&server, planned(false)).await;
    advance(&server).await;
    assert_eq!(nodes(&admin, &id).await, rows(&[("network", "done", 1), ("database", "done", 1), ("app", "done", 1)]));
    assert_eq!(state_of(&admin, &id).await, "done");
    let run = admin.get("/api/v2/organizations/acme/runs").await.data()[0].clone();
    assert_eq!(run["attributes"]["message"], json!(format!("Walk {id}")));
    let listed = admin.get(WALKS).await.data();
    assert_eq!(
        (listed[0]["id"].as_str(), &listed[0]["attributes"]["counts"]),
        (Some(id.as_str()), &json!({ "done": 3 }))
    );
}

#[tokio::test]
async fn a_failure_blocks_what_needs_it_and_resuming_retries_that_alone() {
    let server = ApiServer::start().await;
    let other = server.another().await;
    let admin = server.admin();
    given_three(&server).await;
    let id = begin(&admin, json!({ "kind": "apply", "all": true, "approval": "auto" })).await;
    advance(&server).await;
    execute(&server, planned(false)).await;
    // Two servers look at the same moment.
    tokio::join!(advance(&server), advance(&other));
    execute(&other, PhaseOutcome::Errored { message: "no provider".to_owned(), engine: None }).await;
    tokio::join!(advance(&server), advance(&other));
    let after_failure = rows(&[("network", "done", 1), ("database", "failed", 1), ("app", "blocked", 0)]);
    assert_eq!(nodes(&admin, &id).await, after_failure);
    assert_eq!(state_of(&admin, &id).await, "failed");
    let reasons = admin.get(&format!("/api/v2/walks/{id}/nodes")).await.data();
    assert_eq!(reasons[1]["attributes"]["reason"], "its plan failed: no provider");
    assert_eq!(reasons[2]["attributes"]["reason"], "database was not done, and it comes after that");
    act(&admin, &id, "resume").await.expect(StatusCode::OK);
    assert_eq!(nodes(&admin, &id).await[1], ("database".to_owned(), "planning".to_owned(), 2));
    execute(&server, planned(true)).await;
    advance(&other).await;
    execute(&server, applied()).await;
    advance(&other).await;
    execute(&server, planned(false)).await;
    advance(&server).await;
    assert_eq!(nodes(&admin, &id).await, rows(&[("network", "done", 1), ("database", "done", 2), ("app", "done", 1)]));
    assert_eq!(act(&admin, &id, "resume").await.status, StatusCode::CONFLICT);
}

#[tokio::test]
async fn a_canceled_walk_begins_nothing_more_and_can_be_resumed() {
    let server = ApiServer::start().await;
    let admin = server.admin();
    given_three(&server).await;
    let id = begin(&admin, json!({ "kind": "apply", "from": ["network"] })).await;
    advance(&server).await;
    act(&admin, &id, "cancel").await.expect(StatusCode::OK);
    assert_eq!(
        nodes(&admin, &id).await,
        rows(&[("network", "canceled", 1), ("database", "canceled", 0), ("app", "canceled", 0)])
    );
    assert_eq!(state_of(&admin, &id).await, "canceled");
    let run = admin.get("/api/v2/organizations/acme/runs").await.data()[0].clone();
    assert_eq!(run["attributes"]["status"], "canceled");
    act(&admin, &id, "resume").await.expect(StatusCode::OK);
    assert_eq!(nodes(&admin, &id).await[0], ("network".to_owned(), "planning".to_owned(), 2));
}

#[tokio::test]
async fn what_cannot_be_walked_is_refused_in_words() {
    let server = ApiServer::start().await;
    let admin = server.admin();
    let ids = given_three(&server).await;
    server.given_organization("globex").await;
    server.given_workspace("globex", "elsewhere").await;
    let refused = async |attributes: Value| {
        let answer = admin.post(WALKS, &walk(attributes)).await;
        (answer.status, answer.error().0)
    };
    for (attributes, status, words) in [
        (json!({ "from": ["nothing", "network"] }), StatusCode::NOT_FOUND, "There is no workspace nothing"),
        (json!({ "from": ["elsewhere"] }), StatusCode::NOT_FOUND, "There is no workspace elsewhere"),
        (json!({}), StatusCode::UNPROCESSABLE_ENTITY, "Choose the workspaces in one way"),
        (json!({ "all": true, "stale": true }), StatusCode::UNPROCESSABLE_ENTITY, "Choose the workspaces in one way"),
        (json!({ "all": true, "parallel": 0 }), StatusCode::UNPROCESSABLE_ENTITY, "from 1 to 256, and not 0"),
        (json!({ "all": true, "kind": "wish" }), StatusCode::UNPROCESSABLE_ENTITY, "plan, apply, destroy"),
        (json!({ "all": true, "approval": "never" }), StatusCode::UNPROCESSABLE_ENTITY, "auto, each or once"),
        (json!({ "all": true, "on-fail": "panic" }), StatusCode::UNPROCESSABLE_ENTITY, "stop or continue"),
        (
            json!({ "from": ["app"], "to": ["network"] }),
            StatusCode::UNPROCESSABLE_ENTITY,
            "No chosen workspace leads to network",
        ),
        (
            json!({ "kind": "destroy", "from": ["network"], "to": ["database"] }),
            StatusCode::UNPROCESSABLE_ENTITY,
            "app would be left without database and network",
        ),
    ] {
        let (found, detail) = refused(attributes.clone()).await;
        assert_eq!(found, status, "{attributes}: {detail}");
        assert!(detail.contains(words), "{attributes}: {detail}");
    }
    declare(&admin, &ids["network"], "app").await;
    let (status, detail) = refused(json!({ "all": true })).await;
    assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY, "{detail}");
    assert!(detail.contains("in a circle") && detail.contains("network uses app"), "{detail}");
    assert_eq!(admin.get(WALKS).await.data(), json!([]), "nothing was begun");
    assert_eq!(admin.get("/api/v2/walks/walk-1111111111111111").await.status, StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn values_that_suggest_a_circle_keep_no_walk_from_beginning() {
    let server = ApiServer::start().await;
    let admin = server.admin();
    let ids = given_three(&server).await;
    // Each of the two made a value that the other one holds.
    for (name, made, held) in
        [("network", "vpc-0123456789", "app-0123456789"), ("app", "app-0123456789", "vpc-0123456789")]
    {
        let state = json!({ "version": 4, "terraform_version": "1.11.4", "serial": 1, "lineage": name,
            "outputs": { "made": { "value": made, "type": "string" } },
            "resources": [{ "mode": "managed", "type": "terraform_data", "name": "main",
                "provider": "provider[\"terraform.io/builtin/terraform\"]",
                "instances": [{ "schema_version": 0, "attributes": { "id": made, "input": { "value": held, "type": "string" } } }] }] });
        server.given_state(&ids[name], &state).await;
    }
    server.pass(jiff::SignedDuration::from_mins(1));
    while server.control_plane.examine_graphs().await.expect("examined") {}
    let graph = admin.get("/api/v2/organizations/acme/graph").await.data()["attributes"].clone();
    let echo = json!(["echo"]);
    assert!(graph["edges"].as_array().expect("edges").iter().any(|edge| edge["grades"] == echo), "{graph:#}");
    let id = begin(&admin, json!({ "all": true })).await;
    let order: Vec<String> = nodes(&admin, &id).await.into_iter().map(|(unit, ..)| unit).collect();
    assert_eq!(order, ["network", "database", "app"], "what was declared says who comes first");
}

#[tokio::test]
async fn values_that_suggest_a_use_do_not_outdate_a_plan() {
    let server = ApiServer::start().await;
    let admin = server.admin();
    server.given_organization("acme").await;
    for (name, id, held) in
        [("network", "vpc-0123456789", "nothing-of-others"), ("app", "app-0123456789", "vpc-0123456789")]
    {
        let workspace = server.given_workspace("acme", name).await;
        given_configuration(&server, &workspace).await;
        let state = json!({ "version": 4, "terraform_version": "1.11.4", "serial": 1, "lineage": name,
            "outputs": { "made": { "value": id, "type": "string" } },
            "resources": [{ "mode": "managed", "type": "terraform_data", "name": "main",
                "provider": "provider[\"terraform.io/builtin/terraform\"]",
                "instances": [{ "schema_version": 0, "attributes": { "id": id, "input": { "value": held, "type": "string" } } }] }] });
        server.given_state(&workspace, &state).await;
    }
    let id = begin(&admin, json!({ "kind": "apply", "from": ["app"] })).await;
    advance(&server).await;
    execute(&server, planned(true)).await;
    server.pass(jiff::SignedDuration::from_mins(1));
    while server.control_plane.examine_graphs().await.expect("examined") {}
    let graph = admin.get("/api/v2/organizations/acme/graph").await.data()["attributes"].clone();
    assert_eq!(graph["edges"][0]["grades"], json!(["echo"]), "{graph:#}");
    advance(&server).await;
    assert_eq!(nodes(&admin, &id).await, rows(&[("app", "needs_approval", 1)]));
}

#[tokio::test]
async fn a_unit_in_which_no_run_can_start_is_blocked_with_the_reason() {
    let server = ApiServer::start().await;
    let admin = server.admin();
    let ids = given_three(&server).await;
    let local = json!({ "data": { "type": "workspaces", "attributes": { "execution-mode": "local" } } });
    admin.patch(&format!("/api/v2/workspaces/{}", ids["database"]), &local).await.expect(StatusCode::OK);
    let id = begin(&admin, json!({ "kind": "plan", "all": true })).await;
    advance(&server).await;
    execute(&server, planned(false)).await;
    advance(&server).await;
    assert_eq!(
        nodes(&admin, &id).await,
        rows(&[("network", "done", 1), ("database", "blocked", 0), ("app", "blocked", 0)])
    );
    let reasons = admin.get(&format!("/api/v2/walks/{id}/nodes")).await.data();
    assert!(reasons[1]["attributes"]["reason"].as_str().is_some_and(|reason| reason.contains("local")), "{reasons}");
}

#[tokio::test]
async fn only_the_newest_walks_are_kept() {
    let server = ApiServer::start().await;
    let admin = server.admin();
    server.given_organization("acme").await;
    for _ in 0..55 {
        begin(&admin, json!({ "all": true })).await;
        advance(&server).await;
        server.pass(jiff::SignedDuration::from_secs(1));
    }
    let total = admin.get(WALKS).await.json()["meta"]["pagination"]["total-count"].clone();
    assert_eq!(total, 51, "fifty that ended, and the newest");
}
