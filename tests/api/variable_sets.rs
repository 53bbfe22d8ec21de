//! Variable sets: what several workspaces share, and which of several variables counts.

use axum::http::StatusCode;
use harness::api_server::{Answer, ApiServer, Client};
use serde_json::{Value, json};

use crate::variables::{keys, variable};

const SETS: &str = "/api/v2/organizations/acme/varsets";

fn set(attributes: Value) -> Value {
    json!({ "data": { "type": "varsets", "attributes": attributes } })
}

fn list_of(kind: &str, id: &str) -> String {
    json!({ "data": [{ "type": kind, "id": id }] }).to_string()
}

async fn send(client: &Client, method: &str, path: &str, body: String) -> Answer {
    client.send(method, path, Some("application/vnd.api+json"), body).await
}

async fn given_set(admin: &Client, name: &str, global: bool) -> String {
    let body = set(json!({ "name": name, "global": global }));
    admin.post(SETS, &body).await.expect(StatusCode::CREATED).id()
}

async fn given_variable(admin: &Client, set: &str, key: &str, value: &str) -> String {
    let body = variable(json!({ "key": key, "value": value, "category": "terraform" }));
    let path = format!("/api/v2/varsets/{set}/relationships/vars");
    admin.post(&path, &body).await.expect(StatusCode::CREATED).id()
}

fn names(answer: &Answer) -> Vec<String> {
    let items = answer.data().as_array().cloned().unwrap_or_default();
    items.iter().map(|item| item["attributes"]["name"].as_str().unwrap_or_default().to_owned()).collect()
}

async fn given_project(admin: &Client, name: &str) -> String {
    let body = json!({ "data": { "type": "projects", "attributes": { "name": name } } });
    admin.post("/api/v2/organizations/acme/projects", &body).await.expect(StatusCode::CREATED).id()
}

async fn given_workspace_in(admin: &Client, project: &str, name: &str) -> String {
    let body = json!({ "data": {
        "type": "workspaces",
        "attributes": { "name": name },
        "relationships": { "project": { "data": { "type": "projects", "id": project } } },
    } });
    admin.post("/api/v2/organizations/acme/workspaces", &body).await.expect(StatusCode::CREATED).id()
}

#[tokio::test]
async fn a_set_reaches_what_it_is_applied_to() {
    let server = ApiServer::start().await;
    let admin = server.admin();
    server.given_organization("acme").await;
    let project = given_project(&admin, "platform").await;
    let inside = given_workspace_in(&admin, &project, "inside").await;
    let outside = server.given_workspace("acme", "outside").await;
    let everywhere = given_set(&admin, "everywhere", true).await;
    let shared = given_set(&admin, "shared", false).await;
    for (set, key) in [(&everywhere, "everywhere"), (&shared, "shared"), (&shared, "region")] {
        given_variable(&admin, set, key, key).await;
    }
    let effective = |workspace: String| {
        let admin = admin.clone();
        async move { keys(&admin.get(&format!("/api/v2/workspaces/{workspace}/all-vars")).await) }
    };
    assert_eq!(effective(inside.clone()).await, ["everywhere"]);
    let projects = format!("/api/v2/varsets/{shared}/relationships/projects");
    let workspaces = format!("/api/v2/varsets/{shared}/relationships/workspaces");
    send(&admin, "POST", &projects, list_of("projects", &project)).await.expect(StatusCode::NO_CONTENT);
    assert_eq!(effective(inside.clone()).await, ["everywhere", "region", "shared"]);
    assert_eq!(effective(outside.clone()).await, ["everywhere"]);
    send(&admin, "POST", &workspaces, list_of("workspaces", &outside)).await.expect(StatusCode::NO_CONTENT);
    send(&admin, "POST", &workspaces, list_of("workspaces", &outside)).await.expect(StatusCode::NO_CONTENT);
    assert_eq!(effective(outside.clone()).await.len(), 3);
    for path in [format!("/api/v2/projects/{project}/varsets"), format!("/api/v2/workspaces/{outside}/varsets")] {
        assert_eq!(names(&admin.get(&path).await.expect(StatusCode::OK)), ["everywhere", "shared"], "{path}");
    }
    send(&admin, "DELETE", &workspaces, list_of("workspaces", &outside)).await.expect(StatusCode::NO_CONTENT);
    assert_eq!(effective(outside).await, ["everywhere"]);

    let query = "include=workspaces,projects,vars";
    let read = admin.get(&format!("/api/v2/varsets/{shared}?{query}")).await.expect(StatusCode::OK);
    let included = read.json()["included"].as_array().cloned().unwrap_or_default();
    let kinds: Vec<_> = included.iter().map(|item| item["type"].as_str().unwrap_or_default()).collect();
    assert_eq!(kinds, ["vars", "vars", "projects"]);
    assert_eq!(read.data()["relationships"]["parent"]["data"]["id"], "acme");
}

