//! Policies and policy sets: who may have what judge plans, and what that does to runs.

use axum::http::StatusCode;
use flate2::Compression;
use flate2::write::GzEncoder;
use harness::api_server::{Answer, ApiServer, Client};
use harness::permission_site::attributes;
use serde_json::{Value, json};

use crate::run_phases::{execute, planned};
use crate::runs::{given_workspace, start_run};
use taco_control_plane::PhaseOutcome;
use taco_domain::run_policies::{PolicyReport, PolicySetReport, PolicyStatus};

const POLICIES: &str = "/api/v2/organizations/acme/policies";
const SETS: &str = "/api/v2/organizations/acme/policy-sets";
const REGO: &str = "package terraform\n\ndeny contains \"no\" if input.plan.bad\n";

async fn given_policy(admin: &Client, name: &str, level: &str) -> String {
    let values = json!({ "name": name, "kind": "opa", "query": "data.terraform.deny", "enforcement-level": level });
    admin.post(POLICIES, &attributes("policies", values)).await.expect(StatusCode::CREATED).id()
}

async fn upload(admin: &Client, policy: &str, code: &str) -> Answer {
    admin.send("PUT", &format!("/api/v2/policies/{policy}/upload"), None, code.to_owned()).await
}

/// A set that applies to everything and has these policies.
async fn given_set(admin: &Client, name: &str, more: Value, policies: &[&str]) -> String {
    let mut values = json!({ "name": name, "kind": "opa", "global": true });
    for (key, value) in more.as_object().expect("an object") {
        values[key] = value.clone();
    }
    let mut body = attributes("policy-sets", values);
    let policies: Vec<Value> = policies.iter().map(|id| json!({ "type": "policies", "id": id })).collect();
    body["data"]["relationships"]["policies"]["data"] = json!(policies);
    admin.post(SETS, &body).await.expect(StatusCode::CREATED).id()
}

fn archive(files: &[(&str, &str)]) -> Vec<u8> {
    let mut archive = tar::Builder::new(GzEncoder::new(Vec::new(), Compression::fast()));
    for (path, text) in files {
        let mut header = tar::Header::new_gnu();
        header.set_size(text.len() as u64);
        header.set_mode(0o644);
        archive.append_data(&mut header, path, text.as_bytes()).expect("room");
    }
    archive.into_inner().and_then(GzEncoder::finish).expect("room")
}

/// The path of an address that an answer names.
fn path_of(address: &Value) -> String {
    let address = address.as_str().expect("an address");
    address.find("/signed/").map_or(address, |start| &address[start..]).to_owned()
}

