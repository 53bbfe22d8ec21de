//! Finding records by their ids.

use taco_tables::{Holds, Record, RecordKey};

use crate::Error;

/// The record with this id. One that only a newer server can read is there all the same, and the error says so.
pub(crate) fn find<'a, R: Record, S: Holds<R>>(state: &'a S, id: &R::Id, what: &'static str) -> Result<&'a R, Error> {
    state.table().get(id).ok_or_else(|| {
        let key = RecordKey { kind: R::KIND.to_owned(), id: id.to_string() };
        match state.set_aside().get(&key) {
            Some(_) => taco_ledger::Error::NewerRecord(key).into(),
            None => Error::NotFound(what),
        }
    })
}
