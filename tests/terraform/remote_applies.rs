//! From `plan` to `destroy` on an agent, and what becomes of what was typed.

use harness::engine::Engine;
use serde_json::{Value, json};

use crate::remote_scene::ended;
use crate::scene::{Backend, Scene, says};

const RESOURCES: &str = r#"
    variable "greeting" { default = "hello" }
    resource "terraform_data" "web" { input = var.greeting }
    output "greeting" { value = terraform_data.web.output }
"#;

pub(crate) async fn a_configuration_is_applied_and_destroyed(scene: Scene) {
    let here = scene.initialized(RESOURCES).await;
    let mut said = here.runs("plan").await;
    says(&said, "Plan: 1 to add, 0 to change, 0 to destroy.");
    assert!(scene.versions().await.is_empty(), "a plan writes nothing");
    let discarded = ended(&here.does_answered("apply", &["no"]).await, 1);
    says(&discarded, "Apply discarded.");
    assert_eq!(scene.newest("status").await, "discarded");
    assert!(!scene.is_locked().await);

    let applied = here.runs_answered("apply", &["yes"]).await;
    says(&applied, "Apply complete! Resources: 1 added, 0 changed, 0 destroyed.");
    assert_eq!(scene.newest("status").await, "applied");
    assert_eq!(here.runs("output -raw greeting").await, "hello");
    assert_eq!(here.runs("state list").await, "terraform_data.web\n");
    // Where an apply takes its time, its agent sends what it sees in between as well.
    let run = scene.runs_of(&scene.name).await[0]["id"].clone();
    let of_run = |version: &Value| version["relationships"]["run"]["data"]["id"] == run;
    let versions = scene.versions().await;
    assert!(!versions.is_empty() && versions.iter().all(of_run), "{versions:?}");
    assert_eq!(versions[0]["attributes"]["billable-rum-count"], 1, "the newest has all");
    says(&here.runs("plan").await, "No changes.");

    let changed = scene.runs_with_variables(&here, "apply -auto-approve", &[("greeting", "goodbye")]).await;
    says(&changed, "0 added, 1 changed, 0 destroyed.");
    assert_eq!(here.runs("output -raw greeting").await, "goodbye");
    match scene.backend {
        Backend::Cloud => _ = here.runs("refresh").await,
        // This one has no such command.
        _ => _ = here.runs("apply -refresh-only -auto-approve").await,
    }
    assert_eq!(scene.newest("refresh-only").await, true);
    here.write("terraform.tfvars", r#"greeting = "from a file that nobody has to name""#);
    says(&here.runs("plan").await, "0 to add, 1 to change, 0 to destroy.");
    let destroyed = here.runs("destroy -auto-approve").await;
    says(&destroyed, "1 destroyed.");
    assert_eq!(scene.newest("is-destroy").await, true);
    assert_eq!(here.runs("state list").await, "");
    assert!(!scene.is_locked().await);
    for more in [discarded, applied, changed, destroyed] {
        said += &more;
    }
    assert!(!said.contains(r#""@level""#), "nobody wants to read JSON:\n{said}");
    here.write("more.tf", r#"output "bad" { value = var.none }"#);
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

pub(crate) async fn options_reach_the_run(scene: Scene) {
    let here = scene.initialized(TWO).await;
    // The `remote` backend sends files of this name, and no others.
    let (file, with_file) = match scene.backend {
        Backend::Cloud => ("more.tfvars", " -var-file=more.tfvars"),
        _ => ("more.auto.tfvars", ""),
    };
    here.write(file, "greeting = \"from a \\\"file\\\"\"\nlist = [1, 2]");
    let runs = async |words: &str| here.runs(&format!("{words}{with_file}")).await;
    let ends = async |words: &str, code| ended(&here.does(&format!("{words}{with_file}"), "").await, code);
    says(&runs("apply -auto-approve -target=terraform_data.one").await, "1 added");
    assert_eq!(scene.newest("target-addrs").await, json!(["terraform_data.one"]));
    assert_eq!(here.runs("state list").await, "terraform_data.one\n");
    says(&ends("plan -detailed-exitcode", 2).await, "Plan: 1 to add, 0 to change");
    says(&runs("apply -auto-approve").await, "1 added, 0 changed");
    let list: Value = serde_json::from_str(&here.runs("output -json list").await).expect("JSON");
    assert_eq!(list, json!([1, 2]));
    says(&ends("plan -detailed-exitcode", 0).await, "No changes.");
    let other = [("greeting", "other"), ("list", "[1,2]")];
    says(&scene.runs_with_variables(&here, "plan", &other).await, "0 to add, 1 to change, 0 to destroy.");

    says(&runs("plan -replace=terraform_data.one").await, "Plan: 1 to add, 0 to change, 1 to destroy.");
    assert_eq!(scene.newest("replace-addrs").await, json!(["terraform_data.one"]));
    says(&runs("plan -refresh=false").await, "No changes.");
    assert_eq!(scene.newest("refresh").await, false);
    says(&runs("plan -refresh-only").await, "No changes.");
    assert_eq!(scene.newest("refresh-only").await, true);
    says(&runs("plan -destroy").await, "0 to add, 0 to change, 2 to destroy.");
    assert_eq!(scene.newest("is-destroy").await, true);

    here.write("more.tf", r#"output "bad" { value = terraform_data.none.output }"#);
    says(&ends("plan -detailed-exitcode", 1).await, "Reference to undeclared resource");
    assert_eq!(scene.newest("status").await, "errored");
}

pub(crate) async fn a_saved_plan_is_shown_and_applied(scene: Scene) {
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

    // Of what is saved, people have seen the plan: nobody is asked, and nobody has to say so. Tofu waits for ever where
    // someone says it nevertheless.
    if scene.user.engine == Engine::Terraform {
        here.runs("plan -out=approved -var=greeting=approved").await;
        says(&here.runs("apply -auto-approve approved").await, "1 changed");
        assert_eq!(here.runs("output -raw greeting").await, "approved");
    }

    here.runs("plan -out=stale -var=greeting=stale").await;
    says(&here.runs("apply -auto-approve -var=greeting=newer").await, "1 changed");
    ended(&here.does("apply stale", "").await, 1);
    assert_eq!(here.runs("output -raw greeting").await, "newer");
}

pub(crate) async fn configuration_for_an_import_is_generated(scene: Scene) {
    let resources = "import {\n to = terraform_data.web\n id = \"0f6e2a3c\"\n}";
    let here = scene.initialized(resources).await;
    says(&here.runs("plan -generate-config-out=generated.tf").await, "1 to import");
    let generated = here.read("generated.tf");
    assert!(generated.contains(r#"resource "terraform_data" "web""#), "{generated}");
    here.runs("apply -auto-approve").await;
    assert_eq!(here.runs("state list").await, "terraform_data.web\n");
}
