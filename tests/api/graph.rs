//! The graph of states, from states that clients wrote: output commits, edges, what is stale and why.

use axum::http::StatusCode;
use harness::api_server::{ApiServer, Client};
use harness::permission_site::attributes;
use serde_json::{Value, json};

use std::collections::BTreeMap;

use crate::configuration_versions::given_configuration;
use crate::run_phases::{applied, execute, planned};
use crate::runs::start_run;

fn state(serial: u64, outputs: Value, resources: Value) -> Value {
    json!({ "version": 4, "terraform_version": "1.11.4", "serial": serial, "lineage": "one", "outputs": outputs,
        "resources": resources })
}

fn outputs(values: &[(&str, &str)]) -> Value {
    values.iter().map(|(name, value)| ((*name).to_owned(), json!({ "value": value, "type": "string" }))).collect()
}

/// A data block that read these outputs of a workspace, and a resource that holds a value and depends on it.
fn consumer(workspace: &str, read: &[(&str, &str)], held: &str) -> Value {
    let values: BTreeMap<_, _> = read.iter().copied().collect();
    let types: BTreeMap<_, _> = read.iter().map(|(name, _)| (*name, "string")).collect();
    json!([
        { "mode": "data", "type": "terraform_remote_state", "name": "up",
          "provider": "provider[\"terraform.io/builtin/terraform\"]", "instances": [{ "schema_version": 0, "attributes": {
            "backend": "remote", "workspace": null, "defaults": null,
            "config": { "type": ["object", { "hostname": "string", "organization": "string", "workspaces": ["object", { "name": "string" }] }],
                "value": { "hostname": "taco.test", "organization": "acme", "workspaces": { "name": workspace } } },
            "outputs": { "value": values, "type": ["object", types] } } }] },
        { "mode": "managed", "type": "terraform_data", "name": "main",
          "provider": "provider[\"terraform.io/builtin/terraform\"]", "instances": [{ "schema_version": 0,
            "attributes": { "id": "11111111-2222-3333-4444-555555555555", "input": { "value": held, "type": "string" } },
            "dependencies": ["data.terraform_remote_state.up"] }] },
    ])
}

async fn why(admin: &Client, workspace: &str) -> Value {
    admin.get(&format!("/api/v2/workspaces/{workspace}/why")).await.expect(StatusCode::OK).data()["attributes"].clone()
}

async fn graph(admin: &Client) -> Value {
    admin.get("/api/v2/organizations/acme/graph").await.expect(StatusCode::OK).data()["attributes"].clone()
}

#[tokio::test]
async fn a_state_that_changes_an_output_makes_an_output_commit() {
    let server = ApiServer::start().await;
    server.given_organization("acme").await;
    let network = server.given_workspace("acme", "network").await;
    let admin = server.admin();
    for (serial, values) in [
        (1, &[("vpc_id", "vpc-0001"), ("zone", "a")][..]),
        (2, &[("vpc_id", "vpc-0001"), ("zone", "a")]),
        (3, &[("vpc_id", "vpc-0002")]),
    ] {
        server.given_state(&network, &state(serial, outputs(values), json!([]))).await;
    }
    let at = format!("/api/v2/workspaces/{network}/output-commits");
    let listed = admin.get(&at).await.expect(StatusCode::OK);
    let numbers: Vec<_> =
        listed.data().as_array().expect("a list").iter().map(|commit| commit["attributes"]["number"].clone()).collect();
    assert_eq!(numbers, [2, 1], "the second state changed nothing");
    let newest = admin.get(&format!("{at}/newest")).await.expect(StatusCode::OK);
    let changes: Vec<_> = newest
        .attribute("changes")
        .as_array()
        .expect("changes")
        .iter()
        .map(|change| (change["name"].clone(), change["change"].clone()))
        .collect();
    assert_eq!(changes, [(json!("vpc_id"), json!("value")), (json!("zone"), json!("removed"))]);
    assert_eq!(
        newest.attribute("outputs"),
        json!([{ "name": "vpc_id", "type": "\"string\"", "sensitive": false, "value": "vpc-0002" }])
    );
    let first = admin.get(&format!("{at}/1")).await.expect(StatusCode::OK);
    assert_eq!(first.attribute("outputs")[0]["value"], "vpc-0001");
    admin.get(&format!("{at}/3")).await.expect(StatusCode::NOT_FOUND);

    let compared = format!("/api/v2/workspaces/{network}/output-comparison");
    let differences = admin.get(&format!("{compared}?from=1&to=2")).await.expect(StatusCode::OK);
    assert_eq!(differences.attribute("changed"), true);
    assert_eq!(
        differences.attribute("changes")[0],
        json!({ "name": "vpc_id", "change": "value", "sensitive": false, "before": "vpc-0001", "after": "vpc-0002" })
    );
    let same = admin.get(&format!("{compared}?from=1&to=1")).await.expect(StatusCode::OK);
    assert_eq!(same.attribute("changed"), false);
    let refused = admin.get(&format!("{compared}?from=1&to=9")).await.expect(StatusCode::UNPROCESSABLE_ENTITY);
    assert_eq!(refused.error().0, "there is no output commit 9: the workspace has output commits 1 to 2");
    admin.get(&format!("{compared}?from=x&to=2")).await.expect(StatusCode::BAD_REQUEST);
}

