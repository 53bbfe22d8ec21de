//! Workspaces, as the `cloud` block and the tfe provider use them.

use axum::http::StatusCode;
use harness::api_server::{ApiServer, Client};
use jiff::SignedDuration;
use serde_json::{Value, json};
use taco_domain::agent::AgentPresence;

use crate::configuration_versions::given_configuration;
use crate::runs::start_run;
use crate::states::{lock, push};

#[tokio::test]
async fn a_workspace_is_found_by_name_and_by_id() {
    let server = ApiServer::start().await;
    let admin = server.admin();
    server.given_organization("acme").await;
    let id = server.given_workspace("acme", "web").await;
    let by_name = admin.get("/api/v2/organizations/acme/workspaces/web").await.expect(StatusCode::OK);
    let by_id = admin.get(&format!("/api/v2/workspaces/{id}")).await.expect(StatusCode::OK);
    assert_eq!(by_name.json(), by_id.json());
    assert_eq!(by_id.data()["relationships"]["organization"]["data"]["id"], "acme");
    assert!(by_id.data()["relationships"]["project"]["data"]["id"].is_string());
    assert!(by_id.attribute("created-at").as_str().is_some_and(|date| date.ends_with('Z')));
    assert_eq!(by_id.attribute("permissions")["can-force-delete"], true);
    assert_eq!(by_id.headers["tfp-api-version"], "2.6");
    assert_eq!(by_id.headers["content-type"], "application/vnd.api+json");
}

/// Answers are kept until something changes that they follow from.
#[tokio::test]
async fn what_was_said_of_a_workspace_is_said_again_only_while_it_is_true() {
    let server = ApiServer::start().await;
    let admin = server.admin();
    server.given_organization("acme").await;
    let id = server.given_workspace("acme", "web").await;
    let (path, current) =
        (format!("/api/v2/workspaces/{id}"), format!("/api/v2/workspaces/{id}/current-state-version"));
    let read = async || admin.get(&path).await.expect(StatusCode::OK).data();
    let first = read().await;
    assert_eq!(first, read().await);
    assert_eq!(first["attributes"]["locked"], false);

    lock(&admin, &id).await.expect(StatusCode::OK);
    assert_eq!(read().await["attributes"]["locked"], true);
    for serial in [1, 2] {
        push(&admin, &id, serial, "lineage", "content").await.expect(StatusCode::CREATED);
        for _ in 0..2 {
            let version = admin.get(&current).await.expect(StatusCode::OK);
            assert_eq!(version.attribute("serial"), serial);
            assert_eq!(read().await["relationships"]["current-state-version"]["data"]["id"], version.data()["id"]);
        }
    }

    // The organization's name is in another ledger.
    let renamed = json!({ "data": { "type": "organizations", "attributes": { "name": "ajax" } } });
    admin.patch("/api/v2/organizations/acme", &renamed).await.expect(StatusCode::OK);
    assert_eq!(read().await["links"]["self"], "/api/v2/organizations/ajax/workspaces/web");
    // What one may see, another may not.
    let (_, token) = server.given_user("stranger").await;
    for path in [&path, &current] {
        server.with_token(&token).get(path).await.expect(StatusCode::NOT_FOUND);
    }
}

#[tokio::test]
async fn null_clears_and_absence_leaves() {
    let server = ApiServer::start().await;
    let admin = server.admin();
    server.given_organization("acme").await;
    let path = format!("/api/v2/workspaces/{}", server.given_workspace("acme", "web").await);
    let patch = |attributes: Value| json!({ "data": { "type": "workspaces", "attributes": attributes } });
    let dated = patch(json!({ "auto-destroy-at": "2027-01-01T00:00:00Z", "description": "d" }));
    admin.patch(&path, &dated).await.expect(StatusCode::OK);
    let left = admin.patch(&path, &patch(json!({ "auto-apply": true }))).await.expect(StatusCode::OK);
    assert_eq!(left.attribute("auto-destroy-at"), "2027-01-01T00:00:00Z");
    let cleared = admin.patch(&path, &patch(json!({ "auto-destroy-at": null }))).await.expect(StatusCode::OK);
    assert_eq!((cleared.attribute("auto-destroy-at"), cleared.attribute("description")), (Value::Null, json!("d")));
}

