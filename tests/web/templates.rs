//! What every template keeps to.

use std::fs;
use std::path::{Path, PathBuf};

fn templates() -> Vec<(PathBuf, String)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("tests are in the repository").join("templates");
    let entries = fs::read_dir(folder).expect("the templates").map(|entry| entry.expect("an entry").path());
    let files = entries.filter(|path| path.extension().is_some_and(|extension| extension == "html"));
    files.map(|path| (path.clone(), fs::read_to_string(path).expect("text"))).collect()
}

/// The tags with this name.
fn tags<'a>(text: &'a str, name: &str) -> Vec<&'a str> {
    let begins = format!("<{name}");
    let rest = text.split(&begins).skip(1).filter(|rest| rest.starts_with([' ', '>']));
    rest.map(|rest| rest.split_inclusive('>').next().unwrap_or(rest)).collect()
}

#[test]
fn on_a_phone_cells_say_what_they_are_without_scripts() {
    let mut cells = 0;
    for (path, text) in templates() {
        for table in tags(&text, "table") {
            let kinds = ["stack", "compared", "attributes"];
            let class = table.split("class=\"").nth(1).unwrap_or_default();
            let class = class.split('"').next().unwrap_or_default();
            let is_laid_out = class.split(' ').any(|word| kinds.contains(&word));
            assert!(is_laid_out, "{}: a table is not laid out for a phone: <table{table}", path.display());
        }
        if text.contains("class=\"attributes\"") {
            continue;
        }
        for cell in tags(&text, "td") {
            let says = ["data-label=", "data-side=", "class=\"actions", "colspan="];
            assert!(says.iter().any(|word| cell.contains(word)), "{}: <td{cell}", path.display());
            cells += 1;
        }
    }
    assert!(cells > 100);
}
