//! Details in the responses to bad input: what was wrong, what is allowed, and where.

use axum::http::StatusCode;
use harness::api_server::{Answer, ApiServer, Client};
use serde_json::{Value, json};
use taco_control_plane::PhaseOutcome;

use crate::run_phases::{execute, planned, take};
use crate::runs::{act, given_workspace, start_run};
use crate::states::{described, lock, locked_workspace, path_of, push, state};

const JSON_API: Option<&str> = Some("application/vnd.api+json");

/// A refusal that names a place and contains all these texts.
#[track_caller]
fn refused_at(answer: Answer, pointer: &str, words: &[&str]) {
    let answer = answer.expect(StatusCode::UNPROCESSABLE_ENTITY);
    let (detail, place) = answer.error();
    assert_eq!(place.as_deref(), Some(pointer), "{detail}");
    for word in words {
        assert!(detail.contains(word), "{word} is missing in: {detail}");
    }
}

#[track_caller]
fn conflict(answer: Answer, words: &[&str]) {
    let (detail, _) = answer.expect(StatusCode::CONFLICT).error();
    for word in words {
        assert!(detail.contains(word), "{word} is missing in: {detail}");
    }
}

#[tokio::test]
async fn a_body_that_is_no_json_is_told_where_it_breaks() {
    let server = ApiServer::start().await;
    let deep = format!("{{\"data\":\n{}", "[".repeat(80));
    for (body, place) in [
        ("{\n  \"data\": {\n", "at 3:"),
        ("{\"data\": {\"type\": \"organizations\",\n \"type\": \"organizations\"}}", "at 2:"),
        ("{\"data\": {\"attributes\": {\"name\": \"a\",\n \"name\": \"b\"}}}", "at 2:"),
        ("{\"data\": {\"attributes\":\n {\"name\": NaN}}}", "at 2:"),
        ("{\"data\": Infinity}", "at 1:"),
        ("{} x", "at 1:"),
        ("\u{feff}{}", "at 1:"),
        (&deep, "64 levels"),
    ] {
        let (method, path) = ("POST", "/api/v2/organizations");
        let answer = server.admin().send(method, path, JSON_API, body.to_owned()).await;
        let detail = answer.expect(StatusCode::BAD_REQUEST).error().0;
        assert!(detail.contains(place), "{body:?}: {detail}");
    }
    let json =
        server.admin().send("POST", "/api/v2/organizations", Some("application/json; charset=utf-8"), "{}").await;
    json.expect(StatusCode::UNPROCESSABLE_ENTITY);
    for wrong in ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x"] {
        let answer = server.admin().send("POST", "/api/v2/organizations", Some(wrong), "{}").await;
        let detail = answer.expect(StatusCode::UNSUPPORTED_MEDIA_TYPE).error().0;
        assert!(detail.contains("application/vnd.api+json"), "{detail}");
    }
}

#[tokio::test]
async fn an_attribute_of_the_wrong_kind_is_told_the_right_one() {
    let server = ApiServer::start().await;
    let admin = server.admin();
    server.given_organization("acme").await;
    let workspace = format!("/api/v2/workspaces/{}", server.given_workspace("acme", "web").await);
    for (attribute, value, expected) in [
        ("name", json!(7), "string"),
        ("name", json!(["web"]), "string"),
        ("auto-apply", json!("yes"), "boolean"),
        ("auto-apply", json!(1), "boolean"),
        ("trigger-patterns", json!("**"), "sequence"),
        ("description", json!({}), "string"),
    ] {
        let body = json!({ "data": { "type": "workspaces", "attributes": { attribute: value } } });
        refused_at(admin.patch(&workspace, &body).await, &format!("/data/attributes/{attribute}"), &[expected]);
    }
    let wrong_kind = json!({ "data": { "type": "teams", "attributes": {} } });
    refused_at(admin.patch(&workspace, &wrong_kind).await, "/data/type", &["workspaces", "teams"]);
}

