use std::fs;
use std::time::{Duration, Instant};

use futures::future::join_all;
use harness::home::{Home, ServerProcess};

/// Asks `/readyz` until it answers with this status; the server may remember its last answer for a second.
async fn readiness_becomes(server: &ServerProcess, status: u16) -> String {
    let begun = Instant::now();
    loop {
        let (now, reason) = server.read("/readyz").await;
        if now == status {
            return reason;
        }
        assert!(begun.elapsed() < Duration::from_secs(20), "still {now}: {reason}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// The value of a series in `/metrics`.
async fn series(server: &ServerProcess, name: &str) -> Option<f64> {
    let (_, text) = server.read("/metrics").await;
    text.lines().find_map(|line| line.strip_prefix(name)?.trim().parse().ok())
}

#[tokio::test]
async fn it_is_ready_while_the_bucket_is_there() {
    let home = Home::default();
    let server = home.server();
    assert_eq!(readiness_becomes(&server, 200).await, "ready\n");

    let hidden = home.path().join("hidden");
    fs::rename(home.bucket(), &hidden).expect("it is moved");
    assert_eq!(readiness_becomes(&server, 503).await, "not ready: the bucket is empty or gone\n");
    server.process.line_of_stderr(|line| line.contains("not ready") && line.contains("taco.json is missing"));
    assert_eq!(server.read("/healthz").await.0, 200, "the process itself is well");

    // The server's beacon may have made a directory of that name meanwhile, and may do so again at any moment.
    let moved_back = (0..100).any(|_| {
        fs::remove_dir_all(home.bucket()).ok();
        fs::rename(&hidden, home.bucket()).is_ok()
    });
    assert!(moved_back, "it is moved back");
    readiness_becomes(&server, 200).await;
    server.process.line_of_stderr(|line| line.contains("ready again"));
}

#[tokio::test]
async fn many_probes_cost_the_bucket_one_look() {
    let home = Home::default();
    let server = home.server();
    readiness_becomes(&server, 200).await;
    let looks = r#"taco_bucket_operations_total{operation="get",result="ok"}"#;
    let before = series(&server, looks).await.expect("there was a look");
    let begun = Instant::now();
    let answers = join_all((0..100).map(|_| server.read("/readyz"))).await;
    assert!(answers.iter().all(|(status, _)| *status == 200), "{answers:?}");
    let most = 1.0 + begun.elapsed().as_secs_f64().ceil();
    let after = series(&server, looks).await.expect("it is still there");
    assert!(after - before <= most, "{} looks, expected at most {most}", after - before);
}

#[tokio::test]
async fn metrics_tell_requests_and_bucket_operations() {
    let home = Home::default();
    let server = home.server();
    server.read("/healthz").await;
    server.read("/a/path/with/a/name").await;
    let (status, text) = server.read("/metrics").await;
    assert_eq!(status, 200);
    for expected in [
        &format!(r#"taco_build_info{{version="{}"}} 1"#, env!("CARGO_PKG_VERSION")),
        r#"taco_http_requests_total{route="/healthz",method="GET",status="200"} 1"#,
        r#"taco_http_requests_total{route="unmatched",method="GET",status="404"} 1"#,
        r#"taco_http_request_seconds_bucket{route="/healthz",method="GET",status="200",le="+Inf"} 1"#,
        r#"taco_bucket_operations_total{operation="create",result="ok"}"#,
        r#"taco_bucket_operation_seconds_count{operation="create"}"#,
        "# TYPE taco_http_request_seconds histogram",
        "# HELP taco_http_requests_total ",
    ] {
        assert!(text.contains(expected), "{expected} is missing in:\n{text}");
    }
    assert!(!text.contains("with"), "paths would make a series each");
}

#[tokio::test]
async fn metrics_can_move_to_an_address_of_their_own() {
    let home = Home::default();
    let mut command = home.taco(&["server", "--metrics-listen", "127.0.0.1:0"]);
    let server = ServerProcess::start(command.env("TACO_LISTEN", "127.0.0.1:0"));
    let line = server.process.line_of_stdout(|line| line.contains("/metrics"));
    let url = line.rsplit(' ').next().expect("a line has a last word");
    let text = reqwest::get(url).await.expect("it answers").text().await.expect("it is text");
    assert!(text.contains("taco_build_info"), "{text}");
    assert_eq!(server.read("/metrics").await.0, 404);
}
