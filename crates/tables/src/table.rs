use std::fmt::Display;
use std::marker::PhantomData;
use std::str::FromStr;
use std::sync::Arc;

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;

use crate::index::{Indexes, NewRow};
use crate::key::{KeyBytes, SortKey};
use crate::loose::LooseRow;
use crate::reference::Reference;
use crate::row::Row;
use crate::tree::{AnyRow, Records, Tree, typed};

/// Something a ledger keeps.
pub trait Record: Serialize + DeserializeOwned + Clone + Send + Sync + 'static {
    /// The name of this type in the bucket. It outlives the code: never change it.
    const KIND: &'static str;
    /// The name of this type for people, as in "SSH key not found".
    const NOUN: &'static str = Self::KIND;
    /// The fields, as they are called in JSON, with the ids of what this record is a part of: a run is a part of its
    /// workspace. If one part cannot be read, there are no decisions about the others.
    const PART_OF: &'static [&'static str] = &[];
    /// The fields, as they are called in JSON, whose text no two records share, ignoring case.
    const UNIQUE: &'static [&'static str] = &[];
    /// True if any other decision may depend on it: if one cannot be read, nothing is changed at all.
    const CONCERNS_EVERYTHING: bool = false;
    type Id: SortKey + Ord + Clone + Display + FromStr + Send + Sync + 'static;
    type Indexes: Indexes<Self>;

    fn id(&self) -> &Self::Id;

    /// The fields that name other records of the same state, and what deleting one of those does to this record. Declared
    /// with [`references!`](crate::references).
    fn references() -> Vec<Reference<Self>> {
        Vec::new()
    }

    /// The texts that were encrypted before they came here, each with the name that it was sealed under. A new master key
    /// reaches what is listed here, and nothing else.
    fn sealed_mut(&mut self) -> Vec<(String, &mut String)> {
        Vec::new()
    }

    /// Gives back the memory that lists of this record have to spare: one that was read has room for up to twice as much.
    /// For records of which there are many.
    fn shrink(&mut self) {}
}

/// All records of one kind, by id, with their indexes.
pub struct Table<R: Record> {
    rows: Tree,
    indexes: R::Indexes,
    record: PhantomData<fn() -> R>,
}

impl<R: Record> Clone for Table<R> {
    fn clone(&self) -> Self {
        Self { rows: self.rows.clone(), indexes: self.indexes.clone(), record: PhantomData }
    }
}

impl<R: Record> Default for Table<R> {
    fn default() -> Self {
        Self { rows: Tree::default(), indexes: R::Indexes::default(), record: PhantomData }
    }
}

impl<R: Record> Table<R> {
    pub fn get(&self, id: &R::Id) -> Option<&R> {
        self.row(id).map(|row| &row.record)
    }

    fn row(&self, id: &R::Id) -> Option<&Row<R>> {
        self.rows.get(&KeyBytes::of(id)).map(typed)
    }

    pub fn contains(&self, id: &R::Id) -> bool {
        self.rows.get(&KeyBytes::of(id)).is_some()
    }

