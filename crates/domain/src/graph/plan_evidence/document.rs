//! Fields of a plan that count. Everything else flows past.

use std::collections::BTreeMap;
use std::fmt;
use std::marker::PhantomData;

use serde::de::{DeserializeOwned, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::Value;
use serde_json::value::RawValue;

use super::{OutputAction, PlannedOutput, Unknown};
use crate::graph::state_evidence::read_via;

/// A plan.
#[derive(Deserialize)]
pub(super) struct Document {
    #[serde(rename = "format_version")]
    _format_version: String,
    #[serde(default, deserialize_with = "or_default")]
    pub(super) variables: BTreeMap<String, RootVariable>,
    #[serde(default, deserialize_with = "or_default")]
    pub(super) planned_values: PlannedValues,
    #[serde(default, deserialize_with = "one_by_one")]
    pub(super) resource_changes: Vec<ResourceChange>,
    #[serde(default, deserialize_with = "or_default")]
    pub(super) output_changes: BTreeMap<String, OutputChanges>,
    #[serde(default, deserialize_with = "or_default")]
    pub(super) prior_state: PriorState,
    #[serde(default)]
    pub(super) configuration: Value,
    #[serde(default, deserialize_with = "or_default")]
    pub(super) relevant_attributes: Vec<RelevantAttribute>,
    pub(super) complete: Option<bool>,
    pub(super) applyable: Option<bool>,
    pub(super) errored: Option<bool>,
}

impl Document {
    /// True if the plan does something to all managed instances and outputs: then it tells of all that led there.
    pub(super) fn is_all_new(&self) -> bool {
        let mut managed = self.resource_changes.iter().filter(|change| change.is_managed()).peekable();
        managed.peek().is_some()
            && managed.all(|change| change.does_something() && !change.only_deletes())
            && self.output_changes.values().all(|change| !change.actions.iter().all(|action| action == "no-op"))
    }
}

/// `null` stands for nothing, wherever a plan has it.
fn or_default<'de, D: Deserializer<'de>, T: Deserialize<'de> + Default>(deserializer: D) -> Result<T, D::Error> {
    Ok(Option::<T>::deserialize(deserializer)?.unwrap_or_default())
}

#[derive(Deserialize)]
pub(super) struct RootVariable {
    pub(super) value: Option<Box<RawValue>>,
}

#[derive(Default, Deserialize)]
pub(super) struct PlannedValues {
    #[serde(default, deserialize_with = "or_default")]
    pub(super) outputs: BTreeMap<String, PlannedType>,
}

#[derive(Deserialize)]
pub(super) struct PlannedType {
    #[serde(rename = "type")]
    pub(super) detailed_type: Option<Box<RawValue>>,
}

#[derive(Deserialize)]
pub(super) struct ResourceChange {
    pub(super) address: String,
    #[serde(default)]
    mode: String,
    #[serde(default, rename = "type")]
    pub(super) kind: String,
    change: Change,
}

#[derive(Deserialize)]
struct Change {
    #[serde(default, deserialize_with = "or_default")]
    actions: Vec<String>,
    /// Of blocks that read outputs alone.
    after: Option<Box<RawValue>>,
}

impl ResourceChange {
    pub(super) fn is_managed(&self) -> bool {
        self.mode == "managed"
    }

    pub(super) fn does_something(&self) -> bool {
        self.change.actions.iter().any(|action| !matches!(action.as_str(), "no-op" | "read"))
    }

    pub(super) fn only_deletes(&self) -> bool {
        self.change.actions.iter().all(|action| action == "delete")
    }

    /// Attributes of a data block that will be read while applying.
    pub(super) fn awaited(&self) -> Option<&RawValue> {
        let awaits = self.mode == "data" && self.change.actions.iter().any(|action| action == "read");
        self.change.after.as_deref().filter(|_| awaits)
    }
}

#[derive(Deserialize)]
pub(super) struct OutputChanges {
    #[serde(default, deserialize_with = "or_default")]
    actions: Vec<String>,
    #[serde(default)]
    after: Option<Box<RawValue>>,
    #[serde(default)]
    after_unknown: Value,
    #[serde(default)]
    after_sensitive: Value,
    #[serde(default)]
    before_sensitive: Value,
}

