//! Limits of an organization on the lifetime of tokens.

use axum::http::StatusCode;
use harness::api_server::{Answer, ApiServer, Client};
use jiff::SignedDuration;
use serde_json::{Value, json};

const POLICIES: &str = "/api/v2/organizations/acme/token-ttl-policies";
const DAY: i64 = 24 * 60 * 60 * 1000;

async fn limit(admin: &Client, kind: &str, milliseconds: i64) -> Answer {
    let policies = json!([{ "token-type": kind, "max-ttl-ms": milliseconds }]);
    let kind = "organization-token-ttl-policies";
    admin.patch(POLICIES, &json!({ "data": { "type": kind, "attributes": { "token-ttl-policies": policies } } })).await
}

/// A server with an organization whose limits hold.
async fn given_limits() -> ApiServer {
    let server = ApiServer::start().await;
    server.given_organization("acme").await;
    let body = json!({ "data": { "type": "organizations", "attributes": { "max-ttl-enabled": true } } });
    server.admin().patch("/api/v2/organizations/acme", &body).await.expect(StatusCode::OK);
    server
}

fn expiring(at: impl ToString) -> Value {
    json!({ "data": { "type": "authentication-tokens", "attributes": { "expired-at": at.to_string() } } })
}

#[tokio::test]
async fn limits_of_all_kinds_are_listed_and_one_is_set() {
    let server = given_limits().await;
    let admin = server.admin();
    let changed = limit(&admin, "team", DAY).await.expect(StatusCode::OK);
    assert_eq!(changed.data(), admin.get(POLICIES).await.expect(StatusCode::OK).data());
    let listed = changed.data().as_array().expect("a list").clone();
    let limits: Vec<_> = listed
        .iter()
        .map(|limit| (limit["attributes"]["token-type"].clone(), limit["attributes"]["max-ttl-ms"].clone()))
        .collect();
    let two_years = json!(63_113_904_000_i64);
    let expected = [
        (json!("organization"), two_years.clone()),
        (json!("team"), json!(DAY)),
        (json!("user"), two_years.clone()),
        (json!("audit_trails"), two_years),
    ];
    assert_eq!(limits, expected);
    for (kind, milliseconds, words) in [("robot", DAY, "audit_trails"), ("team", 5, "an hour"), ("team", -DAY, "hour")]
    {
        let (detail, pointer) =
            limit(&admin, kind, milliseconds).await.expect(StatusCode::UNPROCESSABLE_ENTITY).error();
        assert!(detail.contains(words), "{detail}");
        assert_eq!(pointer.as_deref(), Some("/data/attributes/token-ttl-policies"));
    }
}

#[tokio::test]
async fn a_new_token_ends_in_time() {
    let server = given_limits().await;
    let admin = server.admin();
    limit(&admin, "organization", DAY).await.expect(StatusCode::OK);
    let path = "/api/v2/organizations/acme/authentication-token";
    let tomorrow = server.now() + SignedDuration::from_hours(24);
    let later = tomorrow + SignedDuration::from_secs(1);
    let refused = admin.post(path, &expiring(later)).await.expect(StatusCode::UNPROCESSABLE_ENTITY);
    let (detail, pointer) = refused.error();
    assert!(detail.contains(&format!("{tomorrow} at the latest")), "{detail}");
    assert_eq!(pointer.as_deref(), Some("/data/attributes/expired-at"));
    admin.post(path, &expiring(tomorrow)).await.expect(StatusCode::CREATED);
    let unasked = admin.post(path, &json!({})).await.expect(StatusCode::CREATED);
    assert_eq!(unasked.attribute("expired-at"), tomorrow.to_string());
}

#[tokio::test]
async fn users_come_with_tokens_that_end_soon_enough() {
    let server = given_limits().await;
    let admin = server.admin();
    let (user, long_lived) = server.given_user("jane").await;
    let body = json!({ "data": { "type": "organization-memberships", "attributes": { "email": "jane@acme.test" } } });
    let path = "/api/v2/organizations/acme/organization-memberships";
    let invited = admin.post(path, &body).await.expect(StatusCode::CREATED).id();
    server.with_token(&long_lived).accepts(&invited).await;
    let read = async |token: &str| server.with_token(token).get("/api/v2/organizations/acme").await.status;
    assert_eq!(read(&long_lived).await, StatusCode::OK);
    limit(&admin, "user", DAY).await.expect(StatusCode::OK);
    assert_eq!(read(&long_lived).await, StatusCode::UNAUTHORIZED);
    let path = format!("/api/v2/users/{user}/authentication-tokens");
    let tomorrow = server.now() + SignedDuration::from_hours(24);
    let made = server.with_token(&long_lived).post(&path, &expiring(tomorrow)).await.expect(StatusCode::CREATED);
    assert_eq!(read(made.attribute("token").as_str().expect("a token")).await, StatusCode::OK);
}
