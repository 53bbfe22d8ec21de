//! Teams: who is in them, and what they may do, in the terms of go-tfe and of the provider `tfe`.

use axum::http::StatusCode;
use harness::api_server::{ApiServer, Client};
use serde_json::{Value, json};

async fn given_team(server: &ApiServer, attributes: Value) -> String {
    let body = json!({ "data": { "type": "teams", "attributes": attributes } });
    server.admin().post("/api/v2/organizations/acme/teams", &body).await.expect(StatusCode::CREATED).id()
}

/// A member whose account this is, in such a team. The membership's id.
async fn given_member(server: &ApiServer, name: &str, token: &str, team: Option<&str>) -> String {
    let membership = invited(server, name, team).await;
    server.with_token(token).accepts(&membership).await;
    membership
}

/// An invitation for someone of this name, into such a team. The membership's id.
async fn invited(server: &ApiServer, name: &str, team: Option<&str>) -> String {
    let teams: Vec<_> = team.into_iter().map(|team| json!({ "type": "teams", "id": team })).collect();
    let body = json!({ "data": { "type": "organization-memberships",
        "attributes": { "email": format!("{name}@acme.test") }, "relationships": { "teams": { "data": teams } } } });
    let path = "/api/v2/organizations/acme/organization-memberships";
    server.admin().post(path, &body).await.expect(StatusCode::CREATED).id()
}

async fn owners(server: &ApiServer) -> String {
    let listed = server.admin().get("/api/v2/organizations/acme/teams?filter[names]=owners").await;
    listed.data()[0]["id"].as_str().expect("an id").to_owned()
}

fn named(kind: &str, ids: &[&str]) -> Value {
    let list: Vec<_> = ids.iter().map(|id| json!({ "type": kind, "id": id })).collect();
    json!({ "data": list })
}

/// `POST` or `DELETE`, and what came of it.
async fn change(client: &Client, method: &str, team: &str, kind: &str, ids: &[&str]) -> StatusCode {
    let path = format!("/api/v2/teams/{team}/relationships/{kind}");
    let body = named(kind, ids).to_string();
    client.send(method, &path, Some("application/vnd.api+json"), body).await.status
}

/// The memberships of a team, by id.
async fn members(server: &ApiServer, team: &str) -> Vec<String> {
    let read = server.admin().get(&format!("/api/v2/teams/{team}?include=organization-memberships")).await;
    let read = read.expect(StatusCode::OK);
    let ids = read.json()["included"].as_array().cloned().unwrap_or_default();
    let mut ids: Vec<_> = ids.iter().map(|member| member["id"].as_str().expect("an id").to_owned()).collect();
    ids.sort();
    ids
}

fn sorted(ids: &[&str]) -> Vec<String> {
    let mut ids: Vec<_> = ids.iter().map(|id| (*id).to_owned()).collect();
    ids.sort();
    ids
}

const ADDED: StatusCode = StatusCode::NO_CONTENT;
const MEMBERSHIPS: &str = "organization-memberships";

#[tokio::test]
async fn members_come_into_a_team_and_leave_it() {
    let server = ApiServer::start().await;
    let admin = server.admin();
    server.given_organization("acme").await;
    let team = given_team(&server, json!({ "name": "operators" })).await;
    let (_, token) = server.given_user("jane").await;
    let jane = given_member(&server, "jane", &token, None).await;
    let guest = invited(&server, "guest", None).await;

    assert_eq!(change(&admin, "POST", &team, MEMBERSHIPS, &[&jane, &guest]).await, ADDED);
    assert_eq!(members(&server, &team).await, sorted(&[&jane, &guest]));
    assert_eq!(change(&admin, "POST", &team, MEMBERSHIPS, &[&jane]).await, ADDED, "they are in it already");
    assert_eq!(change(&admin, "DELETE", &team, MEMBERSHIPS, &[&jane]).await, ADDED);
    assert_eq!(members(&server, &team).await, sorted(&[&guest]));
    assert_eq!(change(&admin, "DELETE", &team, MEMBERSHIPS, &[&jane]).await, ADDED, "nobody misses them");
    assert_eq!(change(&admin, "POST", &team, "users", &["Jane"]).await, ADDED);
    assert_eq!(members(&server, &team).await, sorted(&[&jane, &guest]));
    assert_eq!(change(&admin, "DELETE", &team, "users", &["jane"]).await, ADDED);
    assert_eq!(members(&server, &team).await, sorted(&[&guest]));
    admin.get(&format!("/api/v2/organization-memberships/{jane}")).await.expect(StatusCode::OK);

    let path = format!("/api/v2/teams/{team}/relationships");
    for (kind, id, what) in [
        ("users", "nobody", "invite them first"),
        ("users", "outsider", "invite them first"),
        ("users", "no name", "invite them first"),
        (MEMBERSHIPS, "ou-1111111111111111", "does not exist in this organization"),
        (MEMBERSHIPS, "jane", "this is not an id"),
    ] {
        if id == "outsider" {
            server.given_user(id).await;
        }
        let good = if kind == "users" { "jane" } else { &jane };
        let answer = admin.post(&format!("{path}/{kind}"), &named(kind, &[good, id])).await;
        let error = &answer.expect(StatusCode::UNPROCESSABLE_ENTITY).json()["errors"][0];
        assert_eq!(error["source"]["pointer"], "/data/1/id", "{id}");
        assert!(error["detail"].as_str().is_some_and(|detail| detail.contains(what)), "{error}");
    }
    assert_eq!(members(&server, &team).await, sorted(&[&guest]), "all of them or none");
}

