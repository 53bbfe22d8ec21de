//! Delta of a ledger: its changes between two commits, so that a snapshot need not repeat what it did not touch.
//!
//! Lines of JSON under zstd, as in a snapshot: a header, then one line for each record that was deleted, then one for
//! each that was put. It continues the snapshot, or the delta, that ends where it begins. Like a snapshot it is a shortcut,
//! never the truth. See `docs/decisions/0030-delta-snapshots.md`.

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use taco_tables::{Change, RecordKey, State};

use crate::bucket::Key;
use crate::commit::Hash;
use crate::error::Error;
use crate::head_object::CommitRef;
use crate::layout::LedgerName;
use crate::snapshot::{Line, LineRef, Lines, compress, write_line};

/// The number of this way to write a delta; see `migrations-in-bucket/`.
pub(crate) const FORMAT: u64 = 1;

#[derive(Serialize, Deserialize, Debug)]
pub(crate) struct DeltaHeader {
    pub(crate) format: u64,
    pub(crate) ledger: String,
    /// The last commit before it, and that commit's hash.
    pub(crate) from: u64,
    pub(crate) from_hash: Hash,
    /// The last commit that it contains, and that commit's hash.
    pub(crate) seq: u64,
    pub(crate) hash: Hash,
    /// Number of lines of deleted records that follow, and then of records.
    pub(crate) deletes: u64,
    pub(crate) records: u64,
}

/// Compresses what leads from one state to a later one.
pub(crate) fn encode<S: State>(
    ledger: &LedgerName,
    (from, before): (CommitRef, &S),
    (to, after): (CommitRef, &S),
) -> Result<Bytes, String> {
    let (mut deletes, mut records) = (0, 0);
    let count = &mut |_: &str, _: &str, value: Option<&RawValue>| match value {
        Some(_) => records += 1,
        None => deletes += 1,
    };
    after.for_each_change(before, count).map_err(|error| error.to_string())?;
    let header = DeltaHeader {
        format: FORMAT,
        ledger: ledger.to_string(),
        from: from.seq,
        from_hash: from.hash,
        seq: to.seq,
        hash: to.hash,
        deletes,
        records,
    };
    compress(|encoder| {
        let mut outcome = write_line(encoder, &header);
        after.for_each_change(before, &mut |kind, id, value| {
            if outcome.is_ok() {
                outcome = match value {
                    Some(value) => write_line(encoder, &LineRef { kind, id, value }),
                    None => write_line(encoder, &RecordKey { kind: kind.to_owned(), id: id.to_owned() }),
                };
            }
        })?;
        outcome
    })
}

/// Reads a delta and hands each change on.
pub(crate) fn decode(key: &Key, bytes: &[u8], mut visit: impl FnMut(Change)) -> Result<DeltaHeader, Error> {
    let mut lines = Lines::of(key, "delta", bytes)?;
    let header: DeltaHeader = lines.next()?.ok_or_else(|| lines.broken("it is empty"))?;
    if header.format > FORMAT {
        return Err(Error::NewerFormat { object: key.clone(), found: header.format, known: FORMAT });
    }
    let missing = |lines: &Lines<'_>, number: u64, of: u64| lines.broken(format_args!("{number} of {of} changes"));
    let all = header.deletes + header.records;
    for number in 0..header.deletes {
        visit(Change::Delete(lines.next()?.ok_or_else(|| missing(&lines, number, all))?));
    }
    for number in 0..header.records {
        let Line { kind, id, value } = lines.next()?.ok_or_else(|| missing(&lines, header.deletes + number, all))?;
        visit(Change::Put(RecordKey { kind, id }, value));
    }
    match lines.next::<serde::de::IgnoredAny>()? {
        None => Ok(header),
        Some(_) => Err(lines.broken(format_args!("more than {all} changes"))),
    }
}

/// Applies the delta that leads from `from` to commit `to` of ledger `name`. The state is of no use after an error.
pub(crate) fn apply<S: State>(
    key: &Key,
    name: &LedgerName,
    from: CommitRef,
    to: u64,
    bytes: &[u8],
    state: &mut S,
) -> Result<CommitRef, Error> {
    let header = decode(key, bytes, |change| state.apply(&change))?;
    if header.from != from.seq || header.seq != to || header.ledger != name.as_str() {
        let DeltaHeader { ledger, from, seq, .. } = header;
        return Err(Error::corrupt(key, format_args!("it says that it is of {ledger}, from commit {from} to {seq}")));
    }
    if header.from_hash != from.hash {
        let why = "it continues another commit than the snapshot before it was taken after";
        return Err(Error::corrupt(key, why));
    }
    Ok(CommitRef { seq: to, hash: header.hash })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `cargo xtask samples` adds new ones.
    #[test]
    fn headers_of_earlier_versions_are_read() {
        let file = "../../migrations-in-bucket/0001-first-format/samples/bucket/delta-header.jsonl";
        let samples = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join(file);
        let samples = std::fs::read_to_string(samples).expect("samples");
        for sample in samples.lines() {
            let header: DeltaHeader = serde_json::from_str(sample).expect("a header");
            assert_eq!(serde_json::to_string(&header).expect("JSON"), sample);
        }
    }
}
