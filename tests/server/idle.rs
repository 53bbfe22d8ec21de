//! Cost of an idle site, and its latency when there is something to do.

use std::time::Duration;

use harness::bucket_servers::BucketServer;
use harness::home::ServerProcess;
use harness::process::Process;
use harness::run_site::{RunSite, admin_of, until};
use harness::stand_in_engine::Step;
use harness::trap_proxy::TrapProxy;
use serde_json::json;
use taco_ledger::Location;
use tokio::time::{Instant, sleep};

const BEACON: &str = "/beacons/";
/// The default, in seconds.
const LEASE: u16 = 30;
/// A minute of signs of life, at least.
const ROUNDS: usize = 4;
/// Requests to the bucket in a minute.
const MAX_REQUESTS_PER_MINUTE: f64 = 25.0;

/// Two servers, each of which reaches the bucket by a way of its own, so that its requests can be counted.
struct Watched {
    _bucket: BucketServer,
    ways: [TrapProxy; 2],
    site: RunSite,
    servers: [ServerProcess; 2],
}

impl Watched {
    async fn start() -> Self {
        let bucket = BucketServer::gofakes3().await.expect("gofakes3");
        let location = bucket.location();
        let endpoint = location.s3_endpoint.clone().expect("an endpoint");
        let ways = [TrapProxy::in_front_of(&endpoint).await, TrapProxy::in_front_of(&endpoint).await];
        let by = |way: &TrapProxy| Location { s3_endpoint: Some(way.address()), ..location.clone() };
        let (site, first) = RunSite::on(Some(by(&ways[0])), LEASE).await;
        let second = site.server_at(Some(&by(&ways[1])));
        Self { _bucket: bucket, ways, site, servers: [first, second] }
    }
}

/// Waits until a server has shown itself so many times from now on.
async fn beats(way: &TrapProxy, times: usize) {
    let shown =
        || way.requests().iter().filter(|request| request.starts_with("PUT") && request.contains(BEACON)).count();
    let before = shown();
    let deadline = Instant::now() + Duration::from_secs(240);
    while shown() < before + times {
        assert!(Instant::now() < deadline, "the server does not show itself: {:?}", way.requests());
        sleep(Duration::from_millis(20)).await;
    }
}

/// Number of requests that a server makes in a minute, counted from one heartbeat to a later one: where the machine is
/// slow, both the requests and the time between them grow.
async fn requests_in_a_minute(way: &TrapProxy) -> (f64, Vec<String>) {
    beats(way, 1).await;
    let (since, before) = (Instant::now(), way.requests().len());
    beats(way, ROUNDS).await;
    let made = way.requests().split_off(before);
    (made.len() as f64 * 60.0 / since.elapsed().as_secs_f64(), made)
}

#[tokio::test(flavor = "multi_thread")]
async fn two_idle_servers_with_twenty_idle_agents_leave_the_bucket_alone() {
    let Watched { _bucket, ways, site, servers } = Watched::start().await;
    let names = (0..20).map(|number| format!("agent-{number}"));
    let agents: Vec<Process> =
        names.enumerate().map(|(number, name)| site.agent(&name, &servers[number % 2].address)).collect();
    // A run that waits for hours is noted once.
    let admin = admin_of(&servers[0].address);
    let workspace = site.given_workspace(&admin, "web").await;
    admin.act(&json!({ "id": workspace }), "lock").await;
    let waiting = admin.start_run(&workspace).await;
    let waits = async || {
        let plan = admin.get(&format!("/api/v2/runs/{waiting}/plan")).await;
        plan["data"]["attributes"]["taco-waits"].as_array().expect("a list").len()
    };
    until("the run's log says why it waits", async || waits().await == 1).await;
    // They are known to both, and nothing is new any more.
    for way in &ways {
        beats(way, 2).await;
    }
    let mut costs = Vec::new();
    // On a busy machine a connection may break and a request be sent again; an idle site has quiet minutes.
    for _ in 0..3 {
        let ((first, requests), (second, more)) =
            tokio::join!(requests_in_a_minute(&ways[0]), requests_in_a_minute(&ways[1]));
        println!("{first:.1} and {second:.1} requests in a minute");
        if first + second <= MAX_REQUESTS_PER_MINUTE {
            assert_eq!(waits().await, 1);
            drop(agents);
            return;
        }
        costs.push((first, requests, second, more));
    }
    panic!("more than {MAX_REQUESTS_PER_MINUTE} requests in each of three minutes: {costs:#?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_at_one_server_is_woken_by_a_run_at_the_other() {
    let Watched { _bucket, ways, site, servers } = Watched::start().await;
    let [near, far] = &servers;
    let _agent = site.agent("one", &near.address);
    let admin = admin_of(&far.address);
    let workspace = site.given_workspace(&admin, "web").await;
    // Servers know of each other from signs of life.
    for way in &ways {
        beats(way, 2).await;
    }
    let mut woken = 0;
    // A sign of life that was due at the very moment proves nothing, and the slower the machine, the more often one is. A
    // server that is not told finds no run without one.
    for _ in 0..10 {
        let before = ways[0].requests().len();
        let run = admin.start_run(&workspace).await;
        site.engine.comes_to(Step::Init, &run, 1).await;
        let since = ways[0].requests().split_off(before);
        // A server that waits for the next heartbeat reads those of others before it finds a commit.
        let first = |part: &str| since.iter().position(|request| request.contains(part));
        let looked = first("/log/").expect("the agent's server has read of the run");
        woken += usize::from(first(BEACON).is_none_or(|beacon| looked < beacon));
        assert_eq!(admin.end_of(&run).await, "applied");
        if woken == 2 {
            return;
        }
        beats(&ways[0], 1).await;
    }
    panic!("the agent's server was told at once {woken} times of 10");
}