#[tokio::test]
async fn lists_have_pages_and_filters() {
    let server = ApiServer::start().await;
    let admin = server.admin();
    server.given_organization("acme").await;
    for number in 0..25 {
        server.given_workspace("acme", &format!("web-{number:02}")).await;
    }
    let tagged = server.given_workspace("acme", "other").await;
    let tags = json!({ "data": [{ "type": "tags", "attributes": { "name": "env" } }] });
    let path = format!("/api/v2/workspaces/{tagged}/relationships/tags");
    admin.post(&path, &tags).await.expect(StatusCode::NO_CONTENT);

    let list = "/api/v2/organizations/acme/workspaces";
    let names = |answer: &harness::api_server::Answer| -> Vec<String> {
        let items = answer.data().as_array().cloned().unwrap_or_default();
        items.iter().map(|item| item["attributes"]["name"].as_str().unwrap_or_default().to_owned()).collect()
    };
    let second = admin.get(&format!("{list}?page[number]=2&page[size]=10")).await.expect(StatusCode::OK);
    assert_eq!(names(&second).first().map(String::as_str), Some("web-09"));
    let pagination = second.json()["meta"]["pagination"].clone();
    assert_eq!((&pagination["total-count"], &pagination["next-page"]), (&json!(26), &json!(3)));
    for (query, expected) in [
        ("search[name]=WEB-1", 10),
        ("search[wildcard-name]=*-09", 1),
        ("search[tags]=env", 1),
        ("search[exclude-tags]=env&page[size]=100", 25),
        ("filter[tagged][0][key]=env&search[tags]=env&TagBindings=%7B%7D", 1),
        ("filter[tagged][0][key]=env&filter[tagged][0][value]=dev", 0),
        ("page[number]=999", 0),
        ("include=nonsense&page[size]=1000", 26),
    ] {
        let answer = admin.get(&format!("{list}?{query}")).await.expect(StatusCode::OK);
        assert_eq!(names(&answer).len(), expected, "{query}");
    }
}

#[tokio::test]
async fn lists_come_in_the_order_of_current_runs_with_what_was_asked_for() {
    let server = ApiServer::start().await;
    let admin = server.admin();
    server.given_organization("acme").await;
    server.given_workspace("acme", "idle").await;
    for name in ["zebra", "ant"] {
        let workspace = server.given_workspace("acme", name).await;
        lock(&admin, &workspace).await.expect(StatusCode::OK);
        push(&admin, &workspace, 1, "a", name).await.expect(StatusCode::CREATED);
        admin.act(&format!("/api/v2/workspaces/{workspace}/actions/unlock")).await.expect(StatusCode::OK);
        given_configuration(&server, &workspace).await;
        start_run(&admin, &workspace, json!({})).await.expect(StatusCode::CREATED);
        server.pass(SignedDuration::from_secs(1));
    }
    for (order, expected) in [
        ("current-run.created-at", ["zebra", "ant", "idle"]),
        ("-current-run.created-at", ["ant", "zebra", "idle"]),
        ("-name", ["zebra", "idle", "ant"]),
    ] {
        let list = format!("/api/v2/organizations/acme/workspaces?sort={order}&include=current_state_version");
        let listed = admin.get(&list).await.expect(StatusCode::OK).json();
        let names = listed["data"].as_array().expect("a list").iter().map(|item| &item["attributes"]["name"]);
        assert_eq!(names.collect::<Vec<_>>(), expected, "{order}");
        let included = listed["included"].as_array().expect("states");
        assert_eq!(included.len(), 2);
        assert!(included.iter().all(|state| state["attributes"]["hosted-state-download-url"].is_string()));
    }
}

