//! Estates of 200 units, as clients with local execution write them: which edges are found, and what is stale after
//! changes, compared with what the estate is known to be.

use std::collections::{BTreeMap, BTreeSet};

use axum::http::StatusCode;
use harness::api_server::{ApiServer, Client};
use harness::estate::{AppliedEstate, Estate, EstateBackend, EstateOptions, Passing, Random};
use jiff::SignedDuration;
use serde_json::Value;

const UNITS: usize = 200;
const CHANGES: usize = 20;

type Ends = (String, String);

/// An estate whose states are in workspaces of their units' names.
struct Written {
    server: ApiServer,
    admin: Client,
    applied: AppliedEstate,
    workspaces: BTreeMap<String, String>,
}

impl Written {
    async fn new(options: EstateOptions, passing: Passing) -> Self {
        let server = ApiServer::start().await;
        server.given_organization("acme").await;
        let admin = server.admin();
        let backend = EstateBackend::Cloud { host: "taco.test".to_owned(), organization: "acme".to_owned() };
        let mut applied = AppliedEstate::new(Estate::new(options.backend(backend)), passing);
        applied.apply_all();
        let mut written = Self { server, admin, applied, workspaces: BTreeMap::new() };
        for name in written.names() {
            let id = written.server.given_workspace("acme", &name).await;
            written.workspaces.insert(name.clone(), id);
            written.write(&name).await;
        }
        written.examine().await;
        written
    }

    fn names(&self) -> Vec<String> {
        self.applied.estate.units.iter().map(|unit| unit.name.clone()).collect()
    }

    fn estate(&self) -> &Estate {
        &self.applied.estate
    }

    async fn write(&self, name: &str) {
        let state: Value = serde_json::from_str(&self.applied.state(name)).expect("JSON");
        self.server.given_state(&self.workspaces[name], &state).await;
    }

    async fn apply(&mut self, name: &str) {
        self.applied.apply(name);
        self.write(name).await;
    }

    /// Lets the server look at everything, as it does in the background.
    async fn examine(&self) {
        self.server.pass(SignedDuration::from_mins(1));
        while self.server.control_plane.examine_graphs().await.expect("examined") {}
    }

    async fn graph(&self) -> Value {
        let graph = self.admin.get("/api/v2/organizations/acme/graph").await.expect(StatusCode::OK);
        graph.data()["attributes"].clone()
    }

    /// The units with this freshness.
    async fn units(&self, is_wanted: impl Fn(&str) -> bool) -> BTreeSet<String> {
        let graph = self.graph().await;
        let units = graph["units"].as_array().expect("units").iter();
        let wanted = units.filter(|unit| is_wanted(unit["freshness"].as_str().expect("a word")));
        wanted.map(|unit| text(&unit["name"])).collect()
    }

    async fn edges(&self) -> BTreeMap<Ends, BTreeSet<String>> {
        let graph = self.graph().await;
        let edge = |edge: &Value| {
            let outputs = edge["outputs"].as_array().expect("outputs").iter().map(text).collect();
            ((text(&edge["consumer"]), text(&edge["producer"])), outputs)
        };
        graph["edges"].as_array().expect("edges").iter().map(edge).collect()
    }
}

fn text(value: &Value) -> String {
    value.as_str().expect("a text").to_owned()
}

/// Changes units one after another, and mends what is stale, layer by layer.
async fn changes_reach_what_they_should(options: EstateOptions) {
    let seed = options.seed;
    let mut written = Written::new(options, Passing::Reads).await;
    assert_eq!(written.edges().await, written.estate().edges(), "seed {seed}");
    let stale = |freshness: &str| freshness != "clean";
    assert_eq!(written.units(stale).await, BTreeSet::new(), "seed {seed}");
    let (names, mut random) = (written.names(), Random::new(seed));
    let mut mended = 0;
    for _ in 0..CHANGES {
        let changed = names[random.below(names.len())].clone();
        let expected: BTreeSet<String> = written.estate().expect(&changed).into_iter().collect();
        written.applied.estate.touch(&changed);
        written.apply(&changed).await;
        let mut reached = BTreeSet::new();
        let next: BTreeSet<String> = written.estate().expect_next(&changed).into_iter().collect();
        assert_eq!(written.units(stale).await, next, "seed {seed}: {changed} changed");
        loop {
            let now = written.units(stale).await;
            assert_eq!(now, written.applied.stale(), "seed {seed}: {changed} changed, and {reached:?} were applied");
            // Those of the first layer among them: what they change is for others to take in.
            let Some(layer) = now.iter().map(|unit| written.estate().unit(unit).layer).min() else { break };
            let of_layer = now.into_iter().filter(|unit| written.estate().unit(unit).layer == layer);
            for unit in of_layer.collect::<Vec<_>>() {
                written.apply(&unit).await;
                assert!(reached.insert(unit.clone()), "seed {seed}: {unit} is stale twice after {changed} changed");
            }
        }
        assert_eq!(reached, expected, "seed {seed}: {changed} changed");
        mended += reached.len();
    }
    assert!(mended > CHANGES, "seed {seed}: only {mended} units were ever stale");
}

#[tokio::test]
async fn an_estate_has_its_edges_and_changes_reach_what_they_should() {
    changes_reach_what_they_should(EstateOptions::new(UNITS, 8, 11)).await;
}

#[tokio::test]
async fn an_estate_with_other_chances_has_its_edges_too() {
    changes_reach_what_they_should(EstateOptions { fan_in: (1, 5), ..EstateOptions::new(UNITS, 5, 12) }).await;
}

