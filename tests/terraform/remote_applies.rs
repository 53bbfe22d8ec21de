//! From `plan` to `destroy` on an agent, and what becomes of what was typed.

use serde_json::{Value, json};

use crate::remote_scene::{ended, told_on_an_agent};
use crate::scene::{Scene, says};

told_on_an_agent!(
    a_configuration_is_applied_and_destroyed_on_an_agent(Cloud),
    a_configuration_is_applied_as_text_on_an_agent(Remote),
    options_reach_the_run(Cloud),
    a_saved_plan_is_shown_and_applied(Cloud),
    configuration_for_an_import_is_generated(Cloud),
);

const RESOURCES: &str = r#"
    variable "greeting" { default = "hello" }
    resource "terraform_data" "web" { input = var.greeting }
    output "greeting" { value = terraform_data.web.output }
"#;

async fn a_configuration_is_applied_and_destroyed_on_an_agent(scene: Scene) {
    let here = scene.initialized(RESOURCES).await;
    says(&here.runs("plan").await, "Plan: 1 to add, 0 to change, 0 to destroy.");
    assert!(scene.versions().await.is_empty(), "a plan writes nothing");
    says(&ended(&here.does_answered("apply", &["no"]).await, 1), "Apply discarded.");
    assert_eq!(scene.newest("status").await, "discarded");
    assert!(!scene.is_locked().await);

    says(&here.runs_answered("apply", &["yes"]).await, "Apply complete! Resources: 1 added, 0 changed, 0 destroyed.");
    assert_eq!(scene.newest("status").await, "applied");
    assert_eq!(here.runs("output -raw greeting").await, "hello");
    assert_eq!(here.runs("state list").await, "terraform_data.web\n");
    assert_eq!(scene.versions().await.len(), 1);
    says(&here.runs("plan").await, "No changes.");

    says(&here.runs("apply -auto-approve -var=greeting=goodbye").await, "0 added, 1 changed, 0 destroyed.");
    assert_eq!(here.runs("output -raw greeting").await, "goodbye");
    here.runs("refresh").await;
    assert_eq!(scene.newest("refresh-only").await, true);
    says(&here.runs("destroy -auto-approve").await, "1 destroyed.");
    assert_eq!(here.runs("state list").await, "");
    assert!(!scene.is_locked().await);
}

