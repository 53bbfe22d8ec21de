//! Directory tree that an archive would become on a disk, as far as needed to check that nothing leads out of it.

use std::collections::{HashMap, HashSet};
use std::path::{Component, Path, PathBuf};

use crate::error::ArchiveError;
use crate::limits::Limits;

const BEHIND_LINK: &str = "it lies behind a link";
const LEADS_OUT: &str = "the link leads out of the configuration";

/// Maximum length of a name; no directory on Linux takes a longer one.
const MAX_NAME_BYTES: usize = 255;

/// Maximum number of links in a row that are followed, as on Linux.
const MAX_LINKS_FOLLOWED: usize = 40;

#[derive(Default)]
pub(crate) struct Tree {
    directories: HashSet<PathBuf>,
    files: HashSet<PathBuf>,
    /// Targets of symbolic links, as written.
    links: HashMap<PathBuf, PathBuf>,
    /// The bytes of all names in it.
    size: usize,
}

impl Tree {
    /// Directories may be named as often as anyone likes.
    pub(crate) fn add_directory(&mut self, name: &[u8], path: &Path, limits: Limits) -> Result<(), ArchiveError> {
        if self.directories.contains(path) || path.as_os_str().is_empty() {
            return Ok(());
        }
        self.count(name.len(), limits)?;
        self.check_is_new(name, path)?;
        self.directories.insert(path.to_owned());
        Ok(())
    }

    pub(crate) fn add_file(&mut self, name: &[u8], path: &Path, limits: Limits) -> Result<(), ArchiveError> {
        self.count(name.len(), limits)?;
        self.check_is_new(name, path)?;
        self.files.insert(path.to_owned());
        Ok(())
    }

    pub(crate) fn add_hard_link(
        &mut self,
        name: &[u8],
        path: &Path,
        target: &Path,
        limits: Limits,
    ) -> Result<(), ArchiveError> {
        let refuse = |reason| ArchiveError::entry(name, reason);
        let target = inside(Path::new(""), target, false, limits).map_err(|_| refuse(LEADS_OUT))?;
        // A second name for a symbolic link would lead elsewhere than the first.
        if !self.files.contains(&target) {
            return Err(refuse("the link leads to no file that came before it"));
        }
        self.add_file(name, path, limits)
    }

    pub(crate) fn add_link(
        &mut self,
        name: &[u8],
        path: &Path,
        target: &Path,
        limits: Limits,
    ) -> Result<(), ArchiveError> {
        let refuse = |reason| ArchiveError::entry(name, reason);
        self.count(name.len() + target.as_os_str().len(), limits)?;
        let parent = path.parent().unwrap_or(Path::new(""));
        inside(parent, target, true, limits).map_err(|_| refuse(LEADS_OUT))?;
        self.check_is_new(name, path)?;
        self.links.insert(path.to_owned(), target.to_owned());
        Ok(())
    }

    fn count(&mut self, bytes: usize, limits: Limits) -> Result<(), ArchiveError> {
        self.size += bytes;
        if self.size > limits.names { Err(ArchiveError::NamesTooLong(limits.names)) } else { Ok(()) }
    }

    fn check_is_new(&self, name: &[u8], path: &Path) -> Result<(), ArchiveError> {
        let refuse = |reason| Err(ArchiveError::entry(name, reason));
        if path.as_os_str().is_empty() {
            return refuse("it has no name");
        }
        if self.files.contains(path) || self.links.contains_key(path) || self.directories.contains(path) {
            return refuse("the name occurs twice");
        }
        if self.is_behind_link(path) {
            return refuse(BEHIND_LINK);
        }
        Ok(())
    }

    fn is_behind_link(&self, path: &Path) -> bool {
        !self.links.is_empty() && path.ancestors().skip(1).any(|ancestor| self.links.contains_key(ancestor))
    }

    /// Checks that are possible only when all entries are known: nothing lies behind a link, so every link is where its
    /// name says; and no link goes up again behind another one, so each leads where its text says, which is inside.
    pub(crate) fn check_links(&self) -> Result<(), ArchiveError> {
        if let Some(path) = self.directories.iter().chain(self.files.iter()).find(|path| self.is_behind_link(path)) {
            return Err(refused(path, BEHIND_LINK));
        }
        let behind_file = |path: &&PathBuf| path.ancestors().skip(1).any(|ancestor| self.files.contains(ancestor));
        if let Some(path) = self.directories.iter().chain(&self.files).chain(self.links.keys()).find(behind_file) {
            return Err(refused(path, "it lies behind a file"));
        }
        for (path, target) in &self.links {
            if self.is_behind_link(path) {
                return Err(refused(path, BEHIND_LINK));
            }
            let mut reached = path.parent().unwrap_or(Path::new("")).to_owned();
            let mut behind_link = false;
            for component in target.components() {
                match component {
                    Component::Normal(name) => {
                        reached.push(name);
                        behind_link = behind_link || self.links.contains_key(&reached);
                    }
                    Component::ParentDir if behind_link => return Err(refused(path, LEADS_OUT)),
                    Component::ParentDir => {
                        reached.pop();
                    }
                    _ => {}
                }
            }
        }
        Ok(())
    }

    /// True if one of the names in a directory, which may be behind links, is as `wanted`.
    pub(crate) fn has_in(&self, directory: &Path, wanted: impl Fn(&Path) -> bool) -> bool {
        let Some(directory) = self.resolve(directory) else { return false };
        self.names().any(|path| path.parent() == Some(&directory) && wanted(path))
    }

    pub(crate) fn names(&self) -> impl Iterator<Item = &Path> {
        self.files.iter().chain(self.links.keys()).map(PathBuf::as_path)
    }

    fn resolve(&self, path: &Path) -> Option<PathBuf> {
        let mut path = path.to_owned();
        for _ in 0..MAX_LINKS_FOLLOWED {
            let Some(link) = path.ancestors().find(|ancestor| self.links.contains_key(*ancestor)) else {
                return Some(path);
            };
            let rest = path.strip_prefix(link).ok()?;
            let target = lexical(link.parent()?, self.links.get(link)?)?;
            path = target.join(rest);
        }
        None
    }
}

fn refused(path: &Path, reason: &'static str) -> ArchiveError {
    ArchiveError::entry(path.as_os_str().as_encoded_bytes(), reason)
}

fn lexical(base: &Path, path: &Path) -> Option<PathBuf> {
    inside(base, path, true, crate::limits::LIMITS).ok()
}

/// The path without `.` and `..`, if it stays inside.
pub(crate) fn inside(base: &Path, path: &Path, may_climb: bool, limits: Limits) -> Result<PathBuf, &'static str> {
    let mut inside = base.to_owned();
    if path.as_os_str().len() > limits.name {
        return Err("the name is too long");
    }
    for (count, component) in path.components().enumerate() {
        if count >= limits.depth {
            return Err("the name leads through too many directories");
        }
        match component {
            Component::Normal(name) if name.len() > MAX_NAME_BYTES => return Err("a part of the name is too long"),
            Component::Normal(name) => inside.push(name),
            Component::CurDir => {}
            // Names may not have it at all; links may lead up as far as the root.
            Component::ParentDir if !may_climb => return Err("the name has .. in it"),
            Component::ParentDir => {
                if !inside.pop() {
                    return Err("it leads out of the configuration");
                }
            }
            Component::RootDir | Component::Prefix(_) => return Err("the name is absolute"),
        }
    }
    Ok(inside)
}
