use std::ops::Range;

use async_trait::async_trait;
use tokio::time::{advance, sleep};

use super::*;
use crate::bucket::{ByteStream, Created, Download, Object};
use crate::object_bucket::ObjectBucket;

/// A bucket in memory whose clock follows tokio's, apart from a skew that the test may set.
#[derive(Debug)]
struct ClockedBucket {
    bucket: ObjectBucket,
    begun: Instant,
    inner: Mutex<Inner>,
}

#[derive(Default, Debug)]
struct Inner {
    skew: SignedDuration,
    written: BTreeMap<Key, Timestamp>,
    requests: usize,
    stale_listing: Option<Vec<Key>>,
}

impl ClockedBucket {
    fn new() -> Arc<Self> {
        let inner = Mutex::default();
        Arc::new(Self { bucket: ObjectBucket::in_memory(), begun: Instant::now(), inner })
    }

    fn set_skew(&self, skew: SignedDuration) {
        self.inner.lock().expect("no panic").skew = skew;
    }

    fn take_requests(&self) -> usize {
        std::mem::take(&mut self.inner.lock().expect("no panic").requests)
    }

    fn count(&self) {
        self.inner.lock().expect("no panic").requests += 1;
    }

    fn stamp(&self, key: &Key) {
        let elapsed = SignedDuration::try_from(self.begun.elapsed()).expect("tests are short");
        let mut inner = self.inner.lock().expect("no panic");
        let now = Timestamp::from_second(1_800_000_000).expect("in range") + elapsed + inner.skew;
        inner.written.insert(key.clone(), now);
    }
}

#[async_trait]
impl Bucket for ClockedBucket {
    async fn create(&self, key: &Key, bytes: Bytes) -> Result<Created, BucketError> {
        self.count();
        self.bucket.create(key, bytes).await
    }

    async fn put(&self, key: &Key, bytes: Bytes) -> Result<(), BucketError> {
        self.count();
        self.stamp(key);
        tokio::task::yield_now().await;
        self.bucket.put(key, bytes).await
    }

    async fn get(&self, key: &Key) -> Result<Option<Object>, BucketError> {
        self.count();
        let found = self.bucket.get(key).await?;
        let inner = self.inner.lock().expect("no panic");
        Ok(found.map(|object| Object { last_modified: inner.written[key], ..object }))
    }

    async fn list(&self, folder: &Key, after: Option<&Key>) -> Result<Vec<Key>, BucketError> {
        self.count();
        let stale = self.inner.lock().expect("no panic").stale_listing.clone();
        match stale {
            Some(keys) => Ok(keys),
            None => self.bucket.list(folder, after).await,
        }
    }

    async fn folders(&self, folder: &Key) -> Result<Vec<String>, BucketError> {
        self.count();
        self.bucket.folders(folder).await
    }

    async fn delete(&self, key: &Key) -> Result<(), BucketError> {
        self.count();
        self.bucket.delete(key).await
    }

    async fn upload(&self, key: &Key, body: ByteStream) -> Result<u64, BucketError> {
        self.count();
        self.bucket.upload(key, body).await
    }

    async fn download(&self, key: &Key, range: Option<Range<u64>>) -> Result<Option<Download>, BucketError> {
        self.count();
        self.bucket.download(key, range).await
    }
}

/// A server's clock that is hours away from everyone else's.
#[derive(Debug)]
struct WrongClock(i64);

impl Clock for WrongClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_second(self.0).expect("in range")
    }
}

fn server(bucket: &Arc<ClockedBucket>, id: &str) -> Arc<Beacons> {
    let clock = WrongClock(1_700_000_000 + 10_000 * i64::try_from(id.len()).expect("short"));
    Arc::new(Beacons::new(Arc::clone(bucket) as _, Arc::new(clock), id, None, BEACON_INTERVAL))
}

fn names(peers: &Peers) -> Vec<String> {
    peers.list().into_iter().map(|beacon| beacon.server).collect()
}

