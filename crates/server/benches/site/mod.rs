//! Shared setup of benchmarks of the whole server: a server and a bare one as processes, clients, and states to push.
#![allow(dead_code, reason = "each benchmark uses some of it")]

use std::fmt::Write as _;
use std::fs::File;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use axum::Router;
use axum::body::Bytes;
use axum::extract::{DefaultBodyLimit, State};
use axum::routing::get;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use md5::{Digest, Md5};
use serde_json::{Value, json};

pub(crate) const TOKEN: &str = "a-token-for-automation-of-more-than-32-letters";

/// Argument before the file whose bytes a bare server responds with.
const BARE: &str = "--bare";

/// Turns this process into a bare server for the rest of its life, if it was started as one.
pub(crate) fn be_bare_if_asked() {
    let arguments: Vec<String> = std::env::args().collect();
    if let [_, BARE, body] = arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        serve_bare(std::fs::read(body).expect("a body"));
        std::process::exit(0);
    }
}

pub(crate) fn timed(work: impl FnOnce()) -> Duration {
    let begun = Instant::now();
    work();
    begun.elapsed()
}

pub(crate) fn organization(name: &str) -> Value {
    json!({ "data": { "type": "organizations", "attributes": { "name": name, "email": "a@acme.test" } } })
}

pub(crate) fn state(serial: u64, size: usize) -> String {
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
pub(crate) enum Way {
    Inline,
    Upload,
}

pub(crate) fn json(bytes: &[u8]) -> Value {
    serde_json::from_slice(bytes).expect("JSON")
}

/// Answers every GET with the same bytes, keeps what is PUT in a file, and says where it is.
fn serve_bare(body: Vec<u8>) {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async move {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        println!("{}", listener.local_addr().expect("an address"));
        let read = |State(body): State<Bytes>| async move { body };
        let write =
            |body: Bytes| async move { tokio::task::spawn_blocking(move || keep(&body)).await.expect("it is kept") };
        let routes = Router::new().route("/", get(read).put(write)).layer(DefaultBodyLimit::disable());
        let routes = routes.with_state(Bytes::from(body));
        axum::serve(listener, routes).await.expect("it serves");
    });
}

/// Minimum work to store bytes: one file, and one `fsync`.
fn keep(body: &[u8]) {
    let mut file = tempfile::tempfile().expect("a file");
    file.write_all(body).and_then(|()| file.sync_all()).expect("it is on the disk");
}

/// A bare server in a process of its own, as ours is: one that shares a process with its client is woken sooner.
pub(crate) fn bare_server(body: &[u8]) -> Server {
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

/// One connection that is kept open, with as little of its own to do as possible.
pub(crate) struct Client {
    connection: BufReader<TcpStream>,
}

impl Client {
    fn to(address: SocketAddr) -> Self {
        let connection = TcpStream::connect(address).expect("it listens");
        connection.set_nodelay(true).expect("it can be set");
        Self { connection: BufReader::with_capacity(256 * 1024, connection) }
    }

    pub(crate) fn send(&mut self, method: &str, path: &str, body: &[u8]) -> Vec<u8> {
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

    pub(crate) fn get(&mut self, path: &str) -> Vec<u8> {
        self.send("GET", path, b"")
    }

    pub(crate) fn post(&mut self, path: &str, document: &Value) -> Value {
        json(&self.send("POST", path, document.to_string().as_bytes()))
    }

    /// A locked workspace's id.
    pub(crate) fn given_workspace(&mut self, organization: &str, name: &str) -> String {
        let document = json!({ "data": { "type": "workspaces", "attributes": { "name": name } } });
        let made = self.post(&format!("/api/v2/organizations/{organization}/workspaces"), &document);
        let id = made["data"]["id"].as_str().expect("an id").to_owned();
        if organization == "first" {
            self.post(&format!("/api/v2/workspaces/{id}/actions/lock"), &json!({}));
        }
        id
    }

    pub(crate) fn push(&mut self, workspace: &str, serial: u64, state: &str, way: Way) {
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
pub(crate) struct Server {
    pub(crate) process: Child,
    pub(crate) address: SocketAddr,
}

impl Server {
    pub(crate) fn start(mut command: Command, home: &Path) -> Self {
        let free = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr()).expect("a free port");
        let path = std::env::var_os("PATH").unwrap_or_default();
        command.arg("server").env_clear().env("HOME", home).env("PATH", path).current_dir(home);
        command.env("TACO_LISTEN", free.to_string()).env("TACO_SITE_TOKEN", TOKEN);
        // The log goes to a file, as it does elsewhere; to nowhere would cost less.
        let log = File::create(home.join("log")).expect("a log");
        let process = command.stdout(Stdio::null()).stderr(log).spawn().expect("taco starts");
        let begun = Instant::now();
        while TcpStream::connect(free).is_err() {
            assert!(begun.elapsed() < Duration::from_secs(30), "no answer within 30 s");
            std::thread::sleep(Duration::from_millis(1));
        }
        Self { process, address: free }
    }

    pub(crate) fn client(&self) -> Client {
        Client::to(self.address)
    }

    /// CPU time of the process, including threads that have ended. The kernel counts this in hundredths of a second,
    /// which is enough if there is much to do.
    pub(crate) fn whole_cpu(&self) -> Duration {
        let text = std::fs::read_to_string(format!("/proc/{}/stat", self.process.id())).unwrap_or_default();
        // After the name, which may hold anything: the 12th and 13th field are the user's and the system's time.
        let fields = text.rsplit_once(") ").map_or("", |(_, fields)| fields).split_whitespace();
        let ticks: u64 = fields.skip(11).take(2).filter_map(|field| field.parse::<u64>().ok()).sum();
        Duration::from_millis(10 * ticks)
    }

    /// CPU time of its current threads.
    pub(crate) fn cpu(&self) -> Duration {
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
