//! States that tofu encrypts before it sends them.

use harness::engine::Engine;
use harness::installation::Transport;
use serde_json::{Value, json};

use crate::scene::{Backend, Scene, says};

const RESOURCES: &str = r#"
    terraform {
      encryption {
        key_provider "pbkdf2" "key" {
          passphrase = "correct horse battery staple"
          iterations = 200000
        }
        method "aes_gcm" "method" { keys = key_provider.pbkdf2.key }
        state { method = method.aes_gcm.method }
      }
    }
    variable "greeting" { default = "hello" }
    resource "terraform_data" "web" { input = var.greeting }
    output "greeting" { value = terraform_data.web.output }
"#;

/// Only its owner can read the state, and its owner does not notice.
async fn an_encrypted_state_stays_so(backend: Backend, transport: Transport) {
    let scene = Scene::new(Engine::Tofu, transport, backend).await;
    let here = scene.initialized(RESOURCES).await;
    here.runs("apply -auto-approve").await;
    assert_eq!(here.runs("output -raw greeting").await, "hello");
    says(&here.runs("plan").await, "No changes.");
    here.runs("state mv terraform_data.web terraform_data.moved").await;
    here.runs("state mv terraform_data.moved terraform_data.web").await;
    assert_eq!(here.runs("state list").await, "terraform_data.web\n");

    let versions = scene.versions().await;
    assert_eq!(versions.len(), 3);
    for version in &versions {
        let attributes = &version["attributes"];
        assert_eq!(attributes["encrypted"], true);
        assert_eq!(attributes["hosted-json-state-download-url"], Value::Null, "it would tell what is encrypted");
        let url = attributes["hosted-state-download-url"].as_str().expect("an address");
        let state = scene.admin.client.get(url).send().await.expect("an answer").text().await.expect("text");
        assert!(state.contains("encrypted_data") && !state.contains("hello"), "{state}");
    }
    let workspace = scene.workspace().await["id"].as_str().expect("an id").to_owned();
    let outputs = scene.admin.get(&format!("/api/v2/workspaces/{workspace}/current-state-version-outputs")).await;
    let output = &outputs["data"][0];
    assert_eq!((&output["attributes"]["type"], &output["attributes"]["value"]), (&"encrypted".into(), &Value::Null));
    let path = format!("/api/v2/state-version-outputs/{}", output["id"].as_str().expect("an id"));
    assert_eq!(scene.admin.get(&path).await["data"]["attributes"], output["attributes"]);

    scene.admin.act(&scene.workspace().await, "lock").await;
    let first = json!({ "data": { "type": "state-versions", "id": versions[2]["id"] } });
    let wish = json!({ "data": { "type": "state-versions", "relationships": { "rollback-state-version": first } } });
    scene.admin.patch(&format!("/api/v2/workspaces/{workspace}/state-versions"), wish).await;
    scene.admin.act(&scene.workspace().await, "unlock").await;
    assert_eq!(here.runs("output -raw greeting").await, "hello");
    says(&here.runs("apply -auto-approve -var=greeting=goodbye").await, "1 changed");
    assert_eq!(here.runs("output -raw greeting").await, "goodbye");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_encrypted_state_stays_so_in_a_cloud_block() {
    an_encrypted_state_stays_so(Backend::Cloud, Transport::Http).await;
    an_encrypted_state_stays_so(Backend::Cloud, Transport::Https).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_encrypted_state_stays_so_in_a_remote_backend() {
    an_encrypted_state_stays_so(Backend::Remote, Transport::Http).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_encrypted_state_stays_so_in_an_http_backend() {
    an_encrypted_state_stays_so(Backend::Http, Transport::Http).await;
}
