//! Many runs, many agents, two servers on one bucket: everything is applied once and in order, and how soon.
//!
//! Of ten runs seven are planned and applied, two are only planned, and one is cancelled. The engine is a stand-in that
//! does nothing but write down which run it applied, outside of taco. Then an organization with many plans and one with
//! few share the agents of a server: the few do not wait for the many.

mod site;

use std::collections::HashMap;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

use futures::StreamExt;
use futures::stream::iter;
use harness::api_client::ApiClient;
use harness::binary::binary;
use harness::home::Home;
use harness::process::Process;
use jiff::Timestamp;
use serde_json::json;
use taco_bench::{Sample, Table, time};
use tempfile::TempDir;

const AGENTS: usize = 50;
const WORKSPACES: usize = 200;
const RUNS_EACH: usize = 5;
const RUNS: usize = WORKSPACES * RUNS_EACH;

/// Kind of a run, by its outcome.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Applied,
    OnlyPlanned,
    Cancelled,
}

impl Kind {
    fn end(self) -> &'static str {
        match self {
            Self::Applied => "applied",
            Self::OnlyPlanned => "planned_and_finished",
            Self::Cancelled => "canceled",
        }
    }
}

/// The runs of every workspace with an even number, and those of its neighbour.
const MIX: [[Kind; RUNS_EACH]; 2] = {
    use Kind::{Applied, Cancelled, OnlyPlanned};
    [[Applied, OnlyPlanned, Applied, Applied, Applied], [Applied, Cancelled, Applied, OnlyPlanned, Applied]]
};

fn applied_in(workspace: usize) -> usize {
    MIX[workspace % 2].iter().filter(|kind| **kind == Kind::Applied).count()
}

#[tokio::main]
async fn main() {
    let mut table = Table::new(&format!("Load: {AGENTS} agents, {WORKSPACES} workspaces, {RUNS} runs, 2 servers"));
    let home = Home::default();
    let engine = StandIn::install();
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

    let operations = bucket_operations(&clients).await;
    let begun = Instant::now();
    let runs: Vec<Vec<(Kind, String)>> = iter(workspaces.iter().enumerate())
        .map(|(number, (workspace, configuration))| start_runs(&clients, MIX[number % 2], workspace, configuration))
        .buffered(16)
        .collect()
        .await;
    table.note(&format!("all {RUNS} runs are created"), time(begun.elapsed()));
    let mut as_it_should = 0;
    for (kind, run) in runs.iter().flatten() {
        as_it_should += usize::from(site::rest(&clients[0], run, Duration::from_millis(250)).await == kind.end());
    }
    let took = begun.elapsed();
    let operations = bucket_operations(&clients).await - operations;
    table.row("runs that are applied, planned or cancelled in the end", as_it_should, RUNS, as_it_should == RUNS);

    let written = engine.written();
    let in_order = runs.iter().enumerate().filter(|(number, runs)| {
        let applied = runs.iter().filter(|(kind, _)| *kind == Kind::Applied).map(|(_, run)| run);
        written.get(&format!("load-{number:03}")).is_some_and(|written| written.iter().eq(applied))
    });
    let in_order = in_order.count();
    table.row(
        "workspaces whose runs were applied once each and in order",
        in_order,
        WORKSPACES,
        in_order == WORKSPACES,
    );
    let states = states(&clients[1], &workspaces).await;
    table.row("workspaces whose state has all applies", states, WORKSPACES, states == WORKSPACES);

    let phases = phases(&clients, &runs).await;
    let (longest, per_second) = (Duration::from_secs(120), phases.len() as f64 / took.as_secs_f64());
    table.row("from the first run to the last", time(took), time(longest), took <= longest);
    table.row(&format!("phases, of {} in all", phases.len()), format!("{per_second:.1}/s"), "8/s", per_second >= 8.0);
    let claims = Sample::of(claims(&phases)).at(0.95);
    let most = Duration::from_secs(1);
    table.row("from a phase that waits and a free agent to its start (p95)", time(claims), time(most), claims <= most);
    let waits = Sample::of(phases.iter().map(|phase| between(phase.queued, phase.started)).collect());
    table.note("  from a phase that waits to its start, whoever is free (p95)", time(waits.at(0.95)));
    let each = operations / phases.len() as f64;
    table.row("operations on the bucket for each phase", format!("{each:.1}"), "40", each <= 40.0);
    let gaps = Sample::of(engine.gaps());
    table.note("from one apply to the next, of all (median)", time(gaps.median()));
    table.note("from one apply to the next, of all (longest)", time(gaps.at(1.0)));
    let most = most_that_went_first(&home, &engine).await;
    // One of the noisy organization for each agent within the server, and one in between.
    let fair = AGENTS_WITHIN + 1;
    table.row(
        &format!("plans of an organization with {NOISE} between two of one with {QUIET}, at most"),
        most,
        fair,
        most <= fair,
    );
    table.close();
}

