//! `kill -9` of a server at every single write that a run leads to, from the announcement of its configuration to its
//! outcome. Its client and its agent turn to another server, and no manual repair is needed. A variable of each run is bound
//! to a sensitive output, which changes at the moment of the kill: an attempt has the value that it was given first.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use harness::api_client::ApiClient;
use harness::api_seed::ApiSeed;
use harness::bucket_servers::BucketServer;
use harness::cuttable_proxy::CuttableProxy;
use harness::graph_states::state;
use harness::kill_point::path_of;
use harness::run_site::{RunSite, SITE_TOKEN, admin_of, configuration, run_that_applies_itself, text};
use harness::stand_in_engine::Step;
use harness::trap_proxy::{Fate, Moment, TrapProxy};
use reqwest::{Client, Method};
use serde_json::{Value, json};
use taco_ledger::Location;
use tokio::time::{Instant, sleep};

/// In seconds: no agent is given up here.
const LEASE: u16 = 60;
/// Long enough for a machine that is busy with other tests.
const STEP_TIMEOUT: Duration = Duration::from_secs(60);

/// Someone who asks again, under the same name, until there is an answer.
struct Persistent {
    client: Client,
    origin: String,
}

impl Persistent {
    fn at(origin: String) -> Self {
        // A connection to a server that is gone must not be used again.
        let client = Client::builder().pool_max_idle_per_host(0).timeout(Duration::from_secs(10)).build();
        Self { client: client.expect("a client"), origin }
    }

    async fn asks(&self, method: Method, path: &str, key: Option<&str>, body: impl Into<Vec<u8>>) -> Value {
        let body = body.into();
        let deadline = Instant::now() + STEP_TIMEOUT;
        loop {
            let mut request = self.client.request(method.clone(), format!("{}{path}", self.origin)).body(body.clone());
            if !path.starts_with("/signed") {
                request = request.bearer_auth(SITE_TOKEN).header("content-type", "application/vnd.api+json");
            }
            if let Some(key) = key {
                request = request.header("idempotency-key", key);
            }
            match request.send().await {
                Ok(answer) if answer.status().is_success() => {
                    if let Ok(bytes) = answer.bytes().await {
                        return serde_json::from_slice(&bytes).unwrap_or_default();
                    }
                }
                Ok(answer) => assert!(answer.status().is_server_error(), "{path}: {answer:?}"),
                Err(_) => {}
            }
            assert!(Instant::now() < deadline, "{path} is never answered");
            sleep(Duration::from_millis(50)).await;
        }
    }

    /// Uploads a configuration, starts a run that applies itself, and waits for its end.
    async fn uploads_and_applies(&self, workspace: &str) -> (String, String) {
        let announced = json!({ "data": { "type": "configuration-versions",
            "attributes": { "auto-queue-runs": false } } });
        let versions = format!("/api/v2/workspaces/{workspace}/configuration-versions");
        let announced = self.asks(Method::POST, &versions, Some(workspace), announced.to_string()).await;
        let upload = path_of(&text(&announced["data"]["attributes"]["upload-url"]));
        self.asks(Method::PUT, &upload, None, configuration()).await;
        let run = run_that_applies_itself(workspace).to_string();
        let key = format!("run-{workspace}");
        let run = text(&self.asks(Method::POST, "/api/v2/runs", Some(&key), run).await["data"]["id"]);
        let deadline = Instant::now() + STEP_TIMEOUT;
        loop {
            let shown = self.asks(Method::GET, &format!("/api/v2/runs/{run}"), None, "").await;
            let status = text(&shown["data"]["attributes"]["status"]);
            if status == "applied" || status == "errored" {
                return (run, status);
            }
            assert!(Instant::now() < deadline, "{run} does not end: {shown}");
            sleep(Duration::from_millis(50)).await;
        }
    }
}

/// The producer of the runs' variable, each of whose states has another zone.
struct Network {
    seed: ApiSeed,
    workspace: String,
    states: AtomicUsize,
}

impl Network {
    async fn new(admin: ApiClient) -> Self {
        let workspace = admin.given_workspace("acme", "network").await;
        let shared = json!({ "data": { "type": "workspaces", "attributes": { "global-remote-state": true } } });
        let workspace = text(&workspace["id"]);
        admin.patch(&format!("/api/v2/workspaces/{workspace}"), shared).await;
        let network = Self {
            seed: ApiSeed { admin, organization: "acme", honest: true },
            workspace,
            states: AtomicUsize::default(),
        };
        network.moves_on().await;
        network
    }

    async fn moves_on(&self) {
        let number = self.states.fetch_add(1, Ordering::Relaxed) + 1;
        let mut next = state(number as u64, &[("zone", &zone(number as u64))]);
        next["outputs"]["zone"]["sensitive"] = true.into();
        self.seed.state(&self.workspace, &next).await;
    }

    async fn given_bound_variable(&self, workspace: &str) {
        let bound = json!({ "key": "ZONE", "category": "env", "producer": "network", "output": "zone" });
        self.seed.create_at(&format!("/api/v2/workspaces/{workspace}/bindings"), "bindings", bound, json!({})).await;
    }
}

