//! A process that commits as fast as it can and says so, until someone kills it.
//!
//! `ledger-writer NAME SEED` with the bucket in `TACO_BUCKET` and `TACO_S3_*`. For each acknowledged operation it
//! prints `done N`, and only then begins the next; so what was printed has to be in the bucket for ever.

use std::collections::BTreeSet;
use std::io::Write as _;
use std::sync::Arc;

use harness::operation_lists::{OperationList, OperationLists, append};
use taco_ledger::beacon::Beacons;
use taco_ledger::{Environment, Ledger, LedgerName, Location, Options, Retrying, SharedRng, SystemClock};

const TASKS: usize = 8;

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let name = std::env::args().nth(1).unwrap_or_else(|| "writer".to_owned());
    let rng = SharedRng::from_system();
    let bucket: Arc<dyn taco_ledger::Bucket> = Arc::new(Retrying::new(Arc::new(location().open()?), rng.clone()));
    let clock = Arc::new(SystemClock);
    let beacons = Beacons::new(Arc::clone(&bucket), clock.clone(), &name, None, std::time::Duration::from_secs(1));
    let peers = beacons.peers();
    tokio::spawn(async move { beacons.run(std::future::pending()).await });
    let environment = Environment { bucket, clock, rng: rng.clone(), server: name.clone(), peers };
    let ledger: Ledger<OperationLists> =
        Ledger::open(environment, LedgerName::site(), Options { snapshot_every: 25, ..Options::default() }).await?;

    let tasks = (0..TASKS).map(|task| {
        let (ledger, rng, name) = (ledger.clone(), rng.clone(), name.clone());
        tokio::spawn(async move {
            let mut done = BTreeSet::new();
            loop {
                let operation = rng.unique();
                let list = format!("{name}-{task}");
                if append(&ledger, &list, &operation).await.is_ok() {
                    let mut out = std::io::stdout().lock();
                    let _ = writeln!(out, "done {operation}");
                    let _ = out.flush();
                    done.insert(operation);
                }
                if done.len().is_multiple_of(20)
                    && let Ok(view) = ledger.read().await
                {
                    let seen = view.lists.get(&list).map(OperationList::operations).unwrap_or_default();
                    assert!(done.is_subset(&seen), "a read does not show what this process was told");
                }
            }
        })
    });
    futures::future::join_all(tasks).await;
    Ok(())
}

fn location() -> Location {
    let variable = |name: &str| std::env::var(name).ok();
    Location {
        url: variable("TACO_BUCKET").unwrap_or_default(),
        s3_endpoint: variable("TACO_S3_ENDPOINT"),
        s3_region: variable("TACO_S3_REGION"),
        s3_access_key_id: variable("TACO_S3_ACCESS_KEY_ID"),
        s3_secret_access_key: variable("TACO_S3_SECRET_ACCESS_KEY"),
        ..Location::default()
    }
}
