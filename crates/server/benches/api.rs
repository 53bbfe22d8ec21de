//! Throughput of the API, compared with a bare axum handler that returns the same bytes in the same run.

mod site;

use std::process::{Command, Stdio};
use std::time::Duration;

use site::{Client, Server, Way, bare_server, json, organization, state, timed};
use taco_bench::{Sample, Table, ratio, time};

const GETS: usize = 2000;

/// Core of the client while GETs are compared; the servers have another, as if they were two machines. A server that
/// shares a core with the client is woken sooner; otherwise chance would decide which of two servers that is.
const CLIENTS_CORE: &str = "0";
const SERVERS_CORE: &str = "1";
const ALL_CORES: &str = "0-1";

fn main() {
    site::be_bare_if_asked();
    let mut table = Table::new("API, on a local directory");
    let home = tempfile::tempdir().expect("a directory");
    let server = Server::start(Command::new(env!("CARGO_BIN_EXE_taco")), home.path());
    let mut client = server.client();
    client.post("/api/v2/organizations", &organization("first"));
    let workspace = client.given_workspace("first", "network");
    client.push(&workspace, 1, &state(1, 1_000_000), Way::Inline);

    reads(&mut table, &server, &mut client, &workspace);
    pages(&mut table, &server);
    writes(&mut table, &mut client, &workspace);
    drop(server);
    fsyncs(&mut table);
    table.close();
}

/// GETs, each as a multiple of the bare handler.
fn reads(table: &mut Table, server: &Server, client: &mut Client, workspace: &str) {
    let current = format!("/api/v2/workspaces/{workspace}/current-state-version");
    let version = client.get(&current);
    let download = json(&version)["data"]["attributes"]["hosted-state-download-url"].clone();
    let download = download.as_str().expect("an address").splitn(4, '/').nth(3).map(|path| format!("/{path}"));
    for (what, path, times) in [
        ("GET workspace by name", "/api/v2/organizations/first/workspaces/network".to_owned(), GETS),
        ("GET current state version", current, GETS),
        ("download of a state of 1 MB", download.expect("a path"), GETS / 10),
    ] {
        compare(table, what, server, &path, times);
    }
}

/// A page of 20 must not cost more where there are more.
fn pages(table: &mut Table, server: &Server) {
    let path_of = |count: usize| format!("/api/v2/organizations/of-{count}/workspaces?page%5Bsize%5D=20");
    for count in [100, 1_000, 10_000] {
        let name = format!("of-{count}");
        server.client().post("/api/v2/organizations", &organization(&name));
        std::thread::scope(|scope| {
            for worker in 0..32 {
                let (mut client, name) = (server.client(), &name);
                scope.spawn(move || {
                    for number in (worker..count).step_by(32) {
                        client.given_workspace(name, &format!("network-{number:05}"));
                    }
                });
            }
        });
        compare(table, &format!("page of 20 of {count} workspaces"), server, &path_of(count), GETS / 4);
    }
    let mut client = server.client();
    let (mut few, mut many) = (Vec::new(), Vec::new());
    for _ in 0..GETS / 4 {
        few.push(timed(|| _ = client.get(&path_of(100))));
        many.push(timed(|| _ = client.get(&path_of(10_000))));
    }
    let growth = ratio(Sample::of(many).median(), Sample::of(few).median());
    table.row("page of 20: of 10,000 against of 100", format!("{growth:.2} x"), "1.5 x", growth <= 1.5);
}

