//! Contents of a state: resources by address, outputs, and the diff of two states.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::colour::Colour;
use crate::failure::Failure;
use crate::print::{cut, on_one_line};

/// A state as terraform and tofu write it, as far as anyone looks into it here.
#[derive(Deserialize, Debug)]
pub(crate) struct StateFile {
    pub(crate) serial: u64,
    #[serde(default)]
    pub(crate) lineage: String,
    #[serde(default)]
    outputs: BTreeMap<String, Output>,
    #[serde(default)]
    resources: Vec<Resource>,
    /// OpenTofu encrypted it before it left the client.
    encrypted_data: Option<Value>,
}

#[derive(Deserialize, PartialEq, Debug)]
struct Output {
    #[serde(default)]
    value: Value,
    #[serde(default)]
    sensitive: bool,
}

#[derive(Deserialize, Debug)]
struct Resource {
    module: Option<String>,
    mode: String,
    #[serde(rename = "type")]
    kind: String,
    name: String,
    #[serde(default)]
    provider: String,
    #[serde(default)]
    instances: Vec<RawInstance>,
}

#[derive(Deserialize, Debug)]
struct RawInstance {
    index_key: Option<Value>,
    deposed: Option<String>,
    #[serde(default)]
    attributes: Option<Map<String, Value>>,
    #[serde(default)]
    sensitive_attributes: Vec<Value>,
}

/// One instance of a resource.
#[derive(PartialEq, Debug)]
pub(crate) struct Instance<'a> {
    pub(crate) provider: &'a str,
    attributes: BTreeMap<&'a str, &'a Value>,
    sensitive: BTreeSet<&'a str>,
}

impl Instance<'_> {
    /// Its attributes; those with something sensitive inside are hidden unless asked for.
    pub(crate) fn shown(&self, with_sensitive: bool) -> Map<String, Value> {
        let shown = |(name, value): (&&str, &&Value)| {
            let hidden = !with_sensitive && self.sensitive.contains(name);
            ((*name).to_owned(), if hidden { json!("(sensitive)") } else { (*value).clone() })
        };
        self.attributes.iter().map(shown).collect()
    }
}

impl StateFile {
    pub(crate) fn parse(bytes: &[u8], what: &str) -> Result<Self, Failure> {
        serde_json::from_slice(bytes).map_err(|error| {
            Failure::error(format!("{what} is no state"))
                .because(error)
                .hint("it must be a file as `terraform state pull` gives it")
        })
    }

    /// Fails for a state into which only its client can look.
    pub(crate) fn readable(self, what: &str) -> Result<Self, Failure> {
        match self.encrypted_data {
            None => Ok(self),
            Some(_) => Err(Failure::error(format!("{what} is encrypted"))
                .because("OpenTofu encrypted it on the client; only its owner has the key")
                .hint("use `tofu state list` or `tofu show` where the key is")),
        }
    }

    /// All instances by address, in the order of addresses.
    pub(crate) fn instances(&self) -> BTreeMap<String, Instance<'_>> {
        let all = self.resources.iter().flat_map(|resource| resource.instances.iter().map(move |raw| (resource, raw)));
        all.map(|(resource, raw)| {
            let attributes = raw.attributes.iter().flatten().map(|(name, value)| (name.as_str(), value)).collect();
            let sensitive = raw.sensitive_attributes.iter().filter_map(first_step).collect();
            (address(resource, raw), Instance { provider: &resource.provider, attributes, sensitive })
        })
        .collect()
    }

    /// Names of outputs.
    pub(crate) fn outputs(&self) -> impl Iterator<Item = &str> {
        self.outputs.keys().map(String::as_str)
    }
}

/// `module.network.aws_subnet.a["x"]`
fn address(resource: &Resource, instance: &RawInstance) -> String {
    let Resource { module, mode, kind, name, .. } = resource;
    let mut address = module.as_ref().map(|module| format!("{module}.")).unwrap_or_default();
    if mode == "data" {
        address.push_str("data.");
    }
    address.push_str(&format!("{kind}.{name}"));
    if let Some(index) = &instance.index_key {
        address.push_str(&format!("[{index}]"));
    }
    if let Some(deposed) = &instance.deposed {
        address.push_str(&format!(" (deposed {deposed})"));
    }
    address
}

/// The attribute in which a path of `sensitive_attributes` begins.
fn first_step(path: &Value) -> Option<&str> {
    path.as_array()?.first()?.get("value")?.as_str()
}

