//! What real engines leave behind tells which unit uses which outputs of which other, and whether it has taken them in.

use serde_json::{Value, json};

use crate::remote_scene::told_on_an_agent;
use crate::scene::{Scene, told_by_both};

told_on_an_agent!(runs_tell_what_they_consumed(Cloud));
told_by_both!(states_of_clients_tell_what_they_consumed(Cloud), a_read_through_http_is_the_same(Http));

pub(crate) fn network(vpc: &str, unused: &str) -> String {
    format!(
        r#"
        resource "terraform_data" "vpc" {{ input = "{vpc}" }}
        output "vpc_id" {{ value = terraform_data.vpc.output }}
        output "unused" {{ value = "{unused}" }}
        "#
    )
}

impl Scene {
    /// A data block that reads the story's workspace, two resources of which one uses it, and an output of its own.
    fn consumer(&self) -> String {
        let host = self.installation.host();
        format!(
            r#"
            data "terraform_remote_state" "network" {{
              backend = "remote"
              config = {{
                hostname     = "{host}"
                organization = "acme"
                workspaces   = {{ name = "web" }}
              }}
            }}
            resource "terraform_data" "app" {{ input = "in ${{data.terraform_remote_state.network.outputs.vpc_id}}" }}
            resource "terraform_data" "other" {{ input = "of no concern" }}
            output "app" {{ value = terraform_data.app.output }}
            "#
        )
    }

    pub(crate) async fn why(&self, workspace: &str) -> Value {
        let id = self.admin.workspace("acme", workspace).await["id"].as_str().expect("an id").to_owned();
        self.admin.get(&format!("/api/v2/workspaces/{id}/why")).await["data"]["attributes"].clone()
    }

    pub(crate) async fn is(&self, workspace: &str, freshness: &str) {
        let why = self.why(workspace).await;
        assert_eq!(why["freshness"], freshness, "{why:#}");
    }

    pub(crate) async fn edges(&self) -> Value {
        self.admin.get("/api/v2/organizations/acme/graph").await["data"]["attributes"]["edges"].clone()
    }

    pub(crate) async fn share_states(&self) {
        let id = self.admin.workspace("acme", "web").await["id"].as_str().expect("an id").to_owned();
        let shared = json!({ "data": { "type": "workspaces", "attributes": { "global-remote-state": true } } });
        self.admin.patch(&format!("/api/v2/workspaces/{id}"), shared).await;
    }
}

async fn runs_tell_what_they_consumed(scene: Scene) {
    scene.share_states().await;
    let producer = scene.initialized(&network("vpc-0123456789", "one")).await;
    producer.runs("apply -auto-approve").await;
    scene.given_remote_workspace("app", json!({})).await;
    let consumer = scene.initialized_in("app", &scene.consumer()).await;
    scene.is("app", "never_applied").await;
    consumer.runs("apply -auto-approve").await;
    scene.is("app", "clean").await;
    let edges = scene.edges().await;
    assert_eq!((&edges[0]["consumer"], &edges[0]["producer"]), (&json!("app"), &json!("web")), "{edges:#}");
    assert_eq!(edges[0]["outputs"], json!(["vpc_id"]), "the plan names it");
    // An echo may have been heard by now as well.
    assert_eq!((&edges[0]["grades"][0], &edges[0]["grades"][1]), (&json!("plan"), &json!("state")));
    assert_eq!(edges[0]["users"], json!(["terraform_data.app"]));

    // What is not used may change.
    let write = |vpc: &str, unused: &str| {
        let block = scene.block_for("web");
        producer.write("main.tf", &format!("{block}\n{}", network(vpc, unused)));
    };
    write("vpc-0123456789", "two");
    producer.runs("apply -auto-approve").await;
    scene.is("app", "clean").await;

    // A plan that was made before its producer changed, and applied after it.
    consumer.runs("plan -out=early -replace=terraform_data.other").await;
    write("vpc-9876543210", "two");
    producer.runs("apply -auto-approve").await;
    scene.is("app", "stale").await;
    let why = scene.why("app").await;
    let output = &why["reasons"][0]["outputs"][0];
    assert_eq!((&output["name"], &output["change"]), (&json!("vpc_id"), &json!("value")), "{why:#}");
    assert_eq!((&output["from_commit"], &output["to_commit"], &output["by"]), (&json!(1), &json!(3), &json!("admin")));
    assert!(output["run"].as_str().is_some_and(|run| run.starts_with("run-")), "{why:#}");
    consumer.runs("apply early").await;
    scene.is("app", "stale").await;

    // Neither a refresh nor an apply of something else takes it in.
    consumer.runs("apply -refresh-only -auto-approve").await;
    scene.is("app", "stale").await;
    consumer.runs("apply -auto-approve -target=terraform_data.other").await;
    scene.is("app", "stale").await;
    consumer.runs("apply -auto-approve").await;
    scene.is("app", "clean").await;

    // A value that comes back, and a plan that has nothing to do.
    write("vpc-0123456789", "two");
    producer.runs("apply -auto-approve").await;
    scene.is("app", "stale").await;
    write("vpc-9876543210", "two");
    producer.runs("apply -auto-approve").await;
    scene.is("app", "clean").await;
    consumer.runs("apply -auto-approve").await;
    scene.is("app", "clean").await;
}

async fn states_of_clients_tell_what_they_consumed(scene: Scene) {
    let producer = scene.initialized(&network("vpc-0123456789", "one")).await;
    producer.runs("apply -auto-approve").await;
    scene.admin.given_workspace("acme", "app").await;
    let block = scene.block_for("app");
    let consumer = scene.user.directory("app", &format!("{block}\n{}", scene.consumer()));
    consumer.runs("init").await;
    consumer.runs("apply -auto-approve").await;
    scene.is("app", "clean").await;
    let edges = scene.edges().await;
    assert_eq!(edges[0]["outputs"], json!(["vpc_id"]), "its resource holds that one: {edges:#}");
    assert_eq!(edges[0]["grades"][0], "state");

    let block = scene.block();
    producer.write("main.tf", &format!("{block}\n{}", network("vpc-9876543210", "one")));
    producer.runs("apply -auto-approve").await;
    scene.is("app", "stale").await;
    consumer.runs("apply -refresh-only -auto-approve").await;
    scene.is("app", "stale").await;
    consumer.runs("apply -auto-approve -target=terraform_data.other").await;
    scene.is("app", "stale").await;
    consumer.runs("apply -auto-approve").await;
    scene.is("app", "clean").await;
    consumer.runs("state rm terraform_data.other").await;
    scene.is("app", "clean").await;
}

async fn a_read_through_http_is_the_same(scene: Scene) {
    let producer = scene.initialized(&network("vpc-0123456789", "one")).await;
    producer.runs("apply -auto-approve").await;
    scene.admin.given_workspace("acme", "app").await;
    let address = scene.http_address("web");
    let password = harness::installation::SITE_TOKEN;
    let block = scene.block_for("app");
    let consumer = scene.user.directory(
        "app",
        &format!(
            r#"{block}
            data "terraform_remote_state" "network" {{
              backend = "http"
              config = {{
                address  = "{address}"
                username = "anyone"
                password = "{password}"
              }}
            }}
            resource "terraform_data" "app" {{ input = data.terraform_remote_state.network.outputs.vpc_id }}
            "#
        ),
    );
    consumer.runs("init").await;
    consumer.runs("apply -auto-approve").await;
    scene.is("app", "clean").await;
    let edges = scene.edges().await;
    assert_eq!((&edges[0]["producer"], &edges[0]["outputs"]), (&json!("web"), &json!(["vpc_id"])), "{edges:#}");
}
