use std::fs;
use std::process::{Command, Output};

use harness::home::Home;
use serde_json::Value;

fn run(command: &mut Command) -> (Option<i32>, String, String) {
    let Output { status, stdout, stderr } = command.output().expect("it runs");
    let text = |bytes| String::from_utf8(bytes).expect("it is text");
    (status.code(), text(stdout), text(stderr))
}

/// The complaint of every command that reads the configuration.
fn complaint(home: &Home, variables: &[(&str, &str)]) -> String {
    let complaints =
        [&["server"][..], &["doctor"], &["config", "show"], &["audit", "verify"], &["rewrap"]].map(|words| {
            let (code, stdout, stderr) = run(home.taco(words).envs(variables.iter().copied()));
            assert_eq!((code, stdout.as_str()), (Some(2), ""), "{words:?}");
            assert_eq!(stderr.lines().count(), 1, "one line: {stderr}");
            stderr.trim_end().to_owned()
        });
    assert!(complaints.iter().all(|one| *one == complaints[0]), "{complaints:?}");
    complaints[0].clone()
}

#[test]
fn unknown_settings_are_refused_by_name_and_place() {
    let home = Home::default();
    let line = complaint(&home, &[("TACO_BUKET", "x")]);
    assert_eq!(line, "error: env TACO_BUKET is not a setting of taco; did you mean TACO_BUCKET?");
    fs::write(home.path().join("taco.toml"), "# ours\n\nlissen = \"127.0.0.1:80\"\n").expect("it is written");
    let line = complaint(&home, &[]);
    assert_eq!(line, "error: taco.toml:3: \"lissen\" is not a setting of taco; did you mean listen?");
}

#[test]
fn bad_values_are_refused_with_an_example() {
    let home = Home::default();
    let line = complaint(&home, &[("TACO_LISTEN", "8080")]);
    let expected = "error: env TACO_LISTEN: listen \"8080\" is not an IP address and a port; for example 0.0.0.0:8080";
    assert_eq!(line, expected);
    let line = complaint(&home, &[("TACO_SITE_TOKEN", "a"), ("TACO_SITE_TOKEN_FILE", "b")]);
    assert_eq!(line, "error: env TACO_SITE_TOKEN and env TACO_SITE_TOKEN_FILE both give site_token; keep one of them");
    let line = complaint(&home, &[("TACO_CONFIG", "absent.toml")]);
    assert!(line.starts_with("error: env TACO_CONFIG: the file absent.toml cannot be read"), "{line}");
}

#[test]
fn an_unknown_flag_is_refused_with_the_nearest_one() {
    let home = Home::default();
    let (code, _, stderr) = run(&mut home.taco(&["server", "--lisen", "127.0.0.1:1"]));
    assert_eq!(code, Some(2));
    assert!(stderr.contains("--lisen") && stderr.contains("'--listen'"), "{stderr}");
}

#[test]
fn config_show_tells_values_and_sources_and_hides_secrets() {
    let home = Home::default();
    fs::write(home.path().join("token"), "s3cret-token\n").expect("it is written");
    let file = "agent_concurrency = 5\nsecret_key = \"s3cret-key\"\n";
    fs::write(home.path().join("taco.toml"), file).expect("it is written");
    let show = |words: &[&str]| {
        let mut command = home.taco(&[&["config", "show", "--log-level", "warn"], words].concat());
        let (code, stdout, stderr) = run(command.env("TACO_SITE_TOKEN_FILE", "token"));
        assert_eq!((code, stderr.as_str()), (Some(0), ""));
        assert!(!stdout.contains("s3cret"), "{stdout}");
        stdout
    };
    let lines = show(&[]);
    for expected in [
        "KEY\tVALUE\tSOURCE",
        "agent_concurrency\t5\ttaco.toml:1",
        "secret_key\t(hidden)\ttaco.toml:2",
        "site_token\t(hidden)\tenv TACO_SITE_TOKEN_FILE",
        "log_level\twarn\tflag --log-level",
        "listen\t127.0.0.1:8080\tdefault",
        "s3_region\t(not set)\tdefault",
    ] {
        assert!(lines.lines().any(|line| line == expected), "{expected:?} is missing in:\n{lines}");
    }
    let document: Value = serde_json::from_str(&show(&["--json"])).expect("it is JSON");
    let entries = document.as_array().expect("it is a list");
    assert_eq!(entries.len(), lines.lines().count() - 1);
    let entry = |key: &str| entries.iter().find(|entry| entry["key"] == key).expect("it is listed");
    assert_eq!(entry("site_token")["value"], "(hidden)");
    assert_eq!(entry("site_token")["secret"], true);
    assert_eq!(entry("s3_region")["value"], Value::Null);
    assert_eq!(entry("agent_concurrency")["source"], "taco.toml:1");
}

#[test]
fn config_show_names_the_key_beside_the_bucket() {
    let home = Home::default();
    let row = || {
        let (_, stdout, _) = run(&mut home.taco(&["config", "show"]));
        stdout.lines().find(|line| line.starts_with("secret_key\t")).expect("it is listed").to_owned()
    };
    let file = home.bucket().with_extension("key");
    assert_eq!(row(), format!("secret_key\t(not set)\t{} (created at the first start)", file.display()));
    drop(home.server());
    assert_eq!(row(), format!("secret_key\t(hidden)\t{}", file.display()));
}
