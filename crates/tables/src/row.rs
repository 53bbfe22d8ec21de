use serde_json::value::{RawValue, to_raw_value};

use crate::table::Record;
use crate::unknown::Unknown;

/// A record with everything else its JSON held.
#[derive(Clone, Debug)]
pub(crate) struct Row<R> {
    pub(crate) record: R,
    /// Fields that a newer version wrote, kept so that an older server that changes the record does not drop them.
    pub(crate) unknown: Option<Box<Unknown>>,
}

impl<R: Record> Row<R> {
    pub(crate) fn parse(json: &RawValue) -> serde_json::Result<Self> {
        let mut record: R = serde_json::from_str(json.get())?;
        record.shrink();
        // As this very version wrote it, which is mostly so.
        if to_raw_value(&record)?.get() == json.get() {
            return Ok(Self { record, unknown: None });
        }
        let known = serde_json::to_value(&record)?;
        let unknown = Unknown::between(serde_json::from_str(json.get())?, &known);
        Ok(Self { record, unknown: unknown.map(Box::new) })
    }

    pub(crate) fn to_json(&self) -> serde_json::Result<Box<RawValue>> {
        let Some(unknown) = &self.unknown else { return to_raw_value(&self.record) };
        let mut value = serde_json::to_value(&self.record)?;
        unknown.restore_in(&mut value);
        to_raw_value(&value)
    }
}