#[tokio::test]
async fn priority_wins_over_what_is_more_specific() {
    let server = ApiServer::start().await;
    let admin = server.admin();
    server.given_organization("acme").await;
    let workspace = format!("/api/v2/workspaces/{}", server.given_workspace("acme", "web").await);
    let global = given_set(&admin, "global", true).await;
    given_variable(&admin, &global, "region", "of the set").await;
    let own = variable(json!({ "key": "region", "value": "its own", "category": "terraform" }));
    admin.post(&format!("{workspace}/vars"), &own).await.expect(StatusCode::CREATED);
    let value = || async {
        let all = admin.get(&format!("{workspace}/all-vars")).await.expect(StatusCode::OK).data();
        assert_eq!(all.as_array().map(Vec::len), Some(1), "{all}");
        all[0]["attributes"]["value"].as_str().unwrap_or_default().to_owned()
    };
    assert_eq!(value().await, "its own");
    let path = format!("/api/v2/varsets/{global}");
    admin.patch(&path, &set(json!({ "priority": true }))).await.expect(StatusCode::OK);
    assert_eq!(value().await, "of the set");
}

#[tokio::test]
async fn a_set_can_be_made_with_all_that_it_holds() {
    let server = ApiServer::start().await;
    let admin = server.admin();
    server.given_organization("acme").await;
    let workspace = server.given_workspace("acme", "web").await;
    let secret = json!({ "key": "TOKEN", "value": "s3cr3t", "category": "env", "sensitive": true });
    let mut body = set(json!({ "name": "keys", "description": "d", "global": false }));
    body["data"]["relationships"] = json!({
        "workspaces": { "data": [{ "type": "workspaces", "id": workspace }] },
        "vars": { "data": [{ "type": "vars", "attributes": secret }] },
    });
    let made = admin.post(SETS, &body).await.expect(StatusCode::CREATED);
    assert_eq!(made.attribute("var-count"), 1);
    let path = format!("/api/v2/varsets/{}", made.id());
    let variables = admin.get(&format!("{path}/relationships/vars")).await.expect(StatusCode::OK);
    assert_eq!((keys(&variables), &variables.data()[0]["attributes"]["value"]), (vec!["TOKEN".into()], &Value::Null));
    let mut emptied = set(json!({ "global": false }));
    emptied["data"]["relationships"] = json!({ "workspaces": { "data": [] } });
    let emptied = admin.patch(&path, &emptied).await.expect(StatusCode::OK);
    assert_eq!(emptied.data()["relationships"]["workspaces"]["data"], json!([]));

    let twice = json!([{ "type": "vars", "attributes": secret }, { "type": "vars", "attributes": secret }]);
    body["data"]["attributes"]["name"] = json!("other");
    body["data"]["relationships"]["vars"]["data"] = twice;
    admin.post(SETS, &body).await.expect(StatusCode::UNPROCESSABLE_ENTITY);
    assert_eq!(names(&admin.get(SETS).await), ["keys"], "it is made wholly or not at all");
}

