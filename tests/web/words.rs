//! Words that people read: none of the retired phrases of `docs/words.md` stands in a template, a script, or a text of the
//! programs.

use std::fs;
use std::path::{Path, PathBuf};

/// Crates whose texts people read.
const CRATES: [&str; 7] = ["web", "cli", "server", "agent", "tfc-api", "control-plane", "domain"];

/// Texts that may stay, and why.
const ALLOWED: &[(&str, &str)] = &[("queued by the api", "messages that runs have from earlier releases")];

fn repository() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("tests are in the repository")
}

fn retired() -> Vec<String> {
    let page = fs::read_to_string(repository().join("docs/words.md")).expect("a list of words");
    let list = page.split("```text\n").nth(1).and_then(|rest| rest.split("```").next()).expect("retired phrases");
    let phrases: Vec<_> = list.lines().map(str::to_lowercase).collect();
    assert!(phrases.len() > 80 && phrases.iter().all(|phrase| phrase.trim() == phrase && phrase.len() > 3));
    phrases
}

fn files(folder: &Path, extension: &str, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            if path.file_name().is_some_and(|name| name != "tests" && name != "vendor") {
                files(&path, extension, found);
            }
        } else if path.extension().is_some_and(|found| found == extension) && !path.ends_with("tests.rs") {
            found.push(path);
        }
    }
}

/// Texts in quotes of a Rust source, without its tests. Where a command line is declared, comments are its help.
fn texts_of_rust(source: &str) -> Vec<String> {
    let source = source.split("#[cfg(test)]\nmod ").next().unwrap_or_default();
    let is_command_line = ["Parser", "Args", "Subcommand"].iter().any(|name| source.contains(&format!("clap::{name}")))
        || source.contains("use clap::");
    let mut texts = Vec::new();
    let mut rest = source;
    while let Some(at) = rest.find(['"', '\'', '/']) {
        let (before, from) = rest.split_at(at);
        if from.starts_with("//") {
            let line = from.lines().next().unwrap_or_default();
            if is_command_line && line.starts_with("///") {
                texts.push(line.to_owned());
            }
            rest = &from[line.len()..];
        } else if let Some(text) = from.strip_prefix('"') {
            let hashes = before.len() - before.trim_end_matches('#').len();
            let is_raw = before[..before.len() - hashes].ends_with('r');
            let length = if is_raw { text.find(&format!("\"{}", "#".repeat(hashes))) } else { end_of_text(text) };
            let (text, after) = text.split_at(length.expect("a text ends"));
            texts.push(joined(text));
            rest = &after[1..];
        } else if from.starts_with('\'') {
            // A character that could be taken for a quote; a lifetime has none.
            let length = ["'\"'", "'\\\"'", "'/'", "'\\''"].iter().find(|quoted| from.starts_with(**quoted));
            rest = &from[length.map_or(1, |quoted| quoted.len())..];
        } else {
            rest = &from[1..];
        }
    }
    texts
}

fn end_of_text(text: &str) -> Option<usize> {
    let mut is_escaped = false;
    text.char_indices().find_map(|(at, character)| {
        let ends = character == '"' && !is_escaped;
        is_escaped = character == '\\' && !is_escaped;
        ends.then_some(at)
    })
}

/// A text of several lines as it is read.
fn joined(text: &str) -> String {
    let mut lines = text.split("\\\n");
    let first = lines.next().unwrap_or_default().to_owned();
    lines.fold(first, |joined, line| joined + line.trim_start())
}

/// What a template shows: all but its comments.
fn texts_of_template(template: &str) -> Vec<String> {
    let shown: String =
        template.split("{#").map(|part| part.split_once("#}").map_or(part, |(_, shown)| shown)).collect();
    shown.lines().map(str::to_owned).collect()
}

fn texts_of_script(script: &str) -> Vec<String> {
    let code =
        |line: &str| line.split("//").next().unwrap_or_default().split("/*").next().unwrap_or_default().to_owned();
    script.lines().map(code).collect()
}

#[test]
fn retired_phrases_stay_away() {
    let (root, retired) = (repository(), retired());
    let mut found = Vec::new();
    let mut look = |file: &Path, texts: Vec<String>| {
        for text in texts {
            let lower = text.to_lowercase();
            let is_allowed = ALLOWED.iter().any(|(part, _)| lower.contains(part));
            for phrase in retired.iter().filter(|phrase| !is_allowed && lower.contains(phrase.as_str())) {
                let file = file.strip_prefix(root).unwrap_or(file).display();
                found.push(format!("{file}: {phrase:?} in {:?}", text.trim()));
            }
        }
    };
    let read = |file: &Path| fs::read_to_string(file).expect("a file");
    let mut of = |folder: &str, extension: &str, texts: &dyn Fn(&str) -> Vec<String>| {
        let mut all = Vec::new();
        files(&root.join(folder), extension, &mut all);
        assert!(!all.is_empty(), "nothing in {folder}");
        all.iter().for_each(|file| look(file, texts(&read(file))));
    };
    of("templates", "html", &texts_of_template);
    of("static", "js", &texts_of_script);
    for name in CRATES {
        of(&format!("crates/{name}/src"), "rs", &texts_of_rust);
    }
    assert!(found.is_empty(), "docs/words.md has better words for these:\n{}", found.join("\n"));
}

#[test]
fn texts_are_found_where_people_read_them() {
    let source = "// under way\nlet quote = '\"'; say(\"under \\\n    way\"); r#\"a \"b\" c\"#;\n#[cfg(test)]\nmod tests { \"x\" }";
    assert_eq!(texts_of_rust(source), ["under way", "a \"b\" c"]);
    assert_eq!(texts_of_rust("use clap::Args;\n/// Help.\nfield: u8"), ["/// Help."]);
    assert_eq!(texts_of_template("a{# b #}c\nd"), ["ac", "d"]);
    assert_eq!(texts_of_script("/* a */\nb // c"), ["", "b "]);
}
