use harness::browser::{Browser, PASSWORD, Page, PageForm};
use harness::home::ServerProcess;
use reqwest::StatusCode;
use serde_json::Value;
use taco_domain::grant::challenge_of;
use url::Url;

use crate::site::Site;

const VERIFIER: &str = "0e2ee2c2-43a5-4e6f-9d04-a3eb4c9d1c11.123456789";
const HERE: &str = "http://localhost:10000/login";

/// The address that a CLI opens, with some of its parameters changed or, with an empty text, left out.
fn wish(changes: &[(&str, &str)]) -> String {
    let challenge = challenge_of(VERIFIER);
    let usual = [
        ("client_id", "terraform-cli"),
        ("code_challenge", challenge.as_str()),
        ("code_challenge_method", "S256"),
        ("redirect_uri", HERE),
        ("response_type", "code"),
        ("state", "a state & more"),
    ];
    let mut url = Url::parse("http://taco.test/oauth/authorize").expect("an address");
    for (name, value) in usual {
        let value = changes.iter().find(|(changed, _)| *changed == name).map_or(value, |(_, value)| value);
        if !value.is_empty() {
            url.query_pairs_mut().append_pair(name, value);
        }
    }
    format!("/oauth/authorize?{}", url.query().unwrap_or_default())
}

/// Query parameter that the browser takes back to the CLI.
fn told(page: &Page, name: &str) -> Option<String> {
    let address = Url::parse(page.location()).unwrap_or_else(|_| panic!("no redirect: {page:?}"));
    assert_eq!((address.host_str(), address.port(), address.path()), (Some("localhost"), Some(10000), "/login"));
    address.query_pairs().find(|(key, _)| key == name).map(|(_, value)| value.into_owned())
}

async fn exchange(server: &ServerProcess, code: &str, changes: &[(&str, &str)]) -> (u16, Value) {
    let usual = [
        ("client_id", "terraform-cli"),
        ("code", code),
        ("code_verifier", VERIFIER),
        ("grant_type", "authorization_code"),
        ("redirect_uri", HERE),
    ];
    let fields = usual.map(|(name, value)| {
        (name, changes.iter().find(|(changed, _)| *changed == name).map_or(value, |(_, value)| value))
    });
    let request = reqwest::Client::new().post(format!("http://{}/oauth/token", server.address)).form(&fields);
    let response = request.send().await.expect("an answer");
    assert!(response.headers()["content-type"].to_str().expect("text").starts_with("application/json"));
    (response.status().as_u16(), response.json().await.expect("JSON"))
}

async fn approve(browser: &Browser) -> String {
    let page = browser.get(&wish(&[])).await;
    assert_eq!(page.status, StatusCode::OK, "{}", page.text);
    let answer = browser.send(&page.form("/oauth/authorize"), &[("decision", "approve")]).await;
    assert_eq!(answer.status, StatusCode::SEE_OTHER, "{}", answer.text);
    assert_eq!(told(&answer, "state").as_deref(), Some("a state & more"));
    told(&answer, "code").expect("a code")
}

#[tokio::test]
async fn consent_names_everything_and_gives_a_code_that_becomes_a_token_once() {
    let site = Site::start();
    let browser = site.admin().await;
    let page = browser.get(&wish(&[])).await;
    for part in ["terraform-cli", "<dd>admin</dd>", site.server.address.as_str(), "Token expires", HERE] {
        assert!(page.text.contains(part), "{part} is missing:\n{}", page.text);
    }
    // Chromium would otherwise not follow the answer to the CLI.
    assert!(page.header("content-security-policy").contains("form-action 'self' http://localhost:*"));

    let code = approve(&browser).await;
    let (status, answer) = exchange(&site.server, &code, &[]).await;
    assert_eq!((status, &answer["token_type"]), (200, &Value::from("bearer")));
    let token = answer["access_token"].as_str().expect("a token").to_owned();
    assert!(token.starts_with("taco_u_"));
    assert!(browser.get("/app/settings/tokens").await.text.contains("terraform-cli login"));

    // Whoever comes second may be a thief, or the first was.
    let (status, answer) = exchange(&site.server, &code, &[]).await;
    assert_eq!((status, &answer["error"]), (400, &Value::from("invalid_grant")));
    assert!(!browser.get("/app/settings/tokens").await.text.contains("terraform-cli login"), "it is revoked");
}

#[tokio::test]
async fn one_can_deny() {
    let site = Site::start();
    let browser = site.admin().await;
    let page = browser.get(&wish(&[])).await;
    let answer = browser.send(&page.form("/oauth/authorize"), &[("decision", "deny")]).await;
    assert_eq!(told(&answer, "error").as_deref(), Some("access_denied"));
    assert_eq!(told(&answer, "code"), None);
}

