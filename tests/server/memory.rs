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
use reqwest::{Body, Client, Method, RequestBuilder, Response};
use serde_json::{Value, json};
use tar::{Builder, Header};

const TOKEN: &str = "a-token-for-automation-of-more-than-32-letters";

/// Transfers at the same time.
const AT_ONCE: usize = 8;
const SIZE: usize = 50_000_000;

/// What one transfer may add to the server's memory.
const MOST: u64 = 8_000_000;

/// A state of 50 MB, as one of some thousand resources is.
fn state() -> Bytes {
    let mut text =
        r#"{"version":4,"terraform_version":"1.11.4","serial":1,"lineage":"8094ef40","outputs":{},"resources":["#
            .to_owned();
    let attributes = "policy ".repeat(700);
    for number in 0.. {
        text.push_str(&format!(
            r#"{{"mode":"managed","type":"terraform_data","name":"number_{number}","provider":"provider[\"terraform.io/builtin/terraform\"]","instances":[{{"schema_version":0,"attributes":{{"id":"{number}","input":"{attributes}"}}}}]}}"#
        ));
        if text.len() > SIZE {
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
    _home: Home,
}

impl Site {
    fn start() -> Self {
        let home = Home::default();
        let mut command = home.taco(&["server"]);
        let server = ServerProcess::start(command.env("TACO_LISTEN", "127.0.0.1:0").env("TACO_SITE_TOKEN", TOKEN));
        let client = Client::builder().timeout(Duration::from_secs(120)).build().expect("a client");
        Self { client, server, _home: home }
    }

    fn ask(&self, method: Method, path: &str) -> RequestBuilder {
        self.client.request(method, format!("http://{}{path}", self.server.address)).bearer_auth(TOKEN)
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
fn inline(state: Bytes, md5: &str) -> Body {
    let before = r#"{"data":{"type":"state-versions","attributes":{"state":""#.to_owned();
    let after = format!(r#"","serial":1,"lineage":"8094ef40","md5":"{md5}"}}}}}}"#);
    // Pieces of a multiple of three bytes, so that only the last is padded.
    let pieces = (0..state.len()).step_by(30_000).map(move |at| {
        let piece = state.slice(at..state.len().min(at + 30_000));
        STANDARD.encode(piece)
    });
    let texts = std::iter::once(before).chain(pieces).chain(std::iter::once(after));
    Body::wrap_stream(stream::iter(texts.map(Ok::<_, std::io::Error>)))
}

async fn push(site: &Site, name: &str, id: &str, state: Bytes, md5: &str) {
    let versions = format!("/api/v2/workspaces/{id}/state-versions");
    match name.split('-').next() {
        Some("signed") => {
            let attributes = json!({ "serial": 1, "lineage": "8094ef40", "md5": md5 });
            let document = json!({ "data": { "type": "state-versions", "attributes": attributes } });
            let announced = site.create(&versions, &document).await;
            let address = announced["data"]["attributes"]["hosted-state-upload-url"].as_str().expect("an address");
            sent(site.client.put(address).body(in_pieces(state))).await;
        }
        Some("inline") => drop(sent(site.ask(Method::POST, &versions).body(inline(state, md5))).await),
        _ => {
            let path = format!("/api/http-backend/acme/{name}?ID={name}");
            sent(site.ask(Method::POST, &path).body(in_pieces(state))).await;
        }
    }
}

async fn pull(site: &Site, name: &str, id: &str, md5: &str) {
    let response = if name.starts_with("http") {
        sent(site.ask(Method::GET, &format!("/api/http-backend/acme/{name}"))).await
    } else {
        let path = format!("/api/v2/workspaces/{id}/current-state-version");
        let current: Value = sent(site.ask(Method::GET, &path)).await.json().await.expect("JSON");
        let address = current["data"]["attributes"]["hosted-state-download-url"].as_str().expect("an address");
        sent(site.client.get(address)).await
    };
    let digest = response.bytes_stream().try_fold(Md5::new(), |mut digest, bytes| async move {
        digest.update(&bytes);
        Ok(digest)
    });
    assert_eq!(hex::encode(digest.await.expect("all of it").finalize()), md5);
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
    [packed(Compression::none(), &mut noise, SIZE), packed(Compression::best(), &mut repeat(b' '), 10 * SIZE)]
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

#[tokio::test]
async fn configurations_are_checked_without_filling_the_memory() {
    let site = Site::start();
    let organization =
        json!({ "data": { "type": "organizations", "attributes": { "name": "acme", "email": "a@acme.test" } } });
    site.create("/api/v2/organizations", &organization).await;
    let id = &site.locked_workspace("web").await;
    let [large, bomb] = archives();
    let idle = site.memory("VmRSS:");
    let upload = async |number: usize| {
        let attributes = json!({ "auto-queue-runs": false });
        let document = json!({ "data": { "type": "configuration-versions", "attributes": attributes } });
        let announced = site.create(&format!("/api/v2/workspaces/{id}/configuration-versions"), &document).await;
        let address = announced["data"]["attributes"]["upload-url"].as_str().expect("an address");
        let (archive, expected) = if number.is_multiple_of(2) { (&large, 200) } else { (&bomb, 422) };
        let answer = site.client.put(address).body(in_pieces(archive.clone())).send().await.expect("an answer");
        assert_eq!(answer.status().as_u16(), expected);
    };
    join_all((0..AT_ONCE).map(upload)).await;
    let after = site.memory("VmHWM:");
    assert!(after <= idle + AT_ONCE as u64 * MOST, "8 uploads took {} MB above {idle}", (after - idle) / 1_000_000);
    println!("idle {idle}, uploaded {after}");
}

#[tokio::test]
async fn states_of_50_mb_flow_through_without_filling_the_memory() {
    let site = Site::start();
    let organization =
        json!({ "data": { "type": "organizations", "attributes": { "name": "acme", "email": "a@acme.test" } } });
    site.create("/api/v2/organizations", &organization).await;
    let ways = ["signed", "inline", "http"].iter().cycle().enumerate();
    let names: Vec<String> = ways.take(AT_ONCE).map(|(number, way)| format!("{way}-{number}")).collect();
    let ids: Vec<String> = stream::iter(&names).then(|name| site.locked_workspace(name)).collect().await;
    let workspaces = || names.iter().map(String::as_str).zip(ids.iter().map(String::as_str));
    let state = state();
    let md5 = &hex::encode(Md5::digest(&state));
    let idle = site.memory("VmRSS:");
    let most = idle + AT_ONCE as u64 * MOST;

    join_all(workspaces().map(|(name, id)| push(&site, name, id, state.clone(), md5))).await;
    let after_push = site.memory("VmHWM:");
    assert!(after_push <= most, "8 pushes took {} MB above {idle}", (after_push - idle) / 1_000_000);

    join_all(workspaces().map(|(name, id)| pull(&site, name, id, md5))).await;
    let after_pull = site.memory("VmHWM:");
    assert!(after_pull <= most, "8 downloads took {} MB above {idle}", (after_pull - idle) / 1_000_000);
    println!("idle {idle}, pushed {after_push}, pulled {after_pull}");
}
