//! Seeded histories of walks: random graphs, runs that end in every way, people who approve, cancel, resume and apply
//! beside the walk, and servers that advance it again and again. Mistakes that are planted on purpose have to be found.

mod promises;
mod sabotage;
mod world;

use std::collections::BTreeMap;

use jiff::SignedDuration;
use taco_words::graph::{WalkKind, WalkNodeState, WalkState};

use self::sabotage::Sabotage;
use self::world::World;
use crate::walks::walk::{Walk, WalkId, WalkNode};

/// Moments in which things go wrong, and those in which everything comes to an end.
const BAD_MOMENTS: usize = 400;
const CALM_MOMENTS: usize = 3600;

/// The world after the history of one seed.
fn live_through(seed: u64, sabotage: Sabotage) -> World {
    let mut world = World::new(seed, sabotage);
    for moment in 0..BAD_MOMENTS + CALM_MOMENTS {
        world.is_calm = moment > BAD_MOMENTS;
        world.now += SignedDuration::from_secs(1);
        match world.chance.below(4) {
            0 => world.person(),
            1 | 2 => world.agent(),
            _ => world.advance(),
        }
        let is_over = world.is_calm && !world.walk.is_open();
        if is_over || (sabotage != Sabotage::None && !world.broken.is_empty()) {
            break;
        }
    }
    world.check_at_rest();
    world
}

#[test]
fn walks_keep_their_promises_whatever_happens() {
    let mut ends = BTreeMap::new();
    let (mut cut_off, mut applied, mut outdated) = (0, 0, 0);
    for seed in 1..=1500 {
        let world = live_through(seed, Sabotage::None);
        assert!(world.broken.is_empty(), "seed {seed}: {:#?}", world.broken);
        *ends.entry(world.walk.state).or_insert(0) += 1;
        cut_off += world.nodes.values().filter(|node| node.state == WalkNodeState::CutOff).count();
        applied += world.applied.len();
        outdated += world.nodes.values().filter(|node| node.outdated > 0).count();
    }
    for state in [WalkState::Done, WalkState::Failed, WalkState::Canceled] {
        assert!(ends.get(&state).is_some_and(|count| *count > 20), "{ends:?}");
    }
    assert!(cut_off > 500 && applied > 500 && outdated > 5, "{cut_off} {applied} {outdated}: too little happened");
}

#[test]
fn a_seed_replays_identically() {
    let lives = |seed| {
        let world = live_through(seed, Sabotage::None);
        format!("{:?} {:?} {:?}", world.walk, world.nodes, world.runs)
    };
    for seed in 1..=20 {
        assert_eq!(lives(seed), lives(seed), "seed {seed}");
    }
}

#[test]
fn every_planted_mistake_breaks_what_it_has_to_break() {
    for (sabotage, promise) in Sabotage::PLANTED {
        let breaks = |seed| live_through(seed, sabotage).broken.has(promise);
        assert!((1..=300).any(breaks), "in 300 histories {sabotage:?} did not break {promise:?}");
    }
}

/// A walk over one after another, with nobody interfering, until it is over.
fn walk_calmly(world: &mut World) {
    world.is_calm = true;
    for _ in 0..CALM_MOMENTS {
        if !world.walk.is_open() {
            return;
        }
        world.advance();
        world.agent();
        world.person();
    }
    panic!("the walk never ends");
}

#[test]
fn an_unchanged_estate_costs_no_run_and_a_walk_leaves_one() {
    for seed in 1..=200 {
        let mut world = World::new(seed, Sabotage::None);
        world.walk.kind = WalkKind::Apply;
        world.nodes = world.choose();
        walk_calmly(&mut world);
        // Once more: what was done is done.
        world.walk = Walk { state: WalkState::Running, ended_at: None, id: WalkId::from_random([8; 16]), ..world.walk };
        let walk = world.walk.id;
        let again = world.nodes.values().map(|node| {
            (node.workspace, WalkNode::new(walk, node.workspace, &node.name, node.position, node.needs.clone()))
        });
        world.nodes = again.collect();
        walk_calmly(&mut world);
        assert_eq!(world.walk.state, WalkState::Done);
        assert!(world.broken.is_empty(), "seed {seed}: {:#?}", world.broken);
        for node in world.nodes.values() {
            // Of what was never applied nobody knows anything.
            let mut uses = world.units[&node.workspace].uses.iter();
            let is_known = uses.all(|used| world.units[&used.producer.expect("a unit")].outputs.is_some());
            assert!(node.runs.is_empty() || !is_known, "seed {seed}: {node:?}");
        }
    }
}
