use std::fs;
use std::net::TcpListener;
use std::process::Stdio;

use harness::home::{Home, ServerProcess};

const KEY: &str = "a key for tests, and long enough for that";

/// Runs `taco server`, which is expected to refuse. Returns the code and the one line that says why.
fn refusal(home: &Home, variables: &[(&str, &str)]) -> (Option<i32>, String) {
    let output = home
        .taco(&["server"])
        .env("TACO_LISTEN", "127.0.0.1:0")
        // On a busy machine the log may warn that the bucket is slow.
        .env("TACO_LOG_LEVEL", "error")
        .envs(variables.iter().copied())
        .output()
        .expect("it runs");
    let stderr = String::from_utf8(output.stderr).expect("it is text");
    assert_eq!(stderr.lines().count(), 1, "one line: {stderr}");
    assert!(output.stdout.is_empty(), "nothing was started");
    (output.status.code(), stderr.trim_end().to_owned())
}

#[tokio::test]
async fn it_starts_in_an_empty_home_and_says_what_there_is() {
    let home = Home::default();
    let server = home.server();
    assert_eq!(server.read("/healthz").await, (200, "ok\n".to_owned()));
    server.process.line_of_stdout(|line| line.starts_with("Ctrl-C"));
    let said = server.process.stdout();
    for expected in [
        format!("taco {} listens on {}", env!("CARGO_PKG_VERSION"), server.address),
        format!("address   http://{}", server.address),
        format!("data      file://{}", home.bucket().display()),
        format!("curl http://{}/readyz", server.address),
        "taco doctor".to_owned(),
        "README.md".to_owned(),
    ] {
        assert!(said.contains(&expected), "{expected:?} is missing in:\n{said}");
    }
}

#[tokio::test]
async fn bare_taco_is_the_server() {
    let home = Home::default();
    let server = ServerProcess::start(home.taco(&[]).env("TACO_LISTEN", "127.0.0.1:0"));
    assert_eq!(server.read("/readyz").await.0, 200);
}

#[tokio::test]
async fn a_second_start_finds_everything_again() {
    let home = Home::default();
    let format = home.bucket().join("taco.json");
    assert_eq!(home.server().read("/readyz").await.0, 200);
    let first = fs::read(&format).expect("the first start has made it");
    assert_eq!(home.server().read("/readyz").await.0, 200);
    assert_eq!(fs::read(&format).expect("it is still there"), first);
}

#[tokio::test]
async fn two_servers_share_a_bucket() {
    let home = Home::default();
    let (one, two) = (home.server(), home.server());
    assert_eq!(one.read("/readyz").await.0, 200);
    assert_eq!(two.read("/readyz").await.0, 200);
}

#[test]
fn a_site_token_that_could_be_guessed_is_warned_of() {
    let said_with = |token: &str| {
        let home = Home::default();
        let mut command = home.taco(&["server"]);
        let server = ServerProcess::start(command.env("TACO_LISTEN", "127.0.0.1:0").env("TACO_SITE_TOKEN", token));
        server.process.line_of_stderr(|line| line.contains("\"listening\""));
        server.process.stderr()
    };
    let (short, long) = ("swordfish-of-31-characters-only", "swordfish-with-32-characters-now");
    let said = said_with(short);
    let warning = said.lines().find(|line| line.contains("site_token has fewer than 32 characters"));
    let warning = warning.unwrap_or_else(|| panic!("nobody is warned: {said}"));
    assert!(warning.contains("WARN") && warning.contains("openssl rand -hex 32"), "{warning}");
    assert!(!said.contains("swordfish"), "{said}");
    let said = said_with(long);
    assert!(!said.contains("site_token") && !said.contains("swordfish"), "{said}");
}

#[test]
fn a_port_that_is_taken_is_one_clear_line() {
    let home = Home::default();
    let other = TcpListener::bind("127.0.0.1:0").expect("there is a free port");
    let address = other.local_addr().expect("it has an address").to_string();
    for (variable, flag) in [("TACO_LISTEN", "--listen"), ("TACO_METRICS_LISTEN", "--metrics-listen")] {
        let (code, line) = refusal(&home, &[(variable, &address)]);
        assert_eq!(code, Some(1));
        assert!(line.starts_with(&format!("error: {address} is taken by another program")), "{line}");
        assert!(line.contains(flag), "{line}");
    }
}

#[test]
fn a_bucket_of_a_newer_format_is_left_alone() {
    let home = Home::default();
    fs::create_dir_all(home.bucket()).expect("it is made");
    let newer = r#"{ "format": 99, "created_at": "2031-01-01T00:00:00Z", "created_by": "taco 9" }"#;
    fs::write(home.bucket().join("taco.json"), newer).expect("it is written");
    let (code, line) = refusal(&home, &[]);
    assert_eq!(code, Some(1));
    assert!(line.starts_with("error: bucket file://") && line.contains(" (default): "), "{line}");
    assert!(line.contains("taco.json") && line.contains("format 99"), "{line}");
    let objects: Vec<_> = fs::read_dir(home.bucket()).expect("it is a directory").collect();
    assert_eq!(objects.len(), 1, "nothing was added: {objects:?}");
}

