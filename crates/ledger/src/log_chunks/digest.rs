//! Digests of logs that have ended: who reads one later gets the same bytes, or hears that they were altered.
//!
//! The pieces themselves stay as they are, so that servers of any version read them. A server that takes the pieces of a
//! log notes the digest of each, and the commit that ends the phase keeps them, some pieces together where there are
//! many. What was taken by another server, or before a restart, is read once more for that.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Mutex, PoisonError};

use bytes::Bytes;
use futures::{StreamExt, TryStreamExt, stream};
use sha2::{Digest, Sha256};

use super::{FETCH_CONCURRENCY, Log, LogChunks};
use crate::bucket::{BucketError, BucketErrorKind};
use crate::layout::LedgerName;

/// Maximum number of blocks of a log: a record of a run holds them all.
const MAX_BLOCKS: usize = 32;

/// Maximum number of growing logs in the cache; what was evicted is read again.
const MAX_CACHED_LOGS: usize = 4096;

/// Maximum size of verified bytes in the cache: a reader asks for one part of a block after the other.
const MAX_CACHED_BYTES: usize = 8 * 1024 * 1024;

/// Digest of a log when it ended.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct LogDigest {
    pub blocks: Vec<LogBlock>,
}

/// Some pieces of a log that follow each other.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LogBlock {
    /// Offset in the log at which they end.
    pub end: u64,
    /// 128 bits of the SHA-256 of the SHA-256 of each, in hexadecimal.
    pub digest: String,
}

impl LogDigest {
    /// Bytes of the whole log.
    pub fn size(&self) -> u64 {
        self.blocks.last().map_or(0, |block| block.end)
    }

    /// Some pieces together where there are many.
    fn of(pieces: &[Piece]) -> Self {
        let together = pieces.len().div_ceil(MAX_BLOCKS).max(1);
        let block = |pieces: &[Piece]| LogBlock {
            end: pieces.last().map_or(0, |piece| piece.end),
            digest: digest_of(pieces.iter().map(|piece| piece.sha256)),
        };
        Self { blocks: pieces.chunks(together).map(block).collect() }
    }
}

fn digest_of(pieces: impl Iterator<Item = [u8; 32]>) -> String {
    let mut digest = Sha256::new();
    pieces.for_each(|piece| digest.update(piece));
    hex::encode(&digest.finalize()[..16])
}

/// One piece of a log.
#[derive(Clone, Copy)]
struct Piece {
    end: u64,
    sha256: [u8; 32],
}

/// The pieces of logs that grow through this server, from their first on.
#[derive(Default, Debug)]
pub(super) struct Digests(Mutex<BTreeMap<Log, Vec<Piece>>>);

impl std::fmt::Debug for Piece {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "to {}", self.end)
    }
}

impl Digests {
    pub(super) fn note(&self, log: &Log, start: u64, bytes: &[u8]) {
        let mut logs = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if logs.len() >= MAX_CACHED_LOGS && !logs.contains_key(log) {
            logs.clear();
        }
        let pieces = logs.entry(log.clone()).or_default();
        if pieces.last().map_or(0, |piece| piece.end) == start {
            pieces.push(Piece { end: start + bytes.len() as u64, sha256: Sha256::digest(bytes).into() });
        } else {
            // Another server took what is in between.
            logs.remove(log);
        }
    }

    fn up_to(&self, log: &Log, end: u64) -> Option<LogDigest> {
        let logs = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let pieces = logs.get(log)?;
        (pieces.last().map_or(0, |piece| piece.end) == end).then(|| LogDigest::of(pieces))
    }
}

/// Blocks that were verified lately. Every block is known by where it ends.
#[derive(Default, Debug)]
pub(super) struct VerifiedBlocks(Mutex<VecDeque<(Log, u64, Bytes)>>);

impl VerifiedBlocks {
    fn find(&self, log: &Log, end: u64) -> Option<Bytes> {
        let blocks = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let found = blocks.iter().find(|(of, ends, _)| of == log && *ends == end);
        found.map(|(_, _, bytes)| bytes.clone())
    }

    fn keep(&self, log: &Log, end: u64, bytes: Bytes) {
        let mut blocks = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        blocks.push_back((log.clone(), end, bytes));
        while blocks.len() > 1 && blocks.iter().map(|(_, _, bytes)| bytes.len()).sum::<usize>() > MAX_CACHED_BYTES {
            blocks.pop_front();
        }
    }
}

