//! Unpacks a configuration, and refuses an archive that reaches out of its directory or is larger than it may be.

use std::collections::HashSet;
use std::fs::{self, File};
use std::io::{self, BufReader, Read};
use std::path::{Component, Path, PathBuf};

use flate2::bufread::MultiGzDecoder;
use tar::{Archive, EntryType};

/// The sizes are of the bytes that come out: a mebibyte of gzip can hold a gibibyte of zeros.
#[derive(Clone, Copy)]
pub(crate) struct Limits {
    pub(crate) packed: u64,
    pub(crate) unpacked: u64,
    pub(crate) ratio: u64,
    /// Small archives may be packed as tightly as they like.
    pub(crate) ratio_counts_after: u64,
    pub(crate) entries: usize,
    pub(crate) name: usize,
}

pub(crate) const LIMITS: Limits = Limits {
    packed: 100 * MEBIBYTE,
    unpacked: 1024 * MEBIBYTE,
    ratio: 200,
    ratio_counts_after: 10 * MEBIBYTE,
    entries: 50_000,
    name: 4096,
};
const MEBIBYTE: u64 = 1024 * 1024;

/// What is wrong with an archive.
#[derive(thiserror::Error, Debug)]
pub(crate) enum ArchiveError {
    #[error("the configuration has {size} bytes packed; the limit is {limit}")]
    PackedTooLarge { size: u64, limit: u64 },
    #[error("the configuration expands beyond the limit of {0}")]
    Expands(String),
    #[error("the configuration has more than {0} entries")]
    TooManyEntries(usize),
    #[error("the configuration's entry {name}: {reason}")]
    Entry { name: String, reason: &'static str },
    #[error("the configuration is no tar.gz archive: {0}")]
    Unreadable(io::Error),
    #[error("the configuration could not be unpacked: {0}")]
    Disk(io::Error),
}

/// Unpacks `archive` into `root`, which is fresh. After an error something may be there already.
pub(crate) fn unpack(archive: &Path, root: &Path, limits: Limits) -> Result<(), ArchiveError> {
    let file = File::open(archive).map_err(ArchiveError::Disk)?;
    let packed = file.metadata().map_err(ArchiveError::Disk)?.len();
    if packed > limits.packed {
        return Err(ArchiveError::PackedTooLarge { size: packed, limit: limits.packed });
    }
    let reader = Counted { inner: MultiGzDecoder::new(BufReader::new(file)), read: 0, packed, limits };
    let mut archive = Archive::new(reader);
    let mut seen = HashSet::new();
    let mut links = Vec::new();
    for (count, entry) in archive.entries().map_err(unreadable)?.enumerate() {
        let mut entry = entry.map_err(unreadable)?;
        if count >= limits.entries {
            return Err(ArchiveError::TooManyEntries(limits.entries));
        }
        let name = entry.path_bytes().into_owned();
        let refuse = |reason| ArchiveError::Entry { name: shown(&name), reason };
        if name.len() > limits.name {
            return Err(refuse("the name is too long"));
        }
        let path = within(Path::new(""), &path_of(&name), false).map_err(refuse)?;
        let target = entry.link_name_bytes().map(|target| path_of(&target));
        match entry.header().entry_type() {
            // What git writes first: a comment about the commit.
            EntryType::XGlobalHeader => continue,
            EntryType::Directory => {
                // Modes of directories are not taken over: one without write permission could not be filled.
                fs::create_dir_all(root.join(&path)).map_err(ArchiveError::Disk)?;
                continue;
            }
            EntryType::Regular | EntryType::Continuous => {}
            EntryType::Symlink => {
                let parent = path.parent().unwrap_or(Path::new(""));
                within(parent, &target.ok_or_else(|| refuse("the link has no target"))?, true)
                    .map_err(|_| refuse("the link leads out of the configuration"))?;
                links.push((root.join(&path), name.clone()));
            }
            EntryType::Link => {
                within(Path::new(""), &target.ok_or_else(|| refuse("the link has no target"))?, false)
                    .map_err(|_| refuse("the link leads out of the configuration"))?;
            }
            _ => return Err(refuse("only files, directories and links may be in it")),
        }
        if !seen.insert(path) {
            return Err(refuse("the name occurs twice"));
        }
        match entry.unpack_in(root) {
            Ok(true) => {}
            Ok(false) => return Err(refuse("the name leads out of the configuration")),
            Err(error) => return Err(failure(error)),
        }
    }
    // A link through another link can lead out although its text does not say so.
    let root = root.canonicalize().map_err(ArchiveError::Disk)?;
    for (link, name) in links {
        if link.canonicalize().is_ok_and(|target| !target.starts_with(&root)) {
            let reason = "the link leads out of the configuration";
            return Err(ArchiveError::Entry { name: shown(&name), reason });
        }
    }
    Ok(())
}

/// The path without `.` and `..`, if it stays inside.
fn within(base: &Path, path: &Path, may_climb: bool) -> Result<PathBuf, &'static str> {
    let mut inside = base.to_owned();
    for component in path.components() {
        match component {
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

fn path_of(name: &[u8]) -> PathBuf {
    use std::os::unix::ffi::OsStrExt;
    std::ffi::OsStr::from_bytes(name).into()
}

/// For people: not too long, and without what a terminal would obey.
fn shown(name: &[u8]) -> String {
    String::from_utf8_lossy(name).chars().take(100).flat_map(char::escape_debug).collect()
}

fn unreadable(error: io::Error) -> ArchiveError {
    match error.get_ref().and_then(|inner| inner.downcast_ref::<Expansion>()) {
        Some(expansion) => ArchiveError::Expands(expansion.0.clone()),
        None => ArchiveError::Unreadable(error),
    }
}

/// Unpacking fails because of what is read or because of where it is written.
fn failure(error: io::Error) -> ArchiveError {
    let mut source: Option<&(dyn std::error::Error + 'static)> = Some(&error);
    while let Some(cause) = source {
        let inner = cause.downcast_ref::<io::Error>().and_then(io::Error::get_ref);
        if let Some(expansion) = inner.and_then(|inner| inner.downcast_ref::<Expansion>()) {
            return ArchiveError::Expands(expansion.0.clone());
        }
        source = cause.source();
    }
    ArchiveError::Disk(error)
}

#[derive(thiserror::Error, Debug)]
#[error("expands beyond {0}")]
struct Expansion(String);

/// Counts what comes out, and stops at the limit.
struct Counted<R> {
    inner: R,
    read: u64,
    packed: u64,
    limits: Limits,
}

impl<R: Read> Read for Counted<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.inner.read(buffer)?;
        self.read += count as u64;
        if self.read > self.limits.unpacked {
            return Err(io::Error::other(Expansion(format!("{} bytes", self.limits.unpacked))));
        }
        if self.read > self.limits.ratio_counts_after && self.read / self.limits.ratio > self.packed {
            return Err(io::Error::other(Expansion(format!("{} times its packed size", self.limits.ratio))));
        }
        Ok(count)
    }
}

#[cfg(test)]
mod tests;