#[test]
fn a_directory_that_cannot_be_made_is_named() {
    let home = Home::default();
    let file = home.path().join("file");
    fs::write(&file, "").expect("it is written");
    let bucket = format!("file://{}/bucket", file.display());
    let (code, line) = refusal(&home, &[("TACO_BUCKET", &bucket)]);
    assert_eq!(code, Some(1));
    assert!(line.starts_with(&format!("error: bucket {bucket} (env TACO_BUCKET): ")), "{line}");
}

/// A server that does not find its bucket tries for a while, says so in its log, and gives up with one line.
#[test]
fn a_bucket_that_does_not_answer_is_named() {
    let home = Home::default();
    let closed = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr()).expect("a free port");
    let endpoint = format!("http://{closed}");
    fs::write(home.path().join("taco.toml"), "# ours\nbucket = \"s3://nowhere\"\n").expect("it is written");
    let cases = [
        (&["server"][..], &[("TACO_BUCKET", "s3://nowhere")][..], "env TACO_BUCKET"),
        (&["server", "--bucket", "s3://nowhere"], &[], "flag --bucket"),
        (&["server"], &[], "taco.toml:2"),
    ];
    // All at once, because each tries for a while.
    let started = cases.map(|(words, variables, origin)| {
        let mut command = home.taco(words);
        command
            .envs([("TACO_LISTEN", "127.0.0.1:0"), ("TACO_S3_ENDPOINT", &endpoint), ("TACO_SECRET_KEY", KEY)])
            .envs([("AWS_ACCESS_KEY_ID", "a"), ("AWS_SECRET_ACCESS_KEY", "b"), ("TACO_LOG_LEVEL", "error")])
            .envs(variables.iter().copied())
            .stderr(Stdio::piped());
        (command.spawn().expect("it runs"), origin)
    });
    for (child, origin) in started {
        let output = child.wait_with_output().expect("it ends");
        let line = String::from_utf8(output.stderr).expect("it is text");
        assert_eq!((output.status.code(), line.lines().count()), (Some(1), 1), "{line}");
        let expected = format!("error: bucket s3://nowhere ({origin}): the bucket is unavailable: ");
        assert!(line.starts_with(&expected), "{line}");
        assert!(line.contains(&endpoint), "{line}");
    }
}

#[test]
fn servers_that_share_a_bucket_need_a_key_that_nobody_guesses() {
    let home = Home::default();
    // Nothing is asked before: the bucket is not there at all.
    let (code, line) = refusal(&home, &[("TACO_BUCKET", "s3://nowhere"), ("TACO_S3_ENDPOINT", "http://127.0.0.1:9")]);
    assert_eq!(code, Some(1));
    let expected = "error: TACO_SECRET_KEY is not set: all servers on s3://nowhere need the same one.";
    assert!(line.starts_with(expected) && line.contains("`openssl rand -hex 32`"), "{line}");
    for (variable, key) in [("TACO_SECRET_KEY", "secret_key"), ("TACO_PREVIOUS_SECRET_KEY", "previous_secret_key")] {
        let (code, line) = refusal(&home, &[("TACO_SECRET_KEY", KEY), (variable, "short")]);
        assert_eq!(code, Some(1));
        let expected = format!("error: env {variable}: {key}: a master key needs at least 32 random characters");
        assert!(line.starts_with(&expected) && line.contains("try `openssl rand -hex 32`"), "{line}");
    }
    fs::write(home.path().join("taco.toml"), "\nsecret_key = \"short\"\n").expect("it is written");
    let (_, line) = refusal(&home, &[]);
    assert!(line.starts_with("error: taco.toml:2: secret_key: a master key needs"), "{line}");
    assert!(!home.bucket().exists(), "nothing was made");
}

#[test]
fn a_user_who_is_not_there_runs_no_engines() {
    let (code, line) = refusal(&Home::default(), &[("TACO_AGENT_RUN_AS", "nobody-like-this")]);
    assert_eq!(code, Some(1));
    assert_eq!(line, "error: agent_run_as: nobody-like-this is no user of this machine");
    if !nix::unistd::geteuid().is_root() {
        return;
    }
    let four = ("TACO_AGENT_CONCURRENCY", "4");
    let (code, line) = refusal(&Home::default(), &[four, ("TACO_AGENT_RUN_AS", "64000-64002")]);
    let expected = "has 3 users for 4 runs at a time: give one user, or at least 4";
    assert_eq!((code, line), (Some(1), format!("error: agent_run_as: 64000-64002 {expected}")));
}
