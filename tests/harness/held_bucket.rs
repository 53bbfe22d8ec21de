//! A bucket in memory of which some objects cannot be read, or created, for a while, as if they were very far away, or
//! which takes no writes for a while.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use async_trait::async_trait;
use bytes::Bytes;
use taco_ledger::bucket::{ByteStream, Created, Download, Object};
use taco_ledger::{Bucket, BucketError, BucketErrorKind, Key, ObjectBucket};
use tokio::sync::watch;

#[derive(Debug)]
pub struct HeldBucket {
    bucket: Arc<ObjectBucket>,
    /// Keys that have this in them are not created.
    held_creates: watch::Sender<Option<String>>,
    /// Number of callers that wait to create something.
    creators: watch::Sender<usize>,
    /// Keys that end so are held.
    held: watch::Sender<Option<String>>,
    is_read_only: AtomicBool,
    /// Number of writes that are taken before it is read-only.
    writes_left: AtomicUsize,
}

impl HeldBucket {
    pub fn in_memory() -> Arc<Self> {
        Arc::new(Self {
            bucket: Arc::new(ObjectBucket::in_memory()),
            held_creates: watch::Sender::new(None),
            creators: watch::Sender::new(0),
            held: watch::Sender::new(None),
            is_read_only: AtomicBool::new(false),
            writes_left: AtomicUsize::new(usize::MAX),
        })
    }

    /// The same objects for someone whom nothing holds up.
    pub fn for_others(&self) -> Arc<dyn Bucket> {
        Arc::clone(&self.bucket) as _
    }

    /// From now on whoever creates an object whose key has this in it waits.
    pub fn hold_creates(&self, part: &str) {
        self.held_creates.send_replace(Some(part.to_owned()));
    }

    pub fn let_creates_go(&self) {
        self.held_creates.send_replace(None);
    }

    /// Waits until someone waits to create an object.
    pub async fn someone_creates(&self) {
        self.creators.subscribe().wait_for(|number| *number > 0).await.expect("the sender is ours");
    }

    /// From now on reads of an object whose key ends so wait.
    pub fn hold(&self, ending: &str) {
        self.held.send_replace(Some(ending.to_owned()));
    }

    pub fn let_go(&self) {
        self.held.send_replace(None);
    }

    /// From now on, or until it is told otherwise, it refuses all writes.
    pub fn set_read_only(&self, is_read_only: bool) {
        self.is_read_only.store(is_read_only, Ordering::Relaxed);
    }

    /// From now on it takes so many writes and refuses all that follow, as if the writer had died then.
    pub fn take_writes(&self, number: usize) {
        self.writes_left.store(number, Ordering::Relaxed);
    }

    fn check_writable(&self, operation: &'static str, key: &Key) -> Result<(), BucketError> {
        let took = |left: usize| if left == usize::MAX { Some(left) } else { left.checked_sub(1) };
        let is_used_up = self.writes_left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, took).is_err();
        match is_used_up || self.is_read_only.load(Ordering::Relaxed) {
            true => Err(BucketError::new(operation, key, BucketErrorKind::Denied, "writing is denied")),
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
        let is_free = |held: &Option<String>| held.as_ref().is_none_or(|part| !key.as_str().contains(part));
        self.creators.send_modify(|number| *number += usize::from(!is_free(&self.held_creates.borrow())));
        self.held_creates.subscribe().wait_for(is_free).await.expect("the sender is ours");
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