#[tokio::test]
async fn lists_come_in_the_order_of_changes_to_states_and_by_age_unless_asked() {
    let server = ApiServer::start().await;
    let admin = server.admin();
    server.given_organization("acme").await;
    let mut ids = Vec::new();
    for name in ["zebra", "ant", "mole"] {
        ids.push(server.given_workspace("acme", name).await);
        server.pass(SignedDuration::from_secs(1));
    }
    lock(&admin, &ids[1]).await.expect(StatusCode::OK);
    push(&admin, &ids[1], 1, "a", "x").await.expect(StatusCode::CREATED);
    server.pass(SignedDuration::from_secs(1));
    let renamed = json!({ "data": { "type": "workspaces", "attributes": { "description": "settings are no state" } } });
    let zebra = admin.patch(&format!("/api/v2/workspaces/{}", ids[0]), &renamed).await.expect(StatusCode::OK);
    let ant = admin.get(&format!("/api/v2/workspaces/{}", ids[1])).await.expect(StatusCode::OK);
    for (workspace, latest, updated) in [
        (&zebra, "2026-01-01T12:00:00Z", "2026-01-01T12:00:04Z"),
        (&ant, "2026-01-01T12:00:03Z", "2026-01-01T12:00:01Z"),
    ] {
        assert_eq!(workspace.attribute("latest-change-at"), latest);
        assert_eq!(workspace.attribute("updated-at"), updated);
    }
    for (query, expected) in [
        ("", ["zebra", "ant", "mole"]),
        ("?page[size]=2", ["zebra", "ant", ""]),
        ("?page[size]=2&page[number]=2", ["mole", "", ""]),
        ("?search[name]=a", ["zebra", "ant", ""]),
        ("?sort=latest-change-at", ["zebra", "mole", "ant"]),
        ("?sort=-latest-change-at", ["ant", "mole", "zebra"]),
        ("?sort=name", ["ant", "mole", "zebra"]),
        ("?sort=nonsense", ["ant", "mole", "zebra"]),
    ] {
        let listed = admin.get(&format!("/api/v2/organizations/acme/workspaces{query}")).await.expect(StatusCode::OK);
        let names = listed.data().as_array().cloned().unwrap_or_default();
        let names: Vec<_> = names.iter().map(|item| item["attributes"]["name"].clone()).collect();
        let expected: Vec<_> = expected.iter().filter(|name| !name.is_empty()).map(|name| json!(name)).collect();
        assert_eq!(names, expected, "{query}");
    }
}

#[tokio::test]
async fn what_agents_of_a_pool_have_counts_for_its_organization_alone() {
    let server = ApiServer::start().await;
    let admin = server.admin();
    for organization in ["acme", "other"] {
        server.given_organization(organization).await;
    }
    let (own, foreign) = (server.given_workspace("acme", "web").await, server.given_workspace("other", "web").await);
    let pool = json!({ "data": { "type": "agent-pools", "attributes": { "name": "rack" } } });
    let pool = admin.post("/api/v2/organizations/acme/agent-pools", &pool).await.expect(StatusCode::CREATED).id();
    let agent_of = |pool: Option<&str>, engine: &str| AgentPresence {
        agent: server.control_plane.id_for_agent_within(),
        name: "one".to_owned(),
        pool: pool.map(|pool| pool.parse().expect("an id")),
        heartbeat: 1,
        concurrency: 1,
        busy: 0,
        draining: false,
        engines: vec![engine.to_owned()],
        version: "1.0.0".to_owned(),
        last_heard_at: Some(server.now()),
    };
    let agents = vec![agent_of(None, "terraform 1.9.8"), agent_of(Some(&pool), "terraform 7.0.0")];
    server.control_plane.presence().set(agents);
    let body = json!({ "data": { "type": "workspaces", "attributes": { "terraform-version": "7.0.0" } } });
    admin.patch(&format!("/api/v2/workspaces/{own}"), &body).await.expect(StatusCode::OK);
    let refused = admin.patch(&format!("/api/v2/workspaces/{foreign}"), &body).await;
    let refused = refused.expect(StatusCode::UNPROCESSABLE_ENTITY).error().0;
    assert!(refused.contains("the nearest that agents have: 1.9.8"), "and nothing of another's is told: {refused}");
    let versions = server.with_authorization(None).get("/versions").await.expect(StatusCode::OK).json();
    assert_eq!(versions["engines"], json!({ "terraform": ["1.9.8"] }));
}

