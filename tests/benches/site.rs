//! Servers whose runs are measured, and what is asked of them.

use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use flate2::Compression;
use flate2::write::GzEncoder;
use harness::api_client::ApiClient;
use harness::home::{Home, ServerProcess};
use reqwest::Client;
use serde_json::{Value, json};

/// The token of the site's admin.
const SITE_TOKEN: &str = "a-token-for-automation-of-more-than-32-letters";
const SECRET_KEY: &str = "a key that only benchmarks of taco know";

/// The organization that everything is in.
pub(crate) const ORGANIZATION: &str = "acme";

/// A run in one of these does nothing more by itself.
const AT_REST: [&str; 6] = ["planned", "planned_and_finished", "applied", "errored", "canceled", "discarded"];

/// Starts a server that prepares itself as `prepare` says.
pub(crate) fn server(home: &Home, prepare: impl FnOnce(&mut Command)) -> (ServerProcess, ApiClient) {
    let mut command = home.taco(&["server"]);
    command.env("TACO_LISTEN", "127.0.0.1:0").env("TACO_SITE_TOKEN", SITE_TOKEN).env("TACO_SECRET_KEY", SECRET_KEY);
    command.env("PATH", search_path()).env("TACO_ENGINE_MIRROR", "http://127.0.0.1:9");
    prepare(&mut command);
    let server = ServerProcess::start(&mut command);
    let origin = format!("http://{}", server.address);
    (server, ApiClient { origin, client: Client::new(), token: SITE_TOKEN.to_owned() })
}

/// The engine that everything is measured with.
pub(crate) fn terraform() -> PathBuf {
    let program = std::env::var_os("TACO_TEST_TERRAFORM");
    program
        .expect(r#"TACO_TEST_TERRAFORM is not set: run `cargo xtask bench`, or eval "$(cargo xtask tools)" first"#)
        .into()
}

fn search_path() -> String {
    let directory = terraform().parent().expect("it is in a directory").display().to_string();
    format!("{directory}:/usr/bin:/bin")
}

/// Archive as a client packs it.
pub(crate) fn archive(configuration: &str) -> Vec<u8> {
    let mut builder = tar::Builder::new(GzEncoder::new(Vec::new(), Compression::fast()));
    let mut header = tar::Header::new_gnu();
    header.set_size(configuration.len() as u64);
    header.set_mode(0o644);
    builder.append_data(&mut header, "main.tf", configuration.as_bytes()).expect("it fits");
    builder.into_inner().and_then(GzEncoder::finish).expect("it fits")
}

pub(crate) async fn given_organization(client: &ApiClient) {
    let attributes = json!({ "name": ORGANIZATION, "email": "ops@acme.test" });
    let body = json!({ "data": { "type": "organizations", "attributes": attributes } });
    client.post("/api/v2/organizations", body).await;
}

/// The id of a workspace whose runs an agent executes.
pub(crate) async fn given_workspace(client: &ApiClient, name: &str, more: Value) -> String {
    let mut attributes = json!({ "name": name, "execution-mode": "remote" });
    for (key, value) in more.as_object().expect("an object") {
        attributes[key] = value.clone();
    }
    let body = json!({ "data": { "type": "workspaces", "attributes": attributes } });
    id_of(&client.post(&format!("/api/v2/organizations/{ORGANIZATION}/workspaces"), body).await)
}

/// The id of a configuration that runs can use.
pub(crate) async fn given_configuration(client: &ApiClient, workspace: &str, archive: Vec<u8>) -> String {
    let attributes = json!({ "auto-queue-runs": false });
    let body = json!({ "data": { "type": "configuration-versions", "attributes": attributes } });
    let announced = client.post(&format!("/api/v2/workspaces/{workspace}/configuration-versions"), body).await;
    let address = announced["data"]["attributes"]["upload-url"].as_str().expect("an address");
    let uploaded = client.client.put(address).body(archive).send().await.expect("the server answers");
    assert!(uploaded.status().is_success(), "the configuration is refused: {}", uploaded.status());
    id_of(&announced)
}

/// The id of a new run.
pub(crate) async fn start_run(client: &ApiClient, workspace: &str, configuration: &str, attributes: Value) -> String {
    let related = |kind: &str, id: &str| json!({ "data": { "type": kind, "id": id } });
    let body = json!({ "data": {
        "type": "runs",
        "attributes": attributes,
        "relationships": {
            "workspace": related("workspaces", workspace),
            "configuration-version": related("configuration-versions", configuration),
        },
    } });
    id_of(&client.post("/api/v2/runs", body).await)
}

/// Waits until a run is at rest, and returns its status.
pub(crate) async fn rest(client: &ApiClient, run: &str, look_every: Duration) -> String {
    loop {
        let shown = client.get(&format!("/api/v2/runs/{run}")).await;
        let status = shown["data"]["attributes"]["status"].as_str().expect("a status").to_owned();
        if AT_REST.contains(&status.as_str()) {
            return status;
        }
        tokio::time::sleep(look_every).await;
    }
}

/// A new agent pool's id, and a token for its agents.
pub(crate) async fn given_pool(client: &ApiClient) -> (String, String) {
    let body = json!({ "data": { "type": "agent-pools", "attributes": { "name": "runners" } } });
    let pool = id_of(&client.post(&format!("/api/v2/organizations/{ORGANIZATION}/agent-pools"), body).await);
    let body = json!({ "data": { "type": "authentication-tokens", "attributes": { "description": "bench" } } });
    let token = client.post(&format!("/api/v2/agent-pools/{pool}/authentication-tokens"), body).await;
    (pool, token["data"]["attributes"]["token"].as_str().expect("a token").to_owned())
}

fn id_of(answer: &Value) -> String {
    answer["data"]["id"].as_str().expect("an id").to_owned()
}
