//! Pictures for Graphviz.

use std::fmt::Write as _;

use taco_words::graph::{EdgeStatus, Freshness};

use crate::look::Look;
use crate::picture::{Body, Link, Node, Picture};
use crate::text::{line, some_of};

/// Outputs that a line names.
const NAMED_OUTPUTS: usize = 4;

/// Writes a picture in the language of Graphviz, producers on the left.
pub fn dot(picture: &Picture) -> String {
    let mut dot =
        String::from("digraph states {\n  rankdir=LR;\n  node [shape=box, style=rounded, fontname=\"sans-serif\"];\n");
    for (number, node) in picture.nodes.iter().enumerate() {
        let (colour, style) = match node.freshness() {
            _ if matches!(node.body, Body::Elsewhere) => ("gray50", "dotted"),
            Freshness::Clean => ("darkgreen", "rounded"),
            Freshness::Stale => ("darkorange3", "rounded,bold"),
            Freshness::Broken => ("red3", "rounded,bold"),
            Freshness::MayChange => ("blue3", "rounded,dashed"),
            Freshness::Unknown => ("gray40", "rounded,dashed"),
            Freshness::NeverApplied => ("gray40", "rounded,dotted"),
        };
        writeln!(dot, "  n{number} [label={}, color={colour}, style=\"{style}\"];", quoted(&label(node)))
            .expect("a text takes all");
    }
    for link in &picture.links {
        let (colour, style) = match link.status {
            _ if !link.counts => ("gray80", "dotted"),
            EdgeStatus::Stale if link.certain => ("darkorange3", "bold"),
            EdgeStatus::Stale => ("darkorange3", "dashed"),
            EdgeStatus::Missing | EdgeStatus::Retyped => ("red3", "bold"),
            EdgeStatus::Fresh => ("gray40", "solid"),
            EdgeStatus::Unbound | EdgeStatus::Unobserved | EdgeStatus::Opaque | EdgeStatus::Unknown => {
                ("gray40", "dashed")
            }
        };
        let label = match link_label(link).as_str() {
            "" => String::new(),
            label => format!(", label={}", quoted(label)),
        };
        writeln!(dot, "  n{} -> n{} [color={colour}, style={style}{label}];", link.producer, link.consumer)
            .expect("a text takes all");
    }
    dot.push_str("}\n");
    dot
}

/// The lines of a box.
pub(crate) fn label(node: &Node) -> String {
    let words = match &node.body {
        Body::Unit(unit) => Look::of(unit).words,
        Body::Group(units) => format!("{} workspaces, {}", units.len(), node.freshness().text()),
        Body::Cycle(units) => {
            let names: Vec<&str> = units.iter().map(|unit| unit.name.as_str()).collect();
            return format!("cycle of {}\n{}", units.len(), some_of(&names, 12));
        }
        Body::Elsewhere => "outside of this graph".to_owned(),
    };
    format!("{}\n{words}", line(&node.name))
}

pub(crate) fn link_label(link: &Link) -> String {
    line(&some_of(&link.outputs, NAMED_OUTPUTS))
}

fn quoted(text: &str) -> String {
    let escaped = text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
    format!("\"{escaped}\"")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document::{Edge, Graph, Unit};
    use crate::picture::Grouping;

    #[test]
    fn graphviz_gets_what_it_can_read() {
        let mut edge = Edge::new("app", "net\"w\\ork", EdgeStatus::Stale);
        edge.outputs = vec!["vpc\nid".into()];
        let graph = Graph {
            units: vec![Unit::new("app", Freshness::Stale), Unit::new("net\"w\\ork", Freshness::Clean)],
            edges: vec![edge],
        };
        let expected = r#"digraph states {
  rankdir=LR;
  node [shape=box, style=rounded, fontname="sans-serif"];
  n0 [label="app\nstale", color=darkorange3, style="rounded,bold"];
  n1 [label="net\"w\\ork\nclean", color=darkgreen, style="rounded"];
  n1 -> n0 [color=darkorange3, style=bold, label="vpc id"];
}
"#;
        assert_eq!(dot(&Picture::of(&graph, Grouping::Units)), expected);
    }
}
