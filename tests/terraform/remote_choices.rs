//! Options of a workspace, a directory or a run, and Ctrl-C before anything is applied.

use std::fs;

use harness::run_site::text;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::time::{Duration, timeout};

use crate::remote_scene::{ended, told_on_an_agent};
use crate::scene::{Scene, says, until};

told_on_an_agent!(
    a_workspace_can_have_logs_of_plain_text(Cloud),
    what_is_ignored_does_not_reach_the_run(Cloud),
    the_variable_that_counts_reaches_the_run(Cloud),
    an_apply_can_be_empty(Cloud),
    what_is_planned_when_someone_interrupts_is_canceled_if_they_say_so(Cloud),
    an_interrupted_question_leaves_the_decision_to_others(Cloud),
);

const RESOURCES: &str = r#"
    resource "terraform_data" "web" { input = "hello" }
    output "greeting" { value = terraform_data.web.output }
"#;

async fn a_workspace_can_have_logs_of_plain_text(scene: Scene) {
    scene.given_remote_workspace("plain", json!({ "structured-run-output-enabled": false })).await;
    let here = scene.initialized_in("plain", RESOURCES).await;
    says(&here.runs("plan").await, "Plan: 1 to add, 0 to change, 0 to destroy.");
    let applied = here.runs_answered("apply", &["yes"]).await;
    says(&applied, "terraform_data.web will be created");
    says(&applied, "Apply complete! Resources: 1 added, 0 changed, 0 destroyed.");
    assert_eq!(here.runs("output -raw greeting").await, "hello");
    says(&ended(&here.does("plan -detailed-exitcode", "").await, 0), "No changes.");
    for (run, phase) in [(1, "plan"), (1, "apply"), (0, "plan")] {
        let run = text(&scene.runs_of("plain").await[run]["id"]);
        let log = scene.log_of(&run, phase).await;
        assert!(log.starts_with('\u{2}') && log.ends_with('\u{3}'), "{log}");
        assert!(!log.contains(r#""@level""#), "{log}");
    }
    let applied = text(&scene.runs_of("plain").await[1]["id"]);
    let apply = scene.admin.get(&format!("/api/v2/runs/{applied}/apply")).await;
    assert_eq!(apply["data"]["attributes"]["resource-additions"], 1, "counts need no structured log");
    here.write("more.tf", r#"output "bad" { value = var.none }"#);
    says(&ended(&here.does("plan", "").await, 1), "Reference to undeclared input variable");
}

async fn what_is_ignored_does_not_reach_the_run(scene: Scene) {
    let resources = r#"
        locals { found = [for pattern in ["*.txt", "heap/*", "notes/*"] : sort(fileset(path.module, pattern))] }
        output "found" { value = join(" ", flatten(local.found)) }
    "#;
    let here = scene.initialized(resources).await;
    for directory in ["heap", "notes"] {
        fs::create_dir(here.path.join(directory)).expect("made");
    }
    for file in ["hidden.txt", "kept.txt", "heap/deep.txt", "notes/kept.md", "notes/hidden.txt"] {
        here.write(file, "some words");
    }
    here.runs("apply -auto-approve").await;
    let all = "hidden.txt kept.txt heap/deep.txt notes/hidden.txt notes/kept.md";
    assert_eq!(here.runs("output -raw found").await, all);
    here.write(".terraformignore", "# words that stay here\n*.txt\n!kept.txt\nheap/\n");
    here.runs("apply -auto-approve").await;
    assert_eq!(here.runs("output -raw found").await, "kept.txt notes/kept.md");
}

/// A set of variables of this name, in which each has the set's name as its value.
async fn given_set(scene: &Scene, attributes: Value, keys: &[&str]) -> String {
    let variables = keys.iter().map(|key| {
        let attributes = json!({ "key": key, "value": attributes["name"], "category": "terraform" });
        json!({ "type": "vars", "attributes": attributes })
    });
    let relationships = json!({ "vars": { "data": variables.collect::<Vec<_>>() } });
    let body = json!({ "data": { "type": "varsets", "attributes": attributes, "relationships": relationships } });
    text(&scene.admin.post("/api/v2/organizations/acme/varsets", body).await["data"]["id"])
}

async fn the_variable_that_counts_reaches_the_run(scene: Scene) {
    let workspace = text(&scene.workspace().await["id"]);
    let applied_to = json!({ "data": [{ "type": "workspaces", "id": workspace }] });
    let apply_set = async |set: String| {
        let path = format!("/api/v2/varsets/{set}/relationships/workspaces");
        scene.admin.done("POST", &path, Some(applied_to.clone())).await;
    };
    given_set(&scene, json!({ "name": "everywhere", "global": true }), &["filed", "narrow", "own", "typed"]).await;
    apply_set(given_set(&scene, json!({ "name": "set" }), &["narrow", "own", "typed", "urgent"]).await).await;
    apply_set(given_set(&scene, json!({ "name": "priority", "priority": true }), &["urgent"]).await).await;
    given_set(&scene, json!({ "name": "elsewhere", "priority": true }), &["filed", "narrow", "own", "typed"]).await;
    for key in ["own", "typed", "urgent"] {
        let attributes = json!({ "key": key, "value": "workspace", "category": "terraform" });
        let body = json!({ "data": { "type": "vars", "attributes": attributes } });
        scene.admin.post(&format!("/api/v2/workspaces/{workspace}/vars"), body).await;
    }
    let keys = ["file", "filed", "narrow", "own", "typed", "urgent"];
    let declared = keys.map(|key| format!("variable \"{key}\" {{}}\noutput \"{key}\" {{ value = var.{key} }}\n"));
    let here = scene.initialized(&declared.concat()).await;
    here.write("terraform.tfvars", "file = \"file\"\nfiled = \"file\"\nurgent = \"file\"\n");
    here.runs("apply -auto-approve -var=typed=typed -var=urgent=typed").await;
    let outputs: Value = serde_json::from_str(&here.runs("output -json").await).expect("JSON");
    let found = keys.map(|key| format!("{key}: {}", outputs[key]["value"].as_str().unwrap_or_default()));
    let expected = ["file: file", "filed: everywhere", "narrow: set", "own: workspace", "typed: typed"];
    assert_eq!(found[..5], expected);
    assert_eq!(found[5], "urgent: priority", "a set with priority counts more than what was typed");
}

async fn an_apply_can_be_empty(scene: Scene) {
    let here = scene.initialized(RESOURCES).await;
    here.runs("apply -auto-approve").await;
    let workspace = scene.workspace().await["id"].clone();
    let start = async |attributes: Value| {
        let relationships = json!({ "workspace": { "data": { "type": "workspaces", "id": workspace } } });
        let body = json!({ "data": { "type": "runs", "attributes": attributes, "relationships": relationships } });
        text(&scene.admin.post("/api/v2/runs", body).await["data"]["id"])
    };
    start(json!({ "auto-apply": true })).await;
    scene.until_newest(2, "planned_and_finished").await;
    let run = start(json!({ "allow-empty-apply": true })).await;
    scene.until_newest(3, "planned").await;
    assert_eq!(scene.newest("has-changes").await, false);
    scene.admin.post(&format!("/api/v2/runs/{run}/actions/apply"), json!({})).await;
    scene.until_newest(3, "applied").await;
    says(&scene.log_of(&run, "apply").await, "Resources: 0 added, 0 changed, 0 destroyed.");
    start(json!({ "allow-empty-apply": true, "auto-apply": true })).await;
    scene.until_newest(4, "applied").await;
    assert_eq!(here.runs("output -raw greeting").await, "hello");
    assert!(!scene.is_locked().await);
}

async fn what_is_planned_when_someone_interrupts_is_canceled_if_they_say_so(scene: Scene) {
    // The plan waits for a state that is never sent.
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let address = listener.local_addr().expect("an address");
    let resources = format!(
        r#"
        data "terraform_remote_state" "slow" {{
          backend = "http"
          config  = {{ address = "http://{address}/", retry_max = 0 }}
        }}
        "#
    );
    let here = scene.initialized(&resources).await;
    let begun = async || {
        let accepted = timeout(Duration::from_secs(180), listener.accept()).await;
        accepted.expect("the plan asks for the state").expect("a connection").0
    };
    // Those who only plan are told that the plan goes on without them.
    let plan = here.talks("plan");
    let waits = begun().await;
    plan.running.interrupt();
    says(&plan.ends().await.said(), "will not stop the plan running remotely.");
    assert_eq!(scene.newest("status").await, "planning");
    drop(waits);
    scene.until_newest(1, "errored").await;

    for (count, answer, said, status) in [
        (2, "no", "The remote operation was not cancelled.", "errored"),
        (3, "yes", "The remote operation was successfully cancelled.", "canceled"),
    ] {
        let mut apply = here.talks("apply");
        let waits = begun().await;
        apply.says("Initializing plugins and modules...").await;
        apply.running.interrupt();
        apply.asks().await;
        apply.answer(answer).await;
        says(&apply.ends().await.said(), said);
        // An engine that is interrupted waits for what it has asked for, and a plan that does not get it fails.
        drop(waits);
        scene.until_newest(count, status).await;
        until(async || !scene.is_locked().await).await;
    }
}

async fn an_interrupted_question_leaves_the_decision_to_others(scene: Scene) {
    let here = scene.initialized(RESOURCES).await;
    let mut apply = here.talks("apply");
    apply.asks().await;
    apply.running.interrupt();
    let said = apply.ends().await.said();
    assert!(!said.contains("Apply complete!"), "{said}");
    let run = scene.runs_of(&scene.name).await[0].clone();
    assert_eq!(run["attributes"]["status"], "planned", "{said}");
    assert_eq!(run["attributes"]["actions"]["is-discardable"], true);
    assert!(scene.is_locked().await);
    let discard = format!("/api/v2/runs/{}/actions/discard", text(&run["id"]));
    scene.admin.post(&discard, json!({})).await;
    assert!(!scene.is_locked().await);
    assert!(scene.versions().await.is_empty());
    says(&ended(&here.does_answered("apply", &["no"]).await, 1), "Apply discarded.");
    assert_eq!(scene.newest("status").await, "discarded");
}
