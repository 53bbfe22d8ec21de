//! Logs that grow: pieces named by the byte at which they begin, written create-if-absent.
//!
//! A piece is written only where the piece before it ends, and never changes. So the pieces of an epoch form one
//! chain without gaps whatever happens: a repeated request finds its own bytes, of two writers one is first, and an
//! agent that was given up writes under its own dead epoch. A reader asks for the object at the offset that it has
//! reached. Only a server that does not know a long log yet asks for a listing, to skip most of the way: what is
//! listed exists, and what the listing lacks is found by walking on.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::{Buf, Bytes};
use futures::{StreamExt, TryStreamExt, stream};
use tokio::time::{sleep, timeout};

use crate::bucket::{Bucket, BucketError, Created, Key, Trouble};
use crate::clock::Dice;
use crate::layout::{self, LedgerName};
use crate::retry::{Backoff, PATIENCE};

/// A walk along more pieces than this asks for a listing instead of one piece after the other.
const STEPS_BEFORE_LISTING: usize = 4;

/// How many pieces of a log are fetched at a time, where it is known in advance where they begin.
const FETCHED_AT_ONCE: usize = 8;

/// How many pieces the index remembers over all logs: a few megabytes.
const PIECES_REMEMBERED: usize = 50_000;

/// Why bytes could not be appended to a log.
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
    dice: Dice,
    index: Mutex<Index>,
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

/// Where an offset lies in a log.
enum Place {
    /// In a piece, perhaps at its beginning.
    Inside { start: u64, end: u64 },
    /// Where a piece ends. Whether the next one is there is not known.
    Border,
    /// Behind the end of the log.
    Beyond { end: u64 },
}

impl LogChunks {
    pub fn new(bucket: Arc<dyn Bucket>, dice: Dice) -> Self {
        Self { bucket, dice, index: Mutex::default() }
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
        match timeout(PATIENCE, self.try_append(&log, offset, bytes, &mut trouble)).await {
            Ok(outcome) => outcome,
            Err(_) => Err(AppendError::Bucket(trouble.unwrap_or_else(|| {
                BucketError::new("create", &log.piece(offset), Trouble::Unclear, "no answer within 10 s")
            }))),
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
        let mut backoff = Backoff::new(&self.dice);
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
                            return Ok(at + bytes.len() as u64);
                        }
                        Ok(Created::AlreadyThere) => {
                            let why = "taken, yet nothing is there";
                            *trouble = Some(BucketError::new("create", &key, Trouble::Unclear, why));
                        }
                        Err(error) if error.is_unclear() => *trouble = Some(error),
                        Err(error) => return Err(error.into()),
                    }
                    // Ours with a lost answer, a rival's, or none: only what is there tells.
                    if self.get(log, at).await?.is_none() {
                        sleep(backoff.pause()).await;
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
            if steps == STEPS_BEFORE_LISTING {
                self.learn_from_listing(&log, at).await?;
            }
            steps += 1;
            let known = self.index().pieces_from(&log, first, stop);
            let fetched: Vec<Option<Bytes>> = stream::iter(known.clone())
                .map(|(start, end)| self.fetch(&log, start, end, at.max(start)..stop))
                .buffered(FETCHED_AT_ONCE)
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

    /// Where the log ends: an agent that comes back goes on from there.
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
            if steps == STEPS_BEFORE_LISTING {
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
            return Err(BucketError::new("get", &key, Trouble::Refused, "a piece of a log cannot be empty"));
        }
        self.index().learn(log, start, object.bytes.len());
        Ok(Some(object.bytes))
    }

    /// What a piece holds of the bytes that are wanted; `None` where there is no piece.
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
            return Err(BucketError::new("download", &key, Trouble::Refused, "this piece of a log is gone"));
        };
        let parts: Vec<Bytes> = download.body.try_collect().await?;
        let bytes: Bytes = parts.concat().into();
        if bytes.len() as u64 != inside(end).end - inside(end).start {
            return Err(BucketError::new("download", &key, Trouble::Refused, "this piece of a log has changed"));
        }
        Ok(Some(bytes))
    }

    async fn learn_from_listing(&self, log: &Log, from: u64) -> Result<(), BucketError> {
        let folder = layout::log_chunks(&log.ledger, &log.id, log.epoch);
        let keys = self.bucket.list(&folder, Some(&log.piece(from))).await?;
        self.index().learn_borders(log, keys.iter().filter_map(layout::offset_of));
        Ok(())
    }

    fn index(&self) -> MutexGuard<'_, Index> {
        self.index.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What is known about where pieces begin and end. It forgets the logs that nobody asked for lately.
