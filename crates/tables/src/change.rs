use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

/// Key of a record: its kind and its id, both as text.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, Debug)]
pub struct RecordKey {
    pub kind: String,
    pub id: String,
}

impl fmt::Display for RecordKey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} {}", self.kind, self.id)
    }
}

/// Change of a commit to one record.
#[derive(Clone, Debug)]
pub enum Change {
    Put(RecordKey, Box<RawValue>),
    Delete(RecordKey),
}
