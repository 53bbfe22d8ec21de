use std::fs;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

use harness::home::Home;
use reqwest::StatusCode;
use serde_json::Value;

use crate::site::Site;

/// `taco login --web` that waits, and where its user has to go.
fn begin(home: &Home, address: &str) -> (Child, String) {
    let mut command: Command = home.taco(&["login", address, "--web"]);
    let command = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut taco = command.spawn().expect("taco runs");
    let mut lines = BufReader::new(taco.stderr.take().expect("it is piped")).lines().map_while(Result::ok);
    let page = lines.find(|line| line.contains("/oauth/authorize?")).expect("it prints where to go");
    std::thread::spawn(move || lines.for_each(drop));
    (taco, page.trim().to_owned())
}

#[tokio::test]
async fn taco_logs_in_with_the_browser_for_as_long_as_its_user_chooses() {
    let site = Site::start();
    let browser = site.admin().await;
    let home = Home::default();
    let (taco, address) = begin(&home, &site.server.address);

    let page = browser.get(&address[browser.origin.len()..]).await;
    assert_eq!(page.status, StatusCode::OK, "{}", page.text);
    assert!(page.text.contains(r#"<option value="90" selected>90 days, on "#), "{}", page.text);
    let form = page.form("/oauth/authorize");
    let nonsense = browser.send(&form, &[("decision", "approve"), ("days", "36500")]).await;
    assert_eq!(nonsense.status, StatusCode::BAD_REQUEST);
    let answer = browser.send(&form, &[("decision", "approve"), ("days", "1")]).await;
    let back = reqwest::get(answer.location()).await.expect("taco listens");
    assert!(back.text().await.expect("text").contains("You are logged in"));

    let done = tokio::task::spawn_blocking(move || taco.wait_with_output()).await.expect("no panic").expect("it ends");
    let said = String::from_utf8(done.stdout).expect("text");
    assert!(done.status.success() && said.starts_with("Logged in to ") && said.contains(" as admin."), "{said}");
    let credentials = fs::read(home.path().join(".terraform.d/credentials.tfrc.json")).expect("it was written");
    let credentials: Value = serde_json::from_slice(&credentials).expect("JSON");
    let token = credentials["credentials"][&site.server.address]["token"].as_str().expect("a token");
    assert_eq!(browser.api_status("/api/v2/account/details", token).await, 200);
    let tomorrow = page.text.split("one day, on ").nth(1).and_then(|rest| rest.split(',').next()).expect("a date");
    let tokens = browser.get("/app/settings/tokens").await.text;
    assert!(tokens.contains(&format!(">{tomorrow},")), "{tokens}");
}

#[tokio::test]
async fn whoever_denies_is_not_logged_in() {
    let site = Site::start();
    let browser = site.admin().await;
    let home = Home::default();
    let (taco, address) = begin(&home, &site.server.address);
    let page = browser.get(&address[browser.origin.len()..]).await;
    let answer = browser.send(&page.form("/oauth/authorize"), &[("decision", "deny")]).await;
    reqwest::get(answer.location()).await.expect("taco listens");
    let done = tokio::task::spawn_blocking(move || taco.wait_with_output()).await.expect("no panic").expect("it ends");
    assert_eq!(done.status.code(), Some(1));
    assert!(!home.path().join(".terraform.d").exists());
}
