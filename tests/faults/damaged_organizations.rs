//! An organization whose ledger is damaged behind the servers' backs. All others are served as if nothing had happened,
//! the site's operator is told which object it is, and when that is restored no restart is needed.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use harness::api_client::ApiClient;
use harness::home::{Home, ServerProcess};
use harness::run_site::{SITE_TOKEN, admin_of, configuration, text, until};
use harness::stand_in_engine::{StandInEngine, Step};
use serde_json::{Value, json};

struct Site {
    home: Home,
    engine: StandInEngine,
}

impl Site {
    fn new() -> Self {
        Self { home: Home::default(), engine: StandInEngine::install() }
    }

    /// A server with an agent of its own, which executes one phase at a time. Everyone on this machine is its admin.
    fn server(&self) -> ServerProcess {
        ServerProcess::start(&mut self.command())
    }

    fn command(&self) -> Command {
        let mut command = self.home.taco(&["server"]);
        command.env("TACO_LISTEN", "127.0.0.1:0").env("TACO_SITE_TOKEN", SITE_TOKEN).env("TACO_NO_AUTH", "true");
        command.env("PATH", self.engine.search_path()).env("TACO_ENGINE_MIRROR", "http://127.0.0.1:9");
        command.env("TACO_AGENT_CONCURRENCY", "1").env("RUST_LOG", "info");
        command
    }

    /// The log of an organization's ledger.
    fn log(&self, organization: &str) -> PathBuf {
        self.home.bucket().join("ledgers").join(organization).join("log")
    }

    /// The number of an organization's newest commit, and its object.
    fn newest_commit(&self, organization: &str) -> (u64, PathBuf) {
        let entries = fs::read_dir(self.log(organization)).expect("a log").map(|entry| entry.expect("an entry").path());
        let number = |path: &PathBuf| path.file_stem()?.to_str()?.parse::<u64>().ok();
        let newest = entries.filter_map(|path| Some((number(&path)?, path))).max();
        newest.expect("it has commits")
    }

    fn commit(&self, organization: &str, number: u64) -> PathBuf {
        self.log(organization).join(format!("{number:020}.json"))
    }

    /// The name of an object as taco says it.
    fn key(&self, path: &std::path::Path) -> String {
        path.strip_prefix(self.home.bucket()).expect("it is in the bucket").display().to_string()
    }

    fn doctor(&self) -> (Option<i32>, String) {
        let output = self.home.taco(&["doctor"]).output().expect("it runs");
        (output.status.code(), String::from_utf8(output.stdout).expect("it is text"))
    }
}

/// An organization with a workspace for the server's own agent; the ids of both.
async fn given_organization(admin: &ApiClient, name: &str) -> (String, String) {
    admin.given_organization(name).await;
    let body = json!({ "data": { "type": "workspaces", "attributes": { "name": "web", "execution-mode": "remote" } } });
    let made = admin.post(&format!("/api/v2/organizations/{name}/workspaces"), body).await;
    let workspace = text(&made["data"]["id"]);
    admin.given_configuration(&workspace, configuration()).await;
    let shown = admin.get(&format!("/api/v2/organizations/{name}")).await;
    (text(&shown["data"]["attributes"]["external-id"]), workspace)
}

/// The damaged ones that the API for site admins knows of.
async fn unreadable(admin: &ApiClient) -> Vec<Value> {
    let listed = admin.get("/api/v2/admin/organizations").await;
    listed["meta"]["taco-unreadable-organizations"].as_array().cloned().unwrap_or_default()
}

/// Everyone who should know of the damage does, and the others are served.
async fn it_is_told_and_harms_nobody(site: &Site, server: &ServerProcess, damaged: &str, object: &str, healthy: &str) {
    let admin = admin_of(&server.address);
    // To run in the others needs the scheduler, a lease and the agent.
    let run = admin.start_run(healthy).await;
    assert_eq!(admin.end_of(&run).await, "applied", "{}", server.process.stderr());

    until("the API names it", async || !unreadable(&admin).await.is_empty()).await;
    let [known] = &unreadable(&admin).await[..] else { panic!("one is damaged") };
    assert_eq!((text(&known["id"]).as_str(), text(&known["object"]).as_str()), (damaged, object), "{known}");
    assert_eq!(known["name"], "aaa");
    assert!(!text(&known["reason"]).is_empty());
    let (status, _) = admin.send("GET", "/api/v2/organizations/aaa/workspaces", None).await;
    assert_eq!(status, 500);
    let listed = admin.get("/api/v2/organizations").await;
    let names: Vec<_> = listed["data"].as_array().expect("a list").iter().map(|one| text(&one["id"])).collect();
    assert_eq!(names, ["zzz"]);

    let (status, ready) = server.read("/readyz").await;
    assert_eq!(status, 200, "the others are served: {ready}");
    assert!(ready.contains(object), "{ready}");
    let (_, metrics) = server.read("/metrics").await;
    assert!(metrics.contains(&format!("taco_ledger_unreadable{{ledger=\"{damaged}\"}} 1")), "{metrics}");
    let (status, page) = server.read("/app/admin").await;
    assert_eq!(status, 200, "{page}");
    assert!(page.contains("Can't be read.") && page.contains(object) && page.contains("aaa"), "{page}");
    let (code, table) = site.doctor();
    assert_eq!(code, Some(1), "{table}");
    assert!(table.contains(object), "{table}");
    let log = server.process.stderr();
    let told = log.lines().filter(|line| line.contains("ledger_unreadable")).count();
    assert_eq!(told, 1, "it is told once:\n{log}");
    assert!(log.lines().any(|line| line.contains("ledger_unreadable") && line.contains(object)), "{log}");
}

