//! Second tries, for everything that may safely be tried twice.

use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use tokio::time::{Instant, sleep, timeout_at};

use crate::bucket::{
    Bucket, BucketError, BucketErrorKind, ByteStream, Created, Download, Key, Object, ObjectRange, Stat,
    download_ranges,
};
use crate::clock::SharedRng;
use crate::operation_times::OperationTimes;

/// Time within which a caller is told that the bucket does not answer. The constants below, and what the
/// ledger makes of them, add up to less.
pub const CALLER_TIMEOUT: Duration = Duration::from_secs(10);

/// Timeout for an operation, with all its retries.
pub const OPERATION_TIMEOUT: Duration = Duration::from_secs(6);

/// The same when another operation was given up just before: a request that needs several does not wait for each.
const OUTAGE_OPERATION_TIMEOUT: Duration = Duration::from_secs(2);

/// Time after an operation was given up in which others are given up sooner. Then one gets the whole time again, so that
/// a bucket that is merely slow is not taken for a silent one for ever.
const OUTAGE_DURATION: Duration = Duration::from_secs(5);

/// Error of an operation that was given up without any answer.
pub(crate) fn no_answer(operation: &'static str, key: &Key, within: Duration) -> BucketError {
    BucketError::new(
        operation,
        key,
        BucketErrorKind::OutcomeUnknown,
        format!("no answer within {} s", within.as_secs()),
    )
}

/// Grows the pause between two tries and spreads it, so that many servers do not come back at the same moment.
#[derive(Debug)]
pub(crate) struct Backoff {
    rng: SharedRng,
    next: Duration,
}

impl Backoff {
    const FIRST_DELAY: Duration = Duration::from_millis(50);
    const MAX_DELAY: Duration = Duration::from_secs(2);

    pub(crate) fn new(rng: &SharedRng) -> Self {
        Self { rng: rng.clone(), next: Self::FIRST_DELAY }
    }

    pub(crate) fn next_delay(&mut self) -> Duration {
        let pause = self.next.mul_f64(0.5 + self.rng.fraction() / 2.0);
        self.next = (self.next * 2).min(Self::MAX_DELAY);
        pause
    }
}

/// Repeats reads, overwrites, deletes and listings whose outcome is unclear, within [`OPERATION_TIMEOUT`], or sooner in an outage. A conditional
/// `create` passes straight through: only who knows what was written can tell a lost answer from a lost race.
#[derive(Debug)]
pub struct Retrying {
    bucket: Arc<dyn Bucket>,
    rng: SharedRng,
    /// When an operation was last given up after all of [`OPERATION_TIMEOUT`].
    given_up: Mutex<Option<Instant>>,
}

impl Retrying {
    pub fn new(bucket: Arc<dyn Bucket>, rng: SharedRng) -> Self {
        Self { bucket, rng, given_up: Mutex::default() }
    }

    fn current_timeout(&self) -> Duration {
        let given_up = *self.given_up.lock().unwrap_or_else(PoisonError::into_inner);
        if given_up.is_some_and(|at| at.elapsed() < OUTAGE_DURATION) {
            OUTAGE_OPERATION_TIMEOUT
        } else {
            OPERATION_TIMEOUT
        }
    }

    async fn with_retries<T, Attempt>(
        &self,
        operation: &'static str,
        key: &Key,
        attempt: impl Fn() -> Attempt,
    ) -> Result<T, BucketError>
    where
        Attempt: Future<Output = Result<T, BucketError>>,
    {
        let current_timeout = self.current_timeout();
        let deadline = Instant::now() + current_timeout;
        let mut backoff = Backoff::new(&self.rng);
        let mut last = None;
        while let Ok(outcome) = timeout_at(deadline, attempt()).await {
            match outcome {
                Err(error) if error.is_outcome_unknown() => {
                    metrics::counter!("taco_bucket_retries_total", "operation" => operation).increment(1);
                    last = Some(error);
                }
                settled => {
                    *self.given_up.lock().unwrap_or_else(PoisonError::into_inner) = None;
                    return settled;
                }
            }
            let pause = backoff.next_delay();
            if Instant::now() + pause >= deadline {
                break;
            }
            sleep(pause).await;
        }
        if current_timeout == OPERATION_TIMEOUT {
            *self.given_up.lock().unwrap_or_else(PoisonError::into_inner) = Some(Instant::now());
        }
        Err(last.unwrap_or_else(|| no_answer(operation, key, current_timeout)))
    }
}

#[async_trait]
impl Bucket for Retrying {
    async fn create(&self, key: &Key, bytes: Bytes) -> Result<Created, BucketError> {
        self.bucket.create(key, bytes).await
    }

    async fn put(&self, key: &Key, bytes: Bytes) -> Result<(), BucketError> {
        self.with_retries("put", key, || self.bucket.put(key, bytes.clone())).await
    }

    async fn put_new(&self, key: &Key, bytes: Bytes) -> Result<(), BucketError> {
        self.with_retries("put", key, || self.bucket.put_new(key, bytes.clone())).await
    }

    async fn get(&self, key: &Key) -> Result<Option<Object>, BucketError> {
        self.with_retries("get", key, || self.bucket.get(key)).await
    }

    async fn stat(&self, key: &Key) -> Result<Option<Stat>, BucketError> {
        self.with_retries("stat", key, || self.bucket.stat(key)).await
    }

    fn is_local(&self) -> bool {
        self.bucket.is_local()
    }

    fn operation_times(&self) -> Option<OperationTimes> {
        self.bucket.operation_times()
    }

    async fn list(&self, folder: &Key, after: Option<&Key>) -> Result<Vec<Key>, BucketError> {
        self.with_retries("list", folder, || self.bucket.list(folder, after)).await
    }

    async fn list_sizes(&self, folder: &Key) -> Result<Vec<(Key, u64)>, BucketError> {
        // As long as it takes: only `taco doctor` and `taco audit verify` ask, and a large listing is many requests.
        self.bucket.list_sizes(folder).await
    }

    async fn folders(&self, folder: &Key) -> Result<Vec<String>, BucketError> {
        self.with_retries("list", folder, || self.bucket.folders(folder)).await
    }

    async fn delete(&self, key: &Key) -> Result<(), BucketError> {
        self.with_retries("delete", key, || self.bucket.delete(key)).await
    }

    async fn upload(&self, key: &Key, body: ByteStream) -> Result<u64, BucketError> {
        // The body flows past once, so whoever has it must begin again.
        self.bucket.upload(key, body).await
    }

    async fn download(&self, key: &Key, range: Option<Range<u64>>) -> Result<Option<Download>, BucketError> {
        self.with_retries("download", key, || self.bucket.download(key, range.clone())).await
    }

    async fn ranges(&self, wanted: &[ObjectRange]) -> Result<Vec<Option<Bytes>>, BucketError> {
        match wanted.first() {
            Some((key, _)) if self.is_local() => {
                self.with_retries("download", key, || self.bucket.ranges(wanted)).await
            }
            _ => download_ranges(self, wanted).await,
        }
    }
}
