//! Changed attributes of a resource.

use serde_json::{Map, Value};

use super::{ChangeJson, Shown};
use crate::text::plain;

/// So many attributes of one resource are shown.
const MAX_SHOWN_ATTRIBUTES: usize = 400;

/// One attribute that changes, named by its path.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Attribute {
    pub(crate) path: String,
    /// `None` where there was none.
    pub(crate) before: Option<Shown>,
    /// `None` where there will be none.
    pub(crate) after: Option<Shown>,
    /// It cannot be changed in place.
    pub(crate) forces_replacement: bool,
}

impl Attribute {
    pub(crate) fn sign(&self) -> &'static str {
        match (&self.before, &self.after) {
            (None, _) => "+",
            (_, None) => "−",
            _ => "~",
        }
    }

    /// The class of its row.
    pub(crate) fn tone(&self) -> &'static str {
        match (&self.before, &self.after) {
            (None, _) => "adds",
            (_, None) => "removes",
            _ => "changes",
        }
    }

    #[cfg(test)]
    pub(crate) fn in_words(&self) -> String {
        let values = [&self.before, &self.after].into_iter().flatten().map(Shown::in_words).collect::<Vec<_>>();
        format!("{} {} = {}", self.sign(), self.path, values.join(" → "))
    }
}

/// The attributes that change, and how many do not.
pub(super) fn of(change: &ChangeJson) -> (Vec<Attribute>, usize) {
    let mut walk = Walk { replace_paths: &change.replace_paths, found: Vec::new(), unchanged: 0 };
    walk.compare(&mut Vec::new(), &Sides::of(change));
    walk.found.truncate(MAX_SHOWN_ATTRIBUTES);
    (walk.found, walk.unchanged)
}

/// The same for an output, which is one value.
pub(super) fn of_value(change: &ChangeJson) -> Vec<Attribute> {
    of(change).0
}

/// A value before and after, with what is known about both.
struct Sides<'a> {
    before: &'a Value,
    after: &'a Value,
    unknown: &'a Value,
    before_sensitive: &'a Value,
    after_sensitive: &'a Value,
}

#[derive(Clone, PartialEq, Eq)]
enum Step {
    Name(String),
    Index(usize),
}

impl Step {
    fn is(&self, json: &Value) -> bool {
        match self {
            Self::Name(name) => json.as_str() == Some(name),
            Self::Index(index) => json.as_u64() == Some(*index as u64),
        }
    }

    fn of<'a>(&self, value: &'a Value) -> &'a Value {
        // Marks may say it for a whole value.
        if let Value::Bool(true) = value {
            return value;
        }
        match self {
            Self::Name(name) => &value[name],
            Self::Index(index) => &value[*index],
        }
    }
}

impl<'a> Sides<'a> {
    fn of(change: &'a ChangeJson) -> Self {
        Self {
            before: &change.before,
            after: &change.after,
            unknown: &change.after_unknown,
            before_sensitive: &change.before_sensitive,
            after_sensitive: &change.after_sensitive,
        }
    }

    fn within(&self, step: &Step) -> Self {
        // A value is not a mark: what is `true` has no parts.
        let part = |value: &'a Value| if value.is_boolean() { &Value::Null } else { step.of(value) };
        Self {
            before: part(self.before),
            after: part(self.after),
            unknown: step.of(self.unknown),
            before_sensitive: step.of(self.before_sensitive),
            after_sensitive: step.of(self.after_sensitive),
        }
    }

    fn is_leaf(&self) -> bool {
        let whole = |mark: &Value| *mark == Value::Bool(true);
        let parts = |value: &Value| value.is_object() || value.is_array();
        let differs = !self.before.is_null()
            && !self.after.is_null()
            && (self.before.is_object() != self.after.is_object() || self.before.is_array() != self.after.is_array());
        whole(self.before_sensitive)
            || whole(self.after_sensitive)
            || whole(self.unknown)
            || differs
            || !(parts(self.before) || parts(self.after) || parts(self.unknown))
    }

    /// The steps to the values on either side.
    fn steps(&self) -> Vec<Step> {
        let sides = [self.before, self.after, self.unknown];
        let objects = sides.iter().filter_map(|side| side.as_object());
        let mut names: Vec<String> = objects.flat_map(Map::keys).cloned().collect();
        names.sort();
        names.dedup();
        let longest = sides.iter().filter_map(|side| side.as_array()).map(Vec::len).max().unwrap_or(0);
        names.into_iter().map(Step::Name).chain((0..longest).map(Step::Index)).collect()
    }
}

struct Walk<'a> {
    replace_paths: &'a [Vec<Value>],
    found: Vec<Attribute>,
    unchanged: usize,
}

