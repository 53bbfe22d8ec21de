//! Experiments with real engines: what takes a changed output in, and what only looks as if it did.

use harness::engine::Engine::{Terraform, Tofu};
use harness::engine::{Directory, Engine};
use harness::installation::Transport::{Http, Https};
use harness::run_site::text;
use serde_json::{Value, json};

use crate::graph::network;
use crate::remote_scene::told_on_an_agent;
use crate::scene::{Backend, Scene, says, until};

told_on_an_agent!(a_run_that_fails_midway_takes_nothing_in(Cloud), a_run_that_finds_nothing_to_do_proves_it(Cloud),);

/// Stories of clients that execute the engine themselves, told by both.
macro_rules! told_by_clients {
    ($($story:ident),* $(,)?) => { $(
        mod $story {
            use super::{Backend, Http, Https, Scene, Terraform, Tofu};

            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn terraform_over_http() {
                super::$story(Scene::new(Terraform, Http, Backend::Cloud).await).await;
            }

            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn tofu_over_https() {
                super::$story(Scene::new(Tofu, Https, Backend::Cloud).await).await;
            }
        }
    )* };
}

told_by_clients!(
    an_apply_of_a_client_that_fails_midway_takes_nothing_in,
    an_apply_of_a_client_that_finds_nothing_to_do_is_assumed_to_have_taken_it_in,
    commands_on_states_and_unused_outputs_change_nothing,
);

const OLD: &str = "vpc-0123456789";
const NEW: &str = "vpc-9876543210";

impl Scene {
    /// A configuration that reads the story's workspace, as `local.vpc`.
    fn reading(&self, workspace: &str, resources: &str) -> String {
        let (block, host) = (self.block_for(workspace), self.installation.host());
        format!(
            r#"{block}
            data "terraform_remote_state" "network" {{
              backend = "remote"
              config = {{
                hostname     = "{host}"
                organization = "acme"
                workspaces   = {{ name = "web" }}
              }}
            }}
            {resources}
            "#
        )
    }

    /// The network applied, and `app` that was applied against it and reads it.
    async fn given_network_and(&self, resources: &str) -> (Directory<'_>, Directory<'_>) {
        let producer = self.initialized(&network(OLD, "one")).await;
        producer.runs("apply -auto-approve").await;
        let consumer = self.user.directory("app", &self.reading("app", resources));
        consumer.runs("init").await;
        consumer.runs("apply -auto-approve").await;
        self.is("app", "clean").await;
        (producer, consumer)
    }

    async fn network_becomes(&self, producer: &Directory<'_>, vpc: &str, unused: &str) {
        producer.write("main.tf", &format!("{}\n{}", self.block(), network(vpc, unused)));
        producer.runs("apply -auto-approve").await;
    }

    async fn serial(&self, workspace: &str) -> u64 {
        let id = text(&self.admin.workspace("acme", workspace).await["id"]);
        let current = self.admin.get(&format!("/api/v2/workspaces/{id}/current-state-version")).await;
        current["data"]["attributes"]["serial"].as_u64().expect("a serial")
    }

    /// The newest output commit that the only reason for staleness speaks of as the one that was applied against.
    async fn applied_against(&self, workspace: &str) -> Value {
        self.why(workspace).await["reasons"][0]["outputs"][0]["from_commit"].clone()
    }
}

/// Two resources that take the output in, of which one fails with some codes.
fn failing_with(code: u8, [first, second]: [&str; 2]) -> String {
    let vpc = "data.terraform_remote_state.network.outputs.vpc_id";
    let resource = |name: &str, more: &str| match name {
        "fails" => format!(
            r#"
            resource "terraform_data" "fails" {{
              triggers_replace = [{vpc}]
              {more}
              provisioner "local-exec" {{ command = "exit {code}" }}
            }}
            "#
        ),
        _ => format!("resource \"terraform_data\" \"{name}\" {{\n input = {vpc}\n {more}\n}}\n"),
    };
    resource(first, "") + &resource(second, &format!("depends_on = [terraform_data.{first}]"))
}

async fn a_run_that_fails_midway_takes_nothing_in(scene: Scene) {
    scene.share_states().await;
    scene.given_remote_workspace("app", json!({})).await;
    let order = ["app", "fails"];
    let (producer, consumer) = scene.given_network_and(&failing_with(0, order)).await;
    scene.network_becomes(&producer, NEW, "one").await;
    scene.is("app", "stale").await;
    let before = scene.serial("app").await;
    consumer.write("main.tf", &scene.reading("app", &failing_with(1, order)));
    consumer.fails("apply -auto-approve").await;
    assert!(scene.serial("app").await > before, "a part of it was done, and kept");
    scene.is("app", "stale").await;
    assert_eq!(scene.applied_against("app").await, 1);
    consumer.write("main.tf", &scene.reading("app", &failing_with(0, order)));
    consumer.runs("apply -auto-approve").await;
    scene.is("app", "clean").await;
}