#[tokio::test]
async fn a_consumer_is_stale_until_its_resources_take_the_new_value() {
    let server = ApiServer::start().await;
    server.given_organization("acme").await;
    let admin = server.admin();
    let network = server.given_workspace("acme", "network").await;
    let app = server.given_workspace("acme", "app").await;
    let old = [("vpc_id", "vpc-0123456789"), ("unused", "nobody-uses-this")];
    let new = [("vpc_id", "vpc-9876543210"), ("unused", "nobody-uses-this")];
    let freshness = async |expected: &str| {
        let why = why(&admin, &app).await;
        assert_eq!(why["freshness"], expected, "{why:#}");
        why
    };
    freshness("never_applied").await;
    server.given_state(&network, &state(1, outputs(&old), json!([]))).await;
    server.given_state(&app, &state(1, json!({}), consumer("network", &old, "vpc-0123456789"))).await;
    freshness("clean").await;

    let graph_now = graph(&admin).await;
    assert_eq!(graph_now["units"][0]["name"], "app");
    assert_eq!(graph_now["units"][0]["why"], "1 producer, unchanged");
    let edge = &graph_now["edges"][0];
    assert_eq!((&edge["consumer"], &edge["producer"]), (&json!("app"), &json!("network")));
    assert_eq!(
        (&edge["outputs"], &edge["grades"], &edge["status"]),
        (&json!(["vpc_id"]), &json!(["state"]), &json!("fresh"))
    );
    assert_eq!(edge["users"], json!(["terraform_data.main"]));

    // An output that nobody uses changes nothing.
    let unused = [old[0], ("unused", "still-nobody-uses-it")];
    server.given_state(&network, &state(2, outputs(&unused), json!([]))).await;
    freshness("clean").await;

    server.given_state(&network, &state(3, outputs(&new), json!([]))).await;
    let stale = freshness("stale").await;
    let reason = &stale["reasons"][0];
    assert_eq!((&reason["producer"], &reason["certain"]), (&json!("network"), &json!(true)));
    let output = &reason["outputs"][0];
    assert_eq!(output["name"], "vpc_id");
    assert_eq!(
        (&output["change"], &output["from_commit"], &output["to_commit"]),
        (&json!("value"), &json!(1), &json!(3))
    );
    assert_eq!(output["by"], "admin");
    let sentence = reason["sentence"].as_str().expect("a sentence");
    assert!(sentence.starts_with("network changed `vpc_id` in commit 3 (by admin, "), "{sentence}");
    assert!(sentence.ends_with("; this workspace last applied against commit 1."), "{sentence}");

    // A refresh reads the new value, and its resource still holds the old one.
    server.given_state(&app, &state(2, json!({}), consumer("network", &new, "vpc-0123456789"))).await;
    freshness("stale").await;
    server.given_state(&app, &state(3, json!({}), consumer("network", &new, "vpc-9876543210"))).await;
    freshness("clean").await;

    server.given_state(&network, &state(4, outputs(&new[1..]), json!([]))).await;
    let broken = freshness("broken").await;
    assert_eq!(broken["reasons"][0]["outputs"][0]["change"], "removed");
}

