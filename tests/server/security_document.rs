//! `docs/security.md` names only tests that exist.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Directories with the tests of a suite or a crate.
fn places(workspace: &Path, suite: &str) -> Vec<PathBuf> {
    let member = workspace.join("crates").join(suite);
    [workspace.join("tests").join(suite), member.join("tests"), member.join("src")]
        .into_iter()
        .filter(|path| path.is_dir())
        .collect()
}

/// All sources below these directories, as one text.
fn sources(directories: &[PathBuf]) -> String {
    let mut text = String::new();
    let mut directories = directories.to_vec();
    while let Some(directory) = directories.pop() {
        for entry in std::fs::read_dir(&directory).expect("it is readable") {
            let path = entry.expect("it is readable").path();
            if path.is_dir() {
                directories.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                text += &std::fs::read_to_string(&path).expect("it is text");
            }
        }
    }
    text
}

#[test]
fn every_test_that_the_security_document_names_exists() {
    let workspace = Path::new(&std::env::var("CARGO_MANIFEST_DIR").expect("cargo runs the tests")).join("..");
    let document = std::fs::read_to_string(workspace.join("docs/security.md")).expect("it is there");
    let mut texts: BTreeMap<String, String> = BTreeMap::new();
    let mut missing = Vec::new();
    let mut rows = 0;
    for line in document.lines().filter(|line| line.starts_with("| ") && !line.starts_with("|---")) {
        let names: Vec<_> = line.split('`').skip(1).step_by(2).filter(|word| word.contains("::")).collect();
        let is_head = line.ends_with("| tests |");
        assert!(is_head || !names.is_empty(), "a promise without a test: {line}");
        rows += usize::from(!is_head);
        for name in names {
            let (suite, _) = name.split_once("::").expect("it was chosen by it");
            let function = name.rsplit("::").next().expect("there is a last one");
            let text = texts.entry(suite.to_owned()).or_insert_with(|| sources(&places(&workspace, suite)));
            if !text.contains(&format!("fn {function}(")) {
                missing.push(name.to_owned());
            }
        }
    }
    assert!(missing.is_empty(), "docs/security.md names tests that do not exist: {}", missing.join(", "));
    assert!(rows > 20, "only {rows} promises were found");
}
