//! Interface of a bucket: what the ledger asks of it, and nothing more.
//!
//! The trait is narrow on purpose: every operation here exists on S3, GCS, Azure and a local directory with the
//! same meaning, and a fault-injecting bucket for tests is one screen of code.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use futures::stream::{self, BoxStream};
use futures::{StreamExt as _, TryStreamExt as _};
use jiff::Timestamp;

use crate::operation_times::OperationTimes;

/// The name of one object. Only [`crate::layout`] makes them, from ids and numbers, never from what a user typed.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key(Arc<str>);

impl Key {
    pub(crate) fn new(text: impl Into<Arc<str>>) -> Self {
        Self(text.into())
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The part after the last slash.
    pub fn file_name(&self) -> &str {
        self.0.rsplit('/').next().unwrap_or(&self.0)
    }
}

impl fmt::Display for Key {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{:?}", self.0)
    }
}

/// Answer of a bucket to create-if-absent. There is a third outcome, "nobody knows": that is an error for which
/// [`BucketError::is_outcome_unknown`] holds, and whoever asked has to read the object back.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Created {
    Now,
    /// Something was there. It may be our own earlier attempt whose answer was lost.
    AlreadyThere,
}

/// A small object, read whole.
#[derive(Clone, Debug)]
pub struct Object {
    pub bytes: Bytes,
    /// By the bucket's clock: the only clock that several servers share.
    pub last_modified: Timestamp,
}

/// Metadata of an object, without its content.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Stat {
    pub size: u64,
    /// By the bucket's clock.
    pub last_modified: Timestamp,
}

/// Bytes on their way to or from the bucket.
pub type ByteStream = BoxStream<'static, Result<Bytes, BucketError>>;

/// A large object that is being read.
pub struct Download {
    /// Size of the whole object, also where only a range of it was asked for.
    pub size: u64,
    pub body: ByteStream,
}

/// Object storage with create-if-absent, the one conditional write that every store has.
#[async_trait]
pub trait Bucket: fmt::Debug + Send + Sync + 'static {
    /// Writes an object unless its key is taken. Never retried behind the caller's back: a retry would meet the
    /// first attempt's object and report a lost race that was won.
    async fn create(&self, key: &Key, bytes: Bytes) -> Result<Created, BucketError>;
    /// Writes or overwrites an object.
    async fn put(&self, key: &Key, bytes: Bytes) -> Result<(), BucketError>;
    /// Writes an object that nothing names yet. As safe as `put` once it returns, and cheaper where that helps.
    async fn put_new(&self, key: &Key, bytes: Bytes) -> Result<(), BucketError> {
        self.put(key, bytes).await
    }
    /// The object, or `None` where there is none.
    async fn get(&self, key: &Key) -> Result<Option<Object>, BucketError>;
    /// Size and time of an object without its content, or `None` where there is none.
    async fn stat(&self, key: &Key) -> Result<Option<Stat>, BucketError> {
        let found = self.get(key).await?;
        Ok(found.map(|Object { bytes, last_modified }| Stat { size: bytes.len() as u64, last_modified }))
    }
    /// The size of an object, or `None` where there is none.
    async fn size(&self, key: &Key) -> Result<Option<u64>, BucketError> {
        Ok(self.stat(key).await?.map(|stat| stat.size))
    }
    /// True if no network lies in between, so that a size costs next to nothing.
    fn is_local(&self) -> bool {
        false
    }
    /// How long operations took lately, where someone measures them.
    fn operation_times(&self) -> Option<OperationTimes> {
        None
    }
    /// All keys under `folder`, sorted, beginning after `after`. A listing may lag behind the truth, so nothing that
    /// must be right may rest on it. (Keys alone: on a directory, sizes and times would cost a `stat` for each.)
    async fn list(&self, folder: &Key, after: Option<&Key>) -> Result<Vec<Key>, BucketError>;
    /// The same with the size of each object.
    async fn list_sizes(&self, folder: &Key) -> Result<Vec<(Key, u64)>, BucketError> {
        let mut found = Vec::new();
        for key in self.list(folder, None).await? {
            if let Some(size) = self.size(&key).await? {
                found.push((key, size));
            }
        }
        Ok(found)
    }
    /// The names of the folders directly under `folder`, sorted.
    async fn folders(&self, folder: &Key) -> Result<Vec<String>, BucketError>;
    /// Removes an object; one that is not there is fine.
    async fn delete(&self, key: &Key) -> Result<(), BucketError>;
    /// Writes a large object piece by piece; it becomes visible only as a whole. Returns its size.
    async fn upload(&self, key: &Key, body: ByteStream) -> Result<u64, BucketError>;
    /// Reads a large object piece by piece, or `None` where there is none.
    async fn download(&self, key: &Key, range: Option<Range<u64>>) -> Result<Option<Download>, BucketError>;
    /// Small parts of objects, each as a whole, or `None` where there is no object. On a directory they take one trip to
    /// another thread.
    async fn ranges(&self, wanted: &[ObjectRange]) -> Result<Vec<Option<Bytes>>, BucketError> {
        download_ranges(self, wanted).await
    }
}

/// Range of bytes of an object.
pub type ObjectRange = (Key, Range<u64>);

/// Number of ranges that are asked for together: those of a page of a list, and then some.
const MAX_RANGES_AT_ONCE: usize = 32;

/// Downloads ranges side by side, each for itself.
pub(crate) async fn download_ranges(
    bucket: &(impl Bucket + ?Sized),
    wanted: &[ObjectRange],
) -> Result<Vec<Option<Bytes>>, BucketError> {
    let downloads = wanted.iter().cloned().map(|(key, range)| async move {
        let Some(download) = bucket.download(&key, Some(range)).await? else { return Ok(None) };
        let pieces: Vec<Bytes> = download.body.try_collect().await?;
        Ok(Some(match <[Bytes; 1]>::try_from(pieces) {
            Ok([whole]) => whole,
            Err(pieces) => pieces.concat().into(),
        }))
    });
    stream::iter(downloads).buffered(MAX_RANGES_AT_ONCE).try_collect().await
}

/// Kind of a bucket's failure, sorted by what can be done about it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum BucketErrorKind {
    /// No answer, or an answer that says "later": it may have happened or not. Worth another try.
    OutcomeUnknown,
    /// The bucket refused our credentials or rights. Trying again changes nothing.
    Denied,
    /// No room left.
    Full,
    /// Anything else that will not go away by itself.
    Refused,
}

/// A failed bucket operation; its text names the operation and the object.
#[derive(Clone, thiserror::Error, Debug)]
#[error("{operation} {key}: {why}")]
pub struct BucketError {
    pub operation: &'static str,
    pub key: Key,
    pub kind: BucketErrorKind,
    pub why: String,
}

impl BucketError {
    pub fn new(operation: &'static str, key: &Key, kind: BucketErrorKind, why: impl Into<String>) -> Self {
        Self { operation, key: key.clone(), kind, why: why.into() }
    }

    /// True if it would have changed something.
    pub fn is_write(&self) -> bool {
        matches!(self.operation, "create" | "put" | "upload" | "delete")
    }

    /// True if the operation may have happened all the same, and a retry may help.
    pub fn is_outcome_unknown(&self) -> bool {
        self.kind == BucketErrorKind::OutcomeUnknown
    }
}
