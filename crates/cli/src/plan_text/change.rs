//! One value before and after, with what is known about its parts.

use std::collections::BTreeSet;

use serde_json::Value;

static NOTHING: Value = Value::Null;

/// A value of a plan: what it was, what it will be, and which parts of it are unknown, sensitive or force a replacement.
#[derive(Clone, Debug)]
pub(super) struct Change<'a> {
    pub(super) before: Option<&'a Value>,
    pub(super) after: Option<&'a Value>,
    unknown: &'a Value,
    sensitive_before: &'a Value,
    sensitive_after: &'a Value,
    /// Paths below this value that force a replacement; an empty one is the value itself.
    replace: Vec<&'a [Value]>,
}

impl<'a> Change<'a> {
    /// A whole `change` object of a plan's JSON.
    pub(super) fn of(json: &'a Value) -> Self {
        let part = |name: &str| json.get(name).unwrap_or(&NOTHING);
        let paths = part("replace_paths").as_array().map(Vec::as_slice).unwrap_or_default();
        Self {
            before: present(part("before")),
            after: present(part("after")),
            unknown: part("after_unknown"),
            sensitive_before: part("before_sensitive"),
            sensitive_after: part("after_sensitive"),
            replace: paths.iter().filter_map(Value::as_array).map(Vec::as_slice).collect(),
        }
    }

    /// A value about which nothing else is known.
    pub(super) fn plain(before: Option<&'a Value>, after: Option<&'a Value>) -> Self {
        let [unknown, sensitive_before, sensitive_after] = [&NOTHING; 3];
        Self { before, after, unknown, sensitive_before, sensitive_after, replace: Vec::new() }
    }

    /// Only what was there before.
    pub(super) fn removed(&self) -> Self {
        Self { after: None, unknown: &NOTHING, sensitive_after: &NOTHING, replace: Vec::new(), ..self.clone() }
    }

    /// The same where a value that is null is none.
    pub(super) fn without_nulls(self) -> Self {
        Self { before: self.before.and_then(present), after: self.after.and_then(present), ..self }
    }

    pub(super) fn is_unknown(&self) -> bool {
        self.unknown == &Value::Bool(true)
    }

    pub(super) fn was_sensitive(&self) -> bool {
        self.sensitive_before == &Value::Bool(true)
    }

    pub(super) fn is_sensitive(&self) -> bool {
        self.sensitive_after == &Value::Bool(true)
    }

    pub(super) fn forces_replacement(&self) -> bool {
        self.replace.iter().any(|path| path.is_empty())
    }

    /// Keys of an object, before or after, also those whose values are unknown.
    pub(super) fn keys(&self) -> BTreeSet<&'a str> {
        let objects = [self.before, self.after].into_iter().flatten().filter_map(Value::as_object);
        let known = objects.flat_map(|object| object.keys());
        let unknown = self.unknown.as_object().into_iter().flatten();
        let unknown = unknown.filter(|(_, value)| has_unknown(value)).map(|(name, _)| name);
        known.chain(unknown).map(String::as_str).collect()
    }

    pub(super) fn child(&self, key: &str) -> Self {
        let of = |marks: &'a Value| marks.get(key).unwrap_or(&NOTHING);
        Self {
            before: self.before.and_then(|value| value.get(key)),
            after: self.after.and_then(|value| value.get(key)),
            unknown: of(self.unknown),
            sensitive_before: of(self.sensitive_before),
            sensitive_after: of(self.sensitive_after),
            replace: self.below(|step| step == key),
        }
    }

    /// Elements of a list: one of those before, and one of those after.
    pub(super) fn element(&self, before: Option<usize>, after: Option<usize>) -> Self {
        let at = |marks: &'a Value, index: Option<usize>| index.and_then(|index| marks.get(index)).unwrap_or(&NOTHING);
        let value = |list: Option<&'a Value>, index: Option<usize>| list?.get(index?);
        Self {
            before: value(self.before, before),
            after: value(self.after, after),
            unknown: at(self.unknown, after),
            sensitive_before: at(self.sensitive_before, before),
            sensitive_after: at(self.sensitive_after, after),
            replace: self.below(|step| before.or(after).is_some_and(|index| step == &Value::from(index))),
        }
    }

    fn below(&self, is_next: impl Fn(&Value) -> bool) -> Vec<&'a [Value]> {
        self.replace
            .iter()
            .filter_map(|path| path.split_first())
            .filter(|(step, _)| is_next(step))
            .map(|(_, rest)| rest)
            .collect()
    }

    /// Number of elements before and after.
    pub(super) fn lengths(&self) -> (usize, usize) {
        let length = |list: Option<&Value>| list.and_then(Value::as_array).map_or(0, Vec::len);
        // Elements at the end that are unknown as a whole may be missing.
        let unknown = self
            .unknown
            .as_array()
            .map_or(0, |marks| if self.after.is_some() && marks.iter().any(has_unknown) { marks.len() } else { 0 });
        (length(self.before), length(self.after).max(unknown))
    }
}

fn present(value: &Value) -> Option<&Value> {
    Some(value).filter(|value| !value.is_null())
}

fn has_unknown(marks: &Value) -> bool {
    match marks {
        Value::Bool(unknown) => *unknown,
        Value::Array(marks) => marks.iter().any(has_unknown),
        Value::Object(marks) => marks.values().any(has_unknown),
        _ => false,
    }
}
