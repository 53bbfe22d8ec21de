use std::io::{Read, repeat};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;
use futures::future::join_all;
use futures::{StreamExt, TryStreamExt, stream};
use harness::home::{Home, ServerProcess};
use md5::{Digest, Md5};
use reqwest::{Body, Certificate, Client, Method, RequestBuilder, Response};
use serde_json::{Value, json};
use tar::{Builder, Header};

const TOKEN: &str = "a-token-for-automation-of-more-than-32-letters";

/// Transfers at the same time.
const CONCURRENCY: usize = 8;
const BODY_BYTES: usize = 50_000_000;

/// Limit for the memory that one transfer may add to the server's.
const MAX_GROWTH_BYTES: u64 = 8_000_000;

/// A state of 50 MB, as one of some thousand resources is.
fn state() -> Bytes {
    state_of(1, BODY_BYTES)
}

fn state_of(serial: u64, size: usize) -> Bytes {
    let mut text = format!(
        r#"{{"version":4,"terraform_version":"1.11.4","serial":{serial},"lineage":"8094ef40","outputs":{{}},"resources":["#
    );
    let attributes = "policy ".repeat(700);
    for number in 0.. {
        text.push_str(&format!(
            r#"{{"mode":"managed","type":"terraform_data","name":"number_{number}","provider":"provider[\"terraform.io/builtin/terraform\"]","instances":[{{"schema_version":0,"attributes":{{"id":"{number}","input":"{attributes}"}}}}]}}"#
        ));
        if text.len() > size {
            break;
        }
        text.push(',');
    }
    text.push_str("]}");
    text.into()
}

struct Site {
    client: Client,
    server: ServerProcess,
    scheme: &'static str,
    home: Home,
}

impl Site {
    fn start() -> Self {
        Self::start_in(Home::default(), false)
    }

    fn start_in(home: Home, tls: bool) -> Self {
        let (scheme, words) = if tls { ("https", &["server", "--tls-dev"][..]) } else { ("http", &["server"][..]) };
        let mut command = home.taco(words);
        let server = ServerProcess::start(command.env("TACO_LISTEN", "127.0.0.1:0").env("TACO_SITE_TOKEN", TOKEN));
        let mut client = Client::builder().timeout(Duration::from_secs(600));
        if tls {
            let authority =
                std::fs::read(home.path().join(".local/share/taco/bucket.tls/ca.pem")).expect("it was made");
            client = client.tls_certs_only([Certificate::from_pem(&authority).expect("a certificate")]);
        }
        Self { client: client.build().expect("a client"), server, scheme, home }
    }

    /// The same site with a new process, which has had nothing to do yet.
    fn start_again(self) -> Self {
        let Self { server, scheme, home, .. } = self;
        drop(server);
        Self::start_in(home, scheme == "https")
    }

    async fn given_organization(&self) {
        let organization =
            json!({ "data": { "type": "organizations", "attributes": { "name": "acme", "email": "a@acme.test" } } });
        self.create("/api/v2/organizations", &organization).await;
    }

    fn ask(&self, method: Method, path: &str) -> RequestBuilder {
        self.client.request(method, format!("{}://{}{path}", self.scheme, self.server.address)).bearer_auth(TOKEN)
    }

    async fn create(&self, path: &str, document: &Value) -> Value {
        let response = sent(self.ask(Method::POST, path).json(document)).await;
        response.json().await.expect("JSON")
    }

    /// A workspace that is locked, by its id. The `http` backend has locks of its own.
    async fn locked_workspace(&self, name: &str) -> String {
        let workspace = json!({ "data": { "type": "workspaces", "attributes": { "name": name } } });
        let id = self.create("/api/v2/organizations/acme/workspaces", &workspace).await["data"]["id"].clone();
        let id = id.as_str().expect("an id").to_owned();
        if name.starts_with("http") {
            let lock = Method::from_bytes(b"LOCK").expect("a method");
            let path = format!("/api/http-backend/acme/{name}/lock");
            sent(self.ask(lock, &path).json(&json!({ "ID": name, "Who": "a test" }))).await;
        } else {
            self.create(&format!("/api/v2/workspaces/{id}/actions/lock"), &json!({})).await;
        }
        id
    }

    fn memory(&self, line: &str) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.server.process.id())).expect("it runs");
        let kilobytes = status.lines().find_map(|text| text.strip_prefix(line)?.strip_suffix("kB")).expect("a line");
        kilobytes.trim().parse::<u64>().expect("a number") * 1024
    }
}

async fn sent(request: RequestBuilder) -> Response {
    let response = request.send().await.expect("the server answers");
    let status = response.status();
    assert!(status.is_success(), "{status}: {}", response.text().await.unwrap_or_default());
    response
}