/// The end of a plan with changes, and what its agent says about a set.
fn judged(set: &str, policies: &[(&str, PolicyStatus)]) -> PhaseOutcome {
    let PhaseOutcome::Planned { has_changes, counts, generated_configuration, engine, .. } = planned(true) else {
        panic!("a plan");
    };
    let report = |(name, status): &(&str, PolicyStatus)| PolicyReport {
        name: (*name).to_owned(),
        status: *status,
        output: if *status == PolicyStatus::Failed { r#"["it is bad"]"#.to_owned() } else { String::new() },
    };
    let reports = PolicySetReport {
        set: set.to_owned(),
        tool_version: Some("1.22.0".to_owned()),
        error: None,
        policies: policies.iter().map(report).collect(),
    };
    PhaseOutcome::Planned { has_changes, counts, generated_configuration, engine, policies: vec![reports] }
}

async fn status(admin: &Client, run: &str) -> Value {
    admin.get(&format!("/api/v2/runs/{run}")).await.expect(StatusCode::OK).attribute("status")
}

#[tokio::test]
async fn a_policy_is_made_uploaded_changed_and_deleted() {
    let server = ApiServer::start().await;
    server.given_organization("acme").await;
    let admin = server.admin();
    let policy = given_policy(&admin, "tags", "mandatory").await;
    let one = format!("/api/v2/policies/{policy}");
    let blank = admin.get(&one).await.expect(StatusCode::OK);
    assert_eq!(blank.attribute("enforce"), json!([]), "it has no code yet");
    admin.get(&format!("{one}/download")).await.expect(StatusCode::NOT_FOUND);
    upload(&admin, &policy, REGO).await.expect(StatusCode::OK);
    let shown = admin.get(&one).await.expect(StatusCode::OK);
    assert_eq!(shown.attribute("enforce"), json!([{ "path": "tags.rego", "mode": "mandatory" }]));
    assert_eq!(shown.attribute("enforcement-level"), "mandatory");

    let set = given_set(&admin, "all", json!({}), &[&policy]).await;
    let changed = attributes("policies", json!({ "description": "Everything has an owner", "query": "data.a.deny" }));
    let changed = admin.patch(&one, &changed).await.expect(StatusCode::OK);
    assert_eq!((changed.attribute("query"), changed.attribute("policy-set-count")), (json!("data.a.deny"), json!(1)));
    let found = admin.get(&format!("{POLICIES}?search[name]=TAG&filter[kind]=opa")).await.expect(StatusCode::OK);
    assert_eq!(found.data().as_array().map(Vec::len), Some(1));
    let none = admin.get(&format!("{POLICIES}?filter[kind]=sentinel")).await.expect(StatusCode::OK);
    assert_eq!(none.data(), json!([]));
    admin.delete(&one).await.expect(StatusCode::NO_CONTENT);
    let left = admin.get(&format!("/api/v2/policy-sets/{set}")).await.expect(StatusCode::OK);
    assert_eq!(left.data()["relationships"]["policies"]["data"], json!([]), "a set goes on without it");
}

#[tokio::test]
async fn bad_policies_are_refused_with_a_reason() {
    let server = ApiServer::start().await;
    server.given_organization("acme").await;
    let admin = server.admin();
    for (values, pointer) in [
        (json!({}), "/data/attributes/name"),
        (json!({ "name": "a b", "kind": "opa", "query": "q" }), "/data/attributes/name"),
        (json!({ "name": "x".repeat(91), "kind": "opa", "query": "q" }), "/data/attributes/name"),
        (json!({ "name": "a", "kind": "tfpolicy" }), "/data/attributes/kind"),
        (json!({ "name": "a", "kind": "opa" }), "/data/attributes/query"),
        (
            json!({ "name": "a", "kind": "opa", "query": "q", "enforcement-level": "soft-mandatory" }),
            "/data/attributes/enforcement-level",
        ),
        (json!({ "name": 7 }), "/data/attributes/name"),
        (json!({ "name": "a", "kind": "opa", "query": "q", "enforce": "x" }), "/data/attributes/enforce"),
    ] {
        let refused = admin.post(POLICIES, &attributes("policies", values.clone())).await;
        let refused = refused.expect(StatusCode::UNPROCESSABLE_ENTITY);
        assert_eq!(refused.json()["errors"][0]["source"]["pointer"], pointer, "{values}");
    }
    let policy = given_policy(&admin, "tags", "advisory").await;
    let twice = json!({ "name": "TAGS", "kind": "opa", "query": "q" });
    admin.post(POLICIES, &attributes("policies", twice)).await.expect(StatusCode::UNPROCESSABLE_ENTITY);
    // What does not compile never comes into use, and its author reads where it is wrong.
    for (code, place) in [
        ("package a\n\ndeny contains msg if {\n  msg :=\n}\n", "tags.rego:5"),
        ("package a\n\ndeny := http.send({})\n", "tags.rego:3"),
        ("deny := 1\n", "tags.rego:1"),
    ] {
        let refused = upload(&admin, &policy, code).await.expect(StatusCode::UNPROCESSABLE_ENTITY);
        let detail = refused.json()["errors"][0]["detail"].as_str().unwrap_or_default().to_owned();
        assert!(detail.contains(place), "{detail}");
    }
    let large = upload(&admin, &policy, &"#".repeat(11 * 1024 * 1024)).await;
    large.expect(StatusCode::PAYLOAD_TOO_LARGE);
    upload(&admin, &policy, "package a\ndeny[msg] { msg := \"as before 1.0\" }\n").await.expect(StatusCode::OK);
}

#[tokio::test]
async fn bad_policy_sets_are_refused_with_a_reason() {
    let server = ApiServer::start().await;
    server.given_organization("acme").await;
    let admin = server.admin();
    for (values, pointer) in [
        (json!({}), "/data/attributes/name"),
        (json!({ "name": "a/b" }), "/data/attributes/name"),
        (json!({ "name": "a", "kind": "rego" }), "/data/attributes/kind"),
        (
            json!({ "name": "a", "kind": "opa", "policy-tool-version": "0.44.0" }),
            "/data/attributes/policy-tool-version",
        ),
        (json!({ "name": "a", "kind": "opa", "policy-tool-version": "../x" }), "/data/attributes/policy-tool-version"),
        (json!({ "name": "a", "kind": "opa", "vcs-repo": { "identifier": "x/y" } }), "/data/attributes/vcs-repo"),
        (json!({ "name": "a", "global": "yes" }), "/data/attributes/global"),
    ] {
        let refused = admin.post(SETS, &attributes("policy-sets", values.clone())).await;
        let refused = refused.expect(StatusCode::UNPROCESSABLE_ENTITY);
        assert_eq!(refused.json()["errors"][0]["source"]["pointer"], pointer, "{values}");
    }
    let sentinel = json!({ "name": "old", "enforcement-level": "hard-mandatory" });
    let sentinel = admin.post(POLICIES, &attributes("policies", sentinel)).await.expect(StatusCode::CREATED).id();
    let set = given_set(&admin, "all", json!({}), &[]).await;
    for (list, kind, id) in [
        ("policies", "policies", sentinel.as_str()),
        ("policies", "policies", "pol-4Tk9mXbq7cWvZpHn"),
        ("workspaces", "workspaces", "ws-4Tk9mXbq7cWvZpHn"),
        ("project-exclusions", "projects", "prj-4Tk9mXbq7cWvZpHn"),
        ("policies", "workspaces", sentinel.as_str()),
    ] {
        let body = json!({ "data": [{ "type": kind, "id": id }] });
        let path = format!("/api/v2/policy-sets/{set}/relationships/{list}");
        admin.post(&path, &body).await.expect(StatusCode::UNPROCESSABLE_ENTITY);
    }
    // Archives that are no policy set.
    let good = ("policies.hcl", "policy \"a\" {\n  query = \"data.terraform.deny\"\n}\n");
    for (files, words) in [
        (vec![("a.rego", REGO)], "policies.hcl"),
        (vec![good], "no *.rego"),
        (vec![("policies.hcl", "policy \"a\" {}"), ("a.rego", REGO)], "needs a query"),
        (vec![good, ("deep/a.rego", "package terraform\n\ndeny contains 1 if {\n")], "deep/a.rego:"),
    ] {
        let version = admin.post(&format!("/api/v2/policy-sets/{set}/versions"), &json!({})).await;
        let version = version.expect(StatusCode::CREATED);
        let path = path_of(&version.data()["links"]["upload"]);
        let refused = server.with_authorization(None).send("PUT", &path, None, archive(&files)).await;
        let refused = refused.expect(StatusCode::UNPROCESSABLE_ENTITY);
        let detail = refused.json()["errors"][0]["detail"].as_str().unwrap_or_default().to_owned();
        assert!(detail.contains(words), "{detail}");
        let shown = admin.get(&format!("/api/v2/policy-set-versions/{}", version.id())).await.expect(StatusCode::OK);
        assert_eq!(shown.attribute("status"), "errored");
        assert!(shown.attribute("error-message").as_str().is_some_and(|message| message.contains(words)));
    }
    let shown = admin.get(&format!("/api/v2/policy-sets/{set}")).await.expect(StatusCode::OK);
    assert!(shown.data()["relationships"]["current-version"].is_null(), "nothing of it is in use");
}

#[tokio::test]
async fn an_archive_brings_its_policies_into_use() {
    let server = ApiServer::start().await;
    let admin = server.admin();
    let workspace = given_workspace(&server).await;
    let set = given_set(&admin, "all", json!({}), &[]).await;
    let version = admin.post(&format!("/api/v2/policy-sets/{set}/versions"), &json!({})).await;
    let version = version.expect(StatusCode::CREATED);
    let path = path_of(&version.data()["links"]["upload"]);
    let hcl = "policy \"bad\" {\n  query = \"data.terraform.deny\"\n  enforcement_level = \"mandatory\"\n}\n";
    let files = archive(&[("policies.hcl", hcl), ("a.rego", REGO), ("a_test.rego", "not rego"), ("README.md", "#")]);
    server.with_authorization(None).send("PUT", &path, None, files.clone()).await.expect(StatusCode::OK);
    server.with_authorization(None).send("PUT", &path, None, files).await.expect(StatusCode::OK);
    let shown = admin.get(&format!("/api/v2/policy-sets/{set}?include=current_version")).await.expect(StatusCode::OK);
    assert_eq!(shown.attribute("policy-count"), 1);
    assert_eq!(shown.json()["included"][0]["attributes"]["status"], "ready");

    let run = start_run(&admin, &workspace, json!({})).await.id();
    execute(&server, judged(&set, &[("bad", PolicyStatus::Passed)])).await;
    assert_eq!(status(&admin, &run).await, "planned");
}

#[tokio::test]
async fn a_mandatory_failure_stops_a_run_and_can_be_overridden_where_that_is_allowed() {
    let server = ApiServer::start().await;
    let admin = server.admin();
    let workspace = given_workspace(&server).await;
    let policy = given_policy(&admin, "bad", "mandatory").await;
    upload(&admin, &policy, REGO).await.expect(StatusCode::OK);
    let set = given_set(&admin, "all", json!({}), &[&policy]).await;
    let failed = || judged(&set, &[("bad", PolicyStatus::Failed)]);

    let run = start_run(&admin, &workspace, json!({})).await.id();
    execute(&server, failed()).await;
    assert_eq!(status(&admin, &run).await, "errored");
    let plan = admin.get(&format!("/api/v2/runs/{run}?include=plan,task_stages")).await.expect(StatusCode::OK);
    let included = plan.json()["included"].as_array().expect("a list").clone();
    let of = |kind: &str| included.iter().find(|one| one["type"] == kind).expect(kind)["attributes"].clone();
    assert_eq!(of("plans")["status"], "finished", "the plan itself was made");
    assert_eq!(of("task-stages")["status"], "failed");
    let path = format!("/api/v2/runs/{run}/actions/override-policies");
    admin.post(&path, &json!({})).await.expect(StatusCode::CONFLICT);

    let overridable = attributes("policy-sets", json!({ "overridable": true }));
    admin.patch(&format!("/api/v2/policy-sets/{set}"), &overridable).await.expect(StatusCode::OK);
    let run = start_run(&admin, &workspace, json!({})).await.id();
    execute(&server, failed()).await;
    assert_eq!(status(&admin, &run).await, "policy_override");
    admin.post(&format!("/api/v2/runs/{run}/actions/apply"), &json!({})).await.expect(StatusCode::CONFLICT);
    let path = format!("/api/v2/runs/{run}/actions/override-policies");
    admin.post(&path, &json!({ "comment": "It has to be" })).await.expect(StatusCode::ACCEPTED);
    assert_eq!(status(&admin, &run).await, "planned");
    admin.post(&path, &json!({})).await.expect(StatusCode::CONFLICT);
    let shown = admin.get(&format!("/api/v2/runs/{run}")).await.expect(StatusCode::OK);
    assert_eq!(shown.attribute("taco-policies")["status"], "overridden");
    admin.post(&format!("/api/v2/runs/{run}/actions/discard"), &json!({})).await.expect(StatusCode::ACCEPTED);

    // One that applies by itself goes on by itself.
    let run = start_run(&admin, &workspace, json!({ "auto-apply": true })).await.id();
    execute(&server, failed()).await;
    let path = format!("/api/v2/runs/{run}/actions/override-policies");
    admin.post(&path, &json!({})).await.expect(StatusCode::ACCEPTED);
    assert_eq!(status(&admin, &run).await, "apply_queued");
}

#[tokio::test]
async fn what_nobody_evaluated_has_not_passed() {
    let server = ApiServer::start().await;
    let admin = server.admin();
    let workspace = given_workspace(&server).await;
    let policy = given_policy(&admin, "bad", "mandatory").await;
    let set = given_set(&admin, "all", json!({}), &[&policy]).await;
    // An agent that does not know of policies, and one that forgot one.
    for outcome in [planned(true), judged(&set, &[])] {
        let run = start_run(&admin, &workspace, json!({})).await.id();
        execute(&server, outcome).await;
        assert_eq!(status(&admin, &run).await, "errored");
        let shown = admin.get(&format!("/api/v2/runs/{run}")).await.expect(StatusCode::OK);
        assert_eq!(shown.attribute("taco-policies")["stopping"], json!(["all/bad"]));
    }
    // Without changes there is nothing to judge.
    let run = start_run(&admin, &workspace, json!({})).await.id();
    execute(&server, planned(false)).await;
    assert_eq!(status(&admin, &run).await, "planned_and_finished");
    // An excluded workspace is not judged.
    let excluded = json!({ "data": [{ "type": "workspaces", "id": workspace }] });
    let path = format!("/api/v2/policy-sets/{set}/relationships/workspace-exclusions");
    admin.post(&path, &excluded).await.expect(StatusCode::NO_CONTENT);
    let run = start_run(&admin, &workspace, json!({})).await.id();
    execute(&server, planned(true)).await;
    assert_eq!(status(&admin, &run).await, "planned");
}

#[tokio::test]
async fn sentinel_is_stored_and_stops_runs_where_it_is_mandatory() {
    let server = ApiServer::start().await;
    let admin = server.admin();
    let workspace = given_workspace(&server).await;
    for (level, expected) in [("advisory", "planned"), ("hard-mandatory", "errored")] {
        let values = json!({ "name": level, "enforcement-level": level });
        let policy = admin.post(POLICIES, &attributes("policies", values)).await.expect(StatusCode::CREATED).id();
        upload(&admin, &policy, "main = rule { true }").await.expect(StatusCode::OK);
        given_set(&admin, level, json!({ "kind": "sentinel" }), &[&policy]).await;
        let run = start_run(&admin, &workspace, json!({})).await.id();
        execute(&server, planned(true)).await;
        assert_eq!(status(&admin, &run).await, expected);
        let evaluation = admin.get(&format!("/api/v2/runs/{run}/task-stages")).await.expect(StatusCode::OK);
        let evaluation = &evaluation.data()[0]["relationships"]["policy-evaluations"]["data"][0]["id"];
        let path = format!("/api/v2/policy-evaluations/{}/policy-set-outcomes", evaluation.as_str().expect("an id"));
        let outcomes = admin.get(&path).await.expect(StatusCode::OK);
        let error = outcomes.data()[0]["attributes"]["error"].as_str().unwrap_or_default().to_owned();
        assert!(error.contains("not evaluated"), "{error}");
        if expected == "planned" {
            admin.post(&format!("/api/v2/runs/{run}/actions/discard"), &json!({})).await.expect(StatusCode::ACCEPTED);
        }
    }
}

#[tokio::test]
async fn outcomes_are_found_by_their_ids_and_by_filters() {
    let server = ApiServer::start().await;
    let admin = server.admin();
    let workspace = given_workspace(&server).await;
    let (good, bad) = (given_policy(&admin, "good", "mandatory").await, given_policy(&admin, "bad", "advisory").await);
    let first = given_set(&admin, "first", json!({}), &[&bad]).await;
    given_set(&admin, "second", json!({}), &[]).await;
    admin
        .post(
            &format!("/api/v2/policy-sets/{first}/relationships/policies"),
            &json!({ "data": [{ "type": "policies", "id": good }] }),
        )
        .await
        .expect(StatusCode::NO_CONTENT);
    let run = start_run(&admin, &workspace, json!({})).await.id();
    execute(&server, judged(&first, &[("good", PolicyStatus::Passed), ("bad", PolicyStatus::Failed)])).await;
    assert_eq!(status(&admin, &run).await, "planned");
    let stage = admin.get(&format!("/api/v2/runs/{run}/task-stages?include=policy_evaluations")).await;
    let stage = stage.expect(StatusCode::OK);
    let evaluation = &stage.json()["included"][0];
    assert_eq!(evaluation["attributes"]["status"], "passed");
    assert_eq!(
        evaluation["attributes"]["result-count"],
        json!({ "advisory-failed": 1, "errored": 0, "mandatory-failed": 0, "passed": 1 })
    );
    let path = format!("/api/v2/policy-evaluations/{}", evaluation["id"].as_str().expect("an id"));
    admin.get(&path).await.expect(StatusCode::OK);
    let path = format!("{path}/policy-set-outcomes");
    let all = admin.get(&path).await.expect(StatusCode::OK);
    assert_eq!(all.data().as_array().map(Vec::len), Some(1), "an empty set says nothing");
    let id = all.data()[0]["id"].as_str().expect("an id").to_owned();
    let one = admin.get(&format!("/api/v2/policy-set-outcomes/{id}")).await.expect(StatusCode::OK);
    assert_eq!(one.attribute("policy-set-name"), "first");
    for (filter, found) in [
        ("filter[0][status]=failed", 1),
        ("filter[0][status]=failed&filter[0][enforcementLevel]=mandatory", 0),
        ("filter[0][status]=errored&filter[1][status]=passed", 1),
    ] {
        let listed = admin.get(&format!("{path}?{filter}")).await.expect(StatusCode::OK);
        assert_eq!(listed.data().as_array().map(Vec::len), Some(found), "{filter}");
    }
}

#[tokio::test]
async fn a_sensitive_parameter_is_never_shown_again() {
    let server = ApiServer::start().await;
    server.given_organization("acme").await;
    let admin = server.admin();
    let set = given_set(&admin, "all", json!({}), &[]).await;
    let path = format!("/api/v2/policy-sets/{set}/parameters");
    let values = json!({ "key": "token", "value": "a secret", "category": "policy-set", "sensitive": true });
    let made = admin.post(&path, &attributes("vars", values)).await.expect(StatusCode::CREATED);
    assert_eq!((made.attribute("sensitive"), made.attribute("value")), (json!(true), Value::Null));
    let one = format!("{path}/{}", made.id());
    let changed = admin.patch(&one, &attributes("vars", json!({ "key": "renamed" }))).await.expect(StatusCode::OK);
    assert_eq!((changed.attribute("key"), changed.attribute("value")), (json!("renamed"), Value::Null));
    for (values, pointer) in [
        (json!({ "key": "a b" }), "/data/attributes/key"),
        (json!({ "sensitive": false }), "/data/attributes/sensitive"),
        (json!({ "category": "env" }), "/data/attributes/category"),
    ] {
        let refused = admin.patch(&one, &attributes("vars", values)).await.expect(StatusCode::UNPROCESSABLE_ENTITY);
        assert_eq!(refused.json()["errors"][0]["source"]["pointer"], pointer);
    }
    admin.delete(&one).await.expect(StatusCode::NO_CONTENT);
    admin.get(&one).await.expect(StatusCode::NOT_FOUND);
}
