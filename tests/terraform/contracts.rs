//! Output contracts with real engines: whoever plans reads in the engine's own output what the plan breaks for others.

use serde_json::{Value, json};

use crate::remote_scene::told_on_an_agent;
use crate::scene::{Scene, says};

told_on_an_agent!(a_plan_that_breaks_what_others_use_says_so(Cloud));

const WARNING: &str = "Warning: Outputs that other workspaces use";

fn network(outputs: &str) -> String {
    format!("resource \"terraform_data\" \"vpc\" {{ input = \"vpc-0123456789\" }}\n{outputs}")
}

const BOTH: &str = r#"
    output "vpc_id" { value = terraform_data.vpc.output }
    output "zones" { value = ["a", "b"] }
"#;
const MORE_ZONES: &str = r#"
    output "vpc_id" { value = terraform_data.vpc.output }
    output "zones" { value = ["a", "b", "c"] }
"#;
const RETYPED: &str = r#"
    output "vpc_id" { value = terraform_data.vpc.output }
    output "zones" { value = { a = "b" } }
"#;
const NO_VPC: &str = r#"output "zones" { value = ["a", "b"] }"#;

impl Scene {
    async fn set_on_web(&self, attributes: Value) {
        let id = self.admin.workspace("acme", "web").await["id"].as_str().expect("an id").to_owned();
        let body = json!({ "data": { "type": "workspaces", "attributes": attributes } });
        self.admin.patch(&format!("/api/v2/workspaces/{id}"), body).await;
    }
}

async fn a_plan_that_breaks_what_others_use_says_so(scene: Scene) {
    let here = scene.initialized(&network(BOTH)).await;
    let block = scene.block_for("web");
    let write = |outputs: &str| here.write("main.tf", &format!("{block}\n{}", network(outputs)));
    let first = here.runs("apply -auto-approve").await;
    assert!(!first.contains("Warning"), "{first}");
    let app = scene.given_remote_workspace("app", json!({})).await;
    let declared = json!({ "producer": "web", "outputs": ["vpc_id", "zones"] });
    let declared = json!({ "data": { "type": "dependencies", "attributes": declared } });
    scene.admin.post(&format!("/api/v2/workspaces/{app}/dependencies"), declared).await;

    // As a diagnostic, and in a log that is plain text.
    write(NO_VPC);
    let said = here.runs("plan").await;
    says(&said, WARNING);
    says(&said, "vpc_id is removed: app uses it");
    assert!(!said.contains(r#""@level""#), "nobody wants to read JSON:\n{said}");
    scene.set_on_web(json!({ "structured-run-output-enabled": false })).await;
    let plain = here.runs("plan").await;
    says(&plain, WARNING);
    says(&plain, "vpc_id is removed: app uses it");
    scene.set_on_web(json!({ "structured-run-output-enabled": true })).await;

    // A list that grows breaks nobody, and another type does.
    write(MORE_ZONES);
    let grown = here.runs("plan").await;
    assert!(!grown.contains("Warning"), "{grown}");
    write(RETYPED);
    says(&here.runs("plan").await, "zones gets another type: app uses it");

    // A warning stops nothing.
    let applied = here.runs("apply -auto-approve").await;
    says(&applied, WARNING);
    says(&applied, "Apply complete!");
    write(BOTH);
    says(&here.runs("apply -auto-approve").await, "Apply complete!");

    // Who types "yes" after the warning has decided.
    scene.set_on_web(json!({ "taco-output-contract": "stop" })).await;
    write(NO_VPC);
    let asked = here.runs_answered("apply", &["yes"]).await;
    says(&asked, "Approve this run only if that is meant.");
    says(&asked, "Apply complete!");
    write(BOTH);
    says(&here.runs("apply -auto-approve").await, "Apply complete!");

    // What would apply by itself waits for somebody, and goes on when they have spoken.
    write(NO_VPC);
    let before = scene.runs_of("web").await.len();
    let (applied, run) = tokio::join!(here.runs("apply -auto-approve"), async {
        scene.until_newest(before + 1, "planned").await;
        let run = scene.runs_of("web").await[0].clone();
        let apply = format!("/api/v2/runs/{}/actions/apply", run["id"].as_str().expect("an id"));
        let (refused, _) = scene.admin.send("POST", &apply, Some(&json!({}))).await;
        assert_eq!(refused.as_u16(), 409);
        let (accepted, _) = scene.admin.send("POST", &apply, Some(&json!({ "accept-output-changes": true }))).await;
        assert_eq!(accepted.as_u16(), 202);
        run
    });
    assert_eq!(run["attributes"]["auto-apply"], true);
    says(&applied, "--accept-output-changes");
    says(&applied, "Apply complete!");

    write(BOTH);
    here.runs("apply -auto-approve").await;
    let destroyed = here.runs_answered("destroy", &["yes"]).await;
    says(&destroyed, "vpc_id is removed: app uses it");
    says(&destroyed, "zones is removed: app uses it");
    says(&destroyed, "1 destroyed.");
}
