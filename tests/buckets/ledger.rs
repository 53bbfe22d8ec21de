//! The ledger itself, on every bucket.

use std::sync::Arc;

use futures::future::join_all;
use serde::{Deserialize, Serialize};
use taco_ledger::{
    Bucket, Environment, Intent, Ledger, LedgerName, Options, Peers, Retrying, SharedRng, SystemClock, audit,
};
use taco_tables::{Record, State, tables};

use crate::places::Place;

const SERVERS: u64 = 2;
const WRITERS: u64 = 16;
const CHANGES: u64 = 50;

/// Counts what one writer did; all of them also add to one that they share.
#[derive(Clone, Serialize, Deserialize)]
struct Counter {
    id: String,
    count: u64,
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
    struct Counters {
        counters: Counter;
    }
}

impl Counters {
    fn count(&self, id: &str) -> u64 {
        self.counters.get(&id.to_owned()).map_or(0, |counter| counter.count)
    }

    fn as_text(&self) -> String {
        let mut text = String::new();
        self.for_each_json(&mut |kind, id, json| text.push_str(&format!("{kind} {id} {}\n", json.get())))
            .expect("JSON");
        text
    }
}

async fn open(bucket: Arc<dyn Bucket>, server: u64) -> Ledger<Counters> {
    let rng = SharedRng::from_system();
    let environment = Environment {
        bucket: Arc::new(Retrying::new(bucket, rng.clone())),
        clock: Arc::new(SystemClock),
        rng,
        server: format!("server-{server}"),
        peers: Peers::fixed(SERVERS as usize - 1),
    };
    Ledger::open(environment, LedgerName::site(), Options { snapshot_every: 20, ..Options::default() })
        .await
        .expect("the ledger opens")
}

async fn add_one(ledger: &Ledger<Counters>, id: String) -> u64 {
    let intent = Intent { actor: id.clone(), action: "count", request: None };
    let shared = "all".to_owned();
    let outcome = ledger
        .commit(intent, move |transaction| {
            let mut new_count = 0;
            for id in [&shared, &id] {
                new_count = transaction.state().count(id) + 1;
                transaction.put(&Counter { id: id.clone(), count: new_count });
            }
            Ok::<u64, String>(new_count)
        })
        .await;
    outcome.expect("the change is committed")
}

pub(crate) async fn two_servers_lose_nothing(place: &Place) {
    servers_lose_nothing([place.open_again(), place.open_again()], place).await;
}

/// Two servers, each with its own way to the bucket and 16 writers that make 50 changes.
pub(crate) async fn servers_lose_nothing(buckets: [Arc<dyn Bucket>; SERVERS as usize], place: &Place) {
    let [first, second] = buckets;
    let servers = [open(first, 1).await, open(second, 2).await];
    let writers = servers.iter().enumerate().flat_map(|(server, ledger)| {
        (0..WRITERS).map(move |writer| {
            let ledger = ledger.clone();
            tokio::spawn(async move {
                for change in 1..=CHANGES {
                    let count = add_one(&ledger, format!("writer-{server}-{writer}")).await;
                    assert_eq!(count, change, "nothing is lost or done twice");
                }
            })
        })
    });
    for writer in join_all(writers).await {
        writer.expect("the writer made all of its changes");
    }

    let views = [servers[0].read().await.expect("read"), servers[1].read().await.expect("read")];
    assert_eq!(views[0].count("all"), SERVERS * WRITERS * CHANGES);
    assert_eq!(views[0].as_text(), views[1].as_text(), "both servers see the same");

    let reopened = open(place.open_again(), 3).await.read().await.expect("read");
    assert_eq!((reopened.seq(), reopened.as_text()), (views[0].seq(), views[0].as_text()));
    let reports = audit::verify(place.bucket.as_ref(), None, None).await.expect("the bucket answers");
    assert!(reports.iter().all(audit::LedgerReport::is_sound), "{reports:#?}");
    assert_eq!(reports[0].commits, reopened.seq());
}
