//! Overhead of a run over terraform's own work, next to the same commands by hand in the same benchmark.

mod site;

use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use futures::StreamExt;
use futures::stream::iter;
use harness::api_client::ApiClient;
use harness::binary::binary;
use harness::bucket_servers::{BucketServer, variables_of};
use harness::home::{Home, ServerProcess};
use harness::process::Process;
use jiff::Timestamp;
use serde_json::{Value, json};
use taco_bench::{Sample, Table, ratio, resident_memory, time};
use taco_ledger::{Clock, SystemClock};

const PLANS: usize = 20;
const MANY: usize = 50;
const SHELLS: usize = 4;
/// Latency that the distant bucket adds to every operation.
const BUCKET_LATENCY: Duration = Duration::from_millis(30);

const CONFIGURATION: &str = r#"
resource "terraform_data" "network" { input = "10.0.0.0/16" }
resource "terraform_data" "subnet" { input = [for zone in ["a", "b", "c"] : "${terraform_data.network.id}-${zone}"] }
resource "terraform_data" "router" { input = terraform_data.subnet.output }
output "router" { value = terraform_data.router.id }
"#;

/// Says the time in nanoseconds, again and again.
const TALKATIVE: &str = r#"
resource "terraform_data" "clock" {
  provisioner "local-exec" {
    command = "for turn in 1 2 3 4 5 6 7 8 9 10; do echo said-at-$(date +%s%N)-; sleep 0.37; done"
  }
}
"#;

#[tokio::main]
async fn main() {
    let mut table = Table::new("Runs");
    near(&mut table).await;
    far(&mut table).await;
    table.close();
}

async fn near(table: &mut Table) {
    let home = Home::default();
    let (server, client) = site::server(&home, |command| _ = command.env("TACO_AGENT_CONCURRENCY", "4"));
    site::given_organization(&client).await;
    let overhead = overhead(table, &server, &client, "a local directory").await;
    let aim = Duration::from_millis(50);
    table.row("overhead of a remote plan, local directory", time(overhead), time(aim), overhead < aim);
    many(table, &client).await;
    log_lines(table, &client).await;
    let memory = resident_memory(server.process.id()).unwrap_or(u64::MAX) as f64 / 1e6;
    table.row("memory of the server after all that", format!("{memory:.0} MB"), "60 MB", memory < 60.0);
    idle_agent(table, &home, &client).await;
}

async fn far(table: &mut Table) {
    let home = Home::default();
    let bucket = BucketServer::far_gcs(BUCKET_LATENCY).expect("a bucket");
    let (server, client) = site::server(&home, |command| _ = command.envs(variables_of(&bucket.location())));
    site::given_organization(&client).await;
    let overhead = overhead(table, &server, &client, "a far bucket").await;
    let aim = Duration::from_millis(400);
    table.row("overhead of a remote plan, 30 ms added to each operation", time(overhead), time(aim), overhead < aim);
}

/// Overhead of a plan over one by hand: the median of pairs, so that a neighbour's noise affects both.
async fn overhead(table: &mut Table, server: &ServerProcess, client: &ApiClient, place: &str) -> Duration {
    let workspace = site::given_workspace(client, "network", json!({})).await;
    let configuration = site::given_configuration(client, &workspace, site::archive(CONFIGURATION)).await;
    let (mut by_hand, mut remote, mut starts, mut more) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    // The first two find everything cold.
    for turn in 0..PLANS + 2 {
        let hand = timed(async || plan_by_hand().await).await;
        let sent_at = SystemClock.now();
        let run = site::start_run(client, &workspace, &configuration, json!({ "plan-only": true })).await;
        // The server's log says when the plan ended: polling for that would take from terraform's time.
        assert_eq!(site::rest(client, &run, Duration::from_millis(50)).await, "planned_and_finished");
        let after = |word| Duration::try_from(said_at(server, word, &run).duration_since(sent_at)).unwrap_or_default();
        if turn >= 2 {
            by_hand.push(hand);
            remote.push(after("done"));
            starts.push(after("begun"));
            more.push(after("done").saturating_sub(hand));
        }
    }
    table.note(&format!("init, plan and show by hand, beside {place}"), time(Sample::of(by_hand).median()));
    table.note(&format!("POST runs to planned, {place}"), time(Sample::of(remote).median()));
    let start = Sample::of(starts).median();
    let what = format!("POST runs to the agent's start, {place}");
    match place.contains("local") {
        true => table.row(&what, time(start), "20 ms", start < Duration::from_millis(20)),
        false => table.note(&what, time(start)),
    }
    Sample::of(more).median()
}

/// Time when the server's own agent logged that it begins with this run, or has reported all about it.
fn said_at(server: &ServerProcess, word: &str, run: &str) -> Timestamp {
    let message = format!("\"message\":\"{word}\"");
    let line = server.process.line_of_stderr(|line| line.contains(&message) && line.contains(run));
    let line: Value = serde_json::from_str(&line).expect("log lines are JSON");
    line["timestamp"].as_str().and_then(|text| text.parse().ok()).expect("a timestamp")
}

async fn timed(work: impl AsyncFnOnce()) -> Duration {
    let begun = Instant::now();
    work().await;
    begun.elapsed()
}

