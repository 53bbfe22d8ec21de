//! Agent pools' tokens, and the agents that come with them.

use axum::http::StatusCode;
use harness::api_server::{Answer, ApiServer, Client};
use serde_json::{Value, json};
use taco_control_plane::{Error, PhaseRequest, RequestInfo};
use taco_domain::agent::AgentPresence;
use taco_domain::global_queue::{AgentScope, QueuePick};
use taco_domain::phase::Executor;

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

    let agent = server.agent_caller(&text).await;
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
    assert_eq!(versions["engines"], json!({}), "what a pool has is its organization's business");
    assert_eq!(versions["server"], env!("CARGO_PKG_VERSION"));
    assert_eq!(status().await, "idle");
    hear(1);
    assert_eq!(status().await, "busy");
    let read = admin.get(&format!("/api/v2/agent-pools/{pool}")).await.expect(StatusCode::OK);
    assert_eq!(read.attribute("agent-count"), 1);
    server.pass(jiff::SignedDuration::from_mins(1));
    assert_eq!(status().await, "unknown");
    server.control_plane.agent_left(&agent.org, id).await.expect("left");
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
    let token = token.as_str().expect("a token");
    let caller = server.agent_caller(token).await;
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
        assert!(words.contains(&first.to_string()) && words.contains("Start this agent without an id"), "{words}");
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

/// A request that gives something a pool.
fn uses_pool(kind: &str, prefix: &str, pool: &str) -> Value {
    let mut attributes = json!({ "setting-overwrites": { "execution-mode": true, "agent-pool": true } });
    attributes[format!("{prefix}execution-mode")] = "agent".into();
    if kind == "organizations" {
        let pool = json!({ "default-agent-pool": { "data": { "type": "agent-pools", "id": pool } } });
        return json!({ "data": { "type": kind, "attributes": attributes, "relationships": pool } });
    }
    attributes[format!("{prefix}agent-pool-id")] = pool.into();
    json!({ "data": { "type": kind, "attributes": attributes } })
}

/// Two workspaces and a project that a pool may be for.
async fn given_pool_users(server: &ApiServer) -> (String, String, String) {
    server.given_organization("acme").await;
    let (web, other) = (server.given_workspace("acme", "web").await, server.given_workspace("acme", "other").await);
    let project = json!({ "data": { "type": "projects", "attributes": { "name": "network" } } });
    let made = server.admin().post("/api/v2/organizations/acme/projects", &project).await;
    (web, other, made.expect(StatusCode::CREATED).id())
}

#[tokio::test]
async fn a_pool_is_for_whom_it_allows() {
    let server = ApiServer::start().await;
    let admin = server.admin();
    let (web, other, project) = given_pool_users(&server).await;
    let limits = |scoped: bool, workspaces: Value, projects: Value, excluded: Value| {
        json!({ "data": { "type": "agent-pools", "attributes": { "name": "rack", "organization-scoped": scoped },
            "relationships": { "allowed-workspaces": { "data": workspaces }, "allowed-projects": { "data": projects },
                "excluded-workspaces": { "data": excluded } } } })
    };
    let pools = "/api/v2/organizations/acme/agent-pools";
    let narrow = limits(false, json!([{ "type": "workspaces", "id": web }]), json!([]), json!([]));
    let pool = admin.post(pools, &narrow).await.expect(StatusCode::CREATED).id();
    let (of_web, of_other) = (format!("/api/v2/workspaces/{web}"), format!("/api/v2/workspaces/{other}"));
    let of_project = format!("/api/v2/projects/{project}");
    let own = || uses_pool("workspaces", "", &pool);
    let default = |kind| uses_pool(kind, "default-", &pool);
    let new = || {
        let mut body = uses_pool("workspaces", "", &pool);
        body["data"]["attributes"]["name"] = "new".into();
        body
    };
    admin.patch(&of_web, &own()).await.expect(StatusCode::OK);
    let refused = |answer: Answer, attribute: &str, words: &str| {
        let (detail, pointer) = answer.expect(StatusCode::UNPROCESSABLE_ENTITY).error();
        assert_eq!(pointer, Some(format!("/data/attributes/{attribute}")));
        assert!(detail.contains(words) && detail.contains(&web), "{detail}");
    };
    refused(admin.patch(&of_other, &own()).await, "agent-pool-id", "rack does not allow this workspace");
    let created = admin.post("/api/v2/organizations/acme/workspaces", &new()).await;
    refused(created, "agent-pool-id", "rack does not allow this workspace");
    let of_organization = "/api/v2/organizations/acme";
    for (path, kind) in [(of_project.as_str(), "projects"), (of_organization, "organizations")] {
        refused(admin.patch(path, &default(kind)).await, "default-agent-pool-id", "default");
    }

    let of_pool = format!("/api/v2/agent-pools/{pool}");
    let for_project = limits(false, json!([]), json!([{ "type": "projects", "id": project }]), json!([]));
    admin.patch(&of_pool, &for_project).await.expect(StatusCode::OK);
    admin.patch(&of_project, &default("projects")).await.expect(StatusCode::OK);
    // A change of something else does not fail because of the pool's current limits.
    let renamed = json!({ "data": { "type": "workspaces", "attributes": { "description": "the site" } } });
    admin.patch(&of_web, &renamed).await.expect(StatusCode::OK);
    let all_but_other = limits(true, json!([]), json!([]), json!([{ "type": "workspaces", "id": other }]));
    admin.patch(&of_pool, &all_but_other).await.expect(StatusCode::OK);
    admin.patch(of_organization, &default("organizations")).await.expect(StatusCode::OK);
    admin.patch(&of_other, &own()).await.expect(StatusCode::UNPROCESSABLE_ENTITY);
    admin.patch(&of_web, &own()).await.expect(StatusCode::OK);
}

