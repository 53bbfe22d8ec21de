//! Fields that this version does not know. A newer server wrote them, and an older one that changes the record keeps them,
//! however deep they lie.

use std::collections::BTreeMap;

use serde_json::Value;

/// Contents of a record's JSON beyond what this version knows.
#[derive(Clone, PartialEq, Debug)]
pub(crate) enum Unknown {
    /// A whole value.
    Value(Value),
    /// Within an object, by the names of its fields.
    Fields(BTreeMap<String, Self>),
    /// Within elements of a list: the elements as far as this version knows them. Elsewhere in the list, they are found
    /// again; those that are changed or gone take with them what belongs to them.
    Elements(Vec<(Value, Self)>),
}

impl Unknown {
    /// Parts that `original` has and `known`, the same as this version writes it, lacks.
    pub(crate) fn between(original: Value, known: &Value) -> Option<Self> {
        match (original, known) {
            (Value::Object(original), Value::Object(known)) => {
                let fields = original.into_iter().filter_map(|(name, value)| {
                    let unknown = match known.get(&name) {
                        Some(known) => Self::between(value, known)?,
                        None => Self::Value(value),
                    };
                    Some((name, unknown))
                });
                let fields: BTreeMap<_, _> = fields.collect();
                (!fields.is_empty()).then_some(Self::Fields(fields))
            }
            (Value::Array(original), Value::Array(known)) if original.len() == known.len() => {
                let elements = original.into_iter().zip(known);
                let elements =
                    elements.filter_map(|(original, known)| Some((known.clone(), Self::between(original, known)?)));
                let elements: Vec<_> = elements.collect();
                (!elements.is_empty()).then_some(Self::Elements(elements))
            }
            _ => None,
        }
    }

    /// Puts it back into what this version writes.
    pub(crate) fn restore_in(&self, value: &mut Value) {
        match (self, value) {
            (Self::Fields(unknown), Value::Object(fields)) => {
                for (name, unknown) in unknown {
                    match (unknown, fields.get_mut(name)) {
                        (Self::Value(value), None) => drop(fields.insert(name.clone(), value.clone())),
                        (_, Some(field)) => unknown.restore_in(field),
                        (_, None) => {}
                    }
                }
            }
            (Self::Elements(unknown), Value::Array(elements)) => {
                // One that has its own back is no longer equal to what was known of it.
                for (known, unknown) in unknown {
                    if let Some(element) = elements.iter_mut().find(|element| *element == known) {
                        unknown.restore_in(element);
                    }
                }
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Result for `original` when a version that knows `known` writes `changed`.
    fn written(original: Value, known: Value, mut changed: Value) -> Value {
        if let Some(unknown) = Unknown::between(original, &known) {
            unknown.restore_in(&mut changed);
        }
        changed
    }

    #[test]
    fn nothing_is_unknown_where_all_is_known() {
        let value = json!({ "id": 1, "deep": { "list": [{ "a": 1 }, 2] } });
        assert_eq!(Unknown::between(value.clone(), &value), None);
    }

    #[test]
    fn unknown_fields_survive_at_any_depth() {
        let original = json!({ "id": 1, "new": { "x": 1 }, "plan": { "status": "a", "new": 2 }, "lock": { "new": 3 } });
        let known = json!({ "id": 1, "plan": { "status": "a" }, "lock": {} });
        let changed = json!({ "id": 1, "plan": { "status": "b" }, "lock": null });
        let expected = json!({ "id": 1, "new": { "x": 1 }, "plan": { "status": "b", "new": 2 }, "lock": null });
        assert_eq!(written(original, known, changed), expected);
    }

    #[test]
    fn elements_of_a_list_keep_their_own() {
        let original = json!([{ "at": 1, "by": "x" }, { "at": 2, "by": "y" }, { "at": 3, "by": "z" }]);
        let known = json!([{ "at": 1 }, { "at": 2 }, { "at": 3 }]);
        let longer = json!([{ "at": 1 }, { "at": 2 }, { "at": 3 }, { "at": 4 }]);
        let expected = json!([{ "at": 1, "by": "x" }, { "at": 2, "by": "y" }, { "at": 3, "by": "z" }, { "at": 4 }]);
        assert_eq!(written(original.clone(), known.clone(), longer), expected);
        let without_first = json!([{ "at": 2 }, { "at": 3 }]);
        let expected = json!([{ "at": 2, "by": "y" }, { "at": 3, "by": "z" }]);
        assert_eq!(written(original, known, without_first), expected);
    }
}
