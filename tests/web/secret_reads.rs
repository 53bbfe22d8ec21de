//! Pages that show secrets tell the audit trail first.

use harness::page_server::PageServer;
use reqwest::StatusCode;
use serde_json::{Value, json};

const PATH: &str = "/app/acme/workspaces/web/states";

fn state(serial: u64) -> Value {
    let outputs = json!({ "secret": { "value": "hunter2", "type": "string", "sensitive": true } });
    json!({ "version": 4, "serial": serial, "lineage": "one", "outputs": outputs, "resources": [] })
}

/// Reads and their targets, oldest first.
async fn reads(site: &PageServer) -> Vec<(String, String)> {
    let path = "/api/v2/organizations/acme/audit-trail?page[size]=100";
    let trail = site.api.admin().get(path).await.expect(StatusCode::OK).data();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let read = |event: &Value| (text(&event["resource"]["action"]), text(&event["resource"]["id"]));
    let all = trail.as_array().expect("a list").iter().rev().map(read);
    all.filter(|(action, _)| action.ends_with("read") || action.ends_with("reveal")).collect()
}

#[tokio::test]
async fn a_page_tells_the_audit_trail_of_a_download_and_of_a_comparison() {
    let site = PageServer::start().await;
    site.api.given_organization("acme").await;
    let workspace = site.api.given_workspace("acme", "web").await;
    let first = site.api.given_state(&workspace, &state(1)).await;
    let second = site.api.given_state(&workspace, &state(2)).await;
    let reader = site.member("bob", "acme", &workspace, "read").await;
    for path in [PATH.to_owned(), format!("{PATH}/{first}"), "/app/acme/workspaces/web".to_owned()] {
        let page = reader.get(&path).await;
        assert_eq!(page.status, StatusCode::OK, "{path}");
        assert!(!page.text.contains("hunter2"), "{path}");
    }
    assert_eq!(reads(&site).await, [], "they show no secret");
    let file = reader.get(&format!("{PATH}/{first}/download")).await;
    assert!(file.text.contains("hunter2"), "{}", file.text);
    assert_eq!(reads(&site).await, [("state.read".to_owned(), first.clone())]);
    assert_eq!(reader.get(&format!("{PATH}/{second}/diff?against={first}")).await.status, StatusCode::OK);
    assert_eq!(reads(&site).await, [("state.read".to_owned(), first), ("state.read".to_owned(), second)]);
}