/// The client itself looks for ids that nothing has whenever something was deleted.
#[tokio::test]
async fn a_pool_forgets_workspaces_and_projects_that_are_gone() {
    let server = ApiServer::start().await;
    let admin = server.admin();
    let (web, other, project) = given_pool_users(&server).await;
    let body = json!({ "data": { "type": "agent-pools", "attributes": { "name": "rack", "organization-scoped": false },
        "relationships": { "allowed-workspaces": { "data": [{ "type": "workspaces", "id": web }] },
            "allowed-projects": { "data": [{ "type": "projects", "id": project }] },
            "excluded-workspaces": { "data": [{ "type": "workspaces", "id": other }] } } } });
    admin.post("/api/v2/organizations/acme/agent-pools", &body).await.expect(StatusCode::CREATED);
    let paths = [format!("workspaces/{web}"), format!("workspaces/{other}"), format!("projects/{project}")];
    for path in paths {
        admin.delete(&format!("/api/v2/{path}")).await.expect(StatusCode::NO_CONTENT);
    }
    let state = server.ledger().await.read().await.expect("a read");
    let pool = state.agent_pools.iter().next().expect("the pool");
    assert!(pool.allowed_workspaces.is_empty() && pool.excluded_workspaces.is_empty());
    assert!(pool.allowed_projects.is_empty());
}

#[tokio::test]
async fn a_pools_agents_get_nothing_of_a_workspace_that_it_does_not_allow() {
    let server = ApiServer::start().await;
    let admin = server.admin();
    let workspace = crate::runs::given_workspace(&server).await;
    let (pool, token) = given_pool(&admin).await;
    let text = token.attribute("token").as_str().expect("a token").to_owned();
    admin.patch(&format!("/api/v2/workspaces/{workspace}"), &uses_pool("workspaces", "", &pool)).await;
    let agent = server.agent_caller(&text).await;
    let agent = server.control_plane.connect_agent(&agent, None, None, "one", "1.0.0").await.expect("connected");
    let run = crate::runs::start_run(&admin, &workspace, json!({})).await.id();
    let take = || {
        let executor = Executor { agent: agent.agent.id, agent_name: "one".to_owned(), pool: Some(agent.agent.pool) };
        let taker = PhaseRequest {
            reach: AgentScope::Pool(agent.agent.pool),
            executor,
            token: Some(agent.token),
            turn: QueuePick::Head,
        };
        let (plane, org) = (server.control_plane.clone(), agent.org.clone());
        async move { plane.take_phase(&org, taker).await.expect("a bucket").map(|taken| taken.run.id.to_string()) }
    };
    let limit =
        |scoped: bool| json!({ "data": { "type": "agent-pools", "attributes": { "organization-scoped": scoped } } });
    let of_pool = format!("/api/v2/agent-pools/{pool}");
    admin.patch(&of_pool, &limit(false)).await.expect(StatusCode::OK);
    assert_eq!(take().await, None);
    let waits = crate::runs::read_run(&admin, &run).await.attribute("taco-wait-reasons");
    assert_eq!((&waits[0]["reason"], &waits[0]["pool-name"]), (&json!("pool-refuses"), &json!("pool")));
    let detail = waits[0]["detail"].as_str().expect("a sentence");
    assert!(detail.starts_with("pool pool does not allow this workspace"), "{detail}");
    admin.patch(&of_pool, &limit(true)).await.expect(StatusCode::OK);

    admin.delete(&format!("/api/v2/authentication-tokens/{}", token.id())).await.expect(StatusCode::NO_CONTENT);
    assert_eq!(take().await, None, "the token with which it came was revoked");
    let again = server.control_plane.recognise_agent(&text, RequestInfo::default()).await;
    assert!(matches!(again, Err(Error::Unauthorized(_))));
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