#[tokio::test]
async fn who_is_not_logged_in_comes_back_to_the_consent() {
    let site = Site::start();
    site.admin().await;
    let browser = site.browser();
    let wish = wish(&[]);
    let page = browser.get(browser.get(&wish).await.location()).await;
    let done = browser.send(&page.form("/login"), &[("username", "admin"), ("password", PASSWORD)]).await;
    assert_eq!(done.location(), wish);
    assert_eq!(browser.get(done.location()).await.status, StatusCode::OK);
}

#[tokio::test]
async fn nobody_is_sent_to_an_address_that_was_not_agreed() {
    let site = Site::start();
    let browser = site.admin().await;
    for change in [
        ("client_id", ""),
        ("client_id", "another"),
        ("redirect_uri", ""),
        ("redirect_uri", "https://evil.test/login"),
        ("redirect_uri", "http://localhost:9999/login"),
        ("redirect_uri", "http://localhost:10000/other"),
        ("redirect_uri", "http://localhost:10000@evil.test/login"),
    ] {
        for browser in [&browser, &site.browser()] {
            let page = browser.get(&wish(&[change])).await;
            assert_eq!((page.status, page.location()), (StatusCode::BAD_REQUEST, ""), "{change:?}");
        }
    }
}

#[tokio::test]
async fn a_client_is_told_what_its_wish_lacks() {
    let site = Site::start();
    let browser = site.admin().await;
    for (change, error) in [
        (("state", ""), "invalid_request"),
        (("code_challenge", ""), "invalid_request"),
        (("code_challenge", "short"), "invalid_request"),
        (("code_challenge_method", ""), "invalid_request"),
        (("code_challenge_method", "plain"), "invalid_request"),
        (("response_type", "token"), "unsupported_response_type"),
    ] {
        let page = browser.get(&wish(&[change])).await;
        assert_eq!(told(&page, "error").as_deref(), Some(error), "{change:?}");
        assert_eq!(told(&page, "code"), None);
    }
}

#[tokio::test]
async fn consent_takes_a_click_on_our_own_page() {
    let site = Site::start();
    let browser = site.admin().await;
    let form = browser.get(&wish(&[])).await.form("/oauth/authorize");
    let approve = [("decision", "approve")];
    let foreign = browser.send_from(&form, &approve, &[("origin", "https://evil.test")]).await;
    assert_eq!((foreign.status, foreign.location()), (StatusCode::FORBIDDEN, ""));
    let hidden: Vec<_> = form.hidden.iter().filter(|(name, _)| name != "proof").cloned().collect();
    let without = browser.send(&PageForm { hidden, ..form }, &approve).await;
    assert_eq!((without.status, without.location()), (StatusCode::FORBIDDEN, ""));
}

#[tokio::test]
async fn a_code_is_for_the_one_who_asked_for_it() {
    let site = Site::start();
    let browser = site.admin().await;
    let code = approve(&browser).await;
    for (change, error) in [
        (("code", "nonsense"), "invalid_grant"),
        (("code_verifier", "a guess"), "invalid_grant"),
        (("redirect_uri", "http://localhost:10001/login"), "invalid_grant"),
        (("client_id", "another"), "invalid_client"),
        (("grant_type", "password"), "unsupported_grant_type"),
    ] {
        let (status, answer) = exchange(&site.server, &code, &[change]).await;
        assert_eq!((status, &answer["error"]), (400, &Value::from(error)), "{change:?}");
    }
    assert_eq!(exchange(&site.server, &code, &[]).await.0, 200, "its owner still can");
}

#[tokio::test]
async fn discovery_names_the_ports_that_consent_allows() {
    let site = Site::start();
    let browser = site.admin().await;
    let discovery: Value = serde_json::from_str(&browser.get("/.well-known/terraform.json").await.text).expect("JSON");
    let login = &discovery["login.v1"];
    assert_eq!(login["client"], "terraform-cli");
    let ports = [login["ports"][0].as_u64(), login["ports"][1].as_u64()].map(|port| port.expect("a port"));
    for (port, expected) in [(ports[0] - 1, 400), (ports[0], 200), (ports[1] - 1, 200), (ports[1], 400)] {
        let page = browser.get(&wish(&[("redirect_uri", &format!("http://localhost:{port}/login"))])).await;
        assert_eq!(page.status.as_u16(), expected, "{port}");
    }
}
