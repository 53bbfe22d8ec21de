//! Rules for which state may follow which, however it is uploaded.

use axum::http::StatusCode;
use harness::api_server::{Answer, ApiServer, Client};
use serde_json::{Value, json};

use super::{announcement, described, lock, locked_workspace, path_of, push, state, without};
use crate::configuration_versions::given_configuration;
use crate::runs::start_run;

/// A state with serial 5 and lineage `a` is there, and its workspace locked.
async fn given_state(server: &ApiServer) -> String {
    let workspace = locked_workspace(server).await;
    push(&server.admin(), &workspace, 5, "a", "x").await.expect(StatusCode::CREATED);
    workspace
}

fn versions(workspace: &str) -> String {
    format!("/api/v2/workspaces/{workspace}/state-versions")
}

/// Announces a state and sends bytes for it.
async fn announce_and_upload(server: &ApiServer, workspace: &str, announcement: &Value, bytes: Vec<u8>) -> Answer {
    let announced = server.admin().post(&versions(workspace), announcement).await.expect(StatusCode::CREATED);
    let upload = path_of(&announced.attribute("hosted-state-upload-url"));
    server.with_authorization(None).send("PUT", &upload, None, bytes).await
}

async fn current_serial(client: &Client, workspace: &str) -> Value {
    let path = format!("/api/v2/workspaces/{workspace}/current-state-version");
    client.get(&path).await.expect(StatusCode::OK).attribute("serial")
}

