//! Signs of life. Every server overwrites one small object now and then and reads those of the others, so that it
//! knows who else is there and how far they are.
//!
//! All of this is a hint: with no beacon, or a wrong one, servers are slower or less fair to each other, never wrong.
//! Liveness of a peer is judged by the bucket's clock, because two servers' clocks may differ by minutes.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};
use tokio::sync::{Notify, watch};
use tokio::time::{Instant, MissedTickBehavior, interval, timeout};
use url::Url;

use crate::bucket::{Bucket, BucketError, Key};
use crate::clock::Clock;
use crate::layout::{self, LedgerName};

/// Interval of writing a beacon. Two idle servers then cost the bucket 18 requests a minute.
pub const BEACON_INTERVAL: Duration = Duration::from_secs(20);

/// Number of intervals without a sign after which a peer counts as gone.
const SILENT_AFTER_INTERVALS: u32 = 3;

/// Number of intervals after which any server that sees its beacon removes it.
const SWEPT_AFTER_INTERVALS: u32 = 100;

/// Rounds between two reads of a silent peer's beacon, so that a crash does not cost requests for half an hour.
const SILENT_PEER_POLL_ROUNDS: u64 = 5;

/// Timeout for removing the own beacon at shutdown: a bucket that hangs must not hold that up.
const RETIRE_TIMEOUT: Duration = Duration::from_secs(2);

const FORMAT: u32 = 1;

/// Message of one server to the others. Fields that a newer version adds are ignored.
#[derive(Clone, PartialEq, Serialize, Deserialize, Debug)]
pub struct Beacon {
    pub format: u32,
    pub server: String,
    /// By the server's own clock, for people to read; so is `at`.
    pub started_at: Timestamp,
    pub at: Timestamp,
    /// Address at which other servers can reach this one, if they can.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub address: Option<Url>,
    /// The newest commit that the server knows of each ledger it has to do with.
    #[serde(default)]
    pub ledgers: BTreeMap<String, u64>,
    /// Presence of the agents that the server hears.
    #[serde(default)]
    pub agents: Vec<serde_json::Value>,
    /// Features that older servers do not have, for instance `history`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub features: Vec<String>,
}

/// The server reads what was moved into history.
pub const HISTORY: &str = "history";

/// The server reads commits that were packed.
pub const PACKS: &str = "packs";

/// The server delivers notifications.
pub const NOTIFICATIONS: &str = "notifications";

/// The server lets runs wait for run tasks.
pub const RUN_TASKS: &str = "run-tasks";

fn own_features() -> Vec<String> {
    [HISTORY, PACKS, NOTIFICATIONS, RUN_TASKS].map(str::to_owned).to_vec()
}

/// The other servers, as far as this one knows: a cheap handle that follows what [`Beacons`] hears, and through which
/// ledgers let the others know of their commits.
#[derive(Clone, Debug)]
pub struct Peers {
    heard: watch::Receiver<Vec<Beacon>>,
    /// Content of this server's next own beacon; nobody hears it where there is no beacon.
    own: Option<Arc<Mutex<Beacon>>>,
    /// Raised with every commit of this server.
    commits: Arc<Notify>,
}

impl Peers {
    /// There is nobody else.
    pub fn none() -> Self {
        Self::fixed(0)
    }

    /// Always the same number of others, of whom nothing is known.
    pub fn fixed(number: usize) -> Self {
        let stranger = |number| Beacon {
            format: FORMAT,
            server: format!("peer-{number}"),
            started_at: Timestamp::UNIX_EPOCH,
            at: Timestamp::UNIX_EPOCH,
            address: None,
            ledgers: BTreeMap::new(),
            agents: Vec::new(),
            features: own_features(),
        };
        Self { heard: watch::channel((1..=number).map(stranger).collect()).1, own: None, commits: Arc::default() }
    }

    /// Number of other servers that are alive.
    pub fn alive(&self) -> usize {
        self.heard.borrow().len()
    }

    /// True if every other server that is alive can do this.
    pub fn all_can(&self, feature: &str) -> bool {
        self.heard.borrow().iter().all(|beacon| beacon.features.iter().any(|one| one == feature))
    }

    /// The newest commit of a ledger that any living peer names. The bucket may hold newer ones.
    pub fn newest(&self, ledger: &LedgerName) -> Option<u64> {
        self.heard.borrow().iter().filter_map(|beacon| beacon.ledgers.get(ledger.as_str()).copied()).max()
    }

    /// The beacons of the living peers, sorted by server.
    pub fn list(&self) -> Vec<Beacon> {
        self.heard.borrow().clone()
    }

    /// A signal that is raised when this server has written a commit. For one listener.
    pub fn own_commits(&self) -> &Notify {
        &self.commits
    }

    /// Remembers a commit that this server wrote; the next round of its beacon tells the others.
    pub fn note_commit(&self, ledger: &LedgerName, seq: u64) {
        if let Some(own) = &self.own {
            own.lock().unwrap_or_else(PoisonError::into_inner).note_commit(ledger, seq);
        }
        self.commits.notify_one();
    }
}

