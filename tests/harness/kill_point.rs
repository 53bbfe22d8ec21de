//! `kill -9` of a server exactly at one of its writes.
//!
//! The server under test reaches its bucket through a proxy, which stops one write before the bucket gets it, or
//! after: then the server is killed, and never hears how the write ended. Another server of the same site lives on, and
//! is sent the same request again.

use std::process::Command;

use reqwest::{Client, Method, StatusCode};
use serde_json::{Value, json};
use taco_ledger::{Bucket as _, Key, Location, layout};

use crate::api_client::ApiClient;
use crate::bucket_servers::{BucketServer, variables_of};
use crate::home::{Home, ServerProcess, packs_soon};
use crate::run_site::{SITE_TOKEN, admin_of};
use crate::stand_in_engine::StandInEngine;
use crate::trap_proxy::{Moment, TrapProxy};

/// A bucket, a server that lives on and executes all runs, and the place where others are caught.
pub struct KillPoint {
    home: Home,
    pub engine: StandInEngine,
    bucket: BucketServer,
    proxy: TrapProxy,
    survivor: ServerProcess,
    client: Client,
}

/// A request that can be sent again, as it is, to any server.
#[derive(Clone)]
pub struct Wish {
    method: &'static str,
    path: String,
    body: Vec<u8>,
    key: Option<String>,
}

/// A request of the site's admin. One to a signed address goes without a token.
pub fn wish(method: &'static str, path: impl Into<String>, body: impl ToString) -> Wish {
    Wish { method, path: path.into(), body: body.to_string().into_bytes(), key: None }
}

impl Wish {
    /// Under a name by which a repetition is known.
    pub fn with_key(self, key: &str) -> Self {
        Self { key: Some(key.to_owned()), ..self }
    }
}

pub struct Answer {
    pub status: StatusCode,
    pub json: Value,
}

impl KillPoint {
    /// A site with the organization `acme`, on a durable S3 server.
    pub async fn new() -> Self {
        let home = Home::default();
        let bucket = BucketServer::versitygw().await.expect("versitygw");
        let endpoint = bucket.location().s3_endpoint.expect("an endpoint");
        let proxy = TrapProxy::in_front_of(&endpoint).await;
        let engine = StandInEngine::install();
        let mut command = server(&home, &bucket.location());
        command.env("PATH", engine.search_path()).env("TACO_ENGINE_MIRROR", "http://127.0.0.1:9");
        let survivor = ServerProcess::start(&mut command);
        let site = Self { home, engine, bucket, proxy, survivor, client: Client::new() };
        let acme = json!({ "data": { "type": "organizations", "attributes": { "name": "acme", "email": "a@b.c" } } });
        site.done(&wish("POST", "/api/v2/organizations", acme)).await;
        site
    }

    async fn send(&self, server: &str, wish: &Wish) -> Option<Answer> {
        let method = Method::from_bytes(wish.method.as_bytes()).expect("a method");
        let mut request = self.client.request(method, format!("http://{server}{}", wish.path));
        if !wish.path.starts_with("/signed") {
            request = request.bearer_auth(SITE_TOKEN).header("content-type", "application/vnd.api+json");
        }
        if let Some(key) = &wish.key {
            request = request.header("idempotency-key", key);
        }
        let answer = request.body(wish.body.clone()).send().await.ok()?;
        let status = answer.status();
        let bytes = answer.bytes().await.ok()?;
        Some(Answer { status, json: serde_json::from_slice(&bytes).unwrap_or_default() })
    }

    /// Response of the survivor.
    pub async fn ask(&self, wish: &Wish) -> Answer {
        self.send(&self.survivor.address, wish).await.expect("the survivor answers")
    }

    /// The same, which has to succeed.
    pub async fn done(&self, wish: &Wish) -> Value {
        let answer = self.ask(wish).await;
        assert!(answer.status.is_success(), "{} {}: {} {}", wish.method, wish.path, answer.status, answer.json);
        answer.json
    }

    pub async fn get(&self, path: &str) -> Value {
        self.done(&wish("GET", path, "")).await
    }