#[derive(Default, Debug)]
struct Index {
    logs: BTreeMap<Log, Known>,
    pieces: usize,
    uses: u64,
}

#[derive(Debug)]
struct Known {
    /// Every border known, with the end of the piece that begins there if that is known too.
    borders: BTreeMap<u64, Option<u64>>,
    last_use: u64,
}

impl Index {
    /// The last border known at or before `offset`. A log begins at 0, so there always is one.
    fn at_or_before(&mut self, log: &Log, offset: u64) -> (u64, Option<u64>) {
        self.uses += 1;
        let Some(known) = self.logs.get_mut(log) else { return (0, None) };
        known.last_use = self.uses;
        known.borders.range(..=offset).next_back().map_or((0, None), |(start, end)| (*start, *end))
    }

    /// `first`, and the next few pieces known that begin before `stop`.
    fn pieces_from(&self, log: &Log, first: (u64, Option<u64>), stop: u64) -> Vec<(u64, Option<u64>)> {
        let mut pieces = vec![first];
        if let Some(known) = self.logs.get(log) {
            let after = known.borders.range(first.0..).skip_while(|(start, _)| **start == first.0);
            let wanted = after.take_while(|(start, _)| **start < stop);
            pieces.extend(wanted.map(|(start, end)| (*start, *end)).take(FETCHED_AT_ONCE - 1));
        }
        pieces
    }

    fn learn(&mut self, log: &Log, start: u64, length: usize) {
        let end = start + length as u64;
        self.insert(log, start, Some(end));
        self.insert(log, end, None);
        self.forget_some_but(log);
    }

    fn learn_borders(&mut self, log: &Log, borders: impl Iterator<Item = u64>) {
        for border in borders {
            self.insert(log, border, None);
        }
        self.forget_some_but(log);
    }

    fn insert(&mut self, log: &Log, start: u64, end: Option<u64>) {
        if !self.logs.contains_key(log) {
            self.logs.insert(log.clone(), Known { borders: BTreeMap::new(), last_use: self.uses });
        }
        let known = self.logs.get_mut(log).expect("inserted where it was absent");
        let before = known.borders.len();
        let border = known.borders.entry(start).or_default();
        *border = border.or(end);
        self.pieces += known.borders.len() - before;
    }

