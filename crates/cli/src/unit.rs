//! The unit that a directory is: its workspace, and what of the tree around it belongs to its configuration.

use std::fs;
use std::path::{Component, Path, PathBuf};

use hcl_edit::structure::Body;

use crate::failure::Failure;
use crate::session::{Target, WorkspaceName};

/// Longest name of a workspace.
const MAX_NAME_LENGTH: usize = 90;

#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Unit {
    pub(crate) workspace: WorkspaceName,
    /// For people: where the name is from.
    pub(crate) named_after: &'static str,
    /// Without links.
    directory: PathBuf,
}

impl Unit {
    /// The unit in a directory: with the name that its file or `cloud` block gives it, or else that of the directory. Within
    /// a repository it is the path from its root, so that two directories of one name are two units.
    pub(crate) fn find(target: &Target, directory: &Path) -> Result<Self, Failure> {
        let directory = directory.canonicalize()?;
        if let Ok(workspace) = target.workspace(None) {
            return Ok(Self { workspace, named_after: ".taco.toml, the `cloud` block or --ws", directory });
        }
        let name = match (&target.project, repository(&directory)) {
            (Some(root), _) if *root != directory => below(root, &directory),
            (_, Some(root)) => {
                let name = root.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
                format!("{name}/{}", below(&root, &directory))
            }
            _ => directory.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default(),
        };
        let name = legal_name(&name);
        if name.is_empty() {
            return Err(Failure::usage(format!("no workspace can be named after {}", directory.display()))
                .hint("add --ws NAME, or workspace = \"NAME\" to .taco.toml"));
        }
        let workspace = WorkspaceName { organization: target.organization(None)?, name };
        Ok(Self { workspace, named_after: "its directory", directory })
    }

    /// Directory to upload so that the workspace, which works in `working_directory` of it, finds this one.
    pub(crate) fn root_of_upload(&self, working_directory: &str) -> Result<PathBuf, Failure> {
        let below: Vec<Component> = Path::new(working_directory).components().collect();
        let below: PathBuf = below.into_iter().filter(|part| matches!(part, Component::Normal(_))).collect();
        match self.directory.ends_with(&below) {
            true => {
                Ok(self.directory.ancestors().nth(below.components().count()).unwrap_or(&self.directory).to_owned())
            }
            false => {
                Err(Failure::usage(format!("{} is not the directory of {}", self.directory.display(), self.workspace))
                    .because(format!("the workspace works in {working_directory}"))
                    .hint(format!(
                        "choose another workspace with --ws, or `taco ws edit {} --working-directory DIR`",
                        self.workspace
                    )))
            }
        }
    }

    /// Path of this directory in what has to be uploaded: `None` if nothing around it is needed.
    pub(crate) fn working_directory(&self) -> Result<Option<String>, Failure> {
        let root = root_with_modules(&self.directory);
        Ok(Some(below(&root, &self.directory)).filter(|path| !path.is_empty()))
    }
}

/// Path of a directory below another, with slashes.
fn below(root: &Path, directory: &Path) -> String {
    let parts = directory.strip_prefix(root).unwrap_or(Path::new("")).components();
    parts.map(|part| part.as_os_str().to_string_lossy().into_owned()).collect::<Vec<_>>().join("/")
}

/// The repository that a directory is part of.
fn repository(directory: &Path) -> Option<PathBuf> {
    directory.ancestors().find(|above| above.join(".git").exists()).map(Path::to_owned)
}

/// A path as the name of a workspace.
fn legal_name(path: &str) -> String {
    let legal = |letter: char| if letter.is_ascii_alphanumeric() || letter == '_' { letter } else { '-' };
    let name: String = path.chars().map(legal).collect();
    let name: String = name.split('-').filter(|part| !part.is_empty()).collect::<Vec<_>>().join("-");
    // What tells units apart is at the end.
    name[name.len().saturating_sub(MAX_NAME_LENGTH)..].trim_matches('-').to_owned()
}

/// The nearest directory that has a configuration and all local modules that it calls, directly or not.
fn root_with_modules(directory: &Path) -> PathBuf {
    let mut root = directory.to_owned();
    let mut known = vec![directory.to_owned()];
    let mut next = 0;
    while let Some(module) = known.get(next).cloned() {
        next += 1;
        for source in local_sources(&module) {
            let Ok(called) = module.join(source).canonicalize() else { continue };
            if called.is_dir() && !known.contains(&called) {
                while !called.starts_with(&root) && root.pop() {}
                known.push(called);
            }
        }
    }
    root
}

/// Sources of modules that are paths, in the files of one directory.
fn local_sources(directory: &Path) -> Vec<String> {
    let files = fs::read_dir(directory).into_iter().flatten().flatten().map(|entry| entry.path());
    let files = files.filter(|path| path.extension().is_some_and(|kind| kind == "tf" || kind == "tofu"));
    let mut sources = Vec::new();
    for file in files {
        // What does not parse is terraform's to complain about.
        let Some(body) = fs::read_to_string(file).ok().and_then(|text| text.parse::<Body>().ok()) else { continue };
        for module in body.get_blocks("module") {
            let source = module.body.get_attribute("source").and_then(|source| source.value.as_str());
            sources.extend(
                source.filter(|source| source.starts_with("./") || source.starts_with("../")).map(str::to_owned),
            );
        }
    }
    sources
}

#[cfg(test)]
mod tests {
    use super::*;

    fn given(root: &Path, path: &str, text: &str) -> PathBuf {
        let directory = root.join(path);
        fs::create_dir_all(&directory).expect("it is made");
        fs::write(directory.join("main.tf"), text).expect("it is written");
        directory.canonicalize().expect("it is there")
    }

    fn unit(directory: &Path) -> Unit {
        let workspace = WorkspaceName { organization: "acme".to_owned(), name: "network".to_owned() };
        Unit { workspace, named_after: "its directory", directory: directory.to_owned() }
    }

    #[test]
    fn names_are_made_of_paths() {
        assert_eq!(legal_name("prod/eu west.1/vpc"), "prod-eu-west-1-vpc");
        assert_eq!(legal_name("/.hidden/"), "hidden");
        assert_eq!(legal_name("über"), "ber");
        let long = format!("{}/vpc", "x".repeat(200));
        assert!(legal_name(&long).ends_with("-vpc") && legal_name(&long).len() <= MAX_NAME_LENGTH);
    }

    #[test]
    fn modules_outside_of_a_directory_are_uploaded_with_it() {
        let tree = tempfile::tempdir().expect("there is room");
        let alone = given(tree.path(), "envs/dev", "module \"a\" {\n  source = \"./a\"\n}\n");
        given(tree.path(), "envs/dev/a", "");
        given(tree.path(), "modules/x", "module \"y\" {\n  source = \"../y\"\n}\n");
        given(tree.path(), "modules/y", "module \"x\" {\n  source = \"../x\"\n}\n");
        let calls = given(tree.path(), "envs/prod", "module \"x\" {\n  source = \"../../modules/x\"\n}\n");
        assert_eq!(unit(&alone).working_directory().expect("it is read"), None);
        assert_eq!(unit(&calls).working_directory().expect("it is read").as_deref(), Some("envs/prod"));
        assert_eq!(
            unit(&calls).root_of_upload("envs/prod/").expect("it is there"),
            tree.path().canonicalize().expect("it is")
        );
        assert_eq!(unit(&calls).root_of_upload("").expect("it is there"), calls);
        let refused = unit(&alone).root_of_upload("envs/prod").expect_err("it is another").to_string();
        assert!(refused.contains("works in envs/prod"), "{refused}");
    }
}