/// Of the output commit of this number.
fn zone(commit: u64) -> String {
    format!("zone-{commit}")
}

/// Kills a server at its first write, the next one at its second, and so on, until a run ends before anyone is killed.
async fn at_every_write(moment: Moment) {
    let bucket = BucketServer::gofakes3().await.expect("gofakes3");
    let location = bucket.location();
    let trap_proxy = TrapProxy::in_front_of(location.s3_endpoint.as_deref().expect("an endpoint")).await;
    let by_way = Location { s3_endpoint: Some(trap_proxy.address()), ..location.clone() };
    let (site, survivor) = RunSite::on(Some(location), LEASE).await;
    let admin = admin_of(&survivor.address);
    let network = Network::new(admin.clone()).await;
    let mut applied = BTreeSet::new();
    for number in 0.. {
        let body = site.workspace_for_agents(&format!("web-{number}"));
        let workspace = text(&admin.post("/api/v2/organizations/acme/workspaces", body).await["data"]["id"]);
        network.given_bound_variable(&workspace).await;
        let victim = site.server_at(Some(&by_way));
        let cuttable_proxy = CuttableProxy::to(&victim.address).await;
        let agent = site.agent(&format!("agent-{number}"), &cuttable_proxy.address());
        let writes = AtomicUsize::new(0);
        let caught = trap_proxy.stop(moment, Fate::Waits, move |method, path| {
            // Signs of life are written all the time.
            let counts = matches!(*method, Method::PUT | Method::POST) && !path.contains("/beacons/");
            counts && writes.fetch_add(1, Ordering::Relaxed) == number
        });
        let kill = async {
            let key = caught.wait().await;
            network.moves_on().await;
            cuttable_proxy.redirect_to(&survivor.address);
            drop(victim);
            key
        };
        let client = Persistent::at(cuttable_proxy.address());
        let story = client.uploads_and_applies(&workspace);
        tokio::pin!(kill, story);
        let (key, (run, status)) = tokio::select! {
            key = &mut kill => (key, story.await),
            (_, status) = &mut story => {
                assert_eq!(status, "applied");
                assert!(number > 10, "a run leads to more than {number} writes");
                break;
            }
        };
        println!("{moment:?} {number} {key}: {status}");
        let applies = site.engine.came_to(Step::ApplyBegins, &run).len();
        let runs = admin.get(&format!("/api/v2/workspaces/{workspace}/runs")).await;
        assert_eq!(runs["data"].as_array().map(Vec::len), Some(1), "{moment:?} {number} {key}");
        let bound = admin.run(&run).await["taco-bound-variables"].clone();
        let given = zone(bound[0]["commit"].as_u64().expect("the output commit"));
        let planned_with = site.engine.zones_given(Step::Plan, &run);
        assert_eq!(planned_with.last(), Some(&given), "{moment:?} {number} {key}: {planned_with:?}");
        if status == "applied" {
            assert_eq!(applies, 1, "{moment:?} {number} {key}");
            let applied_with = site.engine.zones_given(Step::ApplyBegins, &run);
            assert_eq!(applied_with, [given], "{moment:?} {number} {key}: the apply has what its plan had");
            applied.insert(run.clone());
            assert_eq!(admin.work_in_state(&workspace).await, Some(format!("all of {run}")));
            assert_eq!(admin.holder_of(&workspace).await, None);
        } else {
            // The server died between giving the apply out, which is a commit, and telling the agent so. Logs come in
            // more or fewer pieces, so that this commit may be the write of more than one number.
            assert!(key.contains("/log/"), "{moment:?} {number} {key}: only a commit can lose an apply");
            let error = admin.error_of(&run, "apply").await;
            assert!(error.starts_with("Apply outcome unknown: "), "{moment:?} {number} {key}: {error}");
            assert_eq!((applies, admin.holder_of(&workspace).await), (0, Some(run)), "{moment:?} {number} {key}");
        }
        drop(agent);
    }
    let untold: Vec<_> = applied.difference(&readers_of_secrets(&admin).await).cloned().collect();
    assert_eq!(untold, Vec::<String>::new(), "{moment:?}: nobody gets a sensitive output of which no one is told");
    site.is_sound();
}

/// Who was given sensitive outputs, by the audit trail.
async fn readers_of_secrets(admin: &ApiClient) -> BTreeSet<String> {
    let mut readers = BTreeSet::new();
    for page in 1.. {
        let path = format!("/api/v2/organizations/acme/audit-trail?page[number]={page}&page[size]=100");
        let listed = admin.get(&path).await;
        let Some(events) = listed["data"].as_array().filter(|events| !events.is_empty()) else { break };
        let reads = events.iter().filter(|event| event["resource"]["action"] == "output.read");
        readers.extend(reads.map(|event| text(&event["auth"]["accessor_id"])));
    }
    readers
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_can_be_killed_before_every_write_of_a_run() {
    at_every_write(Moment::Before).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_can_be_killed_after_every_write_of_a_run() {
    at_every_write(Moment::After).await;
}