impl Walk<'_> {
    fn compare(&mut self, path: &mut Vec<Step>, sides: &Sides<'_>) {
        let steps = if sides.is_leaf() { Vec::new() } else { sides.steps() };
        if steps.is_empty() {
            self.leaf(path, sides);
            return;
        }
        for step in steps {
            let within = sides.within(&step);
            path.push(step);
            self.compare(path, &within);
            path.pop();
        }
    }

    fn leaf(&mut self, path: &[Step], sides: &Sides<'_>) {
        let unknown = *sides.unknown == Value::Bool(true);
        let (before_hidden, after_hidden) = (is_marked(sides.before_sensitive), is_marked(sides.after_sensitive));
        if !unknown && sides.before == sides.after && before_hidden == after_hidden {
            self.unchanged += usize::from(!sides.before.is_null());
            return;
        }
        let side = |value: &Value, hidden: bool| match value {
            Value::Null => None,
            _ if hidden => Some(Shown::Sensitive),
            value => Some(Shown::of(value)),
        };
        let before = side(sides.before, before_hidden);
        let after = if unknown { Some(Shown::Unknown) } else { side(sides.after, after_hidden) };
        if before.is_none() && after.is_none() {
            return;
        }
        let forces_replacement = self.replace_paths.iter().any(|forced| begins_with(path, forced));
        self.found.push(Attribute { path: shown_path(path), before, after, forces_replacement });
    }
}

/// A mark on any part hides the whole: what is compared here is not looked into any further.
fn is_marked(marks: &Value) -> bool {
    match marks {
        Value::Bool(marked) => *marked,
        Value::Array(marks) => marks.iter().any(is_marked),
        Value::Object(marks) => marks.values().any(is_marked),
        _ => false,
    }
}

fn begins_with(path: &[Step], forced: &[Value]) -> bool {
    forced.len() <= path.len() && path.iter().zip(forced).all(|(step, json)| step.is(json))
}

/// As expressions spell it: `tags["a b"]`, `rule[0].port`.
fn shown_path(path: &[Step]) -> String {
    let mut text = String::new();
    for step in path {
        match step {
            Step::Index(index) => text.push_str(&format!("[{index}]")),
            Step::Name(name) if is_plain_name(name) => {
                if !text.is_empty() {
                    text.push('.');
                }
                text.push_str(name);
            }
            Step::Name(name) => text.push_str(&format!("[{:?}]", plain(name))),
        }
    }
    if text.is_empty() { "value".to_owned() } else { text }
}

fn is_plain_name(name: &str) -> bool {
    !name.is_empty()
        && name.chars().all(|character| character.is_ascii_alphanumeric() || matches!(character, '_' | '-'))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn told(change: Value) -> Vec<String> {
        let change: ChangeJson = serde_json::from_value(change).expect("a change");
        of(&change).0.iter().map(Attribute::in_words).collect()
    }

    #[test]
    fn each_leaf_that_changes_is_named_by_its_path() {
        let change = json!({
            "actions": ["update"],
            "before": { "a": 1, "tags": { "x": "1", "b c": "2" }, "list": [1, 2], "same": true, "text": "a\nb\n" },
            "after": { "a": 2, "tags": { "x": "1", "b c": "3" }, "list": [1, 2, 3], "same": true, "gone": null },
            "after_unknown": { "id": true },
        });
        let expected = [
            "~ a = 1 → 2",
            "+ id = (known after apply)",
            "+ list[2] = 3",
            "~ tags[\"b c\"] = \"2\" → \"3\"",
            "− text = a\nb\n",
        ];
        assert_eq!(told(change.clone()), expected);
        let change: ChangeJson = serde_json::from_value(change).expect("a change");
        assert_eq!(of(&change).1, 4, "same, tags.x and two of the list");
    }

    #[test]
    fn a_mark_hides_whatever_it_covers() {
        for (marks, value) in [
            (json!({ "p": true }), json!({ "p": "hunter2" })),
            (json!({ "p": true }), json!({ "p": { "deep": ["hunter2"] } })),
            (json!(true), json!({ "p": "hunter2" })),
            (json!({ "p": [false, true] }), json!({ "p": ["open", "hunter2"] })),
            (json!({ "p": { "deep": true } }), json!({ "p": "hunter2" })),
        ] {
            let words = told(json!({
                "actions": ["create"], "before": null, "after": value, "after_sensitive": marks,
            }));
            let words = words.join("\n");
            assert!(!words.contains("hunter2") && words.contains("(sensitive)"), "{marks}: {words}");
        }
    }

    #[test]
    fn a_value_that_becomes_sensitive_is_a_change() {
        let words = told(json!({
            "before": { "p": "same" }, "after": { "p": "same" }, "after_sensitive": { "p": true },
        }));
        assert_eq!(words, ["~ p = \"same\" → (sensitive)"]);
    }

    #[test]
    fn what_forces_a_replacement_is_known_by_its_path() {
        let change = json!({
            "before": { "a": { "b": 1 }, "c": 1 }, "after": { "a": { "b": 2 }, "c": 2 }, "replace_paths": [["a"]],
        });
        let change: ChangeJson = serde_json::from_value(change).expect("a change");
        let forced: Vec<_> = of(&change).0.iter().map(|one| (one.path.clone(), one.forces_replacement)).collect();
        assert_eq!(forced, [("a.b".to_owned(), true), ("c".to_owned(), false)]);
    }
}
