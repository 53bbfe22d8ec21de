//! Previews: a unit is planned against what its producers' plans announce. Known values take the place of those in the
//! producer's state; what is known only after an apply stays as it is, and is told by name. Nothing is invented.

use std::collections::BTreeMap;

use serde_json::value::{RawValue, to_raw_value};
use taco_words::graph::{OutputChange, WalkKind, WalkNodeState, WalkResult};

use crate::OrganizationState;
use crate::graph::plan_evidence::{OutputAction, PlannedOutput as FromPlan, Unknown};
use crate::id::{RunId, WorkspaceId};
use crate::output::digest_value;
use crate::run::Run;
use crate::walks::walk::{PlannedOutput, WalkNodeId};

type Fields = BTreeMap<String, Box<RawValue>>;

impl OrganizationState {
    /// The plan of a unit that a run is to see: that of the unit's node in the same walk, which only plans.
    pub fn plan_shown_to(&self, run: RunId, unit: WorkspaceId) -> Option<&Run> {
        let node = self.walk_nodes.by().run.first(&run)?;
        let walk = self.walks.get(&node.walk).filter(|walk| walk.kind == WalkKind::Plan)?;
        let producer = self.walk_nodes.get(&WalkNodeId::of(walk.id, unit))?;
        let is_planned = producer.state == WalkNodeState::Done && producer.result == Some(WalkResult::Changed);
        self.runs.get(producer.runs.last()?).filter(|_| is_planned)
    }
}

/// What a plan does to outputs, without the values.
pub fn announced_outputs(key: &[u8; 32], planned: &BTreeMap<String, FromPlan>) -> BTreeMap<String, PlannedOutput> {
    let changes = planned.iter().filter_map(|(name, output)| {
        let change = match output.action {
            OutputAction::Unchanged => return None,
            OutputAction::Created => OutputChange::Added,
            OutputAction::Changed => OutputChange::Value,
            OutputAction::Removed => OutputChange::Removed,
        };
        let unknown = output.unknown != Unknown::Nothing;
        let known = output.value.as_ref().zip(output.detailed_type.as_ref()).filter(|_| !unknown);
        let digest = known.and_then(|(value, kind)| digest_value(key, kind, value).ok());
        Some((name.clone(), PlannedOutput { change, digest: digest.map(|(digest, _)| digest), unknown }))
    });
    changes.collect()
}

/// A state with the outputs that a plan announces, as far as they are known. A state that cannot be read, for instance
/// because it is encrypted, stays as it is.
pub fn overlaid(state: &[u8], planned: &BTreeMap<String, FromPlan>) -> Option<Vec<u8>> {
    let mut whole: Fields = serde_json::from_slice(state).ok()?;
    let mut outputs: Fields = serde_json::from_str(whole.get("outputs")?.get()).ok()?;
    for (name, output) in planned {
        match (output.action, &output.value, &output.detailed_type) {
            (OutputAction::Unchanged, ..) => {}
            (OutputAction::Removed, ..) => _ = outputs.remove(name),
            (_, Some(value), Some(kind)) if output.unknown == Unknown::Nothing => {
                let mut fields = Fields::from([("value".to_owned(), value.clone()), ("type".to_owned(), kind.clone())]);
                if output.sensitive {
                    fields.insert("sensitive".to_owned(), to_raw_value(&true).ok()?);
                }
                outputs.insert(name.clone(), to_raw_value(&fields).ok()?);
            }
            _ => {}
        }
    }
    whole.insert("outputs".to_owned(), to_raw_value(&outputs).ok()?);
    serde_json::to_vec(&whole).ok()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn raw(value: &Value) -> Box<RawValue> {
        to_raw_value(value).expect("JSON")
    }

    fn planned(action: OutputAction, value: Option<Value>, unknown: Unknown) -> FromPlan {
        let detailed_type = value.as_ref().map(|_| raw(&json!("string")));
        FromPlan { action, value: value.as_ref().map(raw), unknown, detailed_type, sensitive: false }
    }

    #[test]
    fn known_values_take_the_place_of_those_in_the_state() {
        let state = br#"{"version":4,"serial":18446744073709551615,"outputs":{
            "same":{"value":"a","type":"string"},"changed":{"value":"old","type":"string"},
            "later":{"value":"old","type":"string"},"gone":{"value":"x","type":"string"}},"resources":[{"x":1.10}]}"#;
        let planned = BTreeMap::from([
            ("same".to_owned(), planned(OutputAction::Unchanged, Some(json!("never")), Unknown::Nothing)),
            ("changed".to_owned(), planned(OutputAction::Changed, Some(json!("new")), Unknown::Nothing)),
            ("later".to_owned(), planned(OutputAction::Changed, None, Unknown::Whole)),
            ("gone".to_owned(), planned(OutputAction::Removed, None, Unknown::Nothing)),
            ("more".to_owned(), planned(OutputAction::Created, Some(json!("more")), Unknown::Nothing)),
        ]);
        let text = String::from_utf8(overlaid(state, &planned).expect("a state")).expect("text");
        assert!(text.contains("18446744073709551615") && text.contains("1.10"), "numbers stay as they are: {text}");
        let whole: Value = serde_json::from_str(&text).expect("JSON");
        let expected = json!({
            "same": { "value": "a", "type": "string" }, "changed": { "value": "new", "type": "string" },
            "later": { "value": "old", "type": "string" }, "more": { "value": "more", "type": "string" },
        });
        assert_eq!(whole["outputs"], expected);
        let announced = announced_outputs(&[1; 32], &planned);
        let words: Vec<_> = announced.iter().map(|(name, output)| (name.as_str(), output.unknown)).collect();
        assert_eq!(words, [("changed", false), ("gone", false), ("later", true), ("more", false)]);
        assert_eq!(overlaid(br#"{"encrypted_data":"x"}"#, &planned), None);
        assert_eq!(overlaid(b"no JSON", &planned), None);
    }
}
