//! A range of old commits in one object, and what stands in their places.
//!
//! A pack is the exact bytes of commits, one after the other, under zstd. Once it is there and was read back, each of its
//! commits is overwritten by a few bytes that name it. The object of a commit is never deleted: a writer that was stalled
//! could win its number again. See `docs/decisions/0031-packed-commits.md`.

use std::collections::VecDeque;
use std::io::Read;
use std::sync::Arc;

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use tokio::sync::Mutex;

use crate::bucket::{Bucket, Key};
use crate::commit::{self, Commit, Hash};
use crate::error::Error;
use crate::layout::{self, LedgerName};

/// The number of this way to write a pack; see `migrations-in-bucket/`.
const FORMAT: u64 = 1;

/// A number that no commit has which older versions know: they say that they are too old, and not that it is damaged.
const PACKED_FORMAT: u64 = commit::FORMAT + 1;

/// Packs are written once and read rarely.
const COMPRESSION_LEVEL: i32 = 19;

/// No object that stands in the place of a commit is larger.
const MAX_PLACEHOLDER_BYTES: usize = 80;

/// Number of packs in the cache, for callers that read one commit after the other.
const CACHED_PACKS: usize = 2;

#[derive(Serialize, Deserialize, Debug)]
struct PackHeader {
    format: u64,
    ledger: String,
    /// The first commit in it, and the last.
    from: u64,
    to: u64,
    /// Size of each commit in bytes.
    sizes: Vec<u64>,
}

/// Placeholder of a commit that was packed: names the pack that has it.
#[derive(Serialize, Deserialize, Debug)]
struct PackedCommit {
    format: u64,
    from: u64,
    to: u64,
}

/// The numbers of the first and the last commit of a pack.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct PackRange {
    pub(crate) from: u64,
    pub(crate) to: u64,
}

impl PackRange {
    pub(crate) fn key(self, ledger: &LedgerName) -> Key {
        layout::pack(ledger, self.from, self.to)
    }

    pub(crate) fn contains(self, seq: u64) -> bool {
        (self.from..=self.to).contains(&seq)
    }

    /// Placeholder that is written in the place of each of its commits.
    pub(crate) fn placeholder(self) -> Bytes {
        let packed = PackedCommit { format: PACKED_FORMAT, from: self.from, to: self.to };
        serde_json::to_vec(&packed).expect("it is plain data").into()
    }

    /// The pack that has a commit, if these bytes stand in its place.
    pub(crate) fn named_by(bytes: &[u8]) -> Option<Self> {
        if bytes.len() > MAX_PLACEHOLDER_BYTES {
            return None;
        }
        let PackedCommit { format, from, to } = serde_json::from_slice(bytes).ok()?;
        (format == PACKED_FORMAT && from <= to).then_some(Self { from, to })
    }
}

/// The packs of a ledger, in order.
pub(crate) async fn list(bucket: &dyn Bucket, ledger: &LedgerName) -> Result<Vec<PackRange>, Error> {
    let keys = bucket.list(&layout::packs(ledger), None).await?;
    Ok(keys.iter().filter_map(layout::pack_range_of).map(|(from, to)| PackRange { from, to }).collect())
}

/// The commits of a pack.
pub(crate) struct Pack {
    range: PackRange,
    bytes: Bytes,
    /// End of each.
    ends: Vec<usize>,
}

impl Pack {
    /// The bytes of a commit, as they were written.
    pub(crate) fn commit(&self, seq: u64) -> Option<Bytes> {
        let place = usize::try_from(seq.checked_sub(self.range.from)?).ok()?;
        let begin = if place == 0 { 0 } else { *self.ends.get(place - 1)? };
        Some(self.bytes.slice(begin..*self.ends.get(place)?))
    }

    pub(crate) fn commits(&self) -> impl Iterator<Item = (u64, Bytes)> {
        (self.range.from..=self.range.to).filter_map(|seq| Some((seq, self.commit(seq)?)))
    }

    /// Compresses commits, the first of which has number `from`.
    pub(crate) fn encode(ledger: &LedgerName, range: PackRange, commits: &[Bytes]) -> Result<Bytes, String> {
        let sizes = commits.iter().map(|bytes| bytes.len() as u64).collect();
        let header = PackHeader { format: FORMAT, ledger: ledger.to_string(), from: range.from, to: range.to, sizes };
        let mut plain = serde_json::to_vec(&header).map_err(|error| error.to_string())?;
        plain.push(b'\n');
        commits.iter().for_each(|bytes| plain.extend_from_slice(bytes));
        let compressed = || -> std::io::Result<Vec<u8>> {
            let mut encoder = zstd::Encoder::new(Vec::new(), COMPRESSION_LEVEL)?;
            encoder.include_checksum(true)?;
            // Else it would make room for the largest.
            encoder.set_pledged_src_size(Some(plain.len() as u64))?;
            std::io::Write::write_all(&mut encoder, &plain)?;
            encoder.finish()
        };
        compressed().map(Bytes::from).map_err(|error| error.to_string())
    }