#[tokio::test]
async fn a_page_behind_the_last_is_empty_and_knows_how_many_there_are() {
    let server = ApiServer::start().await;
    let admin = server.admin();
    for name in ["one", "two", "three"] {
        server.given_organization(name).await;
    }
    let behind = admin.get("/api/v2/organizations?page[number]=9&page[size]=2").await.expect(StatusCode::OK).json();
    assert_eq!(behind["data"], json!([]));
    let pagination = &behind["meta"]["pagination"];
    let told = ["current-page", "page-size", "total-count", "total-pages"].map(|name| pagination[name].clone());
    assert_eq!(told, [json!(9), json!(2), json!(3), json!(2)]);
    assert_eq!(pagination["next-page"], Value::Null);
    for (query, allowed) in [("page[size]=0", "1"), ("page[size]=x", "1"), ("page[number]=0", "1")] {
        let refused = admin.get(&format!("/api/v2/organizations?{query}")).await.expect(StatusCode::BAD_REQUEST);
        assert!(refused.error().0.contains(allowed), "{refused:?}");
        let name = query.split_once('=').expect("a pair").0;
        assert_eq!(refused.json()["errors"][0]["source"]["parameter"], name);
    }
}

#[tokio::test]
async fn what_a_query_asks_for_beyond_our_knowledge_is_ignored() {
    let server = ApiServer::start().await;
    let admin = server.admin();
    server.given_organization("acme").await;
    server.given_workspace("acme", "web").await;
    for path in ["/api/v2/organizations/acme/workspaces", "/api/v2/organizations", "/api/v2/organizations/acme/teams"] {
        let plain = admin.get(path).await.expect(StatusCode::OK).data();
        for query in ["include=moon,sun.flare", "filter[moon]=full", "search[moon]=x", "moon", "%5B%5D=1", "a[b][c]=d"]
        {
            let answer = admin.get(&format!("{path}?{query}")).await.expect(StatusCode::OK);
            assert_eq!(answer.data(), plain, "{path}?{query}");
        }
    }
}

#[tokio::test]
async fn a_name_that_cannot_be_is_told_what_can() {
    let server = ApiServer::start().await;
    let admin = server.admin();
    server.given_organization("acme").await;
    server.given_workspace("acme", "web").await;
    let named = |kind: &str, name: &str| json!({ "data": { "type": kind, "attributes": { "name": name, "email": "a@acme.test" } } });
    let workspaces = "/api/v2/organizations/acme/workspaces";
    for name in ["a b", "a/b", "a:b", "..", "a\0", "a\u{202e}b", "w\u{435}b"] {
        let answer = admin.post(workspaces, &named("workspaces", name)).await;
        refused_at(answer, "/data/attributes/name", &["letters, numbers, hyphens and underscores"]);
    }
    refused_at(admin.post(workspaces, &named("workspaces", "-a")).await, "/data/attributes/name", &["-"]);
    let long = admin.post(workspaces, &named("workspaces", &"x".repeat(91))).await;
    refused_at(long, "/data/attributes/name", &["90"]);
    let taken = admin.post("/api/v2/organizations/acme/workspaces", &named("workspaces", "WEB")).await;
    refused_at(taken, "/data/attributes/name", &["Name has already been taken"]);
    for (name, words) in [
        ("ab", "3"),
        ("a b", "letters, numbers"),
        ("a/b", "letters, numbers"),
        ("a\u{202e}bc", "letters, numbers"),
        (".well-known", "letters, numbers"),
        (&"x".repeat(41), "40"),
    ] {
        let answer = admin.post("/api/v2/organizations", &named("organizations", name)).await;
        refused_at(answer, "/data/attributes/name", &[words]);
    }
    let taken = admin.post("/api/v2/organizations", &named("organizations", "Acme")).await;
    refused_at(taken, "/data/attributes/name", &["already been taken"]);
    let projects = "/api/v2/organizations/acme/projects";
    admin.post(projects, &named("projects", "Network")).await.expect(StatusCode::CREATED);
    let taken = admin.post(projects, &named("projects", "network")).await;
    refused_at(taken, "/data/attributes/name", &["already been taken"]);
    // What a person typed comes back short, and without what a terminal would obey.
    let rude = format!("\u{1b}[31m{}", "y".repeat(300));
    let detail = admin.post("/api/v2/organizations", &named("organizations", &rude)).await.error().0;
    assert!(!detail.contains('\u{1b}') && detail.len() < 400, "{detail}");
}

