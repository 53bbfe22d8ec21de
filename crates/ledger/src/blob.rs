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
use std::sync::{Arc, Mutex, PoisonError};

use bytes::{Bytes, BytesMut};
use futures::{Stream, StreamExt, TryStreamExt, stream};
use md5::Md5;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::bucket::{Bucket, BucketError, ByteStream, Download, Key, Trouble};
use crate::byte_stream;
use crate::seal::{self, MasterKeys};

/// A body up to this size is kept until it is complete, so that it can be sent again when the bucket stumbles.
const SMALL: usize = 1024 * 1024;

/// A range that begins nearer to the front than this is cut out of the whole, which saves a second request.
const NEAR: u64 = 64 * 1024;

/// What was stored, for the commit that names it. All of it is about the plain content, sealed or not.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, Debug)]
pub struct Stored {
    pub size: u64,
    /// Hexadecimal, as is `md5`, which only old protocols ask for.
    pub sha256: String,
    pub md5: String,
}

/// Why a blob was not stored or read.
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
        let passage = Passage::new(key, limit);
        let plain = passage.watch(body);
        let sent = match &self.keys {
            Some(keys) => self.send(key, keys.seal_stream(key, plain), true).await,
            None => self.send(key, plain, true).await,
        };
        passage.settle(sent)
    }

    /// Stores what is in memory anyway.
    pub async fn store_bytes(&self, key: &Key, bytes: Bytes) -> Result<Stored, BlobError> {
        self.store(key, byte_stream::of(bytes), u64::MAX).await
    }

    /// `new` where nothing names the key yet.
    async fn send(&self, key: &Key, body: ByteStream, new: bool) -> Result<(), BucketError> {
        let (beginning, rest) = byte_stream::split(body, SMALL + 1).await?;
        if beginning.len() <= SMALL {
            return if new { self.bucket.put_new(key, beginning).await } else { self.bucket.put(key, beginning).await };
        }
        self.bucket.upload(key, byte_stream::of(beginning).chain(rest).boxed()).await?;
        Ok(())
    }

    /// A blob, or a range of it, or `None` where there is none. A range that reaches behind the end is cut there.
    ///
    /// Unless the blob is sealed, nothing proves that it is what was stored: see [`Self::read_verified`].
    pub async fn read(&self, key: &Key, range: Option<Range<u64>>) -> Result<Option<Download>, BucketError> {
        let Some(download) = self.bucket.download(key, None).await? else { return Ok(None) };
        let stored_size = download.size;
        let (beginning, rest) = byte_stream::split(download.body, seal::HEADER).await?;
        let sealed = seal::is_sealed(&beginning);
        let size = if sealed { seal::plain_size(stored_size) } else { Some(stored_size) };
        let size = size.ok_or_else(|| damaged(key, format!("no sealed object has {stored_size} bytes")))?;
        if let Some(range) = &range
            && range.start.min(size) >= NEAR
        {
            drop(rest);
            if sealed {
                let keys = self.keys_for(key)?;
                return keys.open_range_after(&*self.bucket, key, &beginning, stored_size, range.clone()).await;
            }
            let range = range.start..range.end.min(size);
            if range.is_empty() {
                return Ok(Some(Download { size, body: stream::empty().boxed() }));
            }
            return self.bucket.download(key, Some(range)).await;
        }
        let whole = byte_stream::of(beginning).chain(rest).boxed();
        let plain = if sealed { self.keys_for(key)?.open_stream(key, whole).await? } else { whole };
        let body = match range {
            Some(range) => byte_stream::part(plain, range),
            None => plain,
        };
        Ok(Some(Download { size, body }))
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
        let Some(download) = self.read(key, None).await? else { return Err(BlobError::Missing(key.clone())) };
        if download.size != stored.size {
            let why = format!("it has {} bytes instead of {}", download.size, stored.size);
            return Err(damaged(key, why).into());
        }
        Ok(Download { size: download.size, body: verified(key.clone(), download.body, stored.clone()) })
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
        let refused = |error: seal::SealError| BucketError::new("open", key, Trouble::Refused, error.why.to_string());
        if !keys.needs_rewrap(key.as_str(), &header).map_err(refused)? {
            return Ok(false);
        }
        let header = keys.rewrap(key.as_str(), &header).map_err(refused)?;
        let body = byte_stream::of(Bytes::copy_from_slice(&header)).chain(pieces).boxed();
        self.send(key, body, false).await?;
        Ok(true)
    }

    fn keys_for(&self, key: &Key) -> Result<&MasterKeys, BucketError> {
        let missing = || BucketError::new("open", key, Trouble::Refused, "it is sealed, and no master key was given");
        self.keys.as_deref().ok_or_else(missing)
    }
}

