//! Records that are kept elsewhere than in a ledger's state, read and in no table.

use std::sync::Arc;

use serde_json::value::RawValue;

use crate::change::RecordKey;
use crate::set_aside::{SetAside, fields_of};
use crate::table::{Record, Table};
use crate::tree::AnyRow;

/// Records that can be laid over a state again and again. Tables of their own would take several times as much memory.
#[derive(Clone, Default)]
pub struct LooseRecords {
    rows: Vec<(&'static str, LooseRow)>,
    set_aside: SetAside,
    weight: usize,
}

/// A row that is in no table.
#[derive(Clone)]
pub struct LooseRow(pub(crate) AnyRow);

impl LooseRecords {
    /// Approximate size in memory, in bytes.
    pub fn weight(&self) -> usize {
        self.weight
    }

    /// Adds a record as it stands in the log; for [`tables!`](crate::tables), like all that follows.
    #[doc(hidden)]
    pub fn read<R: Record>(&mut self, key: &RecordKey, value: &RawValue) {
        match Table::<R>::read(&key.id, value) {
            Ok(row) => {
                // Texts and lists of a record take about as much again as they do in JSON.
                self.weight += size_of_val(&row) + 2 * value.get().len();
                self.rows.push((R::KIND, LooseRow(AnyRow::of(Arc::new(row)))));
            }
            Err(why) => {
                self.weight += value.get().len();
                self.set_aside.insert_unreadable(key.clone(), value.to_owned(), why, fields_of::<R>());
            }
        }
    }

    #[doc(hidden)]
    pub fn read_unknown(&mut self, key: &RecordKey, value: &RawValue) {
        self.weight += value.get().len();
        self.set_aside.insert_unknown(key.clone(), value.to_owned());
    }

    /// Rows, each with its kind.
    #[doc(hidden)]
    pub fn rows(&self) -> impl Iterator<Item = (&'static str, &LooseRow)> {
        self.rows.iter().map(|(kind, row)| (*kind, row))
    }

    #[doc(hidden)]
    pub fn set_aside(&self) -> &SetAside {
        &self.set_aside
    }
}
