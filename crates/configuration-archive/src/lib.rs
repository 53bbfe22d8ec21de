//! Rules for the archive of a configuration: one set for servers, which look at it while it streams by, and for agents,
//! which unpack it. Nothing here writes anything, and little of an archive is ever in memory.

mod contents;
mod error;
mod inspect;
mod limits;
mod readers;
mod readme;
mod texts;
mod tree;
mod walk;

pub use contents::{Contents, UnitContents, is_configuration};
pub use error::ArchiveError;
pub use inspect::{Inspected, inspect};
pub use limits::{LIMITS, Limits};
pub use readme::MAX_README_BYTES;
pub use texts::texts;
pub use walk::{Visitor, walk};

#[cfg(test)]
mod tests;
