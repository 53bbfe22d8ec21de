use std::sync::Arc;

use imbl::OrdMap;
use serde_json::value::RawValue;

use crate::change::RecordKey;

/// Records that this version of the program cannot read: of a kind it does not know, or damaged. They are carried
/// along untouched, so that a newer server, or a mended one, finds them as they were.
#[derive(Clone, Default, Debug)]
pub struct SetAside {
    records: OrdMap<RecordKey, Arc<SetAsideRecord>>,
}

#[derive(Debug)]
pub struct SetAsideRecord {
    pub value: Box<RawValue>,
    pub why: String,
}

impl SetAside {
    pub fn insert(&mut self, key: RecordKey, value: Box<RawValue>, why: String) {
        self.records.insert(key, Arc::new(SetAsideRecord { value, why }));
    }

    pub fn remove(&mut self, key: &RecordKey) {
        self.records.remove(key);
    }

    pub fn iter(&self) -> impl Iterator<Item = (&RecordKey, &SetAsideRecord)> {
        self.records.iter().map(|(key, record)| (key, &**record))
    }

    pub fn len(&self) -> usize {
        self.records.len()
    }

    pub fn is_empty(&self) -> bool {
        self.records.is_empty()
    }
}
