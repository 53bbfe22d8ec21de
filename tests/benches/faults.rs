//! Long faults under load: servers killed and stopped, a disk that fills up or turns read-only, an S3 server that dies.
//! Everything acknowledged to a client is there afterwards, on every server. `tests/faults` has short ones of the same
//! kind.
//!
//! The disk is a small one in a mount namespace of its own, so this program starts itself again inside of it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use futures::StreamExt;
use futures::stream::iter;
use harness::bucket_servers::{BucketServer, variables_of};
use harness::home::{Home, ServerProcess};
use md5::{Digest, Md5};
use nix::sys::signal::Signal;
use reqwest::{Client, Method, StatusCode};
use serde_json::{Value, json};
use taco_bench::Table;
use taco_ledger::{Location, SharedRng};
use tokio::sync::RwLock;
use tokio::task::JoinHandle;
use tokio::time::sleep;

const DISK: &str = "TACO_BENCH_SMALL_DISK";
const ORGANIZATION: &str = "acme";
const SITE_TOKEN: &str = "a-token-for-automation-of-more-than-32-letters";
const SECRET_KEY: &str = "a key that only benchmarks of taco know";
const SERVERS: usize = 2;
const WRITERS: usize = 8;
/// A workspace takes no more than 1,000.
const MAX_VARIABLES: u64 = 900;

fn main() {
    match std::env::var_os(DISK) {
        Some(disk) => {
            let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("a runtime");
            runtime.block_on(all_faults(Path::new(&disk)));
        }
        None => start_again_with_a_small_disk(),
    }
}

/// The disk is gone with the namespace, however this program ends.
fn start_again_with_a_small_disk() {
    let disk = tempfile::tempdir().expect("a directory");
    let script = format!("mount -t tmpfs -o size=512m tmpfs \"${DISK}\" && exec \"$@\"");
    let status = Command::new("unshare")
        .args(["--map-root-user", "--mount", "sh", "-c", &script, "sh"])
        .arg(std::env::current_exe().expect("a benchmark is a program"))
        .env(DISK, disk.path())
        .status()
        .expect("unshare (util-linux) is installed");
    assert!(status.success(), "the benchmark ended with {status}");
}

async fn all_faults(disk: &Path) {
    let mut table = Table::new("Faults under load: 2 servers, 8 writers");

    let directory = tempfile::tempdir().expect("a directory");
    let scene = Scene::begin(&Location::directory(directory.path())).await;
    let kills = scene.kill_servers_for(Duration::from_secs(90)).await;
    scene.end(&mut table, &format!("{kills} kills of servers in 90 s")).await;

    let directory = tempfile::tempdir().expect("a directory");
    let scene = Scene::begin(&Location::directory(directory.path())).await;
    scene.stop_a_server_for(Duration::from_secs(60)).await;
    scene.end(&mut table, "a server stopped for 60 s").await;

    let scene = Scene::begin(&Location::directory(disk)).await;
    sleep(Duration::from_secs(5)).await;
    let filler = fill(disk);
    sleep(Duration::from_secs(15)).await;
    std::fs::remove_file(filler).expect("it is ours");
    sleep(Duration::from_secs(5)).await;
    scene.end(&mut table, "a full disk for 15 s").await;

    remove_contents(disk);
    let scene = Scene::begin(&Location::directory(disk)).await;
    sleep(Duration::from_secs(5)).await;
    remount(disk, "ro");
    sleep(Duration::from_secs(15)).await;
    remount(disk, "rw");
    sleep(Duration::from_secs(5)).await;
    scene.end(&mut table, "a read-only disk for 15 s").await;

    let mut bucket = BucketServer::versitygw().await.expect("versitygw");
    let scene = Scene::begin(&bucket.location()).await;
    for _ in 0..10 {
        sleep(Duration::from_secs(2)).await;
        bucket.restart().await.expect("it starts again");
    }
    bucket.kill().expect("it is a process");
    sleep(Duration::from_secs(20)).await;
    bucket.restart().await.expect("it starts again");
    sleep(Duration::from_secs(5)).await;
    bucket.signal(Signal::SIGSTOP).expect("it is a process");
    sleep(Duration::from_secs(20)).await;
    bucket.signal(Signal::SIGCONT).expect("it is a process");
    sleep(Duration::from_secs(5)).await;
    scene.end(&mut table, "an S3 server killed 11 times, away for 20 s, frozen for 20 s").await;
    table.close();
}

