//! `taco doctor` and `taco audit verify`, on the bucket of the first format that is kept as a sample.

use std::fs;
use std::path::{Path, PathBuf};

use harness::home::Home;
use serde_json::Value;

const COMMIT: &str = "ledgers/site/log/00000000000000000002.json";

fn home_with_sample() -> Home {
    let home = Home::default();
    let sample = Path::new(&std::env::var("CARGO_MANIFEST_DIR").expect("cargo runs the tests"))
        .join("../migrations-in-bucket/0001-first-format/after");
    copy(&sample, &home.bucket());
    home
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("it is made");
    for entry in fs::read_dir(from).expect("it is a directory") {
        let entry = entry.expect("it is readable");
        let target = to.join(entry.file_name());
        if entry.path().is_dir() {
            copy(&entry.path(), &target);
        } else {
            fs::copy(entry.path(), target).expect("it is copied");
        }
    }
}

fn objects_in(directory: &Path) -> Vec<PathBuf> {
    let entries =
        fs::read_dir(directory).expect("it is a directory").map(|entry| entry.expect("it is readable").path());
    entries.flat_map(|path| if path.is_dir() { objects_in(&path) } else { vec![path] }).collect()
}

fn run(home: &Home, words: &[&str]) -> (Option<i32>, String) {
    let output = home.taco(words).output().expect("it runs");
    (output.status.code(), String::from_utf8(output.stdout).expect("it is text"))
}

/// Replaces one text in an object by another.
fn tamper(home: &Home, object: &str, from: &str, to: &str) {
    let path = home.bucket().join(object);
    let text = fs::read_to_string(&path).expect("it is readable");
    assert!(text.contains(from), "{text}");
    fs::write(path, text.replacen(from, to, 1)).expect("it is written");
}

#[test]
fn a_sound_bucket_passes_every_check_and_stays_as_it_was() {
    let home = home_with_sample();
    let before = objects_in(&home.bucket());
    let (code, table) = run(&home, &["doctor"]);
    assert_eq!(code, Some(0), "{table}");
    let mut rows = table.lines();
    assert_eq!(rows.next(), Some("CHECK\tOUTCOME\tDETAIL"));
    for row in rows {
        // The sample holds records of kinds that are its own.
        let expected = if row.starts_with("records\t") { "warned" } else { "passed" };
        assert_eq!(row.split('\t').nth(1), Some(expected), "{row}");
    }
    assert!(table.contains("comet comet-1 in ledger site (this version does not know the kind)"), "{table}");
    for check in ["create-if-absent under a race", "clock skew", "list after write", "write permission", "ledgers"] {
        assert!(table.contains(&format!("\n{check}\t")), "{check} is missing in:\n{table}");
    }
    assert_eq!(objects_in(&home.bucket()), before);
}

#[test]
fn a_bucket_that_nobody_used_yet_is_fine() {
    let home = Home::default();
    fs::create_dir_all(home.bucket()).expect("it is made");
    let (code, text) = run(&home, &["doctor", "--json"]);
    assert_eq!(code, Some(0), "{text}");
    let findings: Value = serde_json::from_str(&text).expect("it is JSON");
    assert!(findings.as_array().expect("it is a list").iter().all(|finding| finding["outcome"] == "passed"), "{text}");
}

#[test]
fn a_bucket_that_is_not_there_is_neither_created_nor_healthy() {
    let home = Home::default();
    let typo = home.path().join("typo");
    let output = home.taco(&["doctor", "--bucket", &format!("file://{}", typo.display())]).output().expect("it runs");
    let said = String::from_utf8(output.stderr).expect("it is text");
    assert_eq!((output.status.code(), said.lines().count()), (Some(1), 1), "{said}");
    assert!(said.contains("typo (flag --bucket): this directory does not exist"), "{said}");
    assert!(!typo.exists() && run(&home, &["doctor"]).0 == Some(1) && !home.bucket().exists(), "nothing was created");
}

#[test]
fn the_doctor_names_a_damaged_object() {
    let home = home_with_sample();
    tamper(&home, COMMIT, "{", "[");
    let (code, table) = run(&home, &["doctor"]);
    assert_eq!(code, Some(1), "{table}");
    assert!(table.contains(&format!("\nledgers\tfailed\t{COMMIT}: ")), "{table}");
}

#[test]
fn the_doctor_tells_a_newer_format() {
    let home = home_with_sample();
    tamper(&home, "taco.json", "1", "7");
    let (code, table) = run(&home, &["doctor"]);
    assert_eq!(code, Some(1), "{table}");
    assert!(table.contains("\nformat\tfailed\ttaco.json says that this bucket has format 7"), "{table}");
}

#[test]
fn a_whole_chain_is_sound() {
    let home = home_with_sample();
    let (code, table) = run(&home, &["audit", "verify"]);
    assert_eq!(code, Some(0), "{table}");
    let row: Vec<_> = table.lines().nth(1).expect("there is a ledger").split('\t').collect();
    let [ledger, commits, hash, verdict] = row[..] else { panic!("{table}") };
    assert_eq!((ledger, commits, hash.len(), verdict), ("site", "4", 64, "sound"));
    assert_eq!(run(&home, &["audit", "verify", "--ledger", "site"]), (Some(0), table));
}

#[test]
fn a_changed_commit_breaks_the_chain() {
    let home = home_with_sample();
    let text = fs::read_to_string(home.bucket().join(COMMIT)).expect("it is readable");
    let commit: Value = serde_json::from_str(&text).expect("it is JSON");
    let id = commit["id"].as_str().expect("a commit has an id");
    tamper(&home, COMMIT, id, &"0".repeat(id.len()));
    let (code, table) = run(&home, &["audit", "verify"]);
    assert_eq!(code, Some(1), "{table}");
    assert!(table.contains("\tbroken: ledgers/site/log/00000000000000000003.json: "), "{table}");
    let (code, text) = run(&home, &["audit", "verify", "--json"]);
    let reports: Value = serde_json::from_str(&text).expect("it is JSON");
    assert_eq!((code, reports[0]["problems"].as_array().map(Vec::is_empty)), (Some(1), Some(false)), "{text}");
}

#[test]
fn a_ledger_that_is_not_there_is_not_called_sound() {
    let home = home_with_sample();
    assert_eq!(run(&home, &["audit", "verify", "--ledger", "org-none"]), (Some(1), String::new()));
    assert_eq!(run(&home, &["audit", "verify", "--ledger", "../site"]).0, Some(2));
}
