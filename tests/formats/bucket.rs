//! A whole bucket as a real server, its agent and its clients left it, with everything sealed by a key that is no secret.
//! Every later version serves it.

use std::fs;
use std::path::{Path, PathBuf};

use harness::api_client::ApiClient;
use harness::home::{Home, ServerProcess};
use harness::run_site::{RunSite, SITE_TOKEN, admin_of, text};
use nix::sys::signal::Signal;
use serde_json::{Value, json};
use taco_domain::{OrganizationState, Site};
use taco_ledger::{
    Dice, Environment, Ledger, LedgerName, Location, MasterKey, MasterKeys, Options, Peers, SystemClock, layout,
};
use taco_tables::State;

use crate::frozen::formats;

const KEY: &str = "a key that only these tests know";

/// Below the folder of a format.
const PLACE: &str = "bucket";

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("a directory");
    for entry in fs::read_dir(from).expect("a directory") {
        let entry = entry.expect("an entry");
        let target = to.join(entry.file_name());
        if entry.path().is_dir() {
            copy(&entry.path(), &target);
        } else {
            fs::copy(entry.path(), target).expect("copied");
        }
    }
}

fn frozen_buckets() -> Vec<PathBuf> {
    formats().into_iter().map(|format| format.join(PLACE)).filter(|bucket| bucket.exists()).collect()
}

fn command_output(home: &Home, words: &[&str]) -> String {
    let output = home.taco(words).env("TACO_SECRET_KEY", KEY).output().expect("it runs");
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "taco {words:?}: {said}{}", String::from_utf8_lossy(&output.stderr));
    said
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bucket_of_every_format_is_served() {
    let buckets = frozen_buckets();
    assert!(!buckets.is_empty(), "there is at least one");
    for bucket in buckets {
        let home = Home::default();
        copy(&bucket, &home.bucket());
        let said = command_output(&home, &["doctor", "--deep", "--json"]);
        let findings: Value = serde_json::from_str(&said).expect("JSON");
        for check in ["ledgers", "records", "objects"] {
            let finding = findings.as_array().expect("a list").iter().find(|finding| finding["check"] == check);
            assert_eq!(finding.expect("a finding")["outcome"], "passed", "{}: {said}", bucket.display());
        }
        command_output(&home, &["audit", "verify"]);
        let mut command = home.taco(&["server"]);
        command.env("TACO_LISTEN", "127.0.0.1:0").env("TACO_SITE_TOKEN", SITE_TOKEN).env("TACO_SECRET_KEY", KEY);
        let server = ServerProcess::start(command.env("TACO_AGENT_CONCURRENCY", "0"));
        shows_what_was_stored(&admin_of(&server.address)).await;
        command_output(&home, &["audit", "verify"]);
    }
}

/// What [`fill`] left, read and changed through the API.
async fn shows_what_was_stored(admin: &ApiClient) {
    let workspace = admin.workspace("acme", "web").await;
    assert_eq!(workspace["attributes"]["description"], "the site");
    let id = text(&workspace["id"]);
    let runs = admin.get(&format!("/api/v2/workspaces/{id}/runs")).await;
    let status = |run: &Value| text(&run["attributes"]["status"]);
    let runs = runs["data"].as_array().expect("a list").clone();
    assert_eq!(runs.iter().map(status).collect::<Vec<_>>(), ["planned", "applied"]);
    let applied = text(&runs[1]["id"]);
    assert_eq!(admin.work_in_state(&id).await, Some(format!("all of {applied}")), "the state can be unsealed");
    for phase in ["plan", "apply"] {
        assert!(admin.log_of(&applied, phase).await.len() > 10, "the log of the {phase} can be read");
    }
    let comments = admin.get(&format!("/api/v2/runs/{applied}/comments")).await;
    assert_eq!(comments["data"][0]["attributes"]["body"], "It looks good");
    let variables = admin.get(&format!("/api/v2/workspaces/{id}/vars")).await;
    let keys = variables["data"].as_array().expect("a list").iter().map(|one| text(&one["attributes"]["key"]));
    assert_eq!(keys.collect::<std::collections::BTreeSet<_>>(), ["PASSWORD".to_owned(), "region".to_owned()].into());
    let teams = admin.get("/api/v2/organizations/acme/teams").await;
    assert_eq!(teams["data"].as_array().expect("a list").len(), 2);
    let body = json!({ "data": { "type": "workspaces", "attributes": { "description": "changed" } } });
    admin.patch(&format!("/api/v2/workspaces/{id}"), body).await;
    admin.post(&format!("/api/v2/runs/{}/actions/discard", text(&runs[0]["id"])), json!({})).await;
}

