//! Agent pools' tokens, and the agents that come with them.

use axum::http::StatusCode;
use harness::api_server::{Answer, ApiServer, Client};
use serde_json::json;
use taco_control_plane::Error;
use taco_domain::agent::AgentPresence;

/// A pool's id, and a token for its agents.
async fn given_pool(admin: &Client) -> (String, Answer) {
    let body = json!({ "data": { "type": "agent-pools", "attributes": { "name": "pool" } } });
    let pool = admin.post("/api/v2/organizations/acme/agent-pools", &body).await.expect(StatusCode::CREATED).id();
    let tokens = format!("/api/v2/agent-pools/{pool}/authentication-tokens");
    let wanted = json!({ "data": { "type": "authentication-tokens", "attributes": { "description": "rack 1" } } });
    let issued = admin.post(&tokens, &wanted).await.expect(StatusCode::CREATED);
    (pool, issued)
}

#[tokio::test]
async fn agents_come_with_a_token_of_their_pool() {
    let server = ApiServer::start().await;
    let admin = server.admin();
    server.given_organization("acme").await;
    let (pool, issued) = given_pool(&admin).await;
    let tokens = format!("/api/v2/agent-pools/{pool}/authentication-tokens");
    let text = issued.attribute("token").as_str().expect("a token").to_owned();
    let listed = admin.get(&tokens).await.expect(StatusCode::OK);
    assert_eq!(listed.data()[0]["attributes"]["description"], "rack 1");
    assert!(!String::from_utf8_lossy(&listed.bytes).contains(&text), "it is shown once");
    server.with_token(&text).get("/api/v2/organizations/acme").await.expect(StatusCode::NOT_FOUND);

    let agent = server.caller(&text).await;
    let agent = server.control_plane.connect_agent(&agent, None, None, "one", "1.0.0").await.expect("connected");
    let id = agent.agent.id;
    let status =
        || async { admin.get(&format!("/api/v2/agents/{id}")).await.expect(StatusCode::OK).attribute("status") };
    assert_eq!(status().await, "unknown", "nobody hears it");
    let hear = |busy| {
        let presence = AgentPresence {
            agent: id,
            name: "one".to_owned(),
            pool: Some(agent.agent.pool),
            heartbeat: 1,
            concurrency: 2,
            busy,
            draining: false,
            engines: vec!["terraform 1.11.4".to_owned(), "tofu 1.12.0".to_owned()],
            version: "1.0.0".to_owned(),
            last_heard_at: Some(server.now()),
        };
        server.control_plane.presence().set(vec![presence]);
    };
    hear(0);
    let versions = server.with_authorization(None).get("/versions").await.expect(StatusCode::OK).json();
    assert_eq!(versions["engines"], json!({ "terraform": ["1.11.4"], "tofu": ["1.12.0"] }));
    assert_eq!(versions["server"], env!("CARGO_PKG_VERSION"));
    assert_eq!(status().await, "idle");
    hear(1);
    assert_eq!(status().await, "busy");
    let read = admin.get(&format!("/api/v2/agent-pools/{pool}")).await.expect(StatusCode::OK);
    assert_eq!(read.attribute("agent-count"), 1);
    server.pass(jiff::SignedDuration::from_mins(1));
    assert_eq!(status().await, "unknown");
    server.control_plane.agent_left(&agent.open, id).await.expect("left");
    assert_eq!(status().await, "exited");
    let agents = admin.get(&format!("/api/v2/agent-pools/{pool}/agents")).await.expect(StatusCode::OK);
    assert_eq!(agents.data()[0]["id"], id.to_string());

    admin.delete(&format!("/api/v2/authentication-tokens/{}", issued.id())).await.expect(StatusCode::NO_CONTENT);
    server.with_token(&text).get("/api/v2/account/details").await.expect(StatusCode::UNAUTHORIZED);
    admin.delete(&format!("/api/v2/agent-pools/{pool}")).await.expect(StatusCode::NO_CONTENT);
    admin.get(&format!("/api/v2/agents/{id}")).await.expect(StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn an_agent_comes_back_as_itself_and_nobody_else_does() {
    let server = ApiServer::start().await;
    let admin = server.admin();
    server.given_organization("acme").await;
    let token = given_pool(&admin).await.1.attribute("token");
    let caller = server.caller(token.as_str().expect("a token")).await;
    let comes = |known, instance| {
        let (plane, caller) = (server.control_plane.clone(), caller.clone());
        async move { plane.connect_agent(&caller, known, instance, "rack", "1.0.0").await.map(|come| come.agent.id) }
    };
    let first = comes(None, Some("one")).await.expect("it is new");
    assert_eq!(comes(Some(first), Some("one")).await.expect("its connection broke"), first);
    for other in [Some("two"), None] {
        let refusal = comes(Some(first), other).await.expect_err("that is another process");
        assert!(matches!(refusal, Error::Conflict(_)), "{refusal:?}");
        let words = refusal.to_string();
        assert!(words.contains(&first.to_string()) && words.contains("start this one anew"), "{words}");
    }
    assert_ne!(comes(None, Some("two")).await.expect("it is new"), first);

    let older = comes(None, None).await.expect("an agent of an older version");
    assert_eq!(comes(Some(older), Some("three")).await.expect("nobody knows better"), older);
    comes(Some(older), Some("four")).await.expect_err("now they do");
}

#[tokio::test]
async fn pools_are_found_by_who_may_use_them_and_listed_by_age() {
    let server = ApiServer::start().await;
    let admin = server.admin();
    server.given_organization("acme").await;
    let workspace = server.given_workspace("acme", "web").await;
    server.given_workspace("acme", "other").await;
    let pools = "/api/v2/organizations/acme/agent-pools";
    for (name, scoped, allowed) in [("zebra", true, json!([])), ("ant", false, json!([workspace]))] {
        let ids: Vec<_> = allowed.as_array().expect("a list").iter().map(|id| json!({ "id": id })).collect();
        let body = json!({ "data": { "type": "agent-pools",
            "attributes": { "name": name, "organization-scoped": scoped },
            "relationships": { "allowed-workspaces": { "data": ids } },
        } });
        admin.post(pools, &body).await.expect(StatusCode::CREATED);
        server.pass(jiff::SignedDuration::from_secs(1));
    }
    for (query, expected) in [
        ("", vec!["ant", "zebra"]),
        ("sort=created-at", vec!["zebra", "ant"]),
        ("sort=-created-at", vec!["ant", "zebra"]),
        ("q=ZEB", vec!["zebra"]),
        ("filter[allowed_workspaces][name]=web", vec!["ant", "zebra"]),
        ("filter[allowed_workspaces][name]=other", vec!["zebra"]),
        ("filter[allowed_projects][name]=Default%20Project", vec!["zebra"]),
        ("filter[allowed_projects][name]=nowhere", vec![]),
    ] {
        let listed = admin.get(&format!("{pools}?{query}")).await.expect(StatusCode::OK).data();
        let names: Vec<_> = listed.as_array().expect("a list").iter().map(|pool| &pool["attributes"]["name"]).collect();
        assert_eq!(names, expected, "{query}");
    }
}

#[tokio::test]
async fn an_empty_id_of_a_pool_is_none() {
    let server = ApiServer::start().await;
    let admin = server.admin();
    server.given_organization("acme").await;
    let workspace = server.given_workspace("acme", "web").await;
    let project = json!({ "data": { "type": "projects", "attributes": { "name": "network" } } });
    let project = admin.post("/api/v2/organizations/acme/projects", &project).await.expect(StatusCode::CREATED).id();
    let own = json!({ "execution-mode": true, "agent-pool": true });
    for (path, kind, mode, pool) in [
        (format!("/api/v2/workspaces/{workspace}"), "workspaces", "execution-mode", "agent-pool-id"),
        (format!("/api/v2/projects/{project}"), "projects", "default-execution-mode", "default-agent-pool-id"),
    ] {
        let body = |mode_sent: &str, pool_sent: &str| {
            let attributes = json!({ mode: mode_sent, pool: pool_sent, "setting-overwrites": own });
            json!({ "data": { "type": kind, "attributes": attributes } })
        };
        let answer = admin.patch(&path, &body("local", "")).await.expect(StatusCode::OK);
        assert_eq!(answer.attribute(mode), "local");
        admin.patch(&path, &body("agent", "")).await.expect(StatusCode::UNPROCESSABLE_ENTITY);
        admin.patch(&path, &body("local", "nope")).await.expect(StatusCode::UNPROCESSABLE_ENTITY);
    }
}
