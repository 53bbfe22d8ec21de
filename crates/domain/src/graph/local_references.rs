//! Local values of a configuration: what their expressions refer to. A plan does not have them.

use std::collections::BTreeMap;

pub use taco_words::local_values::LocalValue;
use taco_words::local_values::local_values;

/// Larger files are not read; then nothing is known of their directory.
pub const MAX_FILE_BYTES: usize = 1 << 20;

/// Local values of a configuration's modules, by the module's directory and the value's name. The root module's directory
/// is empty.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct LocalReferences {
    /// `None` if a file of the directory could not be read: then its locals may be anything.
    by_directory: BTreeMap<String, Option<BTreeMap<String, LocalValue>>>,
}

impl LocalReferences {
    /// True for a file that may declare local values.
    pub fn wants(file: &str) -> bool {
        [".tf", ".tofu", ".tf.json", ".tofu.json"].iter().any(|end| file.ends_with(end))
    }

    /// Adds a file of the configuration. Its path begins at the root module, with `../` for what is above. A file without
    /// a text is there and cannot be read.
    pub fn add_file<'a>(&mut self, path: &str, text: impl Into<Option<&'a [u8]>>) {
        if !Self::wants(path) {
            return;
        }
        let (directory, name) = path.rsplit_once('/').unwrap_or(("", path));
        let directory = called_directory("", &format!("./{directory}")).unwrap_or_default();
        let known = self.by_directory.entry(directory).or_insert_with(|| Some(BTreeMap::new()));
        let text = text.into().filter(|text| text.len() <= MAX_FILE_BYTES);
        let found = match name.ends_with(".json") {
            // Configurations in JSON are rare, and locals in them rarer still.
            true => text.filter(|text| memchr::memmem::find(text, b"\"locals\"").is_none()).map(|_| Vec::new()),
            false => text.and_then(|text| std::str::from_utf8(text).ok()).and_then(local_values),
        };
        match (known.as_mut(), found) {
            (Some(known), Some(found)) => {
                for (name, value) in found {
                    let both = match known.remove(&name) {
                        Some(before) => before.and(value),
                        None => value,
                    };
                    known.insert(name, both);
                }
            }
            _ => *known = None,
        }
    }

    /// Local values of a module; `None` if its files are not known.
    pub fn of_directory(&self, directory: &str) -> Option<&BTreeMap<String, LocalValue>> {
        self.by_directory.get(directory)?.as_ref()
    }
}

/// Path of a file as it is seen from a directory of the same tree: `../b/c` for `a/b/c` from `a/x`.
pub fn path_from(directory: &str, path: &str) -> String {
    let mut directory = directory.split('/').filter(|part| !part.is_empty() && *part != ".").peekable();
    let mut path = path.split('/').filter(|part| !part.is_empty() && *part != ".").peekable();
    while directory.peek().is_some() && directory.peek() == path.peek() {
        directory.next();
        path.next();
    }
    let up = directory.map(|_| "..");
    up.chain(path).collect::<Vec<_>>().join("/")
}

/// Directory of a module that is called from this directory; `None` if its source is not beside it.
pub fn called_directory(directory: &str, source: &str) -> Option<String> {
    if !source.starts_with("./") && !source.starts_with("../") {
        return None;
    }
    let mut parts: Vec<&str> = directory.split('/').filter(|part| !part.is_empty()).collect();
    for part in source.split('/') {
        match part {
            "" | "." => {}
            // Above the root there may be modules, too: `..` stays.
            ".." if parts.last().is_some_and(|last| *last != "..") => _ = parts.pop(),
            part => parts.push(part),
        }
    }
    Some(parts.join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sources_beside_a_module_have_directories() {
        for (directory, source, expected) in [
            ("", "./unit", Some("unit")),
            ("a/b", "../c/", Some("a/c")),
            ("", "../modules/x", Some("../modules/x")),
            ("../modules/x", "../y", Some("../modules/y")),
            ("a", "./", Some("a")),
            ("", "terraform-aws-modules/vpc/aws", None),
            ("", "git::https://example.com/x", None),
        ] {
            assert_eq!(called_directory(directory, source).as_deref(), expected, "{source} from {directory}");
        }
    }
    #[test]
    fn paths_are_seen_from_a_directory() {
        for (directory, path, expected) in [
            ("", "main.tf", "main.tf"),
            ("live/vpc", "live/vpc/main.tf", "main.tf"),
            ("live/vpc", "modules/unit/main.tf", "../../modules/unit/main.tf"),
            ("./live/vpc/", "live/app/x/main.tf", "../app/x/main.tf"),
            ("a", "ab/main.tf", "../ab/main.tf"),
        ] {
            assert_eq!(path_from(directory, path), expected);
        }
    }

    #[test]
    fn files_of_a_directory_are_known_together() {
        let mut locals = LocalReferences::default();
        let mut add = |path: &str, text: &str| locals.add_file(path, text.as_bytes());
        add("main.tf", "locals {\n  a = var.a\n  b = var.b\n}\n");
        add("./other.tofu", "locals {\n  b = data.t.a.outputs\n}\n");
        add("plain.tf.json", "{\"resource\": {}}");
        add("README.md", "locals {");
        add("unit/main.tf", "locals {");
        add("unit/other.tf", "");
        add("json/main.tf.json", "{\"locals\": {}}");
        add("../above/main.tf", "");
        locals.add_file("linked/main.tf", None::<&[u8]>);
        let root = locals.of_directory("").expect("the root module is known");
        assert_eq!(root["a"], LocalValue::Traversal("var.a".to_owned()));
        assert_eq!(root["b"], LocalValue::Expression(vec!["var.b".to_owned(), "data.t.a.outputs".to_owned()]));
        assert!(locals.of_directory("../above").is_some());
        for unknown in ["unit", "json", "linked", "nowhere"] {
            assert_eq!(locals.of_directory(unknown), None, "{unknown}");
        }
    }
}
