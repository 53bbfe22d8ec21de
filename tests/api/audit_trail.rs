//! Audit trail of an organization, as auditors query it.

use axum::http::StatusCode;
use harness::api_server::{ApiServer, Client};
use jiff::SignedDuration;
use serde_json::{Value, json};

const OF_TOKEN: &str = "/api/v2/organization/audit-trail";
const OF_ACME: &str = "/api/v2/organizations/acme/audit-trail";

async fn events(client: &Client, path: &str) -> Vec<Value> {
    let answer = client.get(path).await.expect(StatusCode::OK);
    answer.data().as_array().cloned().unwrap_or_else(|| panic!("no list: {}", answer.json()))
}

/// Actions and their targets.
fn deeds(events: &[Value]) -> Vec<String> {
    let words =
        |event: &Value| ["type", "action"].map(|name| event["resource"][name].as_str().expect("text").to_owned());
    events.iter().map(|event| words(event).join(" ")).collect()
}

async fn token(server: &ApiServer, query: &str) -> Client {
    let path = format!("/api/v2/organizations/acme/authentication-token{query}");
    let issued = server.admin().post(&path, &json!({})).await.expect(StatusCode::CREATED);
    server.with_token(issued.attribute("token").as_str().expect("a token"))
}

#[tokio::test]
async fn an_organization_tells_who_did_what_the_newest_first() {
    let server = ApiServer::start().await;
    let admin = server.admin();
    server.given_organization("acme").await;
    let watcher = token(&server, "?token=audit-trails").await;
    let workspace = server.given_workspace("acme", "web").await;
    let variable = json!({ "data": { "type": "vars", "attributes": {
        "key": "password", "value": "s3cr3t-marker", "category": "env", "sensitive": false,
    } } });
    admin.post(&format!("/api/v2/workspaces/{workspace}/vars"), &variable).await.expect(StatusCode::CREATED);
    admin.act(&format!("/api/v2/workspaces/{workspace}/actions/lock")).await.expect(StatusCode::OK);

    let trail = events(&watcher, OF_TOKEN).await;
    let done = deeds(&trail);
    assert_eq!(done[..3], ["workspace lock", "variable create", "workspace create"], "{done:?}");
    assert_eq!(done.last().map(String::as_str), Some("organization begin"), "{done:?}");
    let made = &trail[2];
    let account = admin.get("/api/v2/account/details").await;
    let organization = admin.get("/api/v2/organizations/acme").await.attribute("external-id");
    let auth = json!({
        "accessor_id": account.id(), "description": account.attribute("username"), "type": "Client",
        "impersonator_id": null, "organization_id": organization,
    });
    assert_eq!(made["auth"], auth);
    assert_eq!(
        (&made["resource"]["id"], &made["type"], &made["version"]),
        (&json!(workspace), &json!("Resource"), &json!("0"))
    );
    assert_eq!(made["timestamp"], "2026-01-01T12:00:00Z");
    let mut ids: Vec<_> = trail.iter().map(|event| event["id"].to_string()).collect();
    ids.sort();
    ids.dedup();
    assert_eq!(ids.len(), trail.len(), "each has an id of its own");
    assert!(!json!(trail).to_string().contains("s3cr3t"), "values are nobody's business here: {trail:?}");
}

#[tokio::test]
async fn it_comes_page_by_page_and_from_a_moment_on() {
    let server = ApiServer::start().await;
    server.given_organization("acme").await;
    // Not the organization's own token: its use is noted in the background, and would be one more event.
    let organization = server.admin();
    for name in ["one", "two", "three"] {
        server.pass(SignedDuration::from_hours(1));
        server.given_workspace("acme", name).await;
    }
    let all = events(&organization, OF_ACME).await;
    assert_eq!(deeds(&all)[..3], ["workspace create"; 3]);
    let mut pieced = Vec::new();
    let mut page = Some(1);
    while let Some(number) = page {
        let path = format!("{OF_ACME}?page[number]={number}&page[size]=2");
        let answer = organization.get(&path).await.expect(StatusCode::OK);
        let pagination = &answer.json()["pagination"];
        assert_eq!(pagination["current_page"], number);
        pieced.extend(answer.data().as_array().cloned().expect("a list"));
        page = pagination["next_page"].as_u64();
        assert_eq!(page.is_none(), pagination["total_pages"] == number, "{pagination}");
    }
    assert_eq!(pieced, all, "no page was forgotten, none came twice");

    for (since, expected) in [
        ("2026-01-01T12:00:00.000Z", 3),
        ("2026-01-01T13:00:00Z", 2),
        ("2026-01-01T14:59:59Z", 1),
        ("2026-01-01T15:00:00Z", 0),
        ("2020-01-01T00:00:00Z", all.len()),
    ] {
        let later = organization.get(&format!("{OF_ACME}?since={since}")).await.expect(StatusCode::OK);
        assert_eq!(later.data().as_array().map(Vec::len), Some(expected), "{since}");
        assert_eq!(later.json()["pagination"]["next_page"], Value::Null);
    }
    let beyond = organization.get(&format!("{OF_ACME}?page[number]=99")).await.expect(StatusCode::OK);
    assert_eq!((beyond.data(), &beyond.json()["pagination"]["prev_page"]), (json!([]), &json!(1)));
    organization.get(&format!("{OF_ACME}?since=yesterday")).await.expect(StatusCode::BAD_REQUEST);
    token(&server, "").await.get(OF_ACME).await.expect(StatusCode::OK);
}

#[tokio::test]
async fn only_a_token_of_an_organization_says_which_organization_it_is() {
    let server = ApiServer::start().await;
    server.given_organization("acme").await;
    let owner = server.admin();
    let refused = owner.get(OF_TOKEN).await.expect(StatusCode::NOT_FOUND);
    assert!(refused.error().0.contains("/api/v2/organizations/NAME/audit-trail"), "{refused:?}");
    owner.get(OF_ACME).await.expect(StatusCode::OK);
    let (_, stranger) = server.given_user("stranger").await;
    server.with_token(&stranger).get(OF_ACME).await.expect(StatusCode::NOT_FOUND);
}
