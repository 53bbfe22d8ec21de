//! Estates that are changed at random, again and again: after each change those units are stale that the estate knows to
//! be, layer by layer, until all is mended. Everyday tests do it with 40 units. With 200, which takes a quarter of an hour:
//! `cargo test --workspace --test terraform -- --ignored --nocapture large_estates`.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use futures::{StreamExt as _, stream};
use harness::engine::Engine::{Terraform, Tofu};
use harness::engine::{Directory, Engine};
use harness::estate::{AppliedEstate, Estate, EstateBackend, EstateOptions, Passing, Random};
use harness::installation::Transport::{Http, Https};
use harness::run_site::text;
use serde_json::json;
use tokio::time::{Instant, sleep};

use crate::estates::given_configuration;
use crate::scene::{Backend, Scene};
use crate::walks::{given_unit, walked};

/// Engines that run at the same time.
const ENGINES_AT_ONCE: usize = 2;
/// Servers examine states and plans in the background.
const EXAMINATION_TIMEOUT: Duration = Duration::from_secs(120);

#[derive(Clone, Copy, Debug)]
struct Size {
    units: usize,
    layers: usize,
    changes: usize,
}

const EVERYDAY: Size = Size { units: 40, layers: 5, changes: 3 };
const LARGE: Size = Size { units: 200, layers: 8, changes: 20 };

/// Units in a scene, beside what they are known to be.
struct Changing {
    scene: Scene,
    known: AppliedEstate,
    size: Size,
    random: Random,
    engines_run: usize,
}

impl Changing {
    fn new(scene: Scene, size: Size, seed: u64) -> Self {
        let backend =
            EstateBackend::Cloud { host: scene.installation.host().to_owned(), organization: "acme".to_owned() };
        let options = EstateOptions::new(size.units, size.layers, seed).backend(backend);
        let known = AppliedEstate::new(Estate::new(options), Passing::Reads);
        Self { scene, known, size, random: Random::new(seed), engines_run: 0 }
    }

    fn estate(&self) -> &Estate {
        &self.known.estate
    }

    fn layer(&self, layer: usize) -> Vec<String> {
        self.estate().units.iter().filter(|unit| unit.layer == layer).map(|unit| unit.name.clone()).collect()
    }

    /// Those of a set that depend on no other in it.
    fn first_layer_of(&self, units: &BTreeSet<String>) -> Vec<String> {
        let layer = units.iter().map(|unit| self.estate().unit(unit).layer).min();
        units.iter().filter(|unit| Some(self.estate().unit(unit).layer) == layer).cloned().collect()
    }

    /// Changes a unit that others use, and tells which it reaches sooner or later.
    fn change(&mut self) -> (String, BTreeSet<String>) {
        let producers = self.size.units - self.layer(self.size.layers - 1).len();
        let chosen = self.random.below(producers);
        let changed = self.estate().units[chosen].name.clone();
        let reached = self.estate().expect(&changed).into_iter().collect();
        self.known.estate.touch(&changed);
        (changed, reached)
    }

    fn applied(&mut self, units: &[String]) {
        units.iter().for_each(|unit| self.known.apply(unit));
        self.engines_run += units.len();
    }

    /// Checks that just those units are stale that really are. What was applied may still be examined.
    async fn is_known_to_be_stale(&self, after: &str) -> BTreeSet<String> {
        let (really, deadline) = (self.known.stale(), Instant::now() + EXAMINATION_TIMEOUT);
        loop {
            let shown = self.scene.not_clean().await;
            if shown == really {
                return shown;
            }
            assert!(Instant::now() < deadline, "after {after}: shown {shown:?}, really {really:?}");
            sleep(Duration::from_millis(100)).await;
        }
    }

    async fn has_its_edges(&self) {
        let (found, expected) = (self.scene.edges_with_outputs().await, self.estate().edges());
        let differ: Vec<_> = expected.iter().filter(|(ends, uses)| found.get(*ends) != Some(uses)).collect();
        let invented: Vec<_> = found.keys().filter(|ends| !expected.contains_key(*ends)).collect();
        assert!(differ.is_empty() && invented.is_empty(), "not as they are: {differ:?}; invented: {invented:?}");
        println!("{} units: all of {} edges, {} applies", self.size.units, found.len(), self.engines_run);
    }
}

async fn states_of_clients(engine: Engine, scene: Scene, size: Size, seed: u64) {
    let mut changing = Changing::new(scene, size, seed);
    let home = changing.scene.user.home().to_owned();
    for unit in &changing.estate().units {
        changing.scene.admin.given_workspace("acme", &unit.name).await;
        std::fs::create_dir(home.join(&unit.name)).expect("made");
        changing.estate().write_unit(&home, &unit.name).expect("written");
    }
    let apply = async |changing: &Changing, units: &[String], is_new: bool| {
        let directory = |unit: &String| Directory::of(&changing.scene.user, unit);
        let applying = stream::iter(units.iter().map(directory)).map(|directory| async move {
            if is_new {
                directory.runs("init").await;
            }
            directory.runs("apply -auto-approve").await;
        });
        applying.buffer_unordered(ENGINES_AT_ONCE).collect::<()>().await;
    };
    for layer in 0..size.layers {
        let units = changing.layer(layer);
        apply(&changing, &units, true).await;
        changing.applied(&units);
    }
    changing.is_known_to_be_stale("the first apply of all").await;
    changing.has_its_edges().await;
    for _ in 0..size.changes {
        let (changed, reached) = changing.change();
        changing.estate().write_unit(&home, &changed).expect("written");
        let mut next = vec![changed.clone()];
        let mut mended = BTreeSet::new();
        while !next.is_empty() {
            apply(&changing, &next, false).await;
            changing.applied(&next);
            let stale = changing.is_known_to_be_stale(&format!("{engine:?} applied {next:?}")).await;
            next = changing.first_layer_of(&stale);
            for unit in &next {
                assert!(mended.insert(unit.clone()), "{unit} is stale twice after {changed} changed");
            }
        }
        assert_eq!(mended, reached, "{engine:?}: {changed} changed");
    }
    changing.has_its_edges().await;
}

