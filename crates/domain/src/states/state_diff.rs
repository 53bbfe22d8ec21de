//! Diff of two states: which resources came, went and changed, attribute by attribute. Give it states that are masked:
//! see [`crate::state_mask`].

use std::collections::{BTreeMap, BTreeSet};

use crate::json_tree::JsonTree;

#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct StateDiff {
    /// Resources that differ, by module and address.
    pub resources: Vec<Difference>,
    /// By name.
    pub outputs: Vec<Difference>,
    /// Number of unchanged resource instances.
    pub unchanged: usize,
}

/// One thing that differs.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Difference {
    /// Empty in the root module, and for outputs.
    pub module: String,
    /// Within the module.
    pub address: String,
    pub change: Change,
    pub attributes: Vec<AttributeDifference>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Change {
    Added,
    Removed,
    Changed,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AttributeDifference {
    /// Such as `tags.name` or `rules[0].port`.
    pub path: String,
    pub before: Option<String>,
    pub after: Option<String>,
}

/// Changes from `before` to `after`.
pub fn compare(before: &JsonTree, after: &JsonTree) -> StateDiff {
    let (mut resources, unchanged) = differences(&instances(before), &instances(after));
    resources.sort_by(|one, other| (&one.module, &one.address).cmp(&(&other.module, &other.address)));
    let (outputs, _) = differences(&outputs(before), &outputs(after));
    StateDiff { resources, outputs, unchanged }
}

const PROVIDER: &str = "(provider)";

/// Module and address.
type Place = (String, String);

/// Named parts of each thing that are compared.
type Parts<'a> = Vec<(&'static str, &'a JsonTree)>;

fn differences(before: &BTreeMap<Place, Parts<'_>>, after: &BTreeMap<Place, Parts<'_>>) -> (Vec<Difference>, usize) {
    let places: BTreeSet<&Place> = before.keys().chain(after.keys()).collect();
    let mut unchanged = 0;
    let mut found = Vec::new();
    for place in places {
        let (old, new) = (before.get(place), after.get(place));
        let mut attributes = Vec::new();
        let names: BTreeSet<&str> = [old, new].into_iter().flatten().flatten().map(|(name, _)| *name).collect();
        for name in names {
            // Of what came or went, the provider says nothing that its type does not.
            if name == PROVIDER && (old.is_none() || new.is_none()) {
                continue;
            }
            collect(name, part(old, name), part(new, name), &mut attributes);
        }
        let change = match (old, new) {
            (None, _) => Change::Added,
            (_, None) => Change::Removed,
            _ if attributes.is_empty() => {
                unchanged += 1;
                continue;
            }
            _ => Change::Changed,
        };
        let (module, address) = place.clone();
        found.push(Difference { module, address, change, attributes });
    }
    (found, unchanged)
}

fn part<'a>(parts: Option<&Parts<'a>>, name: &str) -> Option<&'a JsonTree> {
    parts?.iter().find(|(other, _)| *other == name).map(|(_, tree)| *tree)
}

/// Each instance of each resource. What only the engine cares for is left out: the JSON shows it.
fn instances(state: &JsonTree) -> BTreeMap<Place, Parts<'_>> {
    let text = |tree: &JsonTree, name: &str| tree.get(name).and_then(JsonTree::as_text).unwrap_or_default();
    let mut all = BTreeMap::new();
    for resource in state.get("resources").map(JsonTree::elements).unwrap_or_default() {
        let data = if text(resource, "mode") == "data" { "data." } else { "" };
        let name = format!("{data}{}.{}", text(resource, "type"), text(resource, "name"));
        for instance in resource.get("instances").map(JsonTree::elements).unwrap_or_default() {
            let index = instance.get("index_key").map(|key| format!("[{}]", key.compact())).unwrap_or_default();
            let deposed = match text(instance, "deposed") {
                key if key.is_empty() => key,
                key => format!(" (deposed {key})"),
            };
            let parts = [
                ("", instance.get("attributes")),
                ("attributes_flat", instance.get("attributes_flat")),
                ("(status)", instance.get("status")),
                (PROVIDER, resource.get("provider")),
            ];
            let parts = parts.into_iter().filter_map(|(shown, tree)| Some((shown, tree?))).collect();
            all.insert((text(resource, "module"), format!("{name}{index}{deposed}")), parts);
        }
    }
    all
}

