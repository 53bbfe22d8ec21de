//! A ledger of counters, and buckets to put it in.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use taco_ledger::{
    Bucket, CommitError, Environment, Error, Intent, Ledger, LedgerName, Location, ObjectBucket, Options, Peers,
    Retrying, SharedRng, SystemClock,
};
use taco_tables::{Record, tables};

#[derive(Clone, Serialize, Deserialize, Debug)]
pub(crate) struct Counter {
    pub(crate) id: String,
    pub(crate) count: u64,
}

impl Record for Counter {
    const KIND: &'static str = "counter";
    type Id = String;
    type Indexes = ();

    fn id(&self) -> &String {
        &self.id
    }
}

tables! {
    pub(crate) struct Counters {
        pub counters: Counter;
    }
}

impl Counters {
    pub(crate) fn count(&self, id: &str) -> u64 {
        self.counters.get(&id.to_owned()).map_or(0, |counter| counter.count)
    }
}

pub(crate) fn name() -> LedgerName {
    "test".parse().expect("a legal name")
}

pub(crate) fn environment(bucket: Arc<dyn Bucket>, server: &str, peers: usize) -> Environment {
    let rng = SharedRng::from_seed(server.len() as u64);
    Environment {
        bucket: Arc::new(Retrying::new(bucket, rng.clone())),
        clock: Arc::new(SystemClock),
        rng,
        server: server.to_owned(),
        peers: Peers::fixed(peers),
    }
}

pub(crate) async fn open(bucket: &Arc<dyn Bucket>) -> Result<Ledger<Counters>, Error> {
    open_with(bucket, Options { snapshot_every: 10, ..Options::default() }).await
}

pub(crate) async fn open_with(bucket: &Arc<dyn Bucket>, options: Options) -> Result<Ledger<Counters>, Error> {
    Ledger::open(environment(Arc::clone(bucket), "one", 0), name(), options).await
}

pub(crate) fn memory() -> Arc<dyn Bucket> {
    Arc::new(ObjectBucket::in_memory())
}

pub(crate) fn directory(path: &std::path::Path) -> Arc<dyn Bucket> {
    Arc::new(Location::directory(path).open().expect("a directory"))
}

pub(crate) fn intent(action: &'static str) -> Intent {
    Intent { actor: "user-1".into(), action, request: Some("request-1".into()) }
}

/// Adds one to a counter and returns what it then shows.
pub(crate) async fn add(ledger: &Ledger<Counters>, id: &str) -> Result<u64, CommitError<()>> {
    let id = id.to_owned();
    ledger
        .commit(intent("counter.add"), move |transaction| {
            let count = transaction.state().count(&id) + 1;
            transaction.put(&Counter { id: id.clone(), count });
            Ok(count)
        })
        .await
}
