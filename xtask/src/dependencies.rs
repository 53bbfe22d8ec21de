//! Dependencies of crates: those on the map, and none that a crate does not use.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::command::{cargo, quietly};

/// Crates whose library has another name than the package.
const LIBRARY_NAMES: &[(&str, &str)] = &[("md-5", "md5")];

struct Package {
    name: String,
    directory: PathBuf,
    dependencies: Vec<Dependency>,
}

struct Dependency {
    name: String,
    /// Needed by tests and benchmarks only.
    for_tests: bool,
    /// A crate of this workspace.
    is_ours: bool,
}

fn workspace() -> PathBuf {
    Path::new(&std::env::var("CARGO_MANIFEST_DIR").expect("cargo runs the tests")).join("..")
}

fn packages() -> Vec<Package> {
    let mut metadata = cargo();
    metadata.args(["metadata", "--no-deps", "--locked", "--offline", "--format-version", "1"]);
    let metadata = quietly(metadata.current_dir(workspace())).expect("cargo knows the workspace");
    let metadata: Value = serde_json::from_slice(&metadata).expect("JSON");
    let list = |value: &Value, key: &str| value[key].as_array().expect("a list").clone();
    let text = |value: &Value| value.as_str().expect("a text").to_owned();
    let dependency = |value: &Value| Dependency {
        name: text(&value["name"]),
        for_tests: value["kind"] == "dev",
        is_ours: !value["path"].is_null(),
    };
    let package = |value: &Value| Package {
        name: text(&value["name"]),
        directory: Path::new(&text(&value["manifest_path"])).parent().expect("a directory").to_owned(),
        dependencies: list(value, "dependencies").iter().map(dependency).collect(),
    };
    list(&metadata, "packages").iter().map(package).collect()
}

/// All source below a directory, without comments.
fn source(directory: &Path, code: &mut String) {
    for entry in fs::read_dir(directory).expect("a directory") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            source(&path, code);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let text = fs::read_to_string(&path).expect("source");
            for line in text.lines().filter(|line| !line.trim_start().starts_with("//")) {
                code.push_str(line);
                code.push('\n');
            }
        }
    }
}

/// True if a path in `code` begins with the crate's name.
fn uses(code: &str, library: &str) -> bool {
    code.match_indices(library).any(|(at, _)| {
        let (before, after) = (&code[..at], &code[at + library.len()..]);
        let begins = !before.ends_with(|last: char| last.is_alphanumeric() || last == '_');
        begins && (after.starts_with("::") || after.starts_with(" as ") || before.ends_with("use "))
    })
}

fn library_name(package: &str) -> String {
    let known = LIBRARY_NAMES.iter().find(|(name, _)| *name == package);
    known.map_or_else(|| package.replace('-', "_"), |(_, library)| (*library).to_owned())
}

/// The rows of the table below "Which crate sees which" in `docs/ARCHITECTURE.md`.
fn map() -> BTreeMap<String, BTreeSet<String>> {
    let text = fs::read_to_string(workspace().join("docs/ARCHITECTURE.md")).expect("the map");
    let (_, section) = text.split_once("## Which crate sees which").expect("the section is there");
    let section = section.split("\n## ").next().expect("the section");
    let rows = section.lines().filter(|line| line.starts_with("| `"));
    rows.map(|row| {
        let mut cells = row.split('|').skip(1).map(|cell| {
            cell.split(',').map(|name| name.trim().trim_matches('`').to_owned()).filter(|name| !name.is_empty())
        });
        let name = cells.next().and_then(|mut cell| cell.next()).expect("a crate");
        (name, cells.next().expect("what it uses").collect())
    })
    .collect()
}

#[test]
fn crates_see_what_the_map_says() {
    let short = |name: &str| name.strip_prefix("taco-").unwrap_or(name).to_owned();
    let found: BTreeMap<_, BTreeSet<_>> = packages()
        .iter()
        .map(|package| {
            let seen = package.dependencies.iter().filter(|used| used.is_ours && !used.for_tests);
            (short(&package.name), seen.map(|used| short(&used.name)).collect())
        })
        .collect();
    let map = map();
    for name in map.keys().chain(found.keys()) {
        assert_eq!(
            map.get(name),
            found.get(name),
            "left: what docs/ARCHITECTURE.md says that {name} uses; right: what its Cargo.toml says. \
             If the map is right, the dependency has to go; if it is meant, change the map and say why in the commit"
        );
    }
}

#[test]
fn every_dependency_is_used() {
    let packages = packages();
    let mut unused = Vec::new();
    for Package { name, directory, dependencies } in &packages {
        let mut code = String::new();
        source(directory, &mut code);
        let superfluous = dependencies.iter().filter(|used| !uses(&code, &library_name(&used.name)));
        unused.extend(superfluous.map(|used| format!("{name}: {}", used.name)));
    }
    let declared = fs::read_to_string(workspace().join("Cargo.toml")).expect("the workspace");
    let (_, declared) = declared.split_once("[workspace.dependencies]").expect("the section is there");
    let declared = declared.split("\n[").next().expect("the section");
    for name in declared.lines().filter_map(|line| line.split_once(" = ")).map(|(name, _)| name) {
        if !packages.iter().any(|package| package.dependencies.iter().any(|used| used.name == name)) {
            unused.push(format!("the workspace: {name}"));
        }
    }
    assert!(unused.is_empty(), "nothing uses these dependencies: {unused:#?}");
}

#[test]
fn a_crate_is_used_where_a_path_begins_with_its_name() {
    assert!(uses("use url::Url;", "url"));
    assert!(uses("#[tokio::test]", "tokio"));
    assert!(uses("use hex;", "hex"));
    assert!(!uses("let url = my_url::parse();", "url"));
    assert!(!uses("fn bytes(&self)", "bytes"));
}
