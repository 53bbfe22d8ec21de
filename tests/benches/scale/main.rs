//! A site with many workspaces and a million runs: how soon it is ready, what it holds in memory, how its lists compare with
//! those of a small site, how commits fare while a snapshot is written, and what a run costs in the bucket.
//!
//! `cargo xtask bench scale`, or with a smaller site: `cargo xtask bench scale --runs 50000 --workspaces 500 --real 500`.
//! [`site`] says how sites are made; the first time takes a while, then they come from the cache.

mod records;
mod site;

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use harness::api_client::ApiClient;
use harness::api_server::{SECRET, SITE_TOKEN};
use harness::home::{Home, ServerProcess};
use reqwest::Client;
use serde_json::{Value, json};
use taco_bench::{Sample, Table, ratio, resident_memory, time};

use crate::site::{Facts, ORGANIZATION, Site, Size};

/// So often is the large site started.
const STARTS: usize = 3;
/// So often is each page asked for.
const TIMES: usize = 60;
/// Number of workspaces whose page 1 is asked for.
const ASKED_WORKSPACES: usize = 60;
/// So many runs are made one by one to see what one costs: more than stay in memory, and with enough commits to pack.
const REAL_RUNS: usize = 6_000;
/// A snapshot is due after so many commits.
const SNAPSHOT_EVERY: u64 = 1_000;
/// Number of snapshots that are written while commits are timed.
const SNAPSHOTS: u64 = 3;

#[tokio::main]
async fn main() {
    let size = asked_size();
    let few = Size { workspaces: 10, runs: 1_000, real: 20 };
    let (large, small) = (site::given_site("large", size).await, site::given_site("small", few).await);
    let real = site::given_site("real", Size { workspaces: 200, runs: REAL_RUNS, real: REAL_RUNS }).await;
    let title = format!("Scale: {} workspaces, {} runs, on a local directory", size.workspaces, size.runs);
    let mut table = Table::new(&title);
    let made = format!("{} s", large.facts.seconds);
    table.note(&format!("made in, {} runs through the API, the rest in batches", size.real), made);

    let large = Running::start(&mut table, &large, size).await;
    let small = Running::start_quietly(&small, few).await;
    lists(&mut table, &large, &small).await;
    lists_of_workspaces(&mut table, &large, &small).await;
    let resident = large.memory();
    table.row("memory after all of these lists", megabytes(resident), "250 MB", resident < 250_000_000);
    commits(&mut table, &large).await;
    let resident = large.memory();
    table.note("memory at the end", megabytes(resident));
    table.note("memory, the most there was", megabytes(large.peak_memory()));
    bytes_of_a_run(&mut table, &real.facts);
    table.close();
}

fn asked_size() -> Size {
    let mut size = Size { workspaces: 10_000, runs: 1_000_000, real: 2_000 };
    let mut arguments = std::env::args().skip(1).filter(|argument| argument != "--bench");
    while let Some(name) = arguments.next() {
        let number = arguments.next().and_then(|number| number.parse().ok());
        let number = number.unwrap_or_else(|| panic!("{name} takes a number"));
        match name.as_str() {
            "--workspaces" => size.workspaces = number,
            "--runs" => size.runs = number,
            "--real" => size.real = number,
            _ => panic!("there is no {name}: there are --workspaces, --runs and --real"),
        }
    }
    size.real = size.real.min(size.runs);
    size
}

/// A server on a site.
struct Running {
    server: ServerProcess,
    client: ApiClient,
    size: Size,
    bucket: tempfile::TempDir,
    _home: Home,
}

impl Running {
    async fn start_quietly(site: &Site, size: Size) -> Self {
        let (bucket, home) = (site.copy(), Home::default());
        let (server, client) = start(&home, bucket.path());
        let running = Self { server, client, size, bucket, _home: home };
        running.client.get(&format!("/api/v2/organizations/{ORGANIZATION}/runs")).await;
        running
    }

