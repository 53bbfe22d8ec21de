//! Filters: the part of a graph that somebody wants to see.

use std::collections::{BTreeMap, BTreeSet};

use crate::document::{Edge, Graph, Unit};
use crate::picture::Grouping;

/// What of a graph is wanted; everything that is given must hold.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Filter {
    pub project: Option<String>,
    /// As `key`, whatever its value, or `key:value`.
    pub tag: Option<String>,
    /// What names begin with: see [`Grouping::Prefixes`].
    pub prefix: Option<String>,
    /// Only units that are stale or broken, with the producers that made them so.
    pub stale: bool,
    /// Only this unit, what it uses and what uses it.
    pub around: Option<String>,
    /// How many steps from that unit; `None` is as far as it goes.
    pub hops: Option<usize>,
}

impl Filter {
    /// True if it leaves something out.
    pub fn narrows(&self) -> bool {
        self.project.is_some() || self.tag.is_some() || self.prefix.is_some() || self.stale || self.around.is_some()
    }

    /// The wanted units and the edges between them. Edges to what is no unit here stay with the
    /// unit at their other end.
    #[must_use]
    pub fn of(&self, graph: &Graph) -> Graph {
        if !self.narrows() {
            return graph.clone();
        }
        let all: BTreeSet<&str> = graph.units.iter().map(|unit| unit.name.as_str()).collect();
        let mut wanted: BTreeSet<&str> =
            graph.units.iter().filter(|unit| self.wants(unit)).map(|unit| unit.name.as_str()).collect();
        if let Some(unit) = &self.around {
            let near = around(graph, unit, self.hops.unwrap_or(usize::MAX));
            wanted.retain(|name| near.contains(name));
        }
        if self.stale {
            let culprits = graph.edges.iter().filter(|edge| edge.is_stale() && wanted.contains(edge.consumer.as_str()));
            let culprits: Vec<&str> = culprits.map(|edge| edge.producer.as_str()).collect();
            wanted.extend(culprits.into_iter().filter(|name| all.contains(name)));
        }
        let is_wanted = |edge: &&Edge| {
            let ends = [edge.consumer.as_str(), edge.producer.as_str()];
            ends.iter().any(|name| wanted.contains(name))
                && ends.iter().all(|name| wanted.contains(name) || !all.contains(name))
        };
        Graph {
            units: graph.units.iter().filter(|unit| wanted.contains(unit.name.as_str())).cloned().collect(),
            edges: graph.edges.iter().filter(is_wanted).cloned().collect(),
        }
    }

    fn wants(&self, unit: &Unit) -> bool {
        let has = |wanted: &String| {
            unit.tags.iter().any(|tag| tag == wanted || tag.split_once(':').is_some_and(|(key, _)| key == wanted))
        };
        self.project.as_ref().is_none_or(|project| *project == unit.project)
            && self.tag.as_ref().is_none_or(has)
            && self.prefix.as_ref().is_none_or(|prefix| prefix == Grouping::Prefixes.group_of(unit))
            && (!self.stale || unit.is_stale())
    }
}

/// What a unit uses, and what uses it, so many steps away. Siblings, which only share a producer, are not among them.
fn around<'a>(graph: &'a Graph, unit: &'a str, hops: usize) -> BTreeSet<&'a str> {
    let units: BTreeSet<&str> = graph.units.iter().map(|unit| unit.name.as_str()).collect();
    let (mut above, mut below) = (BTreeMap::<&str, Vec<&str>>::new(), BTreeMap::<&str, Vec<&str>>::new());
    for edge in &graph.edges {
        above.entry(&edge.consumer).or_default().push(&edge.producer);
        below.entry(&edge.producer).or_default().push(&edge.consumer);
    }
    let mut found = BTreeSet::from([unit]);
    for neighbours in [above, below] {
        let mut seen = BTreeSet::from([unit]);
        let (mut front, mut steps) = (vec![unit], 0);
        while !front.is_empty() && steps < hops {
            let next = front.iter().filter_map(|name| neighbours.get(name)).flatten().copied();
            front = next.filter(|name| units.contains(name) && seen.insert(name)).collect();
            steps += 1;
        }
        found.extend(seen);
    }
    found
}

#[cfg(test)]
mod tests {
    use taco_words::graph::{EdgeStatus, Freshness};

    use super::*;

    /// dns → network → cluster → app, network → other, network → old.
    fn estate() -> Graph {
        let unit = |name: &str, project: &str, tags: &[&str], freshness| Unit {
            project: project.to_owned(),
            tags: tags.iter().map(|tag| (*tag).to_owned()).collect(),
            ..Unit::new(name, freshness)
        };
        Graph {
            units: vec![
                unit("dns", "base", &["env:prod"], Freshness::Clean),
                unit("network", "base", &["env:prod", "shared"], Freshness::Clean),
                unit("cluster", "platform", &["env:prod"], Freshness::Stale),
                unit("app", "apps", &["env:test"], Freshness::Unknown),
                unit("other", "apps", &[], Freshness::Clean),
            ],
            edges: vec![
                Edge::new("network", "dns", EdgeStatus::Fresh),
                Edge::new("cluster", "network", EdgeStatus::Stale),
                Edge::new("app", "cluster", EdgeStatus::Unknown),
                Edge::new("other", "network", EdgeStatus::Fresh),
                Edge::new("app", "a state elsewhere", EdgeStatus::Unbound),
            ],
        }
    }

    fn kept(filter: &Filter) -> (Vec<String>, usize) {
        let graph = filter.of(&estate());
        (graph.units.into_iter().map(|unit| unit.name).collect(), graph.edges.len())
    }

    #[test]
    fn a_part_is_named_by_project_tag_and_freshness() {
        let of = |filter: Filter| kept(&filter);
        assert_eq!(of(Filter::default()).0.len(), 5);
        let project = |name: &str| Filter { project: Some(name.into()), ..Filter::default() };
        assert_eq!(of(project("base")), (vec!["dns".into(), "network".into()], 1));
        assert_eq!(of(project("apps")).1, 1, "an edge from elsewhere stays with its consumer");
        let tag = |name: &str| Filter { tag: Some(name.into()), ..Filter::default() };
        assert_eq!(of(tag("env")).0, ["dns", "network", "cluster", "app"]);
        assert_eq!(of(tag("env:test")).0, ["app"]);
        assert_eq!(of(tag("shared")).0, ["network"]);
        let prefix = Filter { prefix: Some("dns".into()), ..Filter::default() };
        assert_eq!(of(prefix).0, ["dns"]);
        let stale = Filter { stale: true, ..Filter::default() };
        assert_eq!(of(stale), (vec!["network".into(), "cluster".into()], 1));
        let nothing = Filter { tag: Some("shared".into()), project: Some("apps".into()), ..Filter::default() };
        assert_eq!(of(nothing), (vec![], 0));
    }

    #[test]
    fn around_a_unit_is_what_it_uses_and_what_uses_it() {
        let around = |name: &str, hops| kept(&Filter { around: Some(name.into()), hops, ..Filter::default() }).0;
        assert_eq!(around("cluster", Some(1)), ["network", "cluster", "app"]);
        assert_eq!(around("cluster", None), ["dns", "network", "cluster", "app"]);
        assert_eq!(around("cluster", Some(0)), ["cluster"]);
        assert_eq!(around("network", Some(1)), ["dns", "network", "cluster", "other"]);
        assert!(around("nowhere", None).is_empty());
    }
}
