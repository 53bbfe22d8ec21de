//! Limits on what one user can pile up, and proof that a state's content beyond them costs the others nothing.

use std::sync::Arc;

use axum::http::StatusCode;
use harness::api_server::{Answer, ApiServer, Client};
use serde_json::{Map, Value, json};
use taco_domain::state_version::{LARGEST_LISTED_NAMES, MOST_LISTED_OUTPUTS};
use taco_ledger::{Bucket, LedgerName, ObjectBucket, layout};

use crate::configuration_versions::given_configuration;
use crate::runs::start_run;

async fn found(client: &Client, name: &str) -> Answer {
    let attributes = json!({ "name": name, "email": "a@acme.test" });
    client
        .post("/api/v2/organizations", &json!({ "data": { "type": "organizations", "attributes": attributes } }))
        .await
}

#[tokio::test]
async fn a_user_founds_so_many_organizations_and_a_site_admin_any_number() {
    let server = ApiServer::start().await;
    let (_, token) = server.given_user("eve").await;
    let eve = server.with_token(&token);
    for number in 0..20 {
        found(&eve, &format!("eve-{number}")).await.expect(StatusCode::CREATED);
    }
    let (detail, pointer) = found(&eve, "eve-20").await.expect(StatusCode::UNPROCESSABLE_ENTITY).error();
    assert!(detail.contains("20 organizations") && detail.contains("ask a site admin"), "{detail}");
    assert_eq!(pointer.as_deref(), Some("/data"));
    for number in 0..21 {
        found(&server.admin(), &format!("site-{number}")).await.expect(StatusCode::CREATED);
    }
    eve.delete("/api/v2/organizations/eve-3").await.expect(StatusCode::NO_CONTENT);
    found(&eve, "eve-20").await.expect(StatusCode::CREATED);
    found(&eve, "eve-21").await.expect(StatusCode::UNPROCESSABLE_ENTITY);
    let (_, token) = server.given_user("joe").await;
    found(&server.with_token(&token), "joes").await.expect(StatusCode::CREATED);
}

#[tokio::test]
async fn a_run_takes_so_many_addresses_and_variables() {
    let server = ApiServer::start().await;
    server.given_organization("acme").await;
    let workspace = server.given_workspace("acme", "web").await;
    given_configuration(&server, &workspace).await;
    let addresses = |number: usize| (0..number).map(|number| format!("null_resource.x[{number}]")).collect::<Vec<_>>();
    let variables = |number: usize| -> Vec<Value> {
        (0..number).map(|number| json!({ "key": format!("v{number}"), "value": "1" })).collect()
    };
    for (attribute, sent, most) in [
        ("target-addrs", json!(addresses(501)), 500),
        ("replace-addrs", json!(addresses(501)), 500),
        ("variables", json!(variables(501)), 500),
        ("target-addrs", json!(addresses(20_000)), 500),
    ] {
        let refused = start_run(&server.admin(), &workspace, json!({ attribute: sent })).await;
        let (detail, pointer) = refused.expect(StatusCode::UNPROCESSABLE_ENTITY).error();
        assert!(detail.contains(&format!("at most {most}")), "{detail}");
        assert_eq!(pointer, Some(format!("/data/attributes/{attribute}")));
    }
    let plenty = json!({ "target-addrs": addresses(500), "variables": variables(500) });
    start_run(&server.admin(), &workspace, plenty).await.expect(StatusCode::CREATED);
}

#[tokio::test]
async fn a_workspace_has_so_many_variables() {
    let server = ApiServer::start().await;
    server.given_organization("acme").await;
    let workspace = server.given_workspace("acme", "web").await;
    let path = format!("/api/v2/workspaces/{workspace}/vars");
    let variable = |key: String| json!({ "data": { "type": "vars", "attributes": { "key": key, "value": "1", "category": "env" } } });
    for number in 0..1_000 {
        server.admin().post(&path, &variable(format!("V{number}"))).await.expect(StatusCode::CREATED);
    }
    let refused = server.admin().post(&path, &variable("ONE_MORE".to_owned())).await;
    let (detail, pointer) = refused.expect(StatusCode::UNPROCESSABLE_ENTITY).error();
    assert!(detail.contains("at most 1000 variables"), "{detail}");
    assert_eq!(pointer.as_deref(), Some("/data/attributes/key"));
}

