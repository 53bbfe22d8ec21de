//! How fast the API is, beside a bare axum handler that returns the same bytes in the same run.

use std::fmt::Write as _;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use axum::Router;
use axum::extract::State;
use axum::routing::get;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use md5::{Digest, Md5};
use serde_json::{Value, json};
use taco_bench::{Sample, Table, ratio, time};

const TOKEN: &str = "a-token-for-automation-of-more-than-32-letters";
const GETS: usize = 2000;

/// While GETs are compared, the client has one core and the servers another, as if they were two machines. Whoever shares
/// a core with the client is woken sooner; otherwise chance would decide which of two servers that is.
const CLIENTS_CORE: &str = "0";
const SERVERS_CORE: &str = "1";
const ALL_CORES: &str = "0-1";

/// Before the file whose bytes a bare server answers with.
const BARE: &str = "--bare";

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    if let [_, BARE, body] = arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        return serve_bare(std::fs::read(body).expect("a body"));
    }
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

/// The median of a GET, beside that of a bare handler.
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

/// What a state of 10 KB costs the disk, in both ways.
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

fn timed(work: impl FnOnce()) -> Duration {
    let begun = Instant::now();
    work();
    begun.elapsed()
}

fn organization(name: &str) -> Value {
    json!({ "data": { "type": "organizations", "attributes": { "name": name, "email": "a@acme.test" } } })
}

fn state(serial: u64, size: usize) -> String {
    let mut text = format!(
        r#"{{"version":4,"terraform_version":"1.11.4","serial":{serial},"lineage":"8094ef40","outputs":{{"address":{{"value":"10.0.0.1","type":"string"}}}},"resources":["#
    );
    let filler = "0123456789abcdef".repeat(100);
    let mut number = 0;
    while number == 0 || text.len() + 2000 < size {
        let comma = if number == 0 { "" } else { "," };
        write!(text, r#"{comma}{{"mode":"managed","type":"terraform_data","name":"number_{number}","provider":"provider[\"terraform.io/builtin/terraform\"]","instances":[{{"schema_version":0,"attributes":{{"id":"{number}","input":"{filler}"}}}}]}}"#).expect("text");
        number += 1;
    }
    text + "]}"
}

#[derive(Clone, Copy)]
enum Way {
    Inline,
    Upload,
}

fn json(bytes: &[u8]) -> Value {
    serde_json::from_slice(bytes).expect("JSON")
}

/// Answers every request with the same bytes, and says where.
fn serve_bare(body: Vec<u8>) {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async move {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        println!("{}", listener.local_addr().expect("an address"));
        let handler = |State(body): State<bytes::Bytes>| async move { body };
        let routes = Router::new().route("/", get(handler)).with_state(bytes::Bytes::from(body));
        axum::serve(listener, routes).await.expect("it serves");
    });
}

/// A bare server in a process of its own, as ours is: whoever shares a process with its client is woken sooner.
fn bare_server(body: &[u8]) -> Server {
    let file = tempfile::NamedTempFile::new().expect("a file");
    std::fs::write(file.path(), body).expect("it can be written");
    let mut command = Command::new(std::env::current_exe().expect("a program"));
    command.arg(BARE).arg(file.path()).stdout(Stdio::piped());
    let mut process = command.spawn().expect("it starts");
    let mut address = String::new();
    let said = process.stdout.take().expect("its output");
    BufReader::new(said).read_line(&mut address).expect("an address");
    Server { process, address: address.trim().parse().expect("an address") }
}

/// Lets a process have these cores only, where there are so many and a program that can do it.
fn pin(process: u32, cores: &str) {
    let process = process.to_string();
    let taskset = Command::new("taskset").args(["-a", "-c", "-p", cores, &process]).output();
    drop(taskset);
}

/// One connection that is kept open, with as little of its own to do as possible.
struct Client {
    connection: BufReader<TcpStream>,
}

impl Client {
    fn to(address: SocketAddr) -> Self {
        let connection = TcpStream::connect(address).expect("it listens");
        connection.set_nodelay(true).expect("it can be set");
        Self { connection: BufReader::with_capacity(256 * 1024, connection) }
    }

