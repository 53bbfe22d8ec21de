//! Networks that lose agents, servers and buckets from sight, and agents that sleep. The engine's own ledger says what
//! really happened: no apply twice, and none that goes on when its server may give the workspace away.

use std::time::Duration;

use harness::api_client::ApiClient;
use harness::bucket_servers::BucketServer;
use harness::cuttable_proxy::{CuttableProxy, Flow};
use harness::home::ServerProcess;
use harness::run_site::{RunSite, admin_of, text, until};
use harness::stand_in_engine::{Deed, Step};
use nix::sys::signal::Signal;
use taco_ledger::Location;
use tokio::time::sleep;

/// In seconds. A run whose agent is gone waits for half as much again.
const LEASE: u16 = 10;

/// A run whose engine is held in the middle of its apply, with half of its state at the server.
struct HalfDone {
    admin: ApiClient,
    workspace: String,
    run: String,
    deed: Deed,
}

impl HalfDone {
    async fn at(site: &RunSite, server: &ServerProcess) -> Self {
        let admin = admin_of(&server.address);
        let workspace = site.given_workspace(&admin, "web").await;
        site.engine.hold(Step::ApplyIsHalfDone);
        let run = admin.start_run(&workspace).await;
        let deed = site.engine.comes_to(Step::ApplyIsHalfDone, &run, 1).await;
        let half = Some(format!("half of {run}"));
        until("the server has half of the state", async || admin.work_in_state(&workspace).await == half).await;
        Self { admin, workspace, run, deed }
    }

    /// The run has ended because no server heard its agent, and not before its engine was gone.
    async fn is_given_up(&self, site: &RunSite) {
        until("its engine stops before its server gives it up", async || {
            let over = self.admin.run(&self.run).await["status"] == "errored";
            assert!(!(over && self.deed.lives()), "two applies could be under way now");
            over
        })
        .await;
        let error = self.admin.error_of(&self.run, "apply").await;
        assert!(error.starts_with("Apply outcome unknown: "), "{error}");
        assert_eq!(self.admin.holder_of(&self.workspace).await, Some(self.run.clone()));
        self.is_applied_once_at_most(site).await;
    }

    async fn is_applied_once_at_most(&self, site: &RunSite) {
        assert_eq!(site.engine.came_to(Step::ApplyBegins, &self.run).len(), 1);
        let work = self.admin.work_in_state(&self.workspace).await.expect("a state that was sent is kept");
        assert!(work.ends_with(&self.run), "{work}");
    }

    /// Checks that the workspace can go on after someone has looked at it.
    async fn lets_others_go_on(&self, site: &RunSite) {
        site.engine.let_go(Step::ApplyIsHalfDone);
        if self.admin.holder_of(&self.workspace).await.is_some() {
            let unlock = format!("/api/v2/workspaces/{}/actions/force-unlock", self.workspace);
            self.admin.done("POST", &unlock, Some(serde_json::json!({}))).await;
        }
        let next = self.admin.start_run(&self.workspace).await;
        assert_eq!(self.admin.end_of(&next).await, "applied");
        assert_eq!(self.admin.work_in_state(&self.workspace).await, Some(format!("all of {next}")));
        self.is_applied_once(site, &next);
    }

