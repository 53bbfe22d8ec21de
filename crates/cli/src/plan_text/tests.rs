//! The samples are plans of terraform 1.11, with what `terraform plan` printed for them.

use serde_json::{Value, json};

use super::*;

const PLAIN: Painter = Painter { on: false };

fn rendered(plan: Value) -> String {
    Plan::parse(plan.to_string().as_bytes()).expect("it is a plan").render(PLAIN, false)
}

/// Terraform does not say it of attributes of a dynamic type.
fn without_replacements(text: &str) -> String {
    text.replace(" # forces replacement", "")
}

macro_rules! as_terraform {
    ($($name:ident)+) => { $(
        #[test]
        fn $name() {
            let plan = include_bytes!(concat!("samples/", stringify!($name), ".json"));
            let expected = include_str!(concat!("samples/", stringify!($name), ".txt"));
            let text = Plan::parse(plan).expect("it is a plan").render(PLAIN, false);
            let (text, expected) = (without_replacements(&text), without_replacements(expected));
            for (number, (line, wanted)) in text.lines().zip(expected.lines()).enumerate() {
                assert_eq!(line, wanted, "line {number} of\n{text}");
            }
            assert_eq!(text, expected);
        }
    )+ };
}

as_terraform!(update destroy values blocks_created blocks_updated);

fn resource(change: Value) -> Value {
    json!({ "resource_changes": [resource_change("null_resource.one", change)] })
}

fn resource_change(address: &str, change: Value) -> Value {
    json!({ "address": address, "mode": "managed", "type": "null_resource", "name": "one", "change": change })
}

#[test]
fn a_replacement_says_what_forces_it() {
    let change = json!({
        "actions": ["delete", "create"],
        "before": { "id": "1", "zone": "a", "rules": [{ "port": 1 }] },
        "after": { "zone": "b", "rules": [{ "port": 2 }] },
        "after_unknown": { "id": true },
        "replace_paths": [["zone"], ["rules", 0, "port"]],
    });
    let expected = r#"
Terraform will perform the following actions:

  # null_resource.one must be replaced
-/+ resource "null_resource" "one" {
      ~ id    = "1" -> (known after apply)
      ~ rules = [
          ~ {
              ~ port = 1 -> 2 # forces replacement
            },
        ]
      ~ zone  = "a" -> "b" # forces replacement
    }

Plan: 1 to add, 0 to change, 1 to destroy.
"#;
    assert_eq!(rendered(resource(change)), expected);
}

#[test]
fn what_is_sensitive_stays_hidden() {
    let change = json!({
        "actions": ["update"],
        "before": { "id": "1", "password": "hunter2", "settings": { "key": "hunter3", "open": 1 } },
        "after": { "id": "1", "password": "hunter4", "settings": { "key": "hunter5", "open": 2 } },
        "before_sensitive": { "password": true, "settings": { "key": true } },
        "after_sensitive": { "password": true, "settings": { "key": true } },
    });
    let text = rendered(resource(change));
    assert!(!text.contains("hunter"), "{text}");
    assert!(
        text.contains("~ password = (sensitive value)\n") && text.contains("~ key  = (sensitive value)\n"),
        "{text}"
    );
    assert!(text.contains("~ open = 1 -> 2\n"), "{text}");
    let marked = json!({
        "actions": ["update"], "before": { "a": "x" }, "after": { "a": "x" }, "after_sensitive": { "a": true },
    });
    assert!(rendered(resource(marked)).contains("# Warning: this attribute value will be marked as sensitive"));
}

#[test]
fn nothing_in_a_plan_steers_the_terminal() {
    let nasty = "\u{1b}[2Jgone\u{7}\u{9b}x\nand \u{1b}]0;more";
    let change = json!({ "actions": ["create"], "before": null, "after": { nasty: nasty, "map": { nasty: [nasty] } } });
    let plan = json!({
        "resource_changes": [resource_change(nasty, change.clone())],
        "output_changes": { nasty: change },
    });
    let text = rendered(plan);
    assert!(text.chars().all(|letter| letter == '\n' || !letter.is_control()), "{text:?}");
}

