//! A bucket that dies or freezes under a server. How soon that is told, is a matter of the ledger's tests, where time is
//! made to pass; here it is what is told, by every door, and that it is over when the bucket is back.

use harness::api_client::ApiClient;
use harness::bucket_servers::{BucketServer, variables_of};
use harness::home::{Home, ServerProcess};
use harness::run_site::{SITE_TOKEN, admin_of, until};
use nix::sys::signal::Signal;
use reqwest::StatusCode;
use serde_json::{Value, json};

fn start(home: &Home, bucket: &BucketServer) -> ServerProcess {
    let mut command = home.taco(&["server"]);
    command.envs(variables_of(&bucket.location())).env("TACO_LISTEN", "127.0.0.1:0").env("TACO_SITE_TOKEN", SITE_TOKEN);
    command.env("TACO_SECRET_KEY", "a key that only these tests know").env("TACO_AGENT_CONCURRENCY", "0");
    // Pages need no login then.
    command.env("TACO_NO_AUTH", "true");
    ServerProcess::start(&mut command)
}

fn new_workspace(name: &str) -> Value {
    json!({ "data": { "type": "workspaces", "attributes": { "name": name } } })
}

async fn is_unavailable(request: reqwest::RequestBuilder) {
    let answer = request.send().await.expect("an answer");
    assert_eq!(answer.status(), StatusCode::SERVICE_UNAVAILABLE, "{answer:?}");
    assert!(answer.headers().contains_key("retry-after"), "{answer:?}");
}

/// Reads, writes and pages are refused for now, several of them at once, and readiness is taken back.
async fn is_told_everywhere(server: &ServerProcess, admin: &ApiClient) {
    let at = |path: &str| format!("http://{}{path}", server.address);
    let read = || is_unavailable(admin.client.get(at("/api/v2/organizations/acme")).bearer_auth(&admin.token));
    let workspaces = at("/api/v2/organizations/acme/workspaces");
    let write = || {
        let request = admin.client.post(&workspaces).bearer_auth(&admin.token);
        let request = request.header("content-type", "application/vnd.api+json");
        is_unavailable(request.body(new_workspace("during").to_string()))
    };
    let page = || is_unavailable(admin.client.get(at("/app/acme")));
    tokio::join!(read(), write(), page(), read(), write());
    until("it is not ready", async || server.read("/readyz").await == not_ready()).await;
    tokio::join!(read(), write());
}

fn not_ready() -> (u16, String) {
    (503, "not ready: the bucket does not answer\n".to_owned())
}

async fn is_well_again(server: &ServerProcess, admin: &ApiClient, workspace: &str) {
    until("it is ready", async || server.read("/readyz").await.0 == 200).await;
    let made = async || {
        let workspaces = "/api/v2/organizations/acme/workspaces";
        admin.send("POST", workspaces, Some(&new_workspace(workspace))).await.0 == StatusCode::CREATED
    };
    until("it takes writes", made).await;
    admin.get(&format!("/api/v2/organizations/acme/workspaces/{workspace}")).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bucket_that_dies_or_freezes_is_told_and_comes_back() {
    let mut bucket = BucketServer::versitygw().await.unwrap_or_else(|error| panic!("{error:#}"));
    let home = Home::default();
    let server = start(&home, &bucket);
    let admin = ApiClient { client: reqwest::Client::new(), ..admin_of(&server.address) };
    admin.given_organization("acme").await;

    bucket.kill().expect("it is a process");
    is_told_everywhere(&server, &admin).await;
    bucket.restart().await.expect("it comes back");
    is_well_again(&server, &admin, "after-death").await;

    bucket.signal(Signal::SIGSTOP).expect("it is a process");
    is_told_everywhere(&server, &admin).await;
    bucket.signal(Signal::SIGCONT).expect("it is a process");
    is_well_again(&server, &admin, "after-frost").await;
}
