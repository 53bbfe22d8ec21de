use std::io::{Read, Write};
use std::net::TcpStream;

use axum::Router;
use axum::routing::{get, post};
use harness::home::{Home, ServerProcess};
use reqwest::{Client, Response};
use serde_json::{Value, json};
use taco_server::config::{Configuration, Flags, ProcessEnv};
use taco_server::{Running, Server};

fn header<'a>(response: &'a Response, name: &str) -> &'a str {
    response.headers().get(name).map_or("", |value| value.to_str().expect("it is text"))
}

async fn send_id(server: &ServerProcess, id: &[u8]) -> String {
    let request = Client::new().get(format!("http://{}/healthz", server.address)).header("x-request-id", id);
    header(&request.send().await.expect("it answers"), "x-request-id").to_owned()
}

#[tokio::test]
async fn an_unknown_path_or_method_is_a_json_api_error() {
    let home = Home::default();
    let server = home.server();
    let response = server.get("/api/v2/nothing?token=s3cret").await;
    assert_eq!(response.status(), 404);
    assert_eq!(header(&response, "content-type"), "application/vnd.api+json");
    assert_eq!(header(&response, "x-content-type-options"), "nosniff");
    let document: Value = response.json().await.expect("it is JSON");
    let detail = "There is nothing at \"/api/v2/nothing\".";
    assert_eq!(document, json!({ "errors": [{ "status": "404", "title": "not found", "detail": detail }] }));

    let response = Client::new().delete(format!("http://{}/healthz", server.address)).send().await.expect("it answers");
    assert_eq!(response.status(), 405);
    assert_eq!(header(&response, "allow"), "GET,HEAD");
    let document: Value = response.json().await.expect("it is JSON");
    assert_eq!(document["errors"][0]["title"], "method not allowed");
}

#[tokio::test]
async fn every_request_has_an_id_that_the_log_knows() {
    let home = Home::default();
    let server = home.server();
    assert_eq!(send_id(&server, b"run-42.retry:1").await, "run-42.retry:1");
    let line = server.process.line_of_stderr(|line| line.contains("run-42.retry:1"));
    let line: Value = serde_json::from_str(&line).expect("in a pipe, lines are JSON");
    assert_eq!(line["target"], "taco_server::access");
    assert_eq!(line["span"]["request_id"], "run-42.retry:1");
    assert_eq!((&line["method"], &line["route"], &line["status"]), (&json!("GET"), &json!("/healthz"), &json!("200")));
    assert!(line["ms"].is_f64(), "{line}");

    let made_up = header(&server.get("/healthz").await, "x-request-id").to_owned();
    assert_eq!(made_up.len(), 32);
    for bad in [&b"two words"[..], b"\"quote\"", &[b'x'; 129], "ü".as_bytes()] {
        let id = send_id(&server, bad).await;
        assert!(id.len() == 32 && id != made_up, "{id}");
    }
}

#[tokio::test]
async fn the_log_holds_no_query_and_no_header() {
    let home = Home::default();
    let server = home.server();
    let url = format!("http://{}/healthz?token=s3cret", server.address);
    let request = Client::new().get(url).bearer_auth("s3cret").header("x-request-id", "marked");
    request.send().await.expect("it answers");
    server.process.line_of_stderr(|line| line.contains("marked"));
    assert!(!server.process.stderr().contains("s3cret"), "{}", server.process.stderr());
}

#[tokio::test]
async fn oversized_requests_are_refused() {
    let home = Home::default();
    let server = home.server();
    let refused = server.get(&format!("/{}", "x".repeat(2048))).await;
    assert_eq!((refused.status().as_u16(), header(&refused, "x-content-type-options")), (414, "nosniff"));
    let refused = server.get(&format!("/api/v2/workspaces/ws-{}", "a".repeat(5_000))).await;
    assert_eq!((refused.status().as_u16(), header(&refused, "content-type")), (414, "application/vnd.api+json"));
    assert_eq!(server.get(&format!("/healthz?{}", "a=b&".repeat(100))).await.status(), 400);
    let mut stream = TcpStream::connect(&server.address).expect("it listens");
    write!(stream, "GET /healthz HTTP/1.1\r\nhost: taco\r\n").expect("it takes the first lines");
    for number in 0..90 {
        // It may hang up before we are done.
        _ = write!(stream, "header-{number}: {}\r\n", "x".repeat(1000));
    }
    _ = write!(stream, "\r\n");
    let mut answer = Vec::new();
    _ = stream.read_to_end(&mut answer);
    assert!(answer.starts_with(b"HTTP/1.1 431 "), "{}", String::from_utf8_lossy(&answer));
}