    /// The last of a few starts, each on a fresh copy.
    async fn start(table: &mut Table, site: &Site, size: Size) -> Self {
        let (mut listens, mut workspaces, mut ready, mut last) = (Vec::new(), Vec::new(), Vec::new(), None);
        for _ in 0..STARTS {
            drop(last.take());
            let (bucket, home) = (site.copy(), Home::default());
            let begun = Instant::now();
            let (server, client) = start(&home, bucket.path());
            listens.push(begun.elapsed());
            client.get(&format!("/api/v2/organizations/{ORGANIZATION}/workspaces")).await;
            workspaces.push(begun.elapsed());
            client.get(&format!("/api/v2/organizations/{ORGANIZATION}/runs")).await;
            ready.push(begun.elapsed());
            last = Some(Self { server, client, size, bucket, _home: home });
        }
        let running = last.expect("it was started");
        table.note("from the start to a server that listens", time(Sample::of(listens).median()));
        table.note("from the start to the first list of workspaces", time(Sample::of(workspaces).median()));
        let ready = Sample::of(ready).median();
        table.row("from the start to the first list of runs", time(ready), "2 s", ready < Duration::from_secs(2));
        let resident = running.memory();
        table.row("memory then", megabytes(resident), "250 MB", resident < 250_000_000);
        running
    }

    fn memory(&self) -> u64 {
        resident_memory(self.server.process.id()).unwrap_or(u64::MAX)
    }

    fn peak_memory(&self) -> u64 {
        let status = fs::read_to_string(format!("/proc/{}/status", self.server.process.id())).unwrap_or_default();
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let kilobytes = line.and_then(|line| line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok());
        kilobytes.map_or(u64::MAX, |kilobytes| kilobytes * 1024)
    }

    /// Answers to a path, one after the other.
    async fn timed(&self, path: &str) -> Duration {
        let begun = Instant::now();
        self.client.get(path).await;
        begun.elapsed()
    }

    fn of_organization(&self, rest: &str) -> String {
        format!("/api/v2/organizations/{ORGANIZATION}/{rest}")
    }

    /// The ids of some workspaces, busy ones and quiet ones.
    async fn workspaces(&self) -> Vec<String> {
        let mut ids = Vec::new();
        for number in 0..ASKED_WORKSPACES {
            let name = records::workspace_name(number * self.size.workspaces / ASKED_WORKSPACES);
            ids.push(id_of(&self.client.get(&self.of_organization(&format!("workspaces/{name}"))).await["data"]));
        }
        ids
    }
}

fn start(home: &Home, place: &Path) -> (ServerProcess, ApiClient) {
    let mut command = home.taco(&["server"]);
    command.env("TACO_BUCKET", format!("file://{}", place.join("bucket").display()));
    command.env("TACO_LISTEN", "127.0.0.1:0").env("TACO_SITE_TOKEN", SITE_TOKEN).env("TACO_SECRET_KEY", SECRET);
    command.env("TACO_AGENT_CONCURRENCY", "0").env("PATH", "/usr/bin:/bin");
    let server = ServerProcess::start(&mut command);
    let origin = format!("http://{}", server.address);
    (server, ApiClient { origin, client: Client::new(), token: SITE_TOKEN.to_owned() })
}

fn id_of(data: &Value) -> String {
    data["id"].as_str().expect("an id").to_owned()
}

fn megabytes(bytes: u64) -> String {
    format!("{:.0} MB", bytes as f64 / 1e6)
}

/// The same path at both, by turns, so that a neighbour's noise meets both.
async fn compare(large: &Running, small: &Running, paths: &[(String, String)]) -> (Duration, Duration) {
    let (mut of_large, mut of_small) = (Vec::new(), Vec::new());
    for (path_in_large, path_in_small) in paths {
        of_large.push(large.timed(path_in_large).await);
        of_small.push(small.timed(path_in_small).await);
    }
    (Sample::of(of_large).median(), Sample::of(of_small).median())
}

