//! Responses to bad input: JSON that says what was wrong, what is allowed, and where. Never 500.

mod details;

use axum::http::StatusCode;
use harness::api_server::ApiServer;
use harness::counted_bucket::CountedBucket;
use serde_json::{Value, json};
use taco_tfc_api::routes;

use crate::states::{lock, push};

#[tokio::test]
async fn whoever_sends_no_valid_token_is_told_to() {
    let server = ApiServer::start().await;
    server.given_organization("acme").await;
    for authorization in
        [None, Some("Bearer"), Some("Bearer x"), Some("Basic Zm9vOmJhcg=="), Some("taco_u_x"), Some("Bearer \u{fffd}")]
    {
        let client = server.with_authorization(authorization.filter(|text| text.is_ascii()));
        let answer = client.get("/api/v2/organizations/acme").await.expect(StatusCode::UNAUTHORIZED);
        assert_eq!(answer.json()["errors"][0]["title"], "unauthorized", "{authorization:?}");
    }
}

#[tokio::test]
async fn paths_that_lead_nowhere_get_json() {
    let server = ApiServer::start().await;
    let admin = server.admin();
    let long = format!("/api/v2/workspaces/ws-{}", "a".repeat(1500));
    for path in [
        "/api",
        "/api/v2",
        "/api/v2/nope",
        "/api/v2/workspaces/nope",
        "/api/v2/workspaces/ws-0000000000000000",
        "/api/v2/workspaces/ws-%2e%2e%2f",
        "/api/v2/workspaces/%ff",
        "/api/v2/organizations/nope",
        "/api/v2/organizations/nope/workspaces",
        &long,
    ] {
        let answer = admin.get(path).await.expect(StatusCode::NOT_FOUND);
        assert_eq!(answer.json()["errors"][0]["status"], "404", "{path}");
        assert_eq!(answer.headers["tfp-api-version"], "2.6");
    }
    let wrong = admin.delete("/api/v2/ping").await.expect(StatusCode::METHOD_NOT_ALLOWED);
    assert!(wrong.headers["allow"].to_str().is_ok_and(|allowed| allowed.contains("GET")));
    assert_eq!(wrong.json()["errors"][0]["status"], "405");
}

/// Every path of the table with this in place of each id. Organizations are called by name, and so are workspaces in one.
fn paths_with(id: &str) -> Vec<(&'static str, String)> {
    let mut paths = Vec::new();
    for route in routes::all() {
        let mut named = route.path.replace("{organization}", "acme").replace("{action}", "x").replace("{pass}", "1-00");
        if route.path.contains("{organization}") {
            named = named.replace("{workspace}", "web");
        }
        // What a registry has is named by its address.
        for word in [
            "registry",
            "namespace",
            "module_name",
            "module_provider",
            "provider_name",
            "version",
            "os",
            "arch",
            "key_id",
        ] {
            named = named.replace(&format!("{{{word}}}"), "private");
        }
        while let (Some(begin), Some(end)) = (named.find('{'), named.find('}')) {
            named.replace_range(begin..=end, id);
        }
        if named.contains(id) {
            paths.extend(route.methods.iter().map(|method| (*method, named.clone())));
        }
    }
    assert!(paths.len() > 100, "most routes are about something with an id");
    paths
}

#[tokio::test]
async fn what_cannot_be_an_id_is_not_looked_for_in_the_bucket() {
    let bucket = CountedBucket::in_memory();
    let server = ApiServer::start_on(bucket.clone()).await;
    let admin = server.admin();
    server.given_organization("acme").await;
    // What is written on the side is written by now.
    server.control_plane.flush().await;
    let long = format!("ws-{}", "a".repeat(5_000));
    for id in ["nope", "ws-0OIl0OIl0OIl0OIl", "ws-aaaaaaaaaaaaaaaaa", "..", "%2e%2e", "%2e%2e%2f", "%ff", &long] {
        for (method, path) in paths_with(id) {
            let before = bucket.operations();
            let answer = admin.send(method, &path, Some("application/vnd.api+json"), "{}").await;
            let looks = bucket.operations() - before;
            let (status, path) = (answer.status, path.chars().take(100).collect::<String>());
            assert_eq!((status, looks), (StatusCode::NOT_FOUND, 0), "{method} {path}");
        }
    }
    let before = bucket.operations();
    admin.get("/api/v2/workspaces/ws-1111111111111111").await.expect(StatusCode::NOT_FOUND);
    assert!(bucket.operations() > before, "what can be an id is looked for");
}

