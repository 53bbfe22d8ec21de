use serde_json::{Value, json};

use super::*;

/// A plan with these expressions in resources of the root module, which were applied before and do not change.
fn plan(resources: &Value, calls: &Value) -> Value {
    let block = |name: &str| {
        json!({"address": format!("data.terraform_remote_state.{name}"), "mode": "data", "type": "terraform_remote_state",
            "name": name, "expressions": {"backend": {"constant_value": "remote"}, "config": {"references": ["var.name"]}}})
    };
    let mut all = vec![block("a"), block("b")];
    all.extend(resources.as_array().into_iter().flatten().cloned());
    let read = |name: &str, index: &str| {
        json!({"address": format!("data.terraform_remote_state.{name}{index}"), "mode": "data",
            "type": "terraform_remote_state", "name": name, "values": {"backend": "remote",
                "config": {"organization": "acme", "workspaces": {"name": format!("{name}{index}")}},
                "outputs": {"id": "1", "port": 8443.0, "whole": [1.10]}, "defaults": {"id": "0"}, "workspace": null}})
    };
    let prior = |resource: &Value| {
        json!({"address": resource["address"], "mode": "managed", "type": "terraform_data",
            "depends_on": resource["test_depends_on"], "values": {"id": "x"}})
    };
    let mut state = vec![read("a", ""), read("b", "[\"p\"]"), read("b", "[\"q\"]")];
    state.extend(resources.as_array().into_iter().flatten().filter(|one| one["test_depends_on"].is_array()).map(prior));
    let changes = resources.as_array().into_iter().flatten().map(|resource| {
        let action = if resource["test_depends_on"].is_array() { "no-op" } else { "create" };
        json!({"address": resource["address"], "mode": "managed", "type": "terraform_data", "name": "x",
            "change": {"actions": [action], "before": {}, "after": {"id": "x"}}})
    });
    json!({"format_version": "1.2", "complete": true, "applyable": false, "errored": false,
        "resource_changes": changes.collect::<Vec<_>>(),
        "prior_state": {"format_version": "1.0", "values": {"root_module": {"resources": state}}},
        "configuration": {"root_module": {"resources": all, "module_calls": calls}}})
}

fn resource(name: &str, references: &Value) -> Value {
    json!({"address": format!("terraform_data.{name}"), "mode": "managed", "type": "terraform_data", "name": name,
        "expressions": {"input": {"references": references}}})
}

/// The same, which was applied before and then depended on these.
fn applied(name: &str, references: &Value, depends_on: &Value) -> Value {
    let mut resource = resource(name, references);
    resource["test_depends_on"] = depends_on.clone();
    resource
}

fn evidence_with(plan: &Value, locals: &LocalReferences) -> PlanEvidence {
    PlanEvidence::read(plan.to_string().as_bytes(), locals).expect("a plan")
}

fn used(read: &PlanRead) -> String {
    match &read.used {
        UsedOutputs::All => "*".to_owned(),
        UsedOutputs::Names(names) => names.iter().map(String::as_str).collect::<Vec<_>>().join(" "),
    }
}

fn uses(plan: &Value, locals: &LocalReferences) -> Vec<(String, String)> {
    let reads = evidence_with(plan, locals).reads;
    reads.iter().map(|read| (read.data.replace("data.terraform_remote_state.", ""), used(read))).collect()
}

fn used_of_a(resources: &Value, locals: &LocalReferences) -> String {
    uses(&plan(resources, &json!({})), locals).remove(0).1
}

const A: &str = "data.terraform_remote_state.a";

#[test]
fn expressions_name_what_they_use() {
    let none = LocalReferences::default();
    let chain = |last: &str| json!([format!("{A}.outputs{last}"), format!("{A}.outputs"), A]);
    for (references, expected) in [
        (json!([]), ""),
        (chain(".id"), "id"),
        (chain("[\"we-ird.key é\\\"]\"]"), "we-ird.key é\"]"),
        (json!([format!("{A}.outputs.whole[0]"), format!("{A}.outputs.whole"), format!("{A}.outputs"), A]), "whole"),
        (json!([format!("{A}.outputs"), A]), "*"),
        (json!([A]), "*"),
        (json!([format!("{A}.outputs.id"), format!("{A}.outputs"), A, format!("{A}.outputs"), A]), "*"),
        (json!([format!("{A}.backend"), A]), ""),
        (
            json!([
                format!("{A}.outputs.ids"),
                format!("{A}.outputs"),
                A,
                format!("{A}.outputs.id"),
                format!("{A}.outputs"),
                A
            ]),
            "id ids",
        ),
    ] {
        assert_eq!(used_of_a(&json!([resource("x", &references)]), &none), expected, "{references}");
    }
    // An order alone uses nothing; conditions and counts do.
    let mut ordered = resource("x", &json!([]));
    ordered["depends_on"] = json!([A]);
    assert_eq!(used_of_a(&json!([ordered]), &none), "");
    let mut counted = resource("x", &json!([]));
    counted["count_expression"] = json!({"references": chain(".port")});
    assert_eq!(used_of_a(&json!([counted]), &none), "port");
}

