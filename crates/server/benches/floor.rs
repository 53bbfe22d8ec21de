//! Overhead of every request, independent of what it asks for: the CPU time for small responses, and the latency for
//! clients, compared with a bare axum handler that returns the same bytes in the same run.
//!
//! The CPU time hardly depends on what else the machine does, so it is the figure to look at; the latencies do.

mod site;

use std::process::Command;
use std::time::Duration;

use site::{Client, Server, Way, bare_server, organization, state, timed};
use taco_bench::{Sample, Table, ratio, time};

/// Number of connections: as many as a team's pipelines keep open.
const CONNECTIONS: usize = 16;
/// Both servers are asked by turns, so that a neighbour's noise meets both.
const ROUNDS: usize = 6;
const WORKSPACES: usize = 100;

fn main() {
    site::be_bare_if_asked();
    let mut table = Table::new("The floor of every request, on a local directory");
    let home = tempfile::tempdir().expect("a directory");
    let server = Server::start(Command::new(env!("CARGO_BIN_EXE_taco")), home.path());
    let mut client = server.client();
    client.post("/api/v2/organizations", &organization("first"));
    let workspaces: Vec<String> =
        (0..WORKSPACES).map(|number| client.given_workspace("first", &format!("network-{number:03}"))).collect();
    for (what, path, requests, most) in [
        ("GET ping", "/api/v2/ping", 3000, 2.0),
        ("GET account/details", "/api/v2/account/details", 3000, 3.0),
        ("GET page of 100 workspaces", "/api/v2/organizations/first/workspaces?page%5Bsize%5D=100", 200, 3.0),
    ] {
        compare(&mut table, what, &server, path, requests, most);
    }
    writes(&mut table, &server, &mut client, &workspaces[0]);
    table.close();
}

/// Cost of requests for a server: the CPU time for each, and the latencies that clients saw.
#[derive(Default)]
struct Cost {
    cpu: Duration,
    waits: Vec<Duration>,
}

impl Cost {
    fn add(&mut self, server: &Server, work: impl FnOnce() -> Vec<Duration>) {
        let before = server.whole_cpu();
        self.waits.extend(work());
        self.cpu += server.whole_cpu().saturating_sub(before);
    }

    fn cpu_each(&self) -> Duration {
        self.cpu / u32::try_from(self.waits.len()).unwrap_or(u32::MAX)
    }
}

/// All connections ask at once, each for its next answer as soon as it has one.
fn load(server: &Server, path: &str, requests: usize) -> Vec<Duration> {
    let ask = || {
        let mut client = server.client();
        (0..requests / CONNECTIONS).map(|_| timed(|| drop(client.get(path)))).collect::<Vec<_>>()
    };
    std::thread::scope(|scope| {
        let asking: Vec<_> = (0..CONNECTIONS).map(|_| scope.spawn(ask)).collect();
        asking.into_iter().flat_map(|asking| asking.join().expect("it was answered")).collect()
    })
}

fn compare(table: &mut Table, what: &str, server: &Server, path: &str, requests: usize, most: f64) {
    let bare = bare_server(&server.client().get(path));
    let (mut ours, mut theirs) = (Cost::default(), Cost::default());
    for round in 0..=ROUNDS {
        if round == 1 {
            // The first round was to warm up.
            (ours, theirs) = (Cost::default(), Cost::default());
        }
        ours.add(server, || load(server, path, requests));
        theirs.add(&bare, || load(&bare, "/", requests));
    }
    let (cpu, factor) = (ours.cpu_each(), ratio(ours.cpu_each(), theirs.cpu_each()));
    let target = format!("{most:.1} x bare axum");
    table.row(&format!("{what}: time on a core"), format!("{} = {factor:.1} x", time(cpu)), target, factor <= most);
    table.note("  the bare handler's", time(theirs.cpu_each()));
    let (ours, theirs) = (Sample::of(ours.waits), Sample::of(theirs.waits));
    let both = |sample: &Sample| format!("{}, {}", time(sample.median()), time(sample.at(0.99)));
    table.note(&format!("  p50 and p99 at {CONNECTIONS} connections"), both(&ours));
    table.note("  the bare handler's", both(&theirs));
}

/// States as terraform writes them, announced and uploaded, compared with a bare handler that writes one file.
fn writes(table: &mut Table, server: &Server, client: &mut Client, workspace: &str) {
    let bare_server = bare_server(b"");
    let mut bare = bare_server.client();
    let mut serial = 0;
    for (size, what, times, most) in
        [(10_000, "10 KB", 60, 8.0), (1_000_000, "1 MB", 30, 5.0), (20_000_000, "20 MB", 6, 4.0)]
    {
        let (mut ours, mut theirs) = (Cost::default(), Cost::default());
        for _ in 0..times {
            serial += 1;
            let state = state(serial, size);
            ours.add(server, || vec![timed(|| client.push(workspace, serial, &state, Way::Upload))]);
            theirs.add(&bare_server, || vec![timed(|| drop(bare.send("PUT", "/", state.as_bytes())))]);
        }
        let cpu = [ours.cpu_each(), theirs.cpu_each()].map(time);
        let (ours, theirs) = (Sample::of(ours.waits), Sample::of(theirs.waits));
        let factor = ratio(ours.median(), theirs.median());
        let measured = format!("{} = {factor:.1} x", time(ours.median()));
        let target = format!("{most:.1} x a bare write");
        table.row(&format!("upload of a state of {what}: p50"), measured, target, factor <= most);
        table.note("  p99", time(ours.at(0.99)));
        table.note("  time on a core, and the bare handler's", cpu.join(", "));
    }
}
