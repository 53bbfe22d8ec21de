//! The directory of a phase: fresh, for its owner alone, and gone afterwards.

use std::fs::{self, DirBuilder, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Component, Path, PathBuf};

use taco_domain::id::RunId;

use crate::options::RunAs;

/// Where things of a phase are.
#[derive(Clone, Debug)]
pub(crate) struct Workdir {
    root: PathBuf,
    working_directory: PathBuf,
    state: PathBuf,
}

impl Workdir {
    /// Plan and apply of a run have the same path, on one agent: a configuration may put it into an attribute, and an
    /// apply has to find what the plan has promised.
    pub(crate) fn root_of(runs: &Path, run: RunId) -> PathBuf {
        runs.join(run.to_string())
    }

    /// Makes it. What an earlier phase left there goes away.
    pub(crate) fn create(runs: &Path, run: RunId, working_directory: &str, workspace: &str) -> io::Result<Self> {
        let root = Self::root_of(runs, run);
        let relative = Path::new(working_directory);
        if relative.components().any(|component| !matches!(component, Component::Normal(_) | Component::CurDir)) {
            let detail = format!("the working directory {working_directory} leads out of the configuration");
            return Err(io::Error::other(detail));
        }
        remove(&root)?;
        let workdir = Self {
            working_directory: root.join("configuration").join(relative),
            state: crate::backend_override::state_path(workspace),
            root,
        };
        for directory in [&workdir.root, &workdir.configuration(), &workdir.home(), &workdir.temporary()] {
            DirBuilder::new().recursive(true).mode(0o700).create(directory)?;
        }
        Ok(workdir)
    }

    /// The root of what was uploaded.
    pub(crate) fn configuration(&self) -> PathBuf {
        self.root.join("configuration")
    }

    /// Where the engine is started.
    pub(crate) fn working_directory(&self) -> &Path {
        &self.working_directory
    }

    pub(crate) fn home(&self) -> PathBuf {
        self.root.join("home")
    }

    pub(crate) fn temporary(&self) -> PathBuf {
        self.root.join("tmp")
    }

    /// The state, where the engine keeps it.
    pub(crate) fn state(&self) -> PathBuf {
        self.working_directory.join(&self.state)
    }

    /// Where an engine puts a state that it could not write to its place.
    pub(crate) fn errored_state(&self) -> PathBuf {
        self.working_directory.join("errored.tfstate")
    }

    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.root.join(name)
    }

    /// Gives everything to the user that the engine runs as.
    pub(crate) fn give_to(&self, user: RunAs) -> io::Result<()> {
        give(&self.root, user)
    }

    pub(crate) fn remove(&self) -> io::Result<()> {
        remove(&self.root)
    }
}

fn give(path: &Path, user: RunAs) -> io::Result<()> {
    std::os::unix::fs::lchown(path, Some(user.user), Some(user.group))?;
    if fs::symlink_metadata(path)?.is_dir() {
        for entry in fs::read_dir(path)? {
            give(&entry?.path(), user)?;
        }
    }
    Ok(())
}

/// Removes a directory, also one in which a run took write permissions away.
pub(crate) fn remove(root: &Path) -> io::Result<()> {
    match fs::remove_dir_all(root) {
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            open_up(root)?;
            fs::remove_dir_all(root)
        }
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

fn open_up(directory: &Path) -> io::Result<()> {
    fs::set_permissions(directory, Permissions::from_mode(0o700))?;
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            open_up(&entry.path())?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_is_fresh_and_private_and_goes_away() {
        let runs = tempfile::tempdir().expect("a directory");
        let run = RunId::from_random([7; 16]);
        let workdir = Workdir::create(runs.path(), run, "deep/down", "prod").expect("a work directory");
        assert_eq!(fs::metadata(&workdir.root).expect("a directory").permissions().mode() & 0o777, 0o700);
        let left = workdir.configuration().join("left");
        fs::create_dir(&left).expect("a directory");
        fs::write(left.join("over"), "").expect("a file");
        fs::set_permissions(&left, Permissions::from_mode(0o500)).expect("a mode");
        let again = Workdir::create(runs.path(), run, "", "prod").expect("a work directory");
        assert!(!left.exists());
        again.remove().expect("it can be removed");
        assert!(!again.root.exists());
        again.remove().expect("twice is fine");
    }

    #[test]
    fn a_working_directory_stays_inside() {
        let runs = tempfile::tempdir().expect("a directory");
        for bad in ["..", "a/../../b", "/etc"] {
            assert!(Workdir::create(runs.path(), RunId::from_random([7; 16]), bad, "prod").is_err(), "{bad}");
        }
    }
}