/// Two servers on a bucket, and writers that go on whatever happens to them.
struct Scene {
    home: Home,
    location: Location,
    site: Arc<Site>,
    over: Arc<AtomicBool>,
    writers: Vec<JoinHandle<Written>>,
}

impl Scene {
    async fn begin(location: &Location) -> Self {
        let home = Home::default();
        let servers = (0..SERVERS).map(|_| start(&home, location)).collect();
        // Shorter than a dead bucket takes to be told, and a stopped server answers nobody at all.
        let client = Client::builder().timeout(Duration::from_secs(15)).build().expect("a client");
        let site = Arc::new(Site { servers: RwLock::new(servers), turn: AtomicUsize::new(0), client });
        let organization = json!({ "data": { "type": "organizations",
            "attributes": { "name": ORGANIZATION, "email": "ops@acme.test" } } });
        site.insist(Method::POST, "/api/v2/organizations", &organization).await;
        let over = Arc::new(AtomicBool::new(false));
        let mut writers = Vec::new();
        for number in 0..WRITERS {
            let body = json!({ "data": { "type": "workspaces",
                "attributes": { "name": format!("faults-{number}"), "execution-mode": "local" } } });
            let path = format!("/api/v2/organizations/{}/workspaces", ORGANIZATION);
            let workspace = site.insist(Method::POST, &path, &body).await;
            let workspace = workspace["data"]["id"].as_str().expect("an id").to_owned();
            site.insist(Method::POST, &format!("/api/v2/workspaces/{workspace}/actions/lock"), &json!({})).await;
            writers.push(tokio::spawn(write(Arc::clone(&site), workspace, Arc::clone(&over))));
        }
        Self { home, location: location.clone(), site, over, writers }
    }

    async fn kill_servers_for(&self, duration: Duration) -> usize {
        let (rng, begun) = (SharedRng::from_seed(29), Instant::now());
        for kill in 0.. {
            if begun.elapsed() >= duration {
                return kill;
            }
            sleep(Duration::from_millis(300 + (rng.fraction() * 1500.0) as u64)).await;
            let next = tokio::task::block_in_place(|| start(&self.home, &self.location));
            // The old process is dropped, and dropping kills it with SIGKILL.
            drop(std::mem::replace(&mut self.site.servers.write().await[kill % SERVERS], next));
        }
        unreachable!("it counts for ever")
    }

    async fn stop_a_server_for(&self, duration: Duration) {
        sleep(Duration::from_secs(5)).await;
        self.site.servers.read().await[0].process.signal(Signal::SIGSTOP);
        sleep(duration).await;
        self.site.servers.read().await[0].process.signal(Signal::SIGCONT);
        sleep(Duration::from_secs(5)).await;
    }

    /// Compares what was acknowledged with what every server shows, also one that starts afresh.
    async fn end(self, table: &mut Table, fault: &str) {
        self.over.store(true, Ordering::SeqCst);
        let mut written = Vec::new();
        for writer in self.writers {
            written.push(writer.await.expect("a writer goes on whatever happens"));
        }
        self.site.servers.write().await.push(start(&self.home, &self.location));
        let mut lost = 0;
        for _ in 0..=SERVERS {
            for written in &written {
                lost += written.lost(&self.site).await;
            }
            self.site.turn.fetch_add(1, Ordering::SeqCst);
        }
        let states: usize = written.iter().map(|written| written.states.len()).sum();
        let variables: usize = written.iter().map(|written| written.variables.len()).sum();
        table.note(&format!("{fault}: acknowledged"), format!("{states} + {variables}"));
        table.row("  states and variables that were lost", lost, 0, lost == 0);
        let refused: usize = written.iter().map(|written| written.unexpected.len()).sum();
        table.row("  answers that were neither success, 409 nor 503", refused, 0, refused == 0);
        for answer in written.iter().flat_map(|written| &written.unexpected).take(3) {
            println!("{answer}");
        }
        for command in [&["audit", "verify"][..], &["doctor", "--deep"]] {
            let mut taco = self.home.taco(command);
            let output =
                taco.envs(variables_of(&self.location)).env("TACO_SECRET_KEY", SECRET_KEY).output().expect("runs");
            let sound = output.status.success();
            table.row(&format!("  taco {}", command.join(" ")), if sound { "sound" } else { "damage" }, "sound", sound);
            if !sound {
                println!("{}", String::from_utf8_lossy(&output.stdout));
            }
        }
    }
}

