//! Pictures: which boxes to draw of a graph, and which lines between them. A cycle is one box, and so is a group of units.

use std::collections::{BTreeMap, BTreeSet};

use taco_words::graph::{EdgeStatus, Freshness};

use crate::cycles::cycles;
use crate::document::{Edge, Graph, Unit};

/// Of more units, a picture shows groups.
pub const MAX_UNITS_APART: usize = 300;

/// What gets a box of its own.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum Grouping {
    #[default]
    Units,
    Projects,
    /// What names have before their first `/`, `-` or `_`.
    Prefixes,
}

impl Grouping {
    /// The finest grouping that can be looked at.
    pub fn fitting(graph: &Graph) -> Self {
        if graph.units.len() <= MAX_UNITS_APART {
            return Self::Units;
        }
        let groups =
            |grouping: Self| graph.units.iter().map(|unit| grouping.group_of(unit)).collect::<BTreeSet<_>>().len();
        let fits = |grouping: &Self| (2..=MAX_UNITS_APART).contains(&groups(*grouping));
        [Self::Projects, Self::Prefixes].into_iter().find(fits).unwrap_or(Self::Units)
    }

    /// Name of the group that a unit is in.
    pub fn group_of(self, unit: &Unit) -> &str {
        match self {
            Self::Units => &unit.name,
            Self::Projects => &unit.project,
            Self::Prefixes => {
                let prefix = unit.name.split(['/', '-', '_']).next().unwrap_or_default();
                if prefix.is_empty() { &unit.name } else { prefix }
            }
        }
    }
}

/// Boxes and lines.
#[derive(Clone, PartialEq, Debug)]
pub struct Picture {
    /// By name.
    pub nodes: Vec<Node>,
    pub links: Vec<Link>,
    /// Units that use each other in a circle. See [`cycles`].
    pub cycles: Vec<Vec<String>>,
    pub grouping: Grouping,
}

/// One box.
#[derive(Clone, PartialEq, Debug)]
pub struct Node {
    pub name: String,
    pub body: Body,
}

/// What a box stands for.
#[derive(Clone, PartialEq, Debug)]
pub enum Body {
    Unit(Unit),
    /// Two or more units that were put together.
    Group(Vec<Unit>),
    /// Units that use each other.
    Cycle(Vec<Unit>),
    /// A producer or consumer that is no unit here.
    Elsewhere,
}

/// One line, from a producer to its consumer, by their places among the nodes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Link {
    pub producer: usize,
    pub consumer: usize,
    /// Of several edges, what asks for attention most.
    pub status: EdgeStatus,
    pub certain: bool,
    /// False if no edge in it counts.
    pub counts: bool,
    pub outputs: Vec<String>,
    pub grades: Vec<taco_words::graph::Grade>,
    /// How many edges it stands for.
    pub edges: usize,
}

impl Node {
    /// Of several units, the freshness that asks for attention most.
    pub fn freshness(&self) -> Freshness {
        match &self.body {
            Body::Unit(unit) => unit.freshness,
            Body::Group(units) | Body::Cycle(units) => {
                let worst = units.iter().map(|unit| unit.freshness).max_by_key(|freshness| urgency(*freshness));
                worst.unwrap_or(Freshness::Unknown)
            }
            Body::Elsewhere => Freshness::Unknown,
        }
    }

    /// The units that it stands for.
    pub fn units(&self) -> &[Unit] {
        match &self.body {
            Body::Unit(unit) => std::slice::from_ref(unit),
            Body::Group(units) | Body::Cycle(units) => units,
            Body::Elsewhere => &[],
        }
    }
}

/// How much a freshness asks for attention: a group has that of its most urgent unit, and lists begin with it.
pub fn urgency(freshness: Freshness) -> u8 {
    match freshness {
        Freshness::Clean => 0,
        Freshness::NeverApplied => 1,
        Freshness::MayChange => 2,
        Freshness::Unknown => 3,
        Freshness::Stale => 4,
        Freshness::Broken => 5,
    }
}

fn edge_urgency(status: EdgeStatus) -> u8 {
    match status {
        EdgeStatus::Fresh => 0,
        EdgeStatus::Unobserved => 1,
        EdgeStatus::Unbound => 2,
        EdgeStatus::Opaque => 3,
        EdgeStatus::Unknown => 4,
        EdgeStatus::Stale => 5,
        EdgeStatus::Retyped => 6,
        EdgeStatus::Missing => 7,
    }
}

