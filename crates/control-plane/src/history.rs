//! History: finished records that left memory. Whoever reads them sees them in their places, as if they had never left;
//! see `docs/decisions/0029-history.md`.
//!
//! [`parts`] reads and caches what lies in the bucket, [`lookup`] finds single records, [`lists`] makes pages of lists over
//! both, [`archive`] moves records out of memory, [`restore`] brings them back before something changes them, and [`sweep`]
//! removes objects that nothing names.

mod archive;
mod examine;
mod lists;
mod lookup;
mod parts;
mod restore;
mod rows;
mod sweep;
mod trends;

pub use archive::Archived;
pub use examine::{HistoryInBucket, read_history};
pub(crate) use lists::{HistoricKind, InMemory, ListKey, ListedIds, WorkspaceList};
pub(crate) use parts::HistoryCache;
pub(crate) use restore::ToChange;
pub(crate) use rows::{is_intermediate, options_of, stored_status};
pub(crate) use sweep::Leftovers;
