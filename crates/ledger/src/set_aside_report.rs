//! Tells operators of records that this version cannot read, each once: they are served by nobody here, and whoever
//! upgrades should know that a newer server is at work.

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

use taco_tables::{RecordKey, State};

use crate::layout::LedgerName;

/// Maximum number of records that are named at a time: a newer version may write thousands of a kind that this one\n/// does not know.
const MAX_LOGGED_RECORDS: usize = 20;

/// The records of one ledger that were told of.
#[derive(Debug, Default)]
pub(crate) struct SetAsideReport {
    told: Mutex<BTreeSet<RecordKey>>,
}

impl SetAsideReport {
    /// Tells of those that a state has set aside and that were not told of before.
    pub(crate) fn tell<S: State>(&self, ledger: &LedgerName, state: &S) {
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        let set_aside = state.set_aside();
        if set_aside.is_empty() && told.is_empty() {
            return;
        }
        told.retain(|key| {
            let stays = set_aside.get(key).is_some();
            if !stays {
                tracing::info!(event = "record_readable", %ledger, record = %key, "a record can be read again, or is gone");
            }
            stays
        });
        let mut more: usize = 0;
        for (number, (key, record)) in set_aside.iter().filter(|(key, _)| !told.contains(key)).enumerate() {
            if number >= MAX_LOGGED_RECORDS {
                more += 1;
                continue;
            }
            tracing::warn!(
                event = "record_unreadable", %ledger, record = %key, why = record.why,
                "a record cannot be read and is set aside: a newer server wrote it, or it is damaged"
            );
        }
        if more > 0 {
            tracing::warn!(event = "record_unreadable", %ledger, more, "more records cannot be read; `taco doctor` lists them");
        }
        told.extend(set_aside.iter().map(|(key, _)| key.clone()));
        metrics::gauge!("taco_unreadable_records", "ledger" => ledger.to_string()).set(told.len() as f64);
    }
}
