//! States: announced and uploaded, sent at once, read, restored.

mod rules;
mod uploads;

use std::sync::Arc;

use axum::http::StatusCode;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use harness::api_server::{Answer, ApiServer, Client};
use jiff::SignedDuration;
use md5::{Digest, Md5};
use serde_json::{Value, json};
use taco_ledger::{Bucket, LedgerName, ObjectBucket, layout};

pub(crate) fn state(serial: u64, lineage: &str, content: &str) -> Vec<u8> {
    let state = json!({
        "version": 4, "terraform_version": "1.11.4", "serial": serial, "lineage": lineage,
        "outputs": {
            "secret": { "value": content, "type": "string", "sensitive": true },
            "plain": { "value": [content], "type": ["list", "string"] },
        },
        "resources": [{
            "mode": "managed", "type": "terraform_data", "name": "one",
            "provider": "provider[\"terraform.io/builtin/terraform\"]", "instances": [{ "attributes": {} }],
        }],
    });
    state.to_string().into_bytes()
}

fn digest(bytes: &[u8]) -> String {
    hex::encode(Md5::digest(bytes))
}

pub(crate) fn described(serial: u64, lineage: &str, bytes: &[u8]) -> Value {
    json!({ "data": { "type": "state-versions", "attributes": {
        "serial": serial, "lineage": lineage, "md5": digest(bytes), "state": STANDARD.encode(bytes),
    } } })
}

/// The same without one of its attributes.
fn without(mut body: Value, attribute: &str) -> Value {
    body["data"]["attributes"].as_object_mut().expect("an object").remove(attribute);
    body
}

/// Announcement of a state whose bytes are uploaded later.
pub(crate) fn announcement(serial: u64, lineage: &str, bytes: &[u8]) -> Value {
    without(described(serial, lineage, bytes), "state")
}

pub(crate) async fn push(client: &Client, workspace: &str, serial: u64, lineage: &str, content: &str) -> Answer {
    let bytes = state(serial, lineage, content);
    client.post(&format!("/api/v2/workspaces/{workspace}/state-versions"), &described(serial, lineage, &bytes)).await
}

pub(crate) async fn lock(client: &Client, workspace: &str) -> Answer {
    let body = json!({ "data": { "type": "", "attributes": { "reason": "Locked by Terraform" } } });
    client.post(&format!("/api/v2/workspaces/{workspace}/actions/lock"), &body).await
}

pub(crate) fn path_of(url: &Value) -> String {
    url.as_str().expect("an address").strip_prefix("http://taco.test").expect("on this server").to_owned()
}

/// A member of acme with such access to a workspace.
pub(crate) async fn given_member(server: &ApiServer, name: &str, workspace: &str, access: &str) -> Client {
    let (admin, within) = (server.admin(), "/api/v2/organizations/acme");
    let (_, token) = server.given_user(name).await;
    let made = async |path: String, body: Value| admin.post(&path, &body).await.expect(StatusCode::CREATED).id();
    let named = json!({ "data": { "type": "teams", "attributes": { "name": format!("team-of-{name}") } } });
    let team = json!({ "type": "teams", "id": made(format!("{within}/teams"), named).await });
    let member = json!({ "data": { "type": "organization-memberships",
        "attributes": { "email": format!("{name}@acme.test") }, "relationships": { "teams": { "data": [team] } } } });
    let invited = made(format!("{within}/organization-memberships"), member).await;
    server.with_token(&token).accepts(&invited).await;
    let workspace = json!({ "type": "workspaces", "id": workspace });
    let access = json!({ "data": { "type": "team-workspaces", "attributes": { "access": access },
        "relationships": { "team": { "data": team }, "workspace": { "data": workspace } } } });
    made("/api/v2/team-workspaces".to_owned(), access).await;
    server.with_token(&token)
}

pub(crate) async fn locked_workspace(server: &ApiServer) -> String {
    server.given_organization("acme").await;
    let workspace = server.given_workspace("acme", "web").await;
    lock(&server.admin(), &workspace).await.expect(StatusCode::OK);
    workspace
}