#[tokio::test]
async fn only_owners_choose_owners_and_one_stays() {
    let server = ApiServer::start().await;
    let admin = server.admin();
    server.given_organization("acme").await;
    let owners = owners(&server).await;
    let first = members(&server, &owners).await;
    let [first] = first.as_slice() else { panic!("one founded it: {first:?}") };
    let stewards = json!({ "name": "stewards", "organization-access": { "manage-membership": true } });
    let stewards = given_team(&server, stewards).await;
    let visible = given_team(&server, json!({ "name": "visible", "visibility": "organization" })).await;
    let secret = given_team(&server, json!({ "name": "secret" })).await;
    let (_, token) = server.given_user("steward").await;
    let steward = given_member(&server, "steward", &token, Some(&stewards)).await;
    let (_, plain) = server.given_user("plain").await;
    given_member(&server, "plain", &plain, None).await;
    let (plain, steward_client) = (server.with_token(&plain), server.with_token(&token));

    let refused = StatusCode::NOT_FOUND;
    for (client, team, expected) in [
        (&plain, &visible, refused),
        (&plain, &secret, refused),
        (&steward_client, &visible, ADDED),
        (&steward_client, &stewards, ADDED),
        (&steward_client, &secret, refused),
        (&steward_client, &owners, refused),
    ] {
        assert_eq!(change(client, "POST", team, MEMBERSHIPS, &[&steward]).await, expected);
        assert_eq!(change(client, "POST", team, "users", &["steward"]).await, expected);
    }
    assert_eq!(change(&steward_client, "DELETE", &owners, MEMBERSHIPS, &[first]).await, refused);
    let path = format!("/api/v2/organization-memberships/{first}");
    steward_client.delete(&path).await.expect(refused);
    let path = "/api/v2/organizations/acme/organization-memberships";
    let body = json!({ "data": { "type": "organization-memberships", "attributes": { "email": "new@acme.test" },
        "relationships": { "teams": { "data": [{ "type": "teams", "id": owners }] } } } });
    let answer = steward_client.post(path, &body).await.expect(refused);
    assert!(answer.json()["errors"][0]["detail"].as_str().is_some_and(|why| why.contains("owner")), "{answer:?}");

    assert_eq!(change(&admin, "DELETE", &owners, MEMBERSHIPS, &[first]).await, StatusCode::CONFLICT);
    assert_eq!(change(&admin, "POST", &owners, MEMBERSHIPS, &[&steward]).await, ADDED);
    assert_eq!(change(&admin, "DELETE", &owners, MEMBERSHIPS, &[first, &steward]).await, StatusCode::CONFLICT);
    assert_eq!(change(&steward_client, "DELETE", &owners, MEMBERSHIPS, &[first]).await, ADDED, "an owner now");
    assert_eq!(members(&server, &owners).await, sorted(&[&steward]));
}

#[tokio::test]
async fn who_manages_teams_gets_no_token_of_the_owners() {
    let server = ApiServer::start().await;
    let admin = server.admin();
    server.given_organization("acme").await;
    let managers =
        given_team(&server, json!({ "name": "managers", "organization-access": { "manage-teams": true } })).await;
    let other = given_team(&server, json!({ "name": "other" })).await;
    let token_of = |team: &str| format!("/api/v2/teams/{team}/authentication-token");
    let owners = token_of(&owners(&server).await);
    for path in [token_of(&managers), "/api/v2/organizations/acme/authentication-token".to_owned()] {
        let issued = admin.post(&path, &json!({})).await.expect(StatusCode::CREATED).attribute("token");
        let client = server.with_token(issued.as_str().expect("a token"));
        client.post(&token_of(&other), &json!({})).await.expect(StatusCode::CREATED);
        client.post(&owners, &json!({})).await.expect(StatusCode::NOT_FOUND);
        client.post(&format!("{owners}s"), &json!({})).await.expect(StatusCode::NOT_FOUND);
    }
    let issued = admin.post(&owners, &json!({})).await.expect(StatusCode::CREATED).attribute("token");
    let client = server.with_token(issued.as_str().expect("a token"));
    client.get("/api/v2/organizations/acme").await.expect(StatusCode::OK);
    client.post(&owners, &json!({})).await.expect(StatusCode::CREATED);
}

#[tokio::test]
async fn a_fixed_role_in_a_project_may_come_with_empty_rights() {
    let server = ApiServer::start().await;
    let admin = server.admin();
    server.given_organization("acme").await;
    let team = given_team(&server, json!({ "name": "operators" })).await;
    let project = json!({ "data": { "type": "projects", "attributes": { "name": "network" } } });
    let project = admin.post("/api/v2/organizations/acme/projects", &project).await.expect(StatusCode::CREATED).id();
    let body = |attributes: Value| {
        json!({ "data": { "type": "team-projects", "attributes": attributes, "relationships": {
            "team": { "data": { "type": "teams", "id": team } },
            "project": { "data": { "type": "projects", "id": project } },
        } } })
    };
    let sent = json!({ "access": "read", "project-access": {}, "workspace-access": {} });
    let made = admin.post("/api/v2/team-projects", &body(sent)).await.expect(StatusCode::CREATED);
    let path = format!("/api/v2/team-projects/{}", made.id());
    let sent = json!({ "access": "maintain", "project-access": {}, "workspace-access": {} });
    assert_eq!(admin.patch(&path, &body(sent)).await.expect(StatusCode::OK).attribute("access"), "maintain");
    for (attribute, rights) in
        [("project-access", json!({ "teams": "read" })), ("workspace-access", json!({ "create": true }))]
    {
        let answer = admin.patch(&path, &body(json!({ attribute: rights }))).await;
        let error = &answer.expect(StatusCode::UNPROCESSABLE_ENTITY).json()["errors"][0];
        assert_eq!(error["source"]["pointer"], format!("/data/attributes/{attribute}"));
    }
}
