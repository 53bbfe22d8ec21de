use harness::home::Home;
use reqwest::{Client, Method, StatusCode};
use taco_tfc_api::routes;

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
    let made = browser.sends_and_follows(&form, &fields).await;
    assert!(made.text.contains("<code id=\"token\">taco_u_"), "{}", made.text);
    for headers in [vec![], vec![("origin", "https://evil.test")], vec![("host", "evil.test")]] {
        let refused = browser.send_from(&form, &fields, &headers).await;
        assert_eq!(refused.status, StatusCode::FORBIDDEN, "{headers:?}");
    }
}

/// A path of the API's table that leads to nothing in particular.
fn some_path(path: &str) -> String {
    let words = path.split('/').map(|word| if word.starts_with('{') { "something" } else { word });
    words.collect::<Vec<_>>().join("/")
}

#[tokio::test]
async fn without_login_no_other_site_changes_anything() {
    let site = Site::start_with(&[("TACO_NO_AUTH", "true")]);
    let (client, origin) = (Client::new(), format!("http://{}", site.server.address));
    let neighbour = "http://127.0.0.1:3000";
    let mut changing = 0;
    for route in routes::all() {
        for method in route.methods {
            let answer = async |header: Option<(&'static str, &str)>| {
                let method = Method::from_bytes(method.as_bytes()).expect("it is a method");
                let mut request = client.request(method, format!("{origin}{}", some_path(route.path)));
                if let Some((name, value)) = header {
                    request = request.header(name, value);
                }
                request.send().await.expect("the server answers").status()
            };
            let reads = *method == "GET";
            changing += usize::from(!reads);
            for (name, value) in [
                ("origin", "https://evil.test"),
                ("origin", neighbour),
                ("origin", "null"),
                ("sec-fetch-site", "cross-site"),
                ("sec-fetch-site", "same-site"),
            ] {
                let status = answer(Some((name, value))).await;
                assert_eq!(status == StatusCode::FORBIDDEN, !reads, "{method} {} with {name}: {value}", route.path);
            }
            for header in [None, Some(("origin", origin.as_str())), Some(("sec-fetch-site", "same-origin"))] {
                let status = answer(header).await;
                assert_ne!(status, StatusCode::FORBIDDEN, "{method} {} with {header:?}", route.path);
            }
        }
    }
    assert!(changing > 50, "the table has much that changes something: {changing}");
}

#[test]
fn without_login_a_server_stays_on_its_machine() {
    let home = Home::default();
    let output = home.taco(&["server", "--no-auth", "--listen", "0.0.0.0:0"]).output().expect("it runs");
    let said = String::from_utf8(output.stderr).expect("text");
    assert_eq!(output.status.code(), Some(1));
    assert!(said.contains("no_auth") && said.contains("--listen 127.0.0.1"), "{said}");
}
