//! Typed tables with secondary indexes, as immutable values that are cheap to clone.
//!
//! A [`State`] is a handful of [`Table`]s. Cloning one shares almost everything with the original, so a reader keeps
//! its own for as long as it likes while writers go on. The ledger fills a state from commits and knows its records
//! only as `(kind, id, JSON)`; the application declares them with [`tables!`] and reads them with their types.

mod change;
mod index;
mod key;
mod loose;
mod reference;
mod row;
mod set_aside;
mod state;
mod table;
mod tree;
mod unknown;

pub use change::{Change, RecordKey};
#[doc(hidden)]
pub use index::Keys;
pub use index::{Index, Indexes, NewRow};
pub use key::{KeyBytes, KeyPrefix, SortKey};
pub use loose::LooseRecords;
#[doc(hidden)]
pub use loose::LooseRow;
pub use reference::{OnDelete, Reference};
#[doc(hidden)]
pub use set_aside::{Fields, fields_of};
pub use set_aside::{SetAside, SetAsideRecord};
pub use state::{Holds, RecordTypes, State, Tables, VisitRecordType, VisitTable};
pub use table::{Record, Table};
pub use tree::Records;

#[doc(hidden)]
pub mod macro_support {
    pub use serde_json;
}
