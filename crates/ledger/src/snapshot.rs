//! A ledger's whole state after one commit, so that a server need not read the log from its beginning.
//!
//! Lines of JSON under zstd: a header, then one line for each record. A snapshot is a shortcut, never the truth: one
//! that cannot be read is reported and passed over.

use std::io::{BufRead, BufReader, Write};

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use taco_tables::{Change, RecordKey, State};

use crate::bucket::Key;
use crate::commit::Hash;
use crate::error::Error;
use crate::layout::LedgerName;

/// The number of this way to write a snapshot; see `migrations-in-bucket/`.
pub(crate) const FORMAT: u64 = 1;

/// Fast, and within a few percent of the smallest.
const COMPRESSION_LEVEL: i32 = 3;

#[derive(Serialize, Deserialize, Debug)]
pub(crate) struct Header {
    pub(crate) format: u64,
    pub(crate) ledger: String,
    /// The last commit that it contains, and that commit's hash.
    pub(crate) seq: u64,
    pub(crate) hash: Hash,
    /// How many lines follow.
    pub(crate) records: u64,
}

#[derive(Deserialize)]
struct Line {
    kind: String,
    id: String,
    value: Box<RawValue>,
}

#[derive(Serialize)]
struct LineRef<'a> {
    kind: &'a str,
    id: &'a str,
    value: &'a RawValue,
}

pub(crate) fn encode<S: State>(ledger: &LedgerName, seq: u64, hash: Hash, state: &S) -> Result<Bytes, String> {
    let mut records = 0;
    state.for_each_json(&mut |_, _, _| records += 1).map_err(|error| error.to_string())?;
    let header = Header { format: FORMAT, ledger: ledger.to_string(), seq, hash, records };
    let write = || -> std::io::Result<Vec<u8>> {
        let mut encoder = zstd::Encoder::new(Vec::new(), COMPRESSION_LEVEL)?;
        encoder.include_checksum(true)?;
        let mut outcome = write_line(&mut encoder, &header);
        state.for_each_json(&mut |kind, id, value| {
            if outcome.is_ok() {
                outcome = write_line(&mut encoder, &LineRef { kind, id, value });
            }
        })?;
        outcome?;
        encoder.finish()
    };
    write().map(Bytes::from).map_err(|error| error.to_string())
}

fn write_line(writer: &mut impl Write, line: &impl Serialize) -> std::io::Result<()> {
    serde_json::to_writer(&mut *writer, line)?;
    writer.write_all(b"\n")
}

/// Reads a snapshot and hands each record on.
pub(crate) fn decode(
    key: &Key,
    bytes: &[u8],
    mut visit: impl FnMut(RecordKey, Box<RawValue>),
) -> Result<Header, Error> {
    let broken = |why: &dyn std::fmt::Display| Error::corrupt(key, format_args!("it is not a whole snapshot: {why}"));
    let decoder = zstd::Decoder::with_buffer(bytes).map_err(|error| broken(&error))?;
    let mut lines = BufReader::with_capacity(1 << 16, decoder);
    let mut line = String::new();
    let mut next = |line: &mut String| -> Result<bool, Error> {
        line.clear();
        lines.read_line(line).map(|count| count > 0).map_err(|error| broken(&error))
    };
    next(&mut line)?;
    let header: Header = serde_json::from_str(&line).map_err(|error| broken(&error))?;
    if header.format > FORMAT {
        return Err(Error::NewerFormat { object: key.clone(), found: header.format, known: FORMAT });
    }
    let mut records = 0;
    while next(&mut line)? {
        let Line { kind, id, value } = serde_json::from_str(&line).map_err(|error| broken(&error))?;
        visit(RecordKey { kind, id }, value);
        records += 1;
    }
    if records != header.records {
        return Err(broken(&format_args!("{records} of {} records", header.records)));
    }
    Ok(header)
}

/// Reads a snapshot of ledger `name` after commit `seq` into a state.
pub(crate) fn load<S: State>(key: &Key, name: &LedgerName, seq: u64, bytes: &[u8]) -> Result<(Header, S), Error> {
    let mut state = S::default();
    let header = decode(key, bytes, |record, value| state.apply(&Change::Put(record, value)))?;
    if header.seq != seq || header.ledger != name.as_str() {
        let why = format!("it says that it is of {} after commit {}", header.ledger, header.seq);
        return Err(Error::corrupt(key, why));
    }
    Ok((header, state))
}