#[derive(Clone, Copy, PartialEq, Eq, Serialize, Debug)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Action {
    Added,
    Removed,
    Changed,
}

impl Action {
    pub(crate) fn colour(self) -> Colour {
        match self {
            Self::Added => Colour::Green,
            Self::Removed => Colour::Red,
            Self::Changed => Colour::Yellow,
        }
    }

    pub(crate) fn sign(self) -> &'static str {
        match self {
            Self::Added => "+",
            Self::Removed => "-",
            Self::Changed => "~",
        }
    }
}

#[derive(PartialEq, Serialize, Debug)]
pub(crate) struct ResourceChange {
    pub(crate) action: Action,
    pub(crate) address: String,
    /// Names of attributes that changed.
    pub(crate) attributes: Vec<String>,
    /// Their values, for people who look at them.
    #[serde(skip)]
    pub(crate) values: Vec<AttributeChange>,
}

/// An attribute that changed. Values that are sensitive are left out.
#[derive(PartialEq, Debug)]
pub(crate) struct AttributeChange {
    pub(crate) action: Action,
    pub(crate) name: String,
    sensitive: bool,
    before: Value,
    after: Value,
}

impl AttributeChange {
    /// Both values, on one line of about this width.
    pub(crate) fn in_words(&self, width: usize) -> String {
        let half = |value: &Value| cut(&on_one_line(&value.to_string()), (width / 2).saturating_sub(2).max(8));
        match self.action {
            _ if self.sensitive => "(sensitive)".to_owned(),
            Action::Added => cut(&on_one_line(&self.after.to_string()), width.max(8)),
            Action::Removed => cut(&on_one_line(&self.before.to_string()), width.max(8)),
            Action::Changed => format!("{} → {}", half(&self.before), half(&self.after)),
        }
    }
}

#[derive(PartialEq, Serialize, Debug)]
pub(crate) struct OutputChange {
    pub(crate) action: Action,
    pub(crate) name: String,
    pub(crate) sensitive: bool,
    /// Null if it is sensitive, or was not there.
    pub(crate) before: Value,
    pub(crate) after: Value,
}

#[derive(PartialEq, Serialize, Debug)]
pub(crate) struct Difference {
    pub(crate) resources: Vec<ResourceChange>,
    pub(crate) outputs: Vec<OutputChange>,
}

/// Changes from one state to the other.
pub(crate) fn difference(before: &StateFile, after: &StateFile) -> Difference {
    let resources = changes(&before.instances(), &after.instances(), |action, address, before, after| {
        let values = match (before, after) {
            (Some(before), Some(after)) => attribute_changes(before, after),
            _ => Vec::new(),
        };
        let attributes = values.iter().map(|value| value.name.clone()).collect();
        ResourceChange { action, address: address.clone(), attributes, values }
    });
    let outputs = changes(&before.outputs, &after.outputs, |action, name, before, after| {
        let sensitive = [before, after].into_iter().flatten().any(|output| output.sensitive);
        let value = |output: Option<&Output>| output.filter(|_| !sensitive).map(|output| output.value.clone());
        let (before, after) = (value(before).unwrap_or_default(), value(after).unwrap_or_default());
        OutputChange { action, name: name.clone(), sensitive, before, after }
    });
    Difference { resources, outputs }
}

fn attribute_changes(before: &Instance<'_>, after: &Instance<'_>) -> Vec<AttributeChange> {
    changes(&before.attributes, &after.attributes, |action, name, old, new| {
        let sensitive = before.sensitive.contains(name) || after.sensitive.contains(name);
        let value =
            |value: Option<&&Value>| value.filter(|_| !sensitive).map(|value| (*value).clone()).unwrap_or_default();
        AttributeChange { action, name: (*name).to_owned(), sensitive, before: value(old), after: value(new) }
    })
}

