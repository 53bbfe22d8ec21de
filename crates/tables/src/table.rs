use std::fmt::Display;
use std::str::FromStr;
use std::sync::Arc;

use imbl::OrdMap;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Map, Value};

use crate::index::{Indexes, IndexesOf};

/// Something a ledger keeps.
pub trait Record: Serialize + DeserializeOwned + Clone + Send + Sync + 'static {
    /// The word that stands for this type in the bucket. It outlives the code: never change it.
    const KIND: &'static str;
    type Id: Ord + Clone + Display + FromStr + Send + Sync + 'static;
    type Indexes: Indexes<Self>;

    fn id(&self) -> &Self::Id;
}

/// A record with whatever else its JSON held.
#[derive(Clone, Debug)]
pub struct Row<R> {
    pub record: R,
    /// Fields written by a newer version, kept so that an older server that changes the record does not drop them.
    unknown: Option<Box<Map<String, Value>>>,
}

impl<R: Record> Row<R> {
    fn parse(json: &RawValue) -> serde_json::Result<Self> {
        let mut names = Vec::new();
        let mut deserializer = serde_json::Deserializer::from_str(json.get());
        let record = serde_ignored::deserialize(&mut deserializer, |path| {
            // Only a record's own fields: what lies deeper belongs to the field's type and its author.
            if let serde_ignored::Path::Map { parent: serde_ignored::Path::Root, key } = path {
                names.push(key.clone());
            }
        })?;
        let unknown = if names.is_empty() {
            None
        } else {
            let mut all: Map<String, Value> = serde_json::from_str(json.get())?;
            Some(Box::new(names.into_iter().filter_map(|name| all.remove_entry(&name)).collect()))
        };
        Ok(Self { record, unknown })
    }

    pub(crate) fn to_json(&self) -> serde_json::Result<Box<RawValue>> {
        let Some(unknown) = &self.unknown else { return to_raw_value(&self.record) };
        let mut value = serde_json::to_value(&self.record)?;
        if let Value::Object(fields) = &mut value {
            for (name, kept) in unknown.iter() {
                fields.entry(name.clone()).or_insert_with(|| kept.clone());
            }
        }
        to_raw_value(&value)
    }
}

/// All records of one kind, by id, with their indexes.
pub struct Table<R: Record> {
    rows: OrdMap<R::Id, Arc<Row<R>>>,
    indexes: IndexesOf<R>,
}

impl<R: Record> Clone for Table<R> {
    fn clone(&self) -> Self {
        Self { rows: self.rows.clone(), indexes: self.indexes.clone() }
    }
}

impl<R: Record> Default for Table<R> {
    fn default() -> Self {
        Self { rows: OrdMap::new(), indexes: IndexesOf::<R>::default() }
    }
}

impl<R: Record> Table<R> {
    pub fn get(&self, id: &R::Id) -> Option<&R> {
        self.rows.get(id).map(|row| &row.record)
    }

    pub fn contains(&self, id: &R::Id) -> bool {
        self.rows.contains_key(id)
    }

    /// All records in the order of their ids.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = &R> {
        self.rows.values().map(|row| &row.record)
    }

    pub fn len(&self) -> usize {
        self.rows.len()
    }

    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// The indexes that the record's type declares.
    pub fn by(&self) -> &R::Indexes {
        &self.indexes
    }

    /// A record as it stands in the log.
    pub fn json_of(&self, id: &R::Id) -> Option<Box<RawValue>> {
        self.rows.get(id)?.to_json().ok()
    }

    /// Puts a record and returns the JSON that goes into the log: with the unknown fields of the row it replaces.
    pub fn put(&mut self, record: &R) -> serde_json::Result<Box<RawValue>> {
        let unknown = self.rows.get(record.id()).and_then(|row| row.unknown.clone());
        let row = Row { record: record.clone(), unknown };
        let json = row.to_json()?;
        self.insert(row);
        Ok(json)
    }

    pub fn remove(&mut self, id: &R::Id) -> bool {
        match self.rows.remove(id) {
            Some(row) => {
                self.indexes.remove(&row.record);
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

    fn read(id: &str, json: &RawValue) -> Result<Row<R>, String> {
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
        for (id, row) in &self.rows {
            visit(R::KIND, &id.to_string(), &row.to_json()?);
        }
        Ok(())
    }

    fn insert(&mut self, row: Row<R>) {
        self.indexes.insert_replacing(self.rows.get(row.record.id()).map(|old| &old.record), &row.record);
        self.rows.insert(row.record.id().clone(), Arc::new(row));
    }
}

/// Swaps a record's old keys for its new ones.
trait InsertReplacing<R> {
    fn insert_replacing(&mut self, old: Option<&R>, new: &R);
}

impl<R, I: Indexes<R>> InsertReplacing<R> for I {
    fn insert_replacing(&mut self, old: Option<&R>, new: &R) {
        if let Some(old) = old {
            self.remove(old);
        }
        self.insert(new);
    }
}
