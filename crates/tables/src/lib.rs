//! Typed tables with secondary indexes, as immutable values that are cheap to clone.
//!
//! A [`State`] is a handful of [`Table`]s. Cloning one shares almost everything with the original, so a reader keeps
//! its own for as long as it likes while writers go on. The ledger fills a state from commits and knows its records
//! only as `(kind, id, JSON)`; the application declares them with [`tables!`] and reads them with their types.

mod change;
mod index;
mod set_aside;
mod state;
mod table;

pub use change::{Change, RecordKey};
pub use index::{Index, Indexes};
pub use set_aside::{SetAside, SetAsideRecord};
pub use state::{Holds, State};
pub use table::{Record, Row, Table};

#[doc(hidden)]
pub mod macro_support {
    pub use serde_json;
}
