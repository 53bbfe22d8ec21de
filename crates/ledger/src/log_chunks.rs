//! Logs that grow: pieces named by the byte at which they begin, written create-if-absent.
//!
//! A piece is written only where the piece before it ends, and never changes. So the pieces of an epoch form one
//! chain without gaps whatever happens: a repeated request finds its own bytes, of two writers one is first, and an
//! agent that was given up writes under its own dead epoch. A reader asks for the object at the offset that it has
//! reached. Only a server that does not know a long log yet asks for a listing, to skip most of the way: what is
//! listed exists, and what the listing lacks is found by walking on.

mod digest;
mod index;

use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::{Buf, Bytes};
use futures::{StreamExt, TryStreamExt, stream};
use tokio::time::{sleep, timeout};

use crate::bucket::{Bucket, BucketError, BucketErrorKind, Created, Key};
use crate::clock::SharedRng;
use crate::layout::{self, LedgerName};
use crate::retry::{Backoff, OPERATION_TIMEOUT, no_answer};
use digest::{Digests, VerifiedBlocks};
pub use digest::{LogBlock, LogDigest};
use index::Index;

/// Maximum number of pieces that are asked for one after the other; for more there is a listing.
const MAX_STEPS_BEFORE_LISTING: usize = 4;

/// Number of pieces of a log that are fetched at a time, where it is known in advance where they begin.
const FETCH_CONCURRENCY: usize = 8;

/// Error of appending bytes to a log.
#[derive(Clone, thiserror::Error, Debug)]
pub enum AppendError {
    /// The log holds other bytes at this place.
    #[error("the log holds other bytes here already; it goes on at {next}")]
    Conflict { next: u64 },
    /// Bytes before these are missing.
    #[error("bytes are missing before these; the log goes on at {next}")]
    Gap { next: u64 },
    #[error(transparent)]
    Bucket(#[from] BucketError),
}

/// All logs of a bucket. What it remembers only saves requests, so any number of servers may have one.
#[derive(Debug)]
pub struct LogChunks {
    bucket: Arc<dyn Bucket>,
    rng: SharedRng,
    index: Mutex<Index>,
    digests: Digests,
    verified: VerifiedBlocks,
}

/// One log of one attempt at a phase.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct Log {
    ledger: LedgerName,
    id: String,
    epoch: u64,
}

impl Log {
    fn piece(&self, offset: u64) -> Key {
        layout::log_chunk(&self.ledger, &self.id, self.epoch, offset)
    }
}

/// Position of an offset in a log.
enum Place {
    /// In a piece, perhaps at its beginning.
    Inside { start: u64, end: u64 },
    /// The end of a piece. Whether the next one is there is not known.
    Border,
    /// Behind the end of the log.
    Beyond { end: u64 },
}

impl LogChunks {
    pub fn new(bucket: Arc<dyn Bucket>, rng: SharedRng) -> Self {
        let (digests, verified) = (Digests::default(), VerifiedBlocks::default());
        Self { bucket, rng, index: Mutex::default(), digests, verified }
    }

    /// Writes `bytes` at `offset`, which must be where the log ends, and returns where it ends then. May be repeated:
    /// bytes that are there already are compared, and only the rest is written. Each call that writes makes one
    /// object, so callers gather a second's worth of bytes or so.
    pub async fn append(
        &self,
        ledger: &LedgerName,
        log: &str,
        epoch: u64,
        offset: u64,
        bytes: Bytes,
    ) -> Result<u64, AppendError> {
        let log = Log { ledger: ledger.clone(), id: log.to_owned(), epoch };
        let mut trouble = None;
        match timeout(OPERATION_TIMEOUT, self.try_append(&log, offset, bytes, &mut trouble)).await {
            Ok(outcome) => outcome,
            Err(_) => {
                let error = trouble.unwrap_or_else(|| no_answer("create", &log.piece(offset), OPERATION_TIMEOUT));
                Err(AppendError::Bucket(error))
            }
        }
    }

    /// Tries until it is clear what happened, and notes the last trouble met.
    async fn try_append(
        &self,
        log: &Log,
        offset: u64,
        mut bytes: Bytes,
        trouble: &mut Option<BucketError>,
    ) -> Result<u64, AppendError> {
        let mut backoff = Backoff::new(&self.rng);
        let mut at = offset;
        loop {
            match self.walk_to(log, at).await? {
                Place::Beyond { end } => return Err(AppendError::Gap { next: end }),
                _ if bytes.is_empty() => return Ok(at),
                Place::Inside { start, end } => {
                    let wanted = at..end.min(at + bytes.len() as u64);
                    let there = self.fetch(log, start, Some(end), wanted).await?.unwrap_or_default();
                    if !bytes.starts_with(&there) {
                        return Err(AppendError::Conflict { next: self.walk_to_end(log).await? });
                    }
                    at += there.len() as u64;
                    bytes.advance(there.len());
                }
                Place::Border => {
                    let key = log.piece(at);
                    match self.bucket.create(&key, bytes.clone()).await {
                        Ok(Created::Now) => {
                            self.index().learn(log, at, bytes.len());
                            self.digests.note(log, at, &bytes);
                            return Ok(at + bytes.len() as u64);
                        }
                        Ok(Created::AlreadyThere) => {
                            let why = "taken, yet nothing is there";
                            *trouble = Some(BucketError::new("create", &key, BucketErrorKind::OutcomeUnknown, why));
                        }
                        Err(error) if error.is_outcome_unknown() => *trouble = Some(error),
                        Err(error) => return Err(error.into()),
                    }
                    // Ours with a lost answer, a rival's, or none: only what is there tells.
                    if self.get(log, at).await?.is_none() {
                        sleep(backoff.next_delay()).await;
                    }
                }
            }
        }
    }