impl Picture {
    pub fn of<'a>(graph: &'a Graph, grouping: Grouping) -> Self {
        let cycles = cycles(graph);
        let in_cycle: BTreeMap<&str, usize> = cycles
            .iter()
            .enumerate()
            .flat_map(|(number, names)| names.iter().map(move |name| (name.as_str(), number)))
            .collect();
        // By what tells boxes apart: first their kind, so that no group is mixed up with a unit of its name.
        let mut boxes: BTreeMap<(u8, &str), Vec<&Unit>> = BTreeMap::new();
        let mut box_of: BTreeMap<&str, (u8, &str)> = BTreeMap::new();
        for unit in &graph.units {
            let key = match (grouping, in_cycle.get(unit.name.as_str())) {
                (Grouping::Units, Some(cycle)) => (1, cycles[*cycle][0].as_str()),
                (Grouping::Units, None) => (0, unit.name.as_str()),
                (_, _) => (2, grouping.group_of(unit)),
            };
            if box_of.insert(&unit.name, key).is_none() {
                boxes.entry(key).or_default().push(unit);
            }
        }
        // Ends of edges that are no units here: as producers and as consumers apart, so that they close no circle.
        let mut places_elsewhere = |name: &'a str, kind: u8, other: &str| {
            if box_of.contains_key(other) && !box_of.contains_key(name) {
                boxes.entry((kind, name)).or_default();
            }
        };
        for edge in &graph.edges {
            places_elsewhere(&edge.producer, 3, &edge.consumer);
            places_elsewhere(&edge.consumer, 4, &edge.producer);
        }
        let mut sorted: Vec<((u8, &str), Vec<&Unit>)> = boxes.into_iter().collect();
        sorted.sort_by(|((kind, name), _), ((other_kind, other), _)| (name, kind).cmp(&(other, other_kind)));
        let places: BTreeMap<(u8, &str), usize> = sorted.iter().enumerate().map(|(at, (key, _))| (*key, at)).collect();
        let place = |name: &'a str, elsewhere: u8| places.get(box_of.get(name).unwrap_or(&(elsewhere, name))).copied();
        let links = links(&graph.edges, |edge| Some((place(&edge.producer, 3)?, place(&edge.consumer, 4)?)));
        let nodes = sorted.into_iter().map(|((kind, name), units)| node(kind, name, units)).collect();
        Self { nodes, links, cycles, grouping }
    }
}

fn node(kind: u8, name: &str, units: Vec<&Unit>) -> Node {
    let mut units: Vec<Unit> = units.into_iter().cloned().collect();
    units.sort_by(|one, other| one.name.cmp(&other.name));
    let name = match kind {
        2 if name.is_empty() => "without a project".to_owned(),
        3 | 4 if name.is_empty() => "a unit you may not see".to_owned(),
        _ => name.to_owned(),
    };
    match (kind, units.len()) {
        (1, _) => Node { name, body: Body::Cycle(units) },
        (3 | 4, _) => Node { name, body: Body::Elsewhere },
        (_, 1) => {
            let unit = units.remove(0);
            Node { name: unit.name.clone(), body: Body::Unit(unit) }
        }
        (_, _) => Node { name, body: Body::Group(units) },
    }
}

fn links<'a>(edges: &'a [Edge], places: impl Fn(&'a Edge) -> Option<(usize, usize)>) -> Vec<Link> {
    let mut links: BTreeMap<(usize, usize), Link> = BTreeMap::new();
    for edge in edges {
        let Some((producer, consumer)) = places(edge) else { continue };
        if producer == consumer {
            continue;
        }
        let link = links.entry((producer, consumer)).or_insert_with(|| Link {
            producer,
            consumer,
            status: EdgeStatus::Fresh,
            certain: true,
            counts: false,
            outputs: Vec::new(),
            grades: Vec::new(),
            edges: 0,
        });
        link.edges += 1;
        link.outputs.extend(edge.outputs.iter().cloned());
        link.grades.extend(edge.grades.iter().copied());
        let (new, old) = (edge_urgency(edge.status), edge_urgency(link.status));
        if edge.counts() && (!link.counts || new > old || (new == old && edge.certain)) {
            (link.status, link.certain, link.counts) = (edge.status, edge.certain, true);
        } else if !link.counts && (link.edges == 1 || new > old) {
            (link.status, link.certain) = (edge.status, edge.certain);
        }
    }
    let mut links: Vec<Link> = links.into_values().collect();
    for link in &mut links {
        link.outputs.sort_unstable();
        link.outputs.dedup();
        link.grades.sort_unstable();
        link.grades.dedup();
    }
    links
}

#[cfg(test)]
mod tests {
    use taco_words::graph::EdgePolicy;

    use super::*;

    fn unit(name: &str, project: &str, freshness: Freshness) -> Unit {
        Unit { project: project.to_owned(), ..Unit::new(name, freshness) }
    }

    fn names(picture: &Picture) -> Vec<&str> {
        picture.nodes.iter().map(|node| node.name.as_str()).collect()
    }