    fn send(&mut self, method: &str, path: &str, body: &[u8]) -> Vec<u8> {
        let length = body.len();
        let head = format!(
            "{method} {path} HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {TOKEN}\r\ncontent-length: {length}\r\n\r\n"
        );
        let request = [head.as_bytes(), body].concat();
        self.connection.get_mut().write_all(&request).expect("it is sent");
        let (mut status, mut length) = (String::new(), 0);
        self.connection.read_line(&mut status).expect("a status");
        loop {
            let mut line = String::new();
            self.connection.read_line(&mut line).expect("a header");
            if line.trim().is_empty() {
                break;
            }
            if let Some((_, value)) =
                line.split_once(':').filter(|(name, _)| name.eq_ignore_ascii_case("content-length"))
            {
                length = value.trim().parse().expect("a length");
            }
        }
        let mut answer = vec![0; length];
        self.connection.read_exact(&mut answer).expect("a body");
        assert!(status.contains(" 20"), "{method} {path}: {status}{}", String::from_utf8_lossy(&answer));
        answer
    }

    fn get(&mut self, path: &str) -> Vec<u8> {
        self.send("GET", path, b"")
    }

    fn post(&mut self, path: &str, document: &Value) -> Value {
        json(&self.send("POST", path, document.to_string().as_bytes()))
    }

    /// A locked workspace's id.
    fn given_workspace(&mut self, organization: &str, name: &str) -> String {
        let document = json!({ "data": { "type": "workspaces", "attributes": { "name": name } } });
        let made = self.post(&format!("/api/v2/organizations/{organization}/workspaces"), &document);
        let id = made["data"]["id"].as_str().expect("an id").to_owned();
        if organization == "first" {
            self.post(&format!("/api/v2/workspaces/{id}/actions/lock"), &json!({}));
        }
        id
    }

    fn push(&mut self, workspace: &str, serial: u64, state: &str, way: Way) {
        let md5 = hex(&Md5::digest(state));
        let mut attributes = json!({ "serial": serial, "md5": md5, "lineage": "8094ef40" });
        if let Way::Inline = way {
            attributes["state"] = STANDARD.encode(state).into();
        }
        let document = json!({ "data": { "type": "state-versions", "attributes": attributes } });
        let announced = self.post(&format!("/api/v2/workspaces/{workspace}/state-versions"), &document);
        if let Way::Upload = way {
            let address = announced["data"]["attributes"]["hosted-state-upload-url"].as_str().expect("an address");
            let path = address.splitn(4, '/').nth(3).expect("a path");
            self.send("PUT", &format!("/{path}"), state.as_bytes());
        }
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// A server that stops when it is dropped.
struct Server {
    process: Child,
    address: SocketAddr,
}

impl Server {
    fn start(mut command: Command, home: &Path) -> Self {
        let free = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr()).expect("a free port");
        let path = std::env::var_os("PATH").unwrap_or_default();
        command.arg("server").env_clear().env("HOME", home).env("PATH", path).current_dir(home);
        command.env("TACO_LISTEN", free.to_string()).env("TACO_SITE_TOKEN", TOKEN);
        let process = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("taco starts");
        let begun = Instant::now();
        while TcpStream::connect(free).is_err() {
            assert!(begun.elapsed() < Duration::from_secs(30), "no answer within 30 s");
            std::thread::sleep(Duration::from_millis(1));
        }
        Self { process, address: free }
    }

    fn client(&self) -> Client {
        Client::to(self.address)
    }

    /// How long its threads have been on a core.
    fn cpu(&self) -> Duration {
        let threads = std::fs::read_dir(format!("/proc/{}/task", self.process.id())).into_iter().flatten().flatten();
        let nanoseconds = threads.filter_map(|thread| {
            let text = std::fs::read_to_string(thread.path().join("schedstat")).ok()?;
            text.split_whitespace().next()?.parse::<u64>().ok()
        });
        Duration::from_nanos(nanoseconds.sum())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // Where `strace` was started, the server is its child, and would outlive it.
        let id = self.process.id();
        let children = std::fs::read_to_string(format!("/proc/{id}/task/{id}/children")).unwrap_or_default();
        for child in children.split_whitespace() {
            let _ = Command::new("kill").args(["-KILL", child]).status();
        }
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
