//! Big things: configurations, states, plans, archived logs. They flow to and from the bucket and are never whole in
//! memory.
//!
//! The contract that keeps them safe without transactions: a blob is written under a key of its own, made from an id
//! that is used once, **before** the commit that names it, and does not change afterwards. So what a commit names is
//! always there, and what no commit names is garbage that anyone may remove. Nothing may be acknowledged between the
//! two writes.
//!
//! With master keys, blobs are sealed on their way to the bucket (see [`crate::seal`]). What was stored before keys
//! were set stays readable: the first bytes of an object tell which kind it is.

use std::error::Error as StdError;
use std::ops::Range;
use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use futures::{Stream, StreamExt, TryStreamExt, stream};
use md5::Md5;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use tokio::sync::Mutex;
use tokio::task::{JoinError, JoinHandle, spawn_blocking};

use crate::bucket::{Bucket, BucketError, BucketErrorKind, ByteStream, Download, Key};
use crate::byte_stream;
use crate::seal::{self, MasterKeys};

/// Maximum size of a body that is buffered whole, so that it can be sent again when the bucket stumbles.
const MAX_BUFFERED_BYTES: usize = 1024 * 1024;

/// Minimum size of a batch that is hashed on another thread; smaller ones are hashed where they arrive.
const MIN_OFFLOADED_BYTES: usize = 256 * 1024;

/// Maximum number of pieces in a batch: pieces can be a byte long, and each takes memory of its own.
const MAX_BATCH_PIECES: usize = 64;

/// Maximum number of bytes before a range that are downloaded and skipped, which saves a second request.
const MAX_SKIPPED_BYTES: u64 = 64 * 1024;

/// Stored blob, for the commit that names it. All of it is about the plain content, sealed or not.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, Debug)]
pub struct Stored {
    pub size: u64,
    /// Hexadecimal, as is `md5`, which only old protocols ask for.
    pub sha256: String,
    pub md5: String,
}

