//! People: they start runs, decide about plans, stop what takes too long, lock workspaces, free those that a lost apply
//! has left locked, and read logs.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use taco_agent_protocol::PhaseAttempt;
use taco_control_plane::{Caller, Error, Privileged, RequestInfo, WorkspaceRef};
use taco_domain::Author;
use taco_domain::id::{RunId, WorkspaceId};
use taco_domain::run::{Run, RunSource};
use taco_domain::run_request::RunRequest;
use taco_domain::run_status::RunStatus;
use tokio::time::{Instant, sleep, timeout};

use crate::faults::MAX_SERVER_PAUSE_SECONDS;
use crate::network::Place;
use crate::promise::Promise;
use crate::stage::{SITE_TOKEN, Stage};
use crate::walks::WALK_MESSAGE;

const RUNS: usize = 16;

impl Stage {
    /// Asks a server as its admin; `None` where the answer is lost.
    pub(crate) async fn ask<T, F>(
        self: &Arc<Self>,
        number: usize,
        verb: impl FnOnce(Privileged, Caller) -> F + Send + 'static,
    ) -> Option<Result<T, Error>>
    where
        T: Send + 'static,
        F: Future<Output = Result<T, Error>> + Send,
    {
        let to = Place::Server(number);
        self.network.travel(Place::Person, to).await;
        let plane = self.server(number)?.plane.clone();
        let server = self.server(number)?;
        let answer = server.spawn(async move {
            let caller = match plane.authenticate(SITE_TOKEN, RequestInfo::default()).await {
                Ok(caller) => caller,
                Err(error) => return Some(Err(error)),
            };
            Some(verb(plane, caller).await)
        });
        let answer = timeout(Duration::from_secs(40), answer).await.ok()??;
        self.network.travel(to, Place::Person).await;
        (!self.chance(0.05)).then_some(answer)
    }

    pub(crate) fn break_promise(&self, promise: Promise, how: String) {
        self.notes.told().broken.push((promise, how));
    }
}

/// Starts all runs, most of them early.
pub(crate) async fn start_runs(stage: Arc<Stage>) {
    let span = (stage.over - stage.begun).as_secs_f64() * 0.6 / RUNS as f64;
    for number in 0..RUNS {
        sleep(stage.seconds(0.0, 2.0 * span)).await;
        if Instant::now() >= stage.over {
            return;
        }
        let workspace = stage.workspaces[stage.below(stage.workspaces.len())];
        let roll = stage.below(10);
        let request = RunRequest {
            message: Some(format!("run {number}")),
            plan_only: Some(roll < 2),
            auto_apply: Some((2..6).contains(&roll)),
            save_plan: Some(roll == 9),
            workspace: Some(workspace),
            ..RunRequest::default()
        };
        start_run(&stage, request).await;
    }
}

async fn start_run(stage: &Arc<Stage>, request: RunRequest) {
    for _ in 0..3 {
        let (server, wanted) = (stage.below(2), request.clone());
        let made = stage.ask(server, |plane, caller| async move {
            plane.create_run(&caller, wanted, RunSource::Api).await.map(|view| view.run.id)
        });
        match made.await {
            Some(Ok(id)) => {
                stage.notes.told().runs.insert(id);
                // Any other server knows at once of everything that was acknowledged.
                let found = stage.ask(1 - server, move |plane, caller| async move { plane.run(&caller, id).await });
                if let Some(Err(Error::NotFound(_))) = found.await {
                    let how = format!("{id} was acknowledged, and the other server does not know it");
                    stage.break_promise(Promise::WhatWasAcknowledgedStays, how);
                }
                return;
            }
            Some(Err(Error::Unavailable(_))) | None => {
                sleep(Duration::from_secs(25)).await;
                let Ok(truth) = stage.observer.read().await else { continue };
                if truth.runs.iter().any(|run| Some(&run.options.message) == request.message.as_ref()) {
                    return;
                }
            }
            Some(Err(error)) => {
                return stage.break_promise(Promise::WishesAreGrantedOnce, format!("a run was refused: {error}"));
            }
        }
    }
}

/// Decides about plans, and stops some runs. There is no other task that decides, so a refusal has to be true.
pub(crate) async fn decide(stage: Arc<Stage>) {
    let mut unclear = BTreeSet::new();
    let mut asked_to_stop = BTreeSet::new();
    loop {
        let pause = if stage.is_bad() { stage.seconds(1.0, 5.0) } else { stage.seconds(0.5, 1.5) };
        sleep(pause).await;
        let Ok(truth) = stage.observer.read().await else { continue };
        let runs: Vec<Run> = truth.runs.iter().cloned().collect();
        drop(truth);
        for run in runs {
            let is_of_walk = run.options.message.starts_with(WALK_MESSAGE);
            match run.status {
                // The walk decides.
                RunStatus::Planned | RunStatus::PlannedAndSaved if is_of_walk => {}
                RunStatus::Planned | RunStatus::PlannedAndSaved => confirm_or_discard(&stage, &run, &mut unclear).await,
                status if !status.is_final() && status.is_cancelable() && stage.chance(0.006) => {
                    let id = run.id;
                    asked_to_stop.insert(id);
                    let server = stage.below(2);
                    stage
                        .ask(server, move |plane, caller| async move { plane.cancel_run(&caller, id, None).await })
                        .await;
                }
                status if status.is_executing() && asked_to_stop.contains(&run.id) && stage.chance(0.2) => {
                    let (id, server) = (run.id, stage.below(2));
                    let forced = move |plane: Privileged, caller: Caller| async move {
                        plane.force_cancel_run(&caller, id, None).await
                    };
                    stage.ask(server, forced).await;
                }
                _ => {}
            }
        }
    }
}