#[test]
fn an_index_in_an_expression_is_that_instance() {
    const B: &str = "data.terraform_remote_state.b";
    let plan = |references: Value| plan(&json!([resource("x", &references)]), &json!({}));
    let named = json!([format!("{B}[\"p\"].outputs.id"), format!("{B}[\"p\"].outputs"), format!("{B}[\"p\"]"), B]);
    let found = uses(&plan(named), &LocalReferences::default());
    let expected = [("a", ""), ("b[\"p\"]", "id"), ("b[\"q\"]", "")];
    assert_eq!(found, expected.map(|(data, used)| (data.to_owned(), used.to_owned())));
    let found = uses(&plan(json!([B])), &LocalReferences::default());
    let expected = [("a", ""), ("b[\"p\"]", "*"), ("b[\"q\"]", "*")];
    assert_eq!(found, expected.map(|(data, used)| (data.to_owned(), used.to_owned())));
}

#[test]
fn a_read_has_its_producer_values_and_users() {
    let direct = applied("x", &json!([format!("{A}.outputs.id"), format!("{A}.outputs"), A]), &json!([A]));
    let evidence = evidence_with(&plan(&json!([direct]), &json!({})), &LocalReferences::default());
    let read = &evidence.reads[0];
    assert_eq!(read.producer.as_ref().map(ToString::to_string).as_deref(), Some("remote://app.terraform.io/acme/a"));
    let values: Vec<_> = read.values.iter().map(|(name, value)| format!("{name} {}", value.value.get())).collect();
    assert_eq!(values, ["id \"1\"", "port 8443.0", "whole [1.1]"]);
    assert!(read.values.values().all(|value| value.detailed_type.is_none()));
    assert_eq!(read.defaults, BTreeSet::from(["id".to_owned()]));
    assert_eq!((read.users.join(" ").as_str(), read.user_count), ("terraform_data.x", 1));
    assert_eq!((evidence.complete, evidence.applyable, evidence.errored), (Some(true), Some(false), false));
    assert_eq!(evidence.changed_instances, 0);
}

#[test]
fn modules_use_what_they_are_given() {
    let calls = json!({"m": {"source": "./m", "expressions": {
            "up": {"references": [format!("{A}.outputs.id"), format!("{A}.outputs"), A]},
            "name": {"constant_value": "x"}},
        "module": {"resources": [
            {"address": "terraform_data.r", "mode": "managed", "type": "terraform_data", "name": "r",
                "expressions": {"input": {"references": ["var.up.x", "var.up"]}}},
            {"address": "terraform_data.s", "mode": "managed", "type": "terraform_data", "name": "s",
                "expressions": {"input": {"references": ["var.upper", "data.terraform_remote_state.inner.outputs.port",
                    "data.terraform_remote_state.inner.outputs", "data.terraform_remote_state.inner"]}}},
            {"address": "data.terraform_remote_state.inner", "mode": "data", "type": "terraform_remote_state", "name": "inner",
                "expressions": {"backend": {"constant_value": "remote"}, "config": {"constant_value":
                    {"organization": "acme", "workspaces": {"name": "inner"}}}}}]}}});
    let evidence = evidence_with(&plan(&json!([]), &calls), &LocalReferences::default());
    let read = &evidence.reads[0];
    assert_eq!((used(read).as_str(), read.users.join(" ").as_str()), ("id", "module.m.terraform_data.r"));
    let inner = evidence.reads.last().expect("a read");
    assert_eq!((inner.data.as_str(), used(inner).as_str()), ("module.m.data.terraform_remote_state.inner", "port"));
    assert_eq!(
        inner.producer.as_ref().map(ToString::to_string).as_deref(),
        Some("remote://app.terraform.io/acme/inner")
    );
    assert_eq!(inner.users, ["module.m.terraform_data.s"]);
}

#[test]
fn without_its_files_a_configuration_with_locals_may_use_anything() {
    let none = LocalReferences::default();
    let direct = json!([format!("{A}.outputs.id"), format!("{A}.outputs"), A, "local.tags"]);
    assert_eq!(used_of_a(&json!([applied("x", &direct, &json!([A]))]), &none), "*");
    let asks = |resources: &Value| evidence_with(&plan(resources, &json!({})), &none).asks_for_files;
    assert!(
        asks(&json!([applied("x", &direct, &json!([A]))])) && !asks(&json!([applied("x", &json!([A]), &json!([A]))]))
    );
    // Another resource uses the same local value, and does not depend on what was read.
    let free = applied("y", &json!(["local.tags"]), &json!([]));
    assert_eq!(used_of_a(&json!([applied("x", &direct, &json!([A])), free]), &none), "id");
    assert_eq!(used_of_a(&json!([applied("x", &json!(["local.net.id", "local.net"]), &json!([A]))]), &none), "*");
}