async fn an_apply_of_a_client_that_fails_midway_takes_nothing_in(scene: Scene) {
    scene.admin.given_workspace("acme", "app").await;
    let order = ["fails", "app"];
    let (producer, consumer) = scene.given_network_and(&failing_with(0, order)).await;
    scene.network_becomes(&producer, NEW, "one").await;
    scene.is("app", "stale").await;
    let before = scene.serial("app").await;
    consumer.write("main.tf", &scene.reading("app", &failing_with(1, order)));
    consumer.fails("apply -auto-approve").await;
    assert!(scene.serial("app").await > before, "a part of it was done, and kept");
    scene.is("app", "stale").await;
    consumer.write("main.tf", &scene.reading("app", &failing_with(0, order)));
    consumer.runs("apply -auto-approve").await;
    scene.is("app", "clean").await;
}

/// No resource ever holds the value.
const LENGTH: &str =
    r#"resource "terraform_data" "app" { input = length(data.terraform_remote_state.network.outputs.vpc_id) }"#;

async fn a_run_that_finds_nothing_to_do_proves_it(scene: Scene) {
    scene.share_states().await;
    scene.given_remote_workspace("app", json!({})).await;
    let (producer, consumer) = scene.given_network_and(LENGTH).await;
    scene.network_becomes(&producer, NEW, "one").await;
    scene.is("app", "stale").await;
    let before = scene.serial("app").await;
    says(&consumer.runs("apply -auto-approve").await, "No changes.");
    assert_eq!(scene.runs_of("app").await[0]["attributes"]["status"], "planned_and_finished");
    assert_eq!(scene.serial("app").await, before, "no state was written");
    scene.is("app", "clean").await;
    let why = scene.why("app").await;
    assert!(!why.to_string().contains("assumed"), "it is proven: {why:#}");
}

async fn an_apply_of_a_client_that_finds_nothing_to_do_is_assumed_to_have_taken_it_in(scene: Scene) {
    scene.admin.given_workspace("acme", "app").await;
    let (producer, consumer) = scene.given_network_and(LENGTH).await;
    scene.network_becomes(&producer, NEW, "one").await;
    scene.is("app", "stale").await;
    let before = scene.serial("app").await;
    consumer.runs("apply -auto-approve").await;
    assert!(scene.serial("app").await > before, "what was read is in the state");
    scene.is("app", "clean").await;
    let id = text(&scene.admin.workspace("acme", "app").await["id"]);
    let edges = scene.admin.get(&format!("/api/v2/workspaces/{id}/dependencies")).await;
    assert_eq!(edges["data"][0]["attributes"]["consumed"]["assumed"], true, "nothing shows it: {edges:#}");
}

async fn commands_on_states_and_unused_outputs_change_nothing(scene: Scene) {
    scene.admin.given_workspace("acme", "app").await;
    let resources = r#"
        resource "terraform_data" "app" { input = data.terraform_remote_state.network.outputs.vpc_id }
        resource "terraform_data" "other" { input = "of no concern" }
    "#;
    let (producer, consumer) = scene.given_network_and(resources).await;
    let edges = || async { scene.edges().await[0]["outputs"].clone() };
    scene.network_becomes(&producer, OLD, "two").await;
    scene.is("app", "clean").await;
    let before = scene.serial("app").await;
    consumer.runs("apply -auto-approve").await;
    assert!(scene.serial("app").await > before, "the state has the new value of what it does not use");
    scene.is("app", "clean").await;

    scene.network_becomes(&producer, NEW, "two").await;
    scene.is("app", "stale").await;
    consumer.runs("state mv terraform_data.other terraform_data.moved").await;
    scene.is("app", "stale").await;
    consumer.runs("state rm terraform_data.moved").await;
    scene.is("app", "stale").await;
    // The newest values of the network, in a state whose resources were never given them.
    consumer.runs("apply -refresh-only -auto-approve").await;
    let pulled = consumer.runs("state pull").await;
    let mut state: Value = serde_json::from_str(&pulled).expect("JSON");
    state["serial"] = json!(state["serial"].as_u64().expect("a serial") + 1);
    consumer.write("pushed.tfstate", &state.to_string());
    consumer.runs("state push pushed.tfstate").await;
    scene.is("app", "stale").await;
    assert_eq!(edges().await, json!(["vpc_id"]));
    consumer.runs("apply -auto-approve").await;
    scene.is("app", "clean").await;
}

