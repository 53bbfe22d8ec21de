//! Makes the engine keep its state next to the configuration, regardless of its backend or `cloud` block.
//!
//! Files that end in `_override.tf` replace what others say, the last in order of names wins, and a `backend` there
//! wins over a `cloud` block, in both engines. The path is relative, because a plan remembers it and may be applied in
//! another directory; and it lies where uploaded files do not.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

const DIRECTORY: &str = ".terraform/taco";
/// Name that engines give to the workspace that has no name.
const DEFAULT_WORKSPACE: &str = "default";

/// Path of the state of a workspace, relative to the engine's working directory.
pub(crate) fn state_path(workspace: &str) -> PathBuf {
    let directory = Path::new(DIRECTORY);
    match workspace {
        DEFAULT_WORKSPACE => directory.join("terraform.tfstate"),
        _ => directory.join("workspaces").join(workspace).join("terraform.tfstate"),
    }
}

/// Prepares the directory in which the engine is started.
pub(crate) fn write(working_directory: &Path, workspace: &str) -> io::Result<()> {
    // What an upload has of an engine's own notes is about another backend. Modules and providers may stay.
    for name in ["terraform.tfstate", "environment", "taco"] {
        let path = working_directory.join(".terraform").join(name);
        if path.is_dir() {
            fs::remove_dir_all(path)?;
        } else if path.symlink_metadata().is_ok() {
            fs::remove_file(path)?;
        }
    }
    let _ = fs::remove_file(working_directory.join("errored.tfstate"));
    let state = working_directory.join(state_path(workspace));
    fs::create_dir_all(state.parent().unwrap_or(working_directory))?;
    let name = last_name(
        working_directory,
        "_override.tf",
        &["_override.tf", "_override.tf.json", "_override.tofu", "_override.tofu.json"],
    )?;
    let text = format!(
        r#"terraform {{
  backend "local" {{
    path          = "{DIRECTORY}/terraform.tfstate"
    workspace_dir = "{DIRECTORY}/workspaces"
  }}
}}
"#
    );
    fs::write(working_directory.join(name), text)
}

/// A name with this ending that sorts after all of a directory's names with such endings.
pub(crate) fn last_name(directory: &Path, ending: &str, endings: &[&str]) -> io::Result<String> {
    let mut last = String::new();
    for entry in fs::read_dir(directory)? {
        let name = entry?.file_name().to_string_lossy().into_owned();
        if endings.iter().any(|ending| name.ends_with(ending)) {
            last = last.max(name);
        }
    }
    // The tilde is the last of ASCII, and the other the last of all characters.
    let names = ["~taco", "~~~~taco", "\u{10fffd}\u{10fffd}taco"].map(|beginning| format!("{beginning}{ending}"));
    names
        .into_iter()
        .find(|name| *name > last)
        .ok_or_else(|| io::Error::other(format!("no file can be made that sorts after {last}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_sorts_after_all_that_could_undo_it() {
        for (names, expected) in [
            (vec!["main.tf"], "~taco_override.tf"),
            (vec!["zzz_override.tf", "~taco_override.tf"], "~~~~taco_override.tf"),
            (vec!["~taco_override.tofu"], "~~~~taco_override.tf"),
            (vec!["ü_override.tf.json"], "\u{10fffd}\u{10fffd}taco_override.tf"),
        ] {
            let directory = tempfile::tempdir().expect("a directory");
            for name in &names {
                fs::write(directory.path().join(name), "").expect("a file");
            }
            write(directory.path(), "prod").expect("an override");
            assert!(directory.path().join(expected).exists(), "{names:?}");
            assert!(directory.path().join(".terraform/taco/workspaces/prod").is_dir());
        }
    }

    #[test]
    fn the_default_workspace_is_kept_where_the_engines_keep_it() {
        assert_eq!(state_path("default"), Path::new(".terraform/taco/terraform.tfstate"));
        assert_eq!(state_path("prod"), Path::new(".terraform/taco/workspaces/prod/terraform.tfstate"));
    }
}