/// Plan as someone without taco runs it.
async fn plan_by_hand() {
    tokio::task::spawn_blocking(|| {
        let directory = tempfile::tempdir().expect("a directory");
        std::fs::write(directory.path().join("main.tf"), CONFIGURATION).expect("written");
        for words in [&["init", "-input=false"][..], &["plan", "-input=false", "-out=plan"], &["show", "-json", "plan"]]
        {
            terraform(directory.path(), words);
        }
    })
    .await
    .expect("it ends");
}

fn terraform(directory: &Path, words: &[&str]) {
    let mut command = Command::new(site::terraform());
    command.args(words).current_dir(directory).env_clear().env("HOME", directory).env("CHECKPOINT_DISABLE", "1");
    command.env("PATH", "/usr/bin:/bin").env("TF_IN_AUTOMATION", "1").stdin(Stdio::null()).stdout(Stdio::null());
    assert!(command.status().expect("terraform starts").success());
}

/// Plans in many workspaces at once, against as many shells as the agent has places.
async fn many(table: &mut Table, client: &ApiClient) {
    let workspaces: Vec<_> = iter(0..MANY)
        .map(async |number| {
            let workspace = site::given_workspace(client, &format!("of-many-{number}"), json!({})).await;
            let configuration = site::given_configuration(client, &workspace, site::archive(CONFIGURATION)).await;
            (workspace, configuration)
        })
        .buffer_unordered(8)
        .collect()
        .await;
    let (mut by_hand, mut remote) = (Vec::new(), Vec::new());
    for _ in 0..3 {
        by_hand.push(timed(shells).await);
        let runs = async || {
            let start = |(workspace, configuration): &(String, String)| {
                let (workspace, configuration) = (workspace.clone(), configuration.clone());
                async move { site::start_run(client, &workspace, &configuration, json!({ "plan-only": true })).await }
            };
            let runs: Vec<_> = iter(&workspaces).map(start).buffered(8).collect().await;
            for run in runs {
                assert_eq!(site::rest(client, &run, Duration::from_millis(20)).await, "planned_and_finished");
            }
        };
        remote.push(timed(runs).await);
    }
    let (by_hand, remote) = (Sample::of(by_hand).median(), Sample::of(remote).median());
    table.note(&format!("{MANY} plans by {SHELLS} shells"), time(by_hand));
    let times = ratio(remote, by_hand);
    let measured = format!("{} = {times:.2} x", time(remote));
    table.row(&format!("{MANY} plans in {MANY} workspaces, {SHELLS} at a time"), measured, "1.25 x", times <= 1.25);
}

async fn shells() {
    let begun = AtomicUsize::new(0);
    let shell = async || {
        while begun.fetch_add(1, Ordering::Relaxed) < MANY {
            plan_by_hand().await;
        }
    };
    futures::future::join_all((0..SHELLS).map(|_| shell())).await;
}

/// Latency of an apply's log lines for someone who follows the log.
async fn log_lines(table: &mut Table, client: &ApiClient) {
    let workspace = site::given_workspace(client, "talkative", json!({})).await;
    let configuration = site::given_configuration(client, &workspace, site::archive(TALKATIVE)).await;
    let run = site::start_run(client, &workspace, &configuration, json!({ "auto-apply": true })).await;
    let shown = client.get(&format!("/api/v2/runs/{run}?include=apply")).await;
    let address = shown["included"][0]["attributes"]["log-read-url"].as_str().expect("an address").to_owned();
    let mut ages = Vec::new();
    let mut log = String::new();
    while !log.contains('\u{3}') {
        let part = client.client.get(format!("{address}?offset={}&limit=65536", log.len())).send().await;
        let part = part.expect("the server answers").text().await.expect("a whole body");
        let now = SystemClock.now().as_nanosecond();
        for said_at in part.split("said-at-").skip(1).filter_map(|rest| rest.split('-').next()?.parse::<i128>().ok()) {
            ages.push(Duration::from_nanos(u64::try_from(now - said_at).unwrap_or_default()));
        }
        log += &part;
    }
    let ages = Sample::of(ages);
    let oldest = ages.at(1.0);
    table.note("a log line to its follower (median)", time(ages.median()));
    table.row("a log line to its follower (longest)", time(oldest), "500 ms", oldest < Duration::from_millis(500));
}

async fn idle_agent(table: &mut Table, home: &Home, client: &ApiClient) {
    let (_, token) = site::given_pool(client).await;
    let mut command = Command::new(binary("taco-agent"));
    command.current_dir(home.path()).env_clear().env("HOME", home.path()).env("TACO_AGENT_TOKEN", token);
    command.args(["--server", &client.origin, "--name", "idle", "--work-dir"]).arg(home.path().join("idle"));
    let agent = Process::start(&mut command);
    agent.line_of_stderr(|line| line.contains("connected"));
    tokio::time::sleep(Duration::from_secs(2)).await;
    let memory = resident_memory(agent.id()).unwrap_or(u64::MAX) as f64 / 1e6;
    table.row("memory of an idle agent", format!("{memory:.0} MB"), "30 MB", memory < 30.0);
}