#[tokio::test]
async fn a_state_of_another_lineage_or_serial_comes_in_no_way() {
    let server = ApiServer::start().await;
    let admin = server.admin();
    let workspace = given_state(&server).await;
    let (foreign, other_serial) = (state(6, "b", "y"), state(7, "a", "y"));
    for (bytes, body, status, words) in [
        (&foreign, without(described(6, "a", &foreign), "lineage"), StatusCode::CONFLICT, r#"has lineage "b""#),
        (&foreign, described(6, "a", &foreign), StatusCode::CONFLICT, r#"has lineage "b""#),
        (&other_serial, described(6, "a", &other_serial), StatusCode::UNPROCESSABLE_ENTITY, "has serial 7"),
        (
            &other_serial,
            without(described(6, "a", &other_serial), "lineage"),
            StatusCode::UNPROCESSABLE_ENTITY,
            "has serial 7",
        ),
    ] {
        let announced = announce_and_upload(&server, &workspace, &without(body.clone(), "state"), bytes.clone()).await;
        let at_once = admin.post(&versions(&workspace), &body).await;
        for answer in [announced, at_once] {
            let detail = answer.expect(status).error().0;
            assert!(detail.contains(words), "{detail}");
        }
        assert_eq!(current_serial(&admin, &workspace).await, 5);
    }
    let mut forced = without(announcement(6, "a", &foreign), "lineage");
    forced["data"]["attributes"]["force"] = true.into();
    announce_and_upload(&server, &workspace, &forced, foreign).await.expect(StatusCode::OK);
    let next = state(7, "b", "z");
    let without_lineage = without(announcement(7, "b", &next), "lineage");
    announce_and_upload(&server, &workspace, &without_lineage, next).await.expect(StatusCode::OK);
    assert_eq!(current_serial(&admin, &workspace).await, 7);
}

#[tokio::test]
async fn a_serial_is_one_that_clients_can_count_on_from() {
    const MAX_SERIAL: u64 = i64::MAX as u64 - 1;
    let server = ApiServer::start().await;
    let admin = server.admin();
    let workspace = locked_workspace(&server).await;
    let old = push(&admin, &workspace, 1, "a", "x").await.expect(StatusCode::CREATED).id();
    for serial in [MAX_SERIAL + 1, u64::MAX] {
        let bytes = state(serial, "a", "y");
        let body = described(serial, "a", &bytes);
        for (body, pointer) in [
            (body.clone(), "/data/attributes/serial"),
            (without(body.clone(), "state"), "/data/attributes/serial"),
            (without(body, "serial"), "/data/attributes/state"),
        ] {
            let refused = admin.post(&versions(&workspace), &body).await.expect(StatusCode::UNPROCESSABLE_ENTITY);
            assert_eq!(refused.error().1.as_deref(), Some(pointer), "{:?}", refused.error());
        }
    }
    push(&admin, &workspace, MAX_SERIAL, "a", "y").await.expect(StatusCode::CREATED);
    let back = json!({ "data": { "type": "state-versions", "relationships": {
        "rollback-state-version": { "data": { "type": "state-versions", "id": old } },
    } } });
    let refused = admin.patch(&versions(&workspace), &back).await.expect(StatusCode::CONFLICT);
    assert!(refused.error().0.contains("highest serial"), "{:?}", refused.error());
}

#[tokio::test]
async fn a_description_is_one_that_can_be_kept() {
    let server = ApiServer::start().await;
    let admin = server.admin();
    let workspace = locked_workspace(&server).await;
    let long = "x".repeat(1000);
    for (attribute, value) in
        [("md5", "x"), ("md5", ""), ("md5", &"g".repeat(32)), ("lineage", &long), ("lineage", "a\u{202e}b")]
    {
        let mut body = described(1, "a", &state(1, "a", "x"));
        body["data"]["attributes"][attribute] = value.into();
        for body in [without(body.clone(), "state"), body] {
            let refused = admin.post(&versions(&workspace), &body).await.expect(StatusCode::UNPROCESSABLE_ENTITY);
            let (detail, pointer) = refused.error();
            assert_eq!(pointer, Some(format!("/data/attributes/{attribute}")), "{detail}");
        }
    }
    let body = without(described(1, "a", &state(1, &long, "x")), "lineage");
    let refused = admin.post(&versions(&workspace), &body).await.expect(StatusCode::UNPROCESSABLE_ENTITY);
    assert!(refused.error().0.contains("lineage"), "{:?}", refused.error());
}

#[tokio::test]
async fn a_state_names_a_run_of_its_own_workspace() {
    let server = ApiServer::start().await;
    let admin = server.admin();
    let workspace = locked_workspace(&server).await;
    let other = server.given_workspace("acme", "other").await;
    let mut runs = Vec::new();
    for id in [&workspace, &other] {
        given_configuration(&server, id).await;
        runs.push(start_run(&admin, id, json!({})).await.expect(StatusCode::CREATED).id());
    }
    let with_run = |body: &Value, run: &str| {
        let mut body = body.clone();
        body["data"]["relationships"]["run"]["data"] = json!({ "type": "runs", "id": run });
        body
    };
    let at_once = described(1, "a", &state(1, "a", "x"));
    for body in [without(at_once.clone(), "state"), at_once.clone()] {
        for run in [runs[1].as_str(), "run-4Tk9mXbq7cWvZpHn"] {
            let refused = admin.post(&versions(&workspace), &with_run(&body, run)).await;
            let (detail, pointer) = refused.expect(StatusCode::UNPROCESSABLE_ENTITY).error();
            assert_eq!(pointer.as_deref(), Some("/data/relationships/run"), "{detail}");
        }
    }
    let written = admin.post(&versions(&workspace), &with_run(&at_once, &runs[0])).await.expect(StatusCode::CREATED);
    assert_eq!(written.data()["relationships"]["run"]["data"]["id"], runs[0].as_str());
}

#[tokio::test]
async fn why_someone_locks_is_told_in_a_few_plain_words() {
    let server = ApiServer::start().await;
    let admin = server.admin();
    server.given_organization("acme").await;
    let workspace = server.given_workspace("acme", "web").await;
    let path = format!("/api/v2/workspaces/{workspace}/actions/lock");
    let because = |reason: &str| json!({ "data": { "type": "", "attributes": { "reason": reason } } });
    for reason in ["x".repeat(513), "a\u{202e}b".to_owned(), "a\u{1b}[31mb".to_owned()] {
        let refused = admin.post(&path, &because(&reason)).await.expect(StatusCode::UNPROCESSABLE_ENTITY);
        assert_eq!(refused.error().1.as_deref(), Some("/data/attributes/reason"));
    }
    admin.post(&path, &because(&"x".repeat(512))).await.expect(StatusCode::OK);
    lock(&admin, &workspace).await.expect(StatusCode::CONFLICT);
}