async fn lists(table: &mut Table, large: &Running, small: &Running) {
    let path = large.of_organization("runs");
    let paths = vec![(path.clone(), path.clone()); TIMES];
    compared(table, "page 1 of the organization's runs", compare(large, small, &paths).await);
    let runs_of = |id: &String| format!("/api/v2/workspaces/{id}/runs");
    let (of_large, of_small) = (large.workspaces().await, small.workspaces().await);
    let paths: Vec<_> = of_large.iter().map(runs_of).zip(of_small.iter().map(runs_of)).collect();
    compared(table, "page 1 of a workspace's runs, each for the first time", compare(large, small, &paths).await);
    compared(table, "page 1 of a workspace's runs, again", compare(large, small, &paths).await);

    let middle = large.size.runs / 2 / 20;
    let answer = large.client.get(&large.of_organization(&format!("runs?page[number]={middle}"))).await;
    let run = id_of(&answer["data"][0]);
    let sequel = |number: usize| large.of_organization(&format!("runs?page[number]={}", middle + number * 7));
    within(table, large, "a page of them in the middle", 50, (0..TIMES).map(sequel)).await;
    let errored =
        |number: usize| large.of_organization(&format!("runs?filter[status]=errored&page[number]={}", number + 1));
    within(table, large, "a page of those that failed", 50, (0..TIMES).map(errored)).await;
    let of_busiest =
        |number: usize| format!("{}?filter[status]=errored&page[number]={}", runs_of(&of_large[0]), number + 1);
    within(table, large, "the same of the busiest workspace", 50, (0..TIMES).map(of_busiest)).await;
    let text = |number: usize| large.of_organization(&format!("runs?search[basic]=replicas%20to%20{}", number % 97));
    noted(table, large, "a search in all messages", (0..10).map(text)).await;
    let user = |number: usize| large.of_organization(&format!("runs?search[user]=user-{:02}", number % 30));
    noted(table, large, "runs of one user", (0..20).map(user)).await;
    noted(table, large, "a run in history by its id", (0..TIMES).map(|_| format!("/api/v2/runs/{run}"))).await;
    noted(table, large, "its events", (0..TIMES).map(|_| format!("/api/v2/runs/{run}/run-events"))).await;
    let states = |number: usize| format!("/api/v2/workspaces/{}/state-versions", of_large[number % of_large.len()]);
    noted(table, large, "page 1 of a workspace's states", (0..TIMES).map(states)).await;
    let configurations =
        |number: usize| format!("/api/v2/workspaces/{}/configuration-versions", of_large[number % of_large.len()]);
    noted(table, large, "page 1 of a workspace's configurations", (0..TIMES).map(configurations)).await;
    noted(table, large, "how much there is to do", (0..TIMES).map(|_| large.of_organization("capacity"))).await;
    noted(table, large, "the queue", (0..TIMES).map(|_| large.of_organization("runs/queue"))).await;
}

async fn lists_of_workspaces(table: &mut Table, large: &Running, small: &Running) {
    for (what, rest) in [
        ("page 1 of workspaces", "workspaces"),
        ("page 1 of workspaces with their runs and projects", "workspaces?include=current_run,project"),
        ("a page of workspaces in the middle", "workspaces?page[number]=9"),
        ("workspaces by name", "workspaces?search[name]=0042"),
        ("workspaces by tag", "workspaces?search[tags]=stage"),
        ("workspaces whose current run failed", "workspaces?filter[current-run][status]=errored"),
        ("workspaces by their latest change", "workspaces?sort=-latest-change-at"),
        ("workspaces by their current run", "workspaces?sort=current-run.created-at"),
        ("page 1 of projects", "projects"),
        ("page 1 of tags", "tags"),
    ] {
        let path = large.of_organization(rest);
        let (of_large, of_small) = compare(large, small, &vec![(path.clone(), path); 20]).await;
        let measured = format!("{} = {:.1} x", time(of_large), ratio(of_large, of_small));
        table.note(what, measured);
    }
}

fn compared(table: &mut Table, what: &str, (of_large, of_small): (Duration, Duration)) {
    table.note(&format!("{what}, of the small site"), time(of_small));
    let times = ratio(of_large, of_small);
    table.row(what, format!("{} = {times:.2} x", time(of_large)), "1.5 x", times <= 1.5);
}