#[tokio::test(start_paused = true)]
async fn servers_hear_each_other_and_how_far_they_are() {
    let bucket = ClockedBucket::new();
    let (one, other) = (server(&bucket, "one"), server(&bucket, "other"));
    let site = LedgerName::site();
    one.peers().note_commit(&site, 7);
    one.peers().note_commit(&site, 5);
    one.run_round().await.expect("works");
    other.run_round().await.expect("works");

    let peers = other.peers();
    assert_eq!(names(&peers), ["one"]);
    assert_eq!(peers.newest(&site), Some(7));
    assert_eq!(peers.newest(&"org-1".parse().expect("legal")), None);
    assert_eq!(one.peers().alive(), 0, "its round was over before the other appeared");

    one.peers().note_commit(&site, 8);
    one.run_round().await.expect("works");
    other.run_round().await.expect("works");
    assert_eq!(one.peers().alive(), 1);
    assert_eq!(peers.newest(&site), Some(8), "a handle follows later rounds");
}

#[tokio::test(start_paused = true)]
async fn a_peer_that_falls_silent_is_gone_after_three_intervals_and_can_come_back() {
    let bucket = ClockedBucket::new();
    let (one, other) = (server(&bucket, "one"), server(&bucket, "other"));
    let peers = one.peers();
    other.run_round().await.expect("works");
    for round in 0..=6 {
        one.run_round().await.expect("works");
        assert_eq!(peers.alive(), usize::from(round <= 3), "round {round}");
        advance(BEACON_INTERVAL).await;
    }
    // Seen again at the latest after the rounds in which a silent one is not looked at.
    for _ in 0..SILENT_PEER_POLL_ROUNDS {
        other.run_round().await.expect("works");
        one.run_round().await.expect("works");
        advance(BEACON_INTERVAL).await;
    }
    assert_eq!(names(&peers), ["other"]);
}

#[tokio::test(start_paused = true)]
async fn a_beacon_left_by_a_crash_is_dead_at_first_sight_and_swept_in_the_end() {
    let bucket = ClockedBucket::new();
    server(&bucket, "crashed").run_round().await.expect("works");
    advance(BEACON_INTERVAL * 10).await;
    let one = server(&bucket, "one");
    one.run_round().await.expect("works");
    assert_eq!(one.peers().alive(), 0);
    assert!(bucket.bucket.get(&layout::beacon("crashed")).await.expect("works").is_some());

    for _ in 0..100 {
        advance(BEACON_INTERVAL).await;
        one.run_round().await.expect("works");
    }
    assert!(bucket.bucket.get(&layout::beacon("crashed")).await.expect("works").is_none());
}

