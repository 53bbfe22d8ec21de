//! From `init` to `destroy`.

use serde_json::{Value, json};

use crate::scene::{Scene, says, told_with_every_backend};

told_with_every_backend!(a_configuration_is_applied_read_changed_and_destroyed);

const RESOURCES: &str = r#"
    variable "greeting" { default = "hello" }
    resource "terraform_data" "web" { input = var.greeting }
    output "greeting" { value = terraform_data.web.output }
    output "list" { value = [1, "two", null] }
    output "secret" {
      value     = "hush"
      sensitive = true
    }
"#;

async fn a_configuration_is_applied_read_changed_and_destroyed(scene: Scene) {
    let here = scene.initialized(RESOURCES).await;
    says(&here.fails("state list").await, "No state file was found");
    assert_eq!(here.runs("output -json").await.trim(), "{}");
    says(&here.runs("plan -out=plan.bin").await, "Plan: 1 to add, 0 to change, 0 to destroy.");
    assert!(scene.versions().await.is_empty(), "a plan writes nothing");
    says(&here.runs("apply plan.bin").await, "Apply complete! Resources: 1 added, 0 changed, 0 destroyed.");
    assert!(!scene.is_locked().await);

    assert_eq!(here.runs("output -raw greeting").await, "hello");
    let outputs: Value = serde_json::from_str(&here.runs("output -json").await).expect("JSON");
    assert_eq!(outputs["secret"], json!({ "sensitive": true, "type": "string", "value": "hush" }));
    assert_eq!(outputs["list"]["value"], json!([1, "two", null]));
    let shown = here.runs("show").await;
    assert!(shown.contains("# terraform_data.web:") && shown.contains("(sensitive value)"), "{shown}");
    let shown: Value = serde_json::from_str(&here.runs("show -json").await).expect("JSON");
    assert_eq!(shown["values"]["root_module"]["resources"][0]["values"]["input"], "hello");
    outputs_through_the_api(&scene).await;

    says(&here.runs("plan -detailed-exitcode").await, "No changes.");
    let changed = here.runs("apply -auto-approve -var=greeting=goodbye").await;
    assert!(changed.contains("Resources: 0 added, 1 changed, 0 destroyed."), "{changed}");
    says(&here.runs("refresh").await, "terraform_data.web: Refreshing state...");
    assert_eq!(here.runs("output -raw greeting").await, "goodbye");

    let destroyed = here.runs("destroy -auto-approve").await;
    assert!(destroyed.contains("Destroy complete! Resources: 1 destroyed."), "{destroyed}");
    assert_eq!(here.runs("state list").await, "");
    let serials: Vec<_> =
        scene.versions().await.iter().map(|version| version["attributes"]["serial"].clone()).collect();
    assert!(serials.len() >= 3 && serials.is_sorted_by(|one, other| one.as_u64() > other.as_u64()), "{serials:?}");
    assert!(!scene.is_locked().await);
}

async fn outputs_through_the_api(scene: &Scene) {
    let workspace = scene.workspace().await;
    let id = workspace["id"].as_str().expect("an id");
    let listed = scene.admin.get(&format!("/api/v2/workspaces/{id}/current-state-version-outputs")).await;
    let output = |name: &str| {
        let found = listed["data"].as_array().expect("a list").iter().find(|one| one["attributes"]["name"] == name);
        found.unwrap_or_else(|| panic!("{name} is missing: {listed}")).clone()
    };
    assert_eq!(output("greeting")["attributes"]["value"], "hello");
    assert_eq!(output("list")["attributes"]["value"], json!([1, "two", null]));
    let secret = output("secret");
    assert_eq!((&secret["attributes"]["value"], &secret["attributes"]["sensitive"]), (&Value::Null, &json!(true)));
    let path = format!("/api/v2/state-version-outputs/{}", secret["id"].as_str().expect("an id"));
    assert_eq!(scene.admin.get(&path).await["data"]["attributes"]["value"], "hush");
    assert_eq!(workspace["attributes"]["execution-mode"], "local");
}
