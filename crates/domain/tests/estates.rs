//! Evidence in whole estates whose graph is known.

#[expect(dead_code, unreachable_pub, reason = "suites that start engines use the rest of it")]
#[path = "../../../tests/harness/estate.rs"]
mod estate;

use std::collections::{BTreeMap, BTreeSet};

use estate::{AppliedEstate, Estate, EstateBackend, EstateOptions, Passing};
use taco_domain::graph::echo::{EchoState, ambient_tokens, echo_edges, used_by_echo};
use taco_domain::graph::state_evidence::StateEvidence;
use taco_domain::graph::token::{Token, TokenKey};

type Edges = BTreeMap<(String, String), BTreeSet<String>>;

fn key() -> TokenKey {
    TokenKey::of(&[7; 32])
}

fn applied(options: EstateOptions, passing: Passing) -> AppliedEstate {
    let mut applied = AppliedEstate::new(Estate::new(options), passing);
    applied.apply_all();
    applied
}

fn evidence(applied: &AppliedEstate) -> BTreeMap<String, StateEvidence> {
    let read = |name: &String| StateEvidence::read(applied.state(name).as_bytes(), &key()).expect("a state");
    applied.estate.units.iter().map(|unit| (unit.name.clone(), read(&unit.name))).collect()
}

fn echoes(evidence: &BTreeMap<String, StateEvidence>) -> Vec<EchoState<'_, &String>> {
    evidence.iter().map(|(unit, evidence)| EchoState { unit, tokens: &evidence.tokens }).collect()
}

/// Share of found edges that are there, and share of edges that were found.
fn precision_and_recall(expected: &Edges, found: &Edges) -> (f64, f64) {
    let right = found.keys().filter(|edge| expected.contains_key(edge)).count() as f64;
    (right / found.len() as f64, right / expected.len() as f64)
}

fn found_by_echo(evidence: &BTreeMap<String, StateEvidence>) -> Edges {
    let edges = echo_edges(&echoes(evidence)).into_iter();
    edges.map(|edge| ((edge.consumer.clone(), edge.producer.clone()), edge.outputs)).collect()
}

#[test]
fn values_alone_tell_the_graph_of_an_easy_estate() {
    for seed in 1..=5 {
        let applied = applied(EstateOptions::new(200, 8, seed), Passing::Variables);
        assert_eq!(found_by_echo(&evidence(&applied)), applied.estate.edges(), "seed {seed}");
    }
}

#[test]
fn values_alone_tell_most_of_the_graph_of_a_hard_estate() {
    for seed in 1..=5 {
        let applied = applied(EstateOptions::new(200, 8, seed).hard(), Passing::Variables);
        let (precision, recall) = precision_and_recall(&applied.estate.edges(), &found_by_echo(&evidence(&applied)));
        assert!(precision >= 0.95 && recall >= 0.85, "seed {seed}: precision {precision}, recall {recall}");
    }
}

/// Edges by data blocks, with the outputs that resources show to be used.
fn found_by_reads(applied: &AppliedEstate, organization: &str, hosts: &[String]) -> (Edges, BTreeSet<String>) {
    let evidence = evidence(applied);
    let ambient = ambient_tokens(&echoes(&evidence));
    let is_ambient = |token: Token| ambient.contains(&token);
    let (mut edges, mut cannot_tell) = (Edges::new(), BTreeSet::new());
    for (unit, evidence) in &evidence {
        for (index, read) in evidence.reads.iter().enumerate() {
            let producer = read.producer.as_ref().expect("an address").workspace_name(hosts, organization);
            let used = used_by_echo(evidence, &[index], &key(), is_ambient);
            assert_eq!(read.user_count, 3, "all resources of a unit use what it reads");
            edges.insert((unit.clone(), producer.expect("a unit here")), used.sure);
            cannot_tell.extend(used.cannot_tell);
        }
    }
    (edges, cannot_tell)
}

#[test]
fn data_blocks_tell_the_graph_and_resources_which_outputs_are_used() {
    let hosts = ["taco.example.com".to_owned()];
    let cloud = EstateBackend::Cloud { host: "taco.example.com".to_owned(), organization: "acme".to_owned() };
    let http = EstateBackend::Http {
        address: "https://taco.example.com/api/http-backend/acme".to_owned(),
        username: "anyone".to_owned(),
        password: "secret".to_owned(),
    };
    for (seed, backend) in [(1, cloud.clone()), (2, cloud.clone()), (3, http)] {
        let applied = applied(EstateOptions::new(200, 8, seed).backend(backend), Passing::Reads);
        let (edges, cannot_tell) = found_by_reads(&applied, "acme", &hosts);
        assert_eq!(edges, applied.estate.edges(), "seed {seed}");
        assert_eq!(cannot_tell, BTreeSet::from(["salt".to_owned()]));
    }
    let applied = applied(EstateOptions::new(200, 8, 4).hard().backend(cloud), Passing::Reads);
    let (edges, cannot_tell) = found_by_reads(&applied, "acme", &hosts);
    assert_eq!(edges.keys().collect::<Vec<_>>(), applied.estate.edges().keys().collect::<Vec<_>>());
    assert!(cannot_tell.contains("region") && cannot_tell.contains("account"), "{cannot_tell:?}");
    for (edge, used) in &applied.estate.edges() {
        assert!(used.iter().all(|name| edges[edge].contains(name) || cannot_tell.contains(name)), "{edge:?}");
    }
}

#[test]
fn an_estate_knows_what_becomes_stale() {
    let mut applied = applied(EstateOptions::new(60, 5, 9), Passing::Reads);
    assert_eq!(applied.stale(), BTreeSet::new());
    for changed in ["u0000", "u0005", "u0011"] {
        applied.estate.touch(changed);
        applied.apply(changed);
        let next: BTreeSet<String> = applied.estate.expect_next(changed).into_iter().collect();
        assert_eq!(applied.stale(), next, "{changed}");
        for unit in applied.estate.expect(changed) {
            assert!(applied.stale().contains(&unit), "{unit} after {changed}");
            applied.refresh(&unit);
            assert!(applied.stale().contains(&unit), "a refresh changes no resource");
            applied.apply(&unit);
        }
        assert_eq!(applied.stale(), BTreeSet::new());
    }
}