#[tokio::test]
async fn what_is_hidden_looks_like_what_is_missing() {
    let server = ApiServer::start().await;
    server.given_organization("acme").await;
    let workspace = server.given_workspace("acme", "web").await;
    let (_, token) = server.given_user("outsider").await;
    let outsider = server.with_token(&token);
    for (hidden, missing) in [
        ("/api/v2/organizations/acme".to_owned(), "/api/v2/organizations/nope".to_owned()),
        (format!("/api/v2/workspaces/{workspace}"), "/api/v2/workspaces/ws-1111111111111111".to_owned()),
        ("/api/v2/organizations/acme/workspaces/web".to_owned(), "/api/v2/organizations/acme/workspaces/no".to_owned()),
    ] {
        let (hidden, missing) = (outsider.get(&hidden).await, outsider.get(&missing).await);
        assert_eq!((hidden.status, &hidden.bytes), (missing.status, &missing.bytes));
    }
}

#[tokio::test]
async fn pages_are_clamped_or_refused() {
    let server = ApiServer::start().await;
    let admin = server.admin();
    for (query, status) in [
        ("page[size]=0", 400),
        ("page[size]=-1", 400),
        ("page[size]=x", 400),
        ("page[size]=1000000000", 200),
        ("page[number]=0", 400),
        ("page[number]=99999999999", 200),
    ] {
        let answer = admin.get(&format!("/api/v2/organizations?{query}")).await;
        assert_eq!(answer.status.as_u16(), status, "{query}");
    }
    let clamped = admin.get("/api/v2/organizations?page[size]=1000").await;
    assert_eq!(clamped.json()["meta"]["pagination"]["page-size"], 100);
}

