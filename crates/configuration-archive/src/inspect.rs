//! Inspection of an archive by a server that does not unpack it.

use std::io::{self, BufRead, Read};
use std::path::Path;

use sha2::{Digest, Sha256};
use tar::{Entry, EntryType};

use crate::contents::Contents;
use crate::error::ArchiveError;
use crate::limits::Limits;
use crate::readme::Readme;
use crate::tree::inside;
use crate::walk::{Visitor, walk_through};

/// Extensions of the files that terraform or tofu reads.
pub(crate) const EXTENSIONS: [&str; 4] = [".tf", ".tf.json", ".tofu", ".tofu.json"];

/// An archive that agents can unpack and run.
#[derive(PartialEq, Eq, Debug)]
pub struct Inspected {
    /// The text of the working directory's `README.md`, or else of the root's, or its beginning.
    pub readme: Option<String>,
    pub contents: Contents,
}

/// Looks at every file once.
struct Inspection {
    readme: Readme,
    contents: Contents,
}

impl Visitor for Inspection {
    fn visit<R: Read>(&mut self, path: &Path, entry: &mut Entry<'_, R>) -> io::Result<()> {
        let target = || entry.link_name_bytes().map(|target| String::from_utf8_lossy(&target).into_owned());
        match entry.header().entry_type() {
            EntryType::Regular | EntryType::Continuous => {}
            EntryType::Symlink => {
                self.contents.add_link(path, Path::new(&target().unwrap_or_default()));
                return Ok(());
            }
            EntryType::Link => {
                self.contents.add_hard_link(path, Path::new(&target().unwrap_or_default()));
                return Ok(());
            }
            _ => return Ok(()),
        }
        let wanted = Contents::wants(path).max(self.readme.wants(path));
        let mut beginning = Vec::new();
        entry.by_ref().take(wanted as u64).read_to_end(&mut beginning)?;
        let mut hash = Sha256::new_with_prefix(&beginning);
        let (mut buffer, mut size) = ([0; 16 * 1024], beginning.len() as u64);
        loop {
            let count = entry.read(&mut buffer)?;
            if count == 0 {
                break;
            }
            size += count as u64;
            hash.update(&buffer[..count]);
        }
        self.contents.add_file(path, hash.finalize().into(), size, &beginning);
        self.readme.take(path, beginning);
        Ok(())
    }
}

/// Reads an archive to its end. With a working directory, the configuration has to be in it; without, it may lie
/// anywhere.
pub fn inspect(packed: impl BufRead, limits: Limits, working_directory: &str) -> Result<Inspected, ArchiveError> {
    let directory = inside(Path::new(""), Path::new(working_directory), false, limits).unwrap_or_default();
    let mut inspection = Inspection { readme: Readme::of(&directory), contents: Contents::default() };
    let tree = walk_through(packed, limits, &mut inspection)?;
    if tree.names().next().is_none() {
        return Err(ArchiveError::Empty);
    }
    if directory.as_os_str().is_empty() {
        if !tree.names().any(is_configuration) {
            return Err(ArchiveError::NoConfiguration { place: String::new() });
        }
    } else if !tree.has_in(&directory, is_configuration) {
        let place = format!(" in the working directory {}", directory.display());
        return Err(ArchiveError::NoConfiguration { place });
    }
    Ok(Inspected { readme: inspection.readme.text(), contents: inspection.contents })
}

fn is_configuration(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().as_encoded_bytes();
    EXTENSIONS.iter().any(|extension| name.ends_with(extension.as_bytes()))
}