fn changes<K: Ord, V: PartialEq, C>(
    before: &BTreeMap<K, V>,
    after: &BTreeMap<K, V>,
    describe: impl Fn(Action, &K, Option<&V>, Option<&V>) -> C,
) -> Vec<C> {
    let keys: BTreeSet<&K> = before.keys().chain(after.keys()).collect();
    let change = |key| {
        let (before, after) = (before.get(key), after.get(key));
        let action = match (before, after) {
            (None, _) => Action::Added,
            (_, None) => Action::Removed,
            (before, after) if before == after => return None,
            _ => Action::Changed,
        };
        Some(describe(action, key, before, after))
    };
    keys.into_iter().filter_map(change).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn state(resources: Value, outputs: Value) -> StateFile {
        let text = json!({ "version": 4, "serial": 1, "lineage": "l", "resources": resources, "outputs": outputs });
        StateFile::parse(text.to_string().as_bytes(), "it").expect("it is a state")
    }

    fn resource(name: &str, instances: Value) -> Value {
        json!({ "mode": "managed", "type": "null_resource", "name": name, "provider": "p", "instances": instances })
    }

    #[test]
    fn addresses_are_terraforms() {
        let instances = json!([{ "index_key": 0 }, { "index_key": "a\"b" }, { "deposed": "00aa" }]);
        let mut inside = resource("a", instances);
        inside["module"] = "module.m[\"x\"]".into();
        let mut data = resource("b", json!([{ "attributes": { "id": "1" } }]));
        data["mode"] = "data".into();
        let state = state(json!([inside, data]), json!({}));
        let addresses: Vec<String> = state.instances().into_keys().collect();
        let expected = [
            "data.null_resource.b",
            "module.m[\"x\"].null_resource.a (deposed 00aa)",
            "module.m[\"x\"].null_resource.a[\"a\\\"b\"]",
            "module.m[\"x\"].null_resource.a[0]",
        ];
        assert_eq!(addresses, expected);
    }

    #[test]
    fn a_difference_names_what_was_added_removed_and_changed() {
        let instance = |id: &str| json!([{ "attributes": { "id": id, "same": true } }]);
        let before = state(
            json!([resource("same", instance("1")), resource("gone", instance("1")), resource("other", instance("1"))]),
            json!({ "url": { "value": "a" }, "secret": { "value": "a", "sensitive": true }, "same": { "value": 1 } }),
        );
        let after = state(
            json!([resource("same", instance("1")), resource("new", instance("1")), resource("other", instance("2"))]),
            json!({ "url": { "value": "b" }, "secret": { "value": "b", "sensitive": true }, "same": { "value": 1 } }),
        );
        let change = |action, name: &str, attributes: &[&str]| ResourceChange {
            action,
            address: format!("null_resource.{name}"),
            attributes: attributes.iter().map(|&name| name.to_owned()).collect(),
            values: attributes
                .iter()
                .map(|&name| AttributeChange {
                    action: Action::Changed,
                    name: name.to_owned(),
                    sensitive: false,
                    before: "1".into(),
                    after: "2".into(),
                })
                .collect(),
        };
        let found = difference(&before, &after);
        let expected = [
            change(Action::Removed, "gone", &[]),
            change(Action::Added, "new", &[]),
            change(Action::Changed, "other", &["id"]),
        ];
        assert_eq!(found.resources, expected);
        let output = |name: &str, sensitive, before: Value, after: Value| OutputChange {
            action: Action::Changed,
            name: name.to_owned(),
            sensitive,
            before,
            after,
        };
        let expected = [output("secret", true, Value::Null, Value::Null), output("url", false, json!("a"), json!("b"))];
        assert_eq!(found.outputs, expected);
        assert_eq!(difference(&after, &after), Difference { resources: vec![], outputs: vec![] });
    }

    #[test]
    fn sensitive_attributes_are_hidden() {
        let instance = json!([{
            "attributes": { "id": "1", "password": "p" },
            "sensitive_attributes": [[{ "type": "get_attr", "value": "password" }]],
        }]);
        let state = state(json!([resource("a", instance)]), json!({}));
        let instances = state.instances();
        let instance = &instances["null_resource.a"];
        assert_eq!(Value::from(instance.shown(false)), json!({ "id": "1", "password": "(sensitive)" }));
        assert_eq!(Value::from(instance.shown(true)), json!({ "id": "1", "password": "p" }));
    }

    #[test]
    fn an_encrypted_state_has_a_serial_but_cannot_be_looked_into() {
        let text = br#"{"serial":3,"lineage":"l","meta":{},"encrypted_data":"x","encryption_version":"v0"}"#;
        let state = StateFile::parse(text, "it").expect("it is a state");
        assert_eq!(state.serial, 3);
        assert!(state.readable("it").is_err());
        assert!(StateFile::parse(b"[]", "it").is_err());
    }
}