fn in_pieces(bytes: Bytes) -> Body {
    let pieces = (0..bytes.len()).step_by(30_000).map(move |at| bytes.slice(at..bytes.len().min(at + 30_000)));
    Body::wrap_stream(stream::iter(pieces.map(Ok::<_, std::io::Error>)))
}

/// The body of a request that holds the state itself. The client must not hold it twice either.
fn inline(state: Bytes, serial: u64, md5: &str) -> Body {
    let before = r#"{"data":{"type":"state-versions","attributes":{"state":""#.to_owned();
    let after = format!(r#"","serial":{serial},"lineage":"8094ef40","md5":"{md5}"}}}}}}"#);
    // Pieces of a multiple of three bytes, so that only the last is padded.
    let pieces = (0..state.len()).step_by(30_000).map(move |at| {
        let piece = state.slice(at..state.len().min(at + 30_000));
        STANDARD.encode(piece)
    });
    let texts = std::iter::once(before).chain(pieces).chain(std::iter::once(after));
    Body::wrap_stream(stream::iter(texts.map(Ok::<_, std::io::Error>)))
}

async fn push(site: &Site, name: &str, id: &str, state: Bytes, md5: &str) {
    let way = match name.split('-').next() {
        Some("signed") => Way::Upload,
        Some("inline") => Way::Inline,
        _ => Way::HttpPush,
    };
    write(site, way, &(name.to_owned(), id.to_owned()), 1, state, md5).await;
}

/// Writes a state in one of the ways there are; the signed addresses that came with it, if any.
async fn write(site: &Site, way: Way, workspace: &Workspace, serial: u64, state: Bytes, md5: &str) -> Value {
    let (name, id) = workspace;
    let versions = format!("/api/v2/workspaces/{id}/state-versions");
    match way {
        Way::Inline => sent(site.ask(Method::POST, &versions).body(inline(state, serial, md5))).await.json().await,
        Way::HttpPush => {
            let path = format!("/api/http-backend/acme/{name}?ID={name}");
            sent(site.ask(Method::POST, &path).body(in_pieces(state))).await;
            Ok(Value::Null)
        }
        _ => {
            let attributes = json!({ "serial": serial, "lineage": "8094ef40", "md5": md5 });
            let document = json!({ "data": { "type": "state-versions", "attributes": attributes } });
            let announced = site.create(&versions, &document).await;
            upload(site, &announced, "hosted-state-upload-url", state).await;
            Ok(announced)
        }
    }
    .expect("JSON")
}

async fn upload(site: &Site, announced: &Value, name: &str, bytes: Bytes) {
    let address = announced["data"]["attributes"][name].as_str().expect("an address");
    sent(site.client.put(address).body(in_pieces(bytes))).await;
}

async fn pull(site: &Site, name: &str, id: &str, md5: &str) {
    let workspace = (name.to_owned(), id.to_owned());
    let way = if name.starts_with("http") { Way::HttpPull } else { Way::Download };
    let current = if way == Way::Download { current(site, &workspace).await } else { Value::Null };
    assert_eq!(read(site, way, &workspace, &current).await, md5);
}

/// The current state version as the API shows it. That takes a summary of all its resources, which the server keeps.
async fn current(site: &Site, (_, id): &Workspace) -> Value {
    let path = format!("/api/v2/workspaces/{id}/current-state-version");
    sent(site.ask(Method::GET, &path)).await.json().await.expect("JSON")
}

/// Reads a state in one of the ways there are; its MD5.
async fn read(site: &Site, way: Way, (name, _): &Workspace, current: &Value) -> String {
    let address = |attribute: &str| current["data"]["attributes"][attribute].as_str().expect("an address").to_owned();
    let response = match way {
        Way::HttpPull => sent(site.ask(Method::GET, &format!("/api/http-backend/acme/{name}"))).await,
        Way::JsonDownload => sent(site.client.get(address("hosted-json-state-download-url"))).await,
        _ => sent(site.client.get(address("hosted-state-download-url"))).await,
    };
    let digest = response.bytes_stream().try_fold(Md5::new(), |mut digest, bytes| async move {
        digest.update(&bytes);
        Ok(digest)
    });
    hex::encode(digest.await.expect("all of it").finalize())
}

/// Name and id.
type Workspace = (String, String);

/// Direction and kind of a state's transfer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Way {
    Upload,
    Inline,
    HttpPush,
    JsonUpload,
    Restore,
    Download,
    HttpPull,
    JsonDownload,
}

