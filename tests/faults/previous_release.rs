//! An upgrade: servers and agents of the previous release and of this one work side by side on one bucket, some are
//! killed, and in the end there are only new ones. Everything acknowledged to a client is there, on every server.

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use harness::api_client::ApiClient;
use harness::graph_states::{reading, state};
use harness::home::ServerProcess;
use harness::newer_server::NewerServer;
use harness::previous_release::of_previous_release;
use harness::process::Process;
use harness::run_site::{RunSite, admin_of, run_that_applies_itself, text, until};
use md5::{Digest, Md5};
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use tokio::time::sleep;

use crate::balanced_site::BalancedSite;

/// In seconds: no agent is given up here.
const LEASE: u16 = 60;
const WRITERS: usize = 6;
/// Number of changes that are acknowledged between two events of the upgrade.
const CHANGES: usize = 60;

fn previous_server(site: &RunSite) -> ServerProcess {
    ServerProcess::start(&mut of_previous_release(&site.server_command(None)))
}

fn agent(mut command: Command) -> Process {
    let agent = Process::start(&mut command);
    agent.line_of_stderr(|line| line.contains("connected"));
    agent
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_lost_while_servers_are_upgraded_one_by_one() {
    let (site, previous) = RunSite::founded_by(None, LEASE, previous_server).await;
    let admin = admin_of(&previous.address);
    let mut tasks = Vec::new();
    for number in 0..WRITERS {
        tasks.push(Task::begin(&site, &admin, number).await);
    }
    let servers = Arc::new(BalancedSite::of(vec![previous, site.server()]));
    let load = Arc::new(Load::default());
    let start = |task| tokio::spawn(write(Arc::clone(&servers), task, Arc::clone(&load)));
    let writers: Vec<_> = tasks.into_iter().map(start).collect();

    load.goes_on().await;
    replace(&servers, 0, || previous_server(&site)).await;
    load.goes_on().await;
    replace(&servers, 1, || site.server()).await;
    load.goes_on().await;
    // From here on there are only new ones.
    replace(&servers, 0, || site.server()).await;
    load.goes_on().await;
    drop(servers.servers.write().await.remove(1));
    load.goes_on().await;

    load.over.store(true, Ordering::SeqCst);
    let mut written = Vec::new();
    for writer in writers {
        written.push(writer.await.expect("nobody met an answer that cannot be"));
    }
    // One that starts afresh, and one of the previous release: an upgrade can be rolled back.
    let fresh = [site.server(), previous_server(&site)];
    let addresses =
        servers.servers.read().await.iter().chain(&fresh).map(|server| server.address.clone()).collect::<Vec<_>>();
    for address in addresses {
        for task in &written {
            task.is_there(&admin_of(&address)).await;
        }
    }
    is_sound(&site);
}

#[tokio::test(flavor = "multi_thread")]
async fn agents_and_servers_of_two_releases_work_together() {
    let (site, previous) = RunSite::founded_by(None, LEASE, previous_server).await;
    let new = site.server();
    for (name, server) in [("new-agent-old-server", &previous), ("old-agent-new-server", &new)] {
        let other = if server.address == new.address { &previous } else { &new };
        let command = site.agent_command(name, &server.address);
        let agent = agent(if name.starts_with("old") { of_previous_release(&command) } else { command });
        // What one server is told, an agent at the other one does.
        let (here, there) = (admin_of(&server.address), admin_of(&other.address));
        let workspace = site.given_workspace(&there, name).await;
        let run = there.start_run(&workspace).await;
        assert_eq!(here.end_of(&run).await, "applied", "{name}: {}", here.error_of(&run, "apply").await);
        for admin in [&here, &there] {
            assert_eq!(admin.run(&run).await["status"], "applied", "{name}");
            assert_eq!(admin.work_in_state(&workspace).await, Some(format!("all of {run}")), "{name}");
            assert_eq!(admin.log_of(&run, "apply").await, here.log_of(&run, "apply").await, "{name}");
        }
        let canceled = there.given_planned_run(&workspace).await;
        here.post(&format!("/api/v2/runs/{canceled}/actions/discard"), json!({})).await;
        assert_eq!(there.end_of(&canceled).await, "discarded", "{name}");
        drop(agent);
    }
    is_sound(&site);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_only_newer_servers_know_survives_changes_by_the_previous_release() {
    let (site, previous) = RunSite::founded_by(None, LEASE, previous_server).await;
    let new = site.server();
    let admin = admin_of(&previous.address);
    let organization = text(&admin.get("/api/v2/organizations/acme").await["data"]["attributes"]["external-id"]);
    let newer = NewerServer::on(&site.home.bucket(), &organization).await;
    let workspace = text(&admin.given_workspace("acme", "web").await["id"]);
    newer
        .change(&workspace, |fields| {
            fields.insert("cost-center".to_owned(), json!({ "id": 7 }));
        })
        .await;
    for (server, description) in [(&previous, "by the previous release"), (&new, "by this one")] {
        let body = json!({ "data": { "type": "workspaces", "attributes": { "description": description } } });
        admin_of(&server.address).patch(&format!("/api/v2/workspaces/{workspace}"), body).await;
        let fields = newer.fields(&workspace).await;
        assert_eq!((&fields["description"], &fields["cost-center"]), (&json!(description), &json!({ "id": 7 })));
    }
}

/// The previous release knows nothing of output commits: what it writes, the new one takes in.
#[tokio::test(flavor = "multi_thread")]
async fn no_change_of_an_output_is_lost_while_servers_of_two_releases_write_states() {
    const STATES: u64 = 12;
    let (site, previous) = RunSite::founded_by(None, LEASE, previous_server).await;
    let new = site.server();
    let (old_admin, admin) = (admin_of(&previous.address), admin_of(&new.address));
    let mut workspaces = Vec::new();
    for name in ["network", "app"] {
        let id = text(&old_admin.given_workspace("acme", name).await["id"]);
        old_admin.post(&format!("/api/v2/workspaces/{id}/actions/lock"), json!({ "reason": "an upgrade" })).await;
        workspaces.push(id);
    }
    let (network, app) = (&workspaces[0], &workspaces[1]);
    let value = |serial: u64| format!("vpc-{serial:012}");
    let written = |serial: u64| state(serial, &[("vpc_id", &value(serial))]);
    for serial in 1..=STATES {
        // In turns, and now and then twice in a row: nobody looks between two of them.
        let writer = if serial % 3 == 0 { &admin } else { &old_admin };
        push(writer, network, &written(serial)).await;
        let read = value(serial.min(STATES - 1));
        let consumer = reading(state(serial, &[]), "network", &[("vpc_id", &read)]);
        push(if serial % 4 == 0 { &admin } else { &old_admin }, app, &consumer).await;
    }
    let fresh = site.server();
    for admin in [&admin, &admin_of(&fresh.address)] {
        let listed = admin.get(&format!("/api/v2/workspaces/{network}/output-commits?page%5Bsize%5D=100")).await;
        let numbers = listed["data"].as_array().expect("a list").iter().map(|one| one["attributes"]["number"].clone());
        assert_eq!(numbers.collect::<Vec<_>>(), (1..=STATES).rev().map(|number| json!(number)).collect::<Vec<_>>());
        for number in 1..=STATES {
            let commit = admin.get(&format!("/api/v2/workspaces/{network}/output-commits/{number}")).await;
            assert_eq!(commit["data"]["attributes"]["outputs"][0]["value"], value(number));
        }
        let graph = admin.get("/api/v2/organizations/acme/graph").await["data"]["attributes"].clone();
        let edge = &graph["edges"][0];
        assert_eq!((&edge["consumer"], &edge["producer"]), (&json!("app"), &json!("network")), "{graph:#}");
        assert_eq!((&edge["outputs"], &edge["status"]), (&json!(["vpc_id"]), &json!("stale")), "{graph:#}");
    }
    push(&old_admin, app, &reading(state(STATES + 1, &[]), "network", &[("vpc_id", &value(STATES))])).await;
    for admin in [&admin, &admin_of(&fresh.address)] {
        let why = admin.get(&format!("/api/v2/workspaces/{app}/why")).await;
        assert_eq!(why["data"]["attributes"]["freshness"], "clean", "{why:#}");
    }
    is_sound(&site);
}

/// Writes a state of a workspace that is locked already.
async fn push(admin: &ApiClient, workspace: &str, state: &Value) {
    let bytes = state.to_string();
    let attributes = json!({ "serial": state["serial"], "md5": hex::encode(Md5::digest(&bytes)), "lineage": state["lineage"],
        "state": BASE64_STANDARD.encode(&bytes) });
    let body = json!({ "data": { "type": "state-versions", "attributes": attributes } });
    admin.post(&format!("/api/v2/workspaces/{workspace}/state-versions"), body).await;
}

/// Kills a server with SIGKILL, under load, and puts another in its place.
async fn replace(site: &BalancedSite, place: usize, start: impl FnOnce() -> ServerProcess) {
    let next = tokio::task::block_in_place(start);
    drop(std::mem::replace(&mut site.servers.write().await[place], next));
}

fn is_sound(site: &RunSite) {
    for words in [&["audit", "verify"][..], &["doctor", "--deep"]] {
        let mut command = site.home.taco(words);
        let output = command.env("TACO_SECRET_KEY", "a key that only these tests know").output().expect("it runs");
        assert!(output.status.success(), "taco {words:?}: {}", String::from_utf8_lossy(&output.stdout));
    }
}

/// Progress of the writers.
#[derive(Default)]
struct Load {
    acknowledged: AtomicUsize,
    over: AtomicBool,
}

impl Load {
    /// Waits for more changes.
    async fn goes_on(&self) {
        let enough = self.acknowledged.load(Ordering::SeqCst) + CHANGES;
        until("writers go on", async || self.acknowledged.load(Ordering::SeqCst) >= enough).await;
    }
}

/// One writer's workspace and run, and what it was told is written there.
struct Task {
    workspace: String,
    run: String,
    /// Digests by serial.
    states: BTreeMap<u64, String>,
    variables: BTreeSet<String>,
    comments: BTreeSet<String>,
    /// The last description that was acknowledged, and those that were tried after it.
    descriptions: Vec<String>,
}

impl Task {
    async fn begin(site: &RunSite, admin: &ApiClient, number: usize) -> Self {
        let workspace = site.given_workspace(admin, &format!("writer-{number}")).await;
        admin.post(&format!("/api/v2/workspaces/{workspace}/actions/lock"), json!({ "reason": "an upgrade" })).await;
        // It waits for the lock, and so for ever.
        let run = text(&admin.post("/api/v2/runs", run_that_applies_itself(&workspace)).await["data"]["id"]);
        let (states, variables, comments) = Default::default();
        Self { workspace, run, states, variables, comments, descriptions: vec![String::new()] }
    }

    /// Everything that was acknowledged is there.
    async fn is_there(&self, admin: &ApiClient) {
        let workspace = admin.get(&format!("/api/v2/workspaces/{}", self.workspace)).await;
        let attributes = &workspace["data"]["attributes"];
        assert_eq!(attributes["locked"], true, "{workspace}");
        let description = attributes["description"].as_str().unwrap_or_default();
        assert!(self.descriptions.iter().any(|tried| tried == description), "{workspace}: {:?}", self.descriptions);
        assert_eq!(admin.run(&self.run).await["status"], "pending");

        let path = format!("/api/v2/workspaces/{}/vars?page%5Bsize%5D=100000", self.workspace);
        let shown = texts(&admin.get(&path).await, "key");
        assert!(self.variables.is_subset(&shown), "lost: {:?}", self.variables.difference(&shown).collect::<Vec<_>>());
        let mut shown = BTreeSet::new();
        for page in 1.. {
            let path = format!("/api/v2/runs/{}/comments?page%5Bnumber%5D={page}", self.run);
            let mut more = texts(&admin.get(&path).await, "body");
            if more.is_empty() {
                break;
            }
            shown.append(&mut more);
        }
        assert!(self.comments.is_subset(&shown), "lost: {:?}", self.comments.difference(&shown).collect::<Vec<_>>());

        let mut ids = BTreeMap::new();
        for page in 1.. {
            let path = format!("/api/v2/workspaces/{}/state-versions?page%5Bnumber%5D={page}", self.workspace);
            let listed = admin.get(&path).await["data"].as_array().expect("a list").clone();
            if listed.is_empty() {
                break;
            }
            ids.extend(
                listed.iter().map(|one| (one["attributes"]["serial"].as_u64().expect("a serial"), text(&one["id"]))),
            );
        }
        for (serial, digest) in &self.states {
            let id = ids.get(serial).unwrap_or_else(|| panic!("state {serial} is lost: {ids:?}"));
            let address = format!("{}/api/v2/state-versions/{id}/download", admin.origin);
            let answer = admin.client.get(address).bearer_auth(&admin.token).send().await.expect("an answer");
            let state = answer.bytes().await.expect("a state");
            assert_eq!(hex::encode(Md5::digest(&state)), *digest, "state {serial}");
        }
    }
}

/// One attribute of everything in a list.
fn texts(list: &Value, attribute: &str) -> BTreeSet<String> {
    list["data"].as_array().expect("a list").iter().map(|one| text(&one["attributes"][attribute])).collect()
}

/// Writes states, variables, comments and descriptions, each until it is acknowledged.
async fn write(site: Arc<BalancedSite>, mut task: Task, load: Arc<Load>) -> Task {
    let workspace = format!("/api/v2/workspaces/{}", task.workspace);
    for serial in 1.. {
        let state = json!({ "version": 4, "serial": serial, "lineage": task.workspace, "terraform_version": "1.11.4",
            "outputs": { "serial": { "value": serial, "type": "number" } }, "resources": [] });
        let state = state.to_string();
        let digest = hex::encode(Md5::digest(&state));
        let attributes = json!({ "serial": serial, "md5": digest, "lineage": task.workspace,
            "state": BASE64_STANDARD.encode(&state) });
        if send(&site, &load, Method::POST, &format!("{workspace}/state-versions"), "state-versions", attributes).await
        {
            task.states.insert(serial, digest);
        }
        let key = format!("v{serial}");
        let attributes = json!({ "key": key, "value": key, "category": "env", "sensitive": serial % 2 == 0 });
        if send(&site, &load, Method::POST, &format!("{workspace}/vars"), "vars", attributes).await {
            task.variables.insert(key);
        }
        let body = format!("comment {serial}");
        let path = format!("/api/v2/runs/{}/comments", task.run);
        if send(&site, &load, Method::POST, &path, "comments", json!({ "body": body })).await {
            task.comments.insert(body);
        }
        let description = format!("description {serial}");
        task.descriptions.push(description.clone());
        if send(&site, &load, Method::PATCH, &workspace, "workspaces", json!({ "description": description })).await {
            task.descriptions = vec![description];
        }
        if load.over.load(Ordering::SeqCst) {
            break;
        }
    }
    task
}

/// True if it was acknowledged before the end; a retry after a lost response may find it already written.
async fn send(site: &BalancedSite, load: &Load, method: Method, path: &str, kind: &str, attributes: Value) -> bool {
    let body = json!({ "data": { "type": kind, "attributes": attributes } });
    let mut repeated = false;
    while !load.over.load(Ordering::SeqCst) {
        let acknowledged = match site.ask(method.clone(), path, Some(&body)).await {
            Some((status, _)) if status.is_success() => true,
            Some((StatusCode::UNPROCESSABLE_ENTITY | StatusCode::CONFLICT, _)) if repeated => true,
            Some((StatusCode::SERVICE_UNAVAILABLE, _)) | None => false,
            Some((status, document)) => panic!("{method} {path} is answered with {status}: {document}"),
        };
        if acknowledged {
            load.acknowledged.fetch_add(1, Ordering::SeqCst);
            return true;
        }
        repeated = true;
        sleep(Duration::from_millis(50)).await;
    }
    false
}