    /// The site's admin at the survivor.
    pub fn admin(&self) -> ApiClient {
        admin_of(&self.survivor.address)
    }

    /// Sends a request to a server that is killed at the `moment` of its first write of such a key. No response is
    /// sent.
    pub async fn kill_at(&self, moment: Moment, part_of_key: &str, wish: &Wish) {
        let location = Location { s3_endpoint: Some(self.proxy.address()), ..self.bucket.location() };
        let mut command = server(&self.home, &location);
        let command = command.env("TACO_AGENT_CONCURRENCY", "0");
        let victim = tokio::task::block_in_place(|| ServerProcess::start(command));
        let caught = self.proxy.stop_write(moment, part_of_key);
        let address = victim.address.clone();
        let asked = self.send(&address, wish);
        let killed = async {
            caught.wait().await;
            drop(victim);
        };
        let (answer, ()) = tokio::join!(asked, killed);
        assert!(answer.is_none(), "{moment:?} {part_of_key}: {} was answered", wish.path);
    }

    /// A server that nobody asks for anything packs old commits, and is killed at the `moment` of its first write of
    /// such a key.
    pub async fn kill_packing_at(&self, moment: Moment, part_of_key: &str) {
        let location = Location { s3_endpoint: Some(self.proxy.address()), ..self.bucket.location() };
        let caught = self.proxy.stop_write(moment, part_of_key);
        let mut command = server(&self.home, &location);
        let command = packs_soon(&mut command).env("TACO_AGENT_CONCURRENCY", "0");
        let victim = tokio::task::block_in_place(|| ServerProcess::start(command));
        caught.wait().await;
        drop(victim);
    }

    /// One more server, which packs old commits.
    pub fn packing_server(&self) -> ServerProcess {
        let mut command = server(&self.home, &self.bucket.location());
        ServerProcess::start(packs_soon(&mut command).env("TACO_AGENT_CONCURRENCY", "0"))
    }

    /// The bytes at a signed address, read from the survivor.
    pub async fn download(&self, address: &str) -> Vec<u8> {
        let path = path_of(address);
        let read = self.client.get(format!("http://{}{path}", self.survivor.address)).send().await;
        read.expect("an answer").bytes().await.expect("a body").into()
    }

    /// Checks that no manual repair was needed.
    pub fn is_sound(&self) {
        self.audit();
    }

    /// Number of the organization's commits that are packed, once everything proved sound.
    pub fn packed_commits(&self) -> u64 {
        let reports = self.audit();
        let mut reports = reports.as_array().expect("a list").iter();
        let organization = reports.find(|report| report["ledger"] != "site").expect("there is one");
        organization["packed"].as_u64().expect("a number")
    }

    fn audit(&self) -> Value {
        let mut audit = self.home.taco(&["audit", "verify", "--json"]);
        let audit = audit.envs(variables_of(&self.bucket.location())).output().expect("it runs");
        assert!(audit.status.success(), "{}", String::from_utf8_lossy(&audit.stdout));
        serde_json::from_slice(&audit.stdout).expect("JSON")
    }

    /// Numbers of the organization's whole snapshots, oldest first.
    pub async fn snapshots(&self) -> Vec<u64> {
        let bucket = self.bucket.location().open().expect("a bucket");
        let keys = bucket.list(&layout::ledgers(), None).await.expect("a listing");
        let of_organization = |key: &&Key| key.as_str().contains("/snapshots/") && !key.as_str().contains("/site/");
        keys.iter().filter(of_organization).filter_map(layout::number_of).collect()
    }
}

fn server(home: &Home, location: &Location) -> Command {
    let mut command = home.taco(&["server"]);
    command.envs(variables_of(location)).env("TACO_LISTEN", "127.0.0.1:0").env("TACO_SITE_TOKEN", SITE_TOKEN);
    // Snapshots come soon, so that there is something to pack for those who do.
    command.env("TACO_SECRET_KEY", "a key that only these tests know").env("TACO_SNAPSHOT_EVERY", "20");
    command
}

/// Servers tell addresses under their own name; what counts for another one is the path.
pub fn path_of(address: &str) -> String {
    url::Url::parse(address).expect("an address").path().to_owned()
}
