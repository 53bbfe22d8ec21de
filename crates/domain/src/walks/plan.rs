//! The choice of a walk's units, and their order.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use taco_words::graph::{Freshness, WalkKind};

use crate::id::WorkspaceId;
use crate::walks::facts::list;

/// A unit that a walk could have.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct WalkUnit {
    pub id: WorkspaceId,
    pub name: String,
    pub freshness: Freshness,
}

/// One unit's use of another, for the order.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct WalkEdge {
    pub consumer: WorkspaceId,
    pub producer: WorkspaceId,
}

/// The units that a person wants.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Selection {
    /// These and all that use them, directly or not.
    From(Vec<String>),
    /// Those whose inputs have changed, and all that use them.
    Stale,
    All,
}

/// A request for a walk.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct WalkRequest {
    pub kind: WalkKind,
    pub selection: Selection,
    /// Only units that lead to one of these; empty for no such limit.
    pub to: Vec<String>,
    /// A destroy may leave units outside that use what is destroyed.
    pub leaves_consumers: bool,
}

/// One unit's place in a walk.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PlannedNode {
    pub unit: WorkspaceId,
    pub name: String,
    pub needs: Vec<WorkspaceId>,
}

/// Reason why there can be no such walk.
#[derive(Clone, PartialEq, Eq, thiserror::Error, Debug)]
pub enum WalkRefusal {
    #[error("There is no workspace {0} in this organization, or you may not see it")]
    Unknown(String),
    #[error("Name at least one workspace from which the walk begins")]
    NoStart,
    #[error("No chosen workspace leads to {0}")]
    LeadsNowhere(String),
    #[error(
        "These workspaces use each other in a circle, so none of them can come first: {0}. Mute one of these dependencies, or choose other workspaces"
    )]
    Cycle(String),
    #[error(
        "{consumers} would be left without {producers}: take them in, or say that they may be left (leave-consumers)"
    )]
    LeavesConsumers { consumers: String, producers: String },
}

/// The units of a walk in order: none comes before what it needs. A destroy goes the other way, consumers first.
pub fn plan_walk(
    units: &[WalkUnit],
    edges: &[WalkEdge],
    request: &WalkRequest,
) -> Result<Vec<PlannedNode>, WalkRefusal> {
    let graph = Graph::new(units, edges);
    let starts = match &request.selection {
        Selection::From(names) if names.is_empty() => return Err(WalkRefusal::NoStart),
        Selection::From(names) => graph.named(names)?,
        Selection::Stale => {
            let is_stale = |unit: &&WalkUnit| matches!(unit.freshness, Freshness::Stale | Freshness::Broken);
            units.iter().filter(is_stale).map(|unit| unit.id).collect()
        }
        Selection::All => units.iter().map(|unit| unit.id).collect(),
    };
    let mut chosen = reachable(&starts, &graph.consumers);
    let ends = graph.named(&request.to)?;
    if !ends.is_empty() {
        let outside = ends.iter().filter(|end| !chosen.contains(end) && request.selection != Selection::Stale);
        if let Some(names) = list(outside.map(|end| graph.name(*end))) {
            return Err(WalkRefusal::LeadsNowhere(names));
        }
        let leading = reachable(&ends, &graph.producers);
        chosen.retain(|unit| leading.contains(unit));
    }
    if request.kind == WalkKind::Destroy && !request.leaves_consumers {
        graph.check_leaves_no_consumer(&chosen)?;
    }
    graph.in_order(&chosen, request.kind)
}

/// Units and their neighbours.
struct Graph<'a> {
    names: BTreeMap<WorkspaceId, &'a str>,
    ids: BTreeMap<&'a str, WorkspaceId>,
    consumers: Neighbours,
    producers: Neighbours,
}

type Neighbours = BTreeMap<WorkspaceId, BTreeSet<WorkspaceId>>;

impl<'a> Graph<'a> {
    fn new(units: &'a [WalkUnit], edges: &[WalkEdge]) -> Self {
        let mut graph = Self {
            names: units.iter().map(|unit| (unit.id, unit.name.as_str())).collect(),
            ids: units.iter().map(|unit| (unit.name.as_str(), unit.id)).collect(),
            consumers: Neighbours::new(),
            producers: Neighbours::new(),
        };
        for edge in edges {
            let is_known = [edge.consumer, edge.producer].iter().all(|unit| graph.names.contains_key(unit));
            if is_known && edge.consumer != edge.producer {
                graph.consumers.entry(edge.producer).or_default().insert(edge.consumer);
                graph.producers.entry(edge.consumer).or_default().insert(edge.producer);
            }
        }
        graph
    }