#[test]
fn imports_moves_reads_and_drift_are_told() {
    let same = json!({ "actions": ["no-op"], "before": { "id": "1" }, "after": { "id": "1" } });
    let mut imported = resource_change("a.one", same.clone());
    imported["change"]["importing"] = json!({ "id": "1" });
    let mut moved = resource_change("b.one", same.clone());
    moved["previous_address"] = "c.one".into();
    let read = json!({
        "address": "data.d.one", "mode": "data", "type": "d", "name": "one", "action_reason": "read_because_config_unknown",
        "change": { "actions": ["read"], "before": null, "after": { "key": "x" }, "after_unknown": { "id": true } },
    });
    let mut gone =
        resource_change("e.one[1]", json!({ "actions": ["delete"], "before": { "id": "1" }, "after": null }));
    gone["index"] = 1.into();
    gone["action_reason"] = "delete_because_count_index".into();
    let mut drift =
        resource_change("b.one", json!({ "actions": ["update"], "before": { "n": 1 }, "after": { "n": 2 } }));
    drift["name"] = "b".into();
    let plan = json!({
        "resource_changes": [imported, moved, read, gone, resource_change("f.one", same)],
        "resource_drift": [drift],
        "relevant_attributes": [{ "resource": "b.one", "attribute": ["n"] }],
    });
    let text = rendered(plan);
    for part in [
        "Note: Objects have changed outside of Terraform\n\n  # b.one has changed\n  ~ resource \"null_resource\" \"b\" {\n      ~ n = 1 -> 2\n",
        "  # a.one will be imported\n    resource \"null_resource\" \"one\" {\n        id = \"1\"\n    }\n",
        "  # c.one has moved to b.one\n    resource",
        "  # data.d.one will be read during apply\n  # (config refers to values not yet known)\n <= data \"d\" \"one\" {\n      + id  = (known after apply)\n",
        "  # e.one[1] will be destroyed\n  # (because index [1] is out of range for count)\n  - resource",
        "Plan: 1 to import, 0 to add, 0 to change, 1 to destroy.",
    ] {
        assert!(text.contains(part), "{part}\nis missing in:\n{text}");
    }
    assert!(!text.contains("f.one"), "{text}");
}

#[test]
fn a_plan_without_changes_says_so() {
    assert_eq!(rendered(json!({})), "\nNo changes. Infrastructure matches the configuration.\n");
}

#[test]
fn a_giant_plan_is_cut() {
    let created = json!({ "actions": ["create"], "before": null, "after": { "id": "1" } });
    let changes: Vec<Value> =
        (0..9000).map(|index| resource_change(&format!("a.one[{index}]"), created.clone())).collect();
    let text = rendered(json!({ "resource_changes": changes }));
    assert!(text.lines().count() < MAX_LINES + 20);
    assert!(
        text.contains(" more resources are not shown here)") && text.contains("Plan: 9000 to add"),
        "the end is there"
    );
    let long: Vec<Value> = (0..40_000).map(Value::from).collect();
    let other: Vec<Value> = (1..40_002).map(Value::from).collect();
    let change = json!({ "actions": ["update"], "before": { "l": long }, "after": { "l": other } });
    assert!(rendered(resource(change)).contains("Plan: 0 to add, 1 to change"), "it ends in good time");
}

#[test]
fn colours_are_for_those_who_want_them() {
    let change = json!({ "actions": ["create"], "before": null, "after": { "id": "1" } });
    let plan = Plan::parse(resource(change).to_string().as_bytes()).expect("it is a plan");
    let text = plan.render(Painter { on: true }, false);
    assert!(text.contains("\u{1b}[32m  +\u{1b}[0m resource"), "{text}");
}