impl OutputChanges {
    pub(super) fn planned(self, detailed_type: Option<Box<RawValue>>) -> PlannedOutput {
        let has = |wanted: &str| self.actions.iter().any(|action| action == wanted);
        let action = match (has("create"), has("update"), has("delete")) {
            (_, true, _) | (true, _, true) => OutputAction::Changed,
            (true, ..) => OutputAction::Created,
            (.., true) => OutputAction::Removed,
            _ => OutputAction::Unchanged,
        };
        let unknown = match &self.after_unknown {
            _ if action == OutputAction::Removed => Unknown::Nothing,
            Value::Bool(true) => Unknown::Whole,
            parts if is_true_somewhere(parts) => Unknown::Part,
            _ => Unknown::Nothing,
        };
        // Null is a value that an output may have.
        let null = || RawValue::from_string("null".to_owned()).ok();
        let has_value = action != OutputAction::Removed && unknown != Unknown::Whole;
        PlannedOutput {
            action,
            value: if has_value { self.after.or_else(null) } else { None },
            unknown,
            detailed_type: detailed_type.filter(|_| unknown == Unknown::Nothing),
            sensitive: is_true_somewhere(&self.after_sensitive) || is_true_somewhere(&self.before_sensitive),
        }
    }
}

fn is_true_somewhere(value: &Value) -> bool {
    match value {
        Value::Bool(flag) => *flag,
        Value::Array(elements) => elements.iter().any(is_true_somewhere),
        Value::Object(fields) => fields.values().any(is_true_somewhere),
        _ => false,
    }
}

#[derive(Default, Deserialize)]
pub(super) struct PriorState {
    #[serde(default, deserialize_with = "or_default")]
    pub(super) values: PriorValues,
}

#[derive(Default, Deserialize)]
pub(super) struct PriorValues {
    #[serde(default, deserialize_with = "or_default")]
    pub(super) root_module: PriorModule,
}

#[derive(Default, Deserialize)]
pub(super) struct PriorModule {
    #[serde(default, deserialize_with = "one_by_one")]
    pub(super) resources: Vec<PriorResource>,
    #[serde(default, deserialize_with = "or_default")]
    pub(super) child_modules: Vec<Self>,
}

/// A resource instance of the state that the plan is based on.
#[derive(Deserialize)]
pub(super) struct PriorResource {
    pub(super) address: String,
    #[serde(default)]
    pub(super) mode: String,
    #[serde(default, rename = "type")]
    pub(super) kind: String,
    /// Of blocks that read outputs alone.
    pub(super) values: Option<Box<RawValue>>,
    #[serde(default, deserialize_with = "or_default")]
    pub(super) depends_on: Vec<String>,
}

/// Something whose values are kept only where they tell what was read.
trait Thin {
    fn forget_values(&mut self);
}

impl Thin for PriorResource {
    fn forget_values(&mut self) {
        if self.mode != "data" || read_via(&self.kind).is_none() {
            self.values = None;
        }
    }
}

impl Thin for ResourceChange {
    fn forget_values(&mut self) {
        if self.mode != "data" || read_via(&self.kind).is_none() {
            self.change.after = None;
        }
    }
}

/// Reads a list, and forgets the values of each element before it looks at the next.
fn one_by_one<'de, D: Deserializer<'de>, T: Thin + Deserialize<'de>>(deserializer: D) -> Result<Vec<T>, D::Error> {
    struct OneByOne<T>(PhantomData<T>);
    impl<'de, T: Thin + Deserialize<'de>> Visitor<'de> for OneByOne<T> {
        type Value = Vec<T>;

        fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
            formatter.write_str("a list of resources")
        }

        fn visit_unit<E>(self) -> Result<Vec<T>, E> {
            Ok(Vec::new())
        }

        fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Vec<T>, A::Error> {
            let mut all = Vec::new();
            while let Some(mut element) = list.next_element::<T>()? {
                element.forget_values();
                all.push(element);
            }
            Ok(all)
        }
    }
    deserializer.deserialize_any(OneByOne(PhantomData))
}

impl PriorModule {
    /// Calls `act` with every resource instance.
    pub(super) fn each<'a>(&'a self, act: &mut impl FnMut(&'a PriorResource)) {
        self.resources.iter().for_each(&mut *act);
        for module in &self.child_modules {
            module.each(act);
        }
    }
}

/// Attribute that may have led to a change, with local values and modules seen through.
#[derive(Deserialize)]
pub(super) struct RelevantAttribute {
    #[serde(default)]
    pub(super) resource: String,
    #[serde(default, deserialize_with = "or_default")]
    pub(super) attribute: Vec<Value>,
}

/// Reads a value that may be missing or odd.
pub(super) fn lenient<T: DeserializeOwned + Default>(value: &Value) -> T {
    serde_json::from_value(value.clone()).unwrap_or_default()
}