#[tokio::test(start_paused = true)]
async fn a_server_that_slept_does_not_take_an_old_change_for_life() {
    let bucket = ClockedBucket::new();
    let (one, other) = (server(&bucket, "one"), server(&bucket, "other"));
    other.run_round().await.expect("works");
    one.run_round().await.expect("works");
    advance(BEACON_INTERVAL).await;
    other.run_round().await.expect("works");
    advance(BEACON_INTERVAL * 30).await;
    one.run_round().await.expect("works");
    assert_eq!(one.peers().alive(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_jump_of_the_buckets_clock_buries_nobody_who_beats() {
    let bucket = ClockedBucket::new();
    let (one, other) = (server(&bucket, "one"), server(&bucket, "other"));
    for hours in [0, 5, -5, 0] {
        bucket.set_skew(SignedDuration::from_hours(hours));
        other.run_round().await.expect("works");
        one.run_round().await.expect("works");
        assert_eq!(names(&one.peers()), ["other"], "{hours} hours");
        advance(BEACON_INTERVAL).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_lagging_listing_hides_no_peer_that_is_known() {
    let bucket = ClockedBucket::new();
    let (one, other) = (server(&bucket, "one"), server(&bucket, "other"));
    other.run_round().await.expect("works");
    one.run_round().await.expect("works");
    bucket.inner.lock().expect("no panic").stale_listing = Some(Vec::new());
    other.run_round().await.expect("works");
    one.run_round().await.expect("works");
    assert_eq!(one.peers().alive(), 1);

    other.retire().await.expect("works");
    one.run_round().await.expect("works");
    assert_eq!(one.peers().alive(), 0, "retired is retired");
}

#[tokio::test(start_paused = true)]
async fn a_beacon_that_makes_no_sense_stops_nobody() {
    let bucket = ClockedBucket::new();
    let (one, other) = (server(&bucket, "one"), server(&bucket, "other"));
    let stolen = r#"{"format":1,"server":"../one","started_at":"2026-01-01T00:00:00Z","at":"2026-01-01T00:00:00Z"}"#;
    for (id, text) in [("broken", "{\"format\":1,"), ("empty", ""), ("thief", stolen)] {
        bucket.put(&layout::beacon(id), Bytes::from(text)).await.expect("works");
    }
    other.run_round().await.expect("works");
    one.run_round().await.expect("works");
    assert_eq!(names(&one.peers()), ["other"]);
}

#[tokio::test(start_paused = true)]
async fn a_write_that_nobody_waits_for_does_not_bring_a_beacon_back() {
    let bucket = ClockedBucket::new();
    let one = server(&bucket, "one");
    for polls in 0..4 {
        let mut beat = Box::pin(one.run_round());
        for _ in 0..polls {
            assert!(futures::poll!(beat.as_mut()).is_pending(), "the round is not over after {polls} polls");
        }
        drop(beat);
        one.retire().await.expect("works");
        sleep(Duration::from_secs(1)).await;
        assert!(bucket.get(&layout::beacon("one")).await.expect("works").is_none(), "given up after {polls} polls");
    }
}

#[tokio::test(start_paused = true)]
async fn fields_of_a_newer_version_are_no_trouble() {
    let bucket = ClockedBucket::new();
    let text = r#"{"format":2,"server":"newer","started_at":"2026-01-01T00:00:00Z","at":"2026-01-01T00:00:00Z",
        "address":"https://10.0.0.7:8080","ledgers":{"site":3},"mood":{"good":true}}"#;
    bucket.put(&layout::beacon("newer"), Bytes::from(text)).await.expect("works");
    let one = server(&bucket, "one");
    one.run_round().await.expect("works");
    let [newer] = &one.peers().list()[..] else { panic!("one peer") };
    assert_eq!(newer.address.as_ref().map(Url::as_str), Some("https://10.0.0.7:8080/"));
    assert_eq!(newer.ledgers["site"], 3);
}

#[tokio::test(start_paused = true)]
async fn two_idle_servers_cost_under_twenty_requests_a_minute_and_retire_when_told() {
    let bucket = ClockedBucket::new();
    let (stop, stopped) = watch::channel(false);
    let mut tasks = Vec::new();
    let mut peers = Vec::new();
    for id in ["one", "other"] {
        let beacons = server(&bucket, id);
        peers.push(beacons.peers());
        let mut stopped = stopped.clone();
        tasks.push(tokio::spawn(async move {
            beacons.run(async { drop(stopped.wait_for(|stopped| *stopped).await) }).await;
        }));
        sleep(Duration::from_secs(7)).await;
    }
    sleep(Duration::from_secs(60)).await;
    bucket.take_requests();
    sleep(Duration::from_secs(600)).await;
    let requests = bucket.take_requests();
    assert!(requests <= 200, "{requests} in ten minutes");
    assert!(peers.iter().all(|peers| peers.alive() == 1));

    stop.send_replace(true);
    for task in tasks {
        task.await.expect("ends");
    }
    assert!(bucket.bucket.list(&layout::beacons(), None).await.expect("works").is_empty());
}

#[test]
fn made_up_peers_are_as_many_as_asked_for() {
    assert_eq!(Peers::none().alive(), 0);
    assert_eq!(Peers::fixed(2).alive(), 2);
    assert_eq!(Peers::fixed(2).newest(&LedgerName::site()), None);
}
