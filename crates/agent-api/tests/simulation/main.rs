//! Runs and walks with agents, in histories that a seed decides wholly: two servers, six agents, sixteen runs and a few
//! walks over all workspaces live through a bucket that fails, partitions, paused and killed processes, crashes and wrong
//! clocks.
//!
//! Servers are the real ones, from the door for agents to the ledger; agents follow the rules of `taco-agent`; engines
//! write what they do into a ledger of their own (`outside`). `check` compares that, and what everybody was told, with
//! the log. A failing seed prints the command that replays it.

mod agent;
mod check;
mod clock;
mod fairness;
mod faults;
mod network;
mod notes;
mod outside;
mod pause;
mod people;
mod phase;
mod promise;
mod requests;
mod sabotage;
mod server;
mod signal;
mod stage;
mod walks;

use std::sync::Arc;
use std::time::Duration;

use sha2::{Digest, Sha256};
use tokio::time::{sleep, sleep_until};

use crate::promise::Broken;
use crate::sabotage::Sabotage;
use crate::stage::{AGENTS, LEASE, Mode, SERVERS, Stage};

/// Everything comes to an end this long after the faults, and a little later for each run that has to wait for others.
const SETTLE_TIMEOUT: Duration = Duration::from_secs(60);
const SETTLE_TIMEOUT_PER_RUN: Duration = Duration::from_secs(8);
/// A walk waits for each of its units, and may wait for what they made to be examined.
const SETTLE_TIMEOUT_PER_WALK: Duration = Duration::from_secs(240);

/// Lives through the history of one seed and says which promises broke, or returns a fingerprint of everything that
/// happened.
fn live_through(seed: u64, mode: Mode, sabotage: Sabotage) -> Result<String, Broken> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .expect("a runtime without I/O");
    runtime.block_on(async {
        let stage = stage::prepare(seed, mode, sabotage).await;
        for number in 0..SERVERS {
            tokio::spawn(server::lives_of_a_server(Arc::clone(&stage), number));
        }
        for index in 0..AGENTS {
            tokio::spawn(agent::lives_of_an_agent(Arc::clone(&stage), index));
        }
        tokio::spawn(people::start_runs(Arc::clone(&stage)));
        tokio::spawn(people::decide(Arc::clone(&stage)));
        tokio::spawn(people::unlock(Arc::clone(&stage)));
        tokio::spawn(people::lock(Arc::clone(&stage)));
        tokio::spawn(people::read_logs(Arc::clone(&stage)));
        tokio::spawn(walks::begin(Arc::clone(&stage)));
        tokio::spawn(walks::decide(Arc::clone(&stage)));
        tokio::spawn(faults::make_trouble(Arc::clone(&stage)));
        tokio::spawn(sabotage::break_rules(Arc::clone(&stage)));
        sleep_until(stage.over).await;
        if mode == Mode::Liveness {
            let truth = stage.observer.read().await.expect("the truth");
            let open = truth.runs.iter().filter(|run| !run.status.is_final()).count();
            let walks = truth.walks.iter().filter(|walk| walk.is_open()).count();
            drop(truth);
            let settle = SETTLE_TIMEOUT + SETTLE_TIMEOUT_PER_RUN * open as u32 + SETTLE_TIMEOUT_PER_WALK * walks as u32;
            sleep(LEASE * 2 + settle).await;
        }
        let mut broken = Broken::default();
        let replay = check::check(&stage, &mut broken);
        check::check_logs(&stage, &replay, &mut broken).await;
        if mode == Mode::Liveness {
            check::check_liveness(&replay, &mut broken);
        }
        broken.or(fingerprint(&stage, &replay))
    })
}

fn fingerprint(stage: &Stage, replay: &check::Replay) -> String {
    let mut fingerprint = Sha256::new();
    fingerprint.update(replay.commits.to_le_bytes());
    for event in stage.outside.events() {
        let at = event.at.duration_since(stage.begun).as_millis();
        fingerprint.update(format!("{at} {} {} {:?}", event.phase, event.agent, event.deed));
    }
    for run in replay.runs.values() {
        fingerprint.update(format!("{} {} {}", run.id, run.status, run.history.len()));
    }
    fingerprint.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
}

/// `TACO_SIM_SEED` replays one history; `TACO_SIM_RUN_HISTORIES` sets how many there are of each kind.
fn setting(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

fn live_through_all(mode: Mode, test: &str) {
    let seeds = match setting("TACO_SIM_SEED") {
        Some(seed) => seed..seed + 1,
        None => 0..setting("TACO_SIM_RUN_HISTORIES").unwrap_or(160),
    };
    let threads = std::thread::available_parallelism().map_or(1, usize::from) as u64;
    let broken: Vec<String> = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..threads)
            .map(|worker| {
                let seeds = seeds.clone().filter(move |seed| seed % threads == worker);
                scope.spawn(move || {
                    let broken = seeds.filter_map(|seed| {
                        let why = live_through(seed, mode, Sabotage::None).err()?;
                        let replay =
                            format!("TACO_SIM_SEED={seed} cargo test -p taco-agent-api --test simulation {test}");
                        Some(format!("seed {seed}: {why}\n  replay: {replay}"))
                    });
                    broken.take(3).collect::<Vec<_>>()
                })
            })
            .collect();
        workers.into_iter().flat_map(|worker| worker.join().expect("no panic")).collect()
    });
    assert!(broken.is_empty(), "\n{}", broken.join("\n"));
}

#[test]
fn every_promise_is_kept_while_everything_fails() {
    live_through_all(Mode::Safety, "every_promise");
}

#[test]
fn every_run_comes_to_an_end_when_the_faults_are_over() {
    live_through_all(Mode::Liveness, "every_run");
}

#[test]
fn a_seed_replays_identically() {
    for seed in 1..6 {
        let live = || live_through(seed, Mode::Liveness, Sabotage::None);
        assert_eq!(live(), live(), "seed {seed}");
    }
}

#[test]
fn every_planted_bug_breaks_what_it_has_to_break() {
    for (sabotage, promise) in Sabotage::PLANTED {
        let breaks = |seed| live_through(seed, Mode::Safety, sabotage).is_err_and(|broken| broken.has(promise));
        assert!((1..160).any(breaks), "in 160 histories {sabotage:?} did not break {promise:?}");
    }
}
