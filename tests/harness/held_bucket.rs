//! A bucket in memory of which some objects cannot be read for a while, as if they were very far away, or which takes no
//! writes for a while.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use async_trait::async_trait;
use bytes::Bytes;
use taco_ledger::bucket::{ByteStream, Created, Download, Object};
use taco_ledger::{Bucket, BucketError, Key, ObjectBucket, Trouble};
use tokio::sync::watch;

#[derive(Debug)]
pub struct HeldBucket {
    bucket: ObjectBucket,
    /// Keys that end so are held.
    held: watch::Sender<Option<String>>,
    is_read_only: AtomicBool,
    /// So many writes are taken before it is read-only.
    writes_left: AtomicUsize,
}

impl HeldBucket {
    pub fn in_memory() -> Arc<Self> {
        let (bucket, held) = (ObjectBucket::in_memory(), watch::Sender::new(None));
        let writes_left = AtomicUsize::new(usize::MAX);
        Arc::new(Self { bucket, held, is_read_only: AtomicBool::new(false), writes_left })
    }

    /// From now on whoever reads an object whose key ends so waits.
    pub fn hold(&self, ending: &str) {
        self.held.send_replace(Some(ending.to_owned()));
    }

    pub fn let_go(&self) {
        self.held.send_replace(None);
    }

    /// From now on, or until it is told otherwise, it refuses whatever would change it.
    pub fn set_read_only(&self, is_read_only: bool) {
        self.is_read_only.store(is_read_only, Ordering::Relaxed);
    }

    /// From now on it takes so many writes and refuses all that follow, as if whoever writes had died then.
    pub fn take_writes(&self, number: usize) {
        self.writes_left.store(number, Ordering::Relaxed);
    }

    fn check_writable(&self, operation: &'static str, key: &Key) -> Result<(), BucketError> {
        let took = |left: usize| if left == usize::MAX { Some(left) } else { left.checked_sub(1) };
        let is_used_up = self.writes_left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, took).is_err();
        match is_used_up || self.is_read_only.load(Ordering::Relaxed) {
            true => Err(BucketError::new(operation, key, Trouble::Denied, "writing is denied")),
            false => Ok(()),
        }
    }

    async fn wait_for(&self, key: &Key) {
        let is_free = |held: &Option<String>| held.as_ref().is_none_or(|ending| !key.as_str().ends_with(ending));
        self.held.subscribe().wait_for(is_free).await.expect("the sender is ours");
    }
}

#[async_trait]
impl Bucket for HeldBucket {
    async fn create(&self, key: &Key, bytes: Bytes) -> Result<Created, BucketError> {
        self.check_writable("create", key)?;
        self.bucket.create(key, bytes).await
    }

    async fn put(&self, key: &Key, bytes: Bytes) -> Result<(), BucketError> {
        self.check_writable("put", key)?;
        self.bucket.put(key, bytes).await
    }

    async fn get(&self, key: &Key) -> Result<Option<Object>, BucketError> {
        self.wait_for(key).await;
        self.bucket.get(key).await
    }

    async fn list(&self, folder: &Key, after: Option<&Key>) -> Result<Vec<Key>, BucketError> {
        self.bucket.list(folder, after).await
    }

    async fn folders(&self, folder: &Key) -> Result<Vec<String>, BucketError> {
        self.bucket.folders(folder).await
    }

    async fn delete(&self, key: &Key) -> Result<(), BucketError> {
        self.check_writable("delete", key)?;
        self.bucket.delete(key).await
    }

    async fn upload(&self, key: &Key, body: ByteStream) -> Result<u64, BucketError> {
        self.check_writable("upload", key)?;
        self.bucket.upload(key, body).await
    }

    async fn download(&self, key: &Key, range: Option<Range<u64>>) -> Result<Option<Download>, BucketError> {
        self.wait_for(key).await;
        self.bucket.download(key, range).await
    }
}
