//! Cost of passwords for a server: argon2 takes 19 MiB for each, and there may be many at once.

use std::net::IpAddr;
use std::time::Duration;

use futures::future::join_all;
use harness::home::{Home, ServerProcess};
use reqwest::{Client, StatusCode};
use tokio::time::sleep;

const SITE_TOKEN: &str = "a-token-for-automation-of-more-than-32-letters";

/// Long enough for a machine that is busy with other tests.
const CLIENT_TIMEOUT: Duration = Duration::from_secs(300);

fn client_from(address: [u8; 4]) -> Client {
    Client::builder().local_address(IpAddr::from(address)).timeout(CLIENT_TIMEOUT).build().expect("a client")
}

fn start(home: &Home, variables: &[(&str, &str)]) -> ServerProcess {
    let mut command = home.taco(&["server"]);
    command.env("TACO_LISTEN", "127.0.0.1:0").env("TACO_SITE_TOKEN", SITE_TOKEN);
    ServerProcess::start(command.envs(variables.iter().copied()))
}

async fn log_in(client: &Client, server: &ServerProcess, name: &str, forwarded_for: Option<&str>) -> StatusCode {
    let origin = format!("http://{}", server.address);
    let mut request = client
        .post(format!("{origin}/login"))
        .header("origin", origin)
        .header("content-type", "application/x-www-form-urlencoded")
        .body(format!("username={name}&password=not+the+right+one"));
    if let Some(address) = forwarded_for {
        request = request.header("x-forwarded-for", address);
    }
    loop {
        let again = request.try_clone().expect("its body is in memory");
        match again.send().await.expect("an answer").status() {
            // The disk did not answer in time, since others keep it busy: the password was not checked yet.
            StatusCode::SERVICE_UNAVAILABLE => sleep(Duration::from_millis(100)).await,
            status => return status,
        }
    }
}

fn highest_memory(server: &ServerProcess) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", server.process.id())).expect("it runs");
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")?.strip_suffix("kB")).expect("a line");
    line.trim().parse::<u64>().expect("a number") / 1024
}

#[tokio::test(flavor = "multi_thread")]
async fn four_hundred_logins_at_once_take_little_memory_and_keep_nobody_else_waiting() {
    let home = Home::default();
    let server = start(&home, &[]);
    let server = &server;
    let clients: Vec<Client> = (1..=4).map(|number| client_from([127, 0, 0, number])).collect();
    let logins = join_all((0..400).map(|number| {
        let client = &clients[number % clients.len()];
        async move { log_in(client, server, &format!("user-{number}"), None).await }
    }));
    // Someone who comes from elsewhere takes turns with them, and others need no turn.
    let others = async {
        let elsewhere = client_from([127, 0, 0, 9]);
        for _ in 0..3 {
            assert_eq!(log_in(&elsewhere, server, "someone", None).await, StatusCode::UNAUTHORIZED);
            let request = elsewhere.get(format!("http://{}/api/v2/account/details", server.address));
            assert_eq!(request.bearer_auth(SITE_TOKEN).send().await.expect("an answer").status(), StatusCode::OK);
        }
    };
    let (statuses, ()) = tokio::join!(logins, others);
    for status in &statuses {
        assert!(matches!(*status, StatusCode::UNAUTHORIZED | StatusCode::TOO_MANY_REQUESTS), "{status}");
    }
    assert!(statuses.contains(&StatusCode::UNAUTHORIZED), "some are looked at");
    let highest = highest_memory(server);
    println!("{highest} MiB at most");
    assert!(highest < 200, "{highest} MiB");
}

#[tokio::test]
async fn only_a_trusted_proxy_says_who_tries_to_log_in() {
    let home = Home::default();
    let client = client_from([127, 0, 0, 1]);
    let trusting = start(&home, &[("TACO_TRUSTED_PROXIES", "127.0.0.1, 10.0.0.0/8")]);
    for _ in 0..10 {
        let tried = log_in(&client, &trusting, "ada", Some("198.51.100.1, 203.0.113.1")).await;
        assert_eq!(tried, StatusCode::UNAUTHORIZED);
    }
    // The client's own entry comes before the proxy's.
    let again = log_in(&client, &trusting, "ada", Some("198.51.100.2, 203.0.113.1, 10.1.1.1")).await;
    assert_eq!(again, StatusCode::TOO_MANY_REQUESTS);
    let other = log_in(&client, &trusting, "ada", Some("203.0.113.2")).await;
    assert_eq!(other, StatusCode::UNAUTHORIZED, "another client of the same proxy");
    // A client that is no proxy cannot claim to be one.
    let stranger = client_from([127, 0, 0, 2]);
    for number in 0..10 {
        let tried = log_in(&stranger, &trusting, "ada", Some(&format!("203.0.113.{number}"))).await;
        assert_eq!(tried, StatusCode::UNAUTHORIZED);
    }
    assert_eq!(log_in(&stranger, &trusting, "ada", Some("203.0.113.99")).await, StatusCode::TOO_MANY_REQUESTS);
}

#[tokio::test]
async fn wrong_tokens_of_an_address_are_limited_and_right_ones_go_on() {
    let home = Home::default();
    let server = start(&home, &[]);
    let address = format!("http://{}/api/v2/account/details", server.address);
    let ask =
        async |client: &Client, token: &str| client.get(&address).bearer_auth(token).send().await.expect("an answer");
    let client = client_from([127, 0, 0, 1]);
    for number in 0..10 {
        assert_eq!(ask(&client, &format!("guess-{number}")).await.status(), StatusCode::UNAUTHORIZED);
    }
    for wrong in ["guess", "taco_u_a-token-that-is-as-long-as-a-real-one-would-be"] {
        let refused = ask(&client, wrong).await;
        assert_eq!(refused.status(), StatusCode::TOO_MANY_REQUESTS, "{wrong}");
        let wait = refused.headers().get("retry-after").and_then(|value| value.to_str().ok()?.parse::<u64>().ok());
        assert!(wait.is_some_and(|seconds| (1..=60).contains(&seconds)), "{refused:?}");
    }
    assert_eq!(ask(&client, SITE_TOKEN).await.status(), StatusCode::OK, "a colleague's");
    assert_eq!(ask(&client_from([127, 0, 0, 2]), "guess").await.status(), StatusCode::UNAUTHORIZED, "elsewhere");
}
