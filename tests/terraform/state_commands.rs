//! Commands that look into a state and change it without a plan.

use serde_json::Value;

use crate::scene::{Backend, Scene, says, told_with_every_backend};

told_with_every_backend!(
    a_state_is_listed_shown_moved_removed_and_imported,
    a_state_is_pulled_and_pushed,
    a_provider_is_replaced,
);

const RESOURCES: &str = r#"
    resource "terraform_data" "web" { input = "hello" }
    resource "terraform_data" "many" {
      for_each = toset(["a", "b"])
      input    = each.key
    }
"#;

async fn a_state_is_listed_shown_moved_removed_and_imported(scene: Scene) {
    let here = scene.initialized(RESOURCES).await;
    here.runs("apply -auto-approve").await;
    let listed = here.runs("state list").await;
    assert_eq!(listed, "terraform_data.many[\"a\"]\nterraform_data.many[\"b\"]\nterraform_data.web\n");
    says(&here.runs("state show terraform_data.web").await, r#"output = "hello""#);

    here.runs("state mv terraform_data.web terraform_data.moved").await;
    assert_eq!(here.runs("state list terraform_data.moved").await, "terraform_data.moved\n");
    says(&here.runs("plan").await, "Plan: 1 to add, 0 to change, 1 to destroy.");
    here.runs("state mv terraform_data.moved terraform_data.web").await;

    here.runs("taint terraform_data.web").await;
    says(&here.runs("plan").await, "terraform_data.web is tainted, so");
    here.runs("untaint terraform_data.web").await;
    says(&here.runs("plan").await, "No changes.");

    here.runs("state rm terraform_data.web").await;
    assert_eq!(here.runs("state list terraform_data.many").await.lines().count(), 2);
    says(&here.runs("import terraform_data.web an-id").await, "Import successful!");
    assert_eq!(here.runs_with("console", "terraform_data.web.id\n").await.trim(), r#""an-id""#);
    assert!(!scene.is_locked().await);
}

/// A state as it is pulled, with another serial.
fn with_serial(state: &str, serial: u64) -> String {
    let mut state: Value = serde_json::from_str(state).expect("JSON");
    state["serial"] = serial.into();
    state.to_string()
}

async fn a_state_is_pulled_and_pushed(scene: Scene) {
    let here = scene.initialized(RESOURCES).await;
    here.runs("apply -auto-approve").await;
    let first = here.runs("state pull").await;
    let state: Value = serde_json::from_str(&first).expect("JSON");
    assert_eq!(state["resources"].as_array().map(Vec::len), Some(2));

    here.write("newer.tfstate", &with_serial(&first, 41));
    here.runs("state push newer.tfstate").await;
    let pushed: Value = serde_json::from_str(&here.runs("state pull").await).expect("JSON");
    assert!(pushed["serial"].as_u64() >= Some(41), "{pushed}");

    here.write("older.tfstate", &with_serial(&first, 3));
    let refused = here.fails("state push older.tfstate").await;
    says(&refused, "cannot import state with serial 3 over newer state with serial");
    here.write("foreign.tfstate", &first.replace(state["lineage"].as_str().expect("text"), "another"));
    let refused = here.fails("state push foreign.tfstate").await;
    says(&refused, r#"cannot import state with lineage "another""#);
    match scene.backend {
        Backend::Remote => drop(here.runs("state push -force older.tfstate").await),
        // Neither has a way to tell the server, for which it is then a stale state. `taco state push --force` does it.
        Backend::Cloud | Backend::Http => drop(here.fails("state push -force older.tfstate").await),
    }
    if scene.backend == Backend::Cloud {
        // As after every state that could not be sent.
        here.runs("force-unlock -force acme/web").await;
    }
    assert!(!scene.is_locked().await);
    let versions = scene.versions().await.len();

    here.runs("state rm terraform_data.web").await;
    assert_eq!(scene.versions().await.len(), versions + 1);
}

async fn a_provider_is_replaced(scene: Scene) {
    let here = scene.initialized(RESOURCES).await;
    here.runs("apply -auto-approve").await;
    let state = here.runs("state pull").await;
    let (ours, theirs) = ("terraform.io/builtin/terraform", "registry.acme.test/acme/data");
    let serial = serde_json::from_str::<Value>(&state).expect("JSON")["serial"].as_u64().expect("a number");
    here.write("theirs.tfstate", &with_serial(&state.replace(ours, theirs), serial + 1));
    here.runs("state push theirs.tfstate").await;
    here.runs(&format!("state replace-provider -auto-approve {theirs} {ours}")).await;
    assert!(!here.runs("state pull").await.contains(theirs));
    says(&here.runs("plan").await, "No changes.");
    assert!(!scene.is_locked().await);
}