impl LogChunks {
    /// Digest of a log, for the commit that ends it. Nothing is appended to it afterwards.
    pub async fn digest(&self, ledger: &LedgerName, log: &str, epoch: u64) -> Result<LogDigest, BucketError> {
        let log = Log { ledger: ledger.clone(), id: log.to_owned(), epoch };
        let end = self.walk_to_end(&log).await?;
        if let Some(known) = self.digests.up_to(&log, end) {
            return Ok(known);
        }
        let pieces = self.pieces(&log, 0, end).await?;
        Ok(LogDigest::of(&pieces.iter().map(|(end, bytes)| piece(*end, bytes)).collect::<Vec<_>>()))
    }

    /// The bytes of a log that has ended, from `offset` on, at most `limit`. An error names what was altered or is gone.
    pub async fn read_verified(
        &self,
        ledger: &LedgerName,
        log: &str,
        epoch: u64,
        offset: u64,
        limit: usize,
        digest: &LogDigest,
    ) -> Result<Vec<u8>, BucketError> {
        let log = Log { ledger: ledger.clone(), id: log.to_owned(), epoch };
        let stop = offset.saturating_add(limit as u64).min(digest.size());
        let mut found = Vec::new();
        let mut start = 0;
        for block in &digest.blocks {
            if start < stop && offset < block.end {
                let bytes = self.block(&log, start, block).await?;
                let wanted = offset.max(start)..stop.min(block.end);
                found.extend_from_slice(&bytes[(wanted.start - start) as usize..(wanted.end - start) as usize]);
            }
            start = block.end;
        }
        Ok(found)
    }

    /// Reads all of a log that has ended, and says what is wrong with it: each object, or each group of objects.
    pub async fn verify(
        &self,
        ledger: &LedgerName,
        log: &str,
        epoch: u64,
        digest: &LogDigest,
    ) -> Result<Vec<BucketError>, BucketError> {
        let log = Log { ledger: ledger.clone(), id: log.to_owned(), epoch };
        let mut found = Vec::new();
        let mut start = 0;
        for block in &digest.blocks {
            match self.block(&log, start, block).await {
                Ok(_) => {}
                Err(error) if error.kind == BucketErrorKind::Refused => found.push(error),
                Err(error) => return Err(error),
            }
            start = block.end;
        }
        Ok(found)
    }

    /// One block, proven.
    async fn block(&self, log: &Log, start: u64, block: &LogBlock) -> Result<Bytes, BucketError> {
        if let Some(bytes) = self.verified.find(log, block.end) {
            return Ok(bytes);
        }
        let pieces = self.pieces(log, start, block.end).await?;
        let digest = digest_of(pieces.iter().map(|(end, bytes)| piece(*end, bytes).sha256));
        if digest != block.digest {
            let key = log.piece(start);
            let why = match pieces.len() {
                1 => "this piece of a log was altered".to_owned(),
                many => format!("this piece of a log, or one of the {} after it, was altered", many - 1),
            };
            return Err(BucketError::new("verify", &key, BucketErrorKind::Refused, why));
        }
        let bytes = match &pieces[..] {
            [(_, only)] => only.clone(),
            several => several.iter().map(|(_, bytes)| &bytes[..]).collect::<Vec<_>>().concat().into(),
        };
        self.verified.keep(log, block.end, bytes.clone());
        Ok(bytes)
    }

    /// All pieces from one border to another, each with its end.
    async fn pieces(&self, log: &Log, start: u64, end: u64) -> Result<Vec<(u64, Bytes)>, BucketError> {
        let damaged = |at: u64, why: &str| BucketError::new("verify", &log.piece(at), BucketErrorKind::Refused, why);
        if start == end {
            return Ok(Vec::new());
        }
        // What is listed is read together; what the listing lacks, one after the other.
        self.learn_from_listing(log, start).await?;
        let known = self.index().boundaries(log, start, end);
        let read = |at: u64| async move { Ok::<_, BucketError>((at, self.get(log, at).await?)) };
        let mut fetched: BTreeMap<u64, Option<Bytes>> =
            stream::iter(known).map(read).buffered(FETCH_CONCURRENCY).try_collect().await?;
        let (mut at, mut before) = (start, start);
        let mut pieces = Vec::new();
        while at < end {
            let found = match fetched.remove(&at) {
                Some(found) => found,
                None => self.get(log, at).await?,
            };
            let Some(bytes) = found else {
                return Err(match pieces.is_empty() {
                    true => damaged(at, "this piece of a log is missing"),
                    // Only the lengths tell where pieces begin.
                    false => {
                        let why = format!("this piece of a log was altered, or {} is missing", log.piece(at));
                        damaged(before, &why)
                    }
                });
            };
            before = at;
            at += bytes.len() as u64;
            pieces.push((at, bytes));
        }
        if at > end { Err(damaged(before, "this piece of a log was altered: it is too long")) } else { Ok(pieces) }
    }
}

