//! `taco policy`: what authors try on their own computer, with the real `opa`, and what they publish.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use harness::home::Home;
use serde_json::{Value, json};

use crate::person::Person;

fn here() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("cli/policies")
}

fn examples() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples/policies")
}

fn opa() -> String {
    std::env::var("TACO_TEST_OPA")
        .expect(r#"TACO_TEST_OPA is not set: run `cargo xtask test`, or eval "$(cargo xtask tools)" first"#)
}

/// Status and findings of each policy.
type Said = BTreeMap<String, (String, Vec<String>)>;

/// Exit code, and what each policy said.
fn tried(directory: &Path, plan: &str, run: &str) -> (Option<i32>, Said) {
    let home = Home::default();
    let mut command = home.taco(&["policy", "test", "--json", "--parameter", "word=hello"]);
    command.arg("--plan").arg(here().join(plan)).arg("--run").arg(here().join(run));
    command.arg("--opa").arg(opa()).arg(directory);
    let output = command.output().expect("it starts");
    let told: Value = serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|_| panic!("no JSON: {}", String::from_utf8_lossy(&output.stderr)));
    let text = |value: &Value| value.as_str().expect("a text").to_owned();
    let said = told.as_array().expect("a list").iter().map(|policy| {
        let output = policy["output"].as_array().expect("a list").iter().map(text).collect();
        (text(&policy["name"]), (text(&policy["status"]), output))
    });
    (output.status.code(), said.collect())
}

#[test]
fn the_examples_pass_what_is_good_and_refuse_what_is_bad() {
    let (code, said) = tried(&examples(), "good.json", "monday.json");
    assert_eq!(said.len(), 10);
    for (name, (status, output)) in said {
        assert_eq!((status.as_str(), output.len()), ("passed", 0), "{name}: {output:?}");
    }
    assert_eq!(code, Some(0));
    let (code, said) = tried(&examples(), "bad.json", "friday.json");
    let found = |name: &str| said[name].1.clone();
    assert!(said.values().all(|(status, _)| status == "failed"), "{said:?}");
    assert_eq!(
        found("tags"),
        ["aws_instance.web has no tag cost-center, owner", "aws_instance.worker[0] has no tag cost-center"]
    );
    assert_eq!(found("destroy-guard")[0], "aws_db_instance.db would be deleted and created again");
    assert_eq!(found("regions"), ["provider aws is in us-east-1; allowed are eu-central-1, eu-west-1"]);
    let counts = ["instance-types", "public-buckets", "open-ports", "module-sources", "provider-versions", "cost"];
    assert_eq!(counts.map(|name| found(name).len()), [1, 3, 3, 2, 1, 1]);
    assert_eq!(code, Some(1), "something mandatory failed");
}

/// A directory with the policies of one of the corpora, and what is expected of each.
fn corpus(name: &str) -> (tempfile::TempDir, BTreeMap<String, String>) {
    let directory = tempfile::tempdir().expect("a directory");
    let (mut hcl, mut expected) = (String::new(), BTreeMap::new());
    for entry in fs::read_dir(here().join(name)).expect("a corpus") {
        let path = entry.expect("an entry").path();
        let text = fs::read_to_string(&path).expect("text");
        let policy = path.file_stem().expect("a name").to_string_lossy().into_owned();
        let first = text.lines().next().and_then(|line| line.strip_prefix("# expect: ")).expect("an expectation");
        hcl.push_str(&format!("policy \"{policy}\" {{\n  query = \"data.corpus.{policy}.deny\"\n}}\n"));
        fs::copy(&path, directory.path().join(path.file_name().expect("a name"))).expect("room");
        expected.insert(policy, first.to_owned());
    }
    fs::write(directory.path().join("policies.hcl"), hcl).expect("room");
    (directory, expected)
}

#[test]
fn policies_of_every_kind_say_what_opa_says() {
    let mut total = 0;
    for name in ["after_1_0", "before_1_0"] {
        let (directory, expected) = corpus(name);
        let (code, said) = tried(directory.path(), "bad.json", "friday.json");
        assert_eq!(code, Some(0), "all of them are advisory");
        for (policy, expected) in expected {
            let (status, output) = &said[&policy];
            let told = if status == "failed" { format!("failed {}", output.len()) } else { status.clone() };
            assert_eq!(told, expected, "{policy}: {output:?}");
            total += 1;
        }
    }
    assert!(total >= 40, "{total}");
}

#[test]
fn what_cannot_be_tried_is_told_with_its_place() {
    let home = Home::default();
    let directory = tempfile::tempdir().expect("a directory");
    let try_it = |files: &[(&str, &str)]| {
        for (name, text) in files {
            fs::write(directory.path().join(name), text).expect("room");
        }
        let mut command = home.taco(&["policy", "test"]);
        command.arg("--plan").arg(here().join("good.json")).arg("--opa").arg(opa()).arg(directory.path());
        let output = command.output().expect("it starts");
        assert_ne!(output.status.code(), Some(0));
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    let policies = ("policies.hcl", "policy \"a\" {\n  query = \"data.a.deny\"\n}\n");
    assert!(try_it(&[("a.rego", "package a")]).contains("policies.hcl"));
    assert!(try_it(&[policies, ("a.rego", "package a\n\ndeny contains 1 if {\n")]).contains("a.rego:"));
    assert!(try_it(&[("a.rego", "package a\n\ndeny := http.send({})\n")]).contains("http.send"));
    assert!(try_it(&[("policies.hcl", "policy \"a\" {}")]).contains("needs a query"));
}

#[test]
fn policy_sets_are_created_published_listed_and_deleted() {
    let person = Person::with_workspace();
    let at = |words: &[&'static str]| [&["policy"], words, &["--org", "acme"]].concat();
    assert_eq!(person.json(&at(&["ls"])), json!([]));
    let made = person.succeeds(&at(&["create", "baseline", "--global", "--overridable"]));
    assert!(made.stdout.starts_with("Created policy set baseline."), "{}", made.stdout);
    let directory = examples().display().to_string();
    let words: Vec<&str> = ["policy", "publish", &directory, "--set", "baseline", "--org", "acme"].into();
    let published = person.succeeds(&words);
    assert!(published.stdout.contains("Published a version of policy set baseline."), "{}", published.stdout);
    let list = person.succeeds(&at(&["ls"]));
    let rows = list.rows();
    assert_eq!(rows[0][..4], ["baseline", "opa", "all workspaces", "10"]);
    let broken = tempfile::tempdir().expect("a directory");
    fs::write(broken.path().join("a.rego"), "package a").expect("room");
    let broken = broken.path().display().to_string();
    let refused = person.fails(1, &["policy", "publish", &broken, "--set", "baseline", "--org", "acme"]);
    assert!(refused.contains("policies.hcl"), "{refused}");
    let unknown = person.fails(3, &at(&["rm", "baselin", "--yes"]));
    assert!(unknown.contains("baseline"), "{unknown}");
    person.succeeds(&at(&["rm", "baseline", "--yes"]));
    assert_eq!(person.json(&at(&["ls"])), json!([]));
}
