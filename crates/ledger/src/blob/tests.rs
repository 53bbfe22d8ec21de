use std::convert::Infallible;
use std::io;
use std::sync::Mutex;

use async_trait::async_trait;

use super::*;
use crate::bucket::{Created, Object};
use crate::clock::SharedRng;
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
        Err(BucketError::new("put", key, BucketErrorKind::OutcomeUnknown, "503"))
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
    Arc::new(MasterKeys::new(key(current), older.iter().map(|name| key(name)).collect(), SharedRng::from_seed(7)))
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
        for size in
            [0, 1, 1_000, PIECE, MAX_BUFFERED_BYTES - 1, MAX_BUFFERED_BYTES, MAX_BUFFERED_BYTES + 1, 6 * 1024 * 1024]
        {
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
async fn digests_do_not_depend_on_the_pieces_in_which_a_body_comes() {
    let bucket = Spy::new();
    let bytes = content(2 * MIN_OFFLOADED_BYTES + 1);
    let sha256 = hex::encode(Sha256::digest(&bytes));
    for size in [
        101,
        MIN_OFFLOADED_BYTES / 64,
        MIN_OFFLOADED_BYTES / 64 + 1,
        MIN_OFFLOADED_BYTES - 1,
        MIN_OFFLOADED_BYTES,
        bytes.len(),
    ] {
        let stored = plain(&bucket).store(&key(), in_pieces(&bytes, size), u64::MAX).await.expect("works");
        assert_eq!(stored.sha256, sha256, "by {size}");
    }
}

#[tokio::test]
async fn a_body_that_is_too_large_or_breaks_off_leaves_nothing_behind() {
    let bucket = Spy::new();
    for blobs in [plain(&bucket), sealed(&bucket)] {
        for size in [11, MAX_BUFFERED_BYTES + 11, 7 * 1024 * 1024] {
            let limit = size as u64 - 1;
            let refused = blobs.store(&key(), in_pieces(&content(size), 10_007), limit).await;
            assert!(matches!(refused, Err(BlobError::TooLarge { limit: named }) if named == limit), "{refused:?}");

            let cut = in_pieces(&content(size), 10_007).map_err(|never| match never {}).chain(stream::once(async {
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
    let blobs = Blobs::new(Arc::new(Retrying::new(Arc::clone(&bucket) as _, SharedRng::from_seed(1))), None);
    let stored = blobs.store_bytes(&key(), content(MAX_BUFFERED_BYTES)).await.expect("sent again");
    assert_eq!(stored.sha256, hex::encode(Sha256::digest(content(MAX_BUFFERED_BYTES))));

    *bucket.writes_to_refuse.lock().expect("no panic") = 1;
    let error = blobs.store_bytes(&key(), content(MAX_BUFFERED_BYTES + 1)).await.expect_err("flows past only once");
    assert!(matches!(error, BlobError::Bucket(error) if error.is_outcome_unknown()));
}

#[tokio::test]
async fn ranges_are_slices_and_read_no_more_than_they_need() {
    let bucket = Spy::new();
    let size = 5 * PIECE + 100;
    let bytes = content(size);
    for (blobs, is_sealed) in [(plain(&bucket), false), (sealed(&bucket), true)] {
        blobs.store_bytes(&key(), bytes.clone()).await.expect("works");
        let borders = [0, 1, PIECE - 1, PIECE, PIECE + 1, 3 * PIECE, size - 100, size - 1, size, size + 1, size * 2];
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
        assert_eq!(error.kind, BucketErrorKind::Refused);
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

#[tokio::test]
async fn another_content_under_the_same_key_is_noticed_even_if_it_is_sealed() {
    for open in [plain, sealed] {
        let bucket = Spy::new();
        let blobs = open(&bucket);
        let stored = blobs.store_bytes(&key(), content(70_000)).await.expect("stored");
        let read = blobs.read_compared(&key(), &stored).await.expect("there");
        assert_eq!(all(read.body).await.expect("the same"), content(70_000));
        blobs.store_bytes(&key(), content(70_001).slice(1..)).await.expect("stored over it");
        let read = blobs.read_compared(&key(), &stored).await.expect("of the same size");
        assert!(all(read.body).await.expect_err("another content").to_string().contains("SHA-256"));
        blobs.store_bytes(&key(), content(9)).await.expect("stored over it");
        assert!(blobs.read_compared(&key(), &stored).await.is_err(), "another size");
        blobs.remove(&key()).await.expect("removed");
        assert!(matches!(blobs.read_compared(&key(), &stored).await, Err(BlobError::Missing(_))));
    }
}
