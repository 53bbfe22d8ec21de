//! Files in HCL's JSON syntax.

use serde_json::{Map, Value};

use crate::collect::{beginning, push};
use crate::docs::{Input, ModuleCall, ModulePart, Output, RequiredProvider, Resource};
use crate::hcl::MAX_TEXT_BYTES;

/// Adds what a file says. The error completes "… could not be read: ".
pub(crate) fn read(text: &str, part: &mut ModulePart) -> Result<(), String> {
    let root: Value = serde_json::from_str(text)
        .map_err(|error| format!("not valid JSON (line {}, column {})", error.line(), error.column()))?;
    for root in objects(&root) {
        let blocks = |kind: &str| root.get(kind).into_iter().flat_map(named);
        for body in root.get("terraform").into_iter().flat_map(objects) {
            add_requirements(body, part);
        }
        for (name, body) in blocks("variable") {
            push(&mut part.inputs, input(name, body));
        }
        for (name, body) in blocks("output") {
            let sensitive = is(body, "sensitive", true);
            push(
                &mut part.outputs,
                Output { name: cut(name), description: text_of(body.get("description")), sensitive },
            );
        }
        for (kind, data) in [("resource", false), ("data", true)] {
            for (kind, instances) in root.get(kind).into_iter().flat_map(members) {
                for (name, _) in members(instances) {
                    push(&mut part.resources, Resource { kind: cut(kind), name: cut(name), data });
                }
            }
        }
        for (name, body) in blocks("module") {
            let (source, version) = (text_of(body.get("source")), text_of(body.get("version")));
            push(&mut part.module_calls, ModuleCall { name: cut(name), source, version });
        }
    }
    Ok(())
}

fn input(name: &str, body: &Map<String, Value>) -> Input {
    let validations = body.get("validation").into_iter().flat_map(objects);
    Input {
        name: cut(name),
        constraint: text_of(body.get("type")),
        default: body.get("default").map(|value| cut(&value.to_string())),
        description: text_of(body.get("description")),
        sensitive: is(body, "sensitive", true),
        ephemeral: is(body, "ephemeral", true),
        nullable: !is(body, "nullable", false),
        validations: validations.map(|body| text_of(body.get("error_message"))).take(20).collect(),
    }
}

fn add_requirements(body: &Map<String, Value>, part: &mut ModulePart) {
    if let Some(version) = body.get("required_version") {
        push(&mut part.required_versions, text_of(Some(version)));
    }
    for (name, wanted) in body.get("required_providers").into_iter().flat_map(members) {
        let (source, version) = match wanted {
            Value::Object(wanted) => (text_of(wanted.get("source")), text_of(wanted.get("version"))),
            version => (String::new(), text_of(Some(version))),
        };
        push(&mut part.providers, RequiredProvider { name: cut(name), source, version });
    }
}

fn is(body: &Map<String, Value>, name: &str, value: bool) -> bool {
    body.get(name) == Some(&Value::Bool(value))
}

fn cut(text: &str) -> String {
    beginning(text, MAX_TEXT_BYTES)
}

fn text_of(value: Option<&Value>) -> String {
    match value {
        None | Some(Value::Null) => String::new(),
        Some(Value::String(text)) => cut(text),
        Some(other) => cut(&other.to_string()),
    }
}

/// The object, or each object of an array: both stand for blocks.
fn objects(value: &Value) -> Vec<&Map<String, Value>> {
    match value {
        Value::Object(object) => vec![object],
        Value::Array(values) => values.iter().filter_map(Value::as_object).collect(),
        _ => Vec::new(),
    }
}

/// The members of the object, or of each object of an array.
fn members(value: &Value) -> Vec<(&str, &Value)> {
    objects(value).into_iter().flatten().map(|(name, value)| (name.as_str(), value)).collect()
}

/// Blocks with one label.
fn named(value: &Value) -> Vec<(&str, &Map<String, Value>)> {
    let blocks = members(value).into_iter();
    blocks.flat_map(|(name, bodies)| objects(bodies).into_iter().map(move |body| (name, body))).collect()
}
