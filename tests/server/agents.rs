//! `taco-agent`, as one who installs it next to a server meets it.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;

use harness::home::ServerProcess;
use harness::process::Process;
use harness::run_site::{RunSite, SITE_TOKEN, admin_of, until};
use harness::stand_in_engine::Step;
use nix::sys::signal::Signal;
use serde_json::{Value, json};
use taco_agent_protocol::CONNECT_PATH;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// In seconds: no agent is given up here.
const LEASE: u16 = 30;

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_for_one_phase_executes_it_and_leaves() {
    let (site, server) = RunSite::with_lease(LEASE).await;
    let admin = admin_of(&server.address);
    let workspace = site.given_workspace(&admin, "web").await;
    let run = admin.start_run(&workspace).await;
    let once = |name| Process::start(site.agent_command(name, &server.address).arg("--once"));
    let mut plans = once("one");
    assert!(plans.wait().success(), "{plans:?}");
    assert_eq!(admin.run(&run).await["status"], "apply_queued");
    until("it has left", async || site.status_of_agent(&admin, "one").await == "exited").await;
    assert!(site.engine.came_to(Step::ApplyBegins, &run).is_empty());
    let mut applies = once("two");
    assert!(applies.wait().success(), "{applies:?}");
    assert_eq!(admin.end_of(&run).await, "applied");
    for step in [Step::Plan, Step::ApplyBegins] {
        assert_eq!(site.engine.came_to(step, &run).len(), 1, "{step:?}");
    }
    assert_eq!(admin.work_in_state(&workspace).await, Some(format!("all of {run}")));
}