#[tokio::test]
async fn a_version_that_nobody_knows_is_refused_with_those_that_agents_have() {
    let server = ApiServer::start().await;
    let admin = server.admin();
    server.given_organization("acme").await;
    let workspace = server.given_workspace("acme", "web").await;
    let agent_has = |engine: &str| {
        let presence = AgentPresence {
            agent: server.control_plane.id_for_agent_within(),
            name: "one".to_owned(),
            pool: None,
            heartbeat: 1,
            concurrency: 1,
            busy: 0,
            draining: false,
            engines: vec!["terraform 1.9.8".to_owned(), "terraform 1.11.4".to_owned(), engine.to_owned()],
            version: "1.0.0".to_owned(),
            last_heard_at: Some(server.now()),
        };
        server.control_plane.presence().set(vec![presence]);
    };
    agent_has("tofu 1.12.0");
    let path = format!("/api/v2/workspaces/{workspace}");
    let asks = |attributes: Value| {
        let (admin, path) = (admin.clone(), path.clone());
        let body = json!({ "data": { "type": "workspaces", "attributes": attributes } });
        async move { admin.patch(&path, &body).await }
    };
    for version in ["latest", "0.11.1", "1.99.0", "~> 9.0", "1.13.0-alpha1"] {
        asks(json!({ "terraform-version": version })).await.expect(StatusCode::OK);
    }
    for (attributes, nearest) in [
        (json!({ "terraform-version": "9.9.9" }), "1.11.4, 1.9.8"),
        (json!({ "terraform-version": "2.0.0", "taco-engine": "tofu" }), "1.12.0"),
    ] {
        let refused = asks(attributes).await.expect(StatusCode::UNPROCESSABLE_ENTITY);
        let (detail, pointer) = refused.error();
        assert!(detail.contains(&format!("the nearest that agents have: {nearest}, ")), "{detail}");
        assert_eq!(pointer.as_deref(), Some("/data/attributes/terraform-version"));
    }
    let new =
        json!({ "data": { "type": "workspaces", "attributes": { "name": "new", "terraform-version": "9.9.9" } } });
    let created = admin.post("/api/v2/organizations/acme/workspaces", &new).await;
    created.expect(StatusCode::UNPROCESSABLE_ENTITY);

    agent_has("tofu 2.0.0");
    asks(json!({ "terraform-version": "2.0.1", "taco-engine": "tofu" })).await.expect(StatusCode::OK);
    agent_has("tofu 1.12.0");
    asks(json!({ "terraform-version": "2.0.1", "auto-apply": true })).await.expect(StatusCode::OK);
    given_configuration(&server, &workspace).await;
    let plan_of = |version| json!({ "plan-only": true, "terraform-version": version });
    start_run(&admin, &workspace, plan_of("3.0.0")).await.expect(StatusCode::UNPROCESSABLE_ENTITY);
    start_run(&admin, &workspace, plan_of("1.10.0")).await.expect(StatusCode::CREATED);
}

#[tokio::test]
async fn locks_have_one_holder_who_is_named() {
    let server = ApiServer::start().await;
    let admin = server.admin();
    server.given_organization("acme").await;
    let workspace = server.given_workspace("acme", "web").await;
    let locked = lock(&admin, &workspace).await.expect(StatusCode::OK);
    assert_eq!(locked.attribute("locked"), true);
    let again = lock(&admin, &workspace).await.expect(StatusCode::CONFLICT);
    assert!(again.error().0.contains("is locked by User admin since 2026-01-01T12:00:00Z"), "{:?}", again.error());
    let action = |name: &str| format!("/api/v2/workspaces/{workspace}/actions/{name}");
    admin.act(&action("unlock")).await.expect(StatusCode::OK);
    let twice = admin.act(&action("unlock")).await.expect(StatusCode::CONFLICT);
    assert!(twice.error().0.contains("already unlocked"));
    admin.act(&action("force-unlock")).await.expect(StatusCode::CONFLICT);
    lock(&admin, &workspace).await.expect(StatusCode::OK);
    admin.act(&action("force-unlock")).await.expect(StatusCode::OK);
}