#[test]
fn a_plan_in_which_all_is_new_sees_through_locals() {
    let mut plan = plan(&json!([resource("x", &json!(["local.net.id", "local.net"]))]), &json!({}));
    assert_eq!(uses(&plan, &LocalReferences::default())[0].1, "");
    plan["relevant_attributes"] = json!([{"resource": A, "attribute": ["outputs", "whole", 0]}]);
    assert_eq!(uses(&plan, &LocalReferences::default())[0].1, "whole");
    plan["relevant_attributes"] = json!([{"resource": A, "attribute": []}, {"resource": A, "attribute": ["backend"]}]);
    assert_eq!(uses(&plan, &LocalReferences::default())[0].1, "*");
}

#[test]
fn files_tell_what_locals_are() {
    let mut locals = LocalReferences::default();
    let file = format!(
        "locals {{\n  net = {A}.outputs\n  alias = local.net\n  tags = {{ x = var.tags }}\n  both = [local.alias.port, local.loop]\n  loop = local.loop.x\n}}\n"
    );
    locals.add_file("main.tf", file.as_bytes());
    for (references, expected) in [
        (json!(["local.net.id", "local.net"]), "id"),
        (json!(["local.alias.whole[0]", "local.alias.whole", "local.alias"]), "whole"),
        (json!(["local.alias"]), "*"),
        (json!(["local.tags.id", "local.tags"]), ""),
        (json!(["local.both.x", "local.both"]), "port"),
        (json!(["local.loop"]), ""),
        (json!(["local.missing"]), ""),
    ] {
        assert_eq!(used_of_a(&json!([applied("x", &references, &json!([A]))]), &locals), expected, "{references}");
    }
}

#[test]
fn planned_outputs_say_what_is_known() {
    let change = |actions: &[&str], rest: &str| {
        let head = format!(r#"{{"actions": {}, "before_sensitive": false, "#, json!(actions));
        format!("{head}{rest}}}")
    };
    let changes = [
        (
            "big",
            change(&["update"], r#""before": 1, "after": 123456789012345678901234567890.10, "after_unknown": false"#),
        ),
        ("gone", change(&["delete"], r#""before": 1, "after": null, "after_unknown": false"#)),
        ("new", change(&["create"], r#""before": null, "after_unknown": true"#)),
        ("null", change(&["no-op"], r#""before": null, "after": null, "after_unknown": false"#)),
        ("part", change(&["update"], r#""before": {}, "after": {"a": "1"}, "after_unknown": {"b": true}"#)),
        ("secret", change(&["no-op"], r#""after": ["x"], "after_unknown": [false], "after_sensitive": [true]"#)),
    ];
    let changes: Vec<String> = changes.iter().map(|(name, change)| format!("{name:?}: {change}")).collect();
    let plan = format!(
        r#"{{"format_version": "1.2", "planned_values": {{"outputs": {{"big": {{"type": "number"}}, "part": {{"sensitive": false}},
            "secret": {{"type": ["list", "string"]}}}}}}, "output_changes": {{{}}}, "variables": {{"salt": {{"value": "1"}}, "none": {{}}}}}}"#,
        changes.join(", ")
    );
    let evidence = PlanEvidence::read(plan.as_bytes(), &LocalReferences::default()).expect("a plan");
    let outputs: Vec<_> = evidence
        .outputs
        .iter()
        .map(|(name, output)| {
            let text = |raw: &Option<Box<RawValue>>| raw.as_ref().map_or("-", |raw| raw.get()).to_owned();
            let (value, detailed_type) = (text(&output.value), text(&output.detailed_type));
            format!("{name} {:?} {:?} {value} {detailed_type} {}", output.action, output.unknown, output.sensitive)
        })
        .collect();
    assert_eq!(
        outputs,
        [
            r#"big Changed Nothing 123456789012345678901234567890.10 "number" false"#,
            "gone Removed Nothing - - false",
            "new Created Whole - - false",
            "null Unchanged Nothing null - false",
            r#"part Changed Part {"a": "1"} - false"#,
            r#"secret Unchanged Nothing ["x"] ["list", "string"] true"#,
        ]
    );
    assert_eq!(evidence.variables.keys().collect::<Vec<_>>(), ["salt"]);
}

#[test]
fn what_is_no_plan_is_refused() {
    for plan in ["", "[]", "{}", r#"{"format_version": "1.2", "resource_changes": 7}"#, r#"{"format_version":"1.2"} x"#]
    {
        PlanEvidence::read(plan.as_bytes(), &LocalReferences::default()).expect_err(plan);
    }
}