/// Outputs with their values. Their types are left out: the JSON shows them.
fn outputs(state: &JsonTree) -> BTreeMap<Place, Parts<'_>> {
    let Some(JsonTree::Object(outputs)) = state.get("outputs") else { return BTreeMap::new() };
    outputs
        .iter()
        .map(|(name, output)| {
            let parts = ["value", "sensitive"].into_iter().filter_map(|part| Some((part, output.get(part)?)));
            ((String::new(), name.clone()), parts.collect())
        })
        .collect()
}

/// Path and value of each leaf of some attributes. What is empty is left out.
pub(crate) fn leaves(attributes: &JsonTree) -> Vec<(String, String)> {
    let mut found = Vec::new();
    collect("", None, Some(attributes), &mut found);
    found.into_iter().filter_map(|leaf| Some((leaf.path, leaf.after?))).collect()
}

/// Walks both at once, and notes the leaves that differ.
fn collect(path: &str, before: Option<&JsonTree>, after: Option<&JsonTree>, found: &mut Vec<AttributeDifference>) {
    let within = |name: &str| if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") };
    match (before, after) {
        (Some(before), Some(after)) if before == after => {}
        (None, None) => {}
        (Some(JsonTree::Object(_)) | None, Some(JsonTree::Object(_)) | None) => {
            let fields = |tree: Option<&JsonTree>| match tree {
                Some(JsonTree::Object(fields)) => fields.keys().cloned().collect(),
                _ => BTreeSet::new(),
            };
            for name in fields(before).union(&fields(after)) {
                let (mut old, mut new) = (field(before, name), field(after, name));
                // Attributes of a dynamic type stand at the top. What differs in its type alone is shown as it is stored.
                if path.is_empty() && old.map(without_type) != new.map(without_type) {
                    (old, new) = (old.map(without_type), new.map(without_type));
                }
                collect(&within(name), old, new, found);
            }
        }
        (Some(JsonTree::List(_)) | None, Some(JsonTree::List(_)) | None) => {
            let elements = |tree: Option<&JsonTree>| tree.map(JsonTree::elements).unwrap_or_default().to_vec();
            let (before, after) = (elements(before), elements(after));
            for index in 0..before.len().max(after.len()) {
                collect(&format!("{path}[{index}]"), before.get(index), after.get(index), found);
            }
        }
        (before, after) => {
            // Of what came or went, that something is empty says nothing.
            let shown = |tree: Option<&JsonTree>| tree.map(JsonTree::compact);
            let only = before.xor(after);
            if !only.is_some_and(JsonTree::is_nothing) {
                found.push(AttributeDifference { path: path.to_owned(), before: shown(before), after: shown(after) });
            }
        }
    }
}

/// Value of an attribute of a dynamic type, which states store together with its type; any other attribute as it is.
fn without_type(tree: &JsonTree) -> &JsonTree {
    let JsonTree::Object(fields) = tree else { return tree };
    match (fields.get("type"), fields.get("value")) {
        (Some(kind), Some(value)) if fields.len() == 2 && is_of_type(value, kind) => value,
        _ => tree,
    }
}

