//! Workspaces and teams that someone may not see: no list, filter, count or answer tells of them.

use axum::http::StatusCode;
use harness::api_server::{ApiServer, Client};
use serde_json::{Value, json};

use crate::states::given_member;

/// Two workspaces, of which bob is admin in one and knows nothing of the other.
struct Scene {
    server: ApiServer,
    admin: Client,
    bob: Client,
    visible: String,
    hidden: String,
}

impl Scene {
    async fn new() -> Self {
        let server = ApiServer::start().await;
        server.given_organization("acme").await;
        let visible = server.given_workspace("acme", "visible").await;
        let hidden = server.given_workspace("acme", "hidden-acquisition").await;
        let bob = given_member(&server, "bob", &visible, "admin").await;
        Self { admin: server.admin(), server, bob, visible, hidden }
    }

    /// Data of what bob and the admin get at the same path.
    async fn seen(&self, path: &str) -> (Value, Value) {
        let bobs = self.bob.get(path).await.expect(StatusCode::OK);
        let text = String::from_utf8_lossy(&bobs.bytes).into_owned();
        assert!(!text.contains(&self.hidden) && !text.contains("acquisition"), "{path}: {text}");
        (bobs.data(), self.admin.get(path).await.expect(StatusCode::OK).data())
    }

    async fn made(&self, path: &str, body: Value) -> String {
        self.admin.post(path, &json!({ "data": body })).await.expect(StatusCode::CREATED).id()
    }
}

/// An id that nothing has, of the same organization.
fn like(id: &str) -> String {
    format!("{}1111", &id[..id.len() - 4])
}

fn count(list: &Value) -> usize {
    list.as_array().expect("a list").len()
}

fn named(kind: &str, ids: &[&str]) -> Value {
    json!({ "data": ids.iter().map(|id| json!({ "type": kind, "id": id })).collect::<Vec<_>>() })
}

#[tokio::test]
async fn run_triggers_do_not_name_them() {
    let scene = Scene::new().await;
    for (from, to, direction) in
        [(&scene.visible, &scene.hidden, "outbound"), (&scene.hidden, &scene.visible, "inbound")]
    {
        let source = json!({ "sourceable": { "data": { "type": "workspaces", "id": from } } });
        let path = format!("/api/v2/workspaces/{to}/run-triggers");
        let trigger = scene.made(&path, json!({ "type": "run-triggers", "relationships": source })).await;
        let path = format!("/api/v2/workspaces/{}/run-triggers?filter[run-trigger][type]={direction}", scene.visible);
        let (bobs, all) = scene.seen(&path).await;
        assert_eq!((count(&bobs), count(&all)), (0, 1), "{direction}");
        scene.bob.get(&format!("/api/v2/run-triggers/{trigger}")).await.expect(StatusCode::NOT_FOUND);
        scene.admin.get(&format!("/api/v2/run-triggers/{trigger}")).await.expect(StatusCode::OK);
    }
}

#[tokio::test]
async fn agent_pools_neither_name_them_nor_let_them_be_guessed_and_whoever_sees_a_part_changes_that_part() {
    let scene = Scene::new().await;
    let both = named("workspaces", &[&scene.visible, &scene.hidden]);
    let pool = json!({ "type": "agent-pools", "attributes": { "name": "pool", "organization-scoped": false },
        "relationships": { "allowed-workspaces": both } });
    let pool = scene.made("/api/v2/organizations/acme/agent-pools", pool).await;
    let mode = json!({ "data": { "type": "workspaces", "attributes": { "execution-mode": "agent",
        "agent-pool-id": pool } } });
    for workspace in [&scene.visible, &scene.hidden] {
        scene.admin.patch(&format!("/api/v2/workspaces/{workspace}"), &mode).await.expect(StatusCode::OK);
    }
    for path in ["/api/v2/organizations/acme/agent-pools".to_owned(), format!("/api/v2/agent-pools/{pool}")] {
        scene.seen(&path).await;
    }
    let list = "/api/v2/organizations/acme/agent-pools?filter[allowed_workspaces][name]";
    for (name, bobs) in [("visible", 1), ("hidden-acquisition", 0), ("no-such-thing", 0)] {
        let found = scene.bob.get(&format!("{list}={name}")).await.expect(StatusCode::OK).data();
        assert_eq!(count(&found), bobs, "{name}");
    }
    assert_eq!(count(&scene.admin.get(&format!("{list}=hidden-acquisition")).await.data()), 1);

    // Someone who manages pools and sees no workspace at all.
    let (_, token) = scene.server.given_user("carol").await;
    let access = json!({ "manage-agent-pools": true });
    let team = json!({ "type": "teams", "attributes": { "name": "pools", "organization-access": access } });
    let team = scene.made("/api/v2/organizations/acme/teams", team).await;
    let member = json!({ "type": "organization-memberships", "attributes": { "email": "carol@acme.test" },
        "relationships": { "teams": named("teams", &[&team]) } });
    let invited = scene.made("/api/v2/organizations/acme/organization-memberships", member).await;
    let carol = scene.server.with_token(&token);
    carol.accepts(&invited).await;
    let none = json!({ "data": { "type": "agent-pools", "relationships": { "allowed-workspaces": { "data": [] } } } });
    let changed = carol.patch(&format!("/api/v2/agent-pools/{pool}"), &none).await.expect(StatusCode::OK);
    assert_eq!(changed.data()["relationships"]["allowed-workspaces"]["data"], json!([]));
    let kept = scene.admin.get(&format!("/api/v2/agent-pools/{pool}")).await.data();
    assert_eq!(
        count(&kept["relationships"]["allowed-workspaces"]["data"]),
        2,
        "what she cannot see is not hers to take"
    );
}

