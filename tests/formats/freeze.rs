//! `cargo xtask samples`: freezes what this version stores and says, for all later ones to read.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use harness::api_client::ApiClient;
use harness::formats::frozen::{FROZEN_BUCKET, FROZEN_BUCKET_KEY, add_samples, copy_directory, formats, shapes_file};
use harness::formats::generate::Generator;
use harness::formats::roots::roots;
use harness::formats::{shown_today, text_of};
use harness::run_site::{RunSite, admin_of, until};
use nix::sys::signal::Signal;
use serde_json::{Value, json};
use taco_domain::{OrganizationState, Site};
use taco_ledger::{
    Environment, Ledger, LedgerName, Location, MasterKey, MasterKeys, Options, Peers, SharedRng, SystemClock, layout,
};
use taco_tables::State;

#[tokio::main]
async fn main() {
    match std::env::args().nth(1).as_deref() {
        Some("samples") => freeze_samples(),
        Some("bucket") => freeze_bucket().await,
        _ => panic!("say what to freeze: `samples` or `bucket`"),
    }
}

/// Adds samples of what is new; those that are there stay as they are.
fn freeze_samples() {
    let (roots, shapes) = roots();
    for root in &roots {
        add_samples(&root.name, &Generator::samples(&shapes, &root.shape, shown_today(&shapes, root)));
    }
    fs::write(shapes_file(), text_of(&shapes)).expect("written");
}

/// Writes the bucket of the newest format, if it has none. It is not made again: it is what one version wrote.
async fn freeze_bucket() {
    let place = formats().pop().expect("a format").join(FROZEN_BUCKET);
    assert!(!place.exists(), "{} is frozen", place.display());
    let (site, mut server) = RunSite::with_lease(60).await;
    let agent = site.agent("agent-1", &server.address);
    fill(&site, &admin_of(&server.address)).await;
    let beacons = tempfile::tempdir().expect("a directory");
    copy_directory(&site.home.bucket().join("beacons"), beacons.path());
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
    copy_directory(&site.home.bucket(), &place);
    copy_directory(beacons.path(), &place.join("beacons"));
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
    let rng = SharedRng::from_seed(1);
    let key = MasterKey::from_secret(FROZEN_BUCKET_KEY).expect("long enough");
    let keys = Some(Arc::new(MasterKeys::new(key, Vec::new(), rng.clone())));
    let environment = Environment {
        bucket: Arc::new(Location::directory(bucket).open().expect("a directory")),
        clock: Arc::new(SystemClock),
        rng,
        server: "server-1".to_owned(),
        peers: Peers::none(),
    };
    let ledger: Ledger<S> =
        Ledger::open(environment, name.clone(), Options { snapshot_every: 1, keys, ..Options::default() })
            .await
            .expect("a ledger");
    let seq = ledger.last_seen().seq();
    let file = bucket.join(layout::snapshot(&name, seq).as_str());
    until("the snapshot is there", async || file.exists()).await;
}