#[tokio::test]
async fn people_declare_mute_and_acknowledge() {
    let server = ApiServer::start().await;
    server.given_organization("acme").await;
    let admin = server.admin();
    let network = server.given_workspace("acme", "network").await;
    let app = server.given_workspace("acme", "app").await;
    server.given_state(&network, &state(1, outputs(&[("vpc_id", "vpc-0001")]), json!([]))).await;
    server.given_state(&app, &state(1, json!({}), json!([]))).await;
    assert_eq!(why(&admin, &app).await["freshness"], "clean", "it uses nothing");

    let at = format!("/api/v2/workspaces/{app}/dependencies");
    let declare = |producer: &str| attributes("dependencies", json!({ "producer": producer, "outputs": ["vpc_id"] }));
    for (wanted, detail) in [
        ("nothing-like-that", "There is no workspace \"nothing-like-that\" in this organization that you may see"),
        ("app", "A workspace cannot depend on itself: name another one"),
        ("", "Producer can't be blank: name the workspace whose outputs are used"),
    ] {
        let refused = admin.post(&at, &declare(wanted)).await.expect(StatusCode::UNPROCESSABLE_ENTITY);
        assert_eq!(refused.error().0, detail);
    }
    let edge = admin.post(&at, &declare("network")).await.expect(StatusCode::CREATED);
    assert_eq!((edge.attribute("status"), edge.attribute("grades")), (json!("unobserved"), json!(["declared"])));
    assert_eq!(why(&admin, &app).await["freshness"], "unknown");
    let path = format!("/api/v2/dependencies/{}", edge.id());
    let acknowledged = attributes("dependencies", json!({ "reason": "looked at it" }));
    let edge = admin.post(&format!("{path}/actions/acknowledge"), &acknowledged).await.expect(StatusCode::OK);
    assert_eq!(edge.attribute("status"), "fresh");
    assert_eq!(why(&admin, &app).await["freshness"], "clean");
    server.given_state(&network, &state(2, outputs(&[("vpc_id", "vpc-0002")]), json!([]))).await;
    assert_eq!(why(&admin, &app).await["freshness"], "stale");
    let muted = attributes("dependencies", json!({ "muted": true, "reason": "known" }));
    admin.patch(&path, &muted).await.expect(StatusCode::OK);
    assert_eq!(why(&admin, &app).await["freshness"], "clean");
    let refused = admin.patch(&path, &attributes("dependencies", json!({ "policy": "never" }))).await;
    assert_eq!(
        refused.expect(StatusCode::UNPROCESSABLE_ENTITY).error().0,
        "\"never\" is not one of auto, notify, ignore"
    );
    admin.delete(&path).await.expect(StatusCode::NO_CONTENT);
    admin.get(&path).await.expect(StatusCode::NOT_FOUND);
}

/// The type of a list that was written with brackets tells how many elements it has.
#[tokio::test]
async fn a_list_that_grows_makes_its_consumers_stale_and_another_type_breaks_them() {
    let server = ApiServer::start().await;
    server.given_organization("acme").await;
    let admin = server.admin();
    let network = server.given_workspace("acme", "network").await;
    let app = server.given_workspace("acme", "app").await;
    let zones = |value: Value, kind: Value| json!({ "zones": { "value": value, "type": kind } });
    let tuple = |zones: &[&str]| json!(["tuple", vec!["string"; zones.len()]]);
    let listed = |of: &[&str]| zones(json!(of), tuple(of));
    server.given_state(&network, &state(1, listed(&["a"]), json!([]))).await;
    server.given_state(&app, &state(1, json!({}), json!([]))).await;
    let declared = attributes("dependencies", json!({ "producer": "network", "outputs": ["zones"] }));
    let edge = admin.post(&format!("/api/v2/workspaces/{app}/dependencies"), &declared).await;
    let acknowledge = format!("/api/v2/dependencies/{}/actions/acknowledge", edge.expect(StatusCode::CREATED).id());
    let reason = attributes("dependencies", json!({ "reason": "looked at it" }));
    for (serial, outputs, freshness, change, status) in [
        (2, listed(&["a", "b"]), "stale", "value", "stale"),
        (3, listed(&["a"]), "stale", "value", "stale"),
        (4, zones(json!(["a"]), json!(["list", "string"])), "stale", "value", "stale"),
        (5, zones(json!("a"), json!("string")), "broken", "type", "retyped"),
    ] {
        admin.post(&acknowledge, &reason).await.expect(StatusCode::OK);
        server.given_state(&network, &state(serial, outputs, json!([]))).await;
        let why = why(&admin, &app).await;
        assert_eq!(
            (&why["freshness"], &why["reasons"][0]["outputs"][0]["change"]),
            (&json!(freshness), &json!(change))
        );
        assert_eq!(graph(&admin).await["edges"][0]["status"], status, "{serial}");
    }
}