/// True if `kind` is a type as engines write it, such as `"string"` or `["list","string"]`, and `value` can be of it.
fn is_of_type(value: &JsonTree, kind: &JsonTree) -> bool {
    let name = kind.as_text().or_else(|| kind.elements().first().and_then(JsonTree::as_text)).unwrap_or_default();
    let is_simple = matches!(kind, JsonTree::Scalar(_));
    match (value, name.as_str()) {
        (JsonTree::Scalar(_) | JsonTree::Hidden(_), "string" | "number" | "bool") => is_simple,
        (JsonTree::Scalar(raw), "list" | "set" | "tuple" | "map" | "object") => !is_simple && raw == "null",
        (JsonTree::List(_) | JsonTree::Hidden(_), "list" | "set" | "tuple") => !is_simple,
        (JsonTree::Object(_) | JsonTree::Hidden(_), "map" | "object") => !is_simple,
        _ => false,
    }
}

fn field<'a>(tree: Option<&'a JsonTree>, name: &str) -> Option<&'a JsonTree> {
    tree.and_then(|tree| tree.get(name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::state_mask::mask;

    fn state(resources: &str, outputs: &str) -> JsonTree {
        let text = format!(r#"{{"version":4,"outputs":{{{outputs}}},"resources":[{resources}]}}"#);
        mask(JsonTree::parse(text.as_bytes()).expect("JSON"))
    }

    fn resource(name: &str, instances: &str) -> String {
        format!(
            r#"{{"mode":"managed","type":"null_resource","name":"{name}","provider":"p","instances":[{instances}]}}"#
        )
    }

    fn lines(differences: &[Difference]) -> Vec<String> {
        let line = |difference: &Difference| {
            let Difference { module, address, change, attributes } = difference;
            let attributes = attributes.iter().map(|attribute| {
                let shown = |value: &Option<String>| value.clone().unwrap_or_else(|| "-".to_owned());
                format!(" {}: {} > {}", attribute.path, shown(&attribute.before), shown(&attribute.after))
            });
            format!("{change:?} {module}:{address}{}", attributes.collect::<String>())
        };
        differences.iter().map(line).collect()
    }

    #[test]
    fn resources_come_go_and_change() {
        let before = [
            resource("gone", r#"{"attributes":{"id":"1","empty":null}}"#),
            resource("kept", r#"{"attributes":{"id":"2","tags":{"a":"x","b":"y"},"ports":[1,2]}}"#),
            resource("same", r#"{"attributes":{"id":"3"},"dependencies":["a.b"]}"#),
        ];
        let after = [
            resource(
                "kept",
                r#"{"attributes":{"id":"2","tags":{"a":"z","c":"n"},"ports":[1,2,3]},"status":"tainted"}"#,
            ),
            resource("many", r#"{"index_key":0,"attributes":{"id":"4"}},{"index_key":"k","attributes":{"id":"5"}}"#),
            resource("same", r#"{"attributes":{"id":"3"},"dependencies":[]}"#),
        ];
        let diff = compare(&state(&before.join(","), ""), &state(&after.join(","), ""));
        assert_eq!(diff.unchanged, 1);
        assert_eq!(
            lines(&diff.resources),
            [
                r#"Removed :null_resource.gone id: "1" > -"#,
                r#"Changed :null_resource.kept ports[2]: - > 3 tags.a: "x" > "z" tags.b: "y" > - tags.c: - > "n" (status): - > "tainted""#,
                r#"Added :null_resource.many["k"] id: - > "5""#,
                r#"Added :null_resource.many[0] id: - > "4""#,
            ]
        );
    }

    #[test]
    fn a_sensitive_value_is_told_to_have_changed_and_not_shown() {
        let attributes = |value: &str| {
            resource(
                "a",
                &format!(
                    r#"{{"attributes":{{"result":"{value}"}},"sensitive_attributes":[[{{"type":"get_attr","value":"result"}}]]}}"#
                ),
            )
        };
        let diff = compare(&state(&attributes("one"), ""), &state(&attributes("two"), ""));
        assert_eq!(lines(&diff.resources), ["Changed :null_resource.a result: (sensitive) > (sensitive)"]);
        assert_eq!(compare(&state(&attributes("one"), ""), &state(&attributes("one"), "")).resources, []);
    }

    #[test]
    fn outputs_are_compared_by_name() {
        let before = r#""a":{"value":1,"type":"number"},"b":{"value":"x","type":"string","sensitive":true}"#;
        let after =
            r#""a":{"value":2,"type":"number"},"b":{"value":"y","type":"string","sensitive":true},"c":{"value":[1]}"#;
        let diff = compare(&state("", before), &state("", after));
        assert_eq!(
            lines(&diff.outputs),
            ["Changed :a value: 1 > 2", "Changed :b value: (sensitive) > (sensitive)", "Added :c value[0]: - > 1"]
        );
    }

    #[test]
    fn attributes_of_a_dynamic_type_are_shown_without_their_type() {
        // As terraform 1.11 writes `terraform_data`.
        let data = |region: &str| {
            let kind = r#"["object",{"region":"string","zones":["tuple",["string"]]}]"#;
            let value = format!(r#"{{"region":"{region}","zones":["a"]}}"#);
            let dynamic = format!(r#"{{"value":{value},"type":{kind}}}"#);
            resource("a", &format!(r#"{{"attributes":{{"id":"1","input":{dynamic},"output":{dynamic}}}}}"#))
        };
        let diff = compare(&state(&data("eu"), ""), &state(&data("us"), ""));
        assert_eq!(
            lines(&diff.resources),
            [r#"Changed :null_resource.a input.region: "eu" > "us" output.region: "eu" > "us""#]
        );
        let added = compare(&state("", ""), &state(&data("eu"), ""));
        assert_eq!(
            lines(&added.resources),
            [concat!(
                r#"Added :null_resource.a id: - > "1" input.region: - > "eu" input.zones[0]: - > "a""#,
                r#" output.region: - > "eu" output.zones[0]: - > "a""#
            )]
        );
        let simple = |input: &str| state(&resource("a", &format!(r#"{{"attributes":{{"input":{input}}}}}"#)), "");
        let diff = compare(
            &simple(r#"{"type":"string","value":"1"}"#),
            &simple(r#"{"type":["list","string"],"value":["1"]}"#),
        );
        assert_eq!(lines(&diff.resources), [r#"Changed :null_resource.a input: "1" > ["1"]"#]);
    }

    #[test]
    fn fields_that_are_called_type_and_value_are_compared_like_others() {
        let record = |kind: &str, value: &str| {
            let object = format!(r#"{{"type":"{kind}","value":"{value}"}}"#);
            state(&resource("a", &format!(r#"{{"attributes":{{"record":{object},"all":[{object}]}}}}"#)), "")
        };
        let diff = compare(&record("A", "x"), &record("CNAME", "x"));
        assert_eq!(
            lines(&diff.resources),
            [r#"Changed :null_resource.a all[0].type: "A" > "CNAME" record.type: "A" > "CNAME""#]
        );
        let diff = compare(&record("string", "x"), &record("number", "x"));
        assert_eq!(
            lines(&diff.resources),
            [r#"Changed :null_resource.a all[0].type: "string" > "number" record.type: "string" > "number""#]
        );
    }

    #[test]
    fn types_of_outputs_are_left_out() {
        let before = r#""a":{"value":{"b":1},"type":["object",{"b":"number"}]}"#;
        let after = r#""a":{"value":{"b":1,"c":"x"},"type":["object",{"b":"number","c":"string"}]}"#;
        let diff = compare(&state("", before), &state("", after));
        assert_eq!(lines(&diff.outputs), [r#"Changed :a value.c: - > "x""#]);
    }

    #[test]
    fn a_value_that_becomes_a_list_is_shown_whole() {
        let before = resource("a", r#"{"attributes":{"x":"1"}}"#);
        let after = resource("a", r#"{"attributes":{"x":["1","2"]}}"#);
        let diff = compare(&state(&before, ""), &state(&after, ""));
        assert_eq!(lines(&diff.resources), [r#"Changed :null_resource.a x: "1" > ["1","2"]"#]);
    }
}
