//! Digests of what a unit's configuration says: the files of its directory, and what it names outside of it. Packing the
//! same files again, or changing files of another unit in the same archive, changes nothing.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use sha2::{Digest, Sha256};
use taco_module_docs::{ModuleCall, module_calls};

use crate::inspect::EXTENSIONS;
use crate::limits::LIMITS;
use crate::tree::inside;

/// Maximum size of a file in which references are looked for. Of a larger one every file counts that the archive has.
pub(crate) const MAX_SCANNED_BYTES: usize = 1024 * 1024;

const LOCK_FILE: &str = ".terraform.lock.hcl";

/// Files of an archive, by what is in them.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Contents {
    files: BTreeMap<String, File>,
}

/// One file, or one link.
#[derive(Clone, PartialEq, Eq, Debug)]
struct File {
    digest: [u8; 32],
    /// Places outside of its directory that it names.
    references: BTreeSet<Named>,
    /// Modules that it calls.
    calls: Vec<ModuleCall>,
}

/// A place that a file names.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct Named {
    text: String,
    base: Base,
    /// The rest of the name is known only when it is evaluated.
    is_cut: bool,
}

/// Directory that a name is relative to.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Base {
    /// That of the file itself, or that of the unit: it depends on who reads the name.
    Either,
    Unit,
    /// Any place at all.
    Everywhere,
}

/// Digests of one unit's configuration, in hexadecimal.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct UnitContents {
    pub files: String,
    /// `None` if it has no dependency lock file.
    pub lock_file: Option<String>,
    /// Modules that it calls, also through modules of its own archive.
    pub module_calls: Vec<ModuleCall>,
}

impl Contents {
    /// Number of bytes of a file that [`Self::add_file`] wants to see.
    pub(crate) fn wants(path: &Path) -> usize {
        if is_configuration(&path.to_string_lossy()) { MAX_SCANNED_BYTES } else { 0 }
    }

    /// `beginning` are as many of its bytes as were wanted.
    pub(crate) fn add_file(&mut self, path: &Path, digest: [u8; 32], size: u64, beginning: &[u8]) {
        let text = String::from_utf8_lossy(beginning);
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let is_whole = Self::wants(path) > 0 && size <= MAX_SCANNED_BYTES as u64;
        let calls = if is_whole { module_calls([(&*name, &*text)]) } else { Vec::new() };
        let references = match Self::wants(path) {
            0 => BTreeSet::new(),
            wanted if size > wanted as u64 => {
                BTreeSet::from([Named { text: String::new(), base: Base::Everywhere, is_cut: false }])
            }
            _ => references(&text),
        };
        self.files.insert(path.to_string_lossy().into_owned(), File { digest, references, calls });
    }

    pub(crate) fn add_link(&mut self, path: &Path, target: &Path) {
        let text = target.to_string_lossy().into_owned();
        let digest = Sha256::digest(format!("link {text}")).into();
        let references = BTreeSet::from([Named { text, base: Base::Either, is_cut: false }]);
        self.files.insert(path.to_string_lossy().into_owned(), File { digest, references, calls: Vec::new() });
    }

    /// A second name for a file that came before.
    pub(crate) fn add_hard_link(&mut self, path: &Path, target: &Path) {
        let target = inside(Path::new(""), target, false, LIMITS).unwrap_or_default();
        if let Some(file) = self.files.get(&*target.to_string_lossy()).cloned() {
            self.files.insert(path.to_string_lossy().into_owned(), file);
        }
    }

    /// True if a directory has files that engines read.
    pub fn has_configuration_in(&self, directory: &str) -> bool {
        let directory = normalized("", directory).unwrap_or_default();
        let prefix = if directory.is_empty() { directory } else { format!("{directory}/") };
        let mut names = self.files.keys().filter_map(|path| path.strip_prefix(&prefix));
        names.any(|name| !name.contains('/') && is_configuration(name))
    }