#[tokio::test]
async fn safe_delete_spares_what_someone_would_miss() {
    let server = ApiServer::start().await;
    let admin = server.admin();
    server.given_organization("acme").await;
    let workspace = server.given_workspace("acme", "web").await;
    let action = |name: &str| format!("/api/v2/workspaces/{workspace}/actions/{name}");
    lock(&admin, &workspace).await.expect(StatusCode::OK);
    let locked = admin.act(&action("safe-delete")).await.expect(StatusCode::CONFLICT);
    assert!(locked.error().0.contains("locked"));
    push(&admin, &workspace, 1, "a", "x").await.expect(StatusCode::CREATED);
    admin.act(&action("unlock")).await.expect(StatusCode::OK);
    let managing = admin.act(&action("safe-delete")).await.expect(StatusCode::CONFLICT);
    assert!(managing.error().0.contains("still manages 1 resources"));
    admin.delete(&format!("/api/v2/workspaces/{workspace}")).await.expect(StatusCode::NO_CONTENT);
    admin.get(&format!("/api/v2/workspaces/{workspace}")).await.expect(StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn consumers_of_a_state_are_named_to_those_who_may_see_them() {
    let server = ApiServer::start().await;
    let admin = server.admin();
    server.given_organization("acme").await;
    let [producer, seen, hidden] = ["producer", "seen", "hidden"].map(|name| server.given_workspace("acme", name));
    let (producer, seen, hidden) = (producer.await, seen.await, hidden.await);
    let consumers = json!({ "data": [{ "type": "workspaces", "id": seen }, { "type": "workspaces", "id": hidden }] });
    let path = format!("/api/v2/workspaces/{producer}/relationships/remote-state-consumers");
    admin.post(&path, &consumers).await.expect(StatusCode::NO_CONTENT);
    let reader = given_reader(&server, &[&producer, &seen]).await;

    let paths = ["/api/v2/organizations/acme/workspaces/producer".to_owned(), format!("/api/v2/workspaces/{producer}")];
    for path in &paths {
        let named = |answer: Value| {
            let listed = answer["relationships"]["remote-state-consumers"]["data"].as_array().cloned();
            let mut ids: Vec<_> = listed.expect("a list").iter().map(|one| one["id"].clone()).collect();
            ids.sort_by_key(Value::to_string);
            ids
        };
        let mut all = vec![json!(seen), json!(hidden)];
        all.sort_by_key(Value::to_string);
        assert_eq!(named(admin.get(path).await.expect(StatusCode::OK).data()), all);
        assert_eq!(named(reader.get(path).await.expect(StatusCode::OK).data()), [json!(seen)]);
    }
    let listed = reader.get("/api/v2/organizations/acme/workspaces").await.expect(StatusCode::OK);
    assert!(!String::from_utf8_lossy(&listed.bytes).contains(&hidden), "{}", listed.json());
    assert_eq!(reader.get(&path).await.expect(StatusCode::OK).data().as_array().map(Vec::len), Some(1));
}

/// A member of `acme` who may read these workspaces.
async fn given_reader(server: &ApiServer, workspaces: &[&str]) -> Client {
    let admin = server.admin();
    let team = json!({ "data": { "type": "teams", "attributes": { "name": "readers" } } });
    let team = admin.post("/api/v2/organizations/acme/teams", &team).await.expect(StatusCode::CREATED).id();
    for workspace in workspaces {
        let access = json!({ "data": { "type": "team-workspaces", "attributes": { "access": "read" }, "relationships": {
            "team": { "data": { "type": "teams", "id": team } },
            "workspace": { "data": { "type": "workspaces", "id": workspace } },
        } } });
        admin.post("/api/v2/team-workspaces", &access).await.expect(StatusCode::CREATED);
    }
    let (_, token) = server.given_user("reader").await;
    let member = json!({ "data": { "type": "organization-memberships", "attributes": { "email": "reader@acme.test" },
        "relationships": { "teams": { "data": [{ "type": "teams", "id": team }] } } } });
    let path = "/api/v2/organizations/acme/organization-memberships";
    let invited = admin.post(path, &member).await.expect(StatusCode::CREATED).id();
    server.with_token(&token).accepts(&invited).await;
    server.with_token(&token)
}
