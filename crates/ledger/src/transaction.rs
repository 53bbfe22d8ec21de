//! Transactions: what a closure that decides may do.

use std::collections::BTreeMap;

use serde_json::value::RawValue;
use taco_tables::{Change, Holds, Record, RecordKey, State, fields_of};

use crate::commit::{Entry, Put};

/// Author and purpose of a change: they stand in the log for ever.
#[derive(Clone, Debug)]
pub struct Intent {
    /// For instance a user's id.
    pub actor: String,
    /// For instance `workspace.lock`.
    pub action: &'static str,
    /// The id of the request that asked, to find it in the servers' logs.
    pub request: Option<String>,
}

/// A state to read, and the changes to it so far.
pub struct Transaction<S> {
    state: S,
    changes: BTreeMap<RecordKey, Option<Box<RawValue>>>,
    reads: Vec<RecordKey>,
    /// A record that cannot be read, and without which it cannot be decided about a change.
    blocking_record: Option<RecordKey>,
}

impl<S> Transaction<S> {
    /// The record because of which nothing may come of it: this version cannot read it.
    pub(crate) fn blocking_record(&self) -> Option<&RecordKey> {
        self.blocking_record.as_ref()
    }
}

impl<S: State> Transaction<S> {
    pub(crate) fn on(state: S) -> Self {
        Self { state, changes: BTreeMap::new(), reads: Vec::new(), blocking_record: None }
    }

    /// The state as this transaction sees it, its own changes included.
    pub fn state(&self) -> &S {
        &self.state
    }

    /// Puts a record. One that is there already, just so, changes nothing: a repeated request makes no commit.
    pub fn put<R: Record>(&mut self, record: &R)
    where
        S: Holds<R>,
    {
        let table = self.state.table_mut();
        let before = table.json_of(record.id());
        let json = table.put(record).expect("a record is plain data");
        if before.is_none_or(|before| before.get() != json.get()) {
            let key = key::<R>(record.id());
            self.check_blocking_record::<R>(&key, &json, false);
            self.changes.insert(key, Some(json));
        }
    }

    /// Puts a record as it once stood in the log, with whatever a newer version wrote into it.
    pub fn put_json(&mut self, key: &RecordKey, value: &RawValue) {
        self.state.apply(&Change::Put(key.clone(), value.to_owned()));
        self.changes.insert(key.clone(), Some(value.to_owned()));
    }

    /// Deletes a record; one that is not there is fine.
    pub fn delete<R: Record>(&mut self, id: &R::Id)
    where
        S: Holds<R>,
    {
        let key = key::<R>(id);
        if !self.state.set_aside().is_empty()
            && let Some(before) = self.state.table().json_of(id)
        {
            self.check_blocking_record::<R>(&key, &before, true);
        }
        if self.state.table_mut().remove(id) {
            self.changes.insert(key, None);
        }
    }

    /// Records that this record was read. It stays as it is, but the log tells who read it.
    pub fn record_read<R: Record>(&mut self, id: &R::Id)
    where
        S: Holds<R>,
    {
        self.reads.push(key::<R>(id));
    }

    fn check_blocking_record<R: Record>(&mut self, key: &RecordKey, value: &RawValue, is_deleted: bool) {
        let set_aside = self.state.set_aside();
        if self.blocking_record.is_none() && !set_aside.is_empty() {
            self.blocking_record = set_aside.in_the_way_of(key, value, fields_of::<R>(), is_deleted).cloned();
        }
    }

    /// True if the log has nothing to tell of it.
    pub(crate) fn is_empty(&self) -> bool {
        self.changes.is_empty() && self.reads.is_empty()
    }

    pub(crate) fn finish(self, intent: &Intent) -> (S, Entry) {
        let mut entry = Entry {
            actor: intent.actor.clone(),
            action: intent.action.to_owned(),
            request: intent.request.clone(),
            puts: Vec::new(),
            deletes: Vec::new(),
            reads: self.reads,
        };
        for (key, change) in self.changes {
            match change {
                Some(value) => entry.puts.push(Put { kind: key.kind, id: key.id, value }),
                None => entry.deletes.push(key),
            }
        }
        (self.state, entry)
    }
}

fn key<R: Record>(id: &R::Id) -> RecordKey {
    RecordKey { kind: R::KIND.to_owned(), id: id.to_string() }
}
