//! `login` through the browser, and `logout`.

use std::fs;

use harness::engine::{Engine, User};
use harness::installation::{Installation, Transport};
use reqwest::StatusCode;
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};

use crate::scene::says;

async fn logs_in_works_and_logs_out(engine: Engine, installation: Installation) {
    let browser = installation.browser().await;
    installation.admin().given_organization("acme").await;
    let user = User::new(engine, &installation);
    let host = installation.host();
    let block = format!(
        r#"terraform {{
          cloud {{
            hostname     = "{host}"
            organization = "acme"
            workspaces {{ name = "web" }}
          }}
        }}"#
    );
    let here = user.directory("web", &block);
    says(&here.fails("init").await, "login");

    let mut login = here.command(&format!("login {host}")).spawn().expect("it starts");
    login.stdin.take().expect("it is piped").write_all(b"yes\n").await.expect("it listens");
    let mut lines = BufReader::new(login.stdout.take().expect("it is piped")).lines();
    let address = loop {
        let line = lines.next_line().await.expect("text").expect("it prints where to go");
        if line.contains("/oauth/authorize?") {
            break line.trim().to_owned();
        }
    };
    let page = browser.get(address.strip_prefix(&installation.origin).expect("our address")).await;
    assert_eq!(page.status, StatusCode::OK, "{}", page.text);
    let answer = browser.send(&page.form("/oauth/authorize"), &[("decision", "approve")]).await;
    // It leaves as soon as it has the code: on a slow machine, before its answer is out.
    if let Ok(back) = reqwest::get(answer.location()).await {
        assert_eq!(back.status(), StatusCode::OK);
    }
    // It would block if its output were not read.
    while lines.next_line().await.expect("text").is_some() {}
    assert!(login.wait().await.expect("it ends").success());

    let credentials = fs::read_to_string(user.credentials()).expect("it was written");
    let token = credentials.split('"').find(|text| text.starts_with("taco_u_")).expect("a token");
    assert_eq!(browser.api_status("/api/v2/account/details", token).await, 200);
    here.runs("init").await;

    here.runs(&format!("logout {host}")).await;
    assert!(!fs::read_to_string(user.credentials()).expect("it stays").contains("taco_u_"));
    says(&here.fails("init").await, "login");
    // It only forgets; the token is revoked on the page.
    assert_eq!(browser.api_status("/api/v2/account/details", token).await, 200);
}

/// By the laptop's own address, and then through two servers, each of which sees half of it.
async fn logs_in(engine: Engine, transport: Transport) {
    logs_in_works_and_logs_out(engine, Installation::on_a_laptop(transport)).await;
    logs_in_works_and_logs_out(engine, Installation::of_two_servers(transport)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn terraform_logs_in_over_http() {
    logs_in(Engine::Terraform, Transport::Http).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn terraform_logs_in_over_https() {
    logs_in(Engine::Terraform, Transport::Https).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tofu_logs_in_over_http() {
    logs_in(Engine::Tofu, Transport::Http).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tofu_logs_in_over_https() {
    logs_in(Engine::Tofu, Transport::Https).await;
}