    fn name(&self, unit: WorkspaceId) -> &'a str {
        self.names.get(&unit).copied().unwrap_or_default()
    }

    fn named(&self, names: &[String]) -> Result<BTreeSet<WorkspaceId>, WalkRefusal> {
        let unknown = names.iter().filter(|name| !self.ids.contains_key(name.as_str()));
        if let Some(unknown) = list(unknown.map(String::as_str)) {
            return Err(WalkRefusal::Unknown(unknown));
        }
        Ok(names.iter().filter_map(|name| self.ids.get(name.as_str()).copied()).collect())
    }

    fn check_leaves_no_consumer(&self, chosen: &BTreeSet<WorkspaceId>) -> Result<(), WalkRefusal> {
        let (mut left, mut lost) = (BTreeSet::new(), BTreeSet::new());
        for producer in chosen {
            for consumer in self.consumers.get(producer).into_iter().flatten().filter(|id| !chosen.contains(id)) {
                left.insert(self.name(*consumer));
                lost.insert(self.name(*producer));
            }
        }
        match (list(left.into_iter()), list(lost.into_iter())) {
            (Some(consumers), Some(producers)) => Err(WalkRefusal::LeavesConsumers { consumers, producers }),
            _ => Ok(()),
        }
    }

    /// Kahn's algorithm, by name among those that are ready together.
    fn in_order(&self, chosen: &BTreeSet<WorkspaceId>, kind: WalkKind) -> Result<Vec<PlannedNode>, WalkRefusal> {
        let (before, after) = match kind {
            WalkKind::Plan | WalkKind::Apply => (&self.producers, &self.consumers),
            WalkKind::Destroy => (&self.consumers, &self.producers),
        };
        let inside = |neighbours: &Neighbours, unit: WorkspaceId| -> Vec<WorkspaceId> {
            neighbours.get(&unit).into_iter().flatten().copied().filter(|id| chosen.contains(id)).collect()
        };
        let mut open: BTreeMap<WorkspaceId, usize> =
            chosen.iter().map(|unit| (*unit, inside(before, *unit).len())).collect();
        let mut ready: BTreeSet<(&str, WorkspaceId)> =
            open.iter().filter(|(_, open)| **open == 0).map(|(unit, _)| (self.name(*unit), *unit)).collect();
        let mut order = Vec::with_capacity(chosen.len());
        while let Some((name, unit)) = ready.pop_first() {
            open.remove(&unit);
            order.push(PlannedNode { unit, name: name.to_owned(), needs: inside(before, unit) });
            for next in inside(after, unit) {
                if let Some(count) = open.get_mut(&next) {
                    *count -= 1;
                    if *count == 0 {
                        ready.insert((self.name(next), next));
                    }
                }
            }
        }
        if open.is_empty() { Ok(order) } else { Err(WalkRefusal::Cycle(self.cycle_in(&open, kind))) }
    }

    /// One circle among units of which each has another one before it. What hangs on a circle is among them, too.
    fn cycle_in(&self, open: &BTreeMap<WorkspaceId, usize>, kind: WalkKind) -> String {
        let before = if kind == WalkKind::Destroy { &self.consumers } else { &self.producers };
        let mut way: Vec<WorkspaceId> = Vec::new();
        let mut current = open.keys().next().copied();
        while let Some(unit) = current {
            if let Some(start) = way.iter().position(|seen| *seen == unit) {
                way.drain(..start);
                break;
            }
            way.push(unit);
            current = before.get(&unit).into_iter().flatten().find(|id| open.contains_key(id)).copied();
        }
        if kind == WalkKind::Destroy {
            way.reverse();
        }
        let names: Vec<&str> = way.iter().chain(way.first()).map(|unit| self.name(*unit)).collect();
        names.join(" uses ")
    }
}

