//! Two servers on one bucket, and an agent on another machine.

use harness::engine::Engine;
use harness::installation::{Installation, Transport};
use harness::process::Process;
use serde_json::json;

use crate::remote_scene::ended;
use crate::scene::{Backend, Scene, says};

/// An agent with a token of a pool, to which the workspace `acme/web` belongs.
async fn given_agent(scene: &Scene) -> Process {
    let pool = json!({ "data": { "type": "agent-pools", "attributes": { "name": "rack" } } });
    let pool = scene.admin.post("/api/v2/organizations/acme/agent-pools", pool).await["data"]["id"].clone();
    let pool = pool.as_str().expect("an id");
    let token = json!({ "data": { "type": "authentication-tokens", "attributes": { "description": "one" } } });
    let tokens = format!("/api/v2/agent-pools/{pool}/authentication-tokens");
    let token = scene.admin.post(&tokens, token).await["data"]["attributes"]["token"].clone();
    let more = json!({ "execution-mode": "agent", "agent-pool-id": pool });
    scene.given_remote_workspace("web", more).await;
    scene.installation.agent("one", token.as_str().expect("a token"))
}

async fn an_agent_serves_two_servers(engine: Engine, transport: Transport, backend: Backend) {
    let scene = Scene::at(Installation::of_two_servers_without_agents(transport), engine, backend).await;
    let _agent = given_agent(&scene).await;
    let resources = r#"
        resource "terraform_data" "web" { input = "hello" }
        output "greeting" { value = terraform_data.web.output }
    "#;
    let here = scene.initialized(resources).await;
    says(&here.runs("plan").await, "Plan: 1 to add, 0 to change, 0 to destroy.");
    ended(&here.does_answered("apply", &["no"]).await, 1);
    says(&here.runs_answered("apply", &["yes"]).await, "1 added, 0 changed, 0 destroyed.");
    assert_eq!(here.runs("output -raw greeting").await, "hello");
    says(&here.runs("destroy -auto-approve").await, "1 destroyed.");
    assert_eq!(scene.newest("status").await, "applied");
    assert!(!scene.is_locked().await);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn terraform_over_https_with_a_cloud_block() {
    an_agent_serves_two_servers(Engine::Terraform, Transport::Https, Backend::Cloud).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tofu_over_https_with_a_cloud_block() {
    an_agent_serves_two_servers(Engine::Tofu, Transport::Https, Backend::Cloud).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn terraform_over_http_with_a_remote_backend() {
    an_agent_serves_two_servers(Engine::Terraform, Transport::Http, Backend::Remote).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tofu_over_https_with_a_remote_backend() {
    an_agent_serves_two_servers(Engine::Tofu, Transport::Https, Backend::Remote).await;
}
