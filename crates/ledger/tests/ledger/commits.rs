//! Guarantees to callers of `commit` and `read`.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use crate::common::{Counter, Counters, add, environment, intent, memory, name, open};
use futures::future::join_all;
use taco_ledger::beacon::Beacons;
use taco_ledger::{Bucket, Commit, CommitError, Environment, Error, Ledger, Options, SharedRng, layout};

#[tokio::test]
async fn what_one_server_commits_the_other_reads() {
    let bucket = memory();
    let (one, other) = (open(&bucket).await.expect("opened"), open(&bucket).await.expect("opened"));
    assert_eq!(add(&one, "a").await.expect("committed"), 1);
    assert_eq!(other.read().await.expect("read").count("a"), 1);
    assert_eq!(add(&other, "a").await.expect("committed"), 2);
    assert_eq!(add(&one, "a").await.expect("decided anew"), 3);
    assert_eq!(open(&bucket).await.expect("opened").read().await.expect("read").count("a"), 3);
}

#[tokio::test]
async fn transactions_that_wait_share_a_commit_and_see_each_other() {
    let ledger = open(&memory()).await.expect("opened");
    let mut counts: Vec<u64> = join_all((0..100).map(|_| add(&ledger, "a")))
        .await
        .into_iter()
        .map(|count| count.expect("committed"))
        .collect();
    counts.sort_unstable();
    assert_eq!(counts, (1..=100).collect::<Vec<_>>());
    let commits = ledger.read().await.expect("read").seq();
    assert!(commits < 20, "{commits} commits for 100 transactions");
}

#[tokio::test]
async fn an_error_leaves_nothing_behind_and_the_rest_of_its_batch_goes_on() {
    let ledger = open(&memory()).await.expect("opened");
    let refused = ledger.commit(intent("counter.refuse"), |transaction| {
        transaction.put(&Counter { id: "b".into(), count: 7 });
        Err::<(), _>("no")
    });
    let (refused, added) = tokio::join!(refused, add(&ledger, "a"));
    assert!(matches!(refused, Err(CommitError::Decided("no"))));
    added.expect("committed");
    let view = ledger.read().await.expect("read");
    assert_eq!((view.count("a"), view.count("b")), (1, 0));
}

#[tokio::test]
async fn no_is_decided_on_a_current_state_too() {
    let bucket = memory();
    let (one, other) = (open(&bucket).await.expect("opened"), open(&bucket).await.expect("opened"));
    add(&other, "a").await.expect("committed");
    // `one` has not seen that commit; its "there is none" would be a lie.
    let found = one
        .commit(intent("counter.find"), |transaction| match transaction.state().count("a") {
            0 => Err("there is none"),
            count => Ok(count),
        })
        .await;
    assert_eq!(found.expect("seen"), 1);
}

#[tokio::test]
async fn a_change_that_changes_nothing_makes_no_commit() {
    let ledger = open(&memory()).await.expect("opened");
    for _ in 0..3 {
        ledger
            .commit(intent("counter.set"), |transaction| {
                transaction.put(&Counter { id: "a".into(), count: 5 });
                transaction.delete::<Counter>(&"never there".to_owned());
                Ok::<_, ()>(())
            })
            .await
            .expect("fine each time");
    }
    assert_eq!(ledger.read().await.expect("read").seq(), 1);
}

#[tokio::test]
async fn a_closure_that_panics_harms_nobody_else() {
    let ledger = open(&memory()).await.expect("opened");
    let panicking = ledger.commit(intent("counter.panic"), |_| -> Result<(), ()> { panic!("on purpose") });
    let (panicked, added) = tokio::join!(panicking, add(&ledger, "a"));
    assert!(matches!(panicked, Err(CommitError::Ledger(Error::Broken(_)))));
    added.expect("committed");
    add(&ledger, "a").await.expect("the writer lives");
}