/// Says hello over a connection of its own, and reads until the server ends it, or has said something.
async fn hello(server: &str, token: &str, hello: &Value) -> String {
    let mut connection = TcpStream::connect(server).await.expect("a connection");
    let upgrade = format!(
        "GET {CONNECT_PATH} HTTP/1.1\r\nhost: {server}\r\nauthorization: Bearer {token}\r\nconnection: upgrade\r\n\
         upgrade: websocket\r\nsec-websocket-version: 13\r\nsec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
    );
    connection.write_all(upgrade.as_bytes()).await.expect("it is sent");
    let mut answer = Vec::new();
    while !answer.ends_with(b"\r\n\r\n") {
        answer.push(connection.read_u8().await.expect("an answer"));
    }
    assert!(answer.starts_with(b"HTTP/1.1 101"), "{}", String::from_utf8_lossy(&answer));
    let text = hello.to_string();
    // A whole text, with its length in eight bytes and a mask of zeros.
    let length = (text.len() as u64).to_be_bytes();
    let frame = [&[0x81, 0xff], &length[..], &[0; 4], text.as_bytes()].concat();
    // The server may have had enough before it has all.
    let _ = connection.write_all(&frame).await;
    let mut said = vec![0; 4096];
    let count = connection.read(&mut said).await.unwrap_or_default();
    String::from_utf8_lossy(&said[..count]).into_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_that_says_too_much_of_itself_may_not_stay() {
    let (site, server) = RunSite::with_lease(LEASE).await;
    let fair = json!({ "type": "hello", "protocol": 1, "version": "0.1.0", "name": "rack", "concurrency": 1 });
    let with = |field: &str, value: Value| {
        let mut unfair = fair.clone();
        unfair[field] = value;
        unfair
    };
    let engines = |count: u32| (0..count).map(|n| json!({ "engine": "terraform", "version": format!("{n}.0.0") }));
    for (unfair, words) in [
        (with("version", "v".repeat(5_000).into()), "version has 5000 bytes; at most 64 are allowed"),
        (with("name", "n".repeat(5_000).into()), "name has 5000 bytes; at most 255 are allowed"),
        (with("engines", json!([{ "engine": "tofu", "version": "<b>" }])), "a version is one such as 1.11.4"),
    ] {
        let said = hello(&server.address, &site.pool_token, &unfair).await;
        assert!(said.contains("refused") && said.contains(words), "{said}");
    }
    // More than anyone hears at once: twenty thousand engines.
    let said = hello(&server.address, &site.pool_token, &with("engines", engines(20_000).collect())).await;
    assert!(!said.contains("welcome"), "{said}");
    let admin = admin_of(&server.address);
    assert_eq!(admin.get("/versions").await["engines"], json!({}));
    let said = hello(&server.address, &site.pool_token, &with("engines", engines(2_000).collect())).await;
    assert!(said.contains("welcome"), "one that has many may stay: {said}");
}

/// They take a minute: there is no shorter limit.
#[tokio::test(flavor = "multi_thread")]
async fn plans_and_applies_that_take_too_long_are_stopped() {
    let (site, first) = RunSite::with_lease(LEASE).await;
    drop(first);
    let mut command = site.server_command(None);
    let server = ServerProcess::start(command.env("TACO_PLAN_TIMEOUT", "1").env("TACO_APPLY_TIMEOUT", "1"));
    let admin = admin_of(&server.address);
    let mut command = site.agent_command("one", &server.address);
    let _agent = Process::start(command.args(["--concurrency", "2"]));

    site.engine.hold(Step::ApplyIsHalfDone);
    let applying = site.given_workspace(&admin, "applying").await;
    let apply = admin.start_run(&applying).await;
    site.engine.comes_to(Step::ApplyIsHalfDone, &apply, 1).await;
    site.engine.hold(Step::Plan);
    let planning = site.given_workspace(&admin, "planning").await;
    let plan = admin.start_run(&planning).await;

    assert_eq!(admin.end_of(&apply).await, "errored");
    assert_eq!(admin.error_of(&apply, "apply").await, "the apply took longer than 1 minute");
    // It was asked to stop, and what it had done is kept.
    assert!(site.engine.was_interrupted(&apply));
    assert_eq!(admin.work_in_state(&applying).await, Some(format!("half of {apply}")));
    assert_eq!(admin.end_of(&plan).await, "errored");
    assert_eq!(admin.error_of(&plan, "plan").await, "the plan took longer than 1 minute");
    for (workspace, run) in [(applying, apply), (planning, plan)] {
        assert_eq!(admin.holder_of(&workspace).await, None, "{run}");
    }
    // Others are not held up.
    site.engine.let_go(Step::Plan);
    site.engine.let_go(Step::ApplyIsHalfDone);
    let other = site.given_workspace(&admin, "other").await;
    assert_eq!(admin.end_of(&admin.start_run(&other).await).await, "applied");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_reads_its_token_from_a_file() {
    let (site, server) = RunSite::with_lease(LEASE).await;
    let admin = admin_of(&server.address);
    let workspace = site.given_workspace(&admin, "web").await;
    let file = site.home.path().join("token");
    fs::write(&file, format!("{}\n", site.pool_token)).expect("written");
    fs::set_permissions(&file, Permissions::from_mode(0o400)).expect("a mode");
    let mut command = site.agent_command("one", &server.address);
    command.env_remove("TACO_AGENT_TOKEN").arg("--token-file").arg(&file);
    let agent = Process::start(&mut command);
    agent.line_of_stderr(|line| line.contains("connected"));
    // It is not needed any more: an agent has read it when it begins.
    fs::remove_file(&file).expect("it is there");
    let run = admin.start_run(&workspace).await;
    assert_eq!(admin.end_of(&run).await, "applied");
    for place in ["environ", "cmdline"] {
        let seen = fs::read(format!("/proc/{}/{place}", agent.id())).unwrap_or_default();
        assert!(!String::from_utf8_lossy(&seen).contains(&site.pool_token), "{place}");
    }
}

/// The row of an agent in the list that people see: its pool, its status, and when it was heard.
fn listed(site: &RunSite, server: &str, name: &str) -> Option<[String; 3]> {
    let mut command = site.home.taco(&["agent", "ls", "--org", "acme"]);
    let output = command.env("TACO_HOST", server).env("TACO_TOKEN", SITE_TOKEN).output().expect("it runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let table = String::from_utf8(output.stdout).expect("text");
    let row = table.lines().map(|line| line.split('\t').collect::<Vec<_>>()).find(|row| row[0] == name)?;
    Some([row[1], row[2], row[4]].map(str::to_owned))
}

#[tokio::test(flavor = "multi_thread")]
async fn people_see_what_an_agent_does() {
    let (site, server) = RunSite::with_lease(LEASE).await;
    let admin = admin_of(&server.address);
    let workspace = site.given_workspace(&admin, "web").await;
    assert_eq!(listed(&site, &server.address, "one"), None);
    let comes_to = async |status: &str| {
        let seen = || listed(&site, &server.address, "one").expect("such an agent");
        until(&format!("the agent is {status}"), async || seen()[1] == status).await;
        let [pool, _, heard] = seen();
        assert!(pool == "rack" && !heard.is_empty(), "{pool} {heard:?}");
    };
    let mut agent = site.agent("one", &server.address);
    comes_to("idle").await;
    site.engine.hold(Step::Plan);
    let run = admin.start_run(&workspace).await;
    site.engine.comes_to(Step::Plan, &run, 1).await;
    comes_to("busy").await;
    site.engine.let_go(Step::Plan);
    assert_eq!(admin.end_of(&run).await, "applied");
    comes_to("idle").await;
    agent.signal(Signal::SIGTERM);
    assert!(agent.wait().success());
    comes_to("exited").await;
}
