//! The link that makes its reader the site's admin: on a terminal, or by a command, and in no log.

use std::process::Command;

use harness::browser::Browser;
use harness::home::{Home, ServerProcess};
use harness::process::Process;
use nix::sys::signal::Signal;
use reqwest::Client;

/// The command on a terminal, which `script` makes and copies from.
fn on_terminal(command: &Command) -> Process {
    let mut script = Command::new("script");
    let words = command.get_args().map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ");
    script.args(["-q", "-e", "-c", &format!("exec {} {words}", command.get_program().to_string_lossy()), "/dev/null"]);
    script.env_clear().current_dir(command.get_current_dir().expect("a home")).env("PATH", "/usr/bin:/bin");
    for (name, value) in command.get_envs().filter_map(|(name, value)| Some((name, value?))) {
        script.env(name, value);
    }
    Process::start(&mut script)
}

#[tokio::test]
async fn a_log_has_no_link_but_names_the_command_that_prints_one() {
    let home = Home::default();
    let server = home.server();
    server.process.line_of_stdout(|line| line.starts_with("Ctrl-C"));
    server.process.line_of_stderr(|line| line.contains("taco admin setup-link"));
    let said = server.process.stdout() + &server.process.stderr();
    assert!(!said.contains("/setup/"), "{said}");
    assert!(server.process.stdout().contains("taco admin setup-link"), "{said}");
    assert!(!commits_of_the_site(&home).contains("\"password-link\""), "a link that nobody sees is none");

    let link = home.setup_link_to(&[("TACO_URL", "https://taco.test")]);
    assert!(link.starts_with("https://taco.test/setup/"), "{link}");
    let browser = Browser::at(format!("http://{}", server.address), Client::builder());
    browser.set_password(link.strip_prefix("https://taco.test").expect("it begins so")).await;
    assert_eq!(browser.get("/app/admin").await.status, 200);

    // Later visitors get none.
    let mut late = Process::start(&mut home.taco(&["admin", "setup-link"]));
    assert_eq!(late.wait().code(), Some(1));
    assert!(late.stderr().contains("has a password already") && late.stdout().is_empty(), "{late:?}");
    drop(server);
    let server = home.server();
    server.process.line_of_stdout(|line| line.starts_with("Ctrl-C"));
    assert!(!server.process.stdout().contains("setup-link"), "{}", server.process.stdout());
}

fn commits_of_the_site(home: &Home) -> String {
    let log = home.bucket().join("ledgers/site/log");
    let files = std::fs::read_dir(log).expect("the log").map(|file| file.expect("a file").path());
    files.map(|file| std::fs::read_to_string(file).expect("text")).collect()
}

#[tokio::test]
async fn whoever_starts_a_server_on_a_terminal_sees_the_link() {
    let home = Home::default();
    let mut server = on_terminal(home.taco(&["server"]).env("TACO_LISTEN", "127.0.0.1:0"));
    let link = server.line_of_stdout(|line| line.contains("/setup/")).trim().to_owned();
    let at = link.find("/setup/").expect("a path");
    let browser = Browser::at(link[..at].to_owned(), Client::builder());
    browser.set_password(&link[at..]).await;
    // `script` ends the server when it is asked to end, and not when it is killed.
    server.signal(Signal::SIGTERM);
    server.wait();
    // The log's first lines come before the link, and nothing that a visitor does scrolls it away.
    let said = server.stdout();
    let place = |part: &str| said.find(part).unwrap_or_else(|| panic!("{part} is missing in:\n{said}"));
    assert!(place("listening") < place("listens on") && place(" connected") < place("listens on"), "{said}");
    assert!(!said.contains("taco_server::access"), "{said}");
}

#[test]
fn the_command_needs_a_bucket_that_a_server_has_begun() {
    let home = Home::default();
    let mut early = Process::start(&mut home.taco(&["admin", "setup-link"]));
    assert_eq!(early.wait().code(), Some(1));
    assert!(early.stderr().contains("start the server first"), "{early:?}");
    drop(ServerProcess::start(home.taco(&["server"]).env("TACO_LISTEN", "127.0.0.1:0")));
    assert!(home.setup_link(&[]).starts_with("/setup/"));
}