    fn forget_some_but(&mut self, log_in_use: &Log) {
        if self.pieces <= PIECES_REMEMBERED {
            return;
        }
        let mut by_last_use: Vec<(u64, Log)> = self
            .logs
            .iter()
            .filter(|(log, _)| *log != log_in_use)
            .map(|(log, known)| (known.last_use, log.clone()))
            .collect();
        by_last_use.sort_unstable();
        for (_, log) in by_last_use {
            if self.pieces <= PIECES_REMEMBERED / 2 {
                break;
            }
            let forgotten = self.logs.remove(&log).map_or(0, |known| known.borders.len());
            self.pieces -= forgotten;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use async_trait::async_trait;
    use tokio::time::Instant;

    use super::*;
    use crate::bucket::{ByteStream, Download, Object};
    use crate::object_bucket::ObjectBucket;
    use crate::retry::Retrying;

    const LOG: &str = "plan-1";

    /// A bucket in memory that fails as often as it is told to.
    #[derive(Debug)]
    struct FaultyBucket {
        bucket: ObjectBucket,
        dice: Dice,
        /// How often an operation fails before or after it was done.
        faults: f64,
        /// Listings show nothing.
        blind: bool,
        requests: AtomicUsize,
    }

    impl FaultyBucket {
        fn new(seed: u64, faults: f64) -> Self {
            let dice = Dice::from_seed(seed);
            Self { bucket: ObjectBucket::in_memory(), dice, faults, blind: false, requests: AtomicUsize::new(0) }
        }

        fn count(&self) {
            self.requests.fetch_add(1, Ordering::Relaxed);
        }

        fn fails(&self) -> bool {
            self.dice.fraction() < self.faults
        }

        fn fail<T>(&self, operation: &'static str, key: &Key) -> Result<T, BucketError> {
            Err(BucketError::new(operation, key, Trouble::Unclear, "503"))
        }
    }

    #[async_trait]
    impl Bucket for FaultyBucket {
        async fn create(&self, key: &Key, bytes: Bytes) -> Result<Created, BucketError> {
            self.count();
            if self.fails() {
                // Some stores answer so to a racing create, though nobody wins.
                return if self.fails() { Ok(Created::AlreadyThere) } else { self.fail("create", key) };
            }
            let created = self.bucket.create(key, bytes).await?;
            if self.fails() {
                return if self.fails() { Ok(Created::AlreadyThere) } else { self.fail("create", key) };
            }
            Ok(created)
        }

        async fn put(&self, key: &Key, bytes: Bytes) -> Result<(), BucketError> {
            self.bucket.put(key, bytes).await
        }

        async fn get(&self, key: &Key) -> Result<Option<Object>, BucketError> {
            self.count();
            if self.fails() { self.fail("get", key) } else { self.bucket.get(key).await }
        }

        async fn list(&self, folder: &Key, after: Option<&Key>) -> Result<Vec<Key>, BucketError> {
            self.count();
            if self.fails() {
                return self.fail("list", folder);
            }
            let mut keys = self.bucket.list(folder, after).await?;
            // The newest are not shown yet.
            keys.truncate(if self.blind { 0 } else { keys.len().saturating_sub(2) });
            Ok(keys)
        }

        async fn folders(&self, folder: &Key) -> Result<Vec<String>, BucketError> {
            self.bucket.folders(folder).await
        }

        async fn delete(&self, key: &Key) -> Result<(), BucketError> {
            self.bucket.delete(key).await
        }

        async fn upload(&self, key: &Key, body: ByteStream) -> Result<u64, BucketError> {
            self.bucket.upload(key, body).await
        }

        async fn download(&self, key: &Key, range: Option<Range<u64>>) -> Result<Option<Download>, BucketError> {
            self.count();
            if self.fails() { self.fail("download", key) } else { self.bucket.download(key, range).await }
        }
    }

    fn server(bucket: &Arc<FaultyBucket>, seed: u64) -> LogChunks {
        let dice = Dice::from_seed(seed);
        LogChunks::new(Arc::new(Retrying::new(Arc::clone(bucket) as _, dice.clone())), dice)
    }

    fn reliable() -> Arc<FaultyBucket> {
        Arc::new(FaultyBucket::new(0, 0.0))
    }

    async fn append(chunks: &LogChunks, offset: u64, text: &str) -> Result<u64, AppendError> {
        chunks.append(&LedgerName::site(), LOG, 1, offset, Bytes::copy_from_slice(text.as_bytes())).await
    }

    async fn read(chunks: &LogChunks, offset: u64, limit: usize) -> String {
        let bytes = chunks.read(&LedgerName::site(), LOG, 1, offset, limit).await.expect("works");
        String::from_utf8(bytes).expect("text")
    }

    fn below(dice: &Dice, limit: usize) -> usize {
        (dice.fraction() * limit as f64) as usize
    }

    #[tokio::test(start_paused = true)]
    async fn a_log_is_read_from_any_offset() {
        let chunks = server(&reliable(), 1);
        assert_eq!(read(&chunks, 0, 100).await, "", "nobody wrote yet");
        assert_eq!(append(&chunks, 0, "one ").await.expect("works"), 4);
        assert_eq!(append(&chunks, 4, "two ").await.expect("works"), 8);
        assert_eq!(append(&chunks, 8, "three").await.expect("works"), 13);
        assert_eq!(read(&chunks, 0, 100).await, "one two three");
        assert_eq!(read(&chunks, 5, 4).await, "wo t");
        assert_eq!(read(&chunks, 13, 4).await, "");
        assert_eq!(read(&chunks, 1_000, 4).await, "");
        assert_eq!(read(&chunks, u64::MAX, 4).await, "");
        assert_eq!(chunks.end(&LedgerName::site(), LOG, 1).await.expect("works"), 13);
    }

    #[tokio::test(start_paused = true)]
    async fn a_repeated_request_succeeds_quietly() {
        let bucket = reliable();
        let (one, other) = (server(&bucket, 1), server(&bucket, 2));
        append(&one, 0, "one ").await.expect("works");
        append(&one, 4, "two ").await.expect("works");
        for chunks in [&one, &other] {
            assert_eq!(append(chunks, 0, "one ").await.expect("the same"), 4);
            assert_eq!(append(chunks, 0, "on").await.expect("the beginning of it"), 2);
            assert_eq!(append(chunks, 2, "e t").await.expect("across a border"), 5);
            assert_eq!(append(chunks, 6, "o ").await.expect("the end of it"), 8);
            assert_eq!(append(chunks, 8, "").await.expect("nothing"), 8);
        }
        assert_eq!(append(&other, 6, "o three").await.expect("overlaps"), 13);
        assert_eq!(read(&one, 0, 100).await, "one two three");
    }

    #[tokio::test(start_paused = true)]
    async fn other_bytes_and_missing_bytes_are_refused_with_the_place_to_go_on_from() {
        let bucket = reliable();
        let (one, other) = (server(&bucket, 1), server(&bucket, 2));
        append(&one, 0, "one ").await.expect("works");
        append(&one, 4, "two ").await.expect("works");
        for chunks in [&one, &other] {
            for (offset, text) in [(0, "ONE "), (4, "tw0 "), (3, " tvo"), (4, "two-three")] {
                let refused = append(chunks, offset, text).await;
                assert!(matches!(refused, Err(AppendError::Conflict { next: 8 })), "{offset} {text}: {refused:?}");
            }
            for offset in [9, 100, u64::MAX] {
                let refused = append(chunks, offset, "three").await;
                assert!(matches!(refused, Err(AppendError::Gap { next: 8 })), "{offset}: {refused:?}");
                let refused = append(chunks, offset, "").await;
                assert!(matches!(refused, Err(AppendError::Gap { next: 8 })), "{offset}: {refused:?}");
            }
        }
        assert_eq!(read(&other, 0, 100).await, "one two ");
    }

    #[tokio::test(start_paused = true)]
    async fn an_agent_that_was_given_up_writes_where_nobody_looks() {
        let chunks = server(&reliable(), 1);
        let site = LedgerName::site();
        chunks.append(&site, LOG, 1, 0, Bytes::from("old ")).await.expect("works");
        chunks.append(&site, LOG, 2, 0, Bytes::from("new")).await.expect("works");
        assert_eq!(chunks.append(&site, LOG, 1, 4, Bytes::from("zombie")).await.expect("harmless"), 10);
        assert_eq!(chunks.read(&site, LOG, 2, 0, 100).await.expect("works"), b"new");
    }

    #[tokio::test(start_paused = true)]
    async fn a_steady_writer_costs_one_request_for_each_piece_and_a_follower_too() {
        let bucket = reliable();
        let (one, other) = (server(&bucket, 1), server(&bucket, 2));
        let mut at = append(&one, 0, "begin ").await.expect("works");
        let spent = || bucket.requests.swap(0, Ordering::Relaxed);
        read(&other, 0, 100).await;
        spent();
        for _ in 0..10 {
            assert_eq!(read(&other, at, 100).await, "");
            assert_eq!(spent(), 1, "to see that nothing is new");
            let next = append(&one, at, "more ").await.expect("works");
            assert_eq!(spent(), 1, "to write");
            assert_eq!(read(&other, at, 5).await, "more ");
            assert_eq!(spent(), 1, "to read");
            at = next;
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_server_that_does_not_know_a_long_log_need_not_walk_all_of_it() {
        let bucket = reliable();
        let writer = server(&bucket, 1);
        let mut whole = String::new();
        for number in 0..500 {
            let line = format!("line {number}\n");
            append(&writer, whole.len() as u64, &line).await.expect("works");
            whole.push_str(&line);
        }
        let spent = || bucket.requests.swap(0, Ordering::Relaxed);
        spent();
        let late = server(&bucket, 2);
        assert_eq!(read(&late, whole.len() as u64, 100).await, "");
        let requests = spent();
        assert!(requests <= 10, "{requests} requests");

        let another = server(&bucket, 3);
        append(&another, whole.len() as u64, "end").await.expect("works");
        let requests = spent();
        assert!(requests <= 12, "{requests} requests");
        assert_eq!(read(&server(&bucket, 4), 0, usize::MAX).await, whole + "end");
    }

    #[tokio::test(start_paused = true)]
    async fn whatever_fails_and_whoever_writes_the_log_is_what_the_writer_sent() {
        for seed in 0..60 {
            let dice = Dice::from_seed(seed);
            let bucket = Arc::new(FaultyBucket { blind: seed % 3 == 0, ..FaultyBucket::new(seed, 0.15) });
            let servers = [server(&bucket, seed), server(&bucket, seed + 1_000)];
            let length = 50 + below(&dice, 300);
            let whole: String = (0..length).map(|_| char::from(b'a' + below(&dice, 26) as u8)).collect();

            // The writer talks to any server, repeats itself, and goes on where it is told to.
            let mut at = 0;
            let mut requests = 0;
            while at < length {
                requests += 1;
                assert!(requests < 1_000, "seed {seed}: stuck at {at}");
                let back = below(&dice, 10).min(at);
                let from = if dice.fraction() < 0.2 { at - back } else { at };
                let to = (from + 1 + below(&dice, 20)).min(length);
                match append(&servers[below(&dice, 2)], from as u64, &whole[from..to]).await {
                    Ok(next) => {
                        assert_eq!(next, to as u64, "seed {seed}");
                        at = at.max(to);
                    }
                    Err(AppendError::Bucket(error)) => assert!(error.is_unclear(), "seed {seed}: {error}"),
                    Err(error) => panic!("seed {seed}: {error}"),
                }
            }
            for round in 0..40 {
                let fresh = server(&bucket, seed + 2_000);
                let reader = if round % 4 == 0 { &fresh } else { &servers[round % 2] };
                let from = below(&dice, length + 5);
                let limit = below(&dice, length);
                let expected = &whole[from.min(length)..(from + limit).min(length).max(from.min(length))];
                assert_eq!(read(reader, from as u64, limit).await, expected, "seed {seed}: {limit} from {from}");
            }
        }
    }

    #[tokio::test(start_paused = true)]
    async fn two_rivals_leave_one_chain_without_gaps() {
        for seed in 0..40 {
            let bucket = Arc::new(FaultyBucket::new(seed, 0.1));
            let rival = |letter: &'static str, seed: u64| {
                let chunks = server(&bucket, seed);
                async move {
                    let dice = Dice::from_seed(seed);
                    let mut written = 0;
                    let mut at = 0;
                    let mut requests = 0;
                    while at < 100 {
                        requests += 1;
                        assert!(requests < 1_000, "seed {seed}: stuck at {at}");
                        let text = letter.repeat(1 + below(&dice, 7));
                        match append(&chunks, at, &text).await {
                            Ok(next) => {
                                written += next - at;
                                at = next;
                            }
                            Err(AppendError::Conflict { next } | AppendError::Gap { next }) => at = next,
                            Err(AppendError::Bucket(error)) => assert!(error.is_unclear(), "{error}"),
                        }
                    }
                    written
                }
            };
            let (a, b) = futures::join!(rival("a", seed), rival("b", seed + 500));
            let chunks = server(&bucket, seed + 900);
            let text = read(&chunks, 0, 1_000).await;
            let end = chunks.end(&LedgerName::site(), LOG, 1).await.expect("works");
            assert_eq!(text.len() as u64, end, "seed {seed}");
            // A conflict after a lost answer can leave bytes that their writer does not count.
            assert!(a + b <= end, "seed {seed}: {a} + {b} acknowledged, {end} there");
            assert!(text.bytes().all(|byte| byte == b'a' || byte == b'b'));
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_bucket_that_stays_away_is_reported_in_time() {
        let bucket = Arc::new(FaultyBucket::new(1, 1.0));
        let chunks = server(&bucket, 1);
        let begun = Instant::now();
        let Err(AppendError::Bucket(error)) = append(&chunks, 0, "one").await else { panic!("nothing works") };
        assert!(error.is_unclear());
        assert!(begun.elapsed() <= PATIENCE + PATIENCE / 100, "{:?}", begun.elapsed());
        assert!(error.to_string().contains("blobs/site/logs/plan-1/0000000001/00000000000000000000"), "{error}");
    }

    #[tokio::test(start_paused = true)]
    async fn a_piece_that_vanished_or_is_empty_is_named() {
        let bucket = reliable();
        let chunks = server(&bucket, 1);
        append(&chunks, 0, "one ").await.expect("works");
        append(&chunks, 4, "two ").await.expect("works");
        let key = layout::log_chunk(&LedgerName::site(), LOG, 1, 4);
        bucket.delete(&key).await.expect("works");
        let error = chunks.read(&LedgerName::site(), LOG, 1, 0, 100).await.expect_err("gone");
        assert!(error.to_string().contains(key.as_str()), "{error}");
        bucket.put(&key, Bytes::new()).await.expect("works");
        let error = server(&bucket, 2).read(&LedgerName::site(), LOG, 1, 0, 100).await.expect_err("empty");
        assert!(error.to_string().contains(key.as_str()), "{error}");
    }

    #[test]
    fn the_index_forgets_what_was_not_used_lately() {
        let mut index = Index::default();
        let log = |number: u64| Log { ledger: LedgerName::site(), id: "plan-1".to_owned(), epoch: number };
        for number in 0..10 {
            for piece in 0..PIECES_REMEMBERED as u64 / 8 {
                index.learn(&log(number), piece * 10, 10);
            }
            // The first one stays in use.
            index.at_or_before(&log(0), 0);
        }
        assert!(index.pieces <= PIECES_REMEMBERED, "{}", index.pieces);
        assert_eq!(index.pieces, index.logs.values().map(|known| known.borders.len()).sum::<usize>());
        assert_eq!(index.at_or_before(&log(0), 15), (10, Some(20)));
        assert_eq!(index.at_or_before(&log(9), 15), (10, Some(20)));
        assert_eq!(index.at_or_before(&log(1), 15), (0, None));
    }
}
