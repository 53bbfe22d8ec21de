//! Tokens of teams: no one gets more rights by one than they have.

use axum::http::StatusCode;
use harness::api_server::{Answer, ApiServer, Client};
use serde_json::{Value, json};

use crate::states::{given_member, lock, push};

async fn token_at(client: &Client, path: &str) -> Answer {
    client.post(path, &json!({})).await
}

fn client_with(server: &ApiServer, issued: &Answer) -> Client {
    server.with_token(issued.attribute("token").as_str().expect("a token"))
}

async fn organization_token(server: &ApiServer) -> Client {
    let issued = token_at(&server.admin(), "/api/v2/organizations/acme/authentication-token").await;
    client_with(server, &issued.expect(StatusCode::CREATED))
}

async fn given_team(client: &Client, name: &str, access: Value) -> String {
    let body = json!({ "data": { "type": "teams", "attributes": { "name": name, "organization-access": access } } });
    client.post("/api/v2/organizations/acme/teams", &body).await.expect(StatusCode::CREATED).id()
}

async fn give(client: &Client, team: &str, workspace: &str, access: &str) -> Answer {
    let body = json!({ "data": { "type": "team-workspaces", "attributes": { "access": access }, "relationships": {
        "team": { "data": { "type": "teams", "id": team } },
        "workspace": { "data": { "type": "workspaces", "id": workspace } } } } });
    client.post("/api/v2/team-workspaces", &body).await
}

/// All that the organization's token never may.
async fn runs_and_states(client: &Client, workspace: &str) -> Vec<StatusCode> {
    let configuration = json!({ "data": { "type": "configuration-versions", "attributes": {} } });
    let configurations = format!("/api/v2/workspaces/{workspace}/configuration-versions");
    vec![
        lock(client, workspace).await.status,
        push(client, workspace, 1, "one", "x").await.status,
        client.act(&format!("/api/v2/workspaces/{workspace}/actions/unlock")).await.status,
        client.post(&configurations, &configuration).await.status,
    ]
}

#[tokio::test]
async fn the_organizations_token_gets_no_runs_and_states_by_way_of_a_team() {
    let server = ApiServer::start().await;
    server.given_organization("acme").await;
    let workspace = server.given_workspace("acme", "web").await;
    let organization = organization_token(&server).await;
    let team = given_team(&organization, "deployers", json!({})).await;
    let tokens = format!("/api/v2/teams/{team}/authentication-token");
    let before = token_at(&organization, &tokens).await.expect(StatusCode::CREATED);
    give(&organization, &team, &workspace, "admin").await.expect(StatusCode::CREATED);

    let refused = token_at(&organization, &tokens).await.expect(StatusCode::NOT_FOUND);
    assert_eq!(refused.json()["errors"][0]["title"], "not found");
    let lent = client_with(&server, &before);
    lent.get(&format!("/api/v2/workspaces/{workspace}")).await.expect(StatusCode::OK);
    assert_eq!(runs_and_states(&lent, &workspace).await, [StatusCode::NOT_FOUND; 4]);

    let owners = token_at(&server.admin(), &tokens).await.expect(StatusCode::CREATED);
    let made = runs_and_states(&client_with(&server, &owners), &workspace).await;
    assert!(made.iter().all(StatusCode::is_success), "{made:?}");
}

#[tokio::test]
async fn nor_by_way_of_a_team_that_makes_another() {
    let server = ApiServer::start().await;
    server.given_organization("acme").await;
    let workspace = server.given_workspace("acme", "web").await;
    let organization = organization_token(&server).await;
    let managers = given_team(&organization, "managers", json!({ "manage-teams": true })).await;
    let managers = token_at(&organization, &format!("/api/v2/teams/{managers}/authentication-token")).await;
    let managers = client_with(&server, &managers.expect(StatusCode::CREATED));
    let team = given_team(&managers, "deployers", json!({})).await;
    let token = token_at(&managers, &format!("/api/v2/teams/{team}/authentication-token")).await;
    let token = client_with(&server, &token.expect(StatusCode::CREATED));
    give(&organization, &team, &workspace, "admin").await.expect(StatusCode::CREATED);
    token.get(&format!("/api/v2/workspaces/{workspace}")).await.expect(StatusCode::OK);
    assert_eq!(runs_and_states(&token, &workspace).await, [StatusCode::NOT_FOUND; 4]);
}

/// A member of a team with such rights in the organization.
async fn given_manager(server: &ApiServer, name: &str, access: Value) -> Client {
    let (_, token) = server.given_user(name).await;
    let team = given_team(&server.admin(), &format!("team-of-{name}"), access).await;
    let body = json!({ "data": { "type": "organization-memberships", "attributes": {
        "email": format!("{name}@acme.test") }, "relationships": { "teams": { "data": [
        { "type": "teams", "id": team }] } } } });
    let path = "/api/v2/organizations/acme/organization-memberships";
    let invited = server.admin().post(path, &body).await.expect(StatusCode::CREATED).id();
    server.with_token(&token).accepts(&invited).await;
    server.with_token(&token)
}

