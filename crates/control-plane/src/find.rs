//! Finding records by their ids. One that only a newer server can read is there all the same, and the error says so.

use taco_tables::{Holds, Record, RecordKey};

use crate::Error;

/// The record with this id.
pub(crate) fn find<'a, R: Record, S: Holds<R>>(state: &'a S, id: &R::Id, what: &'static str) -> Result<&'a R, Error> {
    find_if_there(state, id)?.ok_or(Error::NotFound(what))
}

/// The record with this id, if there is one.
pub(crate) fn find_if_there<'a, R: Record, S: Holds<R>>(state: &'a S, id: &R::Id) -> Result<Option<&'a R>, Error> {
    let found = state.table().get(id);
    if found.is_none() && !state.set_aside().is_empty() {
        let key = RecordKey { kind: R::KIND.to_owned(), id: id.to_string() };
        if state.set_aside().get(&key).is_some() {
            return Err(taco_ledger::Error::NewerRecord(key).into());
        }
    }
    Ok(found)
}
