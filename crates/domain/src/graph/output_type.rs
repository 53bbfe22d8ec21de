//! Types of outputs in cty's notation: `"string"`, `["list", T]`, `["tuple", [T, …]]`, `["object", {name: T, …}]`. A state and
//! a plan tell the type of the value, so a list that was written with brackets is a tuple that has another type with each
//! element more. Whoever uses it does not mind that.

use serde_json::Value;

/// Types nested deeper are compared as a whole.
const MAX_DEPTH: usize = 64;

/// True if whoever uses a value of the type `before` can use one of the type `after`: it is the same, or wider. Notations
/// that cannot be read are compared as texts.
pub fn is_still_usable(before: &str, after: &str) -> bool {
    let parsed = |text| serde_json::from_str::<Value>(text).ok();
    match (parsed(before), parsed(after)) {
        (Some(before), Some(after)) => fits(&before, &after, MAX_DEPTH),
        _ => before == after,
    }
}

fn fits(before: &Value, after: &Value, depth: usize) -> bool {
    // A null has this type, and any value may take its place.
    let is_dynamic = |kind: &Value| kind == "dynamic";
    if before == after || is_dynamic(before) || is_dynamic(after) {
        return true;
    }
    let Some(depth) = depth.checked_sub(1) else { return false };
    let (Some((word, inner)), Some((new_word, new_inner))) = (parts(before), parts(after)) else { return false };
    match (word, new_word) {
        ("list", "list") | ("set", "set") | ("map", "map") => fits(inner, new_inner, depth),
        ("tuple", "tuple") => tuple_fits(elements(inner), elements(new_inner), depth),
        ("tuple", "list") => elements(inner).iter().all(|element| fits(element, new_inner, depth)),
        ("list", "tuple") => elements(new_inner).iter().all(|element| fits(inner, element, depth)),
        ("object", "object") => attributes(inner).all(|(name, kind)| {
            let new = new_inner.get(name);
            new.is_some_and(|new| fits(kind, new, depth))
        }),
        ("object", "map") => attributes(inner).all(|(_, kind)| fits(kind, new_inner, depth)),
        ("map", "object") => attributes(new_inner).all(|(_, kind)| fits(inner, kind, depth)),
        _ => false,
    }
}

/// A tuple is as good as another if each of its elements has one in its place; and one whose elements are all alike is a
/// list, of any length.
fn tuple_fits(before: &[Value], after: &[Value], depth: usize) -> bool {
    let in_place = before.iter().zip(after).all(|(before, after)| fits(before, after, depth));
    let is_uniform = |elements: &[Value]| elements.windows(2).all(|pair| fits(&pair[0], &pair[1], depth));
    in_place && (after.len() >= before.len() || is_uniform(before))
}

fn parts(kind: &Value) -> Option<(&str, &Value)> {
    match kind.as_array()?.as_slice() {
        // An object may have a third part: its optional attributes.
        [word, inner] | [word, inner, _] => Some((word.as_str()?, inner)),
        _ => None,
    }
}

fn elements(kinds: &Value) -> &[Value] {
    kinds.as_array().map(Vec::as_slice).unwrap_or_default()
}

fn attributes(kinds: &Value) -> impl Iterator<Item = (&String, &Value)> {
    kinds.as_object().into_iter().flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_grows_is_still_usable_and_what_loses_something_is_not() {
        for (before, after, usable) in [
            (r#""string""#, r#""string""#, true),
            (r#""string""#, r#""number""#, false),
            (r#""number""#, r#""string""#, false),
            (r#""string""#, r#"["list","string"]"#, false),
            (r#""dynamic""#, r#""string""#, true),
            (r#"["list","string"]"#, r#""dynamic""#, true),
            (r#"["list","string"]"#, r#"["list","number"]"#, false),
            (r#"["list","string"]"#, r#"["set","string"]"#, false),
            (r#"["tuple",["string"]]"#, r#"["tuple",["string","string"]]"#, true),
            (r#"["tuple",["string","string"]]"#, r#"["tuple",["string"]]"#, true),
            (r#"["tuple",["string","number"]]"#, r#"["tuple",["string"]]"#, false),
            (r#"["tuple",["string","number"]]"#, r#"["tuple",["number","string"]]"#, false),
            (r#"["tuple",["string","string"]]"#, r#"["list","string"]"#, true),
            (r#"["list","string"]"#, r#"["tuple",["string","number"]]"#, false),
            (r#"["list","string"]"#, r#"["tuple",[]]"#, true),
            (r#"["object",{"a":"string"}]"#, r#"["object",{"a":"string","b":"number"}]"#, true),
            (r#"["object",{"a":"string","b":"number"}]"#, r#"["object",{"a":"string"}]"#, false),
            (r#"["object",{"a":"string"}]"#, r#"["object",{"a":"bool"}]"#, false),
            (r#"["object",{"a":["tuple",["string"]]}]"#, r#"["object",{"a":["tuple",["string","string"]]}]"#, true),
            (r#"["object",{"a":"string"}]"#, r#"["map","string"]"#, true),
            (r#"["map","string"]"#, r#"["object",{"a":"number"}]"#, false),
            (r#"["object",{"a":"string"},["a"]]"#, r#"["object",{"a":"string"}]"#, true),
            ("no notation", "no notation", true),
            ("no notation", r#""string""#, false),
        ] {
            assert_eq!(is_still_usable(before, after), usable, "{before} {after}");
        }
    }
}
