//! Walks with real engines: what a change reaches is run, and nothing else.

use harness::configurations::packed;
use harness::run_site::text;
use serde_json::{Value, json};
use tokio::time::{Duration, Instant, sleep};

use crate::remote_scene::told_on_an_agent;
use crate::scene::Scene;

told_on_an_agent!(
    a_change_is_walked_as_far_as_it_reaches(Cloud),
    a_tree_of_code_is_uploaded_once_for_all_units(Cloud),
    a_plan_shows_what_a_change_does_to_what_comes_after_it(Cloud),
);

/// Long enough for a machine that is busy with other tests.
const WALK_TIMEOUT: Duration = Duration::from_secs(300);

/// The block with which a configuration reads another unit's outputs.
fn reads(scene: &Scene, producer: &str) -> String {
    let host = scene.installation.host();
    format!(
        r#"
        data "terraform_remote_state" "{producer}" {{
          backend = "remote"
          config = {{
            hostname     = "{host}"
            organization = "acme"
            workspaces   = {{ name = "{producer}" }}
          }}
        }}
        "#
    )
}

fn network() -> String {
    r#"
    variable "cidr" { default = "10.0.0.0/16" }
    variable "name" { default = "blue" }
    resource "terraform_data" "network" { input = var.cidr }
    output "cidr" { value = terraform_data.network.output }
    output "name" { value = var.name }
    "#
    .to_owned()
}

/// It uses one output of `network`, and passes nothing of it on in `url`.
fn database(scene: &Scene) -> String {
    let reads = reads(scene, "network");
    format!(
        r#"
        {reads}
        resource "terraform_data" "database" {{ input = data.terraform_remote_state.network.outputs.cidr }}
        output "url" {{ value = "postgres://database" }}
        "#
    )
}

fn app(scene: &Scene) -> String {
    let (network, database) = (reads(scene, "network"), reads(scene, "database"));
    format!(
        r#"
        {network}
        {database}
        resource "terraform_data" "app" {{
          input = [data.terraform_remote_state.network.outputs.name, data.terraform_remote_state.database.outputs.url]
        }}
        "#
    )
}

pub(crate) async fn given_unit(scene: &Scene, name: &str, more: Value) -> String {
    let mut attributes = json!({ "global-remote-state": true });
    for (key, value) in more.as_object().expect("an object") {
        attributes[key] = value.clone();
    }
    scene.given_remote_workspace(name, attributes).await
}

/// `network`, `database`, `app`, and `other` that has nothing to do with them.
async fn given_units(scene: &Scene) -> String {
    let other = r#"resource "terraform_data" "other" { input = "x" }"#.to_owned();
    let mut network_id = String::new();
    for (name, main) in [("network", network()), ("database", database(scene)), ("app", app(scene)), ("other", other)] {
        let id = given_unit(scene, name, json!({})).await;
        scene.admin.given_configuration(&id, packed(&[("main.tf", &main)])).await;
        if name == "network" {
            network_id = id;
        }
    }
    network_id
}

/// Begins a walk, and waits until it is over: units with their states and the number of their runs, in order.
pub(crate) async fn walked(scene: &Scene, attributes: Value) -> Vec<(String, String, usize)> {
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
        assert!(state == "running" && begun.elapsed() < WALK_TIMEOUT, "the walk is {state}: {nodes:#}");
        sleep(Duration::from_millis(200)).await;
    }
}

fn rows(rows: &[(&str, &str, usize)]) -> Vec<(String, String, usize)> {
    rows.iter().map(|(unit, state, runs)| ((*unit).to_owned(), (*state).to_owned(), *runs)).collect()
}

async fn set(scene: &Scene, workspace: &str, key: &str, value: &str) {
    let attributes = json!({ "key": key, "value": value, "category": "terraform" });
    let body = json!({ "data": { "type": "vars", "attributes": attributes } });
    scene.admin.post(&format!("/api/v2/workspaces/{workspace}/vars"), body).await;
}

async fn a_change_is_walked_as_far_as_it_reaches(scene: Scene) {
    let network = given_units(&scene).await;
    let apply = |selection: Value| {
        let mut attributes = json!({ "kind": "apply", "approval": "auto" });
        for (key, value) in selection.as_object().expect("an object") {
            attributes[key] = value.clone();
        }
        attributes
    };
    let units = || json!({ "from": ["network", "other"] });
    // Nothing has edges yet, so each unit comes by itself, and in the order of their names `app` would be too early.
    for unit in ["network", "other", "database", "app"] {
        assert_eq!(walked(&scene, apply(json!({ "from": [unit] }))).await, rows(&[(unit, "done", 1)]));
    }
    let unchanged =
        rows(&[("network", "cut_off", 0), ("database", "cut_off", 0), ("app", "cut_off", 0), ("other", "cut_off", 0)]);
    assert_eq!(walked(&scene, apply(units())).await, unchanged, "an unchanged estate costs no run");

    set(&scene, &network, "cidr", "10.1.0.0/16").await;
    assert_eq!(
        walked(&scene, apply(units())).await,
        rows(&[("network", "done", 1), ("database", "done", 1), ("app", "cut_off", 0), ("other", "cut_off", 0)]),
        "the database uses what changed, the app does not"
    );
    assert_eq!(walked(&scene, apply(units())).await, unchanged);

    // Somebody applies the network alone, and what uses it is stale.
    set(&scene, &network, "name", "green").await;
    assert_eq!(
        walked(&scene, json!({ "kind": "apply", "approval": "auto", "from": ["network"], "to": ["network"] })).await,
        rows(&[("network", "done", 1)])
    );
    assert_eq!(walked(&scene, apply(json!({ "stale": true }))).await, rows(&[("app", "done", 1)]));
    assert_eq!(walked(&scene, apply(json!({ "stale": true }))).await, []);
    assert_eq!(walked(&scene, apply(units())).await, unchanged);

    assert_eq!(
        walked(&scene, json!({ "kind": "destroy", "approval": "auto", "from": ["network"] })).await,
        rows(&[("app", "done", 1), ("database", "done", 1), ("network", "done", 1)]),
        "consumers come first"
    );
}

