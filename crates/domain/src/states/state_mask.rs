//! Hides what is sensitive in a state before anyone looks at it on a page.
//!
//! A state names the attributes that are sensitive; sensitive outputs say so themselves. Older engines did not write
//! down what a provider calls sensitive, so attributes whose names sound like a secret are hidden too: hiding one too
//! many costs a look into the state itself, showing one too many cannot be undone. For the same reason a text that is
//! hidden in one place is hidden wherever else it stands alone: engines forget that what was copied is sensitive too.

use std::collections::HashSet;

use crate::json_tree::JsonTree;

/// Parts of names that sound like a secret.
const SECRET_WORDS: &[&str] =
    &["password", "passwd", "passphrase", "secret", "token", "private_key", "api_key", "access_key", "credential"];

/// Shorter texts are not looked for elsewhere: too many things are called so by chance.
const SHORTEST_COPY: usize = 6;

/// The same state with what is sensitive hidden.
pub fn mask(mut state: JsonTree) -> JsonTree {
    if let Some(JsonTree::Object(outputs)) = state.get_mut("outputs") {
        for output in outputs.values_mut() {
            if output.get("sensitive").is_some_and(JsonTree::is_true)
                && let Some(value) = output.get_mut("value")
            {
                value.hide();
            }
        }
    }
    for resource in state.get_mut("resources").map(JsonTree::elements_mut).unwrap_or_default() {
        for instance in resource.get_mut("instances").map(JsonTree::elements_mut).unwrap_or_default() {
            mask_instance(instance);
        }
    }
    let mut texts = HashSet::new();
    collect_hidden(&state, false, &mut texts);
    for place in ["outputs", "resources"] {
        if let Some(tree) = state.get_mut(place) {
            hide_copies(tree, &texts);
        }
    }
    state
}

/// The texts that are hidden, with their quotes.
fn collect_hidden(tree: &JsonTree, hidden: bool, texts: &mut HashSet<String>) {
    match tree {
        JsonTree::Hidden(inner) => collect_hidden(inner, true, texts),
        JsonTree::List(elements) => elements.iter().for_each(|element| collect_hidden(element, hidden, texts)),
        JsonTree::Object(fields) => {
            // A value that says its own type: `string` is no secret.
            let typed = fields.len() == 2 && fields.contains_key("type") && fields.contains_key("value");
            for (_, field) in fields.iter().filter(|(name, _)| !(typed && name.as_str() == "type")) {
                collect_hidden(field, hidden, texts);
            }
        }
        JsonTree::Scalar(raw) => {
            if hidden && raw.starts_with('"') && raw.len() >= SHORTEST_COPY + 2 {
                texts.insert(raw.clone());
            }
        }
    }
}

fn hide_copies(tree: &mut JsonTree, texts: &HashSet<String>) {
    match tree {
        JsonTree::Scalar(raw) if texts.contains(raw) => tree.hide(),
        JsonTree::List(elements) => elements.iter_mut().for_each(|element| hide_copies(element, texts)),
        JsonTree::Object(fields) => fields.values_mut().for_each(|field| hide_copies(field, texts)),
        JsonTree::Scalar(_) | JsonTree::Hidden(_) => {}
    }
}

fn mask_instance(instance: &mut JsonTree) {
    // What providers keep for themselves can be anything.
    if let Some(private) = instance.get_mut("private") {
        private.hide();
    }
    let paths = instance.get("sensitive_attributes").map(JsonTree::elements).unwrap_or_default().to_vec();
    for place in ["attributes", "attributes_flat"] {
        let Some(attributes) = instance.get_mut(place) else { continue };
        for path in &paths {
            hide_at(attributes, path.elements());
        }
        hide_by_name(attributes);
    }
}

/// Hides what the path leads to. Where it cannot be followed to its end, everything from there on is hidden.
fn hide_at(tree: &mut JsonTree, path: &[JsonTree]) {
    let Some((step, rest)) = path.split_first() else { return tree.hide() };
    let key = step.get("value").map(|value| value.get("value").unwrap_or(value));
    // An attribute that is not there has nothing to hide; an element of a set has no index.
    let may_lack = matches!(tree, JsonTree::Object(_));
    let found = match tree {
        JsonTree::Object(fields) => key.and_then(JsonTree::as_text).and_then(|name| fields.get_mut(&name)),
        JsonTree::List(elements) => match key {
            Some(JsonTree::Scalar(number)) => number.parse().ok().and_then(|index: usize| elements.get_mut(index)),
            _ => None,
        },
        JsonTree::Scalar(_) | JsonTree::Hidden(_) => None,
    };
    if let Some(inner) = found {
        return hide_at(inner, rest);
    }
    if !may_lack {
        tree.hide();
    }
}

