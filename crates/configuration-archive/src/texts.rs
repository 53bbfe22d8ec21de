//! Hands out the files of an archive that somebody wants to read.

use std::io::{self, BufRead, Read};
use std::path::Path;

use tar::{Entry, EntryType};

use crate::error::ArchiveError;
use crate::limits::Limits;
use crate::walk::{Visitor, walk};

/// Calls `take` with the path and the first `most` bytes of each file that is wanted. In place of a link's content there
/// is `None`.
pub fn texts(
    packed: impl BufRead,
    limits: Limits,
    most: u64,
    wants: impl Fn(&str) -> bool,
    take: impl FnMut(&str, Option<&[u8]>),
) -> Result<(), ArchiveError> {
    walk(packed, limits, &mut Texts { most, wants, take })
}

struct Texts<W, T> {
    most: u64,
    wants: W,
    take: T,
}

impl<W: Fn(&str) -> bool, T: FnMut(&str, Option<&[u8]>)> Visitor for Texts<W, T> {
    fn visit<R: Read>(&mut self, path: &Path, entry: &mut Entry<'_, R>) -> io::Result<()> {
        let Some(path) = path.to_str().filter(|path| (self.wants)(path)) else { return Ok(()) };
        match entry.header().entry_type() {
            EntryType::Directory => {}
            EntryType::Symlink | EntryType::Link => (self.take)(path, None),
            _ => {
                let mut text = Vec::new();
                entry.take(self.most).read_to_end(&mut text)?;
                (self.take)(path, Some(&text));
            }
        }
        Ok(())
    }
}