#[tokio::test]
async fn whoever_manages_teams_makes_no_token_of_a_mightier_one() {
    let server = ApiServer::start().await;
    server.given_organization("acme").await;
    let workspace = server.given_workspace("acme", "web").await;
    let manager = given_manager(&server, "mia", json!({ "manage-teams": true })).await;
    let idle = given_team(&manager, "idle", json!({})).await;
    let mighty = given_team(&manager, "mighty", json!({})).await;
    give(&server.admin(), &mighty, &workspace, "read").await.expect(StatusCode::CREATED);
    token_at(&manager, &format!("/api/v2/teams/{idle}/authentication-token")).await.expect(StatusCode::CREATED);
    let tokens = format!("/api/v2/teams/{mighty}/authentication-token");
    token_at(&manager, &tokens).await.expect(StatusCode::NOT_FOUND);
    token_at(&manager, &format!("{tokens}s")).await.expect(StatusCode::NOT_FOUND);
    // Who may read the workspace as well may.
    let reader = given_manager(&server, "rita", json!({ "manage-teams": true, "read-workspaces": true })).await;
    token_at(&reader, &tokens).await.expect(StatusCode::CREATED);
    give(&manager, &mighty, &workspace, "admin").await.expect(StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn nobody_gives_a_team_more_than_they_have() {
    let server = ApiServer::start().await;
    server.given_organization("acme").await;
    let flags = json!({ "manage-teams": true, "manage-organization-access": true });
    let manager = given_manager(&server, "mia", flags).await;
    let team = given_team(&manager, "some", json!({})).await;
    let give_flags = |flags: Value| {
        let body = json!({ "data": { "type": "teams", "attributes": { "organization-access": flags } } });
        let (manager, path) = (manager.clone(), format!("/api/v2/teams/{team}"));
        async move { manager.patch(&path, &body).await }
    };
    give_flags(json!({ "manage-teams": true })).await.expect(StatusCode::OK);
    give_flags(json!({ "manage-workspaces": true })).await.expect(StatusCode::NOT_FOUND);
    give_flags(json!({ "manage-teams": false })).await.expect(StatusCode::OK);

    let project = json!({ "data": { "type": "projects", "attributes": { "name": "shop" } } });
    let project = server.admin().post("/api/v2/organizations/acme/projects", &project).await.id();
    let workspace = server.given_workspace("acme", "web").await;
    let bob = given_member(&server, "bob", &workspace, "read").await;
    let own = server.admin().get("/api/v2/organizations/acme/teams?filter[names]=team-of-bob").await.data();
    let own = own[0]["id"].as_str().expect("an id").to_owned();
    let access = |attributes: Value| {
        json!({ "data": { "type": "team-projects", "attributes": attributes, "relationships": {
            "team": { "data": { "type": "teams", "id": own } },
            "project": { "data": { "type": "projects", "id": project } } } } })
    };
    let custom = access(json!({ "access": "custom", "project-access": { "settings": "read", "teams": "manage" } }));
    let given = server.admin().post("/api/v2/team-projects", &custom).await.expect(StatusCode::CREATED).id();
    let path = format!("/api/v2/team-projects/{given}");
    bob.patch(&path, &access(json!({ "access": "admin" }))).await.expect(StatusCode::NOT_FOUND);
    server.admin().patch(&path, &access(json!({ "access": "admin" }))).await.expect(StatusCode::OK);
}

#[tokio::test]
async fn tokens_of_teams_are_listed_by_team_and_by_when_they_end() {
    let server = ApiServer::start().await;
    server.given_organization("acme").await;
    let admin = server.admin();
    let mut made = Vec::new();
    for (name, day) in [("zebra", "02"), ("ant", "03")] {
        let team = given_team(&admin, name, json!({})).await;
        let body = json!({ "data": { "type": "authentication-tokens", "attributes": {
            "expired-at": format!("2026-02-{day}T00:00:00Z") } } });
        let path = format!("/api/v2/teams/{team}/authentication-token");
        made.push(admin.post(&path, &body).await.expect(StatusCode::CREATED).id());
    }
    let [zebra, ant] = [&made[0], &made[1]];
    let list = "/api/v2/organizations/acme/team-tokens";
    for (query, expected) in [
        ("", vec![ant, zebra]),
        ("?sort=expired-at", vec![zebra, ant]),
        ("?sort=-expired-at", vec![ant, zebra]),
        ("?q=EBR", vec![zebra]),
        ("?q=nobody", vec![]),
    ] {
        let listed = admin.get(&format!("{list}{query}")).await.expect(StatusCode::OK).data();
        let ids = listed.as_array().expect("a list").iter().map(|token| token["id"].as_str().unwrap_or_default());
        let ids: Vec<_> = ids.map(str::to_owned).collect();
        assert_eq!(ids.iter().collect::<Vec<_>>(), expected, "{query}");
        assert!(listed.as_array().expect("a list").iter().all(|token| token["attributes"]["token"].is_null()));
    }
    // A token of the owners is for owners.
    let owners = admin.get("/api/v2/organizations/acme/teams?filter[names]=owners").await.data();
    let owners = owners[0]["id"].as_str().expect("an id").to_owned();
    token_at(&admin, &format!("/api/v2/teams/{owners}/authentication-token")).await.expect(StatusCode::CREATED);
    let count = async |client: &Client| client.get(list).await.expect(StatusCode::OK).data().as_array().map(Vec::len);
    assert_eq!(count(&admin).await, Some(3));
    assert_eq!(count(&organization_token(&server).await).await, Some(2));
}

#[tokio::test]
async fn teams_are_found_by_a_part_of_their_name() {
    let server = ApiServer::start().await;
    server.given_organization("acme").await;
    for name in ["web-deployers", "web-readers", "network"] {
        given_team(&server.admin(), name, json!({})).await;
    }
    for (query, expected) in [("q=web-", 2), ("q=NETWORK", 1), ("q=nobody", 0), ("filter[names]=network,owners", 2)] {
        let listed = server.admin().get(&format!("/api/v2/organizations/acme/teams?{query}")).await.json();
        assert_eq!(listed["meta"]["pagination"]["total-count"], expected, "{query}");
    }
}
