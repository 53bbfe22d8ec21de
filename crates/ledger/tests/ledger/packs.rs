//! Old commits are packed, and nobody who reads them can tell.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use jiff::SignedDuration;
use taco_ledger::bucket::{ByteStream, Created, Download, Object};
use taco_ledger::{Bucket, BucketError, BucketErrorKind, Error, Hash, Key, Ledger, Options, audit, layout};

use crate::common::{Counters, add, environment, memory, name};

fn options() -> Options {
    // A state of one counter is soon outweighed: there is a snapshot after 4, 12, 20 and so on.
    Options { snapshot_every: 4, pack_commits: 5, pack_after: SignedDuration::ZERO, ..Options::default() }
}

async fn open(bucket: &Arc<dyn Bucket>, server: &str) -> Result<Ledger<Counters>, Error> {
    Ledger::open(environment(Arc::clone(bucket), server, 0), name(), options()).await
}

async fn snapshot_is_there(bucket: &Arc<dyn Bucket>, seq: u64) {
    while bucket.stat(&layout::snapshot(&name(), seq)).await.expect("an answer").is_none() {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

/// 22 commits, of which the first ten are settled.
async fn with_a_log() -> (Arc<dyn Bucket>, Ledger<Counters>) {
    let bucket = memory();
    let ledger = open(&bucket, "one").await.expect("opened");
    for seq in 1..=22 {
        add(&ledger, "a").await.expect("committed");
        if seq % 8 == 4 {
            snapshot_is_there(&bucket, seq).await;
        } else if seq % 4 == 0 {
            let key = layout::delta(&name(), seq - 4, seq);
            while bucket.stat(&key).await.expect("an answer").is_none() {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        }
    }
    (bucket, ledger)
}

async fn pack_all(ledger: &Ledger<Counters>) -> usize {
    let mut packs = 0;
    while ledger.pack_settled().await.expect("packed") {
        packs += 1;
    }
    packs
}

async fn objects(bucket: &Arc<dyn Bucket>) -> BTreeMap<Key, Bytes> {
    let mut objects = BTreeMap::new();
    for key in bucket.list(&layout::ledgers(), None).await.expect("a listing") {
        objects.insert(key.clone(), bucket.get(&key).await.expect("read").expect("there").bytes);
    }
    objects
}

async fn copy_of(bucket: &Arc<dyn Bucket>) -> Arc<dyn Bucket> {
    let copy = memory();
    for (key, bytes) in objects(bucket).await {
        copy.put(&key, bytes).await.expect("written");
    }
    copy
}

async fn verified(bucket: &Arc<dyn Bucket>) -> (u64, Hash, u64) {
    let report = audit::verify(&**bucket, None, None).await.expect("a readable bucket").remove(0);
    assert!(report.is_sound(), "{report:?}");
    (report.commits, report.last, report.packed)
}

#[tokio::test]
async fn packed_commits_read_as_they_were_written() {
    let (bucket, ledger) = with_a_log().await;
    let before = (verified(&bucket).await, ledger.history(1..=22).await.expect("a history"));
    let plain = objects(&bucket).await;
    assert_eq!(pack_all(&ledger).await, 2);
    let after = (verified(&bucket).await, ledger.history(1..=22).await.expect("a history"));
    assert_eq!((before.0.0, before.0.1), (after.0.0, after.0.1), "as many commits, and the same last hash");
    assert_eq!((before.0.2, after.0.2), (0, 10));
    assert_eq!(format!("{:?}", before.1), format!("{:?}", after.1));
    let packed = objects(&bucket).await;
    for (key, bytes) in &plain {
        let is_packed = key.as_str().contains("/log/") && layout::number_of(key).is_some_and(|seq| seq <= 10);
        assert_eq!(packed[key] != bytes, is_packed, "{key}");
        assert!(!is_packed || packed[key].len() < 40, "{key}");
    }
    let replayed: Counters = audit::replay(&*bucket, &name()).await.expect("a sound log");
    assert_eq!(replayed.count("a"), 22);
    assert_eq!(add(&open(&bucket, "another").await.expect("opened"), "a").await.expect("committed"), 23);
}

#[tokio::test]
async fn a_server_without_snapshots_begins_with_the_packs() {
    let (bucket, ledger) = with_a_log().await;
    pack_all(&ledger).await;
    for folder in [layout::snapshots(&name()), layout::deltas(&name())] {
        for key in bucket.list(&folder, None).await.expect("a listing") {
            bucket.delete(&key).await.expect("gone");
        }
    }
    assert_eq!(open(&bucket, "another").await.expect("opened").last_seen().count("a"), 22);
}

#[tokio::test]
async fn nothing_young_or_unsettled_is_packed() {
    let (bucket, ledger) = with_a_log().await;
    let young = Options { pack_after: SignedDuration::from_hours(1), ..options() };
    let patient = Ledger::<Counters>::open(environment(Arc::clone(&bucket), "patient", 0), name(), young);
    assert_eq!(pack_all(&patient.await.expect("opened")).await, 0);
    assert_eq!(pack_all(&ledger).await, 2, "the newest two snapshots are after 12 and 20");
    assert_eq!(verified(&bucket).await.2, 10);
}

/// Refuses every write from a certain one on: as if the process had been killed there.
#[derive(Debug)]
struct Killed {
    bucket: Arc<dyn Bucket>,
    writes_left: AtomicI64,
}

impl Killed {
    async fn write<T>(&self, key: &Key, work: impl Future<Output = Result<T, BucketError>>) -> Result<T, BucketError> {
        match self.writes_left.fetch_sub(1, Ordering::SeqCst) {
            ..=0 => Err(BucketError::new("put", key, BucketErrorKind::Refused, "the process was killed")),
            _ => work.await,
        }
    }
}

#[async_trait]
impl Bucket for Killed {
    async fn create(&self, key: &Key, bytes: Bytes) -> Result<Created, BucketError> {
        self.write(key, self.bucket.create(key, bytes)).await
    }
    async fn put(&self, key: &Key, bytes: Bytes) -> Result<(), BucketError> {
        self.write(key, self.bucket.put(key, bytes)).await
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
        self.write(key, self.bucket.delete(key)).await
    }
    async fn upload(&self, key: &Key, body: ByteStream) -> Result<u64, BucketError> {
        self.bucket.upload(key, body).await
    }
    async fn download(&self, key: &Key, range: Option<Range<u64>>) -> Result<Option<Download>, BucketError> {
        self.bucket.download(key, range).await
    }
}

#[tokio::test]
async fn whoever_is_killed_between_any_two_writes_loses_nothing_and_the_next_goes_on() {
    let (bucket, ledger) = with_a_log().await;
    let before = verified(&bucket).await;
    drop(ledger);
    // Two packs of five commits each are twelve writes.
    for writes in 0..=12 {
        let bucket = copy_of(&bucket).await;
        let killed: Arc<dyn Bucket> =
            Arc::new(Killed { bucket: Arc::clone(&bucket), writes_left: AtomicI64::new(writes) });
        let ledger = open(&killed, "killed").await.expect("opened");
        while let Ok(true) = ledger.pack_settled().await {}
        assert_eq!((verified(&bucket).await.0, verified(&bucket).await.1), (before.0, before.1), "after {writes}");
        let next = open(&bucket, "the next one").await.expect("opened");
        pack_all(&next).await;
        assert_eq!(verified(&bucket).await, (before.0, before.1, 10), "after {writes}");
        for seq in 1..=10 {
            let place = bucket.get(&layout::commit(&name(), seq)).await.expect("read").expect("there");
            assert!(place.bytes.len() < 40, "after {writes}: commit {seq} is still in its place");
        }
        assert_eq!(next.history([1, 7]).await.expect("a history").len(), 2);
    }
}

#[tokio::test]
async fn two_servers_that_pack_at_once_are_in_nobodys_way() {
    let (bucket, one) = with_a_log().await;
    let other = open(&bucket, "the other").await.expect("opened");
    let before = verified(&bucket).await;
    tokio::join!(pack_all(&one), pack_all(&other));
    assert_eq!(verified(&bucket).await, (before.0, before.1, 10));
}

/// Stops a writer in the middle of a commit: the commit is written, the answer never comes.
#[derive(Debug)]
struct Stalling {
    bucket: Arc<dyn Bucket>,
    stalls: std::sync::atomic::AtomicBool,
    written: tokio::sync::Notify,
    goes_on: tokio::sync::Notify,
    /// True if the commit that stalls gets to the bucket before, and not never.
    writes: bool,
}

#[async_trait]
impl Bucket for Stalling {
    async fn create(&self, key: &Key, bytes: Bytes) -> Result<Created, BucketError> {
        if key.as_str().contains("/log/") && self.stalls.swap(false, Ordering::SeqCst) {
            if self.writes {
                self.bucket.create(key, bytes.clone()).await?;
            }
            self.written.notify_one();
            self.goes_on.notified().await;
            if self.writes {
                return Err(BucketError::new("create", key, BucketErrorKind::OutcomeUnknown, "the answer was lost"));
            }
        }
        self.bucket.create(key, bytes).await
    }
    async fn put(&self, key: &Key, bytes: Bytes) -> Result<(), BucketError> {
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
        self.bucket.upload(key, body).await
    }
    async fn download(&self, key: &Key, range: Option<Range<u64>>) -> Result<Option<Download>, BucketError> {
        self.bucket.download(key, range).await
    }
}

#[tokio::test]
async fn a_writer_that_was_stalled_over_the_packing_learns_what_became_of_its_commit() {
    for writes in [true, false] {
        let bucket = memory();
        let stalling = Arc::new(Stalling {
            bucket: Arc::clone(&bucket),
            stalls: std::sync::atomic::AtomicBool::new(true),
            written: tokio::sync::Notify::new(),
            goes_on: tokio::sync::Notify::new(),
            writes,
        });
        let stalled = open(&(Arc::clone(&stalling) as Arc<dyn Bucket>), "a stalled server").await.expect("opened");
        let waiting = tokio::spawn(async move { add(&stalled, "stalled").await });
        stalling.written.notified().await;
        let other = open(&bucket, "another").await.expect("opened");
        let others = if writes { 21 } else { 22 };
        for _ in 0..others {
            add(&other, "a").await.expect("committed");
            let seq = other.last_seen().seq();
            if seq % 8 == 4 {
                snapshot_is_there(&bucket, seq).await;
            }
        }
        pack_all(&other).await;
        let place = bucket.get(&layout::commit(&name(), 1)).await.expect("read").expect("there");
        assert!(place.bytes.len() < 40, "the first commit is packed");
        stalling.goes_on.notify_one();
        // Written before, or decided anew and written behind all others: in any case once.
        assert_eq!(waiting.await.expect("no panic").expect("committed"), 1);
        let view = other.read().await.expect("read");
        assert_eq!((view.count("stalled"), view.count("a")), (1, others));
        assert_eq!(view.seq(), if writes { 22 } else { 23 });
        verified(&bucket).await;
    }
}

#[tokio::test]
async fn a_damaged_or_missing_pack_is_reported_with_what_it_has() {
    for is_missing in [false, true] {
        let (bucket, ledger) = with_a_log().await;
        pack_all(&ledger).await;
        let key = layout::pack(&name(), 6, 10);
        let mut bytes = bucket.get(&key).await.expect("read").expect("there").bytes.to_vec();
        let middle = bytes.len() / 2;
        bytes[middle] ^= 1;
        match is_missing {
            true => bucket.delete(&key).await.expect("gone"),
            false => bucket.put(&key, bytes.into()).await.expect("written"),
        }
        let report = audit::verify(&*bucket, None, None).await.expect("a readable bucket").remove(0);
        let told: Vec<_> = report.problems.iter().map(ToString::to_string).collect();
        assert!(told.iter().any(|told| told.contains(key.as_str())) && report.commits == 5, "{told:?}");
        assert!(told.iter().any(|told| told.contains("commits 6 to 10") || is_missing), "{told:?}");
        // Whoever needs none of it goes on.
        let another = open(&bucket, "another").await.expect("opened");
        assert_eq!(add(&another, "a").await.expect("committed"), 23);
        let error = another.history([7]).await.expect_err("it is lost");
        assert!(error.to_string().contains(key.as_str()), "{error}");
        assert_eq!(another.history([5]).await.expect("a history").len(), 1);
    }
}

#[tokio::test]
async fn a_pack_that_is_not_what_the_log_has_overwrites_nothing() {
    let (bucket, ledger) = with_a_log().await;
    // A pack of the same numbers, of another log.
    let (other_bucket, other) = with_a_log().await;
    pack_all(&other).await;
    let key = layout::pack(&name(), 1, 5);
    let foreign = other_bucket.get(&key).await.expect("read").expect("there").bytes;
    bucket.put(&key, foreign).await.expect("written");
    let before = objects(&bucket).await;
    let error = ledger.pack_settled().await.expect_err("it has other commits");
    assert!(matches!(error, Error::Corrupt { .. }), "{error}");
    assert_eq!(objects(&bucket).await, before);
}

#[tokio::test]
async fn an_altered_place_of_a_packed_commit_is_found() {
    let (bucket, ledger) = with_a_log().await;
    let original = bucket.get(&layout::commit(&name(), 3)).await.expect("read").expect("there").bytes;
    pack_all(&ledger).await;
    let forged = String::from_utf8_lossy(&original).replace("\"count\":3", "\"count\":9");
    bucket.put(&layout::commit(&name(), 3), forged.into()).await.expect("written");
    let report = audit::verify(&*bucket, None, None).await.expect("a readable bucket").remove(0);
    assert!(report.problems[0].to_string().contains("00003.json"), "{report:?}");
    bucket.delete(&layout::commit(&name(), 3)).await.expect("gone");
    let report = audit::verify(&*bucket, None, None).await.expect("a readable bucket").remove(0);
    assert!(report.problems[0].to_string().contains("nothing lies in its place"), "{report:?}");
}

#[tokio::test]
async fn nothing_is_packed_while_a_server_is_alive_that_could_not_read_it() {
    let (bucket, ledger) = with_a_log().await;
    drop(ledger);
    let clock = Arc::new(taco_ledger::SystemClock);
    let beacons = taco_ledger::beacon::Beacons::new(Arc::clone(&bucket), clock, "own", None, Duration::from_secs(20));
    let old = r#"{"format":1,"server":"old","started_at":"2026-01-01T00:00:00Z","at":"2026-01-01T00:00:00Z","features":["history"]}"#;
    bucket.put(&layout::beacon("old"), old.into()).await.expect("written");
    beacons.run_round().await.expect("heard");
    let environment = taco_ledger::Environment { peers: beacons.peers(), ..environment(Arc::clone(&bucket), "own", 0) };
    let ledger = Ledger::<Counters>::open(environment, name(), options()).await.expect("opened");
    assert_eq!(ledger.last_seen().count("a"), 22);
    assert_eq!(pack_all(&ledger).await, 0);
    bucket.delete(&layout::beacon("old")).await.expect("gone");
    beacons.run_round().await.expect("heard");
    assert_eq!(pack_all(&ledger).await, 2);
}
