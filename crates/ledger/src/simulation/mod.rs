//! Servers on one bucket that fails in every way a bucket can, in histories that a seed decides wholly.
//!
//! [`crate::simulated`] is the bucket with its faults, `history` lets servers and clients live through one history and notes what
//! they were told, `check` compares that with the log. A failing seed prints the command that replays it.

mod check;
mod history;

use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;

use taco_tables::State;
use tokio::sync::watch;

use crate::ledger::Head;

/// Mistakes that the simulation has to find; else it proves nothing. They exist in test builds alone.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Sabotage {
    None,
    /// A commit with an unclear outcome is decided and written anew, without a look whether it is there.
    BlindRetry,
    /// Reads answer from memory.
    StaleRead,
    /// A snapshot notes its number, then takes the state of some moments later.
    TornSnapshot,
    /// "Already there" is taken for "mine".
    ConflictTakenForSuccess,
}

/// The planted bug in snapshots; otherwise the head as it is.
pub(crate) async fn perhaps_tear<S: State>(
    sabotage: Sabotage,
    newest: &watch::Receiver<Arc<Head<S>>>,
    head: Arc<Head<S>>,
) -> Arc<Head<S>> {
    if sabotage != Sabotage::TornSnapshot {
        return head;
    }
    tokio::time::sleep(Duration::from_millis(300)).await;
    let state = newest.borrow().state.clone();
    Arc::new(Head { seq: head.seq, hash: head.hash, size: head.size, state })
}

/// Lives through the history of one seed and says what broke, or returns a fingerprint of everything that happened.
fn live_through(seed: u64, sabotage: Sabotage) -> Result<String, String> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .expect("a runtime without I/O");
    runtime.block_on(async {
        let told = history::live(seed, sabotage).await?;
        check::check(&told).await
    })
}

/// `TACO_SIM_SEED` replays one history; `TACO_SIM_HISTORIES` sets how many there are.
fn setting(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

#[test]
fn every_history_keeps_every_promise() {
    let seeds = match setting("TACO_SIM_SEED") {
        Some(seed) => seed..seed + 1,
        None => 0..setting("TACO_SIM_HISTORIES").unwrap_or(3_000),
    };
    let threads = std::thread::available_parallelism().map_or(1, usize::from) as u64;
    let broken: Vec<String> = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..threads)
            .map(|worker| {
                let seeds = seeds.clone().filter(move |seed| seed % threads == worker);
                scope.spawn(move || {
                    seeds
                        .filter_map(|seed| {
                            let why = live_through(seed, Sabotage::None).err()?;
                            let mut line = format!("seed {seed}: {why}\n  replay: ");
                            let _ = write!(line, "TACO_SIM_SEED={seed} cargo test -p taco-ledger every_history");
                            Some(line)
                        })
                        .take(3)
                        .collect::<Vec<_>>()
                })
            })
            .collect();
        workers.into_iter().flat_map(|worker| worker.join().expect("no panic")).collect()
    });
    assert!(broken.is_empty(), "\n{}", broken.join("\n"));
}

#[test]
fn a_seed_replays_identically() {
    for seed in 0..20 {
        assert_eq!(live_through(seed, Sabotage::None), live_through(seed, Sabotage::None), "seed {seed}");
    }
}

#[test]
fn every_planted_bug_is_found() {
    let planted =
        [Sabotage::BlindRetry, Sabotage::StaleRead, Sabotage::TornSnapshot, Sabotage::ConflictTakenForSuccess];
    for sabotage in planted {
        let found = (0..200).find_map(|seed| live_through(seed, sabotage).err());
        assert!(found.is_some(), "{sabotage:?} was not found in 200 histories");
    }
}