impl Beacon {
    fn note_commit(&mut self, ledger: &LedgerName, seq: u64) {
        let newest = self.ledgers.entry(ledger.as_str().to_owned()).or_default();
        *newest = seq.max(*newest);
    }
}

/// This server's own beacon, and its ear for those of the others.
#[derive(Debug)]
pub struct Beacons {
    bucket: Arc<dyn Bucket>,
    clock: Arc<dyn Clock>,
    key: Key,
    interval: Duration,
    own: Arc<Mutex<Beacon>>,
    /// Held for a whole round: two rounds at once would only cost twice as much.
    heard: tokio::sync::Mutex<KnownPeers>,
    /// Held while the own beacon is written or removed.
    writing: Arc<tokio::sync::Mutex<()>>,
    peers: watch::Sender<Vec<Beacon>>,
    commits: Arc<Notify>,
}

/// Findings of earlier rounds.
#[derive(Default, Debug)]
struct KnownPeers {
    round: u64,
    last_round: Option<Instant>,
    peer_beacons: BTreeMap<Key, PeerBeacon>,
}

/// The beacon of another server, as it was read last.
#[derive(Debug)]
struct PeerBeacon {
    /// By the bucket's clock.
    last_modified: Timestamp,
    /// `None` if it could not be understood.
    beacon: Option<Beacon>,
    /// True if it was overwritten since the round before.
    moved: bool,
    alive: bool,
    looked_in_round: u64,
}

impl Beacons {
    /// `server_id` is new with every start of a server; `address` is where other servers can reach it.
    pub fn new(
        bucket: Arc<dyn Bucket>,
        clock: Arc<dyn Clock>,
        server_id: &str,
        address: Option<Url>,
        interval: Duration,
    ) -> Self {
        let now = clock.now();
        let own = Beacon {
            format: FORMAT,
            server: server_id.to_owned(),
            started_at: now,
            at: now,
            address,
            ledgers: BTreeMap::new(),
            agents: Vec::new(),
            features: own_features(),
        };
        Self {
            bucket,
            clock,
            key: layout::beacon(server_id),
            interval,
            own: Arc::new(Mutex::new(own)),
            heard: tokio::sync::Mutex::default(),
            writing: Arc::default(),
            peers: watch::channel(Vec::new()).0,
            commits: Arc::default(),
        }
    }

    /// A handle that follows what later rounds find.
    pub fn peers(&self) -> Peers {
        Peers { heard: self.peers.subscribe(), own: Some(Arc::clone(&self.own)), commits: Arc::clone(&self.commits) }
    }

    /// Replaces what the next round says about the agents that this server hears.
    pub fn note_agents(&self, agents: Vec<serde_json::Value>) {
        self.with_own(|own| own.agents = agents);
    }

