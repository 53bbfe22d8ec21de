//! Run triggers: an apply in one workspace starts a run in another.

use axum::http::StatusCode;
use harness::api_server::{Answer, ApiServer, Client};
use serde_json::{Value, json};

use crate::configuration_versions::given_configuration;
use crate::run_phases::{applied, execute, planned};
use crate::runs::start_run;

async fn create(client: &Client, workspace: &str, source: &str) -> Answer {
    let body = json!({ "data": { "type": "run-triggers", "relationships": {
        "sourceable": { "data": { "type": "workspaces", "id": source } },
    } } });
    client.post(&format!("/api/v2/workspaces/{workspace}/run-triggers"), &body).await
}

async fn given_two(server: &ApiServer) -> (String, String) {
    server.given_organization("acme").await;
    (server.given_workspace("acme", "network").await, server.given_workspace("acme", "app").await)
}

#[tokio::test]
async fn an_apply_starts_a_run_elsewhere() {
    let server = ApiServer::start().await;
    let admin = server.admin();
    let (network, app) = given_two(&server).await;
    given_configuration(&server, &network).await;
    create(&admin, &app, &network).await.expect(StatusCode::CREATED);
    let apply = || async {
        start_run(&admin, &network, json!({ "auto-apply": true })).await.expect(StatusCode::CREATED);
        execute(&server, planned(true)).await;
        execute(&server, applied()).await;
    };
    let runs = || async { admin.get(&format!("/api/v2/workspaces/{app}/runs")).await.data() };
    apply().await;
    assert_eq!(runs().await, json!([]), "a workspace without a configuration has nothing to run");
    given_configuration(&server, &app).await;
    apply().await;
    let started = runs().await[0]["attributes"].clone();
    assert_eq!((&started["source"], &started["status"]), (&json!("tfe-run-trigger"), &json!("plan_queued")));
    assert!(started["message"].as_str().is_some_and(|message| message.contains("network")), "{started}");
}

#[tokio::test]
async fn a_trigger_starts_nothing_where_nobody_could() {
    let server = ApiServer::start().await;
    let admin = server.admin();
    let (network, app) = given_two(&server).await;
    for workspace in [&network, &app] {
        given_configuration(&server, workspace).await;
    }
    create(&admin, &app, &network).await.expect(StatusCode::CREATED);
    for (mode, expected) in [("local", 0), ("remote", 1)] {
        let change = json!({ "data": { "type": "workspaces", "attributes": { "execution-mode": mode } } });
        admin.patch(&format!("/api/v2/workspaces/{app}"), &change).await.expect(StatusCode::OK);
        start_run(&admin, &network, json!({ "auto-apply": true })).await.expect(StatusCode::CREATED);
        execute(&server, planned(true)).await;
        execute(&server, applied()).await;
        let runs = admin.get(&format!("/api/v2/workspaces/{app}/runs")).await.data();
        assert_eq!(runs.as_array().map(Vec::len), Some(expected), "{mode}");
    }
}

#[tokio::test]
async fn triggers_are_seen_from_both_ends() {
    let server = ApiServer::start().await;
    let admin = server.admin();
    let (network, app) = given_two(&server).await;
    let made = create(&admin, &app, &network).await.expect(StatusCode::CREATED);
    assert_eq!(create(&admin, &app, &network).await.expect(StatusCode::CREATED).id(), made.id(), "twice is once");
    assert_eq!((made.attribute("workspace-name"), made.attribute("sourceable-name")), (json!("app"), json!("network")));
    let list = |workspace: &str, direction: &str| {
        let path = format!("/api/v2/workspaces/{workspace}/run-triggers?filter[run-trigger][type]={direction}");
        let admin = admin.clone();
        async move { admin.get(&path).await }
    };
    let count = |answer: Answer| answer.expect(StatusCode::OK).data().as_array().map(Vec::len);
    assert_eq!(count(list(&app, "inbound").await), Some(1));
    assert_eq!(count(list(&app, "outbound").await), Some(0));
    assert_eq!(count(list(&network, "outbound").await), Some(1));
    list(&app, "sideways").await.expect(StatusCode::BAD_REQUEST);

    let path = format!("/api/v2/run-triggers/{}", made.id());
    let read = admin.get(&format!("{path}?include=workspace,sourceable")).await.expect(StatusCode::OK);
    assert_eq!(read.json()["included"].as_array().map(Vec::len), Some(2));
    admin.delete(&path).await.expect(StatusCode::NO_CONTENT);
    admin.get(&path).await.expect(StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn a_trigger_needs_another_workspace() {
    let server = ApiServer::start().await;
    let admin = server.admin();
    let (network, app) = given_two(&server).await;
    let refused = |answer: Answer| answer.expect(StatusCode::UNPROCESSABLE_ENTITY).error();
    let place = Some("/data/relationships/sourceable".to_owned());
    let (words, pointer) = refused(create(&admin, &app, &app).await);
    assert!(words.contains("itself") && pointer == place, "{words}");
    let (words, pointer) = refused(create(&admin, &app, "ws-4Tk9mXbq7cWvZpHn").await);
    assert!(words.contains("does not exist") && pointer == place, "{words}");
    let nothing: Value = json!({ "data": { "type": "run-triggers" } });
    let answer = admin.post(&format!("/api/v2/workspaces/{app}/run-triggers"), &nothing).await;
    assert_eq!(refused(answer).1, place);
    for number in 0..20 {
        let source = server.given_workspace("acme", &format!("source-{number}")).await;
        create(&admin, &app, &source).await.expect(StatusCode::CREATED);
    }
    assert!(refused(create(&admin, &app, &network).await).0.contains("20 workspaces"));
}