/// Every second change is mended by one walk over all units, the others layer by layer.
async fn runs_on_an_agent(engine: Engine, scene: Scene, size: Size, seed: u64) {
    // The walks are over all that there is.
    let web = text(&scene.workspace().await["id"]);
    scene.admin.done("DELETE", &format!("/api/v2/workspaces/{web}"), None).await;
    let mut changing = Changing::new(scene, size, seed);
    let mut workspaces = BTreeMap::new();
    for unit in &changing.estate().units {
        let workspace = given_unit(&changing.scene, &unit.name, json!({})).await;
        given_configuration(&changing.scene, changing.estate(), &unit.name, &workspace).await;
        workspaces.insert(unit.name.clone(), workspace);
    }
    let walk = async |changing: &Changing, selection: serde_json::Value| -> BTreeSet<String> {
        let mut attributes = json!({ "kind": "apply", "approval": "auto" });
        attributes.as_object_mut().expect("an object").extend(selection.as_object().expect("an object").clone());
        let rows = walked(&changing.scene, attributes).await;
        let ran = rows.into_iter().filter(|(_, _, runs)| *runs > 0);
        ran.inspect(|(unit, state, runs)| assert_eq!((state.as_str(), *runs), ("done", 1), "{unit}"))
            .map(|(unit, ..)| unit)
            .collect()
    };
    // Nothing tells yet who uses what, so that the layers come one by one.
    for layer in 0..size.layers {
        let units = changing.layer(layer);
        assert_eq!(walk(&changing, json!({ "from": units })).await.len(), units.len());
        changing.applied(&units);
    }
    changing.is_known_to_be_stale("the first apply of all").await;
    changing.has_its_edges().await;
    for number in 0..size.changes {
        let (changed, reached) = changing.change();
        given_configuration(&changing.scene, changing.estate(), &changed, &workspaces[&changed]).await;
        let mut mended = BTreeSet::new();
        if number % 2 == 0 {
            mended = walk(&changing, json!({ "all": true })).await;
            assert!(mended.remove(&changed), "{engine:?}: {changed} has changed itself");
            let in_order = changing.estate().units.iter().map(|unit| unit.name.clone());
            let order: Vec<String> = in_order.filter(|unit| *unit == changed || mended.contains(unit)).collect();
            changing.applied(&order);
            changing.is_known_to_be_stale(&format!("{engine:?} walked after a change of {changed}")).await;
        } else {
            let mut next = vec![changed.clone()];
            while !next.is_empty() {
                let ran = walk(&changing, json!({ "from": next, "to": next })).await;
                assert_eq!(ran, next.iter().cloned().collect(), "{engine:?}: {changed} changed");
                changing.applied(&next);
                let stale = changing.is_known_to_be_stale(&format!("{engine:?} applied {next:?}")).await;
                next = changing.first_layer_of(&stale);
                mended.extend(next.iter().cloned());
            }
        }
        assert_eq!(mended, reached, "{engine:?}: {changed} changed");
    }
    changing.has_its_edges().await;
    assert_eq!(walk(&changing, json!({ "all": true })).await, BTreeSet::new(), "an unchanged estate costs no run");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn forty_units_of_terraform() {
    states_of_clients(Terraform, Scene::new(Terraform, Http, Backend::Cloud).await, EVERYDAY, 11).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn forty_units_that_an_agent_runs_with_tofu() {
    runs_on_an_agent(Tofu, Scene::with_agent(Tofu, Https, Backend::Cloud).await, EVERYDAY, 12).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "takes minutes: see above"]
async fn two_hundred_units_of_terraform() {
    states_of_clients(Terraform, Scene::new(Terraform, Http, Backend::Cloud).await, LARGE, 7).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "takes minutes: see above"]
async fn two_hundred_units_of_tofu() {
    states_of_clients(Tofu, Scene::new(Tofu, Http, Backend::Cloud).await, LARGE, 23).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "takes minutes: see above"]
async fn two_hundred_units_that_an_agent_runs_with_terraform() {
    runs_on_an_agent(Terraform, Scene::with_agent(Terraform, Http, Backend::Cloud).await, LARGE, 42).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "takes minutes: see above"]
async fn two_hundred_units_that_an_agent_runs_with_tofu() {
    runs_on_an_agent(Tofu, Scene::with_agent(Tofu, Http, Backend::Cloud).await, LARGE, 13).await;
}