/// A port says nothing: of a unit that reads a producer and holds none of its other values, any output may be used. That
/// costs plans that find nothing to do, and hides no change.
#[tokio::test]
async fn what_leaves_no_trace_in_a_hard_estate_counts_as_used() {
    let mut written = Written::new(EstateOptions::new(UNITS, 8, 13).hard(), Passing::Reads).await;
    let (found, expected) = (written.edges().await, written.estate().edges());
    assert_eq!(found.keys().collect::<Vec<_>>(), expected.keys().collect::<Vec<_>>());
    for (ends, uses) in &expected {
        match uses.contains("port") {
            true => assert!(found[ends].is_superset(uses), "{ends:?}"),
            false => assert_eq!(found[ends], *uses, "{ends:?}"),
        }
    }
    let (names, mut random) = (written.names(), Random::new(13));
    for _ in 0..CHANGES {
        let changed = &names[random.below(UNITS)];
        written.applied.estate.touch(changed);
        written.apply(changed).await;
        let clean = written.units(|freshness| freshness == "clean").await;
        assert_eq!(clean.intersection(&written.applied.stale()).next(), None, "{changed} changed");
    }
}

/// Nothing is declared and nothing is read: only values tell who uses what.
async fn echoes_find(options: EstateOptions, precision: f64, recall: f64) {
    let seed = options.seed;
    let mut written = Written::new(options, Passing::Variables).await;
    let expected = written.estate().edges();
    let found = written.edges().await;
    let right = found.keys().filter(|ends| expected.contains_key(*ends)).count();
    let measured = (right as f64 / found.len() as f64, right as f64 / expected.len() as f64);
    println!("seed {seed}: precision {:.3}, recall {:.3} of {} edges", measured.0, measured.1, expected.len());
    assert!(measured.0 >= precision && measured.1 >= recall, "seed {seed}: {measured:?}");

    // An echo proves nothing, whatever happens.
    let consumers: BTreeSet<String> = found.into_keys().map(|(consumer, _)| consumer).collect();
    let clean = written.units(|freshness| freshness == "clean").await;
    assert_eq!(clean.intersection(&consumers).next(), None, "seed {seed}");
    let mut random = Random::new(seed);
    let names = written.names();
    let (mut missed, mut seen) = (0, 0);
    for _ in 0..CHANGES / 4 {
        let changed = names[random.below(UNITS / 4)].clone();
        written.applied.estate.touch(&changed);
        written.apply(&changed).await;
        written.examine().await;
        let really = written.applied.stale();
        let shown = written.units(|freshness| freshness == "stale").await;
        let clean = written.units(|freshness| freshness == "clean").await;
        assert_eq!(clean.intersection(&consumers).next(), None, "seed {seed}: {changed} changed");
        assert_eq!(clean.intersection(&really).next(), None, "seed {seed}: {changed} changed");
        missed += really.difference(&shown).count();
        seen += really.intersection(&shown).count();
    }
    assert!(seen > missed, "seed {seed}: {seen} stale units are shown as such, {missed} are not");
}

#[tokio::test]
async fn values_alone_tell_who_uses_what() {
    echoes_find(EstateOptions::new(UNITS, 8, 21), 1.0, 1.0).await;
}

#[tokio::test]
async fn values_alone_tell_most_of_who_uses_what_where_that_is_hard() {
    for seed in [31, 32, 33] {
        echoes_find(EstateOptions::new(UNITS, 8, seed).hard(), 0.95, 0.85).await;
    }
}

/// What lay in the bucket before there was a graph is taken in while the server serves, and no answer is wrong meanwhile.
#[tokio::test]
async fn a_bucket_from_before_there_was_a_graph_is_taken_in_in_the_background() {
    let mut written = Written::new(EstateOptions::new(UNITS, 5, 41), Passing::Reads).await;
    let names = written.names();
    for _ in 0..2 {
        for name in &names {
            written.applied.estate.touch(name);
            written.apply(name).await;
        }
    }
    for changed in &names[..3] {
        written.applied.estate.touch(changed);
        written.apply(changed).await;
    }
    written.examine().await;
    let (edges, stale) = (written.edges().await, written.applied.stale());
    assert_eq!(written.units(|freshness| freshness != "clean").await, stale);
    let before = commits(&written).await;
    written.server.forget_graph().await;
    let server = written.server.another().await;
    let written = Written { admin: server.admin(), server, ..written };
    // A server opens an organization when someone asks for it, or when there is work in it.
    written.admin.get("/api/v2/organizations/acme/workspaces").await.expect(StatusCode::OK);
    let mut answers = 0;
    while written.server.control_plane.examine_graphs().await.expect("examined") {
        let clean = written.units(|freshness| freshness == "clean").await;
        assert_eq!(clean.intersection(&stale).next(), None, "what is not known yet is not clean");
        answers += 1;
    }
    assert!(answers > 1, "the server serves between two batches: {answers}");
    assert_eq!(written.edges().await, edges);
    assert_eq!(written.units(|freshness| freshness != "clean").await, stale);
    assert_eq!(commits(&written).await, before, "all that the states tell");
}

/// The output commits of each unit, as the API shows them.
async fn commits(written: &Written) -> BTreeMap<String, Value> {
    let mut commits = BTreeMap::new();
    for (name, workspace) in &written.workspaces {
        let listed =
            written.admin.get(&format!("/api/v2/workspaces/{workspace}/output-commits?page%5Bsize%5D=100")).await;
        commits.insert(name.clone(), listed.expect(StatusCode::OK).data());
    }
    commits
}
