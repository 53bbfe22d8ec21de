//! `kill -9` of a server exactly between two of its writes. The client sends the same request to another server, which
//! goes on without repair: nothing that was acknowledged is lost, and nothing is there twice.

use axum::http::StatusCode;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use harness::kill_point::{KillPoint, path_of, wish};
use harness::way_station::Moment;
use md5::{Digest as _, Md5};
use serde_json::{Value, json};

const COMMIT: &str = "/log/";
const STATE: &str = "/states/";

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
