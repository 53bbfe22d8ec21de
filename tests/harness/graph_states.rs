//! States that read other states, as terraform writes them.

use serde_json::{Map, Value, json};

/// The name under which every server knows itself.
const THIS_SERVER: &str = "localterraform.com";

/// A state with these outputs, which are texts.
pub fn state(serial: u64, outputs: &[(&str, &str)]) -> Value {
    let outputs: Map<String, Value> =
        outputs.iter().map(|(name, value)| ((*name).to_owned(), json!({ "value": value, "type": "string" }))).collect();
    json!({
        "version": 4, "terraform_version": "1.11.4", "serial": serial, "lineage": "3f1c9b57-6c1f-4c39-8c80-a2e2dc1f7a44",
        "outputs": outputs, "resources": [], "check_results": null,
    })
}

/// The same state, whose configuration read these outputs of a workspace. One resource for each has taken its value.
pub fn reading(state: Value, workspace: &str, outputs: &[(&str, &str)]) -> Value {
    let config = json!({ "hostname": THIS_SERVER, "organization": "acme", "workspaces": { "name": workspace } });
    let kind = json!(["object", { "hostname": "string", "organization": "string", "workspaces": ["object", { "name": "string" }] }]);
    reading_from(state, "remote", (config, kind), workspace, outputs)
}

/// The same, of a state that is in no workspace here.
pub fn reading_elsewhere(state: Value, bucket: &str, outputs: &[(&str, &str)]) -> Value {
    let config = json!({ "bucket": bucket, "key": "base.tfstate" });
    reading_from(
        state,
        "s3",
        (config, json!(["object", { "bucket": "string", "key": "string" }])),
        "elsewhere",
        outputs,
    )
}

fn reading_from(
    mut state: Value,
    backend: &str,
    (config, kind): (Value, Value),
    name: &str,
    outputs: &[(&str, &str)],
) -> Value {
    let name = name.replace('-', "_");
    let seen: Map<String, Value> = outputs.iter().map(|(name, value)| ((*name).to_owned(), json!(value))).collect();
    let kinds: Map<String, Value> = outputs.iter().map(|(name, _)| ((*name).to_owned(), json!("string"))).collect();
    let read = json!({
        "mode": "data", "type": "terraform_remote_state", "name": name,
        "provider": "provider[\"terraform.io/builtin/terraform\"]",
        "instances": [{ "schema_version": 0, "sensitive_attributes": [], "attributes": {
            "backend": backend, "config": { "value": config, "type": kind }, "defaults": null, "workspace": null,
            "outputs": { "value": seen, "type": ["object", kinds] },
        } }],
    });
    let users = outputs.iter().enumerate().map(|(number, (_, value))| {
        json!({
            "mode": "managed", "type": "terraform_data", "name": format!("{name}_{number}"),
            "provider": "provider[\"terraform.io/builtin/terraform\"]",
            "instances": [{ "schema_version": 0, "sensitive_attributes": [], "attributes": {
                "id": format!("0f6f1e9c-{number:04}-4a55-9c0e-{:012x}", name.len()), "input": { "value": value, "type": "string" },
                "output": { "value": value, "type": "string" }, "triggers_replace": null,
            }, "dependencies": [format!("data.terraform_remote_state.{name}")] }],
        })
    });
    let users: Vec<Value> = users.collect();
    let resources = state["resources"].as_array_mut().expect("a list");
    resources.push(read);
    resources.extend(users);
    state
}
