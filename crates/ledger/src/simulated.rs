//! A bucket that fails in every way a bucket can, and a clock that is wrong: for simulations of whatever stands on the
//! ledger. No server uses it.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use futures::{StreamExt, TryStreamExt, stream};
use jiff::Timestamp;
use tokio::time::{Instant, sleep};

use crate::bucket::{Bucket, BucketError, BucketErrorKind, ByteStream, Created, Download, Key, Object};
use crate::clock::{Clock, SharedRng};

/// The bucket itself, which outlives its servers.
#[derive(Debug)]
pub struct World {
    objects: Mutex<BTreeMap<Key, Stored>>,
    rng: SharedRng,
    /// Rate of faults: 0 is none.
    fault_rate: Mutex<f64>,
    begun: Instant,
}

#[derive(Clone, Debug)]
struct Stored {
    bytes: Bytes,
    at: Instant,
    /// LIST does not show it before then.
    listed_from: Instant,
}

impl World {
    /// An empty bucket. All that happens to it follows from the seed.
    pub fn new(seed: u64, fault_rate: f64) -> Arc<Self> {
        let rng = SharedRng::from_seed(seed ^ 0x5eed);
        Arc::new(Self { objects: Mutex::default(), rng, fault_rate: Mutex::new(fault_rate), begun: Instant::now() })
    }

    /// From now on nothing goes wrong.
    pub fn stop_faults(&self) {
        self.set_fault_rate(0.0);
    }

    /// Sets the rate of faults from now on: 0 is none, 1 about every tenth request.
    pub fn set_fault_rate(&self, fault_rate: f64) {
        *self.fault_rate.lock().expect("no panic") = fault_rate;
    }

    /// Objects in the bucket.
    pub fn objects(&self) -> BTreeMap<Key, Bytes> {
        let objects = self.objects.lock().expect("no panic");
        objects.iter().map(|(key, stored)| (key.clone(), stored.bytes.clone())).collect()
    }

    fn chance(&self, fraction: f64) -> bool {
        self.rng.fraction() < fraction * *self.fault_rate.lock().expect("no panic")
    }

    /// Mostly milliseconds, sometimes seconds, rarely longer than anyone waits.
    fn delay(&self) -> Duration {
        let scale = if self.chance(0.004) {
            20.0
        } else if self.chance(0.03) {
            3.0
        } else {
            0.04
        };
        Duration::from_secs_f64(0.001 + self.rng.fraction() * scale)
    }

    fn store(&self, key: &Key, bytes: Bytes) {
        let now = Instant::now();
        let lag = if self.chance(0.5) { Duration::from_secs_f64(self.rng.fraction() * 5.0) } else { Duration::ZERO };
        let stored = Stored { bytes, at: now, listed_from: now + lag };
        self.objects.lock().expect("no panic").insert(key.clone(), stored);
    }

    fn find(&self, key: &Key) -> Option<Stored> {
        self.objects.lock().expect("no panic").get(key).cloned()
    }
}

/// One server's way to the bucket. A crash cuts it: nothing is answered any more, and what is under way may still
/// happen or not.
#[derive(Clone, Debug)]
pub struct Line {
    world: Arc<World>,
    cut: Arc<AtomicBool>,
    is_steady: bool,
}

impl Line {
    /// A way to the bucket that works as well as the bucket does.
    pub fn to(world: &Arc<World>) -> Self {
        Self { world: Arc::clone(world), cut: Arc::default(), is_steady: false }
    }

    /// A way to the bucket on which nothing goes wrong and no time passes: for whoever prepares or watches.
    pub fn steady(world: &Arc<World>) -> Self {
        Self { is_steady: true, ..Self::to(world) }
    }

    /// The server has died.
    pub fn cut(&self) {
        self.cut.store(true, Ordering::SeqCst);
    }

    fn is_cut(&self) -> bool {
        self.cut.load(Ordering::SeqCst)
    }

