//! Features that taco does not have (yet): clients that look for one are told that there is none.

use axum::http::StatusCode;
use harness::api_server::ApiServer;
use serde_json::json;

#[tokio::test]
async fn what_does_not_exist_yet_is_an_empty_list_and_cannot_be_made() {
    let server = ApiServer::start().await;
    let admin = server.admin();
    server.given_organization("acme").await;
    let workspace = server.given_workspace("acme", "network").await;
    let path = format!("/api/v2/workspaces/{workspace}/assessment-results");
    let answer = admin.get(&path).await.expect(StatusCode::OK);
    assert_eq!(answer.data(), json!([]));
    assert_eq!(answer.json()["meta"]["pagination"]["total-count"], 0);
    admin.post(&path, &json!({ "data": {} })).await.expect(StatusCode::METHOD_NOT_ALLOWED);
}

#[tokio::test]
async fn a_site_admin_sees_all_organizations() {
    let server = ApiServer::start().await;
    server.given_organization("acme").await;
    let (_, token) = server.given_user("rita").await;
    let zebra =
        json!({ "data": { "type": "organizations", "attributes": { "name": "zebra", "email": "z@zebra.test" } } });
    server.with_token(&token).post("/api/v2/organizations", &zebra).await.expect(StatusCode::CREATED);
    let all = server.admin().get("/api/v2/admin/organizations").await.expect(StatusCode::OK).data();
    let names: Vec<_> = all.as_array().into_iter().flatten().map(|entry| entry["attributes"]["name"].clone()).collect();
    assert_eq!(names, ["acme", "zebra"]);
}
