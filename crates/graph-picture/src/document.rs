//! The graph as a document: units and edges, by the names of workspaces.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use taco_words::graph::{Activity, EdgePolicy, EdgeStatus, Freshness, Grade, Health};

/// Units and the edges between them, as far as the reader may see them.
#[derive(Clone, PartialEq, Default, Serialize, Deserialize, Debug)]
pub struct Graph {
    pub units: Vec<Unit>,
    pub edges: Vec<Edge>,
}

/// One workspace, that is one Terraform state.
#[derive(Clone, PartialEq, Serialize, Deserialize, Debug)]
pub struct Unit {
    pub name: String,
    #[serde(default)]
    pub project: String,
    pub freshness: Freshness,
    pub activity: Activity,
    pub health: Health,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub id: String,
    /// As `key` or `key:value`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<String>,
    /// Why it is as fresh as it is, in a few words.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub why: String,
    /// What a newer server says beside this.
    #[serde(flatten)]
    pub more: BTreeMap<String, Value>,
}

/// Use of one unit's outputs by another.
#[derive(Clone, PartialEq, Serialize, Deserialize, Debug)]
pub struct Edge {
    pub consumer: String,
    /// A unit, or what is known of a producer that is none here.
    pub producer: String,
    pub outputs: Vec<String>,
    pub grades: Vec<Grade>,
    pub status: EdgeStatus,
    /// False where the status is only probable.
    #[serde(default = "yes")]
    pub certain: bool,
    /// Two kinds of evidence agree that there is such an edge.
    #[serde(default)]
    pub confirmed: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<String>,
    /// Resources of the consumer that use the outputs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub users: Vec<String>,
    #[serde(default)]
    pub muted: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub policy: Option<EdgePolicy>,
    /// A run trigger would keep the consumer up to date, and there is none.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub proposes_trigger: bool,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub id: String,
    /// What a newer server says beside this.
    #[serde(flatten)]
    pub more: BTreeMap<String, Value>,
}

fn yes() -> bool {
    true
}

impl Graph {
    pub fn unit(&self, name: &str) -> Option<&Unit> {
        self.units.iter().find(|unit| unit.name == name)
    }

    /// Names of projects, in order.
    pub fn projects(&self) -> Vec<&str> {
        sorted(self.units.iter().map(|unit| unit.project.as_str()).filter(|project| !project.is_empty()))
    }

    /// Tags of all units, in order.
    pub fn tags(&self) -> Vec<&str> {
        sorted(self.units.iter().flat_map(|unit| unit.tags.iter().map(String::as_str)))
    }
}

fn sorted<'a>(texts: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    let mut texts: Vec<&str> = texts.collect();
    texts.sort_unstable();
    texts.dedup();
    texts
}

impl Unit {
    pub fn new(name: impl Into<String>, freshness: Freshness) -> Self {
        Self {
            name: name.into(),
            project: String::new(),
            freshness,
            activity: Activity::Idle,
            health: Health::Ok,
            id: String::new(),
            tags: Vec::new(),
            why: String::new(),
            more: BTreeMap::new(),
        }
    }

    /// An output that it uses has changed, or is gone.
    pub fn is_stale(&self) -> bool {
        matches!(self.freshness, Freshness::Stale | Freshness::Broken)
    }

    /// Its state on all three axes, as people read it. What is as it should be is not mentioned, but for freshness.
    pub fn words(&self) -> String {
        let activity = (self.activity != Activity::Idle).then(|| self.activity.text());
        let health = (self.health != Health::Ok).then(|| self.health.text());
        let words = [Some(self.freshness.text()), activity, health];
        words.into_iter().flatten().collect::<Vec<_>>().join(" · ")
    }
}

impl Edge {
    pub fn new(consumer: impl Into<String>, producer: impl Into<String>, status: EdgeStatus) -> Self {
        Self {
            consumer: consumer.into(),
            producer: producer.into(),
            outputs: Vec::new(),
            grades: Vec::new(),
            status,
            certain: true,
            confirmed: false,
            since: None,
            users: Vec::new(),
            muted: false,
            policy: None,
            proposes_trigger: false,
            id: String::new(),
            more: BTreeMap::new(),
        }
    }

    /// False if a person said that it does not count.
    pub fn counts(&self) -> bool {
        !self.muted && self.policy != Some(EdgePolicy::Ignore)
    }

    /// It makes its consumer stale or broken.
    pub fn is_stale(&self) -> bool {
        self.counts() && matches!(self.status, EdgeStatus::Stale | EdgeStatus::Missing | EdgeStatus::Retyped)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_document_is_read_and_written_with_what_is_not_known_here() {
        let text = r#"{"units":[{"name":"app","project":"Default","freshness":"may_change","activity":"needs_approval",
            "health":"ok","needs-decision":true}],"edges":[{"consumer":"app","producer":"network","outputs":["vpc_id"],
            "grades":["plan","echo"],"status":"stale","since":"2026-01-01T00:00:00Z","colour":"red"}]}"#;
        let graph: Graph = serde_json::from_str(text).expect("a graph");
        let (unit, edge) = (&graph.units[0], &graph.edges[0]);
        assert_eq!(unit.words(), "may change · needs approval");
        assert!(edge.certain && !edge.muted && edge.is_stale() && edge.grades == [Grade::Plan, Grade::Echo]);
        let written = serde_json::to_value(&graph).expect("JSON");
        assert_eq!(written["units"][0]["needs-decision"], true);
        assert_eq!(written["edges"][0]["colour"], "red");
        assert_eq!(serde_json::from_value::<Graph>(written).expect("a graph"), graph);
    }

    #[test]
    fn the_smallest_document_has_the_fields_that_scripts_rely_on_and_no_others() {
        let unit = serde_json::to_value(Unit::new("app", Freshness::Clean)).expect("JSON");
        let expected = serde_json::json!({
            "name": "app", "project": "", "freshness": "clean", "activity": "idle", "health": "ok",
        });
        assert_eq!(unit, expected);
    }
}
