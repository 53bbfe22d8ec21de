//! `docs/operations.md` tells of every metric and every event of the log, and of nothing else.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

fn workspace() -> PathBuf {
    Path::new(&std::env::var("CARGO_MANIFEST_DIR").expect("cargo runs the tests")).join("..")
}

/// The sources of all crates without their tests, each with its path.
fn sources() -> Vec<(PathBuf, String)> {
    let mut found = Vec::new();
    let mut directories = vec![workspace().join("crates")];
    while let Some(directory) = directories.pop() {
        for entry in std::fs::read_dir(&directory).expect("it is readable") {
            let path = entry.expect("it is readable").path();
            let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
            if path.is_dir() && !matches!(name, "tests" | "benches" | "simulation") {
                directories.push(path);
            } else if name.ends_with(".rs") && name != "tests.rs" {
                let text = std::fs::read_to_string(&path).expect("it is text");
                let code = text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
                found.push((path, code.to_owned()));
            }
        }
    }
    found
}

/// The texts between `before` and the next quotation mark.
fn quoted_after<'a>(text: &'a str, before: &str) -> impl Iterator<Item = &'a str> {
    text.split(before).skip(1).filter_map(|rest| rest.split('"').next())
}

/// The names in the first column of the tables below a heading.
fn documented(heading: &str) -> BTreeSet<String> {
    let text = std::fs::read_to_string(workspace().join("docs/operations.md")).expect("it is there");
    let (_, section) = text.split_once(heading).expect("the heading is there");
    let section = section.split("\n## ").next().unwrap_or_default();
    let names = section.lines().filter_map(|line| line.strip_prefix("| `")?.split('`').next());
    names.map(str::to_owned).collect()
}

#[test]
fn every_event_is_documented_and_every_documented_event_exists() {
    let found: BTreeSet<_> = sources()
        .iter()
        .flat_map(|(_, text)| quoted_after(text, "event = \"").map(str::to_owned).collect::<Vec<_>>())
        .collect();
    for event in &found {
        let is_name = event.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_');
        assert!(is_name, "{event:?} is not written like_this");
    }
    assert_eq!(documented("## Events of the log"), found, "left: docs/operations.md, right: the code");
}

#[test]
fn every_warning_and_every_error_names_its_event() {
    let mut without = Vec::new();
    for (path, text) in sources() {
        for call in ["tracing::warn!(", "tracing::error!("] {
            for (at, _) in text.match_indices(call) {
                let arguments = text[at + call.len()..].trim_start();
                if !arguments.starts_with("event = \"") {
                    let line = text[..at].lines().count();
                    without.push(format!("{}:{line}", path.display()));
                }
            }
        }
    }
    assert!(without.is_empty(), "these have no `event = \"…\"` as their first field: {without:#?}");
}

#[test]
fn every_metric_is_documented_and_described() {
    let sources = sources();
    let names = |macros: &[&str]| -> BTreeSet<String> {
        let names = sources.iter().flat_map(|(_, text)| {
            let names = macros.iter().flat_map(|name| quoted_after_call(text, name));
            names.filter(|name| name.starts_with("taco_")).collect::<Vec<_>>()
        });
        names.collect()
    };
    let found = names(&["counter!(", "gauge!(", "histogram!("]);
    assert_eq!(documented("## Metrics"), found, "left: docs/operations.md, right: the code");
    let described = names(&["describe_counter!(", "describe_gauge!(", "describe_histogram!("]);
    assert_eq!(described, found, "left: described for Prometheus in crates/server/src/metrics.rs, right: used");
}

/// The first arguments of calls of a macro.
fn quoted_after_call(text: &str, call: &str) -> impl Iterator<Item = String> {
    let described = call.starts_with("describe");
    let calls = text.match_indices(call).filter(move |(at, _)| described || !text[..*at].ends_with("describe_"));
    let arguments = calls.map(|(at, call)| text[at + call.len()..].trim_start());
    arguments
        .filter_map(|arguments| arguments.strip_prefix('"')?.split('"').next())
        .map(str::to_owned)
        .collect::<Vec<_>>()
        .into_iter()
}