#[tokio::test]
async fn what_is_deleted_for_good_is_not_in_the_bucket_any_more() {
    let bucket = Arc::new(ObjectBucket::in_memory());
    let server = ApiServer::start_on(bucket.clone()).await;
    let admin = server.admin();
    let workspace = locked_workspace(&server).await;
    let old = push(&admin, &workspace, 1, "lineage", "old").await.expect(StatusCode::CREATED).id();
    push(&admin, &workspace, 2, "lineage", "new").await.expect(StatusCode::CREATED);
    let ledgers = bucket.folders(&layout::ledgers()).await.expect("a list");
    let organization: LedgerName =
        ledgers.iter().find_map(|name| name.starts_with("org-").then(|| name.parse().ok())?).expect("one");
    let blobs = async || bucket.list(&layout::blobs(&organization), None).await.expect("a list").len();
    let version = format!("/api/v2/state-versions/{old}");
    let resources = async || admin.get(&version).await.expect(StatusCode::OK).attribute("resources");
    assert_eq!((blobs().await, resources().await.as_array().map(Vec::len)), (2, Some(1)));

    admin.act(&format!("{version}/actions/soft_delete_backing_data")).await.expect(StatusCode::NO_CONTENT);
    assert_eq!((blobs().await, resources().await), (2, json!([])));
    admin.act(&format!("{version}/actions/permanently_delete_backing_data")).await.expect(StatusCode::NO_CONTENT);
    assert_eq!(blobs().await, 1);
}

#[tokio::test]
async fn what_nobody_can_bring_back_is_deleted_by_an_admin_of_the_workspace() {
    let server = ApiServer::start().await;
    let workspace = locked_workspace(&server).await;
    let old = push(&server.admin(), &workspace, 1, "a", "old").await.expect(StatusCode::CREATED).id();
    push(&server.admin(), &workspace, 2, "a", "new").await.expect(StatusCode::CREATED);
    let action = |name: &str| format!("/api/v2/state-versions/{old}/actions/{name}_backing_data");
    let writer = given_member(&server, "jane", &workspace, "write").await;
    for undone in ["soft_delete", "restore", "soft_delete"] {
        writer.act(&action(undone)).await.expect(StatusCode::NO_CONTENT);
    }
    let refused = writer.act(&action("permanently_delete")).await.expect(StatusCode::NOT_FOUND);
    assert!(refused.error().0.contains("delete the data of a state for good"), "{:?}", refused.error());
    let keeper = given_member(&server, "kate", &workspace, "admin").await;
    keeper.act(&action("permanently_delete")).await.expect(StatusCode::NO_CONTENT);
}

#[tokio::test]
async fn an_announced_state_counts_when_its_bytes_are_there() {
    let server = ApiServer::start().await;
    let admin = server.admin();
    let workspace = locked_workspace(&server).await;
    let bytes = state(1, "a", "x");
    let body = announcement(1, "a", &bytes);
    let versions = format!("/api/v2/workspaces/{workspace}/state-versions");
    let announced = admin.post(&versions, &body).await.expect(StatusCode::CREATED);
    assert_eq!(announced.attribute("status"), "pending");
    let current = format!("/api/v2/workspaces/{workspace}/current-state-version");
    admin.get(&current).await.expect(StatusCode::NOT_FOUND);

    let again = admin.post(&versions, &body).await.expect(StatusCode::CREATED);
    assert_eq!(again.id(), announced.id(), "a repeated request leads to the same version");
    let unlock = format!("/api/v2/workspaces/{workspace}/actions/unlock");
    // No conflict: go-tfe would tell terraform that the workspace is already unlocked, and terraform would not try again.
    let early = admin.act(&unlock).await.expect(StatusCode::UNPROCESSABLE_ENTITY);
    assert!(early.error().0.contains("latest state version is still pending. Try again"), "{:?}", early.error());

    let anyone = server.with_authorization(None);
    let upload = path_of(&announced.attribute("hosted-state-upload-url"));
    let json_upload = path_of(&announced.attribute("hosted-json-state-upload-url"));
    anyone.send("PUT", &upload, None, bytes.clone()).await.expect(StatusCode::OK);
    anyone.send("PUT", &upload, None, state(1, "a", "y")).await.expect(StatusCode::NOT_FOUND);
    anyone.send("PUT", &json_upload, None, b"{}".to_vec()).await.expect(StatusCode::OK);
    anyone.send("PUT", &json_upload, None, b"[]".to_vec()).await.expect(StatusCode::NOT_FOUND);

    let read = admin.get(&current).await.expect(StatusCode::OK);
    for answer in [&announced, &read] {
        assert_eq!(answer.headers["x-terraform-snapshot-interval"], "20");
    }
    assert_eq!(read.id(), announced.id());
    assert_eq!(read.attribute("status"), "finalized");
    assert_eq!(read.attribute("resources")[0]["type"], "terraform_data");
    let download = path_of(&read.attribute("hosted-state-download-url"));
    assert_eq!(anyone.get(&download).await.expect(StatusCode::OK).bytes, bytes);
    admin.act(&unlock).await.expect(StatusCode::OK);
}