/// Agents within a server are shared by all organizations.
const AGENTS_WITHIN: usize = 2;
const NOISE: usize = 60;
const QUIET: usize = 5;

/// Highest number of plans of a noisy organization that began between two of a quiet one whose runs came after all of
/// them.
async fn most_that_went_first(home: &Home, engine: &StandIn) -> usize {
    let (_server, client) = site::server(home, |command| {
        command.env("PATH", engine.search_path());
        command.env("TACO_AGENT_CONCURRENCY", AGENTS_WITHIN.to_string());
    });
    let mut runs = Vec::new();
    for (organization, count) in [("noisy", NOISE), ("quiet", QUIET)] {
        client.given_organization(organization).await;
        let body =
            json!({ "data": { "type": "workspaces", "attributes": { "name": "web", "execution-mode": "remote" } } });
        let made = client.post(&format!("/api/v2/organizations/{organization}/workspaces"), body).await;
        let workspace = made["data"]["id"].as_str().expect("an id").to_owned();
        let configuration = site::given_configuration(&client, &workspace, site::archive("")).await;
        for _ in 0..count {
            let attributes = json!({ "plan-only": true });
            runs.push((organization, site::start_run(&client, &workspace, &configuration, attributes).await));
        }
    }
    let (_, last_run) = runs.last().expect("there are runs");
    let shown = client.get(&format!("/api/v2/runs/{last_run}")).await;
    let all_are_there: Timestamp =
        shown["data"]["attributes"]["created-at"].as_str().expect("a time").parse().expect("a time");
    let mut begun = Vec::new();
    for (organization, run) in &runs {
        site::rest(&client, run, Duration::from_millis(250)).await;
        let shown = client.get(&format!("/api/v2/runs/{run}/plan")).await;
        let started = shown["data"]["attributes"]["status-timestamps"]["started-at"].as_str().expect("it began");
        begun.push((started.parse::<Timestamp>().expect("a time"), *organization));
    }
    // What began before the quiet one had asked for anything was nobody's turn but the noisy one's.
    begun.retain(|(started, _)| *started > all_are_there);
    begun.sort_unstable();
    let order: Vec<_> = begun.into_iter().map(|(_, organization)| organization).collect();
    let last = order.iter().rposition(|organization| *organization == "quiet").map_or(0, |last| last + 1);
    order[..last].split(|organization| *organization == "quiet").map(<[_]>::len).max().unwrap_or_default()
}

/// Runs of one workspace, one after the other, by turns at the two servers.
async fn start_runs(
    clients: &[ApiClient; 2],
    kinds: [Kind; RUNS_EACH],
    workspace: &str,
    configuration: &str,
) -> Vec<(Kind, String)> {
    let mut runs = Vec::new();
    for (number, kind) in kinds.into_iter().enumerate() {
        let attributes = json!({ "plan-only": kind == Kind::OnlyPlanned });
        let run = site::start_run(&clients[number % 2], workspace, configuration, attributes).await;
        if kind == Kind::Cancelled {
            clients[(number + 1) % 2].post(&format!("/api/v2/runs/{run}/actions/cancel"), json!({})).await;
        }
        runs.push((kind, run));
    }
    runs
}

