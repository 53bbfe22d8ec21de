//! A bucket in memory that counts what is asked of it.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use async_trait::async_trait;
use bytes::Bytes;
use taco_ledger::bucket::{ByteStream, Created, Download, Object};
use taco_ledger::{Bucket, BucketError, Key, ObjectBucket};

#[derive(Debug)]
pub struct CountedBucket {
    bucket: ObjectBucket,
    operations: AtomicUsize,
}

impl CountedBucket {
    pub fn in_memory() -> Arc<Self> {
        Arc::new(Self { bucket: ObjectBucket::in_memory(), operations: AtomicUsize::new(0) })
    }

    /// Number of operations up to now.
    pub fn operations(&self) -> usize {
        self.operations.load(Ordering::Relaxed)
    }

    fn counted(&self) -> &ObjectBucket {
        self.operations.fetch_add(1, Ordering::Relaxed);
        &self.bucket
    }
}

#[async_trait]
impl Bucket for CountedBucket {
    async fn create(&self, key: &Key, bytes: Bytes) -> Result<Created, BucketError> {
        self.counted().create(key, bytes).await
    }

    async fn put(&self, key: &Key, bytes: Bytes) -> Result<(), BucketError> {
        self.counted().put(key, bytes).await
    }

    async fn get(&self, key: &Key) -> Result<Option<Object>, BucketError> {
        self.counted().get(key).await
    }

    async fn list(&self, folder: &Key, after: Option<&Key>) -> Result<Vec<Key>, BucketError> {
        self.counted().list(folder, after).await
    }

    async fn folders(&self, folder: &Key) -> Result<Vec<String>, BucketError> {
        self.counted().folders(folder).await
    }

    async fn delete(&self, key: &Key) -> Result<(), BucketError> {
        self.counted().delete(key).await
    }

    async fn upload(&self, key: &Key, body: ByteStream) -> Result<u64, BucketError> {
        self.counted().upload(key, body).await
    }

    async fn download(&self, key: &Key, range: Option<Range<u64>>) -> Result<Option<Download>, BucketError> {
        self.counted().download(key, range).await
    }
}
