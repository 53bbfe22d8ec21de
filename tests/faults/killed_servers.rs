//! `kill -9` of `taco server` while clients write through its API. Everything acknowledged to a client is there
//! afterwards, on every server, without manual repair.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use harness::bucket_servers::{BucketServer, variables_of};
use harness::home::{Home, ServerProcess, packs_soon};
use harness::run_site::SITE_TOKEN;
use reqwest::{Method, StatusCode};
use serde_json::json;
use taco_ledger::{Location, SharedRng};

use crate::balanced_site::BalancedSite;

const ORGANIZATION: &str = "acme";
const SERVERS: usize = 2;
const KILLS: usize = 10;
const CLIENTS: usize = 8;

fn start(home: &Home, location: &Location) -> ServerProcess {
    let mut command = home.taco(&["server"]);
    command.envs(variables_of(location)).env("TACO_LISTEN", "127.0.0.1:0").env("TACO_SITE_TOKEN", SITE_TOKEN);
    command.env("TACO_SECRET_KEY", "a key that only these tests know");
    ServerProcess::start(packs_soon(&mut command))
}

/// Makes workspaces and describes them, until told to stop. Returns each name with the last description that was
/// acknowledged.
async fn client(site: Arc<BalancedSite>, number: usize, over: Arc<AtomicBool>) -> BTreeMap<String, String> {
    let mut acknowledged = BTreeMap::new();
    let all = format!("/api/v2/organizations/{ORGANIZATION}/workspaces");
    for round in 0.. {
        if over.load(Ordering::SeqCst) {
            break;
        }
        let name = format!("client-{number}-{round}");
        let create = json!({ "data": { "type": "workspaces", "attributes": { "name": name, "description": "new" } } });
        match site.ask(Method::POST, &all, Some(&create)).await {
            Some((StatusCode::CREATED, _)) => {
                acknowledged.insert(name.clone(), "new".to_owned());
            }
            Some((status, document)) => assert!(status != StatusCode::INTERNAL_SERVER_ERROR, "{document}"),
            None => continue,
        }
        let description = format!("described by {number}");
        let update = json!({ "data": { "type": "workspaces", "attributes": { "description": description } } });
        if let Some((StatusCode::OK, _)) = site.ask(Method::PATCH, &format!("{all}/{name}"), Some(&update)).await {
            acknowledged.insert(name, description);
        }
    }
    acknowledged
}

async fn nothing_is_lost_on(location: &Location) {
    let home = Home::default();
    let servers = (0..SERVERS).map(|_| start(&home, location)).collect();
    let site = Arc::new(BalancedSite::of(servers));
    let found = json!({ "data": { "type": "organizations",
        "attributes": { "name": ORGANIZATION, "email": "admin@acme.test" } } });
    let (status, document) = site.ask(Method::POST, "/api/v2/organizations", Some(&found)).await.expect("an answer");
    assert_eq!(status, StatusCode::CREATED, "{document}");

    let over = Arc::new(AtomicBool::new(false));
    let clients: Vec<_> =
        (0..CLIENTS).map(|number| tokio::spawn(client(Arc::clone(&site), number, Arc::clone(&over)))).collect();
    let rng = SharedRng::from_seed(11);
    for kill in 0..KILLS {
        tokio::time::sleep(Duration::from_millis(100 + (rng.fraction() * 400.0) as u64)).await;
        // The old process is dropped, and dropping kills it with SIGKILL.
        let (home, location) = (&home, location.clone());
        let next = tokio::task::block_in_place(|| start(home, &location));
        drop(std::mem::replace(&mut site.servers.write().await[kill % SERVERS], next));
    }
    over.store(true, Ordering::SeqCst);
    let mut acknowledged = BTreeMap::new();
    for client in clients {
        acknowledged.extend(client.await.expect("no 500 for anyone"));
    }
    assert!(acknowledged.len() > 50, "only {} workspaces were made", acknowledged.len());

    // Each server, and one that starts afresh, shows everything.
    site.servers.write().await.push(start(&home, location));
    for _ in 0..=SERVERS {
        let shown = all_workspaces(&site).await;
        // A description whose answer was lost may be there or not; all else has to be.
        let is_lost = |(name, told): &(&String, &String)| match shown.get(*name) {
            None => true,
            Some(description) => *told != "new" && description != *told,
        };
        let lost: Vec<_> = acknowledged.iter().filter(is_lost).collect();
        assert!(lost.is_empty(), "{} of {} are missing: {lost:?}", lost.len(), acknowledged.len());
    }
    let doctor = home.taco(&["audit", "verify"]).envs(variables_of(location)).output().expect("it runs");
    assert!(doctor.status.success(), "{}", String::from_utf8_lossy(&doctor.stdout));
}

/// Names and descriptions of all workspaces, asked page by page of one server.
async fn all_workspaces(site: &BalancedSite) -> BTreeMap<String, String> {
    let mut shown = BTreeMap::new();
    let mut seen = BTreeSet::new();
    for page in 1.. {
        // Each page may come from another server: they have to agree.
        let path =
            format!("/api/v2/organizations/{ORGANIZATION}/workspaces?page%5Bnumber%5D={page}&page%5Bsize%5D=100");
        let (status, document) = site.ask(Method::GET, &path, None).await.expect("an answer");
        assert_eq!(status, StatusCode::OK, "{document}");
        let rows = document["data"].as_array().expect("a list").clone();
        if rows.is_empty() {
            break;
        }
        for row in rows {
            let name = row["attributes"]["name"].as_str().expect("a name").to_owned();
            assert!(seen.insert(name.clone()), "{name} is there twice");
            shown.insert(name, row["attributes"]["description"].as_str().unwrap_or_default().to_owned());
        }
    }
    shown
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_acknowledged_is_lost_on_a_directory() {
    let directory = tempfile::tempdir().expect("a directory");
    nothing_is_lost_on(&Location::directory(directory.path())).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_acknowledged_is_lost_on_a_durable_s3_server() {
    let server = BucketServer::versitygw().await.expect("versitygw");
    nothing_is_lost_on(&server.location()).await;
}