/// Size of the largest commit of the only organization.
async fn largest_commit(bucket: &ObjectBucket) -> usize {
    let ledgers = bucket.folders(&layout::ledgers()).await.expect("a list");
    let organization: LedgerName =
        ledgers.iter().find_map(|name| name.starts_with("org-").then(|| name.parse().ok())?).expect("one");
    let mut largest = 0;
    let mut number = 1;
    while let Some(commit) = bucket.get(&layout::commit(&organization, number)).await.expect("an answer") {
        largest = largest.max(commit.bytes.len());
        number += 1;
    }
    largest
}

#[tokio::test]
async fn outputs_beyond_a_size_stay_in_the_state_and_can_be_read_there() {
    let bucket = Arc::new(ObjectBucket::in_memory());
    let server = ApiServer::start_on(bucket.clone()).await;
    let admin = server.admin();
    server.given_organization("acme").await;
    let many: Map<String, Value> = (0..20_000)
        .map(|number| (format!("output-{number:05}"), json!({ "value": number, "type": "number" })))
        .collect();
    let long = "x".repeat(2 * 1024 * 1024);
    let of_long_name = Map::from_iter([(long.clone(), json!({ "value": 1, "type": "number", "sensitive": true }))]);
    for (name, outputs) in [("many", many), ("long", of_long_name)] {
        let number = outputs.len();
        let workspace = server.given_workspace("acme", name).await;
        let state = json!({ "version": 4, "serial": 1, "lineage": name, "terraform_version": "1.11.4",
            "outputs": outputs, "resources": [] });
        let version = server.given_state(&workspace, &state).await;
        assert!(largest_commit(&bucket).await < 16 * 1024, "{name}: {}", largest_commit(&bucket).await);
        let listed = admin.get("/api/v2/organizations/acme/workspaces").await.expect(StatusCode::OK);
        assert!(listed.bytes.len() < 64 * 1024, "{name}: {}", listed.bytes.len());

        let path = format!("/api/v2/state-versions/{version}");
        let read = admin.get(&path).await.expect(StatusCode::OK);
        assert_eq!(read.attribute("taco-unlisted-outputs"), number, "{name}");
        let page = admin.get(&format!("{path}/outputs?page[size]=100")).await.expect(StatusCode::OK);
        assert_eq!(page.json()["meta"]["pagination"]["total-count"], number, "{name}");
        let first = page.data()[0]["attributes"].clone();
        assert_eq!(first["value"], if name == "many" { 0 } else { 1 });
        let current = admin.get(&format!("/api/v2/workspaces/{workspace}/current-state-version-outputs")).await;
        assert_eq!(current.expect(StatusCode::OK).data().as_array().map(Vec::len), Some(number));
        // The state itself is what its client wrote.
        let url = read.attribute("hosted-state-download-url");
        let path = url.as_str().and_then(|url| url.strip_prefix("http://taco.test")).expect("an address");
        assert_eq!(admin.get(path).await.expect(StatusCode::OK).json(), state, "{name}");
    }
    // Names that fit are in the record, as ever.
    let outputs: Map<String, Value> = (0..MOST_LISTED_OUTPUTS)
        .map(|number| (format!("o{number}"), json!({ "value": number, "type": "number" })))
        .collect();
    assert!(outputs.keys().map(String::len).sum::<usize>() < LARGEST_LISTED_NAMES);
    let workspace = server.given_workspace("acme", "plenty").await;
    let state = json!({ "version": 4, "serial": 1, "lineage": "l", "terraform_version": "1.11.4",
        "outputs": outputs, "resources": [] });
    let version = server.given_state(&workspace, &state).await;
    let read = admin.get(&format!("/api/v2/state-versions/{version}")).await.expect(StatusCode::OK);
    assert_eq!(read.attribute("taco-unlisted-outputs"), Value::Null);
    let named = read.data()["relationships"]["outputs"]["data"].as_array().expect("a list").len();
    assert_eq!(named, MOST_LISTED_OUTPUTS);
}
