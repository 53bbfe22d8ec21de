//! go-tfe's own integration suite, as a black box: the tests that `passing.txt` names pass, and go on passing.
//!
//! Each test is a process of its own, so that a panic or a hang spoils nothing but itself. Their runs are executed by
//! the server's own agent, with the real terraform and the real provider of `null_resource`.
//!
//! `cargo xtask conformance` runs this suite alone; with names of tests it tries those, listed or not.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::thread;
use std::time::Instant;

use harness::engine::Engine;
use harness::home::{Home, ServerProcess};
use harness::provider_mirror;
use harness::webhook_receiver::WebhookReceiver;

const PASSING: &str = include_str!("passing.txt");
const TOKEN: &str = "the-token-of-a-site-that-exists-for-a-test";
/// The suite asks for several kinds of site admins; ours is all of them.
const ROLES: [&str; 7] = [
    "SITE_ADMIN",
    "CONFIGURATION",
    "PROVISION_LICENSES",
    "SUBSCRIPTION",
    "SUPPORT",
    "SECURITY_MAINTENANCE",
    "VERSION_MAINTENANCE",
];
/// They wait more than they compute.
const CONCURRENCY: usize = 4;

/// Runs one test of the suite. If it does not pass, the error is what it printed.
fn run(suite: &Path, address: &str, receiver: &str, test: &str) -> Result<(), String> {
    let mut command = Command::new(suite);
    command
        .args(["-test.v", "-test.run", &format!("^{test}$"), "-test.timeout", "180s"])
        .current_dir(suite.parent().expect("the suite lies in a directory"))
        .env("TFE_ADDRESS", format!("http://{address}"))
        .env("TFE_TOKEN", TOKEN)
        .env("TFC_RUN_TASK_URL", receiver)
        .stdin(Stdio::null());
    // Nothing asks the forge, so that any text will do. Other tests would connect workspaces to a repository.
    if test.starts_with("TestOAuth") {
        command.env("OAUTH_CLIENT_GITHUB_TOKEN", "a-token");
    }
    for role in ROLES {
        command.env(format!("TFE_ADMIN_{role}_TOKEN"), TOKEN);
    }
    let output = command.output().expect("the suite starts");
    let text = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    let passed = text.lines().any(|line| line.starts_with(&format!("--- PASS: {test} ")));
    if passed { Ok(()) } else { Err(text) }
}

/// The tests to run: those that are known to pass, unless someone asks for others.
fn wanted() -> Vec<String> {
    let asked = std::env::var("TACO_TEST_GO_TFE_ONLY").unwrap_or_default();
    let asked: Vec<_> = asked.split_whitespace().map(str::to_owned).collect();
    if !asked.is_empty() {
        return asked;
    }
    let listed = PASSING.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
    listed.map(str::to_owned).collect()
}

#[test]
fn what_passed_still_passes() {
    let suite = std::env::var_os("TACO_TEST_GO_TFE").map(PathBuf::from);
    let suite =
        suite.expect(r#"TACO_TEST_GO_TFE is not set: run `cargo xtask test`, or eval "$(cargo xtask tools)" first"#);
    // Something that answers 200, which tests of notifications ask for under this name.
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let receiver = runtime.block_on(WebhookReceiver::start()).url();
    let home = Home::default();
    let mirror = provider_mirror::with_null_provider();
    let mut taco = home.taco(&["server"]);
    taco.env("TACO_LISTEN", "127.0.0.1:0").env("TACO_SITE_TOKEN", TOKEN).env("TACO_AGENT_CONCURRENCY", "2");
    taco.env("TACO_PROVIDER_MIRROR", mirror.path()).env("TACO_OUTBOUND_ALLOW", "127.0.0.0/8");
    taco.env("PATH", Engine::search_path()).env("TACO_ENGINE_MIRROR", "http://127.0.0.1:9");
    let server = ServerProcess::start(&mut taco);
    let waiting = Mutex::new(wanted());
    let failed = Mutex::new(Vec::new());
    thread::scope(|scope| {
        for _ in 0..CONCURRENCY {
            scope.spawn(|| {
                loop {
                    let next = waiting.lock().expect("not poisoned").pop();
                    let Some(test) = next else { return };
                    let begun = Instant::now();
                    let outcome = run(&suite, &server.address, &receiver, &test);
                    let seconds = begun.elapsed().as_secs_f32();
                    match outcome {
                        Ok(()) => println!("pass {test} ({seconds:.1} s)"),
                        Err(text) => {
                            println!("{text}\nfail {test} ({seconds:.1} s)");
                            failed.lock().expect("not poisoned").push(test);
                        }
                    }
                }
            });
        }
    });
    let failed = failed.into_inner().expect("not poisoned");
    if !failed.is_empty() {
        println!("{}", server.process.stderr());
    }
    assert!(failed.is_empty(), "tests of go-tfe that passed before do not pass any more: {}", failed.join(", "));
}