/// A server in this process that has routes of ours.
async fn server_with(home: &Home, routes: Router) -> Running {
    let variables = [("HOME", home.path().to_str().expect("it is text")), ("TACO_LISTEN", "127.0.0.1:0")];
    let surroundings = ProcessEnv {
        variables: variables.map(|(name, value)| (name.to_owned(), value.to_owned())).into(),
        working_directory: home.path().to_owned(),
        log_on_terminal: false,
    };
    let settings = Configuration::load(&Flags::default(), &surroundings).expect("it loads").settings;
    Server::start_with(settings, routes).await.expect("it starts")
}

#[tokio::test]
async fn a_panic_is_an_error_without_detail_and_the_server_goes_on() {
    let home = Home::default();
    let panicking = Router::new().route(
        "/panic",
        get(|| async {
            if true {
                panic!("s3cret")
            }
        }),
    );
    let server = server_with(&home, panicking).await;
    for _ in 0..2 {
        let response = reqwest::get(format!("{}/panic", server.url)).await.expect("it answers");
        assert_eq!(response.status(), 500);
        assert!(!header(&response, "x-request-id").is_empty());
        let text = response.text().await.expect("it is text");
        assert!(text.contains("internal error") && !text.contains("s3cret"), "{text}");
    }
    server.shutdown();
    server.wait().await;
}

#[tokio::test]
async fn a_body_that_is_taken_whole_may_have_a_mebibyte() {
    let home = Home::default();
    let counting = Router::new().route("/count", post(|body: String| async move { body.len().to_string() }));
    let server = server_with(&home, counting).await;
    let send = async |size| {
        let request = Client::new().post(format!("{}/count", server.url)).body("x".repeat(size));
        request.send().await.expect("it answers").status()
    };
    assert_eq!(send(1024 * 1024).await, 200);
    assert_eq!(send(1024 * 1024 + 1).await, 413);
    server.shutdown();
    server.wait().await;
}

/// Agents come with the token of a pool; clients with another get no further.
#[tokio::test]
async fn agents_without_the_token_of_a_pool_are_refused() {
    const SITE_TOKEN: &str = "a token that only this test knows";
    let home = Home::default();
    let mut command = home.taco(&["server"]);
    let server = ServerProcess::start(command.env("TACO_LISTEN", "127.0.0.1:0").env("TACO_SITE_TOKEN", SITE_TOKEN));
    for token in [None, Some("nonsense"), Some(SITE_TOKEN), Some("taco_a_nonsense")] {
        let address = format!("http://{}/api/agent/v1/connect", server.address);
        let mut request = Client::new()
            .get(address)
            .header("connection", "upgrade")
            .header("upgrade", "websocket")
            .header("sec-websocket-version", "13")
            .header("sec-websocket-key", "dGhlIHNhbXBsZSBub25jZQ==");
        if let Some(token) = token {
            request = request.bearer_auth(token);
        }
        let response = request.send().await.expect("the server answers");
        assert_eq!(response.status(), 401, "{token:?}");
        let document: Value = response.json().await.expect("JSON");
        assert_eq!(document["errors"][0]["status"], "401");
        assert!(document["errors"][0]["detail"].as_str().is_some_and(|detail| detail.contains("token")), "{document}");
    }
    let nowhere = format!("http://{}/api/agent/v1/phases/run-1/plan/1/log", server.address);
    let response = Client::new().put(nowhere).bearer_auth("nonsense").send().await.expect("an answer");
    assert_eq!(response.status(), 404, "what is no phase is not found");
}