fn start(home: &Home, location: &Location) -> ServerProcess {
    let mut command = home.taco(&["server"]);
    command.envs(variables_of(location)).env("TACO_LISTEN", "127.0.0.1:0").env("TACO_AGENT_CONCURRENCY", "0");
    command.env("TACO_SITE_TOKEN", SITE_TOKEN).env("TACO_SECRET_KEY", SECRET_KEY);
    ServerProcess::start(&mut command)
}

/// The servers that live now. A client asks the next one each time, as a load balancer would.
struct Site {
    servers: RwLock<Vec<ServerProcess>>,
    turn: AtomicUsize,
    client: Client,
}

impl Site {
    /// Status and body of an answer; `None` if there was none, because a server died or was stopped.
    async fn ask(&self, method: Method, path: &str, body: Option<&Value>) -> Option<(StatusCode, Vec<u8>)> {
        let address = {
            let servers = self.servers.read().await;
            servers[self.turn.fetch_add(1, Ordering::SeqCst) % servers.len()].address.clone()
        };
        let mut request = self.client.request(method, format!("http://{address}{path}")).bearer_auth(SITE_TOKEN);
        if let Some(body) = body {
            request = request.header("content-type", "application/vnd.api+json").body(body.to_string());
        }
        let answer = request.send().await.ok()?;
        Some((answer.status(), answer.bytes().await.ok()?.to_vec()))
    }

    /// Asks until it succeeds.
    async fn insist(&self, method: Method, path: &str, body: &Value) -> Value {
        loop {
            match self.ask(method.clone(), path, Some(body)).await {
                Some((status, document)) if status.is_success() => {
                    return serde_json::from_slice(&document).unwrap_or_default();
                }
                _ => sleep(Duration::from_millis(100)).await,
            }
        }
    }

    /// Asks until there is an answer that is no refusal.
    async fn fetch(&self, path: &str) -> Vec<u8> {
        loop {
            match self.ask(Method::GET, path, None).await {
                Some((StatusCode::OK, body)) => return body,
                Some((StatusCode::NOT_FOUND, _)) => return Vec::new(),
                _ => sleep(Duration::from_millis(100)).await,
            }
        }
    }
}

/// Sends states and variables, each until it is acknowledged, and keeps what was.
async fn write(site: Arc<Site>, workspace: String, over: Arc<AtomicBool>) -> Written {
    let mut written = Written { workspace: workspace.clone(), ..Written::default() };
    for serial in 1.. {
        let state = json!({ "version": 4, "serial": serial, "lineage": workspace, "terraform_version": "1.11.4",
            "outputs": { "serial": { "value": serial, "type": "number" } }, "resources": [] });
        let state = state.to_string();
        let digest = hex::encode(Md5::digest(&state));
        let body = json!({ "data": { "type": "state-versions", "attributes": { "serial": serial, "md5": digest,
            "lineage": workspace, "state": BASE64_STANDARD.encode(&state) } } });
        if written.send(&site, "state-versions", &body, &over).await {
            written.states.insert(serial, digest);
        }
        if serial <= MAX_VARIABLES {
            let key = format!("v{serial}");
            let attributes = json!({ "key": key, "value": key, "category": "env" });
            let body = json!({ "data": { "type": "vars", "attributes": attributes } });
            if written.send(&site, "vars", &body, &over).await {
                written.variables.push(key);
            }
        }
        if over.load(Ordering::SeqCst) {
            break;
        }
    }
    written
}

