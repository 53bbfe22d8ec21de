//! Estates of a dozen units with real engines: edges and used outputs are as the estate has them, a change makes stale
//! what it should, and a walk runs that and nothing else.

use std::collections::{BTreeMap, BTreeSet};

use harness::configurations::packed;
use harness::engine::Engine::{Terraform, Tofu};
use harness::engine::{Directory, Engine};
use harness::estate::{Estate, EstateBackend, EstateOptions};
use harness::installation::Transport::{Http, Https};
use harness::run_site::text;
use serde_json::{Value, json};

use crate::remote_scene::told_on_an_agent;
use crate::scene::{Backend, Scene, until};
use crate::walks::{given_unit, walked};

told_on_an_agent!(a_walk_runs_what_changed_and_what_that_reaches(Cloud));

/// Its seed has a unit of the first layer that reaches units of all others.
fn estate(scene: &Scene, hard: bool) -> Estate {
    let (host, organization) = (scene.installation.host().to_owned(), "acme".to_owned());
    let options = EstateOptions { hard, ..EstateOptions::new(12, 3, 5) };
    Estate::new(options.backend(EstateBackend::Cloud { host, organization }))
}

/// The unit of the first layer whose change reaches most others.
fn far_reaching(estate: &Estate) -> String {
    let first = estate.units.iter().filter(|unit| unit.layer == 0);
    first.max_by_key(|unit| estate.expect(&unit.name).len()).expect("an estate has units").name.clone()
}

pub(crate) type Edges = BTreeMap<(String, String), BTreeSet<String>>;

impl Scene {
    async fn graph(&self) -> Value {
        self.admin.get("/api/v2/organizations/acme/graph").await["data"]["attributes"].clone()
    }

    pub(crate) async fn edges_with_outputs(&self) -> Edges {
        let edge = |edge: &Value| {
            let outputs = edge["outputs"].as_array().expect("outputs").iter().map(text).collect();
            ((text(&edge["consumer"]), text(&edge["producer"])), outputs)
        };
        self.graph().await["edges"].as_array().expect("edges").iter().map(edge).collect()
    }

    pub(crate) async fn not_clean(&self) -> BTreeSet<String> {
        let graph = self.graph().await;
        let units = graph["units"].as_array().expect("units").iter();
        units.filter(|unit| unit["freshness"] != "clean").map(|unit| text(&unit["name"])).collect()
    }
}

async fn states_of_clients_have_the_edges_of_the_estate(engine: Engine, scene: Scene) {
    // Values of a hard one leave open whether a port is used; the next test asks plans, which know.
    let mut estate = estate(&scene, false);
    let mut directories: BTreeMap<String, Directory<'_>> = BTreeMap::new();
    for unit in &estate.units {
        scene.admin.given_workspace("acme", &unit.name).await;
        let directory = scene.user.directory(&unit.name, "");
        estate.write_unit(scene.user.home(), &unit.name).expect("written");
        directory.runs("init").await;
        directory.runs("apply -auto-approve").await;
        directories.insert(unit.name.clone(), directory);
    }
    assert_eq!(scene.edges_with_outputs().await, estate.edges(), "{engine:?}");
    assert_eq!(scene.not_clean().await, BTreeSet::new(), "{engine:?}");

    let changed = far_reaching(&estate);
    estate.touch(&changed);
    estate.write_unit(scene.user.home(), &changed).expect("written");
    directories[&changed].runs("apply -auto-approve").await;
    let next: BTreeSet<String> = estate.expect_next(&changed).into_iter().collect();
    assert_eq!(scene.not_clean().await, next, "{engine:?}: {changed} changed");
    let mut mended = BTreeSet::new();
    loop {
        let stale = scene.not_clean().await;
        let layer = stale.iter().map(|unit| estate.unit(unit).layer).min();
        let Some(unit) = stale.iter().find(|unit| Some(estate.unit(unit).layer) == layer) else { break };
        directories[unit].runs("apply -auto-approve").await;
        assert!(mended.insert(unit.clone()), "{engine:?}: {unit} is stale again");
    }
    assert_eq!(mended, estate.expect(&changed).into_iter().collect(), "{engine:?}: {changed} changed");
    assert_eq!(scene.edges_with_outputs().await, estate.edges(), "{engine:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn states_of_terraform_have_the_edges_of_the_estate() {
    let scene = Scene::new(Terraform, Http, Backend::Cloud).await;
    states_of_clients_have_the_edges_of_the_estate(Terraform, scene).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn states_of_tofu_have_the_edges_of_the_estate() {
    let scene = Scene::new(Tofu, Https, Backend::Cloud).await;
    states_of_clients_have_the_edges_of_the_estate(Tofu, scene).await;
}

pub(crate) async fn given_configuration(scene: &Scene, estate: &Estate, unit: &str, workspace: &str) {
    let (root, shared) = (estate.root_module(estate.unit(unit)), estate.shared_module());
    scene.admin.given_configuration(workspace, packed(&[("main.tf", &root), ("unit/main.tf", &shared)])).await;
}

async fn a_walk_runs_what_changed_and_what_that_reaches(scene: Scene) {
    // The walk is over all that there is.
    let web = text(&scene.workspace().await["id"]);
    scene.admin.done("DELETE", &format!("/api/v2/workspaces/{web}"), None).await;
    let mut estate = estate(&scene, true);
    let mut workspaces = BTreeMap::new();
    for unit in &estate.units {
        let workspace = given_unit(&scene, &unit.name, json!({})).await;
        given_configuration(&scene, &estate, &unit.name, &workspace).await;
        workspaces.insert(unit.name.clone(), workspace);
    }
    let done = |rows: Vec<(String, String, usize)>| -> BTreeSet<String> {
        let ran = rows.into_iter().filter(|(_, _, runs)| *runs > 0);
        ran.inspect(|(unit, state, runs)| assert_eq!((state.as_str(), *runs), ("done", 1), "{unit}"))
            .map(|(unit, ..)| unit)
            .collect()
    };
    // Nothing tells yet who uses what, so that the layers come one by one.
    for layer in 0..estate.options.layers {
        let units = estate.units.iter().filter(|unit| unit.layer == layer);
        let from: Vec<&str> = units.map(|unit| unit.name.as_str()).collect();
        let rows = walked(&scene, json!({ "kind": "apply", "approval": "auto", "from": from })).await;
        assert_eq!(done(rows).len(), from.len());
    }
    assert_eq!(scene.edges_with_outputs().await, estate.edges());
    until(async || scene.not_clean().await.is_empty()).await;
    let all = || json!({ "kind": "apply", "approval": "auto", "all": true });
    assert_eq!(done(walked(&scene, all()).await), BTreeSet::new(), "an unchanged estate costs no run");

    let changed = far_reaching(&estate);
    estate.touch(&changed);
    given_configuration(&scene, &estate, &changed, &workspaces[&changed]).await;
    let mut reached: BTreeSet<String> = estate.expect(&changed).into_iter().collect();
    reached.insert(changed.clone());
    let rows = walked(&scene, all()).await;
    let cut_off = rows.iter().filter(|(_, state, _)| state == "cut_off").count();
    assert_eq!(done(rows), reached, "after {changed} changed");
    assert_eq!(cut_off, estate.units.len() - reached.len());
    until(async || scene.not_clean().await.is_empty()).await;
    assert_eq!(done(walked(&scene, all()).await), BTreeSet::new(), "and once more there is nothing to do");
}
