use harness::home::Home;
use reqwest::StatusCode;

use crate::site::Site;

#[tokio::test]
async fn without_login_every_page_says_so() {
    let site = Site::start_with(&[("TACO_NO_AUTH", "true")]);
    let browser = site.browser();
    for path in ["/app", "/app/settings/tokens", "/app/nothing-here"] {
        assert!(browser.get(path).await.text.contains("<strong>No login.</strong>"), "{path}");
    }
    assert_eq!(browser.get("/login").await.location(), "/app");
    site.server.process.line_of_stderr(|line| line.contains("runs without login"));

    let form = browser.get("/app/settings/tokens").await.form("/app/settings/tokens");
    let fields = [("description", "laptop"), ("days", "30")];
    assert_eq!(browser.send(&form, &fields).await.status, StatusCode::CREATED);
    for headers in [vec![], vec![("origin", "https://evil.test")], vec![("host", "evil.test")]] {
        let refused = browser.send_from(&form, &fields, &headers).await;
        assert_eq!(refused.status, StatusCode::FORBIDDEN, "{headers:?}");
    }
}

#[test]
fn without_login_a_server_stays_on_its_machine() {
    let home = Home::default();
    let output = home.taco(&["server", "--no-auth", "--listen", "0.0.0.0:0"]).output().expect("it runs");
    let said = String::from_utf8(output.stderr).expect("text");
    assert_eq!(output.status.code(), Some(1));
    assert!(said.contains("no_auth") && said.contains("--listen 127.0.0.1"), "{said}");
}
