//! Many runs, many agents, two servers on one bucket: everything is applied once and in order, and how soon.
//!
//! The engine is a stand-in that does nothing but write down which run it applied, outside of taco.

mod site;

use std::collections::HashMap;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use futures::StreamExt;
use futures::stream::iter;
use harness::api_client::ApiClient;
use harness::binary::binary;
use harness::home::Home;
use harness::process::Process;
use serde_json::json;
use taco_bench::{Sample, Table, time};

const AGENTS: usize = 50;
const WORKSPACES: usize = 200;
const RUNS_EACH: usize = 5;
const RUNS: usize = WORKSPACES * RUNS_EACH;

#[tokio::main]
async fn main() {
    let mut table = Table::new(&format!("Load: {AGENTS} agents, {WORKSPACES} workspaces, {RUNS} runs, 2 servers"));
    let home = Home::default();
    let engine = StandIn::install(home.path());
    let servers = [(); 2].map(|()| site::server(&home, |command| _ = command.env("TACO_AGENT_CONCURRENCY", "0")));
    let clients = servers.each_ref().map(|(_, client)| client.clone());
    site::given_organization(&clients[0]).await;
    let (pool, token) = site::given_pool(&clients[0]).await;
    let attributes = json!({ "execution-mode": "agent", "agent-pool-id": pool, "auto-apply": true });
    let workspaces: Vec<_> = iter(0..WORKSPACES)
        .map(|number| {
            let (client, attributes) = (&clients[number % 2], attributes.clone());
            async move {
                let workspace = site::given_workspace(client, &format!("load-{number:03}"), attributes).await;
                let configuration = site::given_configuration(client, &workspace, site::archive("")).await;
                (workspace, configuration)
            }
        })
        .buffered(16)
        .collect()
        .await;
    let agents: Vec<_> = (0..AGENTS)
        .map(|number| agent(&home, &engine, &clients[number % 2], &token, &format!("agent-{number:02}")))
        .collect();
    agents.iter().for_each(|agent| _ = agent.line_of_stderr(|line| line.contains("connected")));

    let begun = Instant::now();
    let runs: Vec<_> = iter(&workspaces)
        .map(|(workspace, configuration)| start_runs(&clients, workspace, configuration))
        .buffered(16)
        .collect()
        .await;
    table.note(&format!("all {RUNS} runs are created"), time(begun.elapsed()));
    let mut statuses: HashMap<String, usize> = HashMap::new();
    for run in runs.iter().flatten() {
        *statuses.entry(site::rest(&clients[0], run, Duration::from_millis(250)).await).or_default() += 1;
    }
    let took = begun.elapsed();
    let applied = statuses.get("applied").copied().unwrap_or_default();
    table.row("runs that are applied in the end", applied, RUNS, applied == RUNS);

    let written = engine.written();
    let in_order = runs
        .iter()
        .enumerate()
        .filter(|(number, runs)| written.get(&format!("load-{number:03}")).is_some_and(|written| written == *runs));
    let in_order = in_order.count();
    table.row(
        "workspaces whose runs were applied once each and in order",
        in_order,
        WORKSPACES,
        in_order == WORKSPACES,
    );
    let states = states(&clients[1], &workspaces).await;
    table.row("workspaces whose state has all applies", states, WORKSPACES, states == WORKSPACES);
    table.note("from the first run to the last apply", time(took));
    table.note("runs, each a plan and an apply", format!("{:.1}/s", RUNS as f64 / took.as_secs_f64()));
    let phases = Sample::of(engine.gaps());
    table.note("from one apply to the next, of all (median)", time(phases.median()));
    table.note("from one apply to the next, of all (longest)", time(phases.at(1.0)));
    table.close();
}

/// Runs of one workspace, one after the other, by turns at the two servers.
async fn start_runs(clients: &[ApiClient; 2], workspace: &str, configuration: &str) -> Vec<String> {
    let mut runs = Vec::new();
    for number in 0..RUNS_EACH {
        runs.push(site::start_run(&clients[number % 2], workspace, configuration, json!({})).await);
    }
    runs
}