async fn confirm_or_discard(stage: &Arc<Stage>, run: &Run, unclear: &mut BTreeSet<RunId>) {
    let (id, server) = (run.id, stage.below(2));
    let confirms = stage.rng.fraction() < 0.85;
    let answer = stage.ask(server, move |plane, caller| async move {
        match confirms {
            true => plane.confirm_run(&caller, id, None, false).await,
            false => plane.discard_run(&caller, id, None).await,
        }
    });
    match answer.await {
        Some(Ok(_)) => {}
        Some(Err(Error::Conflict(why))) if !unclear.contains(&id) => {
            let how = format!("a decision about {id}, which was {}, was refused: {why}", run.status);
            stage.break_promise(Promise::WishesAreGrantedOnce, how);
        }
        Some(Err(_)) | None => {
            unclear.insert(id);
        }
    }
}

/// Frees workspaces that a lost apply has left locked, once its engine is long dead.
pub(crate) async fn unlock(stage: Arc<Stage>) {
    let mut since: BTreeMap<WorkspaceId, Instant> = BTreeMap::new();
    loop {
        sleep(stage.seconds(2.0, 4.0)).await;
        let Ok(truth) = stage.observer.read().await else { continue };
        for workspace in &stage.workspaces {
            let lock = truth.workspaces.get(workspace).and_then(|workspace| workspace.lock.clone());
            let holder = lock.and_then(|lock| match lock.holder {
                Author::Run(run) => truth.runs.get(&run),
                _ => None,
            });
            if holder.is_none_or(|run| !run.status.is_final()) {
                since.remove(workspace);
                continue;
            }
            let first_seen = *since.entry(*workspace).or_insert_with(Instant::now);
            // Its engine is dead by now; a person who looks at what exists takes some seconds.
            if first_seen.elapsed() > Duration::from_secs(5) {
                let (id, server) = (*workspace, stage.below(2));
                let unlocked = stage.ask(server, move |plane, caller| async move {
                    plane.force_unlock_workspace(&caller, &WorkspaceRef::Id(id)).await
                });
                unlocked.await;
            }
        }
    }
}

/// Locks a workspace now and then.
pub(crate) async fn lock(stage: Arc<Stage>) {
    while Instant::now() < stage.over {
        sleep(stage.seconds(10.0, 60.0)).await;
        let id = stage.workspaces[stage.below(stage.workspaces.len())];
        let server = stage.below(2);
        let locked = stage.ask(server, move |plane, caller| async move {
            plane.lock_workspace(&caller, &WorkspaceRef::Id(id), None).await
        });
        match locked.await {
            Some(Ok(_)) => stage.notes.told().locks.entry(id).or_default().taken += 1,
            Some(Err(_)) => {}
            // A server that is paused may do it when it wakes.
            None => sleep(Duration::from_secs_f64(MAX_SERVER_PAUSE_SECONDS)).await,
        }
        sleep(stage.seconds(1.0, 8.0)).await;
        // Until it is certain that it is not locked by us.
        loop {
            let server = stage.below(2);
            let unlocked = stage.ask(server, move |plane, caller| async move {
                plane.unlock_workspace(&caller, &WorkspaceRef::Id(id)).await
            });
            match unlocked.await {
                Some(Ok(_)) => {
                    stage.notes.told().locks.entry(id).or_default().let_go += 1;
                    break;
                }
                Some(Err(Error::Conflict(_))) => break,
                _ => sleep(Duration::from_secs(1)).await,
            }
        }
    }
}

/// Follows logs while they grow.
pub(crate) async fn read_logs(stage: Arc<Stage>) {
    while Instant::now() < stage.over {
        sleep(stage.seconds(3.0, 9.0)).await;
        let Ok(truth) = stage.observer.read().await else { continue };
        let executing: Vec<PhaseAttempt> = truth
            .runs
            .iter()
            .filter_map(|run| {
                let phase = run.executing_phase()?;
                Some(PhaseAttempt { run: run.id, phase, epoch: run.phase(phase).epoch })
            })
            .collect();
        if executing.is_empty() {
            continue;
        }
        let phase = executing[stage.below(executing.len())];
        let (server, organization) = (stage.below(2), stage.organization);
        let read = stage.ask(server, move |plane, _| async move {
            let phase = (organization, phase.run, phase.phase);
            plane.follow_log_of(phase, 0, usize::MAX, Duration::from_millis(500)).await
        });
        if let Some(Ok(bytes)) = read.await {
            stage.notes.told().logs_read.push((phase, bytes));
        }
    }
}
