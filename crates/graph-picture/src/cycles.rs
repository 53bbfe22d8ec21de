//! Cycles: units that use each other's outputs in a circle. That is legal, and never what somebody wanted.

use crate::document::Graph;

/// Groups of two or more units that use each other, directly or through others. Names are in order.
pub fn cycles(graph: &Graph) -> Vec<Vec<String>> {
    let mut names: Vec<&str> = graph.units.iter().map(|unit| unit.name.as_str()).collect();
    names.sort_unstable();
    names.dedup();
    let place = |name: &str| names.binary_search(&name).ok();
    let mut consumers = vec![Vec::new(); names.len()];
    for edge in graph.edges.iter().filter(|edge| edge.counts()) {
        if let (Some(producer), Some(consumer)) = (place(&edge.producer), place(&edge.consumer)) {
            consumers[producer].push(consumer);
        }
    }
    let components = components(&consumers);
    let mut members = vec![Vec::new(); names.len()];
    for (node, component) in components.iter().enumerate() {
        members[*component].push(names[node].to_owned());
    }
    let mut cycles: Vec<Vec<String>> = members.into_iter().filter(|members| members.len() > 1).collect();
    cycles.sort_unstable();
    cycles
}

/// By node, the number of its strongly connected component: Tarjan's algorithm, with a stack of its own, since a chain of
/// units may be long.
pub(crate) fn components(targets: &[Vec<usize>]) -> Vec<usize> {
    const UNSEEN: usize = usize::MAX;
    let count = targets.len();
    let (mut seen_at, mut lowest) = (vec![UNSEEN; count], vec![0; count]);
    let mut component = vec![UNSEEN; count];
    let (mut open, mut clock, mut found) = (Vec::new(), 0, 0);
    for root in 0..count {
        if seen_at[root] != UNSEEN {
            continue;
        }
        // A node, and how many of its targets were followed.
        let mut path = vec![(root, 0)];
        while let Some((node, followed)) = path.last_mut() {
            let node = *node;
            if *followed == 0 {
                (seen_at[node], lowest[node]) = (clock, clock);
                clock += 1;
                open.push(node);
            }
            if let Some(&target) = targets[node].get(*followed) {
                *followed += 1;
                if seen_at[target] == UNSEEN {
                    path.push((target, 0));
                } else if component[target] == UNSEEN {
                    lowest[node] = lowest[node].min(seen_at[target]);
                }
                continue;
            }
            path.pop();
            if let Some((above, _)) = path.last() {
                lowest[*above] = lowest[*above].min(lowest[node]);
            }
            if lowest[node] == seen_at[node] {
                while let Some(member) = open.pop() {
                    component[member] = found;
                    if member == node {
                        break;
                    }
                }
                found += 1;
            }
        }
    }
    component
}

#[cfg(test)]
mod tests {
    use taco_words::graph::{EdgeStatus, Freshness};

    use super::*;
    use crate::document::{Edge, Unit};

    fn graph(names: &[&str], edges: &[(&str, &str)]) -> Graph {
        Graph {
            units: names.iter().map(|name| Unit::new(*name, Freshness::Clean)).collect(),
            edges: edges.iter().map(|(from, to)| Edge::new(*to, *from, EdgeStatus::Fresh)).collect(),
        }
    }

    #[test]
    fn units_that_use_each_other_are_found() {
        let names = ["a", "b", "c", "d", "e", "f"];
        let edges = [("a", "b"), ("b", "c"), ("c", "a"), ("c", "d"), ("e", "f"), ("f", "e"), ("d", "f")];
        assert_eq!(cycles(&graph(&names, &edges)), [vec!["a", "b", "c"], vec!["e", "f"]]);
        assert!(cycles(&graph(&names, &[("a", "b"), ("a", "c"), ("b", "d"), ("c", "d")])).is_empty());
    }

    #[test]
    fn an_edge_that_does_not_count_makes_no_cycle() {
        let mut graph = graph(&["a", "b"], &[("a", "b"), ("b", "a")]);
        graph.edges[1].muted = true;
        assert!(cycles(&graph).is_empty());
    }

    #[test]
    fn a_chain_of_a_hundred_thousand_needs_no_deep_stack() {
        let chain: Vec<Vec<usize>> =
            (0..100_000).map(|node| if node < 99_999 { vec![node + 1] } else { vec![] }).collect();
        let mut components = components(&chain);
        components.sort_unstable();
        components.dedup();
        assert_eq!(components.len(), 100_000);
    }
}
