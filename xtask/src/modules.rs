//! Modules of `control-plane` and `scheduler` import each other in one direction only: one can be read without having
//! read the others.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

/// Imports of each module of a crate from the others, by the names of their files.
fn imports(crate_name: &str) -> BTreeMap<String, BTreeSet<String>> {
    let manifest = std::env::var("CARGO_MANIFEST_DIR").expect("cargo runs the tests");
    let mut sources = BTreeMap::new();
    read(&Path::new(&manifest).join("../crates").join(crate_name).join("src"), &mut sources);
    let named = |code: &str| -> BTreeSet<String> {
        let first = |path: &str| {
            path.trim()
                .split(|letter: char| !letter.is_alphanumeric() && letter != '_')
                .next()
                .unwrap_or_default()
                .to_owned()
        };
        let modules = code.split("crate::").skip(1).flat_map(|path| match path.strip_prefix('{') {
            // `use crate::{one, two};`
            Some(list) => list.split('}').next().unwrap_or_default().split(',').map(first).collect(),
            None => vec![first(path)],
        });
        modules.filter(|module| sources.contains_key(module)).collect()
    };
    sources
        .iter()
        .map(|(module, code)| {
            let mut others = named(code);
            others.remove(module);
            (module.clone(), others)
        })
        .collect()
}

/// The code of every module below a directory, without its tests and comments.
fn read(directory: &Path, sources: &mut BTreeMap<String, String>) {
    for entry in fs::read_dir(directory).expect("a directory") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            read(&path, sources);
            continue;
        }
        let name = path.file_stem().expect("a name").to_string_lossy().into_owned();
        if path.extension().is_none_or(|extension| extension != "rs") || name == "lib" || name == "tests" {
            continue;
        }
        let text = fs::read_to_string(&path).expect("source");
        let code = text.split("#[cfg(test)]\nmod ").next().unwrap_or_default();
        let lines: Vec<&str> = code.lines().filter(|line| !line.trim_start().starts_with("//")).collect();
        assert!(sources.insert(name.clone(), lines.join("\n")).is_none(), "{name} is the name of two modules");
    }
}

/// A cycle, if there is one: what nothing points out of is taken away until nothing is left, or only cycles are.
fn cycle(mut imports: BTreeMap<String, BTreeSet<String>>) -> BTreeMap<String, BTreeSet<String>> {
    loop {
        let leaves: BTreeSet<String> =
            imports.iter().filter(|(_, others)| others.is_empty()).map(|(module, _)| module.clone()).collect();
        if leaves.is_empty() {
            return imports;
        }
        imports.retain(|module, _| !leaves.contains(module));
        for others in imports.values_mut() {
            others.retain(|other| !leaves.contains(other));
        }
    }
}

#[test]
fn modules_have_no_import_cycles() {
    for crate_name in ["control-plane", "scheduler"] {
        let imports = imports(crate_name);
        assert!(imports.values().flatten().count() > 10, "the sources of {crate_name} are not read rightly");
        let cycle = cycle(imports);
        assert!(cycle.is_empty(), "modules of {crate_name} import each other, among them: {cycle:#?}");
    }
}

#[test]
fn a_cycle_is_found() {
    let of = |pairs: &[(&str, &[&str])]| -> BTreeMap<String, BTreeSet<String>> {
        let owned = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        pairs.iter().map(|(module, others)| ((*module).to_owned(), owned(others))).collect()
    };
    assert!(cycle(of(&[("a", &["b"]), ("b", &["c"]), ("c", &[])])).is_empty());
    assert_eq!(cycle(of(&[("a", &["b"]), ("b", &["a"]), ("c", &[])])).len(), 2);
}