/// In how many workspaces the state went on by one with each apply.
async fn states(client: &ApiClient, workspaces: &[(String, String)]) -> usize {
    let whole = iter(workspaces).map(async |(workspace, _)| {
        let (_, current) =
            client.send("GET", &format!("/api/v2/workspaces/{workspace}/current-state-version"), None).await;
        current["data"]["attributes"]["serial"] == RUNS_EACH
    });
    whole.buffer_unordered(16).filter(|whole| std::future::ready(*whole)).count().await
}

fn agent(home: &Home, engine: &StandIn, client: &ApiClient, token: &str, name: &str) -> Process {
    let mut command = Command::new(binary("taco-agent"));
    command.current_dir(home.path()).env_clear().env("HOME", home.path()).env("TACO_AGENT_TOKEN", token);
    command.env("PATH", format!("{}:/usr/bin:/bin", engine.directory.display())).env("TACO_ENGINE_MIRROR", "none");
    command.args(["--server", &client.origin, "--name", name, "--work-dir"]).arg(home.path().join(name));
    Process::start(&mut command)
}

/// A program that answers as terraform does, at once.
struct StandIn {
    directory: PathBuf,
    written: PathBuf,
}

impl StandIn {
    fn install(home: &Path) -> Self {
        let (directory, written) = (home.join("engine"), home.join("written"));
        std::fs::create_dir(&directory).expect("made");
        let text = STAND_IN.replace("WRITTEN", &written.display().to_string());
        let program = directory.join("terraform");
        std::fs::write(&program, text).expect("written");
        std::fs::set_permissions(&program, PermissionsExt::from_mode(0o755)).expect("a mode");
        Self { directory, written }
    }

    fn lines(&self) -> Vec<(String, String, u64)> {
        let text = std::fs::read_to_string(&self.written).expect("it wrote");
        let line = |line: &str| {
            let mut words = line.split_whitespace().map(str::to_owned);
            let (workspace, run, at) = (words.next()?, words.next()?, words.next()?);
            Some((workspace, run, at.parse().ok()?))
        };
        text.lines().map(|text| line(text).expect("workspace, run and time")).collect()
    }

    /// The runs that it applied in each workspace, as it went.
    fn written(&self) -> HashMap<String, Vec<String>> {
        let mut written: HashMap<String, Vec<String>> = HashMap::new();
        for (workspace, run, _) in self.lines() {
            written.entry(workspace).or_default().push(run);
        }
        written
    }

    fn gaps(&self) -> Vec<Duration> {
        let mut times: Vec<_> = self.lines().into_iter().map(|(_, _, at)| at).collect();
        times.sort_unstable();
        times.windows(2).map(|pair| Duration::from_nanos(pair[1] - pair[0])).collect()
    }
}

const STAND_IN: &str = r#"#!/bin/sh
case $1 in
version)
    echo '{"terraform_version":"1.11.4"}' ;;
plan)
    for word in "$@"; do
        case $word in -out=*) echo planned >"${word#-out=}" ;; esac
    done
    echo "Plan: 1 to add, 0 to change, 0 to destroy."
    exit 2 ;;
show)
    echo '{"format_version":"1.2","resource_changes":[]}' ;;
apply)
    state=.terraform/taco/workspaces/$TFC_WORKSPACE_NAME/terraform.tfstate
    serial=0
    if read -r line 2>/dev/null <"$state"; then
        serial=${line#*\"serial\":}
        serial=${serial%%,*}
    fi
    echo "$TFC_WORKSPACE_NAME $TFC_RUN_ID $(date +%s%N)" >>"WRITTEN"
    echo '{"version":4,"serial":'$((serial + 1))',"lineage":"'$TFC_WORKSPACE_NAME'","terraform_version":"1.11.4","outputs":{},"resources":[]}' >"$state"
    echo "Apply complete! Resources: 1 added, 0 changed, 0 destroyed." ;;
esac
"#;