/// In how many workspaces the state went on by one with each apply.
async fn states(client: &ApiClient, workspaces: &[(String, String)]) -> usize {
    let whole = iter(workspaces.iter().enumerate()).map(async |(number, (workspace, _))| {
        let (_, current) =
            client.send("GET", &format!("/api/v2/workspaces/{workspace}/current-state-version"), None).await;
        current["data"]["attributes"]["serial"] == applied_in(number)
    });
    whole.buffer_unordered(16).filter(|whole| std::future::ready(*whole)).count().await
}

/// A plan or an apply that an agent had.
struct Phase {
    agent: String,
    queued: Timestamp,
    started: Timestamp,
    ended: Timestamp,
}

/// All phases that were executed.
async fn phases(clients: &[ApiClient; 2], runs: &[Vec<(Kind, String)>]) -> Vec<Phase> {
    let wanted = runs.iter().flatten().flat_map(|(_, run)| ["plan", "apply"].map(|kind| (run, kind)));
    let shown = iter(wanted).map(async |(run, kind)| {
        let shown = clients[0].get(&format!("/api/v2/runs/{run}/{kind}")).await;
        let attributes = &shown["data"]["attributes"];
        let at = |name: &str| attributes["status-timestamps"][name].as_str()?.parse().ok();
        Some(Phase {
            agent: attributes["execution-details"]["agent-name"].as_str()?.to_owned(),
            queued: at("queued-at")?,
            started: at("started-at")?,
            ended: ["finished-at", "errored-at", "canceled-at"].into_iter().find_map(at)?,
        })
    });
    shown.buffer_unordered(16).filter_map(std::future::ready).collect().await
}

fn between(from: Timestamp, to: Timestamp) -> Duration {
    Duration::try_from(to.duration_since(from)).unwrap_or_default()
}

/// Waiting times of phases while the agent that then took them was idle.
fn claims(phases: &[Phase]) -> Vec<Duration> {
    let mut by_agent: HashMap<&str, Vec<&Phase>> = HashMap::new();
    for phase in phases {
        by_agent.entry(&phase.agent).or_default().push(phase);
    }
    let mut claims = Vec::new();
    for phases in by_agent.values_mut() {
        phases.sort_unstable_by_key(|phase| phase.started);
        let mut free_since = Timestamp::MIN;
        for phase in phases {
            claims.push(between(phase.queued.max(free_since), phase.started));
            free_since = phase.ended;
        }
    }
    claims
}

/// Number of bucket operations of both servers.
async fn bucket_operations(clients: &[ApiClient; 2]) -> f64 {
    let mut all = 0.0;
    for client in clients {
        let answer = client.client.get(format!("{}/metrics", client.origin)).send().await.expect("the server answers");
        let text = answer.text().await.expect("text");
        let counts = text.lines().filter(|line| line.starts_with("taco_bucket_operations_total{"));
        all += counts.filter_map(|line| line.rsplit(' ').next()?.parse::<f64>().ok()).sum::<f64>();
    }
    all
}

fn agent(home: &Home, engine: &StandIn, client: &ApiClient, token: &str, name: &str) -> Process {
    let mut command = Command::new(binary("taco-agent"));
    command.current_dir(home.path()).env_clear().env("HOME", home.path()).env("TACO_AGENT_TOKEN", token);
    command.env("PATH", engine.search_path()).env("TACO_ENGINE_MIRROR", "none");
    command.args(["--server", &client.origin, "--name", name, "--work-dir"]).arg(home.path().join(name));
    Process::start(&mut command)
}

/// A program that answers as terraform does, at once.
struct StandIn {
    /// Away from the agents, near which no run may write.
    directory: TempDir,
    written: PathBuf,
}

impl StandIn {
    fn install() -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        let written = directory.path().join("written");
        let text = STAND_IN.replace("WRITTEN", &written.display().to_string());
        let program = directory.path().join("terraform");
        std::fs::write(&program, text).expect("written");
        std::fs::set_permissions(&program, PermissionsExt::from_mode(0o755)).expect("a mode");
        Self { directory, written }
    }

    fn search_path(&self) -> String {
        format!("{}:/usr/bin:/bin", self.directory.path().display())
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