#[tokio::test]
async fn a_state_that_does_not_follow_is_told_both_sides() {
    let server = ApiServer::start().await;
    let admin = server.admin();
    server.given_organization("acme").await;
    let workspace = server.given_workspace("acme", "web").await;
    conflict(push(&admin, &workspace, 5, "one", "x").await, &["locked"]);
    lock(&admin, &workspace).await.expect(StatusCode::OK);
    push(&admin, &workspace, 5, "one", "x").await.expect(StatusCode::CREATED);
    conflict(push(&admin, &workspace, 5, "one", "y").await, &["serial 5"]);
    conflict(push(&admin, &workspace, 4, "one", "y").await, &["serial 4", "5"]);
    conflict(push(&admin, &workspace, 6, "two", "y").await, &["two", "one"]);
    push(&admin, &workspace, 5, "one", "x").await.expect(StatusCode::CREATED);
    let path = format!("/api/v2/workspaces/{workspace}/state-versions");
    let mut mismatch = described(6, "one", &state(6, "one", "z"));
    mismatch["data"]["attributes"]["md5"] = "0".repeat(32).into();
    refused_at(admin.post(&path, &mismatch).await, "/data/attributes/md5", &["MD5 mismatch: got", &"0".repeat(32)]);
}

#[tokio::test]
async fn an_address_for_an_upload_opens_nothing_else() {
    let server = ApiServer::start().await;
    let workspace = locked_workspace(&server).await;
    let body = json!({ "data": { "type": "state-versions", "attributes": {
        "serial": 1, "lineage": "a", "md5": "0".repeat(32),
    } } });
    let announced = server.admin().post(&format!("/api/v2/workspaces/{workspace}/state-versions"), &body).await;
    let upload = path_of(&announced.expect(StatusCode::CREATED).attribute("hosted-state-upload-url"));
    let anyone = server.with_authorization(None);
    let missing = anyone.send("PUT", &format!("{upload}x"), None, "{}").await.expect(StatusCode::NOT_FOUND);
    let read = anyone.get(&upload).await.expect(StatusCode::NOT_FOUND);
    assert_eq!(read.bytes, missing.bytes, "nobody learns what is wrong with an address");
    for (method, altered) in [
        ("PUT", format!("{upload}/..")),
        ("PUT", upload.replacen("/signed/state/", "/signed/json-state/", 1)),
        ("PUT", upload.replacen("/signed/state/", "/signed/configuration/", 1)),
        ("PUT", upload.replacen("/signed/", "/signed/%2e%2e/signed/", 1)),
    ] {
        anyone.send(method, &altered, None, "{}").await.expect(StatusCode::NOT_FOUND);
    }
    anyone.send("DELETE", &upload, None, "").await.expect(StatusCode::METHOD_NOT_ALLOWED);
}

#[tokio::test]
async fn what_a_run_cannot_do_now_is_told_with_its_status() {
    let server = ApiServer::start().await;
    let admin = server.admin();
    let workspace = given_workspace(&server).await;
    let run = start_run(&admin, &workspace, json!({})).await.id();
    conflict(act(&admin, &run, "apply").await, &["plan_queued", "planned"]);
    conflict(act(&admin, &run, "discard").await, &["plan_queued", "planned"]);
    execute(&server, planned(false)).await;
    for action in ["apply", "discard", "cancel", "force-cancel"] {
        conflict(act(&admin, &run, action).await, &["planned_and_finished"]);
    }
    let run = start_run(&admin, &workspace, json!({})).await.id();
    take(&server).await;
    conflict(act(&admin, &run, "force-cancel").await, &["cancel the run first"]);
    act(&admin, &run, "cancel").await.expect(StatusCode::ACCEPTED);
    let at = admin.get(&format!("/api/v2/runs/{run}")).await.attribute("force-cancel-available-at");
    conflict(act(&admin, &run, "force-cancel").await, &[at.as_str().expect("a time")]);
}

#[tokio::test]
async fn a_comment_has_words_and_an_end() {
    let server = ApiServer::start().await;
    let admin = server.admin();
    let workspace = given_workspace(&server).await;
    let run = start_run(&admin, &workspace, json!({})).await.id();
    let comments = format!("/api/v2/runs/{run}/comments");
    let comment = async |text: &str| {
        let body = json!({ "data": { "type": "comments", "attributes": { "body": text } } });
        admin.post(&comments, &body).await
    };
    for text in ["", " \n\t"] {
        refused_at(comment(text).await, "/data/attributes/body", &["blank"]);
    }
    refused_at(comment(&"x".repeat(4097)).await, "/data/attributes/body", &["4096"]);
    comment(&"x".repeat(4096)).await.expect(StatusCode::CREATED);
    assert_eq!(admin.get(&comments).await.data().as_array().map(Vec::len), Some(1));
}

