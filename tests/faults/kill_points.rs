//! `kill -9` of a server exactly between two of its writes. The client sends the same request to another server, which
//! goes on without repair: nothing that was acknowledged is lost, and nothing is there twice.

use axum::http::StatusCode;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use harness::kill_point::{KillPoint, path_of, wish};
use harness::run_site::{configuration, text};
use harness::stand_in_engine::Step;
use harness::trap_proxy::Moment;
use md5::{Digest as _, Md5};
use serde_json::{Value, json};

const COMMIT: &str = "/log/";
const STATE: &str = "/states/";
const PACK: &str = "/packs/";

async fn free_workspace(site: &KillPoint, name: &str) -> String {
    let body = json!({ "data": { "type": "workspaces", "attributes": { "name": name } } });
    let made = site.done(&wish("POST", "/api/v2/organizations/acme/workspaces", body)).await;
    made["data"]["id"].as_str().expect("an id").to_owned()
}

async fn locked_workspace(site: &KillPoint, name: &str) -> String {
    let workspace = free_workspace(site, name).await;
    site.done(&wish("POST", format!("/api/v2/workspaces/{workspace}/actions/lock"), "{}")).await;
    workspace
}

/// The workspace has this one version, whole.
async fn has_one_version(site: &KillPoint, workspace: &str, bytes: &[u8]) {
    let listed = site.get(&format!("/api/v2/workspaces/{workspace}/state-versions")).await;
    let versions = listed["data"].as_array().expect("a list");
    assert_eq!(versions.len(), 1, "{listed}");
    assert_eq!(versions[0]["attributes"]["status"], "finalized", "{listed}");
    let address = versions[0]["attributes"]["hosted-state-download-url"].as_str().expect("an address");
    assert_eq!(site.download(address).await, bytes);
}

fn state() -> Vec<u8> {
    let state = json!({ "version": 4, "terraform_version": "1.11.4", "serial": 1, "lineage": "a", "outputs": {}, "resources": [] });
    state.to_string().into_bytes()
}

/// A state that is announced, or sent at once.
fn described(inline: bool) -> Value {
    let bytes = state();
    let mut attributes = json!({ "serial": 1, "lineage": "a", "md5": hex::encode(Md5::digest(&bytes)) });
    if inline {
        attributes["state"] = STANDARD.encode(&bytes).into();
    }
    json!({ "data": { "type": "state-versions", "attributes": attributes } })
}