/// The median of a GET, compared with that of a bare handler.
fn compare(table: &mut Table, what: &str, server: &Server, path: &str, times: usize) {
    let mut client = server.client();
    let body = client.get(path);
    let bare_server = bare_server(&body);
    let mut bare = bare_server.client();
    let cpu = || [server, &bare_server].map(Server::cpu);
    for server in [server, &bare_server] {
        pin(server.process.id(), SERVERS_CORE);
    }
    pin(std::process::id(), CLIENTS_CORE);
    let cpu_before = cpu();
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    // By turns, so that a neighbour's noise meets both.
    for _ in 0..times {
        ours.push(timed(|| assert_eq!(client.get(path).len(), body.len())));
        theirs.push(timed(|| assert_eq!(bare.get("/").len(), body.len())));
    }
    let [our_cpu, their_cpu] = cpu();
    for process in [server.process.id(), std::process::id()] {
        pin(process, ALL_CORES);
    }
    let each =
        |after: Duration, before: Duration| time(after.saturating_sub(before) / u32::try_from(times).unwrap_or(1));
    let (our_cpu, their_cpu) = (each(our_cpu, cpu_before[0]), each(their_cpu, cpu_before[1]));
    let (ours, theirs) = (Sample::of(ours).median(), Sample::of(theirs).median());
    let ratio = ratio(ours, theirs);
    let measured = format!("{} = {ratio:.1} x", time(ours));
    table.row(&format!("{what}, {} bytes", body.len()), measured, "3 x bare axum", ratio <= 3.0);
    table.note("  its time on a core, and the bare handler's", format!("{our_cpu}, {their_cpu}"));
}

fn writes(table: &mut Table, client: &mut Client, workspace: &str) {
    let mut serial = 1;
    for (size, what, times, aims) in [
        (10_000, "10 KB", 50, [("in the body", Way::Inline, 2), ("by upload", Way::Upload, 2)]),
        (1_000_000, "1 MB", 20, [("in the body", Way::Inline, 15), ("by upload", Way::Upload, 8)]),
        (20_000_000, "20 MB", 5, [("in the body", Way::Inline, 250), ("by upload", Way::Upload, 100)]),
    ] {
        for (how, way, aim) in aims {
            let durations = (0..times).map(|_| {
                serial += 1;
                let state = state(serial, size);
                timed(|| client.push(workspace, serial, &state, way))
            });
            let median = Sample::of(durations.collect()).median();
            let aim = Duration::from_millis(aim);
            table.row(&format!("write a state of {what}, {how}"), time(median), time(aim), median <= aim);
        }
    }
}

/// Cost on disk of a state of 10 KB, in both ways.
fn fsyncs(table: &mut Table) {
    let what = "fsyncs for a state of 10 KB";
    if Command::new("strace").arg("-V").stdout(Stdio::null()).status().is_err() {
        table.note(what, "strace is missing");
        return;
    }
    let home = tempfile::tempdir().expect("a directory");
    let trace = home.path().join("trace");
    let mut command = Command::new("strace");
    command.args(["-f", "-e", "trace=fsync,fdatasync", "-o"]).arg(&trace).arg(env!("CARGO_BIN_EXE_taco"));
    let server = Server::start(command, home.path());
    let mut client = server.client();
    client.post("/api/v2/organizations", &organization("first"));
    let workspace = client.given_workspace("first", "network");
    // A call that is interrupted by another thread's takes two lines, of which one begins it.
    let begins = |line: &&str| line.contains("sync(");
    let count = || std::fs::read_to_string(&trace).expect("a trace").lines().filter(begins).count();
    const TIMES: u64 = 10;
    let mut serial = 0;
    let mut cost = |way: Way, client: &mut Client| {
        let mut push = || {
            serial += 1;
            client.push(&workspace, serial, &state(serial, 10_000), way);
        };
        // The first makes the directories.
        push();
        let before = count();
        (0..TIMES).for_each(|_| push());
        // The beacon is written meanwhile, too.
        (count() - before) as f64 / TIMES as f64
    };
    let inline = cost(Way::Inline, &mut client);
    table.row(&format!("{what}, in the body"), format!("{inline:.1}"), "3", inline < 3.5);
    // As terraform and tofu do it. The announcement is acknowledged, so it is a commit of its own.
    let uploaded = cost(Way::Upload, &mut client);
    table.note(&format!("{what}, announced and uploaded: two commits"), format!("{uploaded:.1}"));
}

/// Lets a process have these cores only, where there are so many and a program that can do it.
fn pin(process: u32, cores: &str) {
    let process = process.to_string();
    let taskset = Command::new("taskset").args(["-a", "-c", "-p", cores, &process]).output();
    drop(taskset);
}
