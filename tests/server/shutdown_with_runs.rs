//! Runs whose server is asked to stop.

use std::io::Write;
use std::net::TcpStream;
use std::process::Command;
use std::time::Duration;

use harness::api_client::ApiClient;
use harness::cuttable_proxy::CuttableProxy;
use harness::home::{Home, ServerProcess};
use harness::run_site::{RunSite, SITE_TOKEN, admin_of, configuration, text, until};
use harness::stand_in_engine::{StandInEngine, Step};
use nix::sys::signal::Signal;
use serde_json::json;
use tokio::time::{Instant, sleep};

/// In seconds. An agent that hears nothing interrupts its engines before it is over. A server that stops waits for its
/// requests for more than two of them.
const LEASE: u16 = 10;

/// A request whose body is never finished: a server that stops waits for it as long as for any.
fn half_a_request(server: &ServerProcess) -> TcpStream {
    let mut stream = TcpStream::connect(&server.address).expect("it listens");
    let head = "POST /oauth/token HTTP/1.1\r\nhost: taco\r\ncontent-type: application/x-www-form-urlencoded\r\ncontent-length: 100";
    write!(stream, "{head}\r\n\r\ngrant_type=").expect("it is sent");
    stream
}

#[tokio::test(flavor = "multi_thread")]
async fn agents_of_a_server_that_stops_go_on_at_another_one() {
    let (site, mut first) = RunSite::with_lease(LEASE).await;
    let second = site.server();
    let proxy = CuttableProxy::to(&first.address).await;
    let agent = site.agent("one", &proxy.address());
    let admin = admin_of(&second.address);
    let workspace = site.given_workspace(&admin, "web").await;
    site.engine.hold(Step::ApplyIsHalfDone);
    let run = admin.start_run(&workspace).await;
    let deed = site.engine.comes_to(Step::ApplyIsHalfDone, &run, 1).await;
    let under_way = half_a_request(&first);
    sleep(Duration::from_millis(300)).await;
    proxy.redirect_to(&second.address);
    first.process.signal(Signal::SIGTERM);
    agent.line_of_stderr(|line| line.contains("the server is stopping"));
    sleep(Duration::from_secs(LEASE.into()) * 2).await;
    assert!(deed.lives() && !site.engine.was_interrupted(&run), "the first server still waits for its request");
    site.engine.let_go(Step::ApplyIsHalfDone);
    assert_eq!(admin.end_of(&run).await, "applied");
    assert_eq!(admin.work_in_state(&workspace).await, Some(format!("all of {run}")));
    assert_eq!(site.engine.came_to(Step::ApplyBegins, &run).len(), 1);
    assert!(!site.engine.was_interrupted(&run));
    drop(under_way);
    assert_eq!(first.process.wait().code(), Some(0));
    site.is_sound();
}

/// A server whose own agent runs the stand-in engine.
fn server_with_agent(home: &Home, engine: &StandInEngine, lease: u16) -> Command {
    let mut command = home.taco(&["server"]);
    command.env("TACO_LISTEN", "127.0.0.1:0").env("TACO_SITE_TOKEN", SITE_TOKEN);
    command.env("TACO_AGENT_LEASE", lease.to_string()).env("TACO_AGENT_WORK_DIR", home.path().join("agent"));
    command.env("PATH", engine.search_path()).env("TACO_ENGINE_MIRROR", "http://127.0.0.1:9");
    command
}

async fn given_workspace(admin: &ApiClient) -> String {
    admin.given_organization("acme").await;
    let attributes = json!({ "name": "web", "execution-mode": "remote" });
    let body = json!({ "data": { "type": "workspaces", "attributes": attributes } });
    let workspace = text(&admin.post("/api/v2/organizations/acme/workspaces", body).await["data"]["id"]);
    admin.given_configuration(&workspace, configuration()).await;
    workspace
}

#[tokio::test(flavor = "multi_thread")]
async fn the_servers_own_agent_finishes_its_apply_although_that_takes_longer_than_a_lease() {
    let (home, engine) = (Home::default(), StandInEngine::install());
    // It has to end well before the server interrupts its own agent's engines, which it does after 15 s.
    let lease = 8;
    let mut server = ServerProcess::start(&mut server_with_agent(&home, &engine, lease));
    let admin = admin_of(&server.address);
    let workspace = given_workspace(&admin).await;
    engine.hold(Step::ApplyIsHalfDone);
    let run = admin.start_run(&workspace).await;
    let deed = engine.comes_to(Step::ApplyIsHalfDone, &run, 1).await;
    server.process.signal(Signal::SIGTERM);
    sleep(Duration::from_secs(lease.into()) + Duration::from_millis(500)).await;
    assert!(deed.lives() && !engine.was_interrupted(&run));
    engine.let_go(Step::ApplyIsHalfDone);
    assert_eq!(server.process.wait().code(), Some(0));
    let again = ServerProcess::start(&mut server_with_agent(&home, &engine, lease));
    assert_eq!(admin_of(&again.address).end_of(&run).await, "applied");
    assert_eq!(engine.came_to(Step::ApplyBegins, &run).len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_plan_of_the_servers_own_agent_begins_again_as_soon_as_the_server_does() {
    let (home, engine) = (Home::default(), StandInEngine::install());
    // No one waits for that one.
    let lease = 300;
    let mut server = ServerProcess::start(&mut server_with_agent(&home, &engine, lease));
    let admin = admin_of(&server.address);
    let workspace = given_workspace(&admin).await;
    engine.hold(Step::Plan);
    let run = admin.start_run(&workspace).await;
    engine.comes_to(Step::Plan, &run, 1).await;
    server.process.signal(Signal::SIGTERM);
    assert_eq!(server.process.wait().code(), Some(0));
    assert!(engine.was_interrupted(&run));
    engine.let_go(Step::Plan);
    let again = ServerProcess::start(&mut server_with_agent(&home, &engine, lease));
    assert_eq!(admin_of(&again.address).end_of(&run).await, "applied");
    assert_eq!(engine.came_to(Step::Plan, &run).len(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_follows_a_log_does_not_keep_a_server_from_stopping() {
    let (site, mut first) = RunSite::with_lease(60).await;
    let agent = site.agent("one", &first.address);
    let admin = admin_of(&first.address);
    let workspace = site.given_workspace(&admin, "web").await;
    site.engine.hold(Step::Init);
    let run = admin.start_run(&workspace).await;
    site.engine.comes_to(Step::Init, &run, 1).await;
    let plan = admin.get(&format!("/api/v2/runs/{run}/plan")).await;
    let log = text(&plan["data"]["attributes"]["log-read-url"]);
    let length = async || {
        let log = reqwest::get(format!("{log}?limit=65536&offset=0")).await.expect("an answer");
        log.text().await.expect("text").len()
    };
    until("the log begins", async || length().await > 1).await;
    // No more will come, but for the server.
    agent.signal(Signal::SIGSTOP);
    let end = length().await;
    let follows = tokio::spawn(reqwest::get(format!("{log}?limit=65536&offset={end}")));
    sleep(Duration::from_millis(500)).await;
    assert!(!follows.is_finished(), "it is kept waiting");
    let begun = Instant::now();
    first.process.signal(Signal::SIGTERM);
    let answer = follows.await.expect("no panic").expect("an answer");
    assert_eq!((answer.status().as_u16(), answer.text().await.expect("text").as_str()), (200, ""));
    assert_eq!(first.process.wait().code(), Some(0));
    // Who follows is answered after 20 s in any case.
    assert!(begun.elapsed() < Duration::from_secs(15), "{:?}", begun.elapsed());
}
