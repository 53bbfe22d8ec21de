//! Servers whose runs are executed by agents with a stand-in engine, all of them processes that can be killed.

use std::process::Command;
use std::time::Duration;

use flate2::Compression;
use flate2::write::GzEncoder;
use reqwest::Client;
use serde_json::{Value, json};
use taco_ledger::Location;
use tokio::time::{Instant, sleep};

use crate::api_client::ApiClient;
use crate::binary::binary;
use crate::bucket_servers::variables_of;
use crate::home::{Home, ServerProcess, packs_soon};
use crate::process::Process;
use crate::stand_in_engine::StandInEngine;

pub const SITE_TOKEN: &str = "a token that only these tests know";

/// Long enough for a machine that is busy with other tests.
const RUN_TIMEOUT: Duration = Duration::from_secs(90);

/// A site with an organization `acme`, a pool, and a token for its agents.
pub struct RunSite {
    pub home: Home,
    pub engine: StandInEngine,
    /// In seconds. Servers give an agent up half as much later.
    lease: u16,
    location: Option<Location>,
    pool: String,
    /// Of its agents.
    pub pool_token: String,
}

impl RunSite {
    /// On a directory, with its first server.
    pub async fn with_lease(lease: u16) -> (Self, ServerProcess) {
        Self::on(None, lease).await
    }

    /// On a bucket somewhere, with its first server.
    pub async fn on(location: Option<Location>, lease: u16) -> (Self, ServerProcess) {
        Self::founded_by(location, lease, Self::server).await
    }

    /// On a bucket somewhere, with a first server that is started in a way of its own.
    pub async fn founded_by(
        location: Option<Location>,
        lease: u16,
        start: impl FnOnce(&Self) -> ServerProcess,
    ) -> (Self, ServerProcess) {
        let (home, engine) = (Home::default(), StandInEngine::install());
        let mut site = Self { home, engine, lease, location, pool: String::new(), pool_token: String::new() };
        let server = start(&site);
        let admin = admin_of(&server.address);
        admin.given_organization("acme").await;
        let pool = json!({ "data": { "type": "agent-pools", "attributes": { "name": "rack" } } });
        site.pool = text(&admin.post("/api/v2/organizations/acme/agent-pools", pool).await["data"]["id"]);
        let token = json!({ "data": { "type": "authentication-tokens", "attributes": { "description": "one" } } });
        let tokens = format!("/api/v2/agent-pools/{}/authentication-tokens", site.pool);
        site.pool_token = text(&admin.post(&tokens, token).await["data"]["attributes"]["token"]);
        (site, server)
    }

    /// One more server.
    pub fn server(&self) -> ServerProcess {
        self.server_at(self.location.as_ref())
    }

    /// One more server, which reaches the bucket in a way of its own.
    pub fn server_at(&self, location: Option<&Location>) -> ServerProcess {
        ServerProcess::start(&mut self.server_command(location))
    }

    pub fn server_command(&self, location: Option<&Location>) -> Command {
        let mut command = self.home.taco(&["server"]);
        command.envs(location.map(variables_of).unwrap_or_default());
        command.env("TACO_LISTEN", "127.0.0.1:0").env("TACO_SITE_TOKEN", SITE_TOKEN);
        command.env("TACO_SECRET_KEY", "a key that only these tests know");
        command.env("TACO_AGENT_CONCURRENCY", "0").env("TACO_AGENT_LEASE", self.lease.to_string());
        packs_soon(&mut command);
        command
    }

    /// An agent that has connected. Its work directory is named after it, so one of the same name is its successor.
    pub fn agent(&self, name: &str, server: &str) -> Process {
        let agent = Process::start(&mut self.agent_command(name, server));
        agent.line_of_stderr(|line| line.contains("connected"));
        agent
    }

    pub fn agent_command(&self, name: &str, server: &str) -> Command {
        let mut command = Command::new(binary("taco-agent"));
        command.current_dir(self.home.path()).env_clear().env("HOME", self.home.path());
        command.env("PATH", self.engine.search_path()).env("TACO_ENGINE_MIRROR", "none");
        command.env("TACO_AGENT_TOKEN", &self.pool_token).env("RUST_LOG", "info");
        let address = if server.starts_with("http") { server.to_owned() } else { format!("http://{server}") };
        command.args(["--server", &address, "--name", name, "--work-dir"]).arg(self.home.path().join(name));
        command
    }

    /// The body of a request for a workspace whose runs the pool's agents execute.
    pub fn workspace_for_agents(&self, name: &str) -> Value {
        let attributes = json!({ "name": name, "execution-mode": "agent", "agent-pool-id": self.pool });
        json!({ "data": { "type": "workspaces", "attributes": attributes } })
    }

    /// A workspace for the pool's agents, with a configuration.
    pub async fn given_workspace(&self, admin: &ApiClient, name: &str) -> String {
        let body = self.workspace_for_agents(name);
        let workspace = text(&admin.post("/api/v2/organizations/acme/workspaces", body).await["data"]["id"]);
        admin.given_configuration(&workspace, configuration()).await;
        workspace
    }

    /// Status of an agent as people see it: `idle`, `busy`, `unknown`, `errored` or `exited`.
    pub async fn status_of_agent(&self, admin: &ApiClient, name: &str) -> String {
        let listed = admin.get(&format!("/api/v2/agent-pools/{}/agents", self.pool)).await;
        let agents = listed["data"].as_array().expect("a list");
        let named = agents.iter().find(|agent| agent["attributes"]["name"] == name).expect("such an agent");
        text(&named["attributes"]["status"])
    }