/// It was put back.
async fn it_is_served_again(server: &ServerProcess, organization: &str, workspace: &str) {
    let admin = admin_of(&server.address);
    until("it can be read", async || unreadable(&admin).await.is_empty()).await;
    let run = admin.start_run(workspace).await;
    assert_eq!(admin.end_of(&run).await, "applied", "{}", server.process.stderr());
    assert_eq!(server.read("/readyz").await, (200, "ready\n".to_owned()));
    let (_, metrics) = server.read("/metrics").await;
    assert!(metrics.contains(&format!("taco_ledger_unreadable{{ledger=\"{organization}\"}} 0")), "{metrics}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_torn_commit_of_one_organization_stops_nobody_else_after_a_restart() {
    let site = Site::new();
    let server = site.server();
    let admin = admin_of(&server.address);
    let (aaa, in_aaa) = given_organization(&admin, "aaa").await;
    let (_, in_zzz) = given_organization(&admin, "zzz").await;
    drop(server);

    let (_, newest) = site.newest_commit(&aaa);
    let whole = fs::read(&newest).expect("it is readable");
    fs::write(&newest, &whole[..whole.len() / 2]).expect("it is written");
    let server = site.server();
    it_is_told_and_harms_nobody(&site, &server, &aaa, &site.key(&newest), &in_zzz).await;

    fs::write(&newest, whole).expect("it is written");
    it_is_served_again(&server, &aaa, &in_aaa).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_missing_commit_of_one_organization_stops_nobody_else_after_a_restart() {
    let site = Site::new();
    let server = site.server();
    let admin = admin_of(&server.address);
    let (aaa, in_aaa) = given_organization(&admin, "aaa").await;
    let (_, in_zzz) = given_organization(&admin, "zzz").await;
    drop(server);

    let missing = site.commit(&aaa, 2);
    assert!(site.newest_commit(&aaa).0 > 2, "it is one in the middle");
    let whole = fs::read(&missing).expect("it is readable");
    fs::remove_file(&missing).expect("it is removed");
    let server = site.server();
    it_is_told_and_harms_nobody(&site, &server, &aaa, &site.key(&missing), &in_zzz).await;

    fs::write(&missing, whole).expect("it is written");
    it_is_served_again(&server, &aaa, &in_aaa).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn damage_that_appears_while_a_server_runs_stops_nobody_else() {
    let site = Site::new();
    let server = site.server();
    let admin = admin_of(&server.address);
    let (aaa, in_aaa) = given_organization(&admin, "aaa").await;
    let (_, in_zzz) = given_organization(&admin, "zzz").await;
    // The only agent is busy, so that a phase of the damaged one is first in the queue.
    site.engine.hold(Step::Plan);
    let first = admin.start_run(&in_zzz).await;
    site.engine.comes_to(Step::Plan, &first, 1).await;
    let waiting = admin.start_run(&in_aaa).await;

    // An object that no server wrote is where the next commit belongs. Nothing else of the organization changes
    // meanwhile but what the server notes of the wait, so it may take some tries to be first.
    let half = site.home.path().join("half");
    fs::write(&half, "{").expect("it is written");
    let torn = loop {
        let next = site.commit(&aaa, site.newest_commit(&aaa).0 + 1);
        if fs::hard_link(&half, &next).is_ok() {
            break next;
        }
    };
    let (status, _) = admin.send("GET", &format!("/api/v2/workspaces/{in_aaa}"), None).await;
    assert_eq!(status, 500);
    site.engine.let_go(Step::Plan);
    assert_eq!(admin.end_of(&first).await, "applied", "{}", server.process.stderr());
    it_is_told_and_harms_nobody(&site, &server, &aaa, &site.key(&torn), &in_zzz).await;

    fs::remove_file(&torn).expect("it is removed");
    until("it can be read", async || unreadable(&admin).await.is_empty()).await;
    assert_eq!(admin.end_of(&waiting).await, "applied", "{}", server.process.stderr());
    it_is_served_again(&server, &aaa, &in_aaa).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_whose_own_ledger_is_damaged_says_which_object_it_is() {
    let site = Site::new();
    let server = site.server();
    let admin = admin_of(&server.address);
    given_organization(&admin, "aaa").await;

    let torn = site.commit("site", site.newest_commit("site").0 + 1);
    fs::write(&torn, "{").expect("it is written");
    let (status, _) = admin.send("GET", "/api/v2/organizations", None).await;
    assert_eq!(status, 500);
    let object = site.key(&torn);
    until("it is not ready", async || server.read("/readyz").await.0 == 503).await;
    let (_, reason) = server.read("/readyz").await;
    assert_eq!(reason, format!("not ready: the site's own ledger cannot be read: {object}\n"));
    let log = server.process.stderr();
    assert!(log.lines().any(|line| line.contains("ledger_unreadable") && line.contains(&object)), "{log}");

    let failed = site.command().output().expect("it ends");
    let said = String::from_utf8_lossy(&failed.stderr).into_owned();
    assert!(!failed.status.success() && said.contains(&format!("{object} is damaged")), "{said}");

    fs::remove_file(&torn).expect("it is removed");
    until("it is ready", async || server.read("/readyz").await.0 == 200).await;
}