#[tokio::test(flavor = "multi_thread")]
async fn a_state_push_can_be_cut_anywhere() {
    let site = KillPoint::new().await;
    let points = [(Moment::Before, STATE), (Moment::After, STATE), (Moment::Before, COMMIT), (Moment::After, COMMIT)];
    for (number, (moment, key)) in points.into_iter().enumerate() {
        let workspace = locked_workspace(&site, &format!("inline-{number}")).await;
        let versions = format!("/api/v2/workspaces/{workspace}/state-versions");
        let push = wish("POST", &versions, described(true));
        site.kill_at(moment, key, &push).await;
        site.done(&push).await;
        has_one_version(&site, &workspace, &state()).await;

        // The same for the way of the CLIs: announce, then upload.
        let workspace = locked_workspace(&site, &format!("upload-{number}")).await;
        let versions = format!("/api/v2/workspaces/{workspace}/state-versions");
        let announce = wish("POST", &versions, described(false));
        if key == COMMIT {
            site.kill_at(moment, COMMIT, &announce).await;
        }
        let announced = site.done(&announce).await;
        let address = announced["data"]["attributes"]["hosted-state-upload-url"].as_str().expect("an address");
        let upload = wish("PUT", path_of(address), String::from_utf8(state()).expect("text"));
        site.kill_at(moment, key, &upload).await;
        site.done(&upload).await;
        has_one_version(&site, &workspace, &state()).await;
        site.done(&wish("POST", format!("/api/v2/workspaces/{workspace}/actions/unlock"), "")).await;
    }
    site.is_sound();
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_acknowledged_before_the_kill_stays() {
    let site = KillPoint::new().await;
    let workspace = locked_workspace(&site, "web").await;
    let versions = format!("/api/v2/workspaces/{workspace}/state-versions");
    site.done(&wish("POST", &versions, described(true))).await;
    // The next state never becomes one: its client gives up instead of asking again.
    let next = String::from_utf8(state()).expect("text").replace("\"serial\":1", "\"serial\":2");
    let body = json!({ "data": { "type": "state-versions", "attributes": {
        "serial": 2, "lineage": "a", "md5": hex::encode(Md5::digest(&next)), "state": STANDARD.encode(&next) } } });
    for (moment, key) in [(Moment::Before, STATE), (Moment::After, STATE), (Moment::Before, COMMIT)] {
        site.kill_at(moment, key, &wish("POST", &versions, &body)).await;
        has_one_version(&site, &workspace, &state()).await;
    }
    site.is_sound();
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_with_a_key_can_be_cut_and_repeated() {
    let site = KillPoint::new().await;
    for moment in [Moment::Before, Moment::After] {
        let name = format!("{moment:?}").to_lowercase();
        let named = |kind: &str| json!({ "data": { "type": kind, "attributes": { "name": name, "email": "a@b.c" } } });
        let key = |before: &'static str, after: &'static str| if moment == Moment::Before { before } else { after };

        let create = wish("POST", "/api/v2/organizations/acme/workspaces", named("workspaces"));
        let create = create.with_key(key("w1", "w2"));
        site.kill_at(moment, COMMIT, &create).await;
        let workspace = site.done(&create).await["data"]["id"].as_str().expect("an id").to_owned();

        for (action, once) in [("lock", key("l1", "l2")), ("unlock", key("u1", "u2"))] {
            let act = wish("POST", format!("/api/v2/workspaces/{workspace}/actions/{action}"), "{}").with_key(once);
            site.kill_at(moment, COMMIT, &act).await;
            site.done(&act).await;
            let locked = site.get(&format!("/api/v2/workspaces/{workspace}")).await;
            assert_eq!(locked["data"]["attributes"]["locked"], action == "lock");
        }

        let found = wish("POST", "/api/v2/organizations", named("organizations")).with_key(key("o1", "o2"));
        site.kill_at(moment, "/site/log/", &found).await;
        site.done(&found).await;
        site.get(&format!("/api/v2/organizations/{name}/workspaces")).await;

        let delete = wish("DELETE", format!("/api/v2/workspaces/{workspace}"), "").with_key(key("d1", "d2"));
        site.kill_at(moment, COMMIT, &delete).await;
        site.done(&delete).await;
        assert_eq!(site.ask(&wish("GET", format!("/api/v2/workspaces/{workspace}"), "")).await.status, 404);
    }
    site.is_sound();
}

/// All events, newest first.
async fn audit_trail(site: &KillPoint) -> Vec<Value> {
    let mut events = Vec::new();
    for page in 1.. {
        let path = format!("/api/v2/organizations/acme/audit-trail?page[number]={page}&page[size]=100");
        let mut listed = site.get(&path).await;
        let Some(more) = listed["data"].as_array_mut().filter(|more| !more.is_empty()) else { break };
        events.append(more);
    }
    events
}

#[tokio::test(flavor = "multi_thread")]
async fn packing_of_old_commits_can_be_cut_anywhere() {
    let site = KillPoint::new().await;
    let mut names = Vec::new();
    // Until two packs of twenty commits are older than the second newest snapshot.
    while site.snapshots().await.iter().rev().nth(1).is_none_or(|settled| *settled < 40) {
        for _ in 0..10 {
            names.push(format!("w-{}", names.len()));
            free_workspace(&site, &names[names.len() - 1]).await;
        }
    }
    let before = audit_trail(&site).await;
    for (moment, key) in
        [(Moment::Before, PACK), (Moment::After, PACK), (Moment::Before, COMMIT), (Moment::After, COMMIT)]
    {
        site.kill_packing_at(moment, key).await;
        site.is_sound();
        let created = free_workspace(&site, &format!("{moment:?}-{}", key.trim_matches('/'))).await;
        site.get(&format!("/api/v2/workspaces/{created}")).await;
    }
    let packer = site.packing_server();
    while site.packed_commits() < 40 {
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
    drop(packer);
    assert!(audit_trail(&site).await.ends_with(&before), "events of packed commits are as they were");
    for name in names {
        site.get(&format!("/api/v2/organizations/acme/workspaces/{name}")).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_key_a_lock_is_never_given_twice() {
    let site = KillPoint::new().await;
    let lock = |workspace: &str| wish("POST", format!("/api/v2/workspaces/{workspace}/actions/lock"), "{}");
    let workspace = free_workspace(&site, "before").await;
    site.kill_at(Moment::Before, COMMIT, &lock(&workspace)).await;
    site.done(&lock(&workspace)).await;
    // Whether the first answer arrived, only the client could know: another process of the same user may hold the lock.
    let workspace = free_workspace(&site, "after").await;
    site.kill_at(Moment::After, COMMIT, &lock(&workspace)).await;
    let refused = site.ask(&lock(&workspace)).await;
    assert_eq!(refused.status, StatusCode::CONFLICT);
    assert!(refused.json["errors"][0]["detail"].as_str().is_some_and(|text| text.contains("is locked by User admin")));
    site.done(&wish("POST", format!("/api/v2/workspaces/{workspace}/actions/force-unlock"), "")).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_http_backend_can_be_cut_anywhere() {
    let site = KillPoint::new().await;
    for (number, moment) in [Moment::Before, Moment::After].into_iter().enumerate() {
        let name = format!("http-{number}");
        let workspace = free_workspace(&site, &name).await;
        let address = format!("/api/http-backend/acme/{name}");
        let info = json!({ "ID": "one", "Operation": "OperationTypeApply" });
        let text = String::from_utf8(state()).expect("text");
        for (request, keys) in [
            (wish("LOCK", format!("{address}/lock"), &info), &[COMMIT][..]),
            (wish("POST", format!("{address}?ID=one"), text), &[STATE, COMMIT]),
            (wish("UNLOCK", format!("{address}/lock"), &info), &[COMMIT]),
        ] {
            for key in keys {
                site.kill_at(moment, key, &request).await;
            }
            site.done(&request).await;
        }
        has_one_version(&site, &workspace, &state()).await;
    }
    site.is_sound();
}

async fn workspace_with_configuration(site: &KillPoint, name: &str) -> String {
    let workspace = free_workspace(site, name).await;
    site.admin().given_configuration(&workspace, configuration()).await;
    workspace
}

#[tokio::test(flavor = "multi_thread")]
async fn a_decision_about_a_run_can_be_cut_and_is_made_once() {
    let site = KillPoint::new().await;
    let admin = site.admin();
    for moment in [Moment::Before, Moment::After] {
        for (action, end, applies) in [("apply", "applied", 1), ("discard", "discarded", 0)] {
            let name = format!("{action}-{moment:?}");
            let workspace = workspace_with_configuration(&site, &name).await;
            let run = admin.given_planned_run(&workspace).await;
            let path = format!("/api/v2/runs/{run}/actions/{action}");
            let decide = wish("POST", &path, json!({ "comment": "I have looked at it" })).with_key(&name);
            site.kill_at(moment, COMMIT, &decide).await;
            site.done(&decide).await;
            assert_eq!(admin.end_of(&run).await, end, "{name}");
            assert_eq!(site.engine.came_to(Step::ApplyBegins, &run).len(), applies, "{name}");
            let comments = site.get(&format!("/api/v2/runs/{run}/comments")).await;
            assert_eq!(comments["data"].as_array().map(Vec::len), Some(1), "{name}: {comments}");
            assert_eq!(admin.holder_of(&workspace).await, None, "{name}");
            // Without its name it is another decision, which comes too late.
            assert_eq!(site.ask(&wish("POST", &path, "{}")).await.status, StatusCode::CONFLICT, "{name}");
        }
    }
    site.is_sound();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cancel_can_be_cut_and_reaches_the_engine() {
    let site = KillPoint::new().await;
    let admin = site.admin();
    site.engine.hold(Step::Plan);
    for moment in [Moment::Before, Moment::After] {
        let name = format!("cancel-{moment:?}");
        let workspace = workspace_with_configuration(&site, &name).await;
        let run = admin.start_run(&workspace).await;
        let deed = site.engine.comes_to(Step::Plan, &run, 1).await;
        let cancel = wish("POST", format!("/api/v2/runs/{run}/actions/cancel"), "{}").with_key(&name);
        site.kill_at(moment, COMMIT, &cancel).await;
        site.done(&cancel).await;
        assert_eq!(admin.end_of(&run).await, "canceled", "{name}");
        assert_eq!(site.engine.came_to(Step::Interrupted, &run).len(), 1, "{name}");
        assert!(!deed.lives(), "{name}");
        assert_eq!(admin.holder_of(&workspace).await, None, "{name}");
    }
    site.is_sound();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_whose_making_was_cut_is_made_again_and_the_text_that_was_told_works() {
    let site = KillPoint::new().await;
    let user = text(&site.get("/api/v2/account/details").await["data"]["id"]);
    let tokens = format!("/api/v2/users/{user}/authentication-tokens");
    for (moment, made) in [(Moment::Before, 1), (Moment::After, 2)] {
        let description = format!("token-{moment:?}");
        let attributes = json!({ "description": description });
        let body = json!({ "data": { "type": "authentication-tokens", "attributes": attributes } });
        let create = wish("POST", &tokens, body).with_key(&description);
        site.kill_at(moment, "/site/log/", &create).await;
        let told = site.done(&create).await["data"].clone();
        let mut holder = site.admin();
        holder.token = text(&told["attributes"]["token"]);
        assert_eq!(text(&holder.get("/api/v2/account/details").await["data"]["id"]), user);
        // A text is told once and kept nowhere, so the first token has none that anyone knows. People see it and take
        // it away.
        let listed = site.get(&tokens).await["data"].as_array().expect("a list").clone();
        let found = listed.iter().filter(|token| token["attributes"]["description"] == description.as_str());
        let found: Vec<_> = found.map(|token| text(&token["id"])).collect();
        assert_eq!(found.len(), made, "{listed:?}");
        for id in found.iter().filter(|id| told["id"] != **id) {
            site.done(&wish("DELETE", format!("/api/v2/authentication-tokens/{id}"), "")).await;
        }
        holder.get("/api/v2/account/details").await;
    }
    site.is_sound();
}
