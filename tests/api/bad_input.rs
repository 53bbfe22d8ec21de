//! What bad input gets: JSON that says what was wrong, what is allowed, and where. Never 500.

use axum::http::StatusCode;
use harness::api_server::ApiServer;
use serde_json::json;

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
        (r#"{"data":1,"data":2}"#, 400, None),
        ("{}", 422, Some("/data")),
        (r#"{"data":[]}"#, 422, Some("/data")),
        (r#"{"data":{"type":"organization"}}"#, 422, Some("/data/type")),
        (r#"{"data":{"attributes":{"name":1}}}"#, 422, Some("/data/attributes/name")),
    ] {
        let answer = admin.send("POST", path, json_api, body).await;
        assert_eq!((answer.status.as_u16(), answer.error().1.as_deref()), (status, pointer), "{body}");
    }
    admin.send("POST", path, Some("text/plain"), "{}").await.expect(StatusCode::UNSUPPORTED_MEDIA_TYPE);
    admin.send("POST", path, json_api, " ".repeat(1024 * 1024 + 1)).await.expect(StatusCode::PAYLOAD_TOO_LARGE);
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
        ("name", json!("-a")),
        ("name", json!("..")),
        ("name", json!("a\u{202e}")),
        ("name", json!("a\0")),
        ("name", json!(long)),
        ("name", json!("TAKEN")),
        ("terraform-version", json!("1.11.4; rm")),
        ("working-directory", json!("../x")),
        ("working-directory", json!("/etc")),
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
    for name in ["", "ab", "a b", "api", "admin", "\u{430}cme", "ACME"] {
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
