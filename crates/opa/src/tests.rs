use std::collections::BTreeMap;

use serde_json::json;

use crate::*;

fn files(list: &[(&str, &str)]) -> BTreeMap<String, Vec<u8>> {
    list.iter().map(|(path, text)| ((*path).to_owned(), text.as_bytes().to_vec())).collect()
}

#[test]
fn a_set_is_named_in_hcl_or_in_json() {
    let hcl = r#"
        policy "tags" {
          query             = "data.terraform.tags.deny"
          enforcement_level = "mandatory"
          description       = "Everything has an owner"
        }
        policy "size" { query = "data.terraform.size.deny" }
    "#;
    let json = r#"{"policy": {
        "tags": {"query": "data.terraform.tags.deny", "enforcement_level": "mandatory", "description": "Everything has an owner"},
        "size": {"query": "data.terraform.size.deny"}}}"#;
    let module = ("a/tags.rego", "package terraform.tags");
    let mut from_hcl = PolicyFiles::read(&files(&[("policies.hcl", hcl), module])).expect("a set");
    let mut from_json = PolicyFiles::read(&files(&[("policies.json", json), module])).expect("a set");
    for set in [&mut from_hcl, &mut from_json] {
        set.policies.sort_by(|a, b| a.name.cmp(&b.name));
    }
    assert_eq!(from_hcl, from_json);
    let levels: Vec<_> = from_hcl.policies.iter().map(|policy| (policy.name.as_str(), policy.level)).collect();
    assert_eq!(levels, [("size", PolicyLevel::Advisory), ("tags", PolicyLevel::Mandatory)]);
}

#[test]
fn what_is_no_set_is_refused_with_its_file() {
    let module = ("a.rego", "package a");
    let policy = r#"policy "a" { query = "data.a.deny" }"#;
    for (list, expected) in [
        (vec![module], "neither policies.hcl nor policies.json"),
        (vec![("policies.hcl", policy)], "no *.rego file"),
        (vec![("policies.hcl", policy), ("a_test.rego", "package a")], "no *.rego file"),
        (vec![("policies.hcl", "policy {"), module], "policies.hcl:1:"),
        (vec![("policies.hcl", "a = 1"), module], "only policy blocks"),
        (vec![("policies.hcl", "policy \"a\" {}"), module], "needs a query"),
        (vec![("policies.hcl", r#"policy "a b" { query = "data.a" }"#), module], "letters, numbers"),
        (vec![("policies.hcl", r#"policy "a" { source = "x" }"#), module], "no attribute source"),
        (vec![("policies.hcl", r#"policy "a" { enforcement_level = "hard" }"#), module], "advisory or mandatory"),
        (vec![("policies.json", "[]"), module], "an object \"policy\""),
        (vec![("policies.json", "{"), module], "policies.json:1:1"),
    ] {
        let refused = PolicyFiles::read(&files(&list)).expect_err(expected).to_string();
        assert!(refused.contains(expected), "{refused}");
    }
}

#[test]
fn only_an_empty_list_passes() {
    let of = |value: serde_json::Value| json!({ "result": [{ "expressions": [{ "value": value }] }] }).to_string();
    assert_eq!(verdict(of(json!([])).as_bytes()), Verdict::Passed);
    assert_eq!(verdict(of(json!(["no"])).as_bytes()), Verdict::Failed(vec![json!("no")]));
    for answer in [
        "{}".to_owned(),
        String::new(),
        "null".to_owned(),
        of(json!({})),
        of(json!(true)),
        of(json!(null)),
        r#"{"errors":[{"message":"undefined function http.send","location":{"file":"a.rego","row":3}}]}"#.to_owned(),
        r#"{"result":[]}"#.to_owned(),
        r#"{"result":[{"expressions":[{"value":[]},{"value":[]}]}]}"#.to_owned(),
    ] {
        assert!(matches!(verdict(answer.as_bytes()), Verdict::Errored(_)), "{answer}");
    }
}

#[test]
fn functions_that_reach_out_are_not_there() {
    let current = json!({ "builtins": [{ "name": "http.send" }, { "name": "count" }, { "name": "opa.runtime" }] });
    let cut = cut_capabilities(current.to_string().as_bytes()).expect("JSON");
    let cut: serde_json::Value = serde_json::from_slice(&cut).expect("JSON");
    assert_eq!(cut, json!({ "builtins": [{ "name": "count" }], "allow_net": [] }));
}