async fn a_configuration_is_applied_as_text_on_an_agent(scene: Scene) {
    let here = scene.initialized(RESOURCES).await;
    let mut said = here.runs("plan").await;
    says(&said, "Plan: 1 to add, 0 to change, 0 to destroy.");
    said += &ended(&here.does_answered("apply", &["no"]).await, 1);
    assert_eq!(scene.newest("status").await, "discarded");
    said += &here.runs_answered("apply", &["yes"]).await;
    says(&said, "Apply complete! Resources: 1 added, 0 changed, 0 destroyed.");
    assert_eq!(here.runs("output -raw greeting").await, "hello");
    here.write("terraform.tfvars", r#"greeting = "goodbye""#);
    said += &here.runs("apply -auto-approve").await;
    assert_eq!(here.runs("output -raw greeting").await, "goodbye");
    said += &ended(&here.does("plan -detailed-exitcode", "").await, 0);
    said += &here.runs("destroy -auto-approve").await;
    says(&said, "1 destroyed.");
    assert!(!said.contains(r#""@level""#), "nobody wants to read JSON:\n{said}");
    here.write("main.tf", &format!("{}\noutput \"bad\" {{ value = var.none }}", here.read("main.tf")));
    says(&ended(&here.does("plan", "").await, 1), "Reference to undeclared input variable");
}

const TWO: &str = r#"
    variable "greeting" { default = "hello" }
    variable "list" {
      type    = list(number)
      default = []
    }
    resource "terraform_data" "one" { input = var.greeting }
    resource "terraform_data" "two" { input = var.list }
    output "list" { value = terraform_data.two.output }
"#;

async fn options_reach_the_run(scene: Scene) {
    let here = scene.initialized(TWO).await;
    here.write("more.tfvars", "greeting = \"from a \\\"file\\\"\"\nlist = [1, 2]");
    says(&here.runs("apply -auto-approve -target=terraform_data.one -var-file=more.tfvars").await, "1 added");
    assert_eq!(here.runs("state list").await, "terraform_data.one\n");
    says(
        &ended(&here.does("plan -detailed-exitcode -var-file=more.tfvars", "").await, 2),
        "Plan: 1 to add, 0 to change",
    );
    says(&here.runs("apply -auto-approve -var-file=more.tfvars").await, "1 added, 0 changed");
    let list: Value = serde_json::from_str(&here.runs("output -json list").await).expect("JSON");
    assert_eq!(list, json!([1, 2]));
    says(&ended(&here.does("plan -detailed-exitcode -var-file=more.tfvars", "").await, 0), "No changes.");
    says(&here.runs("plan -var=greeting=other -var=list=[1,2]").await, "0 to add, 1 to change, 0 to destroy.");

    let replaced = here.runs("plan -var-file=more.tfvars -replace=terraform_data.one").await;
    says(&replaced, "Plan: 1 to add, 0 to change, 1 to destroy.");
    assert_eq!(scene.newest("replace-addrs").await, json!(["terraform_data.one"]));
    says(&here.runs("plan -var-file=more.tfvars -refresh=false").await, "No changes.");
    assert_eq!(scene.newest("refresh").await, false);
    says(&here.runs("plan -var-file=more.tfvars -refresh-only").await, "No changes.");
    assert_eq!(scene.newest("refresh-only").await, true);
    says(&here.runs("plan -var-file=more.tfvars -destroy").await, "0 to add, 0 to change, 2 to destroy.");
    assert_eq!(scene.newest("is-destroy").await, true);

    here.write("more.tf", r#"output "bad" { value = terraform_data.none.output }"#);
    says(&ended(&here.does("plan -detailed-exitcode", "").await, 1), "Reference to undeclared resource");
    assert_eq!(scene.newest("status").await, "errored");
}

async fn a_saved_plan_is_shown_and_applied(scene: Scene) {
    let here = scene.initialized(RESOURCES).await;
    says(&here.runs("plan -out=saved -var=greeting=saved").await, "Plan: 1 to add");
    assert_eq!(scene.newest("status").await, "planned_and_saved");
    assert!(!scene.is_locked().await, "others may go on");
    says(&here.runs("show saved").await, "Plan: 1 to add, 0 to change, 0 to destroy.");
    let shown: Value = serde_json::from_str(&here.runs("show -json saved").await).expect("JSON");
    assert_eq!(shown["resource_changes"][0]["change"]["after"]["input"], "saved");
    says(&here.runs("apply saved").await, "Apply complete! Resources: 1 added");
    assert_eq!(here.runs("output -raw greeting").await, "saved");
    ended(&here.does("apply saved", "").await, 1);

    here.runs("plan -out=stale -var=greeting=stale").await;
    says(&here.runs("apply -auto-approve -var=greeting=newer").await, "1 changed");
    ended(&here.does("apply stale", "").await, 1);
    assert_eq!(here.runs("output -raw greeting").await, "newer");
}

async fn configuration_for_an_import_is_generated(scene: Scene) {
    let resources = "import {\n to = terraform_data.web\n id = \"0f6e2a3c\"\n}";
    let here = scene.initialized(resources).await;
    says(&here.runs("plan -generate-config-out=generated.tf").await, "1 to import");
    let generated = here.read("generated.tf");
    assert!(generated.contains(r#"resource "terraform_data" "web""#), "{generated}");
    here.runs("apply -auto-approve").await;
    assert_eq!(here.runs("state list").await, "terraform_data.web\n");
}