fn damaged(key: &Key, why: String) -> BucketError {
    BucketError::new("verify", key, Trouble::Refused, format!("not what was stored: {why}"))
}

/// Measures a body that flows past, and stops it where it has to be stopped.
struct Passage {
    key: Key,
    limit: u64,
    seen: Arc<Mutex<Seen>>,
}

#[derive(Default)]
struct Seen {
    size: u64,
    sha256: Sha256,
    md5: Md5,
    /// Why the stream was ended before its time. The bucket's own error would only say that it was.
    stopped: Option<BlobError>,
}

impl Passage {
    fn new(key: &Key, limit: u64) -> Self {
        Self { key: key.clone(), limit, seen: Arc::default() }
    }

    fn watch<E>(&self, body: impl Stream<Item = Result<Bytes, E>> + Send + 'static) -> ByteStream
    where
        E: Into<Box<dyn StdError + Send + Sync>>,
    {
        let (seen, limit, key) = (Arc::clone(&self.seen), self.limit, self.key.clone());
        body.map(move |piece| {
            let mut seen = seen.lock().unwrap_or_else(PoisonError::into_inner);
            let stopped = match piece {
                Ok(bytes) if bytes.len() as u64 <= limit - seen.size => {
                    seen.size += bytes.len() as u64;
                    seen.sha256.update(&bytes);
                    seen.md5.update(&bytes);
                    return Ok(bytes);
                }
                Ok(_) => BlobError::TooLarge { limit },
                Err(error) => BlobError::Body(error.into()),
            };
            let error = BucketError::new("upload", &key, Trouble::Refused, stopped.to_string());
            seen.stopped = Some(stopped);
            Err(error)
        })
        .boxed()
    }

    fn settle(self, sent: Result<(), BucketError>) -> Result<Stored, BlobError> {
        let seen = std::mem::take(&mut *self.seen.lock().unwrap_or_else(PoisonError::into_inner));
        match (seen.stopped, sent) {
            (Some(stopped), _) => Err(stopped),
            (None, Err(error)) => Err(error.into()),
            (None, Ok(())) => {
                let (sha256, md5) = (hex::encode(seen.sha256.finalize()), hex::encode(seen.md5.finalize()));
                Ok(Stored { size: seen.size, sha256, md5 })
            }
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
            return Err(damaged(&state.key, format!("it has {} bytes instead of {}", state.size, state.stored.size)));
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
mod tests {
    use std::convert::Infallible;
    use std::io;

    use async_trait::async_trait;

    use super::*;
    use crate::bucket::{Created, Object};
    use crate::clock::Dice;
    use crate::layout::{self, LedgerName};
    use crate::object_bucket::ObjectBucket;
    use crate::retry::Retrying;
    use crate::seal::{MasterKey, PIECE};

    /// A bucket in memory that notes what is read, and refuses the first few writes.
    #[derive(Debug)]
    struct Spy {
        bucket: ObjectBucket,
        read: Mutex<Vec<Option<Range<u64>>>>,
        writes_to_refuse: Mutex<u32>,
    }

    impl Spy {
        fn new() -> Arc<Self> {
            Self::refusing(0)
        }

        fn refusing(writes: u32) -> Arc<Self> {
            let writes_to_refuse = Mutex::new(writes);
            Arc::new(Self { bucket: ObjectBucket::in_memory(), read: Mutex::default(), writes_to_refuse })
        }

        fn take_read(&self) -> Vec<Option<Range<u64>>> {
            std::mem::take(&mut *self.read.lock().expect("no panic"))
        }

        fn stumble(&self, key: &Key) -> Result<(), BucketError> {
            let mut left = self.writes_to_refuse.lock().expect("no panic");
            if *left == 0 {
                return Ok(());
            }
            *left -= 1;
            Err(BucketError::new("put", key, Trouble::Unclear, "503"))
        }

        async fn raw(&self, key: &Key) -> Vec<u8> {
            self.bucket.get(key).await.expect("works").expect("there").bytes.to_vec()
        }
    }

    #[async_trait]
    impl Bucket for Spy {
        async fn create(&self, key: &Key, bytes: Bytes) -> Result<Created, BucketError> {
            self.bucket.create(key, bytes).await
        }

        async fn put(&self, key: &Key, bytes: Bytes) -> Result<(), BucketError> {
            self.stumble(key)?;
            self.bucket.put(key, bytes).await
        }

        async fn get(&self, key: &Key) -> Result<Option<Object>, BucketError> {
            self.bucket.get(key).await
        }

        async fn list(&self, folder: &Key, after: Option<&Key>) -> Result<Vec<Key>, BucketError> {
            self.bucket.list(folder, after).await
        }

        async fn folders(&self, folder: &Key) -> Result<Vec<String>, BucketError> {
            self.bucket.folders(folder).await
        }

        async fn delete(&self, key: &Key) -> Result<(), BucketError> {
            self.bucket.delete(key).await
        }

        async fn upload(&self, key: &Key, body: ByteStream) -> Result<u64, BucketError> {
            self.stumble(key)?;
            self.bucket.upload(key, body).await
        }

        async fn download(&self, key: &Key, range: Option<Range<u64>>) -> Result<Option<Download>, BucketError> {
            self.read.lock().expect("no panic").push(range.clone());
            self.bucket.download(key, range).await
        }
    }

    fn key() -> Key {
        layout::blob(&LedgerName::site(), "states", "sv-1")
    }

    fn keys(current: &str, older: &[&str]) -> Arc<MasterKeys> {
        let key = |name: &str| MasterKey::from_secret(&name.repeat(32)).expect("long enough");
        Arc::new(MasterKeys::new(key(current), older.iter().map(|name| key(name)).collect(), Dice::from_seed(7)))
    }

    fn plain(bucket: &Arc<Spy>) -> Blobs {
        Blobs::new(Arc::clone(bucket) as _, None)
    }

    fn sealed(bucket: &Arc<Spy>) -> Blobs {
        Blobs::new(Arc::clone(bucket) as _, Some(keys("a", &[])))
    }

    fn content(size: usize) -> Bytes {
        (0..size).map(|at| (at * 31 % 251) as u8).collect::<Vec<u8>>().into()
    }

    fn in_pieces(bytes: &Bytes, size: usize) -> impl Stream<Item = Result<Bytes, Infallible>> + Send + use<> {
        let pieces: Vec<Bytes> = bytes.chunks(size).map(Bytes::copy_from_slice).collect();
        stream::iter(pieces).map(Ok)
    }

    async fn all(body: ByteStream) -> Result<Vec<u8>, BucketError> {
        Ok(body.try_collect::<Vec<Bytes>>().await?.concat())
    }

    #[tokio::test]
    async fn what_is_stored_is_read_again_and_its_digests_are_those_of_the_content() {
        let bucket = Spy::new();
        for blobs in [plain(&bucket), sealed(&bucket)] {
            for size in [0, 1, 1_000, PIECE, SMALL - 1, SMALL, SMALL + 1, 6 * 1024 * 1024] {
                let bytes = content(size);
                let stored = blobs.store(&key(), in_pieces(&bytes, 10_007), size as u64).await.expect("works");
                assert_eq!(stored.size, size as u64);
                assert_eq!(stored.sha256, hex::encode(Sha256::digest(&bytes)));
                assert_eq!(stored.md5, hex::encode(Md5::digest(&bytes)));

                let read = blobs.read(&key(), None).await.expect("works").expect("there");
                assert_eq!(read.size, size as u64);
                assert_eq!(all(read.body).await.expect("works"), bytes);
                let read = blobs.read_verified(&key(), &stored).await.expect("works");
                assert_eq!(all(read.body).await.expect("works"), bytes);
                assert_eq!(blobs.read_bytes(&key(), size).await.expect("works").expect("there"), bytes);
                assert_eq!(blobs.store_bytes(&key(), bytes).await.expect("works"), stored);
            }
            blobs.remove(&key()).await.expect("works");
            assert!(blobs.read(&key(), None).await.expect("works").is_none());
            assert!(blobs.read(&key(), Some(0..1)).await.expect("works").is_none());
            assert!(blobs.read_bytes(&key(), 1).await.expect("works").is_none());
            blobs.remove(&key()).await.expect("gone is gone");
        }
    }

    #[tokio::test]
    async fn a_body_that_is_too_large_or_breaks_off_leaves_nothing_behind() {
        let bucket = Spy::new();
        for blobs in [plain(&bucket), sealed(&bucket)] {
            for size in [11, SMALL + 11, 7 * 1024 * 1024] {
                let limit = size as u64 - 1;
                let refused = blobs.store(&key(), in_pieces(&content(size), 10_007), limit).await;
                assert!(matches!(refused, Err(BlobError::TooLarge { limit: named }) if named == limit), "{refused:?}");

                let cut =
                    in_pieces(&content(size), 10_007).map_err(|never| match never {}).chain(stream::once(async {
                        Err(io::Error::new(io::ErrorKind::ConnectionReset, "the client went away"))
                    }));
                let error = blobs.store(&key(), cut, u64::MAX).await.expect_err("cut");
                assert_eq!(error.to_string(), "the body did not arrive completely: the client went away");
                assert!(bucket.get(&key()).await.expect("works").is_none());
            }
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_small_blob_survives_a_bucket_that_stumbles() {
        let bucket = Spy::refusing(3);
        let blobs = Blobs::new(Arc::new(Retrying::new(Arc::clone(&bucket) as _, Dice::from_seed(1))), None);
        let stored = blobs.store_bytes(&key(), content(SMALL)).await.expect("sent again");
        assert_eq!(stored.sha256, hex::encode(Sha256::digest(content(SMALL))));

        *bucket.writes_to_refuse.lock().expect("no panic") = 1;
        let error = blobs.store_bytes(&key(), content(SMALL + 1)).await.expect_err("flows past only once");
        assert!(matches!(error, BlobError::Bucket(error) if error.is_unclear()));
    }

    #[tokio::test]
    async fn ranges_are_slices_and_read_no_more_than_they_need() {
        let bucket = Spy::new();
        let size = 5 * PIECE + 100;
        let bytes = content(size);
        for (blobs, is_sealed) in [(plain(&bucket), false), (sealed(&bucket), true)] {
            blobs.store_bytes(&key(), bytes.clone()).await.expect("works");
            let borders =
                [0, 1, PIECE - 1, PIECE, PIECE + 1, 3 * PIECE, size - 100, size - 1, size, size + 1, size * 2];
            for start in borders {
                for end in borders.into_iter().filter(|end| *end >= start) {
                    let read = blobs.read(&key(), Some(start as u64..end as u64)).await.expect("works").expect("there");
                    assert_eq!(read.size, size as u64);
                    let expected = &bytes[start.min(size)..end.min(size)];
                    assert_eq!(all(read.body).await.expect("works"), expected, "{start}..{end}");
                }
            }
            bucket.take_read();
            let near = (3 * PIECE) as u64 + 5;
            blobs.read(&key(), Some(near..near + 10)).await.expect("works").expect("there");
            let read = bucket.take_read();
            let [None, Some(range)] = &read[..] else { panic!("{read:?}") };
            assert_eq!(range.end - range.start, if is_sealed { PIECE as u64 + 16 } else { 10 });
        }

        let key = key();
        let keys = keys("a", &[]);
        bucket.take_read();
        let range = 2 * PIECE as u64 - 1..2 * PIECE as u64 + 1;
        let read = keys.open_range(&*bucket, &key, range.clone()).await.expect("works").expect("there");
        assert_eq!(all(read.body).await.expect("works"), bytes[range.start as usize..range.end as usize]);
        let piece = PIECE as u64 + 16;
        let header = seal::HEADER as u64;
        assert_eq!(bucket.take_read(), [Some(0..header), Some(header + piece..header + 3 * piece)]);
    }

    #[tokio::test]
    async fn a_blob_that_changed_is_named_before_its_last_bytes_are_handed_out() {
        let bucket = Spy::new();
        let blobs = plain(&bucket);
        let bytes = content(3 * PIECE);
        let stored = blobs.store_bytes(&key(), bytes.clone()).await.expect("works");

        for at in [0, PIECE, 3 * PIECE - 1] {
            let mut changed = bytes.to_vec();
            changed[at] ^= 1;
            bucket.put(&key(), changed.into()).await.expect("works");
            let mut read = blobs.read_verified(&key(), &stored).await.expect("the size is right");
            let mut handed_out = 0;
            let error = loop {
                match read.body.next().await.expect("ends in an error") {
                    Ok(bytes) => handed_out += bytes.len(),
                    Err(error) => break error,
                }
            };
            assert!(handed_out < bytes.len());
            assert!(error.to_string().contains("blobs/site/states/sv-1: not what was stored: its SHA-256"), "{error}");
            assert_eq!(error.trouble, Trouble::Refused);
        }

        for size in [0, 3 * PIECE - 1, 3 * PIECE + 1] {
            bucket.put(&key(), content(size)).await.expect("works");
            let error = blobs.read_verified(&key(), &stored).await.err().expect("another size");
            assert!(error.to_string().contains("blobs/site/states/sv-1"), "{error}");
            let body = all(verified(key(), byte_stream::of(content(size)), stored.clone())).await;
            assert!(body.is_err(), "a bucket that promised more than it sent");
        }

        bucket.delete(&key()).await.expect("works");
        let error = blobs.read_verified(&key(), &stored).await.err().expect("gone");
        assert_eq!(error.to_string(), "blobs/site/states/sv-1 is missing in the bucket");
    }

    #[tokio::test]
    async fn sealed_blobs_show_nothing_and_need_their_key_and_their_place() {
        let bucket = Spy::new();
        let secret = Bytes::from("password = hunter2 ".repeat(10_000));
        let stored = sealed(&bucket).store_bytes(&key(), secret.clone()).await.expect("works");
        let raw = bucket.raw(&key()).await;
        assert!(!raw.windows(7).any(|window| window == b"hunter2"));

        for range in [None, Some(0..10), Some(100_000..100_010)] {
            let error = plain(&bucket).read(&key(), range.clone()).await.err().expect("no key");
            assert!(error.to_string().contains("sealed, and no master key was given"), "{error}");
            let other = Blobs::new(Arc::clone(&bucket) as _, Some(keys("b", &[])));
            let error = other.read(&key(), range).await.err().expect("another key");
            assert!(error.to_string().contains(&keys("a", &[]).current().to_string()), "{error}");
        }

        let elsewhere = layout::blob(&LedgerName::site(), "states", "sv-2");
        bucket.put(&elsewhere, raw.clone().into()).await.expect("works");
        let error = sealed(&bucket).read(&elsewhere, None).await.err().expect("moved");
        assert!(error.to_string().contains("sv-2"), "{error}");

        bucket.put(&key(), raw[..raw.len() - 1].to_vec().into()).await.expect("works");
        let body = sealed(&bucket).read(&key(), None).await.expect("begins well").expect("there").body;
        assert!(all(body).await.is_err());
        assert!(sealed(&bucket).read_verified(&key(), &stored).await.is_err());
        bucket.put(&key(), raw[..seal::HEADER + 3].to_vec().into()).await.expect("works");
        let error = sealed(&bucket).read(&key(), None).await.err().expect("too short");
        assert!(error.to_string().contains("blobs/site/states/sv-1"), "{error}");
    }

    #[tokio::test]
    async fn what_was_stored_before_keys_were_set_stays_readable() {
        let bucket = Spy::new();
        let stored = plain(&bucket).store_bytes(&key(), content(1_000)).await.expect("works");
        let body = sealed(&bucket).read_verified(&key(), &stored).await.expect("works").body;
        assert_eq!(all(body).await.expect("works"), content(1_000));
    }

    #[tokio::test]
    async fn a_blob_gets_a_new_master_key_without_being_opened() {
        let bucket = Spy::new();
        for size in [0, 1_000, 3 * 1024 * 1024] {
            sealed(&bucket).store_bytes(&key(), content(size)).await.expect("works");
            let before = bucket.raw(&key()).await;
            let both = Blobs::new(Arc::clone(&bucket) as _, Some(keys("b", &["a"])));
            assert!(both.rewrap(&key()).await.expect("works"));
            assert!(!both.rewrap(&key()).await.expect("works"), "nothing left to do");
            assert_eq!(bucket.raw(&key()).await[seal::HEADER..], before[seal::HEADER..]);

            let new = Blobs::new(Arc::clone(&bucket) as _, Some(keys("b", &[])));
            assert_eq!(new.read_bytes(&key(), size).await.expect("works").expect("there"), content(size));
            assert!(sealed(&bucket).read(&key(), None).await.is_err(), "the old key alone does not open it");
        }
        plain(&bucket).store_bytes(&key(), content(9)).await.expect("works");
        assert!(!sealed(&bucket).rewrap(&key()).await.expect("not sealed"));
        bucket.delete(&key()).await.expect("works");
        assert!(!sealed(&bucket).rewrap(&key()).await.expect("not there"));
    }

    #[tokio::test]
    async fn a_large_blob_is_refused_where_a_small_one_was_expected() {
        let bucket = Spy::new();
        for blobs in [plain(&bucket), sealed(&bucket)] {
            blobs.store_bytes(&key(), content(100)).await.expect("works");
            let refused = blobs.read_bytes(&key(), 99).await;
            assert!(matches!(refused, Err(BlobError::TooLarge { limit: 99 })), "{refused:?}");
        }
    }
}