    #[test]
    fn a_cycle_is_one_box() {
        let graph = Graph {
            units: vec![
                unit("c", "", Freshness::Clean),
                unit("a", "", Freshness::Clean),
                unit("b", "", Freshness::Stale),
            ],
            edges: vec![
                Edge::new("b", "a", EdgeStatus::Fresh),
                Edge::new("a", "b", EdgeStatus::Stale),
                Edge::new("c", "b", EdgeStatus::Fresh),
                Edge::new("c", "a", EdgeStatus::Stale),
            ],
        };
        let picture = Picture::of(&graph, Grouping::Units);
        assert_eq!(names(&picture), ["a", "c"]);
        assert!(matches!(&picture.nodes[0].body, Body::Cycle(units) if units.len() == 2));
        assert_eq!(picture.nodes[0].freshness(), Freshness::Stale);
        assert_eq!((picture.links.len(), picture.links[0].status), (1, EdgeStatus::Stale));
        assert_eq!(picture.cycles, [vec!["a", "b"]]);
    }

    #[test]
    fn units_of_a_project_or_with_one_prefix_are_one_box() {
        let graph = Graph {
            units: vec![
                unit("prod-app", "apps", Freshness::Clean),
                unit("prod/db", "data", Freshness::Stale),
                unit("test_app", "apps", Freshness::Unknown),
            ],
            edges: vec![
                Edge::new("prod-app", "prod/db", EdgeStatus::Stale),
                Edge::new("test_app", "prod/db", EdgeStatus::Fresh),
                Edge::new("test_app", "", EdgeStatus::Unbound),
            ],
        };
        let projects = Picture::of(&graph, Grouping::Projects);
        assert_eq!(names(&projects), ["a unit you may not see", "apps", "prod/db"], "one unit needs no group");
        let link = projects.links.iter().find(|link| link.edges == 2).expect("both edges are one line");
        assert_eq!((link.status, link.producer, link.consumer), (EdgeStatus::Stale, 2, 1));
        let prefixes = Picture::of(&graph, Grouping::Prefixes);
        assert_eq!(names(&prefixes), ["a unit you may not see", "prod", "test_app"]);
        assert_eq!(prefixes.nodes[1].freshness(), Freshness::Stale);
    }

    #[test]
    fn units_that_may_not_be_seen_close_no_circle() {
        let hidden = "a unit you may not see";
        let graph = Graph {
            units: vec![unit("app", "", Freshness::Clean)],
            edges: vec![
                Edge::new("app", hidden, EdgeStatus::Fresh),
                Edge::new(hidden, "app", EdgeStatus::Fresh),
                Edge::new(hidden, "s3://other/state", EdgeStatus::Unbound),
            ],
        };
        let picture = Picture::of(&graph, Grouping::Units);
        assert_eq!(names(&picture), [hidden, hidden, "app"]);
        let ends: Vec<(usize, usize)> = picture.links.iter().map(|link| (link.producer, link.consumer)).collect();
        assert_eq!(ends, [(0, 2), (2, 1)]);
    }

    #[test]
    fn what_does_not_count_decides_nothing_beside_what_does() {
        let units =
            vec![unit("a", "x", Freshness::Clean), unit("b", "y", Freshness::Clean), unit("c", "y", Freshness::Clean)];
        let mut edges = vec![Edge::new("b", "a", EdgeStatus::Stale), Edge::new("c", "a", EdgeStatus::Fresh)];
        edges[0].policy = Some(EdgePolicy::Ignore);
        let picture = Picture::of(&Graph { units, edges: edges.clone() }, Grouping::Projects);
        assert_eq!((picture.links[0].status, picture.links[0].counts), (EdgeStatus::Fresh, true));
        let units = vec![unit("a", "x", Freshness::Clean), unit("b", "y", Freshness::Clean)];
        let picture = Picture::of(&Graph { units, edges: edges[..1].to_vec() }, Grouping::Units);
        assert_eq!((picture.links[0].status, picture.links[0].counts), (EdgeStatus::Stale, false));
    }

    #[test]
    fn many_units_are_grouped_by_what_tells_them_apart() {
        let many = |name: &dyn Fn(usize) -> (String, String)| Graph {
            units: (0..400).map(name).map(|(name, project)| unit(&name, &project, Freshness::Clean)).collect(),
            edges: Vec::new(),
        };
        let of_projects = many(&|number| (format!("u{number}"), format!("p{}", number % 7)));
        assert_eq!(Grouping::fitting(&of_projects), Grouping::Projects);
        let of_prefixes = many(&|number| (format!("env{}-u{number}", number % 5), "Default".to_owned()));
        assert_eq!(Grouping::fitting(&of_prefixes), Grouping::Prefixes);
        assert_eq!(Grouping::fitting(&many(&|number| (format!("u{number}"), "Default".to_owned()))), Grouping::Units);
        let few = Graph { units: of_projects.units[..300].to_vec(), edges: Vec::new() };
        assert_eq!(Grouping::fitting(&few), Grouping::Units);
    }
}