impl Way {
    /// Does what has to be done before a state of this size can go this way.
    async fn prepare(self, site: &Site, name: &str, size: usize) -> Workspace {
        let name =
            if matches!(self, Self::HttpPush | Self::HttpPull) { format!("http-{name}") } else { name.to_owned() };
        let workspace = (name.clone(), site.locked_workspace(&name).await);
        let first = state_of(1, size);
        let md5 = hex::encode(Md5::digest(&first));
        match self {
            Self::Upload | Self::Inline | Self::HttpPush | Self::JsonUpload => {}
            Self::Download | Self::Restore => drop(write(site, Self::Upload, &workspace, 1, first, &md5).await),
            Self::HttpPull => drop(write(site, Self::HttpPush, &workspace, 1, first, &md5).await),
            Self::JsonDownload => {
                let announced = write(site, Self::Upload, &workspace, 1, first.clone(), &md5).await;
                upload(site, &announced, "hosted-json-state-upload-url", first).await;
            }
        }
        workspace
    }

    /// Prepares a transfer; the returned value does the transfer itself.
    async fn begin(self, site: &Site, workspace: &Workspace, serial: u64, size: usize) -> Begun {
        let state = state_of(serial, size);
        let md5 = hex::encode(Md5::digest(&state));
        let mut begun = Begun { way: self, workspace: workspace.clone(), serial, state, md5, before: Value::Null };
        let small = state_of(serial, 1_000);
        match self {
            // What it is said to be is a small one; the JSON is large.
            Self::JsonUpload => {
                let md5 = hex::encode(Md5::digest(&small));
                begun.before = write(site, Self::Upload, workspace, serial, small, &md5).await;
            }
            Self::Restore | Self::Download | Self::JsonDownload => begun.before = current(site, workspace).await,
            _ => {}
        }
        begun
    }
}

/// A transfer of which only the bytes are missing.
struct Begun {
    way: Way,
    workspace: Workspace,
    serial: u64,
    state: Bytes,
    md5: String,
    before: Value,
}

impl Begun {
    async fn transfer(self, site: &Site) {
        let Self { way, workspace, serial, state, md5, before } = self;
        match way {
            Way::Upload | Way::Inline | Way::HttpPush => drop(write(site, way, &workspace, serial, state, &md5).await),
            Way::JsonUpload => upload(site, &before, "hosted-json-state-upload-url", state).await,
            Way::Restore => {
                let old = json!({ "type": "state-versions", "id": before["data"]["id"] });
                let body = json!({ "data": { "relationships": { "rollback-state-version": { "data": old } } } });
                let path = format!("/api/v2/workspaces/{}/state-versions", workspace.1);
                sent(site.ask(Method::PATCH, &path).json(&body)).await;
            }
            Way::Download | Way::HttpPull | Way::JsonDownload => drop(read(site, way, &workspace, &before).await),
        }
    }
}

/// A configuration of 50 MB that cannot be packed any tighter, and one that expands to 500 MB.
fn archives() -> [Bytes; 2] {
    let packed = |level, content: &mut dyn Read, size: usize| {
        let mut archive = Builder::new(GzEncoder::new(Vec::new(), level));
        let mut header = Header::new_gnu();
        header.set_size(size as u64);
        header.set_mode(0o644);
        archive.append_data(&mut header, "main.tf", content.take(size as u64)).expect("in memory");
        Bytes::from(archive.into_inner().and_then(GzEncoder::finish).expect("in memory"))
    };
    let mut noise = vec![0; 1_000_000];
    rand::fill(&mut noise[..]);
    let mut noise = stream_of(noise);
    [
        packed(Compression::none(), &mut noise, BODY_BYTES),
        packed(Compression::best(), &mut repeat(b' '), 10 * BODY_BYTES),
    ]
}

/// The same bytes again and again.
fn stream_of(bytes: Vec<u8>) -> impl Read {
    struct Again(Vec<u8>, usize);
    impl Read for Again {
        fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
            let rest = &self.0[self.1..];
            let count = rest.len().min(buffer.len());
            buffer[..count].copy_from_slice(&rest[..count]);
            self.1 = (self.1 + count) % self.0.len();
            Ok(count)
        }
    }
    Again(bytes, 0)
}

/// The least that three servers need, or the first need that is no more than `most`. An allocator has its moods, and a
/// busy machine brings more of them. What a transfer needs, it needs each time.
async fn least_rise(most: u64, rise: impl AsyncFn() -> Option<u64>) -> Option<u64> {
    let mut least = u64::MAX;
    for _ in 0..3 {
        least = least.min(rise().await?);
        if least <= most {
            break;
        }
    }
    Some(least)
}