#[tokio::test]
async fn a_caller_that_goes_away_does_not_undo_its_neighbours() {
    let ledger = open(&memory()).await.expect("opened");
    let mut impatient: Vec<_> = (0..10).map(|_| Box::pin(add(&ledger, "a"))).collect();
    for waiting in &mut impatient {
        assert!(futures::poll!(waiting).is_pending());
    }
    drop(impatient);
    add(&ledger, "b").await.expect("committed");
    assert_eq!(ledger.read().await.expect("read").count("b"), 1);
}

#[tokio::test]
async fn a_commit_tells_who_did_what() {
    let bucket = memory();
    let ledger = open(&bucket).await.expect("opened");
    add(&ledger, "a").await.expect("committed");
    add(&ledger, "a").await.expect("committed");
    let key = layout::commit(&name(), 2);
    let object = bucket.get(&key).await.expect("read").expect("there");
    let commit = Commit::decode(&key, 2, &object.bytes).expect("a commit");
    assert_eq!((commit.seq, commit.server.as_str()), (2, "one"));
    let entry = &commit.transactions[0];
    assert_eq!((entry.actor.as_str(), entry.action.as_str()), ("user-1", "counter.add"));
    assert_eq!(entry.request.as_deref(), Some("request-1"));
    assert_eq!(entry.puts[0].value.get(), r#"{"id":"a","count":2}"#);
}

#[tokio::test]
async fn a_servers_beacon_tells_the_others_how_far_it_wrote() {
    let bucket = memory();
    let beacons = |server: &str| {
        let clock = Arc::new(taco_ledger::SystemClock);
        Beacons::new(Arc::clone(&bucket), clock, server, None, Duration::from_secs(20))
    };
    let (own, other) = (beacons("own"), beacons("other"));
    let environment = Environment { peers: own.peers(), ..environment(Arc::clone(&bucket), "own", 0) };
    let ledger = Ledger::<Counters>::open(environment, name(), Options::default()).await.expect("opened");
    for _ in 0..3 {
        add(&ledger, "a").await.expect("committed");
    }
    own.run_round().await.expect("told");
    other.run_round().await.expect("heard");
    assert_eq!(other.peers().newest(&name()), Some(3));
}

#[tokio::test]
async fn whoever_waits_is_woken_by_a_commit() {
    let ledger = open(&memory()).await.expect("opened");
    let mut changes = ledger.changes();
    let waiting = tokio::spawn(async move { changes.next().await });
    add(&ledger, "a").await.expect("committed");
    assert!(waiting.await.expect("woken"));
}

/// Adds a fixed time to every operation and counts the reads.
#[derive(Debug)]
struct Slow {
    bucket: Arc<dyn Bucket>,
    put: Duration,
    get: Duration,
    gets: AtomicUsize,
}

#[async_trait::async_trait]
impl Bucket for Slow {
    async fn create(&self, key: &taco_ledger::Key, bytes: bytes::Bytes) -> Created {
        tokio::time::sleep(self.put).await;
        self.bucket.create(key, bytes).await
    }
    async fn put(&self, key: &taco_ledger::Key, bytes: bytes::Bytes) -> Result<(), taco_ledger::BucketError> {
        self.bucket.put(key, bytes).await
    }
    async fn get(&self, key: &taco_ledger::Key) -> Got {
        self.gets.fetch_add(1, Ordering::SeqCst);
        tokio::time::sleep(self.get).await;
        self.bucket.get(key).await
    }
    async fn list(&self, folder: &taco_ledger::Key, after: Option<&taco_ledger::Key>) -> Listed {
        self.bucket.list(folder, after).await
    }
    async fn folders(&self, folder: &taco_ledger::Key) -> Result<Vec<String>, taco_ledger::BucketError> {
        self.bucket.folders(folder).await
    }
    async fn delete(&self, key: &taco_ledger::Key) -> Result<(), taco_ledger::BucketError> {
        self.bucket.delete(key).await
    }
    async fn upload(
        &self,
        key: &taco_ledger::Key,
        body: taco_ledger::bucket::ByteStream,
    ) -> Result<u64, taco_ledger::BucketError> {
        self.bucket.upload(key, body).await
    }
    async fn download(&self, key: &taco_ledger::Key, range: Option<std::ops::Range<u64>>) -> Downloaded {
        self.bucket.download(key, range).await
    }
}

type Created = Result<taco_ledger::bucket::Created, taco_ledger::BucketError>;
type Got = Result<Option<taco_ledger::bucket::Object>, taco_ledger::BucketError>;
type Listed = Result<Vec<taco_ledger::Key>, taco_ledger::BucketError>;
type Downloaded = Result<Option<taco_ledger::bucket::Download>, taco_ledger::BucketError>;

impl Slow {
    fn new(put: u64, get: u64) -> Arc<Self> {
        let (put, get) = (Duration::from_millis(put), Duration::from_millis(get));
        Arc::new(Self { bucket: memory(), put, get, gets: AtomicUsize::new(0) })
    }
}

#[tokio::test(start_paused = true)]
async fn one_probe_serves_all_who_wait() {
    let slow = Slow::new(40, 20);
    let ledger = open(&(Arc::clone(&slow) as Arc<dyn Bucket>)).await.expect("opened");
    let before = slow.gets.load(Ordering::SeqCst);
    let begun = tokio::time::Instant::now();
    let first = ledger.read();
    let rest = join_all((0..1_000).map(|_| ledger.read()));
    let (first, rest) = tokio::join!(first, rest);
    first.expect("read");
    rest.into_iter().for_each(|view| drop(view.expect("read")));
    assert_eq!(slow.gets.load(Ordering::SeqCst) - before, 1);
    assert_eq!(begun.elapsed(), Duration::from_millis(20));
}

#[tokio::test(start_paused = true)]
async fn three_busy_servers_take_turns() {
    // In paused time servers run in step, which is the worst case; each seed spreads them in another way.
    for seed in 0..20 {
        take_turns(seed).await;
    }
}

async fn take_turns(seed: u64) {
    let slow = Slow::new(40, 20);
    let mut servers = Vec::new();
    for server in 0..3 {
        let rng = SharedRng::from_seed(100 * seed + server);
        let environment = Environment { rng, ..environment(Arc::clone(&slow) as _, &format!("server-{server}"), 2) };
        servers.push(Ledger::<Counters>::open(environment, name(), Options::default()).await.expect("opened"));
    }
    let over = tokio::time::Instant::now() + Duration::from_secs(60);
    let writers = servers.iter().enumerate().flat_map(|(number, ledger)| {
        (0..8).map(move |writer| async move {
            let mut waits = Vec::new();
            while tokio::time::Instant::now() < over {
                let begun = tokio::time::Instant::now();
                add(ledger, &format!("{number}-{writer}")).await.expect("committed");
                waits.push(begun.elapsed());
            }
            (number, waits)
        })
    });
    let waits = join_all(writers).await;
    let longest = waits.iter().flat_map(|(_, waits)| waits).max().expect("some");
    assert!(*longest < Duration::from_secs(2), "seed {seed}: a commit took {longest:?}");
    let share =
        |server| waits.iter().filter(|(number, _)| *number == server).map(|(_, waits)| waits.len()).sum::<usize>();
    let (least, most) = (share(0).min(share(1)).min(share(2)), share(0).max(share(1)).max(share(2)));
    assert!(most < 2 * least, "seed {seed}: the servers committed {}, {} and {} times", share(0), share(1), share(2));
}

#[tokio::test(start_paused = true)]
async fn a_server_alone_does_not_wait_for_its_turn() {
    let slow = Slow::new(40, 20);
    let ledger = open(&(Arc::clone(&slow) as Arc<dyn Bucket>)).await.expect("opened");
    let begun = tokio::time::Instant::now();
    for _ in 0..10 {
        add(&ledger, "a").await.expect("committed");
    }
    assert_eq!(begun.elapsed(), Duration::from_millis(400), "one PUT each, and nothing else");
}
