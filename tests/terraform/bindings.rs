//! Variables that are bound to outputs, with real engines.

use harness::configurations::packed;
use harness::run_site::text;
use serde_json::{Value, json};
use tokio::time::{Duration, Instant, sleep};

use crate::remote_scene::told_on_an_agent;
use crate::scene::Scene;

told_on_an_agent!(bound_values_of_every_type_reach_the_plan(Cloud), a_walk_and_its_preview_follow_bindings(Cloud),);

/// Long enough for a machine that is busy with other tests.
const RUN_TIMEOUT: Duration = Duration::from_secs(300);

const NETWORK: &str = r#"
    variable "zone" { default = "a" }
    variable "other" { default = "x" }
    resource "terraform_data" "network" { input = var.zone }
    output "vpc_id" { value = "vpc-${var.zone}" }
    output "zones" { value = ["a", "$${b}", "ü \"quoted\" \\ %%{ x }"] }
    output "settings" { value = { size = 3, ratio = 1.5, tags = { "team/core" = "yes" }, nothing = null } }
    output "password" {
      value     = "hunter2-of-network"
      sensitive = true
    }
    output "late" { value = terraform_data.network.output }
    output "other" { value = var.other }
"#;

const WEB: &str = r#"
    variable "vpc" { type = string }
    variable "zones" { type = list(string) }
    variable "settings" {
      type = object({ size = number, ratio = number, tags = map(string), nothing = optional(string) })
    }
    variable "password" { type = string }
    resource "terraform_data" "web" {
      input = { vpc = var.vpc, zones = var.zones, size = var.settings.size * 2, tags = var.settings.tags }
    }
    resource "terraform_data" "secret" { input = var.password }
    output "zones" { value = var.zones }
    output "ratio" { value = var.settings.ratio }
"#;

async fn given_unit(scene: &Scene, name: &str, main: &str) -> String {
    let id = scene.given_remote_workspace(name, json!({ "global-remote-state": true })).await;
    scene.admin.given_configuration(&id, packed(&[("main.tf", main)])).await;
    id
}

async fn bind(scene: &Scene, workspace: &str, key: &str, output: &str) {
    let attributes = json!({ "key": key, "producer": "network", "output": output });
    let body = json!({ "data": { "type": "bindings", "attributes": attributes } });
    scene.admin.post(&format!("/api/v2/workspaces/{workspace}/bindings"), body).await;
}

async fn set(scene: &Scene, workspace: &str, key: &str, value: &str) {
    let attributes = json!({ "key": key, "value": value, "category": "terraform" });
    let body = json!({ "data": { "type": "vars", "attributes": attributes } });
    scene.admin.post(&format!("/api/v2/workspaces/{workspace}/vars"), body).await;
}

/// A run that applies itself, when it has ended well: its id.
async fn applied(scene: &Scene, workspace: &str) -> String {
    let run = scene.admin.start_run(workspace).await;
    let begun = Instant::now();
    loop {
        let shown = scene.admin.run(&run).await;
        match shown["status"].as_str() {
            Some("applied" | "planned_and_finished") => return run,
            Some("errored" | "canceled" | "discarded") => {
                let why = scene.admin.error_of(&run, "plan").await;
                panic!("{why}\n{}", scene.log_of(&run, "plan").await);
            }
            _ => assert!(begun.elapsed() < RUN_TIMEOUT, "{shown}"),
        }
        sleep(Duration::from_millis(200)).await;
    }
}

async fn state_of(scene: &Scene, workspace: &str) -> Value {
    let shown = scene.admin.get(&format!("/api/v2/workspaces/{workspace}/current-state-version")).await;
    let address = text(&shown["data"]["attributes"]["hosted-state-download-url"]);
    let answer = scene.admin.client.get(address).bearer_auth(&scene.admin.token).send().await.expect("an answer");
    answer.json().await.expect("a state")
}

async fn bound_values_of_every_type_reach_the_plan(scene: Scene) {
    let network = given_unit(&scene, "network", NETWORK).await;
    let app = given_unit(&scene, "app", WEB).await;
    for (key, output) in [("vpc", "vpc_id"), ("zones", "zones"), ("settings", "settings"), ("password", "password")] {
        bind(&scene, &app, key, output).await;
    }
    // Nothing is there yet, and nothing is run with an empty value.
    let run = scene.admin.start_run(&app).await;
    assert_eq!(scene.admin.end_of(&run).await, "errored");
    let why = scene.admin.error_of(&run, "plan").await;
    assert!(why.contains("of network, which was never applied"), "{why}");

    applied(&scene, &network).await;
    let run = applied(&scene, &app).await;
    let state = state_of(&scene, &app).await;
    assert_eq!(state["outputs"]["zones"]["value"], json!(["a", "${b}", "ü \"quoted\" \\ %{ x }"]));
    assert_eq!(state["outputs"]["ratio"]["value"], json!(1.5));
    let resources = state["resources"].as_array().expect("a list");
    let input = |name: &str| {
        let named = resources.iter().find(|resource| resource["name"] == name).expect("the resource");
        named["instances"][0]["attributes"]["input"]["value"].clone()
    };
    let web = input("web");
    assert_eq!((&web["vpc"], &web["size"], &web["tags"]), (&json!("vpc-a"), &json!(6), &json!({ "team/core": "yes" })));
    assert_eq!(input("secret"), "hunter2-of-network");
    // The secret is in the state, and in no log.
    for phase in ["plan", "apply"] {
        let log = scene.log_of(&run, phase).await;
        assert!(log.contains("terraform_data.web") && !log.contains("hunter2"), "{log}");
    }
    let redacted =
        scene.admin.get(&format!("/api/v2/plans/{}/json-output-redacted", run.replace("run-", "plan-"))).await;
    assert!(!redacted.to_string().contains("hunter2"), "{redacted}");
}