#[tokio::test]
async fn what_cannot_be_a_set_is_refused() {
    let server = ApiServer::start().await;
    let admin = server.admin();
    server.given_organization("acme").await;
    let keys = given_set(&admin, "keys", false).await;
    for attributes in [json!({}), json!({ "name": "" }), json!({ "name": "Keys" }), json!({ "name": "n".repeat(91) })] {
        let answer = admin.post(SETS, &set(attributes)).await.expect(StatusCode::UNPROCESSABLE_ENTITY);
        assert_eq!(answer.error().1.as_deref(), Some("/data/attributes/name"));
    }
    let path = format!("/api/v2/varsets/{keys}/relationships/workspaces");
    for id in ["ws-1111111111111111", "nonsense", ""] {
        let answer = send(&admin, "POST", &path, list_of("workspaces", id)).await;
        answer.expect(StatusCode::UNPROCESSABLE_ENTITY);
    }
    admin.get("/api/v2/varsets/nonexisting").await.expect(StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn a_projects_own_set_stays_within_the_project() {
    let server = ApiServer::start().await;
    let admin = server.admin();
    server.given_organization("acme").await;
    let project = given_project(&admin, "platform").await;
    let inside = given_workspace_in(&admin, &project, "inside").await;
    let outside = server.given_workspace("acme", "outside").await;
    let mut body = set(json!({ "name": "owned", "global": false }));
    body["data"]["relationships"] = json!({ "parent": { "data": { "type": "projects", "id": project } } });
    let made = admin.post(SETS, &body).await.expect(StatusCode::CREATED);
    assert_eq!(made.data()["relationships"]["parent"]["data"], json!({ "type": "projects", "id": project }));
    let path = format!("/api/v2/varsets/{}", made.id());
    given_variable(&admin, &made.id(), "region", "eu").await;
    let workspaces = format!("{path}/relationships/workspaces");
    let refused = send(&admin, "POST", &workspaces, list_of("workspaces", &outside)).await;
    assert!(refused.expect(StatusCode::UNPROCESSABLE_ENTITY).error().0.contains("not in the project"));
    admin.patch(&path, &set(json!({ "global": true }))).await.expect(StatusCode::UNPROCESSABLE_ENTITY);
    send(&admin, "POST", &workspaces, list_of("workspaces", &inside)).await.expect(StatusCode::NO_CONTENT);

    let all = format!("/api/v2/workspaces/{inside}/all-vars");
    assert_eq!(keys(&admin.get(&all).await), ["region"]);
    let elsewhere = given_project(&admin, "elsewhere").await;
    let moved = json!({ "data": { "type": "workspaces", "relationships": {
        "project": { "data": { "type": "projects", "id": elsewhere } },
    } } });
    admin.patch(&format!("/api/v2/workspaces/{inside}"), &moved).await.expect(StatusCode::OK);
    assert_eq!(keys(&admin.get(&all).await), [""; 0], "what moves away takes nothing along");
    admin.patch(&path, &set(json!({ "description": "still ours" }))).await.expect(StatusCode::OK);
    admin.delete(&format!("/api/v2/workspaces/{inside}")).await.expect(StatusCode::NO_CONTENT);
    assert_eq!(admin.get(&path).await.data()["relationships"]["workspaces"]["data"], json!([]));
    admin.delete(&format!("/api/v2/projects/{project}")).await.expect(StatusCode::NO_CONTENT);
    admin.get(&path).await.expect(StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn a_set_is_seen_by_those_whom_it_reaches() {
    let server = ApiServer::start().await;
    let admin = server.admin();
    server.given_organization("acme").await;
    let (_, token) = server.given_user("member").await;
    let body = json!({ "data": {
        "type": "organization-memberships", "attributes": { "email": "member@acme.test" },
    } });
    let invited = admin.post("/api/v2/organizations/acme/organization-memberships", &body).await;
    let member = server.with_token(&token);
    member.accepts(&invited.expect(StatusCode::CREATED).id()).await;
    server.given_workspace("acme", "web").await;
    let set = given_set(&admin, "everywhere", true).await;
    given_variable(&admin, &set, "region", "eu").await;
    let path = format!("/api/v2/varsets/{set}");
    assert_eq!(names(&member.get(SETS).await.expect(StatusCode::OK)), [""; 0]);
    for path in [path.clone(), format!("{path}/relationships/vars")] {
        member.get(&path).await.expect(StatusCode::NOT_FOUND);
    }
    member.delete(&path).await.expect(StatusCode::NOT_FOUND);
    assert_eq!(names(&admin.get(SETS).await), ["everywhere"]);
}
