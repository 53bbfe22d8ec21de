//! Unpacks a configuration. What may be in it is checked on the way, by the rules that servers know, too.

use std::fs::{self, File};
use std::io::{self, BufReader, Read};
use std::path::Path;

use taco_configuration_archive::{ArchiveError, Limits, Visitor, walk};
use tar::{Entry, EntryType};

/// Unpacks `archive` into `root`, which is fresh. After an error something may be there already.
pub(crate) fn unpack(archive: &Path, root: &Path, limits: Limits) -> Result<(), ArchiveError> {
    let file = File::open(archive).map_err(ArchiveError::Visit)?;
    walk(BufReader::new(file), limits, &mut Unpacking { root })
}

struct Unpacking<'a> {
    root: &'a Path,
}

impl Visitor for Unpacking<'_> {
    fn visit<R: Read>(&mut self, path: &Path, entry: &mut Entry<'_, R>) -> io::Result<()> {
        if entry.header().entry_type() == EntryType::Directory {
            // Modes of directories are not taken over: one without write permission could not be filled.
            return fs::create_dir_all(self.root.join(path));
        }
        match entry.unpack_in(self.root)? {
            true => Ok(()),
            false => Err(io::Error::other(format!("{} leads out of the configuration", path.display()))),
        }
    }
}

#[cfg(test)]
mod tests;
