//! Reserved tag keys: with `disable-overrides`, workspaces take the value of their project.

use axum::http::StatusCode;
use harness::api_server::ApiServer;
use harness::permission_site::attributes;
use serde_json::{Value, json};

const RESERVED: &str = "/api/v2/organizations/acme/reserved-tag-keys";

fn tag(key: &str, value: &str) -> Value {
    json!({ "data": [{ "type": "tag-bindings", "attributes": { "key": key, "value": value } }] })
}

#[tokio::test]
async fn a_workspace_cannot_override_a_reserved_key_of_its_project() {
    let server = ApiServer::start().await;
    server.given_organization("acme").await;
    let admin = server.admin();
    let workspace = server.given_workspace("acme", "web").await;
    let workspace = format!("/api/v2/workspaces/{workspace}");
    let shown = admin.get(&workspace).await.data();
    let project = shown["relationships"]["project"]["data"]["id"].as_str().expect("an id").to_owned();
    admin.patch(&format!("/api/v2/projects/{project}/tag-bindings"), &tag("env", "prod")).await.expect(StatusCode::OK);
    let bindings = format!("{workspace}/tag-bindings");
    admin.patch(&bindings, &tag("env", "dev")).await.expect(StatusCode::OK);

    let body = attributes("reserved-tag-keys", json!({ "key": "env", "disable-overrides": true }));
    let reserved = admin.post(RESERVED, &body).await.expect(StatusCode::CREATED);
    // What was there stays, and the workspace can be changed otherwise.
    admin.patch(&bindings, &tag("team", "web")).await.expect(StatusCode::OK);
    let refused = admin.patch(&bindings, &tag("env", "test")).await.expect(StatusCode::UNPROCESSABLE_ENTITY);
    assert!(refused.error().0.contains("The tag key env is reserved"), "{}", refused.error().0);
    admin.patch(&bindings, &tag("env", "prod")).await.expect(StatusCode::OK);

    let mut new = attributes("workspaces", json!({ "name": "shop" }));
    new["data"]["relationships"]["tag-bindings"] = tag("env", "dev");
    let path = "/api/v2/organizations/acme/workspaces";
    admin.post(path, &new).await.expect(StatusCode::UNPROCESSABLE_ENTITY);
    let allowed = attributes("reserved-tag-keys", json!({ "disable-overrides": false }));
    let one = format!("/api/v2/reserved-tag-keys/{}", reserved.id());
    admin.patch(&one, &allowed).await.expect(StatusCode::OK);
    admin.post(path, &new).await.expect(StatusCode::CREATED);
    admin.delete(&one).await.expect(StatusCode::NO_CONTENT);
    admin.delete(&one).await.expect(StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn a_key_is_reserved_once() {
    let server = ApiServer::start().await;
    server.given_organization("acme").await;
    let admin = server.admin();
    let body = |key: &str| attributes("reserved-tag-keys", json!({ "key": key }));
    let first = admin.post(RESERVED, &body("cost-center")).await.expect(StatusCode::CREATED);
    assert_eq!(first.attribute("disable-overrides"), false);
    for (key, words) in
        [("cost-center", "Key has already been taken"), ("! / nope", "Key is invalid"), ("", "Key is invalid")]
    {
        let refused = admin.post(RESERVED, &body(key)).await.expect(StatusCode::UNPROCESSABLE_ENTITY);
        assert!(refused.error().0.starts_with(words), "{}", refused.error().0);
    }
    let other = admin.post(RESERVED, &body("owner")).await.expect(StatusCode::CREATED);
    let path = format!("/api/v2/reserved-tag-keys/{}", other.id());
    admin.patch(&path, &body("cost-center")).await.expect(StatusCode::UNPROCESSABLE_ENTITY);
    let listed = admin.get(RESERVED).await.expect(StatusCode::OK).data();
    let keys: Vec<&str> =
        listed.as_array().expect("a list").iter().filter_map(|one| one["attributes"]["key"].as_str()).collect();
    assert_eq!(keys, ["cost-center", "owner"]);
}