    fn with_own<T>(&self, use_it: impl FnOnce(&mut Beacon) -> T) -> T {
        use_it(&mut self.own.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Beats until `shutdown` is ready, then takes the own beacon down.
    pub async fn run(&self, shutdown: impl Future<Output = ()>) {
        let mut ticks = interval(self.interval);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let beating = async {
            loop {
                ticks.tick().await;
                if let Err(error) = self.run_round().await {
                    tracing::warn!(event = "beacon_failed", %error, "this server could not show itself to the others");
                }
            }
        };
        tokio::select! {
            biased;
            () = shutdown => {}
            () = beating => {}
        }
        self.remove_own().await;
    }

    /// Takes the own beacon down, without waiting long for a bucket that hangs.
    pub async fn remove_own(&self) {
        match timeout(RETIRE_TIMEOUT, self.retire()).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => tracing::info!(%error, "the beacon of this server stays behind until others sweep it"),
            Err(_) => tracing::info!(key = %self.key, "no time to take the beacon down; others will sweep it"),
        }
    }

    /// Takes the own beacon down, so that others need not wait to see that it is gone.
    pub async fn retire(&self) -> Result<(), BucketError> {
        let _turn = self.writing.lock().await;
        self.bucket.delete(&self.key).await
    }

    /// One round: shows this server, then looks for the others. After an error what was known before still stands.
    pub async fn run_round(&self) -> Result<(), BucketError> {
        let mut heard = self.heard.lock().await;
        let heard = &mut *heard;
        self.show().await?;

        heard.round += 1;
        // A change since the round before proves life, unless that round was long ago.
        let recently =
            heard.last_round.is_some_and(|last| last.elapsed() < self.interval * (SILENT_AFTER_INTERVALS - 1));
        heard.last_round = Some(Instant::now());

        // A listing may lag, so those already known are asked for in any case.
        let listed = self.bucket.list(&layout::beacons(), None).await?;
        let mut keys: BTreeSet<Key> = heard.peer_beacons.keys().cloned().collect();
        keys.extend(listed.into_iter().filter(|key| *key != self.key));
        for key in keys {
            self.poll_peer(heard, key, recently).await;
        }
        self.judge(heard).await?;

        let alive: Vec<Beacon> =
            heard.peer_beacons.values().filter(|one| one.alive).filter_map(|one| one.beacon.clone()).collect();
        metrics::gauge!("taco_peers_alive").set(alive.len() as f64);
        self.peers.send_if_modified(|peers| {
            let changed = *peers != alive;
            *peers = alive;
            changed
        });
        Ok(())
    }

    async fn show(&self) -> Result<(), BucketError> {
        let now = self.clock.now();
        let text = self.with_own(|own| {
            own.at = now;
            serde_json::to_vec(own).expect("a beacon is plain data")
        });
        // A write may go on although its caller has given up. Then it must keep its turn: were the beacon removed
        // meanwhile, the write would bring it back.
        let (bucket, key) = (Arc::clone(&self.bucket), self.key.clone());
        let turn = Arc::clone(&self.writing).lock_owned().await;
        let write = tokio::spawn(async move {
            let written = bucket.put(&key, text.into()).await;
            drop(turn);
            written
        });
        write.await.expect("a write does not panic")
    }

    /// Reads one beacon, unless its server is silent and was looked at a moment ago.
    async fn poll_peer(&self, heard: &mut KnownPeers, key: Key, recently: bool) {
        let round = heard.round;
        let known = heard.peer_beacons.get_mut(&key);
        if let Some(known) = &known
            && !known.alive
            && round < known.looked_in_round + SILENT_PEER_POLL_ROUNDS
        {
            return;
        }
        let object = match self.bucket.get(&key).await {
            Ok(Some(object)) => object,
            Ok(None) => {
                heard.peer_beacons.remove(&key);
                return;
            }
            Err(error) => {
                tracing::warn!(event = "peer_beacon_unreadable", %error, "a peer's beacon could not be read");
                if let Some(known) = known {
                    known.moved = false;
                    known.looked_in_round = round;
                }
                return;
            }
        };
        let known = heard.peer_beacons.remove(&key);
        let changed = |known: &PeerBeacon| known.last_modified != object.last_modified;
        let just_before = |known: &PeerBeacon| recently && known.looked_in_round + 1 == round;
        let peer_beacon = PeerBeacon {
            last_modified: object.last_modified,
            beacon: read(&key, &object.bytes),
            moved: known.as_ref().is_some_and(|known| changed(known) && just_before(known)),
            alive: known.is_some_and(|known| known.alive),
            looked_in_round: round,
        };
        heard.peer_beacons.insert(key, peer_beacon);
    }

    /// Says of every beacon that was read in this round whether its server is alive, and sweeps the long dead.
    async fn judge(&self, heard: &mut KnownPeers) -> Result<(), BucketError> {
        let round = heard.round;
        let mut in_doubt = false;
        let mut newest = Timestamp::MIN;
        for peer_beacon in heard.peer_beacons.values_mut().filter(|one| one.looked_in_round == round) {
            peer_beacon.alive |= peer_beacon.moved;
            in_doubt |= !peer_beacon.moved;
            newest = newest.max(peer_beacon.last_modified);
        }
        if !in_doubt {
            return Ok(());
        }
        // The own beacon was written a moment ago: its age tells what time it is for the bucket.
        if let Some(own) = self.bucket.get(&self.key).await? {
            newest = newest.max(own.last_modified);
        }
        let mut swept = Vec::new();
        for (key, peer_beacon) in
            heard.peer_beacons.iter_mut().filter(|(_, one)| one.looked_in_round == round && !one.moved)
        {
            let silence = newest.duration_since(peer_beacon.last_modified);
            peer_beacon.alive = silence <= intervals(self.interval, SILENT_AFTER_INTERVALS);
            if silence > intervals(self.interval, SWEPT_AFTER_INTERVALS) {
                swept.push(key.clone());
            }
        }
        for key in swept {
            tracing::info!(%key, "swept away the beacon of a server that stopped long ago");
            self.bucket.delete(&key).await?;
            heard.peer_beacons.remove(&key);
        }
        Ok(())
    }
}

fn intervals(interval: Duration, number: u32) -> SignedDuration {
    SignedDuration::try_from(interval * number).unwrap_or(SignedDuration::MAX)
}

/// A beacon that cannot be understood is as good as none: it must not stop the servers that work.
fn read(key: &Key, bytes: &Bytes) -> Option<Beacon> {
    match serde_json::from_slice::<Beacon>(bytes) {
        Ok(beacon) if key.file_name().strip_suffix(".json") == Some(&beacon.server) => Some(beacon),
        Ok(beacon) => {
            tracing::warn!(event = "peer_beacon_invalid", %key, server = %beacon.server, "a beacon names another server than its key does; ignored");
            None
        }
        Err(error) => {
            tracing::warn!(event = "peer_beacon_invalid", %key, %error, "a peer's beacon makes no sense; ignored");
            None
        }
    }
}

#[cfg(test)]
mod tests;