#[tokio::test]
async fn tags_are_those_of_workspaces_that_one_sees_and_so_are_their_counts() {
    let scene = Scene::new().await;
    for (workspace, tags) in [(&scene.visible, vec!["env"]), (&scene.hidden, vec!["env", "acquisition"])] {
        let tags: Vec<_> = tags.iter().map(|tag| json!({ "type": "tags", "attributes": { "name": tag } })).collect();
        let path = format!("/api/v2/workspaces/{workspace}/relationships/tags");
        scene.admin.post(&path, &json!({ "data": tags })).await.expect(StatusCode::NO_CONTENT);
    }
    let (bobs, all) = scene.seen("/api/v2/organizations/acme/tags").await;
    assert_eq!((count(&bobs), count(&all)), (1, 2));
    assert_eq!(bobs[0]["attributes"]["instance-count"], 1);
    let without = format!("/api/v2/organizations/acme/tags?filter[exclude][taggable][id]={}", scene.hidden);
    assert_eq!(count(&scene.seen(&without).await.0), 1, "what a hidden workspace carries makes no difference");
}

#[tokio::test]
async fn variable_sets_do_not_name_them() {
    let scene = Scene::new().await;
    let set = json!({ "type": "varsets", "attributes": { "name": "shared", "global": false },
        "relationships": { "workspaces": named("workspaces", &[&scene.visible, &scene.hidden]) } });
    let set = scene.made("/api/v2/organizations/acme/varsets", set).await;
    for path in [
        "/api/v2/organizations/acme/varsets".to_owned(),
        format!("/api/v2/workspaces/{}/varsets", scene.visible),
        format!("/api/v2/varsets/{set}"),
    ] {
        scene.seen(&path).await;
    }
    let (bobs, all) = scene.seen(&format!("/api/v2/varsets/{set}")).await;
    let counts = [&bobs, &all].map(|set| set["attributes"]["workspace-count"].clone());
    assert_eq!(counts, [json!(1), json!(2)]);
}

#[tokio::test]
async fn secret_teams_are_not_named_to_those_who_do_not_manage_access() {
    let scene = Scene::new().await;
    let reader = given_member(&scene.server, "rita", &scene.visible, "read").await;
    let list = format!("/api/v2/team-workspaces?filter[workspace][id]={}", scene.visible);
    let seen = async |client: &Client| client.get(&list).await.expect(StatusCode::OK).data();
    assert_eq!(count(&seen(&reader).await), 1, "her own");
    let all = seen(&scene.bob).await;
    assert_eq!(count(&all), 2, "an admin of the workspace decides who has access, and has to see it");
    let readable = seen(&reader).await[0]["id"].clone();
    for access in all.as_array().expect("a list") {
        let id = access["id"].as_str().expect("an id");
        let expected = if access["id"] == readable { StatusCode::OK } else { StatusCode::NOT_FOUND };
        reader.get(&format!("/api/v2/team-workspaces/{id}")).await.expect(expected);
    }
    // To name one that is not known is as good as to name none.
    let secret = json!({ "type": "teams", "attributes": { "name": "secret" } });
    let secret = scene.made("/api/v2/organizations/acme/teams", secret).await;
    let answers = [secret.clone(), like(&secret)].map(|team| {
        let body = json!({ "data": { "type": "team-workspaces", "attributes": { "access": "read" }, "relationships": {
            "team": { "data": { "type": "teams", "id": team } },
            "workspace": { "data": { "type": "workspaces", "id": scene.visible } } } } });
        let bob = scene.bob.clone();
        async move { bob.post("/api/v2/team-workspaces", &body).await.expect(StatusCode::UNPROCESSABLE_ENTITY) }
    });
    for answer in answers {
        assert!(answer.await.error().0.contains("does not exist in this organization"));
    }
}

#[tokio::test]
async fn consumers_that_one_does_not_see_stay_and_cannot_be_added() {
    let scene = Scene::new().await;
    let path = format!("/api/v2/workspaces/{}/relationships/remote-state-consumers", scene.visible);
    let listed = async |client: &Client| count(&client.get(&path).await.expect(StatusCode::OK).data());
    scene.admin.post(&path, &named("workspaces", &[&scene.hidden])).await.expect(StatusCode::NO_CONTENT);
    assert_eq!((listed(&scene.bob).await, listed(&scene.admin).await), (0, 1));
    scene.bob.patch(&path, &named("workspaces", &[])).await.expect(StatusCode::NO_CONTENT);
    assert_eq!(listed(&scene.admin).await, 1, "he replaces what he sees");
    let body = named("workspaces", &[&scene.hidden]).to_string();
    let removed = scene.bob.send("DELETE", &path, Some("application/vnd.api+json"), body).await;
    removed.expect(StatusCode::NO_CONTENT);
    assert_eq!(listed(&scene.admin).await, 1);

    let other = scene.server.given_workspace("acme", "another-acquisition").await;
    let unknown = like(&other);
    for id in [&other, &unknown] {
        for answer in [
            scene.bob.post(&path, &named("workspaces", &[id.as_str()])).await,
            scene.bob.patch(&path, &named("workspaces", &[id.as_str()])).await,
        ] {
            let (detail, _) = answer.expect(StatusCode::UNPROCESSABLE_ENTITY).error();
            assert_eq!(detail, format!("The workspace {id} does not exist in this organization"));
        }
    }
    assert_eq!(listed(&scene.admin).await, 1);
}
