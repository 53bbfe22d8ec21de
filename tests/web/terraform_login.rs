use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};

use reqwest::StatusCode;

use crate::browser::Site;

/// The block that the server prints for `~/.terraformrc`.
fn printed_block(said: &str) -> String {
    let begin = said.find("  host \"").expect("the server prints it");
    let end = begin + said[begin..].find("\n  }\n").expect("it ends") + 5;
    said[begin..end].to_owned()
}

#[tokio::test]
async fn terraform_logs_in_over_http_with_the_block_that_the_server_prints() {
    let Some(terraform) = std::env::var_os("TACO_TEST_TERRAFORM") else {
        panic!(r#"TACO_TEST_TERRAFORM is not set: run `cargo xtask test`, or eval "$(cargo xtask tools)" first"#)
    };
    let site = Site::start();
    let browser = site.admin().await;
    site.server.process.line_of_stdout(|line| line.starts_with("Ctrl-C"));
    let user = tempfile::tempdir().expect("a directory");
    // Terraform takes it for granted.
    fs::create_dir(user.path().join(".terraform.d")).expect("made");
    fs::write(user.path().join(".terraformrc"), printed_block(&site.server.process.stdout())).expect("written");

    let mut terraform = Command::new(terraform)
        .args(["login", &site.server.address])
        .env_clear()
        .envs([("HOME", user.path().as_os_str()), ("CHECKPOINT_DISABLE", "1".as_ref())])
        .current_dir(user.path())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::inherit())
        .spawn()
        .expect("terraform runs");
    terraform.stdin.take().expect("it is piped").write_all(b"yes\n").expect("it listens");
    let mut lines = BufReader::new(terraform.stdout.take().expect("it is piped")).lines().map_while(Result::ok);
    let address = lines.find(|line| line.contains("/oauth/authorize?")).expect("it prints where to go");
    let rest = std::thread::spawn(move || lines.collect::<Vec<_>>().join("\n"));

    let path = &address.trim()[browser.origin.len()..];
    let page = browser.get(path).await;
    assert_eq!(page.status, StatusCode::OK, "{}", page.text);
    let answer = browser.send(&page.form("/oauth/authorize"), &[("decision", "approve")]).await;
    let back = reqwest::get(answer.location()).await.expect("terraform listens");
    assert_eq!(back.status(), StatusCode::OK);

    let status = tokio::task::spawn_blocking(move || terraform.wait()).await.expect("no panic").expect("it ends");
    let said = rest.join().expect("no panic");
    assert!(status.success(), "{said}");
    let credentials =
        fs::read_to_string(user.path().join(".terraform.d/credentials.tfrc.json")).expect("it was written");
    let token = credentials.split('"').find(|text| text.starts_with("taco_u_")).expect("a token");
    assert_eq!(browser.api_status("/api/v2/account/details", token).await, 200);
}
