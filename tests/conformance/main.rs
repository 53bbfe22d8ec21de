//! go-tfe's own integration suite, as a black box: the tests that `passing.txt` names pass, and go on passing.
//!
//! Each test is a process of its own, so that a panic or a hang spoils nothing but itself.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::thread;

use harness::home::{Home, ServerProcess};

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
const AT_ONCE: usize = 4;

/// Runs one test of the suite. If it does not pass, the error is what it printed.
fn run(suite: &Path, address: &str, test: &str) -> Result<(), String> {
    let mut command = Command::new(suite);
    command
        .args(["-test.v", "-test.run", &format!("^{test}$"), "-test.timeout", "120s"])
        .current_dir(suite.parent().expect("the suite lies in a directory"))
        .env("TFE_ADDRESS", format!("http://{address}"))
        .env("TFE_TOKEN", TOKEN)
        .stdin(Stdio::null());
    for role in ROLES {
        command.env(format!("TFE_ADMIN_{role}_TOKEN"), TOKEN);
    }
    let output = command.output().expect("the suite starts");
    let text = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    let passed = text.lines().any(|line| line.starts_with(&format!("--- PASS: {test} ")));
    if passed { Ok(()) } else { Err(text) }
}

#[test]
fn what_passed_still_passes() {
    let suite = std::env::var_os("TACO_TEST_GO_TFE").map(PathBuf::from);
    let suite =
        suite.expect(r#"TACO_TEST_GO_TFE is not set: run `cargo xtask test`, or eval "$(cargo xtask tools)" first"#);
    let home = Home::default();
    let mut taco = home.taco(&["server"]);
    // The configuration of these tests needs a provider that no machine without a network has, so nothing executes
    // runs: those that are listed look at runs that wait.
    taco.env("TACO_LISTEN", "127.0.0.1:0").env("TACO_SITE_TOKEN", TOKEN).env("TACO_AGENT_CONCURRENCY", "0");
    let server = ServerProcess::start(&mut taco);
    let tests = PASSING.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
    let waiting = Mutex::new(tests.collect::<Vec<_>>());
    let failed = Mutex::new(Vec::new());
    thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(|| {
                loop {
                    let next = waiting.lock().expect("not poisoned").pop();
                    let Some(test) = next else { return };
                    if let Err(text) = run(&suite, &server.address, test) {
                        println!("{text}");
                        failed.lock().expect("not poisoned").push(test);
                    }
                }
            });
        }
    });
    let failed = failed.into_inner().expect("not poisoned");
    assert!(failed.is_empty(), "tests of go-tfe that passed before do not pass any more: {}", failed.join(", "));
}
