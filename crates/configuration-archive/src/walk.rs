//! Goes through an archive from its first byte to its last, and checks every entry before anyone else sees it.

use std::cell::{Cell, RefCell};
use std::ffi::OsStr;
use std::io::{self, BufRead, Read};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::rc::Rc;

use flate2::bufread::MultiGzDecoder;
use tar::{Archive, Entry, EntryType};

use crate::error::ArchiveError;
use crate::limits::Limits;
use crate::readers::{Frames, Packed, Stop, Unpacked};
use crate::tree::{Tree, inside};

pub(crate) const KINDS: &str = "only files, directories and links may be in it";

/// Receives the entries of an archive.
pub trait Visitor {
    /// An entry that may be in an archive. Its path has no `..` and no `.` in it, and is empty for the root alone.
    /// Rules that need all entries are checked after the last: see [`walk`].
    fn visit<R: Read>(&mut self, path: &Path, entry: &mut Entry<'_, R>) -> io::Result<()>;
}

/// Shows every entry to `visitor`. After an error it has seen some.
pub fn walk(packed: impl BufRead, limits: Limits, visitor: &mut impl Visitor) -> Result<(), ArchiveError> {
    walk_through(packed, limits, visitor).map(|_| ())
}

pub(crate) fn walk_through(
    packed: impl BufRead,
    limits: Limits,
    visitor: &mut impl Visitor,
) -> Result<Tree, ArchiveError> {
    let used = Rc::new(Cell::new(0));
    let stop: Stop = Rc::new(RefCell::new(None));
    let packed = Packed { inner: packed, used: Rc::clone(&used) };
    let inner = MultiGzDecoder::new(packed);
    let unpacked = Unpacked { inner, packed: used, unpacked: 0, limits, stop: Rc::clone(&stop) };
    let mut archive = Archive::new(Frames::new(unpacked, Rc::clone(&stop)));
    let walked = entries(&mut archive, limits, visitor);
    // A reader that stopped knows the reason better than its caller.
    let walked = stop.borrow_mut().take().map_or(walked, Err)?;
    let mut rest = archive.into_inner();
    let whole = io::copy(&mut rest, &mut io::sink());
    let whole = whole.map(|_| ()).map_err(|error| ArchiveError::Unreadable(error.to_string()));
    stop.borrow_mut().take().map_or(whole, Err)?;
    walked.check_links()?;
    Ok(walked)
}

fn entries<R: Read>(
    archive: &mut Archive<R>,
    limits: Limits,
    visitor: &mut impl Visitor,
) -> Result<Tree, ArchiveError> {
    let unreadable = |error: io::Error| ArchiveError::Unreadable(error.to_string());
    let mut tree = Tree::default();
    for (count, entry) in archive.entries().map_err(unreadable)?.enumerate() {
        let mut entry = entry.map_err(unreadable)?;
        if count >= limits.entries {
            return Err(ArchiveError::TooManyEntries(limits.entries));
        }
        let name = entry.path_bytes().into_owned();
        let refuse = |reason| ArchiveError::entry(&name, reason);
        // Two readers could disagree about where the next entry begins.
        if entry.size() != entry.header().entry_size().map_err(unreadable)? {
            return Err(refuse("it has two sizes"));
        }
        if name.contains(&0) {
            return Err(refuse("the name has a NUL in it"));
        }
        let path = inside(Path::new(""), Path::new(OsStr::from_bytes(&name)), false, limits).map_err(refuse)?;
        let target = entry.link_name_bytes().map(|target| target.into_owned());
        let target = || target.as_deref().map(|target| Path::new(OsStr::from_bytes(target)));
        let target = || target().ok_or_else(|| refuse("the link has no target"));
        match entry.header().entry_type() {
            // What git writes first: a comment about the commit.
            EntryType::XGlobalHeader => continue,
            EntryType::Directory => tree.add_directory(&name, &path, limits)?,
            EntryType::Regular | EntryType::Continuous => tree.add_file(&name, &path, limits)?,
            EntryType::Symlink => tree.add_link(&name, &path, target()?, limits)?,
            EntryType::Link => tree.add_hard_link(&name, &path, target()?, limits)?,
            _ => return Err(refuse(KINDS)),
        }
        visitor.visit(&path, &mut entry).map_err(ArchiveError::Visit)?;
    }
    Ok(tree)
}
