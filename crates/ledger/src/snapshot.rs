//! A ledger's whole state after one commit, so that a server need not read the log from its beginning.
//!
//! Lines of JSON under zstd: a header, then one line for each record. A snapshot is a shortcut, never the truth: one
//! that cannot be read is reported and passed over.

use std::fmt::Display;
use std::io::{BufRead, BufReader, Read, Write};

use bytes::Bytes;
use serde::de::DeserializeOwned;
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
    /// Number of lines that follow.
    pub(crate) records: u64,
}

#[derive(Deserialize)]
pub(crate) struct Line {
    pub(crate) kind: String,
    pub(crate) id: String,
    pub(crate) value: Box<RawValue>,
}

#[derive(Serialize)]
pub(crate) struct LineRef<'a> {
    pub(crate) kind: &'a str,
    pub(crate) id: &'a str,
    pub(crate) value: &'a RawValue,
}

/// Compresses a whole state. Only what is compressed is held in memory, and one record at a time.
pub(crate) fn encode<S: State>(ledger: &LedgerName, seq: u64, hash: Hash, state: &S) -> Result<Bytes, String> {
    let records = state.record_count() as u64;
    let header = Header { format: FORMAT, ledger: ledger.to_string(), seq, hash, records };
    compress(|encoder| {
        let mut outcome = write_line(encoder, &header);
        state.for_each_json(&mut |kind, id, value| {
            if outcome.is_ok() {
                outcome = write_line(encoder, &LineRef { kind, id, value });
            }
        })?;
        outcome
    })
}

pub(crate) type Encoder = zstd::Encoder<'static, Vec<u8>>;

/// Bytes that `write` writes, under zstd and with its checksum.
pub(crate) fn compress(write: impl FnOnce(&mut Encoder) -> std::io::Result<()>) -> Result<Bytes, String> {
    let compressed = || -> std::io::Result<Vec<u8>> {
        let mut encoder = zstd::Encoder::new(Vec::new(), COMPRESSION_LEVEL)?;
        encoder.include_checksum(true)?;
        write(&mut encoder)?;
        encoder.finish()
    };
    compressed().map(Bytes::from).map_err(|error| error.to_string())
}

pub(crate) fn write_line(writer: &mut impl Write, line: &impl Serialize) -> std::io::Result<()> {
    serde_json::to_writer(&mut *writer, line)?;
    writer.write_all(b"\n")
}

/// The lines of a snapshot or a delta.
pub(crate) struct Lines<'a> {
    key: &'a Key,
    noun: &'static str,
    reader: BufReader<Box<dyn Read + 'a>>,
    line: String,
}

impl<'a> Lines<'a> {
    pub(crate) fn of(key: &'a Key, noun: &'static str, bytes: &'a [u8]) -> Result<Self, Error> {
        let lines = |decoder: Box<dyn Read + 'a>| Self {
            key,
            noun,
            reader: BufReader::with_capacity(1 << 16, decoder),
            line: String::new(),
        };
        match zstd::Decoder::with_buffer(bytes) {
            Ok(decoder) => Ok(lines(Box::new(decoder))),
            Err(error) => Err(lines(Box::new(std::io::empty())).broken(error)),
        }
    }

    /// The next line, or `None` at the end.
    pub(crate) fn next<T: DeserializeOwned>(&mut self) -> Result<Option<T>, Error> {
        self.line.clear();
        match self.reader.read_line(&mut self.line) {
            Ok(0) => Ok(None),
            Ok(_) => serde_json::from_str(&self.line).map(Some).map_err(|error| self.broken(error)),
            Err(error) => Err(self.broken(error)),
        }
    }

    pub(crate) fn broken(&self, why: impl Display) -> Error {
        Error::corrupt(self.key, format_args!("it is not a whole {}: {why}", self.noun))
    }
}

/// Reads a snapshot and hands each record on.
pub(crate) fn decode(
    key: &Key,
    bytes: &[u8],
    mut visit: impl FnMut(RecordKey, Box<RawValue>),
) -> Result<Header, Error> {
    let mut lines = Lines::of(key, "snapshot", bytes)?;
    let header: Header = lines.next()?.ok_or_else(|| lines.broken("it is empty"))?;
    if header.format > FORMAT {
        return Err(Error::NewerFormat { object: key.clone(), found: header.format, known: FORMAT });
    }
    let mut records = 0;
    while let Some(Line { kind, id, value }) = lines.next()? {
        visit(RecordKey { kind, id }, value);
        records += 1;
    }
    if records != header.records {
        return Err(lines.broken(format_args!("{records} of {} records", header.records)));
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
