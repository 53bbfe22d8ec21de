//! Variables of workspaces, as go-tfe, the tfe provider and older clients use them.

use axum::http::StatusCode;
use harness::api_server::{Answer, ApiServer, Client};
use serde_json::{Value, json};

pub(crate) fn variable(attributes: Value) -> Value {
    json!({ "data": { "type": "vars", "attributes": attributes } })
}

pub(crate) fn keys(answer: &Answer) -> Vec<String> {
    let items = answer.data().as_array().cloned().unwrap_or_default();
    items.iter().map(|item| item["attributes"]["key"].as_str().unwrap_or_default().to_owned()).collect()
}

/// A server, its admin, and the path of a workspace.
async fn given_workspace() -> (ApiServer, Client, String) {
    let server = ApiServer::start().await;
    server.given_organization("acme").await;
    let path = format!("/api/v2/workspaces/{}", server.given_workspace("acme", "web").await);
    let admin = server.admin();
    (server, admin, path)
}

#[tokio::test]
async fn variables_are_made_listed_changed_and_deleted() {
    let (_server, admin, workspace) = given_workspace().await;
    let list = format!("{workspace}/vars");
    let body = variable(json!({ "key": "region", "value": "eu", "category": "terraform", "description": "where" }));
    let made = admin.post(&list, &body).await.expect(StatusCode::CREATED);
    assert_eq!((made.attribute("value"), made.attribute("sensitive")), (json!("eu"), json!(false)));
    let one = format!("{list}/{}", made.id());
    assert_eq!(admin.get(&one).await.expect(StatusCode::OK).data(), made.data());
    for number in 0..30 {
        let body = variable(json!({ "key": format!("NAME_{number:02}"), "category": "env" }));
        admin.post(&list, &body).await.expect(StatusCode::CREATED);
    }
    let all = admin.get(&list).await.expect(StatusCode::OK);
    assert_eq!(keys(&all).len(), 31, "clients do not ask for further pages");
    let related = admin.get(&workspace).await.data()["relationships"]["vars"]["data"].clone();
    assert_eq!(related.as_array().map(Vec::len), Some(31));

    let changed = admin.patch(&one, &variable(json!({ "value": "us" }))).await.expect(StatusCode::OK);
    assert_eq!((changed.attribute("value"), changed.attribute("description")), (json!("us"), json!("where")));
    let again = admin.patch(&one, &variable(json!({}))).await.expect(StatusCode::OK);
    let versions = [made, changed, again].map(|answer| answer.attribute("version-id").to_string());
    assert!(versions[0] != versions[1] && versions[1] != versions[2], "every write is told");

    admin.delete(&one).await.expect(StatusCode::NO_CONTENT);
    admin.get(&one).await.expect(StatusCode::NOT_FOUND);
    admin.delete(&one).await.expect(StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn a_sensitive_value_goes_in_and_never_comes_out() {
    let (server, admin, workspace) = given_workspace().await;
    let list = format!("{workspace}/vars");
    let secret = "s3cr3t-5c1f0e7a";
    let body = variable(json!({ "key": "TOKEN", "value": secret, "category": "env", "sensitive": true }));
    let made = admin.post(&list, &body).await.expect(StatusCode::CREATED);
    let one = format!("{list}/{}", made.id());
    let renamed = admin.patch(&one, &variable(json!({ "key": "OTHER" }))).await.expect(StatusCode::OK);
    let refused = admin.patch(&one, &variable(json!({ "sensitive": false }))).await;
    let refused = refused.expect(StatusCode::UNPROCESSABLE_ENTITY);
    assert_eq!(refused.error().1.as_deref(), Some("/data/attributes/sensitive"));
    let invalid = variable(json!({ "category": "terraform", "hcl": true, "value": format!("{secret} {{") }));
    let invalid = admin.patch(&one, &invalid).await.expect(StatusCode::UNPROCESSABLE_ENTITY);
    let answers = [
        made,
        renamed,
        refused,
        invalid,
        admin.get(&one).await,
        admin.get(&list).await,
        admin.get(&format!("{workspace}/all-vars")).await,
        admin.get("/api/v2/vars?filter[organization][name]=acme&filter[workspace][name]=web").await,
        server.another().await.admin().get(&list).await,
    ];
    for answer in answers {
        assert!(!String::from_utf8_lossy(&answer.bytes).contains(secret), "{answer:?}");
    }
    assert_eq!(admin.get(&one).await.attribute("value"), Value::Null);

    let plain = variable(json!({ "key": "PLAIN", "value": secret, "category": "env" }));
    let plain = admin.post(&list, &plain).await.expect(StatusCode::CREATED);
    let path = format!("{list}/{}", plain.id());
    let hidden = admin.patch(&path, &variable(json!({ "sensitive": true }))).await.expect(StatusCode::OK);
    assert_eq!((hidden.attribute("value"), hidden.attribute("sensitive")), (Value::Null, json!(true)));
}

#[tokio::test]
async fn what_cannot_be_a_variable_is_refused_with_a_pointer() {
    let (_server, admin, workspace) = given_workspace().await;
    let list = format!("{workspace}/vars");
    let taken = variable(json!({ "key": "taken", "category": "terraform" }));
    admin.post(&list, &taken).await.expect(StatusCode::CREATED);
    let elsewhere = variable(json!({ "key": "taken", "category": "env" }));
    let other = admin.post(&list, &elsewhere).await.expect(StatusCode::CREATED).id();
    for (attributes, wrong) in [
        (json!({ "category": "env" }), "key"),
        (json!({ "key": "", "category": "env" }), "key"),
        (json!({ "key": "a b", "category": "terraform" }), "key"),
        (json!({ "key": "taken", "category": "terraform" }), "key"),
        (json!({ "key": "k".repeat(129), "category": "terraform" }), "key"),
        (json!({ "key": 7, "category": "terraform" }), "key"),
        (json!({ "key": "k" }), "category"),
        (json!({ "key": "k", "category": "policy-set" }), "category"),
        (json!({ "key": "k", "category": "env", "value": "v".repeat(256 * 1024 + 1) }), "value"),
        (json!({ "key": "k", "category": "terraform", "value": "[1,", "hcl": true }), "value"),
        (json!({ "key": "k", "category": "env", "description": "d".repeat(513) }), "description"),
        (json!({ "key": "k", "category": "env", "sensitive": "yes" }), "sensitive"),
    ] {
        let answer = admin.post(&list, &variable(attributes)).await.expect(StatusCode::UNPROCESSABLE_ENTITY);
        let (detail, pointer) = answer.error();
        assert_eq!(pointer, Some(format!("/data/attributes/{wrong}")), "{detail}");
        assert!(!detail.is_empty());
    }
    let moved = admin.patch(&format!("{list}/{other}"), &variable(json!({ "category": "terraform" }))).await;
    assert_eq!(moved.expect(StatusCode::UNPROCESSABLE_ENTITY).error().0, "Key has already been taken");
    assert_eq!(keys(&admin.get(&list).await), ["taken", "taken"]);
}

#[tokio::test]
async fn older_clients_name_the_workspace_elsewhere() {
    let (server, admin, workspace) = given_workspace().await;
    let id = workspace.rsplit('/').next().expect("an id");
    let mut body = variable(json!({ "key": "region", "value": "eu", "category": "terraform" }));
    let nowhere = admin.post("/api/v2/vars", &body).await.expect(StatusCode::UNPROCESSABLE_ENTITY);
    assert_eq!(nowhere.error().1.as_deref(), Some("/data/relationships/workspace"));
    body["data"]["relationships"] = json!({ "workspace": { "data": { "type": "workspaces", "id": id } } });
    let made = admin.post("/api/v2/vars", &body).await.expect(StatusCode::CREATED);
    let path = format!("/api/v2/vars/{}", made.id());
    let changed = admin.patch(&path, &variable(json!({ "value": "us" }))).await.expect(StatusCode::OK);
    assert_eq!(changed.attribute("value"), "us");
    let filter = "/api/v2/vars?filter[organization][name]=acme&filter[workspace][name]=web";
    assert_eq!(keys(&admin.get(filter).await.expect(StatusCode::OK)), ["region"]);
    admin.get("/api/v2/vars?filter[organization][name]=acme").await.expect(StatusCode::BAD_REQUEST);
    let other = format!("/api/v2/workspaces/{}/vars/{}", server.given_workspace("acme", "other").await, made.id());
    admin.get(&other).await.expect(StatusCode::NOT_FOUND);
    admin.delete(&path).await.expect(StatusCode::NO_CONTENT);
}

#[tokio::test]
async fn what_one_server_wrote_another_reads_at_once() {
    let (server, admin, workspace) = given_workspace().await;
    let other = server.another().await;
    let list = format!("{workspace}/vars");
    for number in 0..5 {
        let body = variable(json!({ "key": format!("k{number}"), "category": "env" }));
        admin.post(&list, &body).await.expect(StatusCode::CREATED);
        assert_eq!(keys(&other.admin().get(&list).await).len(), number + 1);
    }
}