    /// Digests of the unit in this directory.
    pub fn of_unit(&self, working_directory: &str) -> UnitContents {
        let directory = normalized("", working_directory).unwrap_or_default();
        let mut included: BTreeSet<&str> = BTreeSet::new();
        let mut places = vec![(directory.clone(), false)];
        let mut seen = BTreeSet::new();
        while let Some((place, is_cut)) = places.pop() {
            if !seen.insert((place.clone(), is_cut)) {
                continue;
            }
            for (path, file) in self.files.iter().filter(|(path, _)| is_at(path, &place, is_cut)) {
                if is_ignored(path) || !included.insert(path) {
                    continue;
                }
                let own = path.rsplit_once('/').map_or("", |(parent, _)| parent);
                for named in &file.references {
                    let bases = match named.base {
                        Base::Everywhere => vec![(String::new(), false)],
                        Base::Unit => vec![(directory.clone(), named.is_cut)],
                        Base::Either => vec![(own.to_owned(), named.is_cut), (directory.clone(), named.is_cut)],
                    };
                    places.extend(
                        bases.into_iter().filter_map(|(base, is_cut)| Some((normalized(&base, &named.text)?, is_cut))),
                    );
                }
            }
        }
        let lock_path = if directory.is_empty() { LOCK_FILE.to_owned() } else { format!("{directory}/{LOCK_FILE}") };
        let lock_file = self.files.get(&lock_path).map(|file| hexadecimal(&file.digest));
        let mut module_calls: Vec<ModuleCall> =
            included.iter().flat_map(|path| &self.files[*path].calls).cloned().collect();
        module_calls.sort();
        module_calls.dedup();
        let mut whole = Sha256::new();
        for path in included.into_iter().filter(|path| *path != lock_path) {
            let below = path.strip_prefix(&directory).filter(|_| !directory.is_empty());
            let name = below.and_then(|rest| rest.strip_prefix('/')).unwrap_or(path);
            whole.update((name.len() as u64).to_be_bytes());
            whole.update(name);
            whole.update(self.files[path].digest);
        }
        UnitContents { files: hexadecimal(&whole.finalize()), lock_file, module_calls }
    }
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// True for a file that engines read, by its name.
pub fn is_configuration(path: &str) -> bool {
    EXTENSIONS.iter().any(|extension| path.ends_with(extension))
}

/// Working files of engines, which say nothing about what the configuration says.
fn is_ignored(path: &str) -> bool {
    let mut parts = path.split('/');
    let is_working = |part: &str| part == ".terraform" || part == ".git" || part == ".terragrunt-cache";
    let name = path.rsplit('/').next().unwrap_or_default();
    parts.any(is_working) || name.ends_with(".tfstate") || name.contains(".tfstate.")
}

/// True if a path is the place, or lies in it. A place that was cut may go on in any way.
fn is_at(path: &str, place: &str, is_cut: bool) -> bool {
    match path.strip_prefix(place) {
        Some(rest) => is_cut || place.is_empty() || rest.is_empty() || rest.starts_with('/'),
        None => false,
    }
}

/// A path without `.` and `..`; `None` if it leads out of the archive.
fn normalized(base: &str, path: &str) -> Option<String> {
    let inside = inside(Path::new(base), Path::new(path), true, LIMITS).ok()?;
    let mut text = inside.to_string_lossy().into_owned();
    // A name that was cut after a slash goes on inside of the directory.
    if path.ends_with('/') && !text.is_empty() {
        text.push('/');
    }
    Some(text.trim_end_matches('/').to_owned())
}

/// Places outside of its directory that a file of a configuration names: module sources, and paths in functions.
fn references(text: &str) -> BTreeSet<Named> {
    let mut found = BTreeSet::new();
    for (position, _) in text.match_indices("..") {
        let after = &text[position..];
        if !(after.starts_with("../") || after.starts_with("..\"")) {
            continue;
        }
        let before = &text[..position];
        // `${path.module}/../x` is relative to the file, `${path.root}/../x` and `${path.cwd}/../x` to the unit.
        let start = before.rfind(['"', '\n']).map_or(0, |quote| quote + 1);
        let lead = &before[start..];
        let (base, lead) = match lead.rfind('}') {
            None => (Base::Either, lead),
            Some(end) => {
                let is_unit = lead.contains("path.root") || lead.contains("path.cwd");
                (if is_unit { Base::Unit } else { Base::Either }, lead[end + 1..].trim_start_matches('/'))
            }
        };
        if lead.ends_with('.') {
            continue;
        }
        let end = after.find(['"', '\n']).unwrap_or(after.len());
        let name = &after[..end];
        let (name, is_cut) = match name.find("${") {
            Some(cut) => (&name[..cut], true),
            None => (name, false),
        };
        found.insert(Named { text: format!("{lead}{name}"), base, is_cut });
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn contents(files: &[(&str, &str)]) -> Contents {
        let mut contents = Contents::default();
        for (path, text) in files {
            contents.add_file(Path::new(path), Sha256::digest(text).into(), text.len() as u64, text.as_bytes());
        }
        contents
    }

    fn with<'a>(files: &[(&'a str, &'a str)], path: &'a str, text: &'a str) -> Vec<(&'a str, &'a str)> {
        let mut files: Vec<_> = files.iter().copied().filter(|(other, _)| *other != path).collect();
        files.push((path, text));
        files
    }

    #[test]
    fn a_unit_is_its_directory_and_what_it_names_outside() {
        let files = [
            (
                "units/app/main.tf",
                "module \"m\" {\n source = \"../../modules/web\"\n}\nlocals { a = file(\"${path.module}/../shared/${var.x}.json\") }",
            ),
            ("units/app/.terraform.lock.hcl", "one"),
            ("units/app/templates/x.tpl", "x"),
            ("units/shared/eu.json", "{}"),
            ("units/other/main.tf", "source = \"../../modules/other\""),
            ("modules/web/main.tf", "module \"n\" { source = \"../net\" }"),
            ("modules/net/main.tf", ""),
            ("modules/network/main.tf", ""),
            ("modules/other/main.tf", ""),
        ];
        let before = contents(&files).of_unit("units/app");
        for changed in [
            "units/app/main.tf",
            "units/app/templates/x.tpl",
            "units/shared/eu.json",
            "modules/web/main.tf",
            "modules/net/main.tf",
            "units/app/new.tf",
        ] {
            let after = contents(&with(&files, changed, "changed")).of_unit("units/app/");
            assert_ne!(after.files, before.files, "{changed}");
        }
        for changed in [
            "units/other/main.tf",
            "modules/other/main.tf",
            "modules/network/main.tf",
            "units/app/.terraform/x",
            "units/app/terraform.tfstate",
        ] {
            let after = contents(&with(&files, changed, "changed")).of_unit("./units/app");
            assert_eq!(after, before, "{changed}");
        }
        let locked = contents(&with(&files, "units/app/.terraform.lock.hcl", "two")).of_unit("units/app");
        assert_eq!(locked.files, before.files);
        assert_ne!(locked.lock_file, before.lock_file);
        assert_eq!(contents(&files).of_unit("units/other").lock_file, None);
        assert!(contents(&files).has_configuration_in("units/app") && !contents(&files).has_configuration_in("units"));
    }

    #[test]
    fn a_directory_is_the_same_wherever_it_lies() {
        let alone = contents(&[("main.tf", "a"), ("x/y.txt", "b")]).of_unit("");
        let inside =
            contents(&[("units/a/main.tf", "a"), ("units/a/x/y.txt", "b"), ("README.md", "")]).of_unit("units/a");
        assert_eq!(alone, inside);
    }

    #[test]
    fn links_count_with_what_they_lead_to() {
        let linked = |text: &str| {
            let mut contents = contents(&[("a/main.tf", ""), ("common/versions.tf", text)]);
            contents.add_link(Path::new("a/versions.tf"), Path::new("../common/versions.tf"));
            contents.of_unit("a")
        };
        assert_ne!(linked("one").files, linked("two").files);
        assert_eq!(linked("one"), linked("one"));
    }

    #[test]
    fn names_that_lead_out_or_are_odd_change_nothing() {
        for text in [
            "source = \"../../../../x\"",
            "a = \"..\"",
            "a = \"...\"",
            "b = [1...]",
            "# ../",
            "x = \"${path.root}/../",
            "../",
        ] {
            let contents = contents(&[("a/main.tf", text), ("b/main.tf", "b")]);
            assert_eq!(contents.of_unit("a"), contents.of_unit("a"), "{text}");
        }
        let large = "#".repeat(MAX_SCANNED_BYTES + 1);
        let before = contents(&[("a/main.tf", &large), ("b/x", "1")]).of_unit("a");
        assert_ne!(contents(&[("a/main.tf", &large), ("b/x", "2")]).of_unit("a"), before, "it may name anything");
    }
}
