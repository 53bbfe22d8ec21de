//! Files that a run could have replaced. The agent may read more than the run: what it opens for it must be what it
//! seems, and not a link to something else, or a pipe that never ends.

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::OwnedFd;
use std::path::{Component, Path, PathBuf};

use nix::fcntl::{OFlag, open, openat};
use nix::sys::stat::Mode;

/// A file below a directory that is the agent's own. Everything below that may be the run's.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct FileOfRun {
    root: PathBuf,
    path: PathBuf,
}

impl FileOfRun {
    /// `path` lies below `root`.
    pub(crate) fn new(root: &Path, path: &Path) -> Self {
        Self { root: root.to_owned(), path: path.to_owned() }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Opens it to be read, if it is a plain file and no part of the way to it is a link.
    pub(crate) fn open(&self) -> io::Result<File> {
        let mut names = Vec::new();
        for component in self.path.strip_prefix(&self.root).map_err(io::Error::other)?.components() {
            match component {
                Component::Normal(name) => names.push(name),
                Component::CurDir => {}
                _ => return Err(self.refused("leads elsewhere")),
            }
        }
        let name = names.pop().ok_or_else(|| self.refused("is no file"))?;
        // To go through a directory takes less than to read it, where the system knows the difference.
        #[cfg(target_os = "linux")]
        let pass = OFlag::O_PATH;
        #[cfg(not(target_os = "linux"))]
        let pass = OFlag::O_RDONLY;
        let through = pass | OFlag::O_DIRECTORY | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
        let mut directory: OwnedFd = open(&self.root, through, Mode::empty())?;
        for name in names {
            directory = openat(&directory, name, through, Mode::empty())?;
        }
        // Opening a pipe blocks until its other end is open, unless told not to.
        let plain = OFlag::O_RDONLY | OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK | OFlag::O_NOCTTY | OFlag::O_CLOEXEC;
        let file = File::from(openat(&directory, name, plain, Mode::empty())?);
        match file.metadata()?.is_file() {
            true => Ok(file),
            false => Err(self.refused("is no file")),
        }
    }

    pub(crate) fn read(&self) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        self.open()?.read_to_end(&mut bytes)?;
        Ok(bytes)
    }

    fn refused(&self, why: &str) -> io::Error {
        io::Error::other(format!("{} {why}", self.path.display()))
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn links_and_pipes_are_not_followed() {
        let place = tempfile::tempdir().expect("a directory");
        let root = place.path().join("run");
        fs::create_dir_all(root.join("a/b")).expect("a directory");
        fs::write(place.path().join("secret"), "secret").expect("a file");
        fs::write(root.join("a/b/plain"), "plain").expect("a file");
        symlink(place.path().join("secret"), root.join("a/link")).expect("a link");
        symlink(place.path(), root.join("a/outwards")).expect("a link");
        symlink("b", root.join("a/inwards")).expect("a link");
        nix::unistd::mkfifo(&root.join("a/pipe"), Mode::S_IRWXU).expect("a pipe");
        let read = |path: &str| FileOfRun::new(&root, &root.join(path)).read();
        assert_eq!(read("a/b/plain").expect("a file"), b"plain");
        for path in ["a/link", "a/outwards/secret", "a/inwards/plain", "a/pipe", "a/b", "../secret", ""] {
            assert!(read(path).is_err(), "{path}");
        }
        assert_eq!(read("a/none").map_err(|error| error.kind()), Err(io::ErrorKind::NotFound));
        FileOfRun::new(&root, &place.path().join("secret")).read().expect_err("it lies elsewhere");
    }
}
