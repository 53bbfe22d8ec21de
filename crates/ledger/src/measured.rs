//! Counts and times every bucket operation for `/metrics`, and remembers whether the bucket takes writes.

use std::fmt;
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use bytes::Bytes;
use metrics::{Counter, Histogram, counter, histogram};
use tokio::time::Instant;

use crate::bucket::{
    Bucket, BucketError, BucketErrorKind, ByteStream, Created, Download, Key, Object, ObjectRange, Stat,
    download_ranges,
};
use crate::operation_times::OperationTimes;

/// A bucket whose operations show up as `taco_bucket_operations_total` and `taco_bucket_operation_seconds`.
#[derive(Debug)]
pub struct Measured {
    bucket: Arc<dyn Bucket>,
    /// Every request looks into the bucket, so what most looks need is at hand.
    gets: Gauges,
    writes: WriteHealth,
    times: OperationTimes,
}

impl Measured {
    /// The recorder of metrics must have been installed before.
    pub fn new(bucket: Arc<dyn Bucket>) -> Self {
        Self { bucket, gets: Gauges::of("get"), writes: WriteHealth::default(), times: OperationTimes::begin() }
    }

    pub fn write_health(&self) -> WriteHealth {
        self.writes.clone()
    }

    async fn measure<T>(
        &self,
        operation: &'static str,
        work: impl Future<Output = Result<T, BucketError>>,
    ) -> Result<T, BucketError> {
        Gauges::of(operation).measure(&self.times, work).await
    }

    async fn write<T>(
        &self,
        operation: &'static str,
        work: impl Future<Output = Result<T, BucketError>>,
    ) -> Result<T, BucketError> {
        let outcome = self.measure(operation, work).await;
        self.writes.note(outcome.as_ref().err().map(|error| error.kind));
        outcome
    }
}

/// Reason why the bucket takes no writes, if it takes none: it is full, or denies them. Servers write often enough, if only
/// their beacons, to notice soon that it does again. Clones share it.
#[derive(Clone, Default, Debug)]
pub struct WriteHealth(Arc<Mutex<Option<BucketErrorKind>>>);

impl WriteHealth {
    /// As of the last write that was taken or refused.
    pub fn now(&self) -> Option<BucketErrorKind> {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn note(&self, kind: Option<BucketErrorKind>) {
        match kind {
            None | Some(BucketErrorKind::Full | BucketErrorKind::Denied) => {
                *self.0.lock().unwrap_or_else(PoisonError::into_inner) = kind;
            }
            // Neither taken nor refused for good.
            Some(BucketErrorKind::OutcomeUnknown | BucketErrorKind::Refused) => {}
        }
    }
}

/// Metrics of one kind of operation.
struct Gauges {
    operation: &'static str,
    done: Counter,
    seconds: Histogram,
}

impl fmt::Debug for Gauges {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Gauges({})", self.operation)
    }
}

impl Gauges {
    fn of(operation: &'static str) -> Self {
        Self {
            operation,
            done: count(operation, "ok"),
            seconds: histogram!("taco_bucket_operation_seconds", "operation" => operation),
        }
    }

    async fn measure<T>(
        &self,
        times: &OperationTimes,
        work: impl Future<Output = Result<T, BucketError>>,
    ) -> Result<T, BucketError> {
        let begun = Instant::now();
        let outcome = work.await;
        match &outcome {
            Ok(_) => self.done.increment(1),
            Err(error) => {
                let result = match error.kind {
                    BucketErrorKind::OutcomeUnknown => "unclear",
                    BucketErrorKind::Denied => "denied",
                    BucketErrorKind::Full => "full",
                    BucketErrorKind::Refused => "refused",
                };
                count(self.operation, result).increment(1);
            }
        }
        let took = begun.elapsed();
        self.seconds.record(took);
        times.note(took, outcome.is_ok());
        outcome
    }
}

fn count(operation: &'static str, result: &'static str) -> Counter {
    counter!("taco_bucket_operations_total", "operation" => operation, "result" => result)
}

#[async_trait]
impl Bucket for Measured {
    async fn create(&self, key: &Key, bytes: Bytes) -> Result<Created, BucketError> {
        self.write("create", self.bucket.create(key, bytes)).await
    }

    async fn put(&self, key: &Key, bytes: Bytes) -> Result<(), BucketError> {
        self.write("put", self.bucket.put(key, bytes)).await
    }

    async fn put_new(&self, key: &Key, bytes: Bytes) -> Result<(), BucketError> {
        self.write("put", self.bucket.put_new(key, bytes)).await
    }

    async fn get(&self, key: &Key) -> Result<Option<Object>, BucketError> {
        self.gets.measure(&self.times, self.bucket.get(key)).await
    }

    async fn stat(&self, key: &Key) -> Result<Option<Stat>, BucketError> {
        self.measure("stat", self.bucket.stat(key)).await
    }

    fn is_local(&self) -> bool {
        self.bucket.is_local()
    }

    fn operation_times(&self) -> Option<OperationTimes> {
        Some(self.times.clone())
    }

    async fn list(&self, folder: &Key, after: Option<&Key>) -> Result<Vec<Key>, BucketError> {
        self.measure("list", self.bucket.list(folder, after)).await
    }

    async fn list_sizes(&self, folder: &Key) -> Result<Vec<(Key, u64)>, BucketError> {
        self.measure("list", self.bucket.list_sizes(folder)).await
    }

    async fn folders(&self, folder: &Key) -> Result<Vec<String>, BucketError> {
        self.measure("list", self.bucket.folders(folder)).await
    }

    async fn delete(&self, key: &Key) -> Result<(), BucketError> {
        self.measure("delete", self.bucket.delete(key)).await
    }

    async fn upload(&self, key: &Key, body: ByteStream) -> Result<u64, BucketError> {
        self.write("upload", self.bucket.upload(key, body)).await
    }

    async fn download(&self, key: &Key, range: Option<Range<u64>>) -> Result<Option<Download>, BucketError> {
        self.measure("download", self.bucket.download(key, range)).await
    }

    async fn ranges(&self, wanted: &[ObjectRange]) -> Result<Vec<Option<Bytes>>, BucketError> {
        if self.is_local() {
            return self.measure("download", self.bucket.ranges(wanted)).await;
        }
        // Each is a request of its own.
        download_ranges(self, wanted).await
    }
}