    /// Checks that no manual repair was needed.
    pub fn is_sound(&self) {
        let mut audit = self.home.taco(&["audit", "verify"]);
        let audit = audit.envs(self.location.as_ref().map(variables_of).unwrap_or_default()).output();
        let audit = audit.expect("it runs");
        assert!(audit.status.success(), "{}", String::from_utf8_lossy(&audit.stdout));
    }
}

/// The site's admin at one server.
pub fn admin_of(server: &str) -> ApiClient {
    let client = Client::builder().timeout(Duration::from_secs(20)).build().expect("a client");
    let origin = if server.starts_with("http") { server.to_owned() } else { format!("http://{server}") };
    ApiClient { origin, client, token: SITE_TOKEN.to_owned() }
}

/// Configuration for the stand-in engine, which does not read it.
pub fn configuration() -> Vec<u8> {
    configuration_of("")
}

/// A configuration of one file, as clients pack it.
pub fn configuration_of(main: &str) -> Vec<u8> {
    let mut archive = tar::Builder::new(GzEncoder::new(Vec::new(), Compression::fast()));
    let content = main.as_bytes();
    let mut header = tar::Header::new_gnu();
    header.set_size(content.len() as u64);
    header.set_mode(0o644);
    archive.append_data(&mut header, "main.tf", content).expect("there is room");
    archive.into_inner().and_then(GzEncoder::finish).expect("there is room")
}

pub fn text(value: &Value) -> String {
    value.as_str().unwrap_or_else(|| panic!("{value} is no text")).to_owned()
}

impl ApiClient {
    /// Uploads a configuration, and starts nothing.
    pub async fn given_configuration(&self, workspace: &str, archive: Vec<u8>) {
        let body = json!({ "data": { "type": "configuration-versions", "attributes": { "auto-queue-runs": false } } });
        let versions = format!("/api/v2/workspaces/{workspace}/configuration-versions");
        let address = text(&self.post(&versions, body).await["data"]["attributes"]["upload-url"]);
        let sent = self.client.put(address).body(archive).send().await.expect("an answer");
        assert!(sent.status().is_success(), "{sent:?}");
    }

    /// Starts a run that applies itself.
    pub async fn start_run(&self, workspace: &str) -> String {
        text(&self.post("/api/v2/runs", run_that_applies_itself(workspace)).await["data"]["id"])
    }

    /// Starts a run that waits for a decision, and waits until it does.
    pub async fn given_planned_run(&self, workspace: &str) -> String {
        let mut run = run_that_applies_itself(workspace);
        run["data"]["attributes"]["auto-apply"] = false.into();
        let run = text(&self.post("/api/v2/runs", run).await["data"]["id"]);
        until("it is planned", async || self.run(&run).await["status"] == "planned").await;
        run
    }

    pub async fn run(&self, run: &str) -> Value {
        self.get(&format!("/api/v2/runs/{run}")).await["data"]["attributes"].clone()
    }

    /// Waits until a run is over: `applied`, `errored`, `canceled` or `discarded`.
    pub async fn end_of(&self, run: &str) -> String {
        const FINAL: [&str; 4] = ["applied", "errored", "canceled", "discarded"];
        let deadline = Instant::now() + RUN_TIMEOUT;
        loop {
            let shown = self.run(run).await;
            if FINAL.iter().any(|status| shown["status"] == *status) {
                return text(&shown["status"]);
            }
            assert!(Instant::now() < deadline, "{run} does not end: {shown}");
            sleep(Duration::from_millis(50)).await;
        }
    }

    /// Error of a run's apply, or of its plan.
    pub async fn error_of(&self, run: &str, phase: &str) -> String {
        let shown = self.get(&format!("/api/v2/runs/{run}/{phase}")).await;
        shown["data"]["attributes"]["taco-error"].as_str().unwrap_or_default().to_owned()
    }

    /// Log of a run's phase, as far as there is one.
    pub async fn log_of(&self, run: &str, phase: &str) -> String {
        let shown = self.get(&format!("/api/v2/runs/{run}/{phase}")).await;
        let address = text(&shown["data"]["attributes"]["log-read-url"]);
        let answer = self.client.get(format!("{address}?limit=1000000&offset=0")).send().await;
        answer.expect("an answer").text().await.expect("text")
    }

    /// The id of what has locked a workspace.
    pub async fn holder_of(&self, workspace: &str) -> Option<String> {
        let shown = self.get(&format!("/api/v2/workspaces/{workspace}")).await;
        let holder = &shown["data"]["relationships"]["locked-by"]["data"]["id"];
        holder.as_str().map(str::to_owned)
    }

    /// Last work that the current state records.
    pub async fn work_in_state(&self, workspace: &str) -> Option<String> {
        let current = format!("/api/v2/workspaces/{workspace}/current-state-version?include=outputs");
        let (status, shown) = self.send("GET", &current, None).await;
        status.is_success().then(|| text(&shown["included"][0]["attributes"]["value"]))
    }
}

pub fn run_that_applies_itself(workspace: &str) -> Value {
    json!({ "data": { "type": "runs", "attributes": { "auto-apply": true },
        "relationships": { "workspace": { "data": { "type": "workspaces", "id": workspace } } } } })
}

/// Looks again and again until it is so.
pub async fn until(what: &str, mut so: impl AsyncFnMut() -> bool) {
    let deadline = Instant::now() + RUN_TIMEOUT;
    while !so().await {
        assert!(Instant::now() < deadline, "it does not come to pass: {what}");
        sleep(Duration::from_millis(50)).await;
    }
}
