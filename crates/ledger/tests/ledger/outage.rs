//! A bucket that is gone or frozen is told in time, whatever was under way when it went. Time is made to pass, so that
//! what is asserted here is how the waits add up, on any machine.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use async_trait::async_trait;
use bytes::Bytes;
use taco_ledger::bucket::{ByteStream, Created, Download, Object};
use taco_ledger::{Bucket, BucketError, BucketErrorKind, CALLER_TIMEOUT, CommitError, Error, Key, Ledger};
use tokio::time::Instant;

use crate::common::{Counters, add, memory, open};

const WELL: u8 = 0;
/// Requests are refused at once, as where nothing listens any more.
const GONE: u8 = 1;
/// Requests get no answer, as of a process that was stopped.
const FROZEN: u8 = 2;

#[derive(Debug)]
struct Moody {
    bucket: Arc<dyn Bucket>,
    mood: AtomicU8,
}

impl Moody {
    async fn answer<T>(
        &self,
        operation: &'static str,
        key: &Key,
        work: impl Future<Output = Result<T, BucketError>>,
    ) -> Result<T, BucketError> {
        match self.mood.load(Ordering::SeqCst) {
            WELL => work.await,
            GONE => Err(BucketError::new(operation, key, BucketErrorKind::OutcomeUnknown, "connection refused")),
            _ => std::future::pending().await,
        }
    }
}

#[async_trait]
impl Bucket for Moody {
    async fn create(&self, key: &Key, bytes: Bytes) -> Result<Created, BucketError> {
        self.answer("create", key, self.bucket.create(key, bytes)).await
    }

    async fn put(&self, key: &Key, bytes: Bytes) -> Result<(), BucketError> {
        self.answer("put", key, self.bucket.put(key, bytes)).await
    }

    async fn get(&self, key: &Key) -> Result<Option<Object>, BucketError> {
        self.answer("get", key, self.bucket.get(key)).await
    }

    async fn list(&self, folder: &Key, after: Option<&Key>) -> Result<Vec<Key>, BucketError> {
        self.answer("list", folder, self.bucket.list(folder, after)).await
    }

    async fn folders(&self, folder: &Key) -> Result<Vec<String>, BucketError> {
        self.answer("list", folder, self.bucket.folders(folder)).await
    }

    async fn delete(&self, key: &Key) -> Result<(), BucketError> {
        self.answer("delete", key, self.bucket.delete(key)).await
    }

    async fn upload(&self, key: &Key, body: ByteStream) -> Result<u64, BucketError> {
        self.answer("upload", key, self.bucket.upload(key, body)).await
    }

    async fn download(&self, key: &Key, range: Option<Range<u64>>) -> Result<Option<Download>, BucketError> {
        self.answer("download", key, self.bucket.download(key, range)).await
    }
}

/// Asks for something while the bucket is away, and when something else was asked already.
async fn is_told_in_time(ledger: &Ledger<Counters>, what: &str, mood: u8) {
    let begun = Instant::now();
    let read = async { ledger.read().await.map(|_| ()) };
    let write = async {
        match add(ledger, "a").await {
            Err(CommitError::Ledger(error)) => Err(error),
            other => panic!("{what}: {other:?}"),
        }
    };
    // A request looks first, and whatever it does then it does only if that went well; here it meets the outage at
    // either. What it says on the way out may need another look, which finds out sooner.
    let told = match what {
        "read" => read.await,
        "write" => write.await,
        "read again" => read.await.and(ledger.read().await.map(|_| ())),
        _ => unreachable!("{what}"),
    };
    assert!(matches!(told, Err(Error::Unavailable(_))), "{what} in mood {mood}: {told:?}");
    assert!(begun.elapsed() < CALLER_TIMEOUT, "{what} in mood {mood} took {:?}", begun.elapsed());
}

#[tokio::test(start_paused = true)]
async fn a_bucket_that_does_not_answer_is_told_within_ten_seconds() {
    for mood in [GONE, FROZEN] {
        for what in ["read", "write", "read again"] {
            let bucket = Arc::new(Moody { bucket: memory(), mood: AtomicU8::new(WELL) });
            let shared: Arc<dyn Bucket> = Arc::clone(&bucket) as _;
            let ledger = open(&shared).await.expect("opened");
            add(&ledger, "a").await.expect("committed");
            bucket.mood.store(mood, Ordering::SeqCst);
            // Others came before, at all times: what they wait for is waited for by whoever comes now as well.
            let others: Vec<_> = (0..8)
                .map(|number| {
                    let ledger = ledger.clone();
                    tokio::spawn(async move {
                        tokio::time::sleep(std::time::Duration::from_millis(900 * number)).await;
                        let (read, written) = tokio::join!(ledger.read(), add(&ledger, "a"));
                        assert!(read.is_err() && written.is_err(), "it is away");
                    })
                })
                .collect();
            for wait in [0, 500, 3_000, 2_900] {
                tokio::time::sleep(std::time::Duration::from_millis(wait)).await;
                is_told_in_time(&ledger, what, mood).await;
            }
            for other in others {
                other.await.expect("it was told");
            }
            bucket.mood.store(WELL, Ordering::SeqCst);
            add(&ledger, "a").await.expect("it is well again");
            ledger.read().await.expect("it is well again");
        }
    }
}
