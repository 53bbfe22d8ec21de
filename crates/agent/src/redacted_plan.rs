//! The plan as the `cloud` block renders it: changes and schemas, without what is sensitive.
//!
//! A sensitive value becomes another of the same shape. Equal values become equal ones and others do not, because a
//! renderer tells from them whether something changes; a random number that is not stored makes sure that they tell no
//! more.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use sha2::{Digest, Sha256};
use taco_agent_protocol::ResourceCounts;

use crate::mask::Mask;
use crate::provider_schemas::{Schemas, TypeName};

/// Parts of `show -json` that are needed.
#[derive(Deserialize)]
pub(crate) struct ShownPlan {
    #[serde(default)]
    format_version: String,
    #[serde(default)]
    resource_changes: Vec<Value>,
    #[serde(default)]
    resource_drift: Vec<Value>,
    #[serde(default)]
    output_changes: Map<String, Value>,
    #[serde(default)]
    relevant_attributes: Vec<Value>,
}

#[derive(Serialize)]
pub(crate) struct RedactedPlan {
    plan_format_version: String,
    output_changes: Map<String, Value>,
    resource_changes: Vec<Value>,
    resource_drift: Vec<Value>,
    relevant_attributes: Vec<Value>,
    provider_format_version: &'static str,
    provider_schemas: Schemas,
}

impl ShownPlan {
    /// Counts of the resources that the plan would add, change, destroy and import.
    pub(crate) fn counts(&self) -> ResourceCounts {
        let mut counts = ResourceCounts::default();
        for change in self.resource_changes.iter().filter(|change| change["mode"] == "managed") {
            let actions = change["change"]["actions"].as_array().map(Vec::as_slice).unwrap_or_default();
            let has = |action: &str| u64::from(actions.iter().any(|found| found == action));
            counts.additions += has("create");
            counts.changes += has("update");
            counts.destructions += has("delete");
            counts.imports += u64::from(change["change"]["importing"].is_object());
        }
        counts
    }

    /// The types whose schemas a renderer needs.
    pub(crate) fn types(&self) -> BTreeSet<TypeName> {
        let changes = self.resource_changes.iter().chain(&self.resource_drift);
        let types = changes.filter_map(|change| {
            Some(TypeName {
                provider: change["provider_name"].as_str()?.to_owned(),
                is_data: change["mode"] == "data",
                name: change["type"].as_str()?.to_owned(),
            })
        });
        types.collect()
    }

    pub(crate) fn redact(mut self, schemas: Schemas, mask: &Mask, salt: [u8; 16]) -> RedactedPlan {
        let redaction = Redaction { mask, salt };
        let resources = self.resource_changes.iter_mut().chain(&mut self.resource_drift);
        let changes = resources.filter_map(|resource| resource.get_mut("change"));
        for change in changes.chain(self.output_changes.values_mut()) {
            redaction.change(change);
        }
        RedactedPlan {
            plan_format_version: self.format_version,
            output_changes: self.output_changes,
            resource_changes: self.resource_changes,
            resource_drift: self.resource_drift,
            relevant_attributes: self.relevant_attributes,
            provider_format_version: "1.0",
            provider_schemas: schemas,
        }
    }
}

struct Redaction<'a> {
    mask: &'a Mask,
    salt: [u8; 16],
}