fn piece(end: u64, bytes: &[u8]) -> Piece {
    Piece { end, sha256: Sha256::digest(bytes).into() }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::bucket::Bucket;
    use crate::clock::SharedRng;
    use crate::layout;
    use crate::object_bucket::ObjectBucket;

    struct Written {
        bucket: Arc<dyn Bucket>,
        digest: LogDigest,
        text: Vec<u8>,
    }

    fn reader(bucket: &Arc<dyn Bucket>) -> LogChunks {
        LogChunks::new(Arc::clone(bucket), SharedRng::from_seed(1))
    }

    async fn written(pieces: usize) -> Written {
        let bucket: Arc<dyn Bucket> = Arc::new(ObjectBucket::in_memory());
        let writer = reader(&bucket);
        let mut text = Vec::new();
        for number in 0..pieces {
            let line = format!("line {number}\n");
            let offset = text.len() as u64;
            text.extend_from_slice(line.as_bytes());
            writer.append(&LedgerName::site(), "plan-1", 1, offset, line.into()).await.expect("appended");
        }
        let digest = writer.digest(&LedgerName::site(), "plan-1", 1).await.expect("a digest");
        Written { bucket, digest, text }
    }

    impl Written {
        async fn read(&self, offset: u64, limit: usize) -> Result<Vec<u8>, BucketError> {
            let site = LedgerName::site();
            reader(&self.bucket).read_verified(&site, "plan-1", 1, offset, limit, &self.digest).await
        }

        async fn keys(&self) -> Vec<crate::Key> {
            self.bucket.list(&layout::all_logs(&LedgerName::site()), None).await.expect("a listing")
        }
    }

    #[tokio::test]
    async fn whoever_computes_it_a_log_has_one_digest_and_no_more_blocks_than_fit() {
        for pieces in [0, 1, 5, MAX_BLOCKS, MAX_BLOCKS + 1, 10 * MAX_BLOCKS] {
            let written = written(pieces).await;
            let other = reader(&written.bucket).digest(&LedgerName::site(), "plan-1", 1).await.expect("a digest");
            assert_eq!(other, written.digest, "{pieces} pieces");
            assert!(written.digest.blocks.len() <= MAX_BLOCKS);
            assert_eq!(written.digest.size(), written.text.len() as u64);
            for (offset, limit) in [(0, usize::MAX), (3, 10), (written.text.len() as u64, 5)] {
                let from = (offset as usize).min(written.text.len());
                let to = from.saturating_add(limit).min(written.text.len());
                assert_eq!(written.read(offset, limit).await.expect("a read"), written.text[from..to]);
            }
        }
    }

    #[tokio::test]
    async fn a_piece_that_was_altered_or_deleted_is_named_and_not_served() {
        for pieces in [1, 5, 3 * MAX_BLOCKS] {
            let written = written(pieces).await;
            for key in written.keys().await {
                let sound = written.bucket.get(&key).await.expect("read").expect("a piece").bytes;
                let mut altered = sound.to_vec();
                altered[0] ^= 1;
                let longer = [&sound[..], b"x"].concat();
                for damaged in [Some(altered), Some(longer), Some(sound[1..].to_vec()), None] {
                    match damaged {
                        Some(bytes) => written.bucket.put(&key, bytes.into()).await.expect("written"),
                        None => written.bucket.delete(&key).await.expect("deleted"),
                    }
                    let error = written.read(0, usize::MAX).await.expect_err("damage");
                    assert_eq!(error.kind, BucketErrorKind::Refused, "{error}");
                    // Where a block has several pieces, its first may stand for all.
                    assert!(pieces > MAX_BLOCKS || error.key == key, "{error} instead of {key}");
                }
                written.bucket.put(&key, sound).await.expect("restored");
            }
            assert_eq!(written.read(0, usize::MAX).await.expect("sound again"), written.text);
        }
    }
}
