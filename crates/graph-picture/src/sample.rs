//! Estates for tests and benchmarks.

use taco_words::graph::{EdgeStatus, Freshness};

use crate::document::{Edge, Graph, Unit};

/// So many units in layers, with about so many edges from earlier ones to later ones.
pub fn estate(units: usize, edges: usize) -> Graph {
    // Knuth's generator of numbers: good enough, and the same everywhere.
    let mut seed = 7_u64;
    let mut next = |below: usize| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (seed >> 33) as usize % below
    };
    let name = |number: usize| {
        format!(
            "{}-{}-{number:04}",
            ["prod", "stage", "test"][number % 3],
            ["app", "db", "network", "queue"][number % 4]
        )
    };
    let layers = 6;
    let freshness = |number: usize| Freshness::ALL[number % Freshness::ALL.len()];
    let unit = |number: usize| Unit {
        project: format!("team-{}", number % 12),
        ..Unit::new(name(number), freshness(number / 7))
    };
    let edge = |_| {
        let consumer = units / layers + next(units - units / layers);
        let layer = consumer * layers / units;
        let producer = next((layer * units / layers).max(1));
        Edge {
            outputs: vec!["id".to_owned(), "address".to_owned()],
            ..Edge::new(name(consumer), name(producer), EdgeStatus::ALL[next(3) / 2])
        }
    };
    Graph { units: (0..units).map(unit).collect(), edges: (0..edges).map(edge).collect() }
}