/// Acknowledged writes of a writer.
#[derive(Default)]
struct Written {
    workspace: String,
    /// Digests by serial.
    states: BTreeMap<u64, String>,
    variables: Vec<String>,
    unexpected: Vec<String>,
}

impl Written {
    /// True if it was acknowledged; a retry after a lost response may find it already written.
    async fn send(&mut self, site: &Site, what: &str, body: &Value, over: &AtomicBool) -> bool {
        let mut repeated = false;
        while !over.load(Ordering::SeqCst) {
            match site.ask(Method::POST, &format!("/api/v2/workspaces/{}/{what}", self.workspace), Some(body)).await {
                Some((status, _)) if status.is_success() => return true,
                Some((StatusCode::UNPROCESSABLE_ENTITY | StatusCode::CONFLICT, _)) if repeated => return true,
                Some((StatusCode::SERVICE_UNAVAILABLE, _)) | None => {}
                Some((status, document)) => {
                    self.unexpected.push(format!("{status}: {}", String::from_utf8_lossy(&document)));
                }
            }
            repeated = true;
            sleep(Duration::from_millis(50)).await;
        }
        false
    }

    /// Number of its writes that are lost.
    async fn lost(&self, site: &Site) -> usize {
        let shown = site.fetch(&format!("/api/v2/workspaces/{}/vars?page%5Bsize%5D=100000", self.workspace)).await;
        let shown: Value = serde_json::from_slice(&shown).unwrap_or_default();
        let shown: Vec<_> = shown["data"].as_array().into_iter().flatten().collect();
        let has = |key: &String| shown.iter().any(|variable| variable["attributes"]["key"] == **key);
        let variables = self.variables.iter().filter(|key| !has(key)).count();
        let addresses = self.addresses(site).await;
        let states = iter(&self.states).map(async |(serial, digest)| match addresses.get(serial) {
            Some(id) => {
                let state = site.fetch(&format!("/api/v2/state-versions/{id}/download")).await;
                hex::encode(Md5::digest(&state)) == *digest
            }
            None => false,
        });
        let whole = states.buffer_unordered(8).filter(|whole| std::future::ready(*whole)).count().await;
        variables + self.states.len() - whole
    }

    /// Ids of all states by their serials.
    async fn addresses(&self, site: &Site) -> BTreeMap<u64, String> {
        let mut addresses = BTreeMap::new();
        for page in 1.. {
            let path = format!(
                "/api/v2/workspaces/{}/state-versions?page%5Bnumber%5D={page}&page%5Bsize%5D=100",
                self.workspace
            );
            let list: Value = serde_json::from_slice(&site.fetch(&path).await).unwrap_or_default();
            let rows = list["data"].as_array().cloned().unwrap_or_default();
            if rows.is_empty() {
                break;
            }
            for row in rows {
                let serial = row["attributes"]["serial"].as_u64().expect("a serial");
                addresses.insert(serial, row["id"].as_str().expect("an id").to_owned());
            }
        }
        addresses
    }
}

/// Leaves no room on the disk.
fn fill(disk: &Path) -> PathBuf {
    let path = disk.join("filler");
    // It ends with an error: the disk is full, as it should be.
    let _ =
        std::io::copy(&mut std::io::repeat(7), &mut std::fs::File::create(&path).expect("there is room for a file"));
    path
}

fn remount(disk: &Path, mode: &str) {
    let status = Command::new("mount").args(["-o", &format!("remount,{mode}")]).arg(disk).status();
    assert!(status.expect("mount (util-linux) is installed").success(), "the disk is not {mode}");
}

fn remove_contents(disk: &Path) {
    for entry in std::fs::read_dir(disk).expect("it is ours") {
        let path = entry.expect("it is ours").path();
        if path.is_dir() { std::fs::remove_dir_all(path) } else { std::fs::remove_file(path) }.expect("it is ours");
    }
}