#[tokio::test]
async fn a_token_that_could_never_be_used_is_not_made() {
    let server = ApiServer::start().await;
    let admin = server.admin();
    let user = admin.get("/api/v2/account/details").await.expect(StatusCode::OK).id();
    let path = format!("/api/v2/users/{user}/authentication-tokens");
    for (date, words) in [("2020-01-01T00:00:00Z", "future"), ("soon", "2026"), ("2030-02-31T00:00:00Z", "2026")] {
        let body = json!({ "data": { "type": "authentication-tokens", "attributes": { "expired-at": date } } });
        refused_at(admin.post(&path, &body).await, "/data/attributes/expired-at", &[words]);
    }
    let listed = admin.get(&path).await.expect(StatusCode::OK).data();
    assert_eq!(listed, json!([]), "nothing was made");
}

/// Readers cannot confirm: a 404 as in Terraform Cloud, with the reason for those who may know of the run.
#[tokio::test]
async fn whoever_may_look_and_not_act_is_told_why() {
    let server = ApiServer::start().await;
    let admin = server.admin();
    let workspace = given_workspace(&server).await;
    let planner = given_member(&server, &admin, &workspace, "plan").await;
    let run = start_run(&admin, &workspace, json!({})).await.id();
    execute(&server, planned(true)).await;
    planner.get(&format!("/api/v2/runs/{run}")).await.expect(StatusCode::OK);
    let refused = act(&planner, &run, "apply").await.expect(StatusCode::NOT_FOUND);
    assert!(!refused.error().0.is_empty(), "{refused:?}");
    assert_eq!(admin.get(&format!("/api/v2/runs/{run}")).await.attribute("status"), "planned");
    let force = format!("/api/v2/workspaces/{workspace}/actions/force-unlock");
    planner.act(&force).await.expect(StatusCode::NOT_FOUND);
}

/// Someone whose team has this access to a workspace.
async fn given_member(server: &ApiServer, admin: &Client, workspace: &str, access: &str) -> Client {
    let team = json!({ "data": { "type": "teams", "attributes": { "name": "team" } } });
    let team = admin.post("/api/v2/organizations/acme/teams", &team).await.expect(StatusCode::CREATED).id();
    let (_, token) = server.given_user("jane").await;
    let member = json!({ "data": { "type": "organization-memberships", "attributes": { "email": "jane@acme.test" },
        "relationships": { "teams": { "data": [{ "type": "teams", "id": team }] } } } });
    let members = "/api/v2/organizations/acme/organization-memberships";
    let invited = admin.post(members, &member).await.expect(StatusCode::CREATED).id();
    server.with_token(&token).accepts(&invited).await;
    let given = json!({ "data": { "type": "team-workspaces", "attributes": { "access": access }, "relationships": {
        "team": { "data": { "type": "teams", "id": team } },
        "workspace": { "data": { "type": "workspaces", "id": workspace } },
    } } });
    admin.post("/api/v2/team-workspaces", &given).await.expect(StatusCode::CREATED);
    server.with_token(&token)
}

/// Reports of an agent about a phase that is no longer its own change nothing.
#[tokio::test]
async fn a_phase_that_ended_takes_nothing_more() {
    let server = ApiServer::start().await;
    let admin = server.admin();
    let workspace = given_workspace(&server).await;
    let run = start_run(&admin, &workspace, json!({})).await.id();
    let phase = take(&server).await;
    let plane = &server.control_plane;
    let log = |offset, text: &'static str| plane.append_log(&phase, offset, text.into());
    log(0, "one\n").await.expect("the beginning");
    log(0, "one\n").await.expect("the same again");
    assert_eq!(log(2, "e\ntwo\n").await.expect("it overlaps and goes on"), 8);
    assert_eq!(elsewhere(log(100, "far away").await.expect_err("a gap")), 8);
    plane.finish_phase(&phase, planned(false)).await.expect("the plan ends");
    plane.finish_phase(&phase, planned(false)).await.expect("the same again");
    let failed = PhaseOutcome::Errored { message: "something else".to_owned(), engine: None };
    plane.finish_phase(&phase, failed).await.expect("whoever reports once more is not to try again");
    assert_eq!(admin.get(&format!("/api/v2/runs/{run}")).await.attribute("status"), "planned_and_finished");
}

fn elsewhere(refusal: taco_control_plane::LogRefusal) -> u64 {
    match refusal {
        taco_control_plane::LogRefusal::Elsewhere { next } => next,
        taco_control_plane::LogRefusal::Error(error) => panic!("{error}"),
    }
}