impl Redaction<'_> {
    fn change(&self, change: &mut Value) {
        for (values, marks) in [("before", "before_sensitive"), ("after", "after_sensitive")] {
            let marks = change[marks].clone();
            if let Some(values) = change.get_mut(values) {
                self.hide(values, &marks);
            }
        }
        // Secrets that the configuration does not call sensitive.
        self.hide_known(change);
    }

    /// Hides what is marked: `true` marks a value, objects and arrays have marks of their parts.
    fn hide(&self, value: &mut Value, marks: &Value) {
        match (value, marks) {
            (value, Value::Bool(true)) => self.replace(value),
            (Value::Object(values), Value::Object(marks)) => {
                for (name, marks) in marks {
                    if let Some(value) = values.get_mut(name) {
                        self.hide(value, marks);
                    }
                }
            }
            (Value::Array(values), Value::Array(marks)) => {
                for (value, marks) in values.iter_mut().zip(marks) {
                    self.hide(value, marks);
                }
            }
            _ => {}
        }
    }

    fn replace(&self, value: &mut Value) {
        let digest = |text: &str| -> [u8; 8] {
            let digest = Sha256::new().chain_update(self.salt).chain_update(text).finalize();
            digest.first_chunk().copied().unwrap_or_default()
        };
        match value {
            Value::Null => {}
            Value::Bool(flag) => *flag ^= self.salt[0] & 1 == 1,
            Value::Number(number) => *value = (u64::from_be_bytes(digest(&number.to_string())) % 1_000_000_007).into(),
            Value::String(text) => *text = format!("sensitive-{}", hex::encode(digest(text))),
            Value::Array(values) => values.iter_mut().for_each(|value| self.replace(value)),
            Value::Object(values) => values.values_mut().for_each(|value| self.replace(value)),
        }
    }

    fn hide_known(&self, value: &mut Value) {
        match value {
            Value::String(text) => *text = self.mask.hide(text),
            Value::Array(values) => values.iter_mut().for_each(|value| self.hide_known(value)),
            Value::Object(values) => values.values_mut().for_each(|value| self.hide_known(value)),
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn plan(change: Value) -> ShownPlan {
        let resource = json!({ "mode": "managed", "type": "t", "provider_name": "p", "change": change });
        serde_json::from_value(json!({ "format_version": "1.2", "resource_changes": [resource] })).expect("a plan")
    }

    fn redacted(change: Value) -> Value {
        let redacted = plan(change).redact(Schemas::new(), &Mask::default(), [7; 16]);
        serde_json::to_value(redacted).expect("JSON")["resource_changes"][0]["change"].clone()
    }

    #[test]
    fn marked_values_are_hidden_and_keep_their_shape() {
        let change = redacted(json!({
            "before": { "name": "open", "password": "hunter2", "list": ["x", "hunter3"], "all": { "n": 4711, "b": true } },
            "after": { "name": "open", "password": "hunter4", "list": ["x", "hunter3"], "all": null },
            "before_sensitive": { "password": true, "list": [false, true], "all": true },
            "after_sensitive": { "password": true, "list": [false, true], "all": true },
        }));
        let text = change.to_string();
        assert!(!text.contains("hunter") && !text.contains("4711"), "{text}");
        assert_eq!(change["before"]["name"], "open");
        assert_eq!(change["before"]["list"][0], "x");
        assert_ne!(change["before"]["password"], change["after"]["password"], "a change is still a change");
        assert_eq!(change["before"]["list"], change["after"]["list"], "and no change is none");
        assert!(change["before"]["all"]["n"].is_number() && change["before"]["all"]["b"].is_boolean());
        assert!(change["after"]["all"].is_null());
    }

    #[test]
    fn counts_come_from_actions() {
        for (change, expected) in [
            (json!({ "actions": ["create"] }), (1, 0, 0, 0)),
            (json!({ "actions": ["update"] }), (0, 1, 0, 0)),
            (json!({ "actions": ["delete"] }), (0, 0, 1, 0)),
            (json!({ "actions": ["delete", "create"] }), (1, 0, 1, 0)),
            (json!({ "actions": ["no-op"], "importing": { "id": "x" } }), (0, 0, 0, 1)),
            (json!({ "actions": ["forget"] }), (0, 0, 0, 0)),
            (json!({ "actions": ["read"] }), (0, 0, 0, 0)),
        ] {
            let counts = plan(change.clone()).counts();
            assert_eq!((counts.additions, counts.changes, counts.destructions, counts.imports), expected, "{change}");
        }
    }
}