async fn a_tree_of_code_is_uploaded_once_for_all_units(scene: Scene) {
    let tree = |greeting: &str| {
        let module = format!("output \"greeting\" {{ value = \"{greeting}\" }}");
        let unit = r#"
            module "words" { source = "../../modules/words" }
            resource "terraform_data" "unit" { input = module.words.greeting }
        "#;
        let alone = r#"resource "terraform_data" "alone" { input = "x" }"#;
        packed(&[
            ("modules/words/main.tf", &module),
            ("units/one/main.tf", unit),
            ("units/two/main.tf", unit),
            ("units/alone/main.tf", alone),
        ])
    };
    let mut ids = Vec::new();
    for name in ["one", "two", "alone"] {
        ids.push(given_unit(&scene, name, json!({ "working-directory": format!("units/{name}") })).await);
    }
    let upload = async |archive: Vec<u8>| {
        let attributes = json!({ "auto-queue-runs": false, "speculative": true });
        let body = json!({ "data": { "type": "configuration-versions", "attributes": attributes } });
        let path = format!("/api/v2/workspaces/{}/configuration-versions", ids[0]);
        let made = scene.admin.post(&path, body).await["data"].clone();
        let address = text(&made["attributes"]["upload-url"]);
        let sent = scene.admin.client.put(address).body(archive).send().await.expect("an answer");
        assert!(sent.status().is_success(), "{}", sent.status());
        text(&made["id"])
    };
    let units = ["alone", "one", "two"];
    let walk = |kind: &str, code: &str| json!({ "kind": kind, "approval": "auto", "from": units, "code": code });
    let done = |state: &str, runs: usize| rows(&[("alone", state, runs), ("one", state, runs), ("two", state, runs)]);
    let first = upload(tree("hello")).await;
    assert_eq!(walked(&scene, walk("plan", &first)).await, done("done", 1));
    assert_eq!(walked(&scene, walk("apply", &first)).await, done("done", 1));
    // Packed again, it says the same.
    let again = upload(tree("hello")).await;
    assert_eq!(walked(&scene, walk("apply", &again)).await, done("cut_off", 0));
    let changed = upload(tree("goodbye")).await;
    assert_eq!(
        walked(&scene, walk("apply", &changed)).await,
        rows(&[("alone", "cut_off", 0), ("one", "done", 1), ("two", "done", 1)]),
        "a module that two of them use has changed"
    );
}

async fn a_plan_shows_what_a_change_does_to_what_comes_after_it(scene: Scene) {
    let network = given_units(&scene).await;
    for unit in ["network", "database", "app"] {
        let apply = json!({ "kind": "apply", "approval": "auto", "from": [unit] });
        assert_eq!(walked(&scene, apply).await, rows(&[(unit, "done", 1)]));
    }
    let plan = || json!({ "kind": "plan", "from": ["network"] });
    assert_eq!(
        walked(&scene, plan()).await,
        rows(&[("network", "cut_off", 0), ("database", "cut_off", 0), ("app", "cut_off", 0)])
    );

    set(&scene, &network, "name", "green").await;
    assert_eq!(
        walked(&scene, plan()).await,
        rows(&[("network", "done", 1), ("database", "cut_off", 0), ("app", "done", 1)]),
        "the database uses nothing of what the plan changes"
    );
    let run = scene.runs_of("app").await[0].clone();
    let message = text(&run["attributes"]["message"]);
    assert!(message.ends_with("preview: the plan of network changes name"), "{message}");
    assert_eq!((&run["attributes"]["plan-only"], &run["attributes"]["has-changes"]), (&json!(true), &json!(true)));
    let planned = scene.admin.get(&format!("/api/v2/runs/{}/plan/json-output", text(&run["id"]))).await.to_string();
    assert!(planned.contains("green"), "the value that the network's plan announces");
    // What was only planned proves nothing: the same is still to be done.
    assert_eq!(
        walked(&scene, json!({ "kind": "apply", "approval": "auto", "from": ["network"] })).await,
        rows(&[("network", "done", 1), ("database", "cut_off", 0), ("app", "done", 1)])
    );

    // What a resource makes of its input is known only when it is applied.
    set(&scene, &network, "cidr", "10.1.0.0/16").await;
    let after = walked(&scene, plan()).await;
    assert_eq!((after[1].0.as_str(), after[1].2), ("database", 1), "{after:?}");
    let walk = scene.admin.get("/api/v2/organizations/acme/walks").await["data"][0]["id"].clone();
    let nodes = scene.admin.get(&format!("/api/v2/walks/{}/nodes", text(&walk))).await;
    let database = &nodes["data"][1]["attributes"];
    assert_eq!((&database["reason"], &database["may-change"]), (&json!("its plan has no changes"), &json!(true)));
    let message = text(&scene.runs_of("database").await[0]["attributes"]["message"]);
    assert!(message.ends_with("preview: the plan of network may change cidr"), "{message}");
}