fn hide_by_name(tree: &mut JsonTree) {
    match tree {
        JsonTree::Object(fields) => {
            for (name, field) in fields {
                let sounds_secret = SECRET_WORDS.iter().any(|word| name.to_lowercase().contains(word));
                if sounds_secret && matches!(field, JsonTree::Scalar(raw) if raw.starts_with('"')) {
                    field.hide();
                } else {
                    hide_by_name(field);
                }
            }
        }
        JsonTree::List(elements) => elements.iter_mut().for_each(hide_by_name),
        JsonTree::Scalar(_) | JsonTree::Hidden(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn masked(attributes: &str, paths: &str) -> String {
        let state = format!(
            r#"{{"resources":[{{"instances":[{{"attributes":{attributes},"sensitive_attributes":{paths},"private":"p"}}]}}]}}"#
        );
        let state = mask(JsonTree::parse(state.as_bytes()).expect("JSON"));
        let instance = &state.get("resources").expect("resources").elements()[0];
        let instance = &instance.get("instances").expect("instances").elements()[0];
        assert_eq!(instance.get("private").expect("private").compact(), "(sensitive)");
        instance.get("attributes").expect("attributes").compact()
    }

    #[test]
    fn what_a_state_calls_sensitive_is_hidden() {
        for (attributes, paths, expected) in [
            (r#"{"a":1,"b":2}"#, r#"[[{"type":"get_attr","value":"a"}]]"#, r#"{"a":(sensitive),"b":2}"#),
            (
                r#"{"a":[{"b":1},{"b":2}]}"#,
                r#"[[{"type":"get_attr","value":"a"},{"type":"index","value":{"value":1,"type":"number"}},{"type":"get_attr","value":"b"}]]"#,
                r#"{"a":[{"b":1},{"b":(sensitive)}]}"#,
            ),
            (
                r#"{"m":{"k":"x"}}"#,
                r#"[[{"type":"get_attr","value":"m"},{"type":"index","value":{"value":"k","type":"string"}}]]"#,
                r#"{"m":{"k":(sensitive)}}"#,
            ),
            // An element of a set: its place cannot be told.
            (
                r#"{"s":["x"]}"#,
                r#"[[{"type":"get_attr","value":"s"},{"type":"index","value":{"value":"x","type":"string"}}]]"#,
                r#"{"s":(sensitive)}"#,
            ),
            (r#"{"a":1}"#, r#"[[]]"#, "(sensitive)"),
            (r#"{"a":1}"#, r#"[[{"type":"get_attr","value":"gone"}]]"#, r#"{"a":1}"#),
            (r#"{"a":null}"#, r#"[[{"type":"get_attr","value":"a"}]]"#, r#"{"a":null}"#),
        ] {
            assert_eq!(masked(attributes, paths), expected, "{attributes} {paths}");
        }
    }

    #[test]
    fn what_sounds_like_a_secret_is_hidden() {
        let attributes = r#"{"db_Password":"x","list":[{"api_key":"y"}],"secret_count":3,"token":"","user":"jane"}"#;
        let expected =
            r#"{"db_Password":(sensitive),"list":[{"api_key":(sensitive)}],"secret_count":3,"token":"","user":"jane"}"#;
        assert_eq!(masked(attributes, "[]"), expected);
    }

    #[test]
    fn a_copy_of_what_is_sensitive_is_hidden_too() {
        let attributes = r#"{"input":"hunter2-and-3","output":{"value":"hunter2-and-3"},"short":"abc","zone":"abc"}"#;
        let paths = r#"[[{"type":"get_attr","value":"input"}],[{"type":"get_attr","value":"short"}]]"#;
        let expected = r#"{"input":(sensitive),"output":{"value":(sensitive)},"short":(sensitive),"zone":"abc"}"#;
        assert_eq!(masked(attributes, paths), expected);

        let attributes = r#"{"input":{"type":"string","value":"hunter2"},"kind":"string","output":"hunter2"}"#;
        let expected = r#"{"input":(sensitive),"kind":"string","output":(sensitive)}"#;
        assert_eq!(masked(attributes, r#"[[{"type":"get_attr","value":"input"}]]"#), expected);
    }

    #[test]
    fn sensitive_outputs_are_hidden() {
        let state = r#"{"outputs":{"a":{"sensitive":true,"value":{"x":1}},"b":{"value":2}}}"#;
        let state = mask(JsonTree::parse(state.as_bytes()).expect("JSON"));
        assert_eq!(state.compact(), r#"{"outputs":{"a":{"sensitive":true,"value":(sensitive)},"b":{"value":2}}}"#);
    }
}
