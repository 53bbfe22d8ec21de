//! Names of the files that a module is made of.

/// Endings of files with configuration, in HCL and in JSON.
const HCL: [&str; 2] = [".tf", ".tofu"];
const JSON: [&str; 2] = [".tf.json", ".tofu.json"];

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    Hcl,
    Json,
    Readme,
}

/// Kind of a file by its name, without a directory. Files that override others say nothing new.
pub(crate) fn kind(name: &str) -> Option<Kind> {
    let ends = |endings: [&str; 2]| endings.into_iter().find_map(|ending| name.strip_suffix(ending));
    let (kind, stem) = match (ends(JSON), ends(HCL)) {
        (Some(stem), _) => (Kind::Json, stem),
        (None, Some(stem)) => (Kind::Hcl, stem),
        (None, None) => return name.eq_ignore_ascii_case("readme.md").then_some(Kind::Readme),
    };
    let is_hidden = name.starts_with('.') || name.ends_with('~');
    let is_override = stem == "override" || stem.ends_with("_override");
    (!is_hidden && !is_override).then_some(kind)
}

/// The directory of a module that a path lies in, and the file's name: the root, or one below `modules/` or `examples/`.
pub(crate) fn place(path: &str) -> Option<(&str, &str)> {
    let (directory, name) = path.rsplit_once('/').unwrap_or(("", path));
    let is_module = match directory.split_once('/') {
        None => directory.is_empty(),
        Some(("modules" | "examples", within)) => !within.contains('/'),
        Some(_) => false,
    };
    is_module.then_some((directory, name))
}

/// True for a file whose text says something about a module, by its path within the archive.
pub fn is_source(path: &str) -> bool {
    place(path).is_some_and(|(_, name)| kind(name).is_some())
}