/// Error of storing or reading a blob.
#[derive(thiserror::Error, Debug)]
pub enum BlobError {
    /// Nothing was stored.
    #[error("larger than the {limit} bytes that are allowed")]
    TooLarge { limit: u64 },
    /// Nothing was stored: whoever sent the body gave up or was cut off.
    #[error("the body did not arrive completely: {0}")]
    Body(#[source] Box<dyn StdError + Send + Sync>),
    /// A commit names it, yet it is not there.
    #[error("{0} is missing in the bucket")]
    Missing(Key),
    #[error(transparent)]
    Bucket(#[from] BucketError),
}

/// All blobs of a bucket.
#[derive(Clone, Debug)]
pub struct Blobs {
    bucket: Arc<dyn Bucket>,
    keys: Option<Arc<MasterKeys>>,
}

impl Blobs {
    /// With `keys`, whatever is stored from now on is sealed.
    pub fn new(bucket: Arc<dyn Bucket>, keys: Option<Arc<MasterKeys>>) -> Self {
        Self { bucket, keys }
    }

    /// Stores what flows in, up to `limit` bytes. It becomes visible as a whole, or not at all.
    ///
    /// The key must be new. After an error nobody may name it in a commit; trying again under the same key is fine.
    pub async fn store<E>(
        &self,
        key: &Key,
        body: impl Stream<Item = Result<Bytes, E>> + Send + 'static,
        limit: u64,
    ) -> Result<Stored, BlobError>
    where
        E: Into<Box<dyn StdError + Send + Sync>>,
    {
        let metered = MeteredBody::new(key, limit);
        let plain = metered.watch(body);
        let sent = match &self.keys {
            Some(keys) => self.send(key, keys.seal_stream(key, plain), true).await,
            None => self.send(key, plain, true).await,
        };
        metered.settle(sent).await
    }

    /// Stores what is in memory anyway.
    pub async fn store_bytes(&self, key: &Key, bytes: Bytes) -> Result<Stored, BlobError> {
        self.store(key, byte_stream::of(bytes), u64::MAX).await
    }

    /// `new` where nothing names the key yet.
    async fn send(&self, key: &Key, body: ByteStream, new: bool) -> Result<(), BucketError> {
        let (beginning, rest) = byte_stream::split(body, MAX_BUFFERED_BYTES + 1).await?;
        if beginning.len() <= MAX_BUFFERED_BYTES {
            return if new { self.bucket.put_new(key, beginning).await } else { self.bucket.put(key, beginning).await };
        }
        self.bucket.upload(key, byte_stream::of(beginning).chain(rest).boxed()).await?;
        Ok(())
    }

    /// A blob, or a range of it, or `None` where there is none. A range that reaches behind the end is cut there.
    ///
    /// Unless the blob is sealed, nothing proves that it is what was stored: see [`Self::read_verified`].
    pub async fn read(&self, key: &Key, range: Option<Range<u64>>) -> Result<Option<Download>, BucketError> {
        Ok(self.open(key, range).await?.map(|opened| opened.download))
    }

    async fn open(&self, key: &Key, range: Option<Range<u64>>) -> Result<Option<OpenedBlob>, BucketError> {
        let Some(download) = self.bucket.download(key, None).await? else { return Ok(None) };
        let stored_size = download.size;
        let (beginning, rest) = byte_stream::split(download.body, seal::HEADER).await?;
        let sealed = seal::is_sealed(&beginning);
        let size = if sealed { seal::plain_size(stored_size) } else { Some(stored_size) };
        let size = size.ok_or_else(|| damaged(key, format!("no sealed object has {stored_size} bytes")))?;
        if let Some(range) = &range
            && range.start.min(size) >= MAX_SKIPPED_BYTES
        {
            drop(rest);
            if sealed {
                let keys = self.keys_for(key)?;
                let opened = keys.open_range_after(&*self.bucket, key, &beginning, stored_size, range.clone()).await?;
                return Ok(opened.map(|download| OpenedBlob { download, sealed }));
            }
            let range = range.start..range.end.min(size);
            let found = if range.is_empty() {
                Some(Download { size, body: stream::empty().boxed() })
            } else {
                self.bucket.download(key, Some(range)).await?
            };
            return Ok(found.map(|download| OpenedBlob { download, sealed }));
        }
        let whole = byte_stream::of(beginning).chain(rest).boxed();
        let plain = if sealed { self.keys_for(key)?.open_stream(key, whole).await? } else { whole };
        let body = match range {
            Some(range) => byte_stream::part(plain, range),
            None => plain,
        };
        Ok(Some(OpenedBlob { download: Download { size, body }, sealed }))
    }

    /// A small blob, whole.
    pub async fn read_bytes(&self, key: &Key, limit: usize) -> Result<Option<Bytes>, BlobError> {
        let too_large = || BlobError::TooLarge { limit: limit as u64 };
        let Some(mut download) = self.read(key, None).await? else { return Ok(None) };
        if download.size > limit as u64 {
            return Err(too_large());
        }
        let mut whole = BytesMut::with_capacity(download.size as usize);
        while let Some(bytes) = download.body.try_next().await? {
            if whole.len() + bytes.len() > limit {
                return Err(too_large());
            }
            whole.extend_from_slice(&bytes);
        }
        Ok(Some(whole.freeze()))
    }

    /// A blob that a commit names. The stream ends in an error if it is not what was stored, and the last bytes are
    /// handed out only after that is certain: a client that was promised `size` bytes sees that some are missing.
    pub async fn read_verified(&self, key: &Key, stored: &Stored) -> Result<Download, BlobError> {
        let Some(opened) = self.open(key, None).await? else { return Err(BlobError::Missing(key.clone())) };
        let download = opened.download;
        if download.size != stored.size {
            return Err(of_another_size(key, download.size, stored).into());
        }
        // A seal proves every piece and the end, so that the same need not be proven twice.
        let body = match opened.sealed {
            true => download.body,
            false => verified(key.clone(), download.body, stored.clone()),
        };
        Ok(Download { size: download.size, body })
    }

    /// The same for a blob whose key may have been written more than once. A seal proves that some server wrote it, but
    /// not that it is the one which the commit names, so that its content is compared in any case.
    pub async fn read_compared(&self, key: &Key, stored: &Stored) -> Result<Download, BlobError> {
        let Some(OpenedBlob { download, .. }) = self.open(key, None).await? else {
            return Err(BlobError::Missing(key.clone()));
        };
        let Download { size, body } = download;
        if size != stored.size {
            return Err(of_another_size(key, size, stored).into());
        }
        Ok(Download { size, body: verified(key.clone(), body, stored.clone()) })
    }

    /// Removes a blob that no commit names (any more).
    pub async fn remove(&self, key: &Key) -> Result<(), BucketError> {
        self.bucket.delete(key).await
    }

    /// Brings a blob under the current master key, by giving it a new header; its pieces are copied as they are, so
    /// whoever reads it meanwhile is not disturbed. `false` if there was nothing to do.
    pub async fn rewrap(&self, key: &Key) -> Result<bool, BucketError> {
        let Some(download) = self.bucket.download(key, None).await? else { return Ok(false) };
        let (header, pieces) = byte_stream::split(download.body, seal::HEADER).await?;
        if !seal::is_sealed(&header) {
            return Ok(false);
        }
        let keys = self.keys_for(key)?;
        let refused =
            |error: seal::SealError| BucketError::new("open", key, BucketErrorKind::Refused, error.why.to_string());
        if !keys.needs_rewrap(key.as_str(), &header).map_err(refused)? {
            return Ok(false);
        }
        let header = keys.rewrap(key.as_str(), &header).map_err(refused)?;
        let body = byte_stream::of(Bytes::copy_from_slice(&header)).chain(pieces).boxed();
        self.send(key, body, false).await?;
        Ok(true)
    }

    fn keys_for(&self, key: &Key) -> Result<&MasterKeys, BucketError> {
        let missing =
            || BucketError::new("open", key, BucketErrorKind::Refused, "it is sealed, and no master key was given");
        self.keys.as_deref().ok_or_else(missing)
    }
}

/// A blob that flows out of the bucket, and whether it is sealed there.
struct OpenedBlob {
    download: Download,
    sealed: bool,
}

fn damaged(key: &Key, why: String) -> BucketError {
    BucketError::new("verify", key, BucketErrorKind::Refused, format!("not what was stored: {why}"))
}

fn of_another_size(key: &Key, size: u64, stored: &Stored) -> BucketError {
    damaged(key, format!("it has {size} bytes instead of {}", stored.size))
}

/// Measures a body that flows past, and stops it where it has to be stopped.
struct MeteredBody {
    key: Key,
    limit: u64,
    seen: Arc<Mutex<Seen>>,
}

#[derive(Default)]
struct Seen {
    size: u64,
    digests: BodyDigests,
    /// Reason why the stream was ended before its time. The bucket's own error would only say that it was.
    stopped: Option<BlobError>,
}

impl MeteredBody {
    fn new(key: &Key, limit: u64) -> Self {
        Self { key: key.clone(), limit, seen: Arc::default() }
    }

    fn watch<E>(&self, body: impl Stream<Item = Result<Bytes, E>> + Send + 'static) -> ByteStream
    where
        E: Into<Box<dyn StdError + Send + Sync>>,
    {
        let (seen, limit, key) = (Arc::clone(&self.seen), self.limit, self.key.clone());
        let pieces = body.map(|piece| piece.map_err(|error| BlobError::Body(error.into())));
        let watched = pieces.then(move |piece| {
            let (seen, key) = (Arc::clone(&seen), key.clone());
            async move {
                let mut seen = seen.lock().await;
                let stopped = match piece {
                    Ok(bytes) if bytes.len() as u64 <= limit - seen.size => {
                        seen.size += bytes.len() as u64;
                        seen.digests.add(bytes.clone()).await.map_err(|error| not_hashed(&key, &error))?;
                        return Ok(bytes);
                    }
                    Ok(_) => BlobError::TooLarge { limit },
                    Err(error) => error,
                };
                let error = BucketError::new("upload", &key, BucketErrorKind::Refused, stopped.to_string());
                seen.stopped = Some(stopped);
                Err(error)
            }
        });
        watched.boxed()
    }

    async fn settle(self, sent: Result<(), BucketError>) -> Result<Stored, BlobError> {
        let seen = std::mem::take(&mut *self.seen.lock().await);
        if let Some(stopped) = seen.stopped {
            return Err(stopped);
        }
        sent?;
        let digests = seen.digests.finish().await.map_err(|error| not_hashed(&self.key, &error))?;
        let (sha256, md5) = (hex::encode(digests.sha256.finalize()), hex::encode(digests.md5.finalize()));
        Ok(Stored { size: seen.size, sha256, md5 })
    }
}

fn not_hashed(key: &Key, error: &JoinError) -> BucketError {
    BucketError::new("upload", key, BucketErrorKind::OutcomeUnknown, format!("its digests were not made: {error}"))
}

#[derive(Default)]
struct Digests {
    sha256: Sha256,
    md5: Md5,
}

impl Digests {
    fn update(mut self, pieces: &[Bytes]) -> Self {
        for bytes in pieces {
            self.sha256.update(bytes);
            self.md5.update(bytes);
        }
        self
    }
}

/// Digests of a body that flows past. To hash a large one takes longer than to receive and to seal it, so that batches
/// of it are hashed on another thread meanwhile: no more than two are held, and no thread waits for a slow client.
#[derive(Default)]
struct BodyDigests {
    /// Of everything before the batch, unless that is still being hashed.
    ready: Option<Digests>,
    under_way: Option<JoinHandle<Digests>>,
    batch: Vec<Bytes>,
    batch_bytes: usize,
}

impl BodyDigests {
    async fn add(&mut self, bytes: Bytes) -> Result<(), JoinError> {
        self.batch_bytes += bytes.len();
        self.batch.push(bytes);
        if self.batch_bytes < MIN_OFFLOADED_BYTES && self.batch.len() < MAX_BATCH_PIECES {
            return Ok(());
        }
        let digests = self.before_batch().await?;
        let (batch, bytes) = (std::mem::take(&mut self.batch), std::mem::take(&mut self.batch_bytes));
        if bytes < MIN_OFFLOADED_BYTES {
            self.ready = Some(digests.update(&batch));
        } else {
            self.under_way = Some(spawn_blocking(move || digests.update(&batch)));
        }
        Ok(())
    }

    /// The digests of everything that was added.
    async fn finish(mut self) -> Result<Digests, JoinError> {
        Ok(self.before_batch().await?.update(&self.batch))
    }

    async fn before_batch(&mut self) -> Result<Digests, JoinError> {
        match self.under_way.take() {
            Some(under_way) => under_way.await,
            None => Ok(self.ready.take().unwrap_or_default()),
        }
    }
}

/// Holds every piece back until the next one came, and the last until all were as they should be.
fn verified(key: Key, body: ByteStream, stored: Stored) -> ByteStream {
    struct Verifying {
        body: ByteStream,
        key: Key,
        stored: Stored,
        size: u64,
        sha256: Sha256,
        held: Option<Bytes>,
    }
    let begin = Verifying { body, key, stored, size: 0, sha256: Sha256::new(), held: None };
    stream::try_unfold(Some(begin), |state| async {
        let Some(mut state) = state else { return Ok(None) };
        loop {
            let Some(bytes) = state.body.try_next().await? else { break };
            if bytes.is_empty() {
                continue;
            }
            state.size += bytes.len() as u64;
            state.sha256.update(&bytes);
            if let Some(ready) = state.held.replace(bytes) {
                return Ok(Some((ready, Some(state))));
            }
        }
        if state.size != state.stored.size {
            return Err(of_another_size(&state.key, state.size, &state.stored));
        }
        let sha256 = hex::encode(state.sha256.finalize());
        if sha256 != state.stored.sha256 {
            return Err(damaged(&state.key, format!("its SHA-256 is {sha256} instead of {}", state.stored.sha256)));
        }
        Ok(state.held.map(|last| (last, None)))
    })
    .boxed()
}

#[cfg(test)]
mod tests;