    /// All records in the order of their ids.
    pub fn iter(&self) -> Records<'_, R> {
        Records::of(self.rows.rows())
    }

    pub fn len(&self) -> usize {
        self.rows.len()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The indexes that the record's type declares.
    pub fn by(&self) -> &R::Indexes {
        &self.indexes
    }

    /// The attribute that another record has the same of, though it is declared to be unique.
    pub fn unique_conflict(&self, record: &R) -> Option<&'static str> {
        self.indexes.unique_conflict(record)
    }

    /// True if a record is the same one as in another table, of a later or an earlier state.
    pub fn is_unchanged(&self, since: &Self, id: &R::Id) -> bool {
        let key = KeyBytes::of(id);
        match (self.rows.get(&key), since.rows.get(&key)) {
            (Some(now), Some(then)) => now == then,
            (None, None) => true,
            _ => false,
        }
    }

    /// A record as it stands in the log.
    pub fn json_of(&self, id: &R::Id) -> Option<Box<RawValue>> {
        self.row(id)?.to_json().ok()
    }

    /// Puts a record and returns the JSON that goes into the log: with the unknown fields of the row it replaces.
    pub fn put(&mut self, record: &R) -> serde_json::Result<Box<RawValue>> {
        let unknown = self.row(record.id()).and_then(|row| row.unknown.clone());
        let row = Row { record: record.clone(), unknown };
        let json = row.to_json()?;
        self.insert(row);
        Ok(json)
    }

    pub fn remove(&mut self, id: &R::Id) -> bool {
        match self.rows.remove(&KeyBytes::of(id)) {
            Some(row) => {
                self.indexes.replace(Some(&typed::<R>(&row).record), None);
                true
            }
            None => false,
        }
    }

    /// Puts a record as it stands in the log. One that cannot be read still replaces the one before it.
    pub fn put_json(&mut self, id: &str, json: &RawValue) -> Result<(), String> {
        match Self::read(id, json) {
            Ok(row) => {
                self.insert(row);
                Ok(())
            }
            Err(why) => {
                self.remove_text(id);
                Err(why)
            }
        }
    }

    pub(crate) fn read(id: &str, json: &RawValue) -> Result<Row<R>, String> {
        let row = Row::<R>::parse(json).map_err(|error| error.to_string())?;
        if row.record.id().to_string() == id {
            Ok(row)
        } else {
            Err(format!("it says that its id is {}", row.record.id()))
        }
    }

    /// Removes a record by its id as text.
    pub fn remove_text(&mut self, id: &str) {
        if let Ok(id) = id.parse() {
            self.remove(&id);
        }
    }

    /// Every record as it belongs into a snapshot.
    pub fn for_each_json(&self, visit: &mut dyn FnMut(&str, &str, &RawValue)) -> serde_json::Result<()> {
        for row in self.rows.rows().map(typed::<R>) {
            visit(R::KIND, &row.record.id().to_string(), &row.to_json()?);
        }
        Ok(())
    }

    /// The ids of records that an earlier table had and this one has not.
    pub fn for_each_deleted(&self, before: &Self, visit: &mut dyn FnMut(&str, &str)) {
        for (old, new) in self.rows.changes_since(&before.rows) {
            if let (Some(old), None) = (old, new) {
                visit(R::KIND, &typed::<R>(old).record.id().to_string());
            }
        }
    }

    /// The records that an earlier table had not, or another instance of, each with how it was there.
    pub fn changed_since<'a>(&'a self, before: &'a Self) -> impl Iterator<Item = (Option<&'a R>, &'a R)> {
        let record = |row: &'a AnyRow| &typed::<R>(row).record;
        let changes = self.rows.changes_since(&before.rows);
        changes.filter_map(move |(old, new)| Some((old.map(record), record(new?))))
    }

    /// Every record that an earlier table had not, or not so, as it belongs into a snapshot.
    pub fn for_each_put(&self, before: &Self, visit: &mut dyn FnMut(&str, &str, &RawValue)) -> serde_json::Result<()> {
        for (old, new) in self.rows.changes_since(&before.rows) {
            let Some(new) = new.map(typed::<R>) else { continue };
            let json = new.to_json()?;
            // What was put again as it was is no change, and not every server that has the same records has put it.
            let old = old.map(|old| typed::<R>(old).to_json()).transpose()?;
            if old.is_none_or(|old| old.get() != json.get()) {
                visit(R::KIND, &new.record.id().to_string(), &json);
            }
        }
        Ok(())
    }

    /// Lays a row over the table, unless there is one with its id. It is shared, not copied.
    #[doc(hidden)]
    pub fn lay_over(&mut self, row: &LooseRow) {
        let LooseRow(row) = row;
        let record = &typed::<R>(row).record;
        let key = KeyBytes::of(record.id());
        if self.rows.get(&key).is_none() {
            self.rows.lay_over(key, row.clone());
            self.indexes.replace(None, Some(NewRow { record, row, is_laid_over: true }));
        }
    }

    fn insert(&mut self, row: Row<R>) {
        let row = AnyRow::of(Arc::new(row));
        let record = &typed::<R>(&row).record;
        let old = self.rows.insert(KeyBytes::of(record.id()), row.clone());
        let old = old.as_ref().map(|old| &typed::<R>(old).record);
        self.indexes.replace(old, Some(NewRow { record, row: &row, is_laid_over: false }));
    }
}
