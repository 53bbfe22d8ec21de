//! The explorer, and what an organization is subscribed to.

use axum::http::StatusCode;
use harness::api_server::ApiServer;
use serde_json::json;

#[tokio::test]
async fn the_explorer_has_a_row_for_each_workspace_that_one_may_see() {
    let server = ApiServer::start().await;
    let admin = server.admin();
    server.given_organization("acme").await;
    let web = server.given_workspace("acme", "web").await;
    server.given_workspace("acme", "app").await;
    let state = json!({
        "version": 4, "serial": 1, "lineage": "l", "terraform_version": "1.11.4", "outputs": {}, "resources": [],
    });
    server.given_state(&web, &state).await;
    let path = "/api/v2/organizations/acme/explorer";

    let found = admin.get(&format!("{path}?type=workspaces&sort=-workspace_name")).await.expect(StatusCode::OK);
    let row = &found.data()[0];
    assert_eq!((&row["type"], &row["id"]), (&json!("visibility-workspace"), &json!(web)));
    for (name, value) in [
        ("workspace-name", json!("web")),
        ("external-id", json!(web)),
        ("organization-name", json!("acme")),
        ("project-name", json!("Default Project")),
        ("state-version-terraform-version", json!("1.11.4")),
        ("current-run-status", json!(null)),
        ("drifted", json!(null)),
    ] {
        assert_eq!(row["attributes"][name], value, "{name}");
    }
    assert_eq!(found.data()[1]["attributes"]["workspace-name"], "app");
    assert_eq!(found.json()["meta"]["pagination"]["total-count"], 2);
    for query in
        ["", "?type=providers", "?type=workspaces&sort=drifted", "?type=workspaces&filter[0][drifted][is][0]=true"]
    {
        admin.get(&format!("{path}{query}")).await.expect(StatusCode::BAD_REQUEST);
    }

    let member = json!({ "data": { "type": "organization-memberships", "attributes": { "email": "jane@acme.test" } } });
    let (_, token) = server.given_user("jane").await;
    let member = admin.post("/api/v2/organizations/acme/organization-memberships", &member).await;
    server.with_token(&token).accepts(&member.expect(StatusCode::CREATED).id()).await;
    let none = server.with_token(&token).get(&format!("{path}?type=workspaces")).await.expect(StatusCode::OK);
    assert_eq!(none.data(), json!([]), "a member sees what their teams may see");
}

#[tokio::test]
async fn every_organization_has_everything_for_nothing() {
    let server = ApiServer::start().await;
    server.given_organization("acme").await;
    let answer = server.admin().get("/api/v2/organizations/acme/subscription").await.expect(StatusCode::OK);
    assert_eq!(answer.data()["type"], "subscriptions");
    assert_eq!((answer.attribute("is-active"), answer.attribute("end-at")), (json!(true), json!(null)));
    assert_eq!(answer.data()["relationships"]["organization"]["data"]["id"], "acme");
    let set = &answer.json()["included"][0];
    assert_eq!(answer.data()["relationships"]["feature-set"]["data"]["id"], set["id"]);
    assert_eq!((&set["attributes"]["name"], &set["attributes"]["cost"]), (&json!("Everything"), &json!(0)));
}
