//! The directory of a phase: fresh, and gone afterwards. It is the agent's own, and so are the files in it; what the run
//! may write to are some directories in it.

use std::fs::{self, DirBuilder, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Component, Path, PathBuf};

use taco_words::id::RunId;

use crate::file_of_run::FileOfRun;
use crate::state_upload::StateFiles;
use crate::users::RunAs;

/// Paths of the files of a phase.
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
        let working_directory = root.join("configuration").join(relative);
        let state = working_directory.join(crate::backend_override::state_path(workspace));
        let workdir = Self { root, working_directory, state };
        DirBuilder::new().recursive(true).mode(0o700).create(&workdir.root)?;
        for directory in workdir.of_run() {
            DirBuilder::new().mode(0o700).create(directory)?;
        }
        Ok(workdir)
    }

    /// The same with paths that have no links in them. A configuration may have some, which lead from one of its
    /// directories to another; those that the run makes later must not lead the agent anywhere.
    pub(crate) fn without_links(&self) -> io::Result<Self> {
        let root = fs::canonicalize(&self.root)?;
        let resolve = |path: &Path| {
            let real = fs::canonicalize(path)?;
            let inside = real.strip_prefix(&root).map(|inside| self.root.join(inside));
            inside.map_err(|_| io::Error::other(format!("{} leads out of the configuration", path.display())))
        };
        let (directory, name) = (self.state.parent(), self.state.file_name());
        let state = resolve(directory.unwrap_or(&self.root))?.join(name.unwrap_or_default());
        Ok(Self { root: self.root.clone(), working_directory: resolve(&self.working_directory)?, state })
    }

    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    /// The directories that the run may write to.
    pub(crate) fn of_run(&self) -> [PathBuf; 4] {
        [self.configuration(), self.home(), self.temporary(), self.root.join("engine")]
    }

    /// The root of what was uploaded.
    pub(crate) fn configuration(&self) -> PathBuf {
        self.root.join("configuration")
    }

    /// Directory in which the engine is started.
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
        self.state.clone()
    }

    /// Path where an engine puts a state that it could not write to its place.
    pub(crate) fn errored_state(&self) -> PathBuf {
        self.working_directory.join("errored.tfstate")
    }

    pub(crate) fn state_files(&self) -> StateFiles {
        StateFiles::new(&self.root, &self.state(), &self.errored_state())
    }

    /// A file of the agent's own.
    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.root.join(name)
    }

    /// A file that the engine reads or writes, outside of the configuration.
    pub(crate) fn for_engine(&self, name: &str) -> PathBuf {
        self.root.join("engine").join(name)
    }

    /// Something that the run could have replaced.
    pub(crate) fn of_engine(&self, path: &Path) -> FileOfRun {
        FileOfRun::new(&self.root, path)
    }

    /// Gives the user that the engine runs as what it may write to, and lets it come there.
    pub(crate) fn give_to(&self, user: RunAs) -> io::Result<()> {
        fs::set_permissions(&self.root, Permissions::from_mode(0o711))?;
        self.of_run().iter().try_for_each(|directory| give(directory, user))
    }

    pub(crate) fn remove(&self) -> io::Result<()> {
        remove(&self.root)
    }
}

pub(crate) fn give(path: &Path, user: RunAs) -> io::Result<()> {
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
            make_traversable(root)?;
            fs::remove_dir_all(root)
        }
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

fn make_traversable(directory: &Path) -> io::Result<()> {
    fs::set_permissions(directory, Permissions::from_mode(0o700))?;
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            make_traversable(&entry.path())?;
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
    fn links_of_a_configuration_are_resolved_once_and_lead_nowhere_else() {
        let runs = tempfile::tempdir().expect("a directory");
        let workdir = Workdir::create(runs.path(), RunId::from_random([7; 16]), "link", "prod").expect("a directory");
        let configuration = workdir.configuration();
        fs::create_dir(configuration.join("real")).expect("a directory");
        std::os::unix::fs::symlink("real", configuration.join("link")).expect("a link");
        crate::backend_override::write(workdir.working_directory(), "prod").expect("an override");
        let resolved = workdir.without_links().expect("paths");
        assert_eq!(resolved.working_directory(), configuration.join("real"));
        assert_eq!(resolved.state(), configuration.join("real/.terraform/taco/workspaces/prod/terraform.tfstate"));
        fs::remove_file(configuration.join("link")).expect("it goes");
        std::os::unix::fs::symlink("/", configuration.join("link")).expect("a link");
        assert!(workdir.without_links().is_err());
    }

    #[test]
    fn a_working_directory_stays_inside() {
        let runs = tempfile::tempdir().expect("a directory");
        for bad in ["..", "a/../../b", "/etc"] {
            assert!(Workdir::create(runs.path(), RunId::from_random([7; 16]), bad, "prod").is_err(), "{bad}");
        }
    }
}
