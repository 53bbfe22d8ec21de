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
    rng: SharedRng,
    /// Rate at which an operation fails before or after it was done.
    faults: f64,
    /// Listings show nothing.
    blind: bool,
    requests: AtomicUsize,
}

impl FaultyBucket {
    fn new(seed: u64, faults: f64) -> Self {
        let rng = SharedRng::from_seed(seed);
        Self { bucket: ObjectBucket::in_memory(), rng, faults, blind: false, requests: AtomicUsize::new(0) }
    }

    fn count(&self) {
        self.requests.fetch_add(1, Ordering::Relaxed);
    }

    fn fails(&self) -> bool {
        self.rng.fraction() < self.faults
    }

    fn fail<T>(&self, operation: &'static str, key: &Key) -> Result<T, BucketError> {
        Err(BucketError::new(operation, key, BucketErrorKind::OutcomeUnknown, "503"))
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
    let rng = SharedRng::from_seed(seed);
    LogChunks::new(Arc::new(Retrying::new(Arc::clone(bucket) as _, rng.clone())), rng)
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

fn below(rng: &SharedRng, limit: usize) -> usize {
    (rng.fraction() * limit as f64) as usize
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
        let rng = SharedRng::from_seed(seed);
        let bucket = Arc::new(FaultyBucket { blind: seed % 3 == 0, ..FaultyBucket::new(seed, 0.15) });
        let servers = [server(&bucket, seed), server(&bucket, seed + 1_000)];
        let length = 50 + below(&rng, 300);
        let whole: String = (0..length).map(|_| char::from(b'a' + below(&rng, 26) as u8)).collect();

        // The writer talks to any server, repeats itself, and goes on where it is told to.
        let mut at = 0;
        let mut requests = 0;
        while at < length {
            requests += 1;
            assert!(requests < 1_000, "seed {seed}: stuck at {at}");
            let back = below(&rng, 10).min(at);
            let from = if rng.fraction() < 0.2 { at - back } else { at };
            let to = (from + 1 + below(&rng, 20)).min(length);
            match append(&servers[below(&rng, 2)], from as u64, &whole[from..to]).await {
                Ok(next) => {
                    assert_eq!(next, to as u64, "seed {seed}");
                    at = at.max(to);
                }
                Err(AppendError::Bucket(error)) => assert!(error.is_outcome_unknown(), "seed {seed}: {error}"),
                Err(error) => panic!("seed {seed}: {error}"),
            }
        }
        for round in 0..40 {
            let fresh = server(&bucket, seed + 2_000);
            let reader = if round % 4 == 0 { &fresh } else { &servers[round % 2] };
            let from = below(&rng, length + 5);
            let limit = below(&rng, length);
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
                let rng = SharedRng::from_seed(seed);
                let mut written = 0;
                let mut at = 0;
                let mut requests = 0;
                while at < 100 {
                    requests += 1;
                    assert!(requests < 1_000, "seed {seed}: stuck at {at}");
                    let text = letter.repeat(1 + below(&rng, 7));
                    match append(&chunks, at, &text).await {
                        Ok(next) => {
                            written += next - at;
                            at = next;
                        }
                        Err(AppendError::Conflict { next } | AppendError::Gap { next }) => at = next,
                        Err(AppendError::Bucket(error)) => assert!(error.is_outcome_unknown(), "{error}"),
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
    assert!(error.is_outcome_unknown());
    assert!(begun.elapsed() <= OPERATION_TIMEOUT + OPERATION_TIMEOUT / 100, "{:?}", begun.elapsed());
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