async fn sample(running: &Running, paths: impl Iterator<Item = String>) -> Sample {
    let mut taken = Vec::new();
    for path in paths {
        taken.push(running.timed(&path).await);
    }
    Sample::of(taken)
}

async fn within(
    table: &mut Table,
    running: &Running,
    what: &str,
    milliseconds: u64,
    paths: impl Iterator<Item = String>,
) {
    let (median, aim) = (sample(running, paths).await.median(), Duration::from_millis(milliseconds));
    table.row(what, time(median), time(aim), median < aim);
}

async fn noted(table: &mut Table, running: &Running, what: &str, paths: impl Iterator<Item = String>) {
    table.note(what, time(sample(running, paths).await.median()));
}

/// Commits one after the other, and which of them met a snapshot that was being written.
async fn commits(table: &mut Table, running: &Running) {
    let workspace = running.workspaces().await.pop().expect("there are workspaces");
    let root = running.bucket.path().join("bucket/ledgers");
    let organization = fs::read_dir(&root).expect("ledgers").flatten().find(|entry| entry.file_name() != *"site");
    let ledger = organization.expect("an organization").path();
    let newest = |folder: &str| {
        let names = fs::read_dir(ledger.join(folder)).into_iter().flatten().flatten().map(|entry| entry.file_name());
        names.filter_map(|name| name.to_str()?.split('.').next()?.parse::<u64>().ok()).max().unwrap_or(0)
    };
    let (mut without, mut with) = (Vec::new(), Vec::new());
    let first = newest("log");
    let last = (first / SNAPSHOT_EVERY + SNAPSHOTS) * SNAPSHOT_EVERY + 400;
    // A snapshot that is due and not there is being written.
    let (mut seq, mut due) = (first, newest("snapshots"));
    while seq < last {
        if due > 0 && newest("snapshots") >= due {
            due = 0;
        }
        let begun = Instant::now();
        let action = if (seq - first).is_multiple_of(2) { "lock" } else { "unlock" };
        running.client.post(&format!("/api/v2/workspaces/{workspace}/actions/{action}"), json!({})).await;
        if due > 0 {
            with.push(begun.elapsed());
        } else {
            without.push(begun.elapsed());
        }
        seq += 1;
        if seq.is_multiple_of(SNAPSHOT_EVERY) {
            due = newest("log") / SNAPSHOT_EVERY * SNAPSHOT_EVERY;
        }
    }
    let met = with.len();
    let (without, with) = (Sample::of(without), Sample::of(with));
    table.note("a commit (median)", time(without.median()));
    table.note("a commit (p99)", time(without.at(0.99)));
    table.note(&format!("a commit while a snapshot is written (median of {met})"), time(with.median()));
    let times = ratio(with.at(0.99), without.at(0.99));
    let measured = format!("{} = {times:.2} x", time(with.at(0.99)));
    table.row("a commit while a snapshot is written (p99)", measured, "2 x", times <= 2.0);
}

/// What each run has added to the bucket once it is old.
fn bytes_of_a_run(table: &mut Table, facts: &Facts) {
    let settled = facts.settled.expect("its commits could be packed");
    let commits = facts.commits as f64 / facts.real as f64;
    let packed = settled.packed_bytes as f64 / settled.packed_commits as f64 * commits;
    let history = settled.history_bytes as f64 / settled.bundles as f64;
    let kilobytes = |bytes: f64| format!("{:.2} KB", bytes / 1000.0);
    table.note("commits of a run", format!("{commits:.1}"));
    table.note("its commits before they are packed", kilobytes(settled.plain_commit_bytes as f64 * commits));
    table.note("its commits in packs", kilobytes(packed));
    table.note("its records in history", kilobytes(history));
    table.note(&format!("snapshots of all {} runs", facts.runs), megabytes(settled.snapshot_bytes));
    let bytes = packed + history;
    table.row("a run's bytes besides logs, plans and other blobs", kilobytes(bytes), "3 KB", bytes < 3_000.0);
}