    fn is_applied_once(&self, site: &RunSite, next: &str) {
        for run in [self.run.as_str(), next] {
            assert_eq!(site.engine.came_to(Step::ApplyBegins, run).len(), 1);
        }
        site.is_sound();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cut_that_is_shorter_than_the_lease_is_not_noticed() {
    let (site, server) = RunSite::with_lease(60).await;
    let proxy = CuttableProxy::to(&server.address).await;
    let _agent = site.agent("one", &proxy.address());
    let story = HalfDone::at(&site, &server).await;
    proxy.let_through(Flow::Neither);
    site.engine.let_go(Step::ApplyIsHalfDone);
    site.engine.comes_to(Step::ApplyEnds, &story.run, 1).await;
    until("the engine has ended", async || !story.deed.lives()).await;
    assert_eq!(story.admin.run(&story.run).await["status"], "applying");
    proxy.let_through(Flow::Both);
    assert_eq!(story.admin.end_of(&story.run).await, "applied");
    assert_eq!(story.admin.work_in_state(&story.workspace).await, Some(format!("all of {}", story.run)));
    story.is_applied_once_at_most(&site).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_that_is_cut_off_stops_its_apply_before_its_server_gives_it_up() {
    let (site, server) = RunSite::with_lease(LEASE).await;
    let proxy = CuttableProxy::to(&server.address).await;
    let agent = site.agent("one", &proxy.address());
    let story = HalfDone::at(&site, &server).await;
    proxy.let_through(Flow::Neither);
    story.is_given_up(&site).await;
    proxy.let_through(Flow::Both);
    story.lets_others_go_on(&site).await;
    drop(agent);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_that_hears_no_answers_stops_its_apply_too() {
    let (site, server) = RunSite::with_lease(LEASE).await;
    let proxy = CuttableProxy::to(&server.address).await;
    let _agent = site.agent("one", &proxy.address());
    let story = HalfDone::at(&site, &server).await;
    proxy.let_through(Flow::RequestsOnly);
    until("the engine is stopped", async || !story.deed.lives()).await;
    proxy.let_through(Flow::Both);
    assert_eq!(story.admin.end_of(&story.run).await, "errored");
    story.is_applied_once_at_most(&site).await;
    story.lets_others_go_on(&site).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_that_sleeps_through_its_lease_wakes_without_an_engine_and_without_the_run() {
    let (site, server) = RunSite::with_lease(LEASE).await;
    let agent = site.agent("one", &server.address);
    let story = HalfDone::at(&site, &server).await;
    agent.signal(Signal::SIGSTOP);
    story.is_given_up(&site).await;
    agent.signal(Signal::SIGCONT);
    story.lets_others_go_on(&site).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_that_is_cut_off_is_unknown_until_it_is_heard_again() {
    let (site, server) = RunSite::with_lease(LEASE).await;
    let admin = admin_of(&server.address);
    let proxy = CuttableProxy::to(&server.address).await;
    let _agent = site.agent("one", &proxy.address());
    let comes_to = async |status: &str| {
        until(status, async || site.status_of_agent(&admin, "one").await == status).await;
    };
    comes_to("idle").await;
    proxy.let_through(Flow::Neither);
    comes_to("unknown").await;
    proxy.let_through(Flow::Both);
    comes_to("idle").await;
    let workspace = site.given_workspace(&admin, "web").await;
    let run = admin.start_run(&workspace).await;
    assert_eq!(admin.end_of(&run).await, "applied");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_state_that_comes_after_others_went_on_is_kept_beside_theirs() {
    let (site, server) = RunSite::with_lease(LEASE).await;
    let admin = admin_of(&server.address);
    let workspace = site.given_workspace(&admin, "web").await;
    let sleeper = site.agent("one", &server.address);
    site.engine.hold(Step::ApplyBegins);
    let run = admin.start_run(&workspace).await;
    let deed = site.engine.comes_to(Step::ApplyBegins, &run, 1).await;
    // The engine works on while its agent sleeps, up to the end of the lease.
    sleeper.signal(Signal::SIGSTOP);
    site.engine.hold(Step::ApplyIsHalfDone);
    site.engine.let_go(Step::ApplyBegins);
    site.engine.comes_to(Step::ApplyIsHalfDone, &run, 1).await;
    assert_eq!(admin.end_of(&run).await, "errored");
    assert!(!deed.lives());
    assert_eq!(admin.work_in_state(&workspace).await, None);
    site.engine.let_go(Step::ApplyIsHalfDone);

    let unlock = format!("/api/v2/workspaces/{workspace}/actions/force-unlock");
    admin.done("POST", &unlock, Some(serde_json::json!({}))).await;
    let _two = site.agent("two", &server.address);
    let next = admin.start_run(&workspace).await;
    assert_eq!(admin.end_of(&next).await, "applied");
    let versions = async || {
        let listed = admin.get(&format!("/api/v2/workspaces/{workspace}/state-versions")).await;
        listed["data"].as_array().expect("a list").iter().map(|version| text(&version["id"])).collect::<Vec<_>>()
    };
    let before = versions().await;
    sleeper.signal(Signal::SIGCONT);
    until("the state is kept", async || versions().await.len() > before.len()).await;
    let rescued = versions().await.into_iter().find(|version| !before.contains(version)).expect("a new one");
    let events = admin.get(&format!("/api/v2/runs/{run}/run-events")).await.to_string();
    assert!(events.contains("state_rescued") && events.contains(&rescued), "{events}");
    let outputs = admin.get(&format!("/api/v2/state-versions/{rescued}/outputs")).await;
    assert_eq!(outputs["data"][0]["attributes"]["value"], format!("half of {run}"));
    assert_eq!(admin.work_in_state(&workspace).await, Some(format!("all of {next}")));
    assert_eq!(admin.run(&run).await["status"], "errored");
    site.is_sound();
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_that_is_silent_is_given_nothing_although_its_connection_is_there() {
    let (site, server) = RunSite::with_lease(LEASE).await;
    let admin = admin_of(&server.address);
    let workspace = site.given_workspace(&admin, "web").await;
    let asleep = site.agent("one", &server.address);
    asleep.signal(Signal::SIGSTOP);
    // Three heartbeats and some more.
    sleep(Duration::from_secs(u64::from(LEASE)) / 2).await;
    let run = admin.start_run(&workspace).await;
    sleep(Duration::from_secs(2)).await;
    assert_eq!(admin.run(&run).await["status"], "plan_queued", "nobody is there who would plan it");
    let _awake = site.agent("two", &server.address);
    assert_eq!(admin.end_of(&run).await, "applied");
    assert_eq!(site.engine.came_to(Step::Init, &run).len(), 2, "one plan and one apply");
    asleep.signal(Signal::SIGCONT);
    asleep.line_of_stderr(|line| line.contains("broke"));
}

/// A site on S3: one server that can be cut off from the bucket, and one that cannot.
async fn on_a_bucket_that_can_be_cut_off() -> (BucketServer, CuttableProxy, RunSite, ServerProcess, ServerProcess) {
    let bucket = BucketServer::gofakes3().await.expect("gofakes3");
    let location = bucket.location();
    let proxy = CuttableProxy::to(&location.s3_endpoint.clone().expect("an endpoint")).await;
    let (site, steady) = RunSite::on(Some(location.clone()), LEASE).await;
    let cut_off = site.server_at(Some(&Location { s3_endpoint: Some(proxy.address()), ..location }));
    (bucket, proxy, site, steady, cut_off)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_is_cut_off_from_the_bucket_keeps_no_agent_and_acknowledges_nothing() {
    let (_bucket, proxy, site, steady, cut_off) = on_a_bucket_that_can_be_cut_off().await;
    let agent = site.agent("one", &cut_off.address);
    let story = HalfDone::at(&site, &steady).await;
    proxy.let_through(Flow::Neither);
    let describe = serde_json::json!({ "data": { "type": "workspaces", "attributes": { "description": "cut off" } } });
    let path = format!("/api/v2/workspaces/{}", story.workspace);
    let client = reqwest::Client::new();
    let asked = client.patch(format!("http://{}{path}", cut_off.address)).bearer_auth(&story.admin.token);
    let asked = asked.header("content-type", "application/vnd.api+json").body(describe.to_string());
    let (answer, ()) = tokio::join!(asked.send(), story.is_given_up(&site));
    if let Ok(answer) = answer {
        assert_eq!(answer.status(), 503, "{answer:?}");
        let shown = story.admin.get(&path).await;
        assert_ne!(shown["data"]["attributes"]["description"], "cut off", "what was refused did not happen");
    }
    proxy.let_through(Flow::Both);
    // The server that was away sees what the other one decided, and its agent works again.
    let back = admin_of(&cut_off.address);
    until("it answers again", async || back.send("GET", &path, None).await.0.is_success()).await;
    assert_eq!(back.run(&story.run).await["status"], "errored");
    assert_eq!(back.holder_of(&story.workspace).await, Some(story.run.clone()));
    story.lets_others_go_on(&site).await;
    drop(agent);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_whose_server_dies_goes_on_at_another_one() {
    let (site, first) = RunSite::with_lease(60).await;
    let second = site.server();
    let proxy = CuttableProxy::to(&first.address).await;
    let _agent = site.agent("one", &proxy.address());
    let HalfDone { workspace, run, deed, .. } = HalfDone::at(&site, &first).await;
    proxy.redirect_to(&second.address);
    drop(first);
    let admin = admin_of(&second.address);
    site.engine.let_go(Step::ApplyIsHalfDone);
    assert_eq!(admin.end_of(&run).await, "applied");
    assert!(!deed.lives());
    assert_eq!(admin.work_in_state(&workspace).await, Some(format!("all of {run}")));
    assert_eq!(site.engine.came_to(Step::ApplyBegins, &run).len(), 1);
    site.is_sound();
}

/// Reads a log as clients do, by offset, from whichever server answers, until it ends.
async fn follow_log(proxy: String, path: String) -> Vec<u8> {
    let client = reqwest::Client::builder().timeout(Duration::from_secs(5)).build().expect("a client");
    let mut log = Vec::new();
    while log.last() != Some(&3) {
        let address = format!("{proxy}{path}?limit=65536&offset={}", log.len());
        match client.get(address).send().await {
            Ok(answer) if answer.status().is_success() => log.extend(answer.bytes().await.unwrap_or_default()),
            _ => {}
        }
        sleep(Duration::from_millis(50)).await;
    }
    log
}

async fn length_of(proxy: &str, path: &str) -> usize {
    match reqwest::get(format!("{proxy}{path}?limit=1000000&offset=0")).await {
        Ok(answer) => answer.bytes().await.map_or(0, |log| log.len()),
        Err(_) => 0,
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn followers_of_a_log_miss_nothing_when_their_server_is_killed() {
    let (site, first) = RunSite::with_lease(60).await;
    let proxy = CuttableProxy::to(&first.address).await;
    let _agent = site.agent("one", &proxy.address());
    let admin = admin_of(&first.address);
    let workspace = site.given_workspace(&admin, "web").await;
    site.engine.hold(Step::Plan);
    let run = admin.start_run(&workspace).await;
    site.engine.comes_to(Step::Plan, &run, 1).await;
    let plan = admin.get(&format!("/api/v2/runs/{run}/plan")).await;
    let path = harness::kill_point::path_of(&text(&plan["data"]["attributes"]["log-read-url"]));
    let followers: Vec<_> = (0..5).map(|_| tokio::spawn(follow_log(proxy.address(), path.clone()))).collect();
    let mut server = first;
    for _ in 0..2 {
        let before = length_of(&proxy.address(), &path).await;
        let next = site.server();
        proxy.redirect_to(&next.address);
        drop(std::mem::replace(&mut server, next));
        until("the log goes on", async || length_of(&proxy.address(), &path).await > before + 500).await;
    }
    site.engine.let_go(Step::Plan);
    for follower in followers {
        let log = String::from_utf8(follower.await.expect("no panic")).expect("text");
        assert!(log.starts_with('\u{2}'), "{log}");
        let waited: Vec<_> = log.lines().filter(|line| line.contains(" has waited ")).collect();
        for (number, line) in waited.iter().enumerate() {
            assert_eq!(**line, format!("plan of {run} has waited {} times", number + 1), "{log}");
        }
        assert!(waited.len() > 20, "{log}");
    }
}