/// Only who has the key knows which outputs of an encrypted state changed.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_encrypted_state_is_opaque_and_nothing_that_uses_it_is_clean() {
    let scene = Scene::new(Tofu, Http, Backend::Cloud).await;
    let encryption = |what: &str| {
        format!(
            r#"
            terraform {{
              encryption {{
                key_provider "pbkdf2" "key" {{ passphrase = "correct horse battery staple" }}
                method "aes_gcm" "method" {{ keys = key_provider.pbkdf2.key }}
                {what}
              }}
            }}
            "#
        )
    };
    let secret = encryption("state { method = method.aes_gcm.method }");
    let producer = scene.initialized(&(secret.clone() + &network(OLD, "one"))).await;
    producer.runs("apply -auto-approve").await;
    for name in ["app", "closed"] {
        scene.admin.given_workspace("acme", name).await;
    }
    let resources = r#"resource "terraform_data" "app" { input = data.terraform_remote_state.network.outputs.vpc_id }"#;
    let remote = "remote_state_data_sources {\n default {\n method = method.aes_gcm.method\n }\n }";
    let reads = encryption(remote);
    let consumer = scene.user.directory("app", &scene.reading("app", &(reads + resources)));
    consumer.runs("init").await;
    consumer.runs("apply -auto-approve").await;
    scene.is("app", "unknown").await;
    let edge = scene.edges().await[0].clone();
    assert_eq!((&edge["producer"], &edge["status"]), (&json!("web"), &json!("opaque")), "{edge:#}");

    let id = text(&scene.workspace().await["id"]);
    let commits = || async {
        let listed = scene.admin.get(&format!("/api/v2/workspaces/{id}/output-commits")).await["data"].clone();
        listed.as_array().expect("a list").clone()
    };
    assert_eq!(commits().await[0]["attributes"]["opaque"], true);
    let before = commits().await.len();
    producer.write("main.tf", &format!("{}\n{secret}\n{}", scene.block(), network(NEW, "one")));
    producer.runs("apply -auto-approve").await;
    assert_eq!(commits().await.len(), before + 1, "something may have changed");
    scene.is("app", "unknown").await;

    // Of a unit whose own state is encrypted nobody knows what it was made from.
    let both = encryption(&format!("state {{ method = method.aes_gcm.method }}\n {remote}"));
    let closed = scene.user.directory("closed", &scene.reading("closed", &(both + resources)));
    closed.runs("init").await;
    closed.runs("apply -auto-approve").await;
    scene.is("closed", "unknown").await;
    let why = scene.why("closed").await.to_string();
    assert!(why.contains("encrypted"), "{why}");
}

/// Clients write a state every twenty seconds while they apply: what is not done yet is not taken in.
async fn a_state_in_the_middle_of_an_apply_takes_nothing_in(engine: Engine) {
    let scene = Scene::new(engine, Http, Backend::Cloud).await;
    scene.admin.given_workspace("acme", "app").await;
    let resources = |seconds: u8| {
        let vpc = "data.terraform_remote_state.network.outputs.vpc_id";
        format!(
            r#"
            resource "terraform_data" "quick" {{ triggers_replace = [{vpc}] }}
            resource "terraform_data" "slow" {{
              triggers_replace = [{vpc}]
              depends_on       = [terraform_data.quick]
              provisioner "local-exec" {{ command = "sleep {seconds}" }}
            }}
            resource "terraform_data" "slower" {{
              triggers_replace = [{vpc}]
              depends_on       = [terraform_data.slow]
              provisioner "local-exec" {{ command = "sleep {}" }}
            }}
            resource "terraform_data" "app" {{
              input      = {vpc}
              depends_on = [terraform_data.slower]
            }}
            "#,
            seconds / 4
        )
    };
    let (producer, consumer) = scene.given_network_and(&resources(0)).await;
    scene.network_becomes(&producer, NEW, "one").await;
    let before = scene.serial("app").await;
    consumer.write("main.tf", &scene.reading("app", &resources(22)));
    let apply = consumer.begins("apply -auto-approve");
    until(async || scene.serial("app").await > before).await;
    let in_the_middle = scene.why("app").await;
    let done = apply.ends().await;
    assert!(done.success, "{}", done.said());
    assert_eq!(in_the_middle["freshness"], "stale", "{in_the_middle:#}");
    scene.is("app", "clean").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_state_in_the_middle_of_an_apply_of_tofu_takes_nothing_in() {
    a_state_in_the_middle_of_an_apply_takes_nothing_in(Tofu).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_state_in_the_middle_of_an_apply_of_terraform_takes_nothing_in() {
    a_state_in_the_middle_of_an_apply_takes_nothing_in(Terraform).await;
}
