//! Pictures for Mermaid, which Markdown of many forges draws.

use std::fmt::Write as _;

use taco_words::graph::{EdgeStatus, Freshness};

use crate::dot::{label, link_label};
use crate::picture::{Body, Picture};

/// Writes a picture as a Mermaid flowchart, producers on the left.
pub fn mermaid(picture: &Picture) -> String {
    let mut text = String::from("flowchart LR\n");
    for (number, node) in picture.nodes.iter().enumerate() {
        let class = match node.freshness() {
            _ if matches!(node.body, Body::Elsewhere) => "unknown",
            freshness => freshness.word(),
        };
        writeln!(text, "  n{number}[\"{}\"]:::{class}", escaped(&label(node))).expect("a text takes all");
    }
    for link in &picture.links {
        let arrow = match link.status {
            _ if !link.counts => "-.->",
            EdgeStatus::Stale | EdgeStatus::Missing | EdgeStatus::Retyped if link.certain => "==>",
            EdgeStatus::Fresh => "-->",
            _ => "-.->",
        };
        let outputs = match link_label(link).as_str() {
            "" => String::new(),
            outputs => format!("|\"{}\"|", escaped(outputs)),
        };
        writeln!(text, "  n{} {arrow}{outputs} n{}", link.producer, link.consumer).expect("a text takes all");
    }
    for freshness in Freshness::ALL {
        let style = match freshness {
            Freshness::Clean => "stroke:#1b6b34",
            Freshness::Stale => "stroke:#7a4b00,fill:#fff2d4,stroke-width:2px",
            Freshness::Broken => "stroke:#b3261e,fill:#fdebe9,stroke-width:2px",
            Freshness::MayChange => "stroke:#1f5aa8,stroke-dasharray:6 2",
            Freshness::Unknown => "stroke:#6a6f78,stroke-dasharray:5 3",
            Freshness::NeverApplied => "stroke:#6a6f78,stroke-dasharray:2 3",
        };
        writeln!(text, "  classDef {} {style}", freshness.word()).expect("a text takes all");
    }
    text
}

/// A text between quotes: Mermaid knows entities with `#`, and breaks lines at `<br/>`.
fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '#' => escaped.push_str("#35;"),
            '"' => escaped.push_str("#quot;"),
            '<' => escaped.push_str("#lt;"),
            '>' => escaped.push_str("#gt;"),
            '&' => escaped.push_str("#amp;"),
            '`' => escaped.push_str("#96;"),
            '\n' => escaped.push_str("<br/>"),
            character => escaped.push(character),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document::{Edge, Graph, Unit};
    use crate::picture::Grouping;

    #[test]
    fn mermaid_gets_what_it_can_read() {
        let mut edge = Edge::new("app", "net#\"work", EdgeStatus::Stale);
        edge.outputs = vec!["vpc_id".into(), "<b>".into()];
        let graph = Graph {
            units: vec![Unit::new("app", Freshness::Stale), Unit::new("net#\"work", Freshness::Clean)],
            edges: vec![edge, Edge::new("app", "elsewhere", EdgeStatus::Unbound)],
        };
        let text = mermaid(&Picture::of(&graph, Grouping::Units));
        let expected = "flowchart LR\n  n0[\"app<br/>stale\"]:::stale\n  n1[\"elsewhere<br/>outside of this graph\"]:::unknown\n  \
                        n2[\"net#35;#quot;work<br/>clean\"]:::clean\n  n1 -.-> n0\n  n2 ==>|\"#lt;b#gt;, vpc_id\"| n0\n";
        assert!(text.starts_with(expected), "{text}");
    }
}
