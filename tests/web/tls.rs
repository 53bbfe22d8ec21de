use std::fs;

use harness::browser::{Browser, PASSWORD};
use harness::home::{Home, ServerProcess};
use reqwest::{Certificate, Client, StatusCode};

fn trusting(home: &Home) -> reqwest::ClientBuilder {
    let authority = fs::read(home.path().join(".local/share/taco/bucket.tls/ca.pem")).expect("it was made");
    Client::builder().tls_certs_only([Certificate::from_pem(&authority).expect("a certificate")])
}

#[tokio::test]
async fn a_laptop_speaks_https_with_an_authority_of_its_own() {
    let home = Home::default();
    let start = || ServerProcess::start(home.taco(&["server", "--tls-dev"]).env("TACO_LISTEN", "127.0.0.1:0"));
    let server = start();
    let line = home.setup_link_to(&[("TACO_TLS_DEV", "true"), ("TACO_LISTEN", &server.address)]);
    assert!(line.starts_with(&format!("https://{}/setup/", server.address)), "{line}");
    let trust = server.process.line_of_stdout(|line| line.contains("SSL_CERT_FILE="));
    assert!(trust.ends_with("/bucket.tls/ca.pem"), "{trust}");
    let link = &line[line.find("/setup/").expect("it was found")..];
    let port = server.address.rsplit(':').next().expect("a port").to_owned();

    let browser = Browser::at(format!("https://localhost:{port}"), trusting(&home));
    let form = browser.get(link).await.form("");
    let done = browser.send(&form, &[("password", PASSWORD), ("repeated", PASSWORD)]).await;
    assert_eq!(done.status, StatusCode::SEE_OTHER);
    let cookie = done.header("set-cookie");
    assert!(cookie.starts_with("__Host-taco=") && cookie.contains("; Secure"), "{cookie}");
    assert_eq!(browser.get("/app").await.status, StatusCode::OK);
    drop(server);

    // What was trusted once is trusted after the next start.
    let client = trusting(&home);
    let server = start();
    let browser = Browser::at(format!("https://{}", server.address), client);
    assert_eq!(browser.get("/healthz").await.status, StatusCode::OK);
    assert!(!server.process.stdout().contains("host \""), "nobody needs that block over https");
}

#[test]
fn half_a_certificate_is_one_clear_line() {
    let home = Home::default();
    for (words, expected) in [
        (&["--tls-cert", "/none.pem"][..], "tls_key is missing"),
        (&["--tls-key", "/none.pem"], "tls_cert is missing"),
        (&["--tls-dev", "--tls-cert", "/none.pem"], "no place beside it"),
        (&["--tls-cert", "/none.pem", "--tls-key", "/none.key"], "tls_cert /none.pem cannot be read"),
    ] {
        let words = [&["server", "--listen", "127.0.0.1:0"], words].concat();
        let output = home.taco(&words).output().expect("it runs");
        let said = String::from_utf8(output.stderr).expect("text");
        assert_eq!(output.status.code(), Some(1), "{words:?}");
        assert!(said.contains(expected), "{said}");
    }
}