    /// The bytes from `offset` on, at most `limit`. Empty only where the log does not reach that far (yet).
    pub async fn read(
        &self,
        ledger: &LedgerName,
        log: &str,
        epoch: u64,
        offset: u64,
        limit: usize,
    ) -> Result<Vec<u8>, BucketError> {
        let log = Log { ledger: ledger.clone(), id: log.to_owned(), epoch };
        let stop = offset.saturating_add(limit as u64);
        let mut at = offset;
        let mut found = Vec::new();
        let mut steps = 0;
        while at < stop {
            let first = match self.walk_to(&log, at).await? {
                Place::Inside { start, end } => (start, Some(end)),
                Place::Border => (at, None),
                Place::Beyond { .. } => break,
            };
            if steps == MAX_STEPS_BEFORE_LISTING {
                self.learn_from_listing(&log, at).await?;
            }
            steps += 1;
            let known = self.index().pieces_from(&log, first, stop);
            let fetched: Vec<Option<Bytes>> = stream::iter(known.clone())
                .map(|(start, end)| self.fetch(&log, start, end, at.max(start)..stop))
                .buffered(FETCH_CONCURRENCY)
                .try_collect()
                .await?;
            for ((start, _), bytes) in known.into_iter().zip(fetched) {
                let Some(bytes) = bytes else { return Ok(found) };
                // A piece in between was not known when these were asked for.
                if start > at {
                    break;
                }
                found.extend_from_slice(&bytes);
                at += bytes.len() as u64;
            }
        }
        Ok(found)
    }

    /// End of the log: an agent that comes back goes on from there.
    pub async fn end(&self, ledger: &LedgerName, log: &str, epoch: u64) -> Result<u64, BucketError> {
        self.walk_to_end(&Log { ledger: ledger.clone(), id: log.to_owned(), epoch }).await
    }

    async fn walk_to_end(&self, log: &Log) -> Result<u64, BucketError> {
        match self.walk_to(log, u64::MAX).await? {
            Place::Beyond { end } => Ok(end),
            Place::Inside { .. } | Place::Border => Ok(u64::MAX),
        }
    }

    /// Walks forward from the last border known, and remembers the way.
    async fn walk_to(&self, log: &Log, offset: u64) -> Result<Place, BucketError> {
        let mut reached = 0;
        let mut steps = 0;
        loop {
            let (start, end) = self.index().at_or_before(log, offset).max((reached, None));
            match end {
                Some(end) if offset < end => return Ok(Place::Inside { start, end }),
                _ if start == offset => return Ok(Place::Border),
                _ => {}
            }
            if steps == MAX_STEPS_BEFORE_LISTING {
                self.learn_from_listing(log, start).await?;
            } else {
                let Some(bytes) = self.get(log, start).await? else { return Ok(Place::Beyond { end: start }) };
                let end = start + bytes.len() as u64;
                if offset < end {
                    return Ok(Place::Inside { start, end });
                }
                // The index may forget at any moment; this walk does not.
                reached = end;
            }
            steps += 1;
        }
    }

    /// A whole piece.
    async fn get(&self, log: &Log, start: u64) -> Result<Option<Bytes>, BucketError> {
        let key = log.piece(start);
        let Some(object) = self.bucket.get(&key).await? else { return Ok(None) };
        if object.bytes.is_empty() {
            return Err(BucketError::new("get", &key, BucketErrorKind::Refused, "a piece of a log cannot be empty"));
        }
        self.index().learn(log, start, object.bytes.len());
        Ok(Some(object.bytes))
    }

    /// Part of the wanted bytes that a piece holds; `None` where there is no piece.
    async fn fetch(
        &self,
        log: &Log,
        start: u64,
        end: Option<u64>,
        wanted: Range<u64>,
    ) -> Result<Option<Bytes>, BucketError> {
        let inside = |end: u64| (wanted.start - start)..(wanted.end.min(end) - start);
        let Some(end) = end else {
            let whole = self.get(log, start).await?;
            return Ok(whole.map(|bytes| {
                let inside = inside(start + bytes.len() as u64);
                bytes.slice(inside.start as usize..inside.end as usize)
            }));
        };
        let key = log.piece(start);
        let Some(download) = self.bucket.download(&key, Some(inside(end))).await? else {
            return Err(BucketError::new("download", &key, BucketErrorKind::Refused, "this piece of a log is gone"));
        };
        let parts: Vec<Bytes> = download.body.try_collect().await?;
        let bytes: Bytes = parts.concat().into();
        if bytes.len() as u64 != inside(end).end - inside(end).start {
            return Err(BucketError::new(
                "download",
                &key,
                BucketErrorKind::Refused,
                "this piece of a log has changed",
            ));
        }
        Ok(Some(bytes))
    }

    async fn learn_from_listing(&self, log: &Log, from: u64) -> Result<(), BucketError> {
        let folder = layout::log_chunks(&log.ledger, &log.id, log.epoch);
        let keys = self.bucket.list(&folder, Some(&log.piece(from))).await?;
        self.index().add_boundaries(log, keys.iter().filter_map(layout::offset_of));
        Ok(())
    }

    fn index(&self) -> MutexGuard<'_, Index> {
        self.index.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests;