/// Walks, and tells what became of each unit.
async fn walked(scene: &Scene, attributes: Value) -> Vec<(String, String, usize)> {
    let body = json!({ "data": { "type": "walks", "attributes": attributes } });
    let walk = text(&scene.admin.post("/api/v2/organizations/acme/walks", body).await["data"]["id"]);
    let begun = Instant::now();
    loop {
        let shown = scene.admin.get(&format!("/api/v2/walks/{walk}")).await;
        let state = text(&shown["data"]["attributes"]["state"]);
        let nodes = scene.admin.get(&format!("/api/v2/walks/{walk}/nodes")).await["data"].clone();
        if state == "done" {
            let row = |node: &Value| {
                let node = &node["attributes"];
                (text(&node["unit"]), text(&node["state"]), node["runs"].as_array().expect("a list").len())
            };
            return nodes.as_array().expect("a list").iter().map(row).collect();
        }
        assert!(state == "running" && begun.elapsed() < RUN_TIMEOUT, "the walk is {state}: {nodes:#}");
        sleep(Duration::from_millis(200)).await;
    }
}

fn rows(rows: &[(&str, &str, usize)]) -> Vec<(String, String, usize)> {
    rows.iter().map(|(unit, state, runs)| ((*unit).to_owned(), (*state).to_owned(), *runs)).collect()
}

async fn a_walk_and_its_preview_follow_bindings(scene: Scene) {
    const APP: &str = r#"
        variable "vpc" { type = string }
        resource "terraform_data" "app" { input = var.vpc }
    "#;
    const LATE: &str = r#"
        variable "late" { type = string }
        resource "terraform_data" "late" { input = var.late }
    "#;
    let network = given_unit(&scene, "network", NETWORK).await;
    let app = given_unit(&scene, "app", APP).await;
    let late = given_unit(&scene, "late", LATE).await;
    bind(&scene, &app, "vpc", "vpc_id").await;
    bind(&scene, &late, "late", "late").await;
    // No unit was ever applied: the order comes from the bindings alone.
    let apply = || json!({ "kind": "apply", "approval": "auto", "from": ["network"] });
    assert_eq!(walked(&scene, apply()).await, rows(&[("network", "done", 1), ("app", "done", 1), ("late", "done", 1)]));
    let unchanged = rows(&[("network", "cut_off", 0), ("app", "cut_off", 0), ("late", "cut_off", 0)]);
    assert_eq!(walked(&scene, apply()).await, unchanged);

    set(&scene, &network, "other", "y").await;
    assert_eq!(
        walked(&scene, apply()).await,
        rows(&[("network", "done", 1), ("app", "cut_off", 0), ("late", "cut_off", 0)]),
        "nobody is bound to what changed"
    );

    // Both are bound to what changes; one value is known when it is planned, and the other is not.
    set(&scene, &network, "zone", "b").await;
    let planned = walked(&scene, json!({ "kind": "plan", "from": ["network"] })).await;
    assert_eq!(planned, rows(&[("network", "done", 1), ("app", "done", 1), ("late", "done", 1)]));
    let run = scene.runs_of("app").await[0].clone();
    assert_eq!((&run["attributes"]["plan-only"], &run["attributes"]["has-changes"]), (&json!(true), &json!(true)));
    assert!(run["attributes"]["taco-bound-variables"][0]["announced-by"].is_string(), "{run}");
    let plan = scene.admin.get(&format!("/api/v2/runs/{}/plan/json-output", text(&run["id"]))).await.to_string();
    assert!(plan.contains("vpc-b"), "the value that the network's plan announces");
    let message = text(&scene.runs_of("late").await[0]["attributes"]["message"]);
    assert!(message.ends_with("preview: the plan of network may change late"), "{message}");

    assert_eq!(walked(&scene, apply()).await, rows(&[("network", "done", 1), ("app", "done", 1), ("late", "done", 1)]));
    assert_eq!(state_of(&scene, &app).await["resources"][0]["instances"][0]["attributes"]["input"]["value"], "vpc-b");
    assert_eq!(walked(&scene, apply()).await, unchanged);
}