#[tokio::test]
async fn bodies_of_the_wrong_shape_are_refused() {
    let server = ApiServer::start().await;
    let admin = server.admin();
    let path = "/api/v2/organizations";
    let json_api = Some("application/vnd.api+json");
    for (body, status, pointer) in [
        ("{", 400, None),
        (r#"{"data":{"type":"organizations""#, 400, None),
        (r#"{"data":1,"data":2}"#, 400, None),
        (r#"{"data":{"attributes":{"name":NaN}}}"#, 400, None),
        ("{} {}", 400, None),
        ("{}", 422, Some("/data")),
        (r#"{"data":[]}"#, 422, Some("/data")),
        (r#"{"data":{"type":"organization"}}"#, 422, Some("/data/type")),
        (r#"{"data":{"attributes":{"name":1}}}"#, 422, Some("/data/attributes/name")),
    ] {
        let answer = admin.send("POST", path, json_api, body).await;
        assert_eq!((answer.status.as_u16(), answer.error().1.as_deref()), (status, pointer), "{body}");
    }
    let where_it_broke = admin.send("POST", path, json_api, "{\n  \"data\": x}").await.error().0;
    assert!(where_it_broke.contains("at 2:11"), "{where_it_broke}");
    let deep = admin.send("POST", path, json_api, "[".repeat(65)).await.error().0;
    assert!(deep.contains("64 levels"), "{deep}");
    let wrong = admin.send("POST", path, Some("text/plain"), "{}").await.expect(StatusCode::UNSUPPORTED_MEDIA_TYPE);
    assert!(wrong.error().0.contains("application/vnd.api+json"));
    let large = admin.send("POST", path, json_api, " ".repeat(1024 * 1024 + 1)).await;
    assert!(large.expect(StatusCode::PAYLOAD_TOO_LARGE).error().0.contains("1048576 bytes"));
}

#[tokio::test]
async fn names_and_settings_are_refused_with_the_rule() {
    let server = ApiServer::start().await;
    let admin = server.admin();
    server.given_organization("acme").await;
    let path = format!("/api/v2/workspaces/{}", server.given_workspace("acme", "web").await);
    server.given_workspace("acme", "taken").await;
    let long = "x".repeat(91);
    for (attribute, value) in [
        ("name", json!("")),
        ("name", json!("a b")),
        ("name", json!("a/b")),
        ("name", json!("a:b")),
        ("name", json!("-a")),
        ("name", json!("..")),
        ("name", json!("a\u{202e}")),
        ("name", json!("a\0")),
        ("name", json!(long)),
        ("name", json!("TAKEN")),
        ("terraform-version", json!("1.11.4; rm")),
        ("working-directory", json!("../x")),
        ("working-directory", json!("/etc")),
        ("working-directory", json!("a\0b")),
        ("trigger-patterns", json!(["["])),
        ("execution-mode", json!("moon")),
        ("auto-destroy-at", json!("tomorrow")),
        ("auto-apply", json!("yes")),
    ] {
        let body = json!({ "data": { "type": "workspaces", "attributes": { attribute: value } } });
        let answer = admin.patch(&path, &body).await.expect(StatusCode::UNPROCESSABLE_ENTITY);
        let (detail, pointer) = answer.error();
        assert_eq!(pointer, Some(format!("/data/attributes/{attribute}")), "{detail}");
        assert!(!detail.is_empty());
    }
    let patterns = json!({ "data": { "type": "workspaces", "attributes": { "trigger-patterns": ["ok", "a["] } } });
    let position = admin.patch(&path, &patterns).await.error().0;
    assert!(position.contains("at character 2"), "{position}");
    for version in ["latest", "~> 1.11", "1.11.4"] {
        let body = json!({ "data": { "type": "workspaces", "attributes": { "terraform-version": version } } });
        admin.patch(&path, &body).await.expect(StatusCode::OK);
    }
    for name in ["", "ab", "a/b", "..", "a:b", "\u{430}bc", "a\u{202e}bc", "default project", &"x".repeat(41)] {
        let body = json!({ "data": { "type": "projects", "attributes": { "name": name } } });
        let path = "/api/v2/organizations/acme/projects";
        let answer = admin.post(path, &body).await.expect(StatusCode::UNPROCESSABLE_ENTITY);
        assert_eq!(answer.error().1.as_deref(), Some("/data/attributes/name"), "{name}");
    }
    for name in ["", "ab", "a b", "a/b", "..", "api", "app", "admin", "static", "v1", "\u{430}cme", "ACME"] {
        let body = json!({ "data": { "type": "organizations", "attributes": { "name": name, "email": "a@b.c" } } });
        let answer = admin.post("/api/v2/organizations", &body).await.expect(StatusCode::UNPROCESSABLE_ENTITY);
        assert_eq!(answer.error().1.as_deref(), Some("/data/attributes/name"), "{name}");
    }
}

#[tokio::test]
async fn tokens_expire_when_they_say() {
    let server = ApiServer::start().await;
    let admin = server.admin();
    let user = admin.get("/api/v2/account/details").await.expect(StatusCode::OK).id();
    let path = format!("/api/v2/users/{user}/authentication-tokens");
    let wanted =
        |date: &str| json!({ "data": { "type": "authentication-tokens", "attributes": { "expired-at": date } } });
    for date in ["2020-01-01T00:00:00Z", "soon"] {
        admin.post(&path, &wanted(date)).await.expect(StatusCode::UNPROCESSABLE_ENTITY);
    }
    let made = admin.post(&path, &wanted("2026-01-01T13:00:00Z")).await.expect(StatusCode::CREATED);
    let token = made.attribute("token").as_str().expect("the text").to_owned();
    let read = admin.get(&format!("/api/v2/authentication-tokens/{}", made.id())).await.expect(StatusCode::OK);
    assert!(read.attribute("token").is_null(), "a token is shown once");
    let holder = server.with_token(&token);
    holder.get("/api/v2/account/details").await.expect(StatusCode::OK);
    server.pass(jiff::SignedDuration::from_hours(2));
    let late = holder.get("/api/v2/account/details").await.expect(StatusCode::UNAUTHORIZED);
    assert!(late.error().0.contains("expired at 2026-01-01T13:00:00Z"));
}

#[tokio::test]
async fn a_revoked_token_opens_nothing() {
    let server = ApiServer::start().await;
    let admin = server.admin();
    let user = admin.get("/api/v2/account/details").await.id();
    let made = admin.post(&format!("/api/v2/users/{user}/authentication-tokens"), &json!({})).await;
    let holder = server.with_token(made.attribute("token").as_str().expect("the text"));
    holder.get("/api/v2/account/details").await.expect(StatusCode::OK);
    let path = format!("/api/v2/authentication-tokens/{}", made.id());
    admin.delete(&path).await.expect(StatusCode::NO_CONTENT);
    holder.get("/api/v2/account/details").await.expect(StatusCode::UNAUTHORIZED);
}

#[tokio::test]
async fn whoever_has_no_lock_is_told_who_has() {
    let server = ApiServer::start().await;
    server.given_organization("acme").await;
    let workspace = server.given_workspace("acme", "web").await;
    let owners = server.admin().get("/api/v2/organizations/acme/teams?filter[names]=owners").await;
    let (_, token) = server.given_user("jane").await;
    let body = json!({ "data": { "type": "organization-memberships", "attributes": { "email": "jane@acme.test" },
        "relationships": { "teams": { "data": [{ "type": "teams", "id": owners.data()[0]["id"] }] } } } });
    let invited = server.admin().post("/api/v2/organizations/acme/organization-memberships", &body).await;
    let jane = server.with_token(&token);
    jane.accepts(&invited.expect(StatusCode::CREATED).id()).await;
    let unlock = format!("/api/v2/workspaces/{workspace}/actions/unlock");
    let free = jane.act(&unlock).await.expect(StatusCode::CONFLICT).error().0;
    assert!(free.contains("already unlocked"), "{free}");
    lock(&server.admin(), &workspace).await.expect(StatusCode::OK);
    for refused in [lock(&jane, &workspace).await, jane.act(&unlock).await, push(&jane, &workspace, 1, "a", "x").await]
    {
        let detail = refused.expect(StatusCode::CONFLICT).error().0;
        assert!(detail.contains("is locked by User admin since 2026-01-01T12:00:00Z"), "{detail}");
    }
}

#[tokio::test]
async fn rights_are_given_by_the_names_they_have() {
    let server = ApiServer::start().await;
    let admin = server.admin();
    server.given_organization("acme").await;
    let workspace = server.given_workspace("acme", "web").await;
    let team = json!({ "data": { "type": "teams", "attributes": { "name": "operators" } } });
    let team = admin.post("/api/v2/organizations/acme/teams", &team).await.expect(StatusCode::CREATED).id();
    let body = |attributes: Value, team: &str| {
        json!({ "data": { "type": "team-workspaces", "attributes": attributes, "relationships": {
            "team": { "data": { "type": "teams", "id": team } },
            "workspace": { "data": { "type": "workspaces", "id": workspace } },
        } } })
    };
    let path = "/api/v2/team-workspaces";
    for (attributes, team, pointer, words) in [
        (
            json!({ "access": "write", "runs": "apply" }),
            team.as_str(),
            "/data/attributes/runs",
            "use the 'custom' access level to set this attribute.",
        ),
        (json!({ "access": "king" }), &team, "/data/attributes/access", "`read`, `plan`, `write`, `admin`"),
        (json!({ "access": "custom", "runs": "all" }), &team, "/data/attributes/runs", "`plan`"),
        (json!({}), &team, "/data/attributes/access", "blank"),
        (json!({ "access": "read" }), "team-0000000000000000", "/data/relationships/team", "team-0000"),
        (json!({ "access": "read" }), "", "/data/relationships/team", "must be given"),
    ] {
        let answer = admin.post(path, &body(attributes, team)).await.expect(StatusCode::UNPROCESSABLE_ENTITY);
        let (detail, place) = answer.error();
        assert_eq!(place.as_deref(), Some(pointer), "{detail}");
        assert!(detail.contains(words), "{detail}");
    }
    let made = admin.post(path, &body(json!({ "access": "plan" }), &team)).await.expect(StatusCode::CREATED);
    assert_eq!((made.attribute("runs"), made.attribute("state-versions")), (json!("plan"), json!("read")));
    admin.post(path, &body(json!({ "access": "read" }), &team)).await.expect(StatusCode::UNPROCESSABLE_ENTITY);
    admin.get(path).await.expect(StatusCode::BAD_REQUEST);
}

#[tokio::test]
async fn a_token_that_asks_too_often_has_to_wait() {
    let unlimited = ApiServer::start().await;
    assert!(!unlimited.admin().get("/api/v2/ping").await.headers.contains_key("x-ratelimit-limit"));
    let server = unlimited.with_rate_limit(5);
    let mut refused = None;
    for _ in 0..100 {
        let answer = server.admin().get("/api/v2/account/details").await;
        assert_eq!(answer.headers["x-ratelimit-limit"], "5");
        if answer.status == StatusCode::TOO_MANY_REQUESTS {
            refused = Some(answer);
            break;
        }
    }
    let refused = refused.expect("a limit");
    let header = |name: &str| refused.headers[name].to_str().expect("text").parse::<f64>().expect("a number");
    assert!(header("x-ratelimit-reset") > 0.0 && header("retry-after") >= 1.0);
    assert_eq!(refused.headers["x-ratelimit-remaining"], "0");
    assert_eq!(refused.json()["errors"][0]["status"], "429");
    server.with_token("another").get("/api/v2/account/details").await.expect(StatusCode::UNAUTHORIZED);
}