/// These units and all that a way leads to.
fn reachable(starts: &BTreeSet<WorkspaceId>, neighbours: &Neighbours) -> BTreeSet<WorkspaceId> {
    let mut found = starts.clone();
    let mut queue: VecDeque<WorkspaceId> = starts.iter().copied().collect();
    while let Some(unit) = queue.pop_front() {
        for next in neighbours.get(&unit).into_iter().flatten() {
            if found.insert(*next) {
                queue.push_back(*next);
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(name: &str) -> WorkspaceId {
        WorkspaceId::from_random([name.as_bytes()[0]; 16])
    }

    fn units(names: &str) -> Vec<WalkUnit> {
        let unit = |name: &str| WalkUnit {
            id: id(name),
            name: name.trim_end_matches('!').to_owned(),
            freshness: if name.ends_with('!') { Freshness::Stale } else { Freshness::Clean },
        };
        names.split(' ').map(unit).collect()
    }

    /// `b>a`: b uses a.
    fn edges(edges: &str) -> Vec<WalkEdge> {
        let pairs = edges.split(' ').filter_map(|edge| edge.split_once('>'));
        pairs.map(|(consumer, producer)| WalkEdge { consumer: id(consumer), producer: id(producer) }).collect()
    }

    fn request(kind: WalkKind, selection: Selection) -> WalkRequest {
        WalkRequest { kind, selection, to: Vec::new(), leaves_consumers: false }
    }

    fn from(names: &[&str]) -> Selection {
        Selection::From(names.iter().map(|name| (*name).to_owned()).collect())
    }

    fn order(units: &[WalkUnit], edges: &[WalkEdge], request: &WalkRequest) -> String {
        let nodes = plan_walk(units, edges, request).expect("a walk");
        nodes.iter().map(|node| node.name.as_str()).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn units_come_after_what_they_use() {
        let (units, edges) = (units("a b! c d e"), edges("b>a c>b d>b e>d e>c c>a"));
        for (selection, expected) in [
            (from(&["b"]), "b c d e"),
            (from(&["d", "c"]), "c d e"),
            (Selection::Stale, "b c d e"),
            (Selection::All, "a b c d e"),
        ] {
            assert_eq!(order(&units, &edges, &request(WalkKind::Apply, selection)), expected);
        }
        let to = WalkRequest { to: vec!["c".to_owned()], ..request(WalkKind::Plan, from(&["a"])) };
        assert_eq!(order(&units, &edges, &to), "a b c");
        let nodes = plan_walk(&units, &edges, &to).expect("a walk");
        assert_eq!(BTreeSet::from_iter(nodes[2].needs.iter().copied()), BTreeSet::from([id("a"), id("b")]));
    }

    #[test]
    fn a_destroy_begins_with_consumers_and_leaves_none_unasked() {
        let (units, edges) = (units("a b c d"), edges("b>a c>b d>b"));
        assert_eq!(order(&units, &edges, &request(WalkKind::Destroy, from(&["b"]))), "c d b");
        let some = WalkRequest { to: vec!["c".to_owned()], ..request(WalkKind::Destroy, from(&["b"])) };
        let refusal = plan_walk(&units, &edges, &some).expect_err("d is left");
        assert_eq!(
            refusal.to_string(),
            "d would be left without b: take them in, or say that they may be left (leave-consumers)"
        );
        assert_eq!(order(&units, &edges, &WalkRequest { leaves_consumers: true, ..some }), "c b");
    }

    #[test]
    fn what_cannot_be_walked_is_refused_by_name() {
        let (units, edges) = (units("a b c d"), edges("b>a a>c c>b d>c"));
        let refused = |selection| plan_walk(&units, &edges, &request(WalkKind::Apply, selection)).expect_err("refused");
        for kind in [WalkKind::Apply, WalkKind::Destroy] {
            let refusal = plan_walk(&units, &edges, &request(kind, Selection::All)).expect_err("a circle");
            let WalkRefusal::Cycle(cycle) = refusal else { panic!("{refusal}") };
            let steps: Vec<&str> = cycle.split(" uses ").collect();
            assert_eq!((steps.len(), steps.first()), (4, steps.last()), "{cycle}");
            for step in ["a uses c", "c uses b", "b uses a"] {
                assert!(format!("{cycle} uses {}", steps[1]).contains(step), "{cycle}");
            }
        }
        assert_eq!(refused(from(&["x", "a", "y"])), WalkRefusal::Unknown("x and y".to_owned()));
        assert_eq!(refused(from(&[])), WalkRefusal::NoStart);
        let nowhere = WalkRequest { to: vec!["a".to_owned()], ..request(WalkKind::Apply, from(&["d"])) };
        assert_eq!(plan_walk(&units, &edges, &nowhere), Err(WalkRefusal::LeadsNowhere("a".to_owned())));
        assert_eq!(
            order(&units, &edges, &request(WalkKind::Apply, from(&["d"]))),
            "d",
            "a circle elsewhere is no harm"
        );
    }
}