#[tokio::test]
async fn a_unit_that_follows_its_producer_starts_a_run_when_an_output_that_it_uses_changes() {
    let server = ApiServer::start().await;
    server.given_organization("acme").await;
    let admin = server.admin();
    let network = server.given_workspace("acme", "network").await;
    let app = server.given_workspace("acme", "app").await;
    given_configuration(&server, &app).await;
    let write = async |serial, vpc: &str, other: &str| {
        let outputs = outputs(&[("vpc_id", vpc), ("other", other)]);
        server.given_state(&network, &state(serial, outputs, json!([]))).await;
    };
    write(1, "vpc-0001", "a").await;
    let declared = attributes("dependencies", json!({ "producer": "network", "outputs": ["vpc_id"] }));
    let at = format!("/api/v2/workspaces/{app}/dependencies");
    let edge = admin.post(&at, &declared).await.expect(StatusCode::CREATED).id();
    let runs = async || {
        let listed = admin.get(&format!("/api/v2/workspaces/{app}/runs")).await.expect(StatusCode::OK).data();
        let message = |run: &Value| run["attributes"]["message"].clone();
        listed.as_array().expect("a list").iter().map(message).collect::<Vec<_>>()
    };
    write(2, "vpc-0002", "a").await;
    assert!(runs().await.is_empty(), "it is told, and no more");
    let follows = attributes("dependencies", json!({ "policy": "auto" }));
    admin.patch(&format!("/api/v2/dependencies/{edge}"), &follows).await.expect(StatusCode::OK);
    write(3, "vpc-0002", "b").await;
    assert!(runs().await.is_empty(), "it does not use that output");
    write(4, "vpc-0003", "b").await;
    assert_eq!(runs().await, ["Outputs of the workspace network changed in commit 4"]);
}

/// During an upgrade some servers make output commits, and others do not know of them.
#[tokio::test]
async fn changes_of_outputs_by_older_servers_are_not_lost() {
    let server = ApiServer::start().await;
    server.given_organization("acme").await;
    let admin = server.admin();
    let network = server.given_workspace("acme", "network").await;
    let app = server.given_workspace("acme", "app").await;
    let (other, older) = (server.another().await, server.another_numbered(9).await);
    let written = |serial: u64| state(serial, outputs(&[("vpc_id", &format!("vpc-{serial:010}"))]), json!([]));
    server.given_state(&network, &written(1)).await;
    let read = [("vpc_id", "vpc-0000000001")];
    older.given_state_as_before(&app, &state(1, json!({}), consumer("network", &read, read[0].1))).await;
    assert_eq!(why(&admin, &app).await["freshness"], "clean");
    // Two by an older one, one by each of two newer ones, and the last again by an older one.
    older.given_state_as_before(&network, &written(2)).await;
    older.given_state_as_before(&network, &written(3)).await;
    server.given_state(&network, &written(4)).await;
    other.given_state(&network, &written(5)).await;
    older.given_state_as_before(&network, &written(6)).await;
    assert_eq!(why(&admin, &app).await["freshness"], "stale");
    for server in [&server, &other] {
        let listed = server.admin().get(&format!("/api/v2/workspaces/{network}/output-commits")).await;
        let listed = listed.expect(StatusCode::OK).data();
        let commit = |commit: &Value| (commit["attributes"]["number"].clone(), commit["attributes"]["changes"].clone());
        let commits: Vec<_> = listed.as_array().expect("a list").iter().map(commit).collect();
        let numbers: Vec<_> = commits.iter().map(|(number, _)| number.as_u64()).collect();
        assert_eq!(numbers, [6, 5, 4, 3, 2, 1].map(Some), "each state changed an output: {listed:#}");
    }
    for number in 1..=6 {
        let commit = admin.get(&format!("/api/v2/workspaces/{network}/output-commits/{number}")).await;
        let outputs = commit.expect(StatusCode::OK).attribute("outputs");
        assert_eq!(outputs[0]["value"], format!("vpc-{number:010}"));
    }
}

#[tokio::test]
async fn a_trigger_that_looks_fires_only_when_outputs_changed() {
    let server = ApiServer::start().await;
    server.given_organization("acme").await;
    let admin = server.admin();
    let network = server.given_workspace("acme", "network").await;
    let app = server.given_workspace("acme", "app").await;
    for workspace in [&network, &app] {
        given_configuration(&server, workspace).await;
    }
    let trigger = |looks: bool| {
        let mut body = attributes("run-triggers", json!({ "taco-only-when-outputs-changed": looks }));
        body["data"]["relationships"] = json!({ "sourceable": { "data": { "type": "workspaces", "id": network } } });
        body
    };
    let at = format!("/api/v2/workspaces/{app}/run-triggers");
    for (looks, expected) in [(true, 0), (false, 1)] {
        let made = admin.post(&at, &trigger(looks)).await.expect(StatusCode::CREATED);
        assert_eq!(made.attribute("taco-only-when-outputs-changed"), looks);
        start_run(&admin, &network, json!({ "auto-apply": true })).await.expect(StatusCode::CREATED);
        execute(&server, planned(true)).await;
        execute(&server, applied()).await;
        let runs = admin.get(&format!("/api/v2/workspaces/{app}/runs")).await.data();
        assert_eq!(runs.as_array().expect("a list").len(), expected);
    }
}