#[tokio::test]
async fn a_signed_address_opens_one_thing_for_one_verb_and_a_while() {
    let server = ApiServer::start().await;
    let workspace = locked_workspace(&server).await;
    let pushed = push(&server.admin(), &workspace, 1, "a", "x").await.expect(StatusCode::CREATED);
    let anyone = server.with_authorization(None);
    let download = path_of(&pushed.attribute("hosted-state-download-url"));
    anyone.get(&download).await.expect(StatusCode::OK);
    let (object, pass) = download.rsplit_once('/').expect("a path");
    for altered in [
        format!("{object}/{}", pass.replace('-', "-0")),
        format!("{object}/9{pass}"),
        format!("{object}x/{pass}"),
        format!("{download}/x"),
        download.replace("/signed/state/", "/signed/json-state/"),
        format!("{object}/-"),
    ] {
        anyone.get(&altered).await.expect(StatusCode::NOT_FOUND);
    }
    anyone.send("PUT", &download, None, "{}").await.expect(StatusCode::NOT_FOUND);
    server.pass(SignedDuration::from_hours(26));
    anyone.get(&download).await.expect(StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn a_state_follows_the_one_before_it() {
    let server = ApiServer::start().await;
    let admin = server.admin();
    server.given_organization("acme").await;
    let workspace = server.given_workspace("acme", "web").await;
    push(&admin, &workspace, 5, "a", "x").await.expect(StatusCode::CONFLICT);
    lock(&admin, &workspace).await.expect(StatusCode::OK);
    let first = push(&admin, &workspace, 5, "a", "x").await.expect(StatusCode::CREATED);
    let same = push(&admin, &workspace, 5, "a", "x").await.expect(StatusCode::CREATED);
    assert_eq!(same.id(), first.id());
    for (serial, lineage, content) in [(5, "a", "y"), (4, "a", "x"), (6, "b", "x")] {
        push(&admin, &workspace, serial, lineage, content).await.expect(StatusCode::CONFLICT);
    }
    push(&admin, &workspace, 6, "a", "y").await.expect(StatusCode::CREATED);
    let listed = admin.get(&format!("/api/v2/workspaces/{workspace}/state-versions")).await.expect(StatusCode::OK);
    let serials: Vec<_> =
        listed.data().as_array().expect("a list").iter().map(|one| one["attributes"]["serial"].clone()).collect();
    assert_eq!(serials, [6, 5]);
}

#[tokio::test]
async fn restoring_writes_old_content_under_a_new_serial() {
    let server = ApiServer::start().await;
    let admin = server.admin();
    let workspace = locked_workspace(&server).await;
    let old = push(&admin, &workspace, 1, "a", "old").await.expect(StatusCode::CREATED).id();
    push(&admin, &workspace, 2, "a", "new").await.expect(StatusCode::CREATED);
    let body = json!({ "data": { "type": "state-versions", "relationships": {
        "rollback-state-version": { "data": { "type": "state-versions", "id": old } },
    } } });
    let restored =
        admin.patch(&format!("/api/v2/workspaces/{workspace}/state-versions"), &body).await.expect(StatusCode::CREATED);
    assert_eq!(restored.attribute("serial"), 3);
    let bytes = admin.get(&path_of(&restored.attribute("hosted-state-download-url"))).await.bytes;
    let state: Value = serde_json::from_slice(&bytes).expect("JSON");
    assert_eq!((&state["serial"], &state["outputs"]["plain"]["value"][0]), (&json!(3), &json!("old")));
}

#[tokio::test]
async fn outputs_are_listed_without_secrets_and_read_one_by_one() {
    let server = ApiServer::start().await;
    let admin = server.admin();
    server.given_organization("acme").await;
    let empty = server.given_workspace("acme", "empty").await;
    let outputs = |workspace: &str| format!("/api/v2/workspaces/{workspace}/current-state-version-outputs");
    assert_eq!(admin.get(&outputs(&empty)).await.expect(StatusCode::OK).data(), json!([]));

    let workspace = server.given_workspace("acme", "web").await;
    lock(&admin, &workspace).await.expect(StatusCode::OK);
    push(&admin, &workspace, 1, "a", "s3cr3t").await.expect(StatusCode::CREATED);
    let listed = admin.get(&outputs(&workspace)).await.expect(StatusCode::OK);
    assert!(listed.data()[0]["attributes"]["name"] == "plain" && listed.data()[1]["attributes"]["name"] == "secret");
    assert_eq!(listed.data()[0]["attributes"]["detailed-type"], json!(["list", "string"]));
    assert_eq!(listed.data()[1]["attributes"]["value"], Value::Null);
    let id = listed.data()[1]["id"].as_str().expect("an id").to_owned();
    let one = admin.get(&format!("/api/v2/state-version-outputs/{id}")).await.expect(StatusCode::OK);
    assert_eq!(one.attribute("value"), "s3cr3t");
    let resources = admin.get(&format!("/api/v2/workspaces/{workspace}/resources")).await.expect(StatusCode::OK);
    assert_eq!(resources.data()[0]["attributes"]["address"], "terraform_data.one");
}

#[tokio::test]
async fn bad_states_are_refused_and_change_nothing() {
    let server = ApiServer::start().await;
    let admin = server.admin();
    let workspace = locked_workspace(&server).await;
    let path = format!("/api/v2/workspaces/{workspace}/state-versions");
    let good = state(1, "a", "x");
    let mut wrong_md5 = described(1, "a", &good);
    wrong_md5["data"]["attributes"]["md5"] = "0".repeat(32).into();
    let mut no_base64 = described(1, "a", &good);
    no_base64["data"]["attributes"]["state"] = "***".into();
    for (body, pointer, words) in [
        (wrong_md5, "/data/attributes/md5", "MD5 mismatch: got"),
        (no_base64, "/data/attributes/state", "base64"),
        (described(1, "a", b"garbage"), "/data/attributes/state", "not JSON"),
        (described(1, "a", b" "), "/data/attributes/state", "not JSON"),
        (
            described(1, "a", br#"{"version":3,"serial":1,"lineage":"a"}"#),
            "/data/attributes/state",
            "version 3 is not supported",
        ),
        (described(2, "a", &good), "/data/attributes/serial", "Serial 2"),
        (
            json!({ "data": { "type": "state-versions", "attributes": { "md5": "x" } } }),
            "/data/attributes/serial",
            "serial",
        ),
    ] {
        let answer = admin.post(&path, &body).await.expect(StatusCode::UNPROCESSABLE_ENTITY);
        let (detail, place) = answer.error();
        assert_eq!(place.as_deref(), Some(pointer), "{detail}");
        assert!(detail.contains(words), "{detail}");
    }
    admin.get(&format!("/api/v2/workspaces/{workspace}/current-state-version")).await.expect(StatusCode::NOT_FOUND);
    let encrypted = br#"{"serial":1,"lineage":"a","encrypted_data":"xx","encryption_version":"v0","meta":{}}"#;
    let accepted = admin.post(&path, &described(1, "a", encrypted)).await.expect(StatusCode::CREATED);
    assert_eq!(accepted.attribute("encrypted"), true);
}