/// By how much uploads of configurations at the same time raise the memory of a server, at its highest.
async fn rise_by_configurations(archives: &[Bytes; 2]) -> u64 {
    let site = Site::start();
    site.given_organization().await;
    let id = &site.locked_workspace("web").await;
    let idle = site.memory("VmRSS:");
    let upload = async |number: usize| {
        let attributes = json!({ "auto-queue-runs": false });
        let document = json!({ "data": { "type": "configuration-versions", "attributes": attributes } });
        let announced = site.create(&format!("/api/v2/workspaces/{id}/configuration-versions"), &document).await;
        let address = announced["data"]["attributes"]["upload-url"].as_str().expect("an address");
        let (archive, expected) = if number.is_multiple_of(2) { (&archives[0], 200) } else { (&archives[1], 422) };
        let answer = site.client.put(address).body(in_pieces(archive.clone())).send().await.expect("an answer");
        assert_eq!(answer.status().as_u16(), expected);
    };
    join_all((0..CONCURRENCY).map(upload)).await;
    let after = site.memory("VmHWM:");
    println!("idle {idle}, uploaded {after}");
    after.saturating_sub(idle)
}

#[tokio::test]
async fn configurations_are_checked_without_filling_the_memory() {
    let (archives, most) = (archives(), CONCURRENCY as u64 * MAX_GROWTH_BYTES);
    let rise = least_rise(most, async || Some(rise_by_configurations(&archives).await)).await.expect("a number");
    assert!(rise <= most, "8 uploads took {} MB", rise / 1_000_000);
}

/// By how much states that go in and then out at the same time raise the memory of a server, at its highest.
async fn rise_by_states(state: &Bytes) -> u64 {
    let site = Site::start();
    site.given_organization().await;
    let ways = ["signed", "inline", "http"].iter().cycle().enumerate();
    let names: Vec<String> = ways.take(CONCURRENCY).map(|(number, way)| format!("{way}-{number}")).collect();
    let ids: Vec<String> = stream::iter(&names).then(|name| site.locked_workspace(name)).collect().await;
    let workspaces = || names.iter().map(String::as_str).zip(ids.iter().map(String::as_str));
    let md5 = &hex::encode(Md5::digest(state));
    let idle = site.memory("VmRSS:");
    join_all(workspaces().map(|(name, id)| push(&site, name, id, state.clone(), md5))).await;
    let after_push = site.memory("VmHWM:");
    join_all(workspaces().map(|(name, id)| pull(&site, name, id, md5))).await;
    let after_pull = site.memory("VmHWM:");
    println!("idle {idle}, pushed {after_push}, pulled {after_pull}");
    after_pull.saturating_sub(idle)
}

#[tokio::test]
async fn states_of_50_mb_flow_through_without_filling_the_memory() {
    let (state, most) = (state(), CONCURRENCY as u64 * MAX_GROWTH_BYTES);
    let rise = least_rise(most, async || Some(rise_by_states(&state).await)).await.expect("a number");
    assert!(rise <= most, "8 pushes and 8 downloads took {} MB", rise / 1_000_000);
}

/// By how much one transfer of 50 MB raises the memory of a server that has seen smaller ones, at its highest.
async fn rise(way: Way, tls: bool) -> Option<u64> {
    /// More than a server keeps together until all of it came.
    const SMALL: usize = 2_000_000;
    let site = Site::start_in(Home::default(), tls);
    site.given_organization().await;
    let small = way.prepare(&site, "small", SMALL).await;
    let large = way.prepare(&site, "large", BODY_BYTES).await;
    let site = site.start_again();
    // Connections, threads and pools are there when it is measured.
    for serial in 1..=4 {
        way.begin(&site, &small, serial, SMALL).await.transfer(&site).await;
    }
    let begun = way.begin(&site, &large, 1, BODY_BYTES).await;
    // The highest is from now on counted anew.
    std::fs::write(format!("/proc/{}/clear_refs", site.server.process.id()), "5").ok()?;
    let before = site.memory("VmRSS:");
    begun.transfer(&site).await;
    Some(site.memory("VmHWM:").saturating_sub(before))
}

#[tokio::test]
async fn each_way_of_a_state_of_50_mb_takes_8_mb_at_most() {
    use Way::{Download, HttpPull, HttpPush, Inline, JsonDownload, JsonUpload, Restore, Upload};
    let plain = [Upload, Inline, HttpPush, JsonUpload, Restore, Download, HttpPull, JsonDownload];
    let ways = plain.map(|way| (way, false)).into_iter().chain([Upload, Inline, Download].map(|way| (way, true)));
    let mut too_much = Vec::new();
    for (way, tls) in ways {
        let Some(least) = least_rise(MAX_GROWTH_BYTES, async || rise(way, tls).await).await else {
            println!("only root can count the highest memory of a server anew: nothing was measured");
            return;
        };
        let line = format!("{way:?} over {}: {:.1} MB", if tls { "TLS" } else { "TCP" }, least as f64 / 1e6);
        println!("{line}");
        too_much.extend((least > MAX_GROWTH_BYTES).then_some(line));
    }
    assert!(too_much.is_empty(), "{too_much:?}");
}