/// Writes the bucket of the newest format, if it has none. It is not made again: it is what one version wrote.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "makes a bucket for a new format"]
async fn write_a_bucket() {
    let place = formats().pop().expect("a format").join(PLACE);
    assert!(!place.exists(), "{} is frozen", place.display());
    let (site, mut server) = RunSite::with_lease(60).await;
    let agent = site.agent("agent-1", &server.address);
    fill(&site, &admin_of(&server.address)).await;
    let beacons = tempfile::tempdir().expect("a directory");
    copy(&site.home.bucket().join("beacons"), beacons.path());
    drop(agent);
    server.process.signal(Signal::SIGTERM);
    assert!(server.process.wait().success());
    for folder in fs::read_dir(site.home.bucket().join("ledgers")).expect("ledgers") {
        let name: LedgerName = folder.expect("a ledger").file_name().to_str().expect("text").parse().expect("a name");
        if name == LedgerName::site() {
            write_snapshot::<Site>(&site.home.bucket(), name).await;
        } else {
            write_snapshot::<OrganizationState>(&site.home.bucket(), name).await;
        }
    }
    copy(&site.home.bucket(), &place);
    copy(beacons.path(), &place.join("beacons"));
}

async fn fill(site: &RunSite, admin: &ApiClient) {
    let id = site.given_workspace(admin, "web").await;
    let at = format!("/api/v2/workspaces/{id}");
    let make = async |path: &str, kind: &str, attributes: Value| {
        admin.post(path, json!({ "data": { "type": kind, "attributes": attributes } })).await["data"].clone()
    };
    let body = json!({ "data": { "type": "workspaces", "attributes": { "description": "the site" } } });
    admin.patch(&at, body).await;
    make(&format!("{at}/vars"), "vars", json!({ "key": "region", "value": "eu", "category": "terraform" })).await;
    let secret = json!({ "key": "PASSWORD", "value": "a dummy", "category": "env", "sensitive": true });
    make(&format!("{at}/vars"), "vars", secret).await;
    make("/api/v2/organizations/acme/varsets", "varsets", json!({ "name": "common", "global": true })).await;
    make("/api/v2/organizations/acme/projects", "projects", json!({ "name": "network" })).await;
    make("/api/v2/organizations/acme/ssh-keys", "ssh-keys", json!({ "name": "modules", "value": "a dummy" })).await;
    let team = make("/api/v2/organizations/acme/teams", "teams", json!({ "name": "operators" })).await;
    let access = json!({ "data": { "type": "team-workspaces", "attributes": { "access": "write" }, "relationships": {
        "team": { "data": { "type": "teams", "id": team["id"] } },
        "workspace": { "data": { "type": "workspaces", "id": id } } } } });
    admin.post("/api/v2/team-workspaces", access).await;
    let run = admin.start_run(&id).await;
    assert_eq!(admin.end_of(&run).await, "applied");
    make(&format!("/api/v2/runs/{run}/comments"), "comments", json!({ "body": "It looks good" })).await;
    admin.given_planned_run(&id).await;
}

/// Opens a ledger as a server does for which a snapshot is overdue.
async fn write_snapshot<S: State>(bucket: &Path, name: LedgerName) {
    let dice = Dice::from_seed(1);
    let key = MasterKey::from_secret(KEY).expect("long enough");
    let keys = Some(std::sync::Arc::new(MasterKeys::new(key, Vec::new(), dice.clone())));
    let environment = Environment {
        bucket: std::sync::Arc::new(Location::directory(bucket).open().expect("a directory")),
        clock: std::sync::Arc::new(SystemClock),
        dice,
        server: "server-1".to_owned(),
        peers: Peers::none(),
    };
    let ledger: Ledger<S> =
        Ledger::open(environment, name.clone(), Options { snapshot_every: 1, keys }).await.expect("a ledger");
    let seq = ledger.last_seen().seq();
    let file = bucket.join(layout::snapshot(&name, seq).as_str());
    harness::run_site::until("the snapshot is there", async || file.exists()).await;
}
