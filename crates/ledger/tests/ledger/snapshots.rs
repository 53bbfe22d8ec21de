//! Snapshots and deltas: shortcuts that add up to the log, cost what changed, and stand in nobody's way.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use serde_json::value::RawValue;
use taco_ledger::bucket::{ByteStream, Created, Download, Object, Stat};
use taco_ledger::{Bucket, BucketError, Key, Ledger, Options, SharedRng, audit, layout};
use taco_tables::{RecordKey, State};
use tokio::sync::Notify;

use crate::common::{Counter, Counters, add, environment, intent, memory, name, open};

const SNAPSHOT_INTERVAL: u64 = 10;

fn text_of(state: &Counters) -> Vec<String> {
    let mut lines = Vec::new();
    state.for_each_json(&mut |kind, id, value| lines.push(format!("{kind} {id} {}", value.get()))).expect("plain data");
    lines
}

async fn keys(bucket: &Arc<dyn Bucket>, folder: &Key) -> Vec<String> {
    let keys = bucket.list(folder, None).await.expect("a listing");
    keys.iter().map(|key| key.file_name().to_owned()).collect()
}

async fn there(bucket: &Arc<dyn Bucket>, key: &Key) {
    while bucket.stat(key).await.expect("an answer").is_none() {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

/// Waits until a chain of a snapshot and deltas leads to this commit.
async fn shortcut_to(bucket: &Arc<dyn Bucket>, seq: u64) {
    let ending = format!("{seq:020}.jsonl.zst");
    loop {
        let mut all = keys(bucket, &layout::snapshots(&name())).await;
        all.extend(keys(bucket, &layout::deltas(&name())).await);
        if all.iter().any(|key| key.ends_with(&ending)) {
            return;
        }
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

async fn is_sound(bucket: &Arc<dyn Bucket>) -> audit::LedgerReport {
    let report = audit::verify(&**bucket, None, None).await.expect("a readable bucket").remove(0);
    assert!(report.is_sound(), "{report:?}");
    report
}

/// A large state, so that a delta is small beside it.
async fn with_many_counters(ledger: &Ledger<Counters>, number: u64) {
    ledger
        .commit(intent("counter.fill"), move |transaction| {
            for counter in 0..number {
                // Numbers that do not compress well.
                let count = counter.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 8;
                transaction.put(&Counter { id: format!("filling-{count:x}"), count });
            }
            Ok::<_, ()>(())
        })
        .await
        .expect("committed");
}

/// Commits up to and with this number, and waits for whatever shortcut is due on the way.
async fn commit_to(bucket: &Arc<dyn Bucket>, ledger: &Ledger<Counters>, seq: u64) {
    loop {
        let now = ledger.read().await.expect("read").seq();
        if now.is_multiple_of(SNAPSHOT_INTERVAL) && now > 0 {
            shortcut_to(bucket, now).await;
        }
        if now >= seq {
            return;
        }
        add(ledger, "a").await.expect("committed");
    }
}

#[tokio::test]
async fn a_delta_has_what_changed_and_a_whole_state_comes_when_deltas_outweigh_it() {
    let bucket = memory();
    let ledger = open(&bucket).await.expect("opened");
    with_many_counters(&ledger, 300).await;
    commit_to(&bucket, &ledger, 60).await;
    let snapshots = keys(&bucket, &layout::snapshots(&name())).await;
    assert_eq!(snapshots, [layout::snapshot(&name(), 10).file_name()], "one state of 300 counters is enough");
    let deltas = [(10, 20), (20, 30), (30, 40), (40, 50), (50, 60)];
    let wanted = deltas.map(|(from, to)| layout::delta(&name(), from, to).file_name().to_owned());
    assert_eq!(keys(&bucket, &layout::deltas(&name())).await, wanted);
    let size = async |key: Key| bucket.size(&key).await.expect("an answer").expect("there");
    let whole = size(layout::snapshot(&name(), 10)).await;
    let delta = size(layout::delta(&name(), 50, 60)).await;
    assert!(delta * 5 < whole, "a delta of {delta} bytes beside {whole}");

    commit_to(&bucket, &ledger, 400).await;
    let snapshots = keys(&bucket, &layout::snapshots(&name())).await;
    assert!((2..8).contains(&snapshots.len()), "{snapshots:?}");
    let report = is_sound(&bucket).await;
    assert_eq!(report.snapshots + report.deltas, 40);
}

#[tokio::test]
async fn chains_add_up_to_the_log_whatever_happened() {
    for seed in 0..12 {
        let (bucket, rng) = (memory(), SharedRng::from_seed(seed));
        let below = |limit: u64| (rng.fraction() * limit as f64) as u64;
        let ledger = open(&bucket).await.expect("opened");
        with_many_counters(&ledger, 40).await;
        for number in 0..60 {
            let changes: Vec<(u64, u64)> = (0..=below(4)).map(|_| (below(8), below(12))).collect();
            let change = ledger.commit(intent("anything"), move |transaction| {
                for (what, which) in &changes {
                    let (id, key) = (which.to_string(), RecordKey { kind: "counter".into(), id: which.to_string() });
                    let json = |text: String| RawValue::from_string(text).expect("JSON");
                    match what {
                        0 => transaction.delete::<Counter>(&id),
                        // Such as a newer server writes: with a field that is not known, one that cannot be read at all, and
                        // of a kind that is not known.
                        1 => transaction
                            .put_json(&key, &json(format!(r#"{{"id":"{id}","count":{number},"new":[{number}]}}"#))),
                        2 => transaction.put_json(&key, &json(format!(r#"{{"id":"{id}","count":"{number}"}}"#))),
                        3 => {
                            let key = RecordKey { kind: "newer".into(), ..key };
                            transaction.put_json(
                                &key,
                                &json(if number % 2 == 0 { "null".into() } else { number.to_string() }),
                            );
                        }
                        // What is there already, just so.
                        4 => {
                            if let Some(counter) = transaction.state().counters.get(&id).cloned() {
                                transaction.put(&counter);
                            }
                        }
                        _ => transaction.put(&Counter { id, count: number }),
                    }
                }
                Ok::<_, ()>(())
            });
            // Where something cannot be read, changes may be refused.
            let _ = change.await;
            let seq = ledger.last_seen().seq();
            if seq.is_multiple_of(SNAPSHOT_INTERVAL) {
                shortcut_to(&bucket, seq).await;
            }
        }
        let seq = ledger.last_seen().seq();
        let replayed: Counters = audit::replay(&*bucket, &name()).await.expect("a sound log");
        let fresh = open(&bucket).await.expect("opened");
        assert_eq!(text_of(&fresh.last_seen()), text_of(&replayed), "seed {seed}");
        assert_eq!(fresh.last_seen().seq(), seq);
        let deltas = is_sound(&bucket).await.deltas;
        assert!(deltas > 0, "seed {seed}: there are deltas");
    }
}

/// A ledger whose chain is a snapshot after 10 and deltas up to 40, and 43 commits.
async fn with_a_chain() -> Arc<dyn Bucket> {
    let bucket = memory();
    let ledger = open(&bucket).await.expect("opened");
    with_many_counters(&ledger, 300).await;
    commit_to(&bucket, &ledger, 43).await;
    bucket
}

#[tokio::test]
async fn a_damaged_delta_is_reported_and_passed_over() {
    let bucket = with_a_chain().await;
    let key = layout::delta(&name(), 20, 30);
    let mut bytes = bucket.get(&key).await.expect("read").expect("there").bytes.to_vec();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    bucket.put(&key, bytes.clone().into()).await.expect("written");
    let ledger = open(&bucket).await.expect("the log has everything");
    assert_eq!(ledger.read().await.expect("read").count("a"), 42);
    let report = audit::verify(&*bucket, None, None).await.expect("a readable bucket").remove(0);
    assert_eq!(report.problems.len(), 1, "{report:?}");
    assert!(report.problems[0].to_string().contains(key.as_str()), "{report:?}");
    assert_eq!(bucket.get(&key).await.expect("read").expect("there").bytes, bytes, "evidence is not overwritten");

    // What is written next does not rest on it.
    shortcut_to(&bucket, 43).await;
    bucket.delete(&key).await.expect("gone");
    bucket.delete(&layout::delta(&name(), 30, 40)).await.expect("gone");
    let problems = is_sound(&bucket).await.problems;
    assert!(problems.is_empty(), "{problems:?}");
    assert_eq!(
        keys(&bucket, &layout::deltas(&name())).await.last().map(String::as_str),
        Some(layout::delta(&name(), 20, 43).file_name())
    );
}

#[tokio::test]
async fn a_delta_of_another_place_is_passed_over() {
    let bucket = with_a_chain().await;
    let other = bucket.get(&layout::delta(&name(), 10, 20)).await.expect("read").expect("there").bytes;
    bucket.put(&layout::delta(&name(), 20, 30), other).await.expect("written");
    assert_eq!(open(&bucket).await.expect("opened").last_seen().count("a"), 42);
    let report = audit::verify(&*bucket, None, None).await.expect("a readable bucket").remove(0);
    assert_eq!(report.problems.len(), 1, "{report:?}");
}

#[tokio::test]
async fn a_missing_delta_or_snapshot_costs_time_and_nothing_else() {
    for missing in [layout::delta(&name(), 20, 30), layout::delta(&name(), 30, 40), layout::snapshot(&name(), 10)] {
        let bucket = with_a_chain().await;
        bucket.delete(&missing).await.expect("gone");
        let ledger = open(&bucket).await.expect("opened");
        assert_eq!(ledger.read().await.expect("read").count("a"), 42, "without {missing}");
        let report = audit::verify(&*bucket, None, None).await.expect("a readable bucket").remove(0);
        // The last delta is missed by nobody.
        assert_eq!(report.is_sound(), missing == layout::delta(&name(), 30, 40), "{report:?}");
        assert_eq!(add(&ledger, "a").await.expect("it goes on"), 43);
    }
}

/// Its writes of snapshots and deltas hang until they are let through.
#[derive(Debug)]
struct Hanging {
    bucket: Arc<dyn Bucket>,
    hangs: AtomicBool,
    met: Notify,
    let_through: Notify,
}

#[async_trait]
impl Bucket for Hanging {
    async fn create(&self, key: &Key, bytes: Bytes) -> Result<Created, BucketError> {
        if self.hangs.load(Ordering::SeqCst) && !key.as_str().contains("/log/") {
            self.met.notify_one();
            self.let_through.notified().await;
        }
        self.bucket.create(key, bytes).await
    }
    async fn put(&self, key: &Key, bytes: Bytes) -> Result<(), BucketError> {
        self.bucket.put(key, bytes).await
    }
    async fn get(&self, key: &Key) -> Result<Option<Object>, BucketError> {
        self.bucket.get(key).await
    }
    async fn stat(&self, key: &Key) -> Result<Option<Stat>, BucketError> {
        self.bucket.stat(key).await
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
async fn commits_do_not_wait_for_a_snapshot_and_what_is_due_meanwhile_is_merged() {
    let plain = memory();
    let hanging = Arc::new(Hanging {
        bucket: Arc::clone(&plain),
        hangs: AtomicBool::new(true),
        met: Notify::new(),
        let_through: Notify::new(),
    });
    let bucket: Arc<dyn Bucket> = Arc::clone(&hanging) as _;
    let ledger = open(&bucket).await.expect("opened");
    for _ in 0..10 {
        add(&ledger, "a").await.expect("committed");
    }
    hanging.met.notified().await;
    for count in 11..=45 {
        assert_eq!(add(&ledger, "a").await.expect("nobody waits"), count);
    }
    assert!(keys(&plain, &layout::snapshots(&name())).await.is_empty(), "it still hangs");
    hanging.hangs.store(false, Ordering::SeqCst);
    hanging.let_through.notify_one();
    shortcut_to(&plain, 40).await;
    assert_eq!(keys(&plain, &layout::snapshots(&name())).await, [layout::snapshot(&name(), 10).file_name()]);
    assert_eq!(keys(&plain, &layout::deltas(&name())).await, [layout::delta(&name(), 10, 40).file_name()]);
    is_sound(&plain).await;
}

#[tokio::test]
async fn two_servers_that_write_the_same_delta_write_the_same_bytes() {
    let bucket = with_a_chain().await;
    let (one, other) = (memory(), memory());
    // The same log on two buckets, and a server on each that finds a delta overdue.
    for key in bucket.list(&layout::ledgers(), None).await.expect("a listing") {
        let bytes = bucket.get(&key).await.expect("read").expect("there").bytes;
        if key != layout::delta(&name(), 30, 40) {
            one.put(&key, bytes.clone()).await.expect("written");
            other.put(&key, bytes).await.expect("written");
        }
    }
    let key = layout::delta(&name(), 30, 43);
    let mut written = Vec::new();
    for (server, bucket) in [("one", &one), ("the other", &other)] {
        let options = Options { snapshot_every: SNAPSHOT_INTERVAL, ..Options::default() };
        let environment = environment(Arc::clone(bucket), server, 0);
        let ledger = Ledger::<Counters>::open(environment, name(), options).await.expect("opened");
        there(bucket, &key).await;
        written.push(bucket.get(&key).await.expect("read").expect("there").bytes);
        drop(ledger);
    }
    assert_eq!(written[0], written[1]);
}

#[tokio::test]
async fn a_server_continues_the_deltas_of_another() {
    let bucket = memory();
    let server = async |server: &str| {
        let options = Options { snapshot_every: SNAPSHOT_INTERVAL, ..Options::default() };
        let environment = environment(Arc::clone(&bucket), server, 1);
        Ledger::<Counters>::open(environment, name(), options).await.expect("opened")
    };
    let (one, other) = (server("one").await, server("the other").await);
    with_many_counters(&one, 300).await;
    for seq in 2..=60 {
        // Now this one writes the tenth, now that one, who has only followed before.
        let writer = if (seq / 10) % 2 == 0 { &one } else { &other };
        add(writer, "a").await.expect("committed");
        if seq % SNAPSHOT_INTERVAL == 0 {
            shortcut_to(&bucket, seq).await;
        }
    }
    assert_eq!(keys(&bucket, &layout::snapshots(&name())).await.len(), 1, "nobody had to write all of it");
    is_sound(&bucket).await;
}

/// A bucket whose clock is moved by the test.
#[derive(Debug)]
struct Dated {
    bucket: Arc<dyn Bucket>,
    hours: std::sync::Mutex<std::collections::BTreeMap<Key, i64>>,
    now: std::sync::atomic::AtomicI64,
}

#[async_trait]
impl Bucket for Dated {
    async fn create(&self, key: &Key, bytes: Bytes) -> Result<Created, BucketError> {
        let created = self.bucket.create(key, bytes).await?;
        let now = self.now.load(Ordering::SeqCst);
        self.hours.lock().expect("no panic").entry(key.clone()).or_insert(now);
        Ok(created)
    }
    async fn put(&self, key: &Key, bytes: Bytes) -> Result<(), BucketError> {
        self.bucket.put(key, bytes).await
    }
    async fn get(&self, key: &Key) -> Result<Option<Object>, BucketError> {
        self.bucket.get(key).await
    }
    async fn stat(&self, key: &Key) -> Result<Option<Stat>, BucketError> {
        let hours = self.hours.lock().expect("no panic").get(key).copied().unwrap_or_default();
        let last_modified = jiff::Timestamp::UNIX_EPOCH + jiff::SignedDuration::from_hours(hours);
        Ok(self.bucket.stat(key).await?.map(|stat| Stat { last_modified, ..stat }))
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
async fn what_is_superseded_goes_after_an_hour() {
    let dated = Arc::new(Dated {
        bucket: memory(),
        hours: std::sync::Mutex::default(),
        now: std::sync::atomic::AtomicI64::new(1),
    });
    let bucket: Arc<dyn Bucket> = Arc::clone(&dated) as _;
    let ledger = open(&bucket).await.expect("opened");
    commit_to(&bucket, &ledger, 200).await;
    let snapshots = keys(&bucket, &layout::snapshots(&name())).await;
    assert!(snapshots.len() > 5, "small states are soon outweighed, and none is an hour old: {snapshots:?}");
    let superseded = is_sound(&bucket).await.superseded;
    assert!(superseded > 3, "{superseded}");

    dated.now.store(3, Ordering::SeqCst);
    commit_to(&bucket, &ledger, 260).await;
    // The last removal may still be under way.
    while is_sound(&bucket).await.superseded > 4 {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    let left = keys(&bucket, &layout::snapshots(&name())).await;
    assert!(!left.contains(&snapshots[0]), "{left:?}");
    assert_eq!(open(&bucket).await.expect("opened").last_seen().count("a"), 260);
}

#[tokio::test]
async fn a_server_that_died_before_its_delta_leaves_it_to_the_next() {
    let bucket = with_a_chain().await;
    bucket.delete(&layout::delta(&name(), 30, 40)).await.expect("it was never written");
    let ledger = open(&bucket).await.expect("opened");
    shortcut_to(&bucket, 43).await;
    assert_eq!(ledger.last_seen().count("a"), 42);
    is_sound(&bucket).await;
}
