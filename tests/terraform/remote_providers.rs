//! Runs that need a provider, which their agent takes from a directory.

use harness::engine::Engine;
use harness::installation::{Installation, Transport};
use harness::provider_mirror;
use harness::run_site::text;
use serde_json::{Value, json};

use crate::scene::{Backend, Scene, says};

const RESOURCES: &str = r#"
    terraform {
      required_providers {
        null = { source = "hashicorp/null" }
      }
    }
    variable "password" {
      default   = "open-sesame"
      sensitive = true
    }
    resource "null_resource" "web" {
      triggers = {
        greeting = "hello"
        password = var.password
      }
    }
    output "greeting" { value = null_resource.web.triggers.greeting }
"#;

/// Life of a provider's resource from its plan to its destruction. Agents know the provider already.
async fn is_planned_shown_and_applied(scene: &Scene) {
    let here = scene.initialized_in("null", RESOURCES).await;
    let planned = here.runs("plan").await;
    says(&planned, "null_resource.web will be created");
    says(&planned, "Plan: 1 to add, 0 to change, 0 to destroy.");

    let run = text(&scene.runs_of("null").await[0]["id"]);
    let plan = text(&scene.admin.get(&format!("/api/v2/runs/{run}/plan")).await["data"]["id"]);
    let shown = scene.admin.get(&format!("/api/v2/plans/{plan}/json-output")).await;
    assert_eq!(shown["planned_values"]["root_module"]["resources"][0]["type"], "null_resource");
    assert!(shown.to_string().contains("open-sesame"), "this one is for those who may read states");
    let redacted = scene.admin.get(&format!("/api/v2/plans/{plan}/json-output-redacted")).await;
    let change = &redacted["resource_changes"][0];
    assert_eq!((&change["address"], &change["change"]["actions"]), (&json!("null_resource.web"), &json!(["create"])));
    assert_eq!(change["change"]["after"]["triggers"]["greeting"], "hello");
    let provider = text(&change["provider_name"]);
    let schema: &Value = &redacted["provider_schemas"][&provider]["resource_schemas"]["null_resource"];
    assert_eq!(schema["block"]["attributes"]["triggers"]["type"], json!(["map", "string"]), "{redacted}");
    assert!(!redacted.to_string().contains("open-sesame"), "{redacted}");

    let applied = here.runs("apply -auto-approve").await;
    says(&applied, "1 added, 0 changed, 0 destroyed.");
    assert_eq!(here.runs("output -raw greeting").await, "hello");
    says(&here.runs("plan").await, "No changes.");
    let replaced = here.runs("plan -replace=null_resource.web").await;
    says(&replaced, "null_resource.web will be replaced");
    says(&here.runs("destroy -auto-approve").await, "1 destroyed.");
    for said in [planned, applied, replaced] {
        assert!(!said.contains("open-sesame"), "{said}");
    }
}

async fn within_a_server(engine: Engine) {
    let mirror = provider_mirror::with_null_provider();
    let scene = Scene::at(Installation::with_providers(Transport::Http, mirror.path()), engine, Backend::Cloud).await;
    scene.user.takes_providers_from(mirror.path());
    scene.given_remote_workspace("null", json!({})).await;
    is_planned_shown_and_applied(&scene).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn terraform_within_a_server_finds_providers_in_a_mirror() {
    within_a_server(Engine::Terraform).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tofu_within_a_server_finds_providers_in_a_mirror() {
    within_a_server(Engine::Tofu).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_agent_elsewhere_finds_providers_in_a_mirror() {
    let mirror = provider_mirror::with_null_provider();
    let installation = Installation::on_a_laptop(Transport::Https);
    let scene = Scene::at(installation, Engine::Tofu, Backend::Cloud).await;
    scene.user.takes_providers_from(mirror.path());
    let (pool, token) = scene.given_pool("rack").await;
    let mut command = scene.installation.agent_command("one", &token);
    let _agent = harness::process::Process::start(command.arg("--provider-mirror").arg(mirror.path()));
    scene.given_remote_workspace("null", json!({ "execution-mode": "agent", "agent-pool-id": pool })).await;
    is_planned_shown_and_applied(&scene).await;
}
