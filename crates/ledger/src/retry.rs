//! Second tries, for everything that may safely be tried twice.

use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use tokio::time::{Instant, sleep, timeout_at};

use crate::bucket::{Bucket, BucketError, ByteStream, Created, Download, Key, Object, Trouble};
use crate::clock::Dice;

/// After this long a caller is told "unavailable" instead of being kept waiting.
pub const PATIENCE: Duration = Duration::from_secs(10);

/// Grows the pause between two tries and spreads it, so that many servers do not come back at the same moment.
#[derive(Debug)]
pub(crate) struct Backoff {
    dice: Dice,
    next: Duration,
}

impl Backoff {
    const FIRST: Duration = Duration::from_millis(50);
    const LONGEST: Duration = Duration::from_secs(2);

    pub(crate) fn new(dice: &Dice) -> Self {
        Self { dice: dice.clone(), next: Self::FIRST }
    }

    pub(crate) fn pause(&mut self) -> Duration {
        let pause = self.next.mul_f64(0.5 + self.dice.fraction() / 2.0);
        self.next = (self.next * 2).min(Self::LONGEST);
        pause
    }
}

/// Repeats reads, overwrites, deletes and listings whose outcome is unclear, within [`PATIENCE`]. A conditional
/// `create` passes straight through: only who knows what was written can tell a lost answer from a lost race.
#[derive(Debug)]
pub struct Retrying {
    bucket: Arc<dyn Bucket>,
    dice: Dice,
}

impl Retrying {
    pub fn new(bucket: Arc<dyn Bucket>, dice: Dice) -> Self {
        Self { bucket, dice }
    }

    async fn within_patience<T, Attempt>(
        &self,
        operation: &'static str,
        key: &Key,
        attempt: impl Fn() -> Attempt,
    ) -> Result<T, BucketError>
    where
        Attempt: Future<Output = Result<T, BucketError>>,
    {
        let deadline = Instant::now() + PATIENCE;
        let mut backoff = Backoff::new(&self.dice);
        let mut last = None;
        while let Ok(outcome) = timeout_at(deadline, attempt()).await {
            match outcome {
                Err(error) if error.is_unclear() => {
                    metrics::counter!("taco_bucket_retries_total", "operation" => operation).increment(1);
                    last = Some(error);
                }
                settled => return settled,
            }
            let pause = backoff.pause();
            if Instant::now() + pause >= deadline {
                break;
            }
            sleep(pause).await;
        }
        Err(last.unwrap_or_else(|| BucketError::new(operation, key, Trouble::Unclear, "no answer within 10 s")))
    }
}

#[async_trait]
impl Bucket for Retrying {
    async fn create(&self, key: &Key, bytes: Bytes) -> Result<Created, BucketError> {
        self.bucket.create(key, bytes).await
    }

    async fn put(&self, key: &Key, bytes: Bytes) -> Result<(), BucketError> {
        self.within_patience("put", key, || self.bucket.put(key, bytes.clone())).await
    }

    async fn put_new(&self, key: &Key, bytes: Bytes) -> Result<(), BucketError> {
        self.within_patience("put", key, || self.bucket.put_new(key, bytes.clone())).await
    }

    async fn get(&self, key: &Key) -> Result<Option<Object>, BucketError> {
        self.within_patience("get", key, || self.bucket.get(key)).await
    }

    async fn size(&self, key: &Key) -> Result<Option<u64>, BucketError> {
        self.within_patience("size", key, || self.bucket.size(key)).await
    }

    fn is_local(&self) -> bool {
        self.bucket.is_local()
    }

    async fn list(&self, folder: &Key, after: Option<&Key>) -> Result<Vec<Key>, BucketError> {
        self.within_patience("list", folder, || self.bucket.list(folder, after)).await
    }

    async fn folders(&self, folder: &Key) -> Result<Vec<String>, BucketError> {
        self.within_patience("list", folder, || self.bucket.folders(folder)).await
    }

    async fn delete(&self, key: &Key) -> Result<(), BucketError> {
        self.within_patience("delete", key, || self.bucket.delete(key)).await
    }

    async fn upload(&self, key: &Key, body: ByteStream) -> Result<u64, BucketError> {
        // The body flows past once, so whoever has it must begin again.
        self.bucket.upload(key, body).await
    }

    async fn download(&self, key: &Key, range: Option<Range<u64>>) -> Result<Option<Download>, BucketError> {
        self.within_patience("download", key, || self.bucket.download(key, range.clone())).await
    }
}
