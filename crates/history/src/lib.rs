//! History: what happens no more, and so does not have to be in memory.
//!
//! A [`bundle`](Bundle) is a finished run with everything that hangs on it, as the records stood in the ledger. Bundles
//! lie one behind the other in a [`page`](PageWriter), each compressed on its own, so that one of them can be read
//! without the others. A [`Catalog`] has one row for each record: enough to find, filter, sort and count without reading
//! a page. Both are immutable.
//!
//! This crate is about bytes and order alone. It knows no record type, and reads and writes nothing.

mod catalog;
mod catalog_format;
mod column;
mod id_index;
mod page;
mod select;
mod texts;

pub use catalog::{Catalog, CatalogBuilder, Row, RowFilter, RowId};
pub use id_index::IdIndex;
pub use page::{Bundle, BundleReader, PageWriter, Place, read_bundle};
pub use select::{Source, select};
pub use texts::Texts;

/// Reason why bytes are malformed.
#[derive(Clone, PartialEq, Eq, thiserror::Error, Debug)]
#[error("{0}")]
pub struct Malformed(pub String);

/// Frozen samples of something that a page or a catalog begins with.
#[cfg(test)]
fn samples(name: &str) -> Vec<String> {
    let folder = "../../migrations-in-bucket/0001-first-format/samples/bucket";
    let file = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join(folder).join(format!("{name}.jsonl"));
    std::fs::read_to_string(file).expect("samples").lines().map(str::to_owned).collect()
}
