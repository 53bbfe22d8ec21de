use std::sync::Arc;

use imbl::OrdMap;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::change::RecordKey;
use crate::table::Record;

/// Records that this version of the program cannot read: of a kind it does not know, or written by a newer server, or
/// damaged. They are carried along untouched, so that a newer server, or a mended one, finds them as they were.
#[derive(Clone, Default, Debug)]
pub struct SetAside {
    records: OrdMap<RecordKey, Arc<SetAsideRecord>>,
}

#[derive(Debug)]
pub struct SetAsideRecord {
    pub value: Box<RawValue>,
    pub why: String,
    /// Outline that can be read all the same. `None` for a kind that this version does not know: nothing that it does
    /// is about those.
    outline: Option<Outline>,
}

/// Subject of a record, as far as its JSON alone tells.
#[derive(Debug)]
struct Outline {
    /// Its own id, and those of what it is a part of.
    ids: Vec<String>,
    /// Its texts that no other of its kind may have, by field.
    unique: Vec<(&'static str, String)>,
    concerns_everything: bool,
}

/// Fields to read for an outline: the constants of a [`Record`](crate::Record).
#[doc(hidden)]
#[derive(Clone, Copy)]
pub struct Fields {
    pub part_of: &'static [&'static str],
    pub unique: &'static [&'static str],
    pub concerns_everything: bool,
}

pub fn fields_of<R: Record>() -> Fields {
    Fields { part_of: R::PART_OF, unique: R::UNIQUE, concerns_everything: R::CONCERNS_EVERYTHING }
}

impl Outline {
    fn of(key: &RecordKey, value: &RawValue, fields: Fields) -> Self {
        let value: Value = serde_json::from_str(value.get()).unwrap_or_default();
        let text = |name: &&'static str| value.get(*name).and_then(Value::as_str);
        let mut ids = vec![key.id.clone()];
        fields.part_of.iter().filter_map(|name| value.get(*name)).for_each(|value| add_texts(value, &mut ids));
        let unique = fields.unique.iter().filter_map(|name| Some((*name, text(name)?.to_lowercase())));
        Self { ids, unique: unique.collect(), concerns_everything: fields.concerns_everything }
    }

    /// True if the other cannot be decided about without this one. Both are of the same ledger.
    fn concerns(&self, other: &Self, of_one_kind: bool) -> bool {
        let shares_id = || self.ids.iter().any(|id| other.ids.contains(id));
        let shares_text = || self.unique.iter().any(|text| other.unique.contains(text));
        self.concerns_everything || shares_id() || of_one_kind && shares_text()
    }
}

/// An id may lie deeper, as in `{ "workspace": "ws-…" }`.
fn add_texts(value: &Value, texts: &mut Vec<String>) {
    match value {
        Value::String(text) => texts.push(text.clone()),
        Value::Array(values) => values.iter().for_each(|value| add_texts(value, texts)),
        Value::Object(fields) => fields.values().for_each(|value| add_texts(value, texts)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

impl SetAside {
    /// A record of a kind that this version does not know.
    pub fn insert_unknown(&mut self, key: RecordKey, value: Box<RawValue>) {
        let why = "this version does not know the kind".to_owned();
        self.records.insert(key, Arc::new(SetAsideRecord { value, why, outline: None }));
    }

    /// A record that cannot be read, though this version knows its kind.
    pub fn insert_unreadable(&mut self, key: RecordKey, value: Box<RawValue>, why: String, fields: Fields) {
        let outline = Some(Outline::of(&key, &value, fields));
        self.records.insert(key, Arc::new(SetAsideRecord { value, why, outline }));
    }

    /// Puts all records that another state has set aside.
    pub fn merge(&mut self, other: &Self) {
        for (key, record) in &other.records {
            self.records.insert(key.clone(), Arc::clone(record));
        }
    }

    pub fn remove(&mut self, key: &RecordKey) {
        self.records.remove(key);
    }

    pub fn iter(&self) -> impl Iterator<Item = (&RecordKey, &SetAsideRecord)> {
        self.records.iter().map(|(key, record)| (key, &**record))
    }

    /// The records that cannot be read, though this version knows their kind.
    pub fn unreadable(&self) -> impl Iterator<Item = (&RecordKey, &SetAsideRecord)> {
        self.iter().filter(|(_, record)| record.outline.is_some())
    }

    /// Record set aside under this key, if there is one.
    pub fn get(&self, key: &RecordKey) -> Option<&SetAsideRecord> {
        self.records.get(key).map(|record| &**record)
    }

    /// The record that keeps this one from being put or deleted: any decision about this one could be different if that
    /// one were readable.
    pub fn in_the_way_of(
        &self,
        key: &RecordKey,
        value: &RawValue,
        fields: Fields,
        is_deleted: bool,
    ) -> Option<&RecordKey> {
        if self.is_empty() {
            return None;
        }
        let outline = Outline::of(key, value, fields);
        let found = self.iter().find(|(other, record)| {
            let mentions = || is_deleted && record.value.get().contains(&format!("\"{}\"", key.id));
            let concerned = record.outline.as_ref();
            concerned.is_some_and(|it| it.concerns(&outline, other.kind == key.kind) || mentions())
        });
        found.map(|(other, _)| other)
    }

    /// The records that were set aside earlier and are not any more.
    pub fn for_each_deleted(&self, before: &Self, visit: &mut dyn FnMut(&str, &str)) {
        if !self.records.ptr_eq(&before.records) {
            let gone = before.records.keys().filter(|key| !self.records.contains_key(*key));
            gone.for_each(|key| visit(&key.kind, &key.id));
        }
    }

    /// The records that were not set aside earlier, or not so. There are few, if any, so all of them are looked at.
    pub fn for_each_put(&self, before: &Self, visit: &mut dyn FnMut(&str, &str, &RawValue)) {
        if !self.records.ptr_eq(&before.records) {
            let same = |key, record: &SetAsideRecord| {
                before.get(key).is_some_and(|before| before.value.get() == record.value.get())
            };
            let new = self.iter().filter(|(key, record)| !same(key, record));
            new.for_each(|(key, record)| visit(&key.kind, &key.id, &record.value));
        }
    }

    pub fn len(&self) -> usize {
        self.records.len()
    }

    pub fn is_empty(&self) -> bool {
        self.records.is_empty()
    }
}