    /// Reads a pack, and proves that its commits follow each other.
    pub(crate) fn decode(ledger: &LedgerName, range: PackRange, bytes: &[u8]) -> Result<Self, Error> {
        let key = range.key(ledger);
        let lost = |why: &dyn std::fmt::Display| {
            let PackRange { from, to } = range;
            Error::corrupt(&key, format_args!("{why}; it has commits {from} to {to} of {ledger}"))
        };
        let mut plain = Vec::new();
        let read = zstd::Decoder::with_buffer(bytes).and_then(|mut decoder| decoder.read_to_end(&mut plain));
        read.map_err(|error| lost(&format_args!("it is not a whole pack: {error}")))?;
        let plain = Bytes::from(plain);
        let end_of_header = plain.iter().position(|byte| *byte == b'\n').ok_or_else(|| lost(&"it has no header"))?;
        let header: PackHeader = serde_json::from_slice(&plain[..end_of_header])
            .map_err(|error| lost(&format_args!("its header cannot be read: {error}")))?;
        if header.format > FORMAT {
            return Err(Error::NewerFormat { object: key, found: header.format, known: FORMAT });
        }
        if (header.from, header.to, header.ledger.as_str()) != (range.from, range.to, ledger.as_str()) {
            return Err(lost(&"its header names another range"));
        }
        let bytes = plain.slice(end_of_header + 1..);
        let mut end = 0_usize;
        let ends: Vec<usize> = header
            .sizes
            .iter()
            .map(|size| {
                // Sizes that are too large for that do not add up.
                end = end.saturating_add(usize::try_from(*size).unwrap_or(usize::MAX));
                end
            })
            .collect();
        if end != bytes.len() || ends.len() as u64 != range.to - range.from + 1 {
            return Err(lost(&"its sizes do not add up"));
        }
        let pack = Self { range, bytes, ends };
        let mut previous: Option<Hash> = None;
        for (seq, bytes) in pack.commits() {
            let commit = Commit::decode(&key, seq, &bytes)?;
            if previous.is_some_and(|previous| previous != commit.previous) {
                return Err(lost(&format_args!("its commit {seq} does not follow the one before it")));
            }
            previous = Some(Hash::of(&bytes));
        }
        Ok(pack)
    }

    /// Reads a pack from the bucket.
    pub(crate) async fn read(bucket: &dyn Bucket, ledger: &LedgerName, range: PackRange) -> Result<Self, Error> {
        let key = range.key(ledger);
        match bucket.get(&key).await? {
            Some(object) => Self::decode(ledger, range, &object.bytes),
            None => {
                let PackRange { from, to } = range;
                Err(Error::corrupt(&key, format_args!("it is missing; it has commits {from} to {to} of {ledger}")))
            }
        }
    }
}

/// Finds the bytes of packed commits. Whoever reads several in a row reads their pack once.
#[derive(Default)]
pub(crate) struct PackCache(Mutex<VecDeque<Arc<Pack>>>);

impl PackCache {
    /// The bytes of a commit, where `found` is what stands in its place.
    pub(crate) async fn resolve(
        &self,
        bucket: &dyn Bucket,
        ledger: &LedgerName,
        seq: u64,
        found: Bytes,
    ) -> Result<Bytes, Error> {
        let Some(range) = PackRange::named_by(&found) else { return Ok(found) };
        // Held while a pack is read, so that those who want the same one read it once.
        let mut packs = self.0.lock().await;
        let pack = match packs.iter().find(|pack| pack.range == range) {
            Some(pack) => Arc::clone(pack),
            None => {
                let pack = Arc::new(Pack::read(bucket, ledger, range).await?);
                packs.push_front(Arc::clone(&pack));
                packs.truncate(CACHED_PACKS);
                pack
            }
        };
        drop(packs);
        pack.commit(seq).ok_or_else(|| {
            let why = format!("it names {}, which does not have it", range.key(ledger));
            Error::corrupt(&layout::commit(ledger, seq), why)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn samples(name: &str) -> Vec<String> {
        let file = format!("../../migrations-in-bucket/0001-first-format/samples/bucket/{name}.jsonl");
        let file = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join(file);
        std::fs::read_to_string(file).expect("samples").lines().map(str::to_owned).collect()
    }

    /// `cargo xtask samples` adds new ones.
    #[test]
    fn what_earlier_versions_wrote_is_read() {
        for sample in samples("pack-header") {
            let header: PackHeader = serde_json::from_str(&sample).expect("a header");
            assert_eq!(serde_json::to_string(&header).expect("JSON"), sample);
        }
        for sample in samples("packed-commit") {
            let packed: PackedCommit = serde_json::from_str(&sample).expect("a packed commit");
            assert_eq!(serde_json::to_string(&packed).expect("JSON"), sample);
        }
    }

    #[test]
    fn a_placeholder_is_small_and_known_again() {
        let range = PackRange { from: 999_000_001, to: 999_001_000 };
        assert!(range.placeholder().len() <= MAX_PLACEHOLDER_BYTES);
        assert_eq!(PackRange::named_by(&range.placeholder()), Some(range));
        assert_eq!(PackRange::named_by(br#"{"format":1,"from":1,"to":2}"#), None);
        let error = Commit::decode(&layout::format(), 7, &range.placeholder()).expect_err("it is no commit");
        assert!(matches!(error, Error::NewerFormat { .. }), "{error}");
    }
}