    /// Carries out `effect` some time from now, on the bucket's side of the line: it happens even if the caller has
    /// lost patience or its server has died. `unless` is the caller's answer when the request got lost on its way.
    async fn ask<T: Send + 'static>(
        &self,
        operation: &'static str,
        key: &Key,
        effect: impl FnOnce(&World) -> T + Send + 'static,
    ) -> Result<T, BucketError> {
        if self.is_steady {
            return Ok(effect(&self.world));
        }
        if self.is_cut() {
            std::future::pending::<()>().await;
        }
        let line = self.clone();
        let there = self.world.delay();
        let back = self.world.delay();
        let answered = tokio::spawn(async move {
            sleep(there).await;
            if line.is_cut() && line.world.rng.fraction() < 0.5 {
                return None;
            }
            if line.world.chance(0.04) {
                return None;
            }
            let outcome = effect(&line.world);
            sleep(back).await;
            if line.is_cut() {
                std::future::pending::<()>().await;
            }
            (!line.world.chance(0.06)).then_some(outcome)
        });
        match answered.await {
            Ok(Some(outcome)) => Ok(outcome),
            _ => Err(BucketError::new(operation, key, BucketErrorKind::OutcomeUnknown, "503 Service Unavailable")),
        }
    }
}

#[async_trait]
impl Bucket for Line {
    async fn create(&self, key: &Key, bytes: Bytes) -> Result<Created, BucketError> {
        let (wanted, is_steady) = (key.clone(), self.is_steady);
        self.ask("create", key, move |world| {
            // S3 answers 409 to one of two racing creates, and may then have stored neither.
            if world.find(&wanted).is_some() || !is_steady && world.chance(0.02) {
                return Created::AlreadyThere;
            }
            world.store(&wanted, bytes);
            Created::Now
        })
        .await
    }

    async fn put(&self, key: &Key, bytes: Bytes) -> Result<(), BucketError> {
        let wanted = key.clone();
        self.ask("put", key, move |world| world.store(&wanted, bytes)).await
    }

    async fn get(&self, key: &Key) -> Result<Option<Object>, BucketError> {
        let wanted = key.clone();
        let found = self.ask("get", key, move |world| world.find(&wanted)).await?;
        let begun = self.world.begun;
        Ok(found.map(|stored| Object { bytes: stored.bytes, last_modified: wall_time(begun, stored.at) }))
    }

    async fn list(&self, folder: &Key, after: Option<&Key>) -> Result<Vec<Key>, BucketError> {
        let (prefix, after) = (format!("{folder}/"), after.cloned());
        self.ask("list", folder, move |world| {
            let now = Instant::now();
            let objects = world.objects.lock().expect("no panic");
            let shown = objects.iter().filter(|(key, stored)| {
                key.as_str().starts_with(&prefix)
                    && stored.listed_from <= now
                    && after.as_ref().is_none_or(|after| *key > after)
            });
            shown.map(|(key, _)| key.clone()).collect()
        })
        .await
    }

    async fn folders(&self, folder: &Key) -> Result<Vec<String>, BucketError> {
        let prefix = format!("{folder}/");
        let keys = self.list(folder, None).await?;
        let mut names: Vec<String> = keys
            .iter()
            .filter_map(|key| Some(key.as_str().strip_prefix(&prefix)?.split_once('/')?.0.to_owned()))
            .collect();
        names.dedup();
        Ok(names)
    }

    async fn delete(&self, key: &Key) -> Result<(), BucketError> {
        let wanted = key.clone();
        self.ask("delete", key, move |world| {
            world.objects.lock().expect("no panic").remove(&wanted);
        })
        .await
    }

    async fn upload(&self, key: &Key, body: ByteStream) -> Result<u64, BucketError> {
        let parts: Vec<Bytes> = body.try_collect().await?;
        let whole = Bytes::from(parts.concat());
        let size = whole.len() as u64;
        self.put(key, whole).await?;
        Ok(size)
    }

    async fn download(&self, key: &Key, range: Option<Range<u64>>) -> Result<Option<Download>, BucketError> {
        let Some(object) = self.get(key).await? else { return Ok(None) };
        let size = object.bytes.len() as u64;
        let range = range.unwrap_or(0..size);
        let wanted = object.bytes.slice(range.start as usize..range.end.min(size) as usize);
        Ok(Some(Download { size, body: stream::iter([Ok(wanted)]).boxed() }))
    }
}

/// A wall clock that follows the runtime's paused time, wrong by some minutes.
#[derive(Debug)]
pub struct WrongClock {
    begun: Instant,
    ahead: Duration,
}

impl WrongClock {
    pub fn new(begun: Instant, ahead: Duration) -> Self {
        Self { begun, ahead }
    }
}

impl Clock for WrongClock {
    fn now(&self) -> Timestamp {
        wall_time(self.begun, Instant::now()) + self.ahead
    }
}

fn wall_time(begun: Instant, at: Instant) -> Timestamp {
    Timestamp::UNIX_EPOCH + Duration::from_secs(1_800_000_000) + at.duration_since(begun)
}
