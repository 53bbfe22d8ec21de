use std::fs;
use std::net::TcpListener;
use std::process::{Command, Output, Stdio};

use harness::binary::binary;
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
        format!("storage   file://{}", home.bucket().display()),
        format!("taco login {} ", server.address),
        "taco help ".to_owned(),
        "--tls-dev".to_owned(),
        "README.md".to_owned(),
    ] {
        assert!(said.contains(&expected), "{expected:?} is missing in:\n{said}");
    }
}

/// Runs the command of the start text that begins so, as it stands there, in a shell that has nothing of the server's.
fn types(home: &Home, said: &str, begin: &str) -> Output {
    let line = said.lines().find(|line| line.starts_with(&format!("  taco {begin}")));
    let line = line.unwrap_or_else(|| panic!("no `taco {begin}` in:\n{said}")).trim();
    // Behind three spaces it says what the command is for.
    let command = line.split("   ").next().expect("a first part");
    let mut shell = Command::new("sh");
    let path = format!("{}:/usr/bin:/bin", binary("taco").parent().expect("a directory").display());
    shell.args(["-c", command]).current_dir(home.path()).env_clear().env("PATH", path);
    shell.env("HOME", home.path().join("elsewhere")).output().expect("it runs")
}

#[test]
fn what_it_says_to_type_works_in_any_shell() {
    let home = Home::default();
    let bucket = home.path().join("a place/bucket");
    fs::create_dir_all(&bucket).expect("it is made");
    let key = home.path().join("it's the key");
    fs::write(&key, KEY).expect("it is written");
    let mut command = home.taco(&["server"]);
    let url = format!("file://{}", bucket.display().to_string().replace(' ', "%20"));
    command.env("TACO_LISTEN", "127.0.0.1:0").env("TACO_BUCKET", url).env("TACO_SECRET_KEY_FILE", &key);
    let server = ServerProcess::start(&mut command);
    server.process.line_of_stdout(|line| line.starts_with("Ctrl-C"));
    let said = server.process.stdout();

    let doctor = types(&home, &said, "doctor");
    let findings = String::from_utf8_lossy(&doctor.stdout).into_owned();
    assert!(doctor.status.success(), "{doctor:?}");
    assert!(!findings.contains("no server has used this bucket yet"), "it is another bucket: {findings}");
    assert!(findings.contains("format\tpassed\t"), "{findings}");
    let link = types(&home, &said, "admin setup-link");
    let printed = String::from_utf8_lossy(&link.stdout).into_owned();
    assert!(printed.starts_with(&format!("http://{}/setup/", server.address)), "{link:?}");
    let help = types(&home, &said, "help");
    assert!(help.status.success() && String::from_utf8_lossy(&help.stdout).contains("taco run"), "{help:?}");
}

#[tokio::test]
async fn who_tries_https_on_a_port_for_http_is_told() {
    let home = Home::default();
    let server = home.server();
    for _ in 0..2 {
        reqwest::get(format!("https://{}/healthz", server.address)).await.expect_err("there is no TLS");
    }
    let line = server.process.line_of_stderr(|line| line.contains("https_on_http_port"));
    assert!(line.contains("http://") && line.contains("--tls-dev"), "{line}");
    assert_eq!(server.read("/healthz").await.0, 200, "it goes on");
    // A second line would have been before that of the request.
    server.process.line_of_stderr(|line| line.contains("/healthz"));
    assert_eq!(server.process.stderr().matches("https_on_http_port").count(), 1, "{}", server.process.stderr());
}

#[tokio::test]
async fn who_speaks_http_to_a_port_for_https_is_led_there() {
    let home = Home::default();
    let server = ServerProcess::start(home.taco(&["server", "--tls-dev"]).env("TACO_LISTEN", "127.0.0.1:0"));
    let client = reqwest::Client::builder().redirect(reqwest::redirect::Policy::none()).build().expect("a client");
    let page = client.get(format!("http://{}/app?a=b", server.address)).send().await.expect("it answers");
    assert_eq!(page.status().as_u16(), 307);
    assert_eq!(page.headers()["location"], format!("https://{}/app?a=b", server.address));
    let program = client.get(format!("http://{}/api/v2/ping", server.address)).bearer_auth("x");
    let told = program.send().await.expect("it answers");
    assert_eq!(told.status().as_u16(), 400);
    let text = told.text().await.expect("text");
    assert!(text.contains(&format!("Use https://{}", server.address)), "{text}");
}

#[tokio::test]
async fn bare_taco_is_the_server_and_says_how_to_get_help() {
    let home = Home::default();
    let server = ServerProcess::start(home.taco(&[]).env("TACO_LISTEN", "127.0.0.1:0"));
    assert_eq!(server.read("/readyz").await.0, 200);
    server.process.line_of_stdout(|line| line.trim_start().starts_with("taco help"));
    let told = server.process.stdout();
    assert!(told.starts_with("Starting a server. `taco --help` lists all commands.\n"), "{told}");
    assert_eq!(told.matches("Starting a server.").count(), 1, "{told}");
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
