//! Compares what happened outside, and what everybody was told, with the log, read by a replay of its own.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use taco_agent_protocol::{PhaseAttempt, PhaseKind};
use taco_domain::Author;
use taco_domain::global_queue::OVERDUE_AFTER;
use taco_domain::id::{RunId, StateVersionId, WorkspaceId};
use taco_domain::lock::Lock;
use taco_domain::phase::Phase;
use taco_domain::run::Run;
use taco_domain::run_status::{RunEvent, RunStatus};
use taco_domain::state_version::{StateOrigin, StateVersion, StateVersionStatus};
use taco_domain::wait_note::{closing_text, waiting_text};
use taco_domain::workspace::Workspace;
use taco_ledger::{Commit, Entry, layout};

use crate::agent::agent_name;
use crate::notes::Told;
use crate::outside::{Deed, Event};
use crate::phase::engine_version;
use crate::promise::{Broken, Promise};
use crate::sabotage::PLANTED;
use crate::stage::{Stage, watcher};
use crate::walks::Walks;

/// State replayed from the log, and the events on the way.
#[derive(Default)]
pub(crate) struct Replay {
    pub(crate) commits: u64,
    pub(crate) runs: BTreeMap<RunId, Run>,
    workspaces: BTreeMap<WorkspaceId, Workspace>,
    states: BTreeMap<StateVersionId, StateVersion>,
    /// Agent that took each attempt.
    taken: BTreeMap<PhaseAttempt, String>,
    /// The attempt with which a phase ended.
    finished: BTreeSet<PhaseAttempt>,
    lost: BTreeSet<PhaseAttempt>,
    /// Number of times that people took a workspace's lock and kept it, and released it.
    locks: BTreeMap<WorkspaceId, Locks>,
    walks: Walks,
}

/// Number of times that a lock was taken by a person, and released by them.
#[derive(Clone, Copy, Default)]
pub(crate) struct Locks {
    pub(crate) taken: u32,
    pub(crate) let_go: u32,
}

/// Broken promise, with its details.
type Breach = (Promise, String);

pub(crate) fn check(stage: &Stage, broken: &mut Broken) -> Replay {
    let replay = replay(stage, broken);
    let told = stage.notes.told().clone();
    for (promise, how) in &told.broken {
        broken.note(*promise, how.clone());
    }
    let events = stage.outside.events();
    check_engines(&replay, &events, broken);
    check_told(&replay, &told, broken);
    check_claims(stage, &replay, &events, broken);
    replay
}

fn replay(stage: &Stage, broken: &mut Broken) -> Replay {
    let objects = stage.world.objects();
    let mut replay = Replay { walks: Walks::of(stage), ..Replay::default() };
    for seq in 1.. {
        let key = layout::commit(&stage.ledger_name, seq);
        let Some(bytes) = objects.get(&key) else { break };
        let commit = match Commit::decode(&key, seq, bytes) {
            Ok(commit) => commit,
            Err(error) => {
                broken.note(Promise::TheLogIsWhole, error.to_string());
                break;
            }
        };
        replay.commits = seq;
        for entry in &commit.transactions {
            let breaches = [replay.apply(stage, entry), replay.check_workspaces()];
            // A planted bug has to be found by what it leads to.
            if entry.action != PLANTED {
                for (promise, how) in breaches.into_iter().filter_map(Result::err) {
                    broken.note(promise, format!("commit {seq}, {}: {how}", entry.action));
                }
            }
        }
    }
    replay
}

/// Order in which phases may go out.
#[derive(Clone, Copy)]
struct Queue {
    first: Option<RunId>,
    /// Run that has been ready for longest.
    longest: Option<RunId>,
}

impl Replay {
    /// Applies all of an entry; the error is the first thing about it that is not as it should be.
    fn apply(&mut self, stage: &Stage, entry: &Entry) -> Result<(), Breach> {
        let readable = |error: serde_json::Error| (Promise::TheLogIsWhole, error.to_string());
        // The order of the global queue is that before the transaction.
        let first = self.runs.values().filter_map(Run::queue_key).min().map(|key| key.run);
        let ready = self.runs.values().filter_map(|run| Some((run.ready_since()?, run.id)));
        let queue = Queue { first, longest: ready.min().map(|(_, id)| id) };
        let (mut checked, mut nodes) = (Ok(()), Vec::new());
        for put in &entry.puts {
            let is_right = match put.kind.as_str() {
                "run" => {
                    let run: Run = serde_json::from_str(put.value.get()).map_err(readable)?;
                    let followed = self.follow(&run, &entry.action, queue);
                    self.walks.follow_run(&run);
                    self.runs.insert(run.id, run);
                    followed
                }
                "workspace" => {
                    let workspace: Workspace = serde_json::from_str(put.value.get()).map_err(readable)?;
                    let kept = self.follow_lock(&workspace, &entry.action);
                    self.workspaces.insert(workspace.id, workspace);
                    kept
                }
                "state-version" => {
                    let version: StateVersion = serde_json::from_str(put.value.get()).map_err(readable)?;
                    self.add_state(version)
                }
                "walk" => {
                    self.walks.follow_walk(serde_json::from_str(put.value.get()).map_err(readable)?);
                    Ok(())
                }
                "walk-node" => {
                    nodes.push(serde_json::from_str(put.value.get()).map_err(readable)?);
                    Ok(())
                }
                _ => Ok(()),
            };
            checked = checked.and(is_right);
        }
        if !nodes.is_empty() {
            let current = self.current_values();
            checked = checked.and(self.walks.follow_nodes(stage, nodes, &self.runs, &current));
        }
        checked
    }

    /// The value in each workspace's current state.
    fn current_values(&self) -> BTreeMap<WorkspaceId, String> {
        let current = self.workspaces.values().filter_map(|workspace| {
            let version = self.states.get(&workspace.current_state_version?)?;
            Some((workspace.id, self.walks.value(&version.sha256)?.clone()))
        });
        current.collect()
    }

    /// True if a workspace has a lock that someone has to free: a person's, or that of a run that is over.
    fn is_kept(&self, workspace: WorkspaceId) -> bool {
        let lock = self.workspaces.get(&workspace).and_then(|workspace| workspace.lock.as_ref());
        lock.is_some_and(|lock| match lock.holder {
            Author::Run(holder) => self.runs.get(&holder).is_some_and(|holder| holder.status.is_final()),
            _ => true,
        })
    }

    /// A person's lock stays theirs until someone lets it go, which only some actions do.
    fn follow_lock(&mut self, workspace: &Workspace, action: &str) -> Result<(), Breach> {
        let before = self.workspaces.get(&workspace.id).and_then(|before| before.lock.clone());
        let is_person = |lock: &Lock| matches!(lock.holder, Author::User(_));
        if before == workspace.lock {
            return Ok(());
        }
        let locks = self.locks.entry(workspace.id).or_default();
        if workspace.lock.as_ref().is_some_and(is_person) {
            locks.taken += 1;
            if let Some(before) = before {
                return Err((Promise::ALockHasOneHolder, format!("{} had the lock already", before.holder_name)));
            }
        }
        match action {
            _ if !before.as_ref().is_some_and(is_person) => {}
            "workspace.unlock" | "workspace.force-unlock" => locks.let_go += 1,
            // The person it was taken for was not told of it.
            "workspace.give-back-lock" => locks.taken -= 1,
            _ => return Err((Promise::ALockHasOneHolder, format!("a person lost the lock of {}", workspace.id))),
        }
        Ok(())
    }

    /// One run's step: only along the graph, one epoch at a time, and in the order of the global queue.
    fn follow(&mut self, run: &Run, action: &str, queue: Queue) -> Result<(), Breach> {
        use Promise as P;
        let Some(before) = self.runs.get(&run.id) else { return Ok(()) };
        if before.status != run.status && !is_reachable(before.status, run.status) {
            return Err((P::RunsFollowTheGraph, format!("{} went from {} to {}", run.id, before.status, run.status)));
        }
        check_cancel(before, run).map_err(|how| (P::ACancelIsForOnePhase, how))?;
        for kind in [PhaseKind::Plan, PhaseKind::Apply] {
            let (old, new) = (before.phase(kind), run.phase(kind));
            let attempt = |epoch| PhaseAttempt { run: run.id, phase: kind, epoch };
            if new.epoch != old.epoch {
                if new.epoch != old.epoch + 1 || action != "phase.take" {
                    let how = format!("the {kind} of {} went from epoch {} to {}", run.id, old.epoch, new.epoch);
                    return Err((P::AnAttemptHasOneExecutor, how));
                }
                let agent = new.executor.as_ref().map(|executor| executor.agent_name.clone());
                self.taken.insert(attempt(new.epoch), agent.unwrap_or_default());
                if kind == PhaseKind::Apply && new.epoch > 1 {
                    return Err((P::AnApplyBeginsOnce, format!("the apply of {} was given out twice", run.id)));
                }
                let waited = old.queued_at.zip(new.started_at).map(|(queued, started)| started.duration_since(queued));
                let is_overdue = waited.is_some_and(|waited| waited >= OVERDUE_AFTER);
                if queue.first != Some(run.id) && !(is_overdue && queue.longest == Some(run.id)) {
                    let how = format!("{} was given out, though {:?} was first", run.id, queue.first);
                    return Err((P::TheQueueKeepsItsOrder, how));
                }
            }
            if new.losses > old.losses {
                self.lost.insert(attempt(new.epoch));
            } else if old.late_outcome.is_none() && new.late_outcome.is_some() {
                if kind != PhaseKind::Apply || !self.lost.contains(&attempt(new.epoch)) {
                    let how = format!("{} has a late outcome, though it was not lost", attempt(new.epoch));
                    return Err((P::OthersCannotSpeakForAnAttempt, how));
                }
                self.finished.insert(attempt(new.epoch));
            } else if action == "phase.finish" && !old.status.is_final() && new.status.is_final() && new.epoch > 0 {
                self.finished.insert(attempt(new.epoch));
                let (said, of_this) = (&run.options.terraform_version, engine_version(attempt(new.epoch)));
                if *said != before.options.terraform_version && *said != of_this {
                    let how = format!("{} ended with the outcome of another: {said}", attempt(new.epoch));
                    return Err((P::OthersCannotSpeakForAnAttempt, how));
                }
            }
        }
        Ok(())
    }

    /// Serials go up in one lineage, and what is final does not change. A state recovered from a lost agent is kept
    /// separately from the rest.
    fn add_state(&mut self, version: StateVersion) -> Result<(), Breach> {
        let checked = self.check_state(&version).map_err(|how| (Promise::StatesFollowEachOther, how));
        self.states.insert(version.id, version);
        checked
    }

    fn check_state(&self, version: &StateVersion) -> Result<(), String> {
        let finalized = |version: &&StateVersion| version.status == StateVersionStatus::Finalized;
        if let Some(before) = self.states.get(&version.id).filter(finalized) {
            if before.sha256 != version.sha256 || before.serial != version.serial {
                return Err(format!("the state {} was changed", version.id));
            }
        } else if version.status == StateVersionStatus::Finalized && !is_rescued(version) {
            let of_workspace = self.states.values().filter(|other| other.workspace == version.workspace);
            for other in of_workspace.filter(finalized).filter(|other| !is_rescued(other)) {
                if other.serial >= version.serial {
                    return Err(format!("serial {} came after serial {}", version.serial, other.serial));
                }
                if other.lineage != version.lineage {
                    return Err(format!("the lineage {} came after {}", version.lineage, other.lineage));
                }
            }
        }
        Ok(())
    }

    /// In each workspace at most one run is under way, the first of its queue, and it holds the lock; the current
    /// state is the newest.
    fn check_workspaces(&self) -> Result<(), Breach> {
        for workspace in self.workspaces.values() {
            let placed = self.runs.values().filter(|run| run.workspace == workspace.id && run.place.is_some());
            let mut queue: Vec<&Run> = placed.collect();
            queue.sort_by_key(|run| run.place);
            let waits = |run: &&&Run| matches!(run.status, RunStatus::Pending | RunStatus::Confirmed);
            if let Some(second) = queue.iter().skip(1).find(|run| !waits(run)) {
                let how = format!("{} is {}, though it is not first", second.id, second.status);
                return Err((Promise::OneRunAtATime, how));
            }
            if let Some(current) = queue.first().filter(|run| !waits(run)) {
                let holder = workspace.lock.as_ref().map(|lock| lock.holder);
                if holder != Some(Author::Run(current.id)) {
                    let how = format!("{} is {}, and {holder:?} holds the lock", current.id, current.status);
                    return Err((Promise::ALockHasOneHolder, how));
                }
            }
            let states = self.states.values().filter(|version| version.workspace == workspace.id);
            let finalized = states.filter(|version| version.status == StateVersionStatus::Finalized);
            let newest = finalized
                .filter(|version| !is_rescued(version))
                .max_by_key(|version| version.serial)
                .map(|version| version.id);
            if newest != workspace.current_state_version {
                let how = format!("{} has {:?} as its current state", workspace.id, workspace.current_state_version);
                return Err((Promise::TheCurrentStateIsTheNewest, how));
            }
        }
        Ok(())
    }
}

fn is_rescued(version: &StateVersion) -> bool {
    version.origin == StateOrigin::Rescue
}

fn check_cancel(before: &Run, run: &Run) -> Result<(), String> {
    let was_to_stop = before.status == RunStatus::Planning && before.cancel.is_some();
    if was_to_stop && run.status != RunStatus::Planning && !run.status.is_final() {
        return Err(format!("{} was to stop while it planned, and is {}", run.id, run.status));
    }
    let is_taken = run.plan.epoch + run.apply.epoch > before.plan.epoch + before.apply.epoch;
    if is_taken && run.cancel.is_some() {
        return Err(format!("{} begins a phase that is to stop before anyone asked", run.id));
    }
    Ok(())
}

/// One transaction may take a run two steps further: a plan that is applied without asking is confirmed at once.
fn is_reachable(from: RunStatus, to: RunStatus) -> bool {
    let steps = |from: RunStatus| RunEvent::ALL.into_iter().filter_map(move |event| from.after(event).ok());
    steps(from).any(|next| next == to || steps(next).any(|after| after == to))
}

/// Checks the engines: each attempt once, by the agent that took it; each apply once; one apply of a workspace at a
/// time.
fn check_engines(replay: &Replay, events: &[Event], broken: &mut Broken) {
    let mut started = BTreeSet::new();
    let mut applied = BTreeSet::new();
    let mut applying: BTreeMap<WorkspaceId, PhaseAttempt> = BTreeMap::new();
    for event in events {
        let is_apply = event.phase.phase == PhaseKind::Apply;
        match event.deed {
            Deed::Started => {
                let taken_by = replay.taken.get(&event.phase);
                if taken_by != Some(&agent_name(event.agent)) {
                    let how = format!("agent-{} executed {}, which {taken_by:?} has", event.agent, event.phase);
                    broken.note(Promise::AnAttemptHasOneExecutor, how);
                }
                if !started.insert(event.phase) {
                    broken.note(Promise::AnAttemptHasOneExecutor, format!("{} was executed twice", event.phase));
                }
                if is_apply && !applied.insert(event.phase.run) {
                    let how = format!("the apply of {} began twice", event.phase.run);
                    broken.note(Promise::AnApplyBeginsOnce, how);
                }
                if is_apply && let Some(other) = applying.insert(event.workspace, event.phase) {
                    let how = format!("{} began while {other} went on", event.phase);
                    broken.note(Promise::AppliesDoNotOverlap, how);
                }
            }
            Deed::Stopped if is_apply => {
                applying.remove(&event.workspace);
            }
            Deed::Stopped => {}
        }
    }
}

/// Checks that everything acknowledged is there for ever, and that each phase was ended by its holder.
fn check_told(replay: &Replay, told: &Told, broken: &mut Broken) {
    use Promise as P;
    replay.walks.check_told(&told.walks, broken);
    if let Some(run) = told.runs.iter().find(|run| !replay.runs.contains_key(run)) {
        broken.note(P::WhatWasAcknowledgedStays, format!("{run} was acknowledged and is lost"));
    }
    for (workspace, acknowledged) in &told.locks {
        let Locks { taken, let_go } = replay.locks.get(workspace).copied().unwrap_or_default();
        if acknowledged.taken > taken || acknowledged.let_go > let_go {
            let how = format!("of {workspace} {taken} locks were taken, and more were acknowledged");
            broken.note(P::ALockHasOneHolder, how);
        }
    }
    for (workspace, digest) in &told.states {
        let is_it = |version: &&StateVersion| version.workspace == *workspace && version.sha256 == *digest;
        if !replay.states.values().any(|version| is_it(&version) && version.status == StateVersionStatus::Finalized) {
            broken.note(P::WhatWasAcknowledgedStays, format!("a state of {workspace} was acknowledged and is lost"));
        }
    }
    if let Some(phase) = told.outcomes_acknowledged.iter().find(|phase| !replay.finished.contains(phase)) {
        let how = format!("the outcome of {phase} was acknowledged, and the log does not have it");
        broken.note(P::OthersCannotSpeakForAnAttempt, how);
    }
    if let Some(phase) = replay.finished.iter().find(|phase| !told.outcomes_sent.contains(phase)) {
        broken.note(P::OthersCannotSpeakForAnAttempt, format!("{phase} ended, though its agent never said so"));
    }
    for (phase, read) in &told.logs_read {
        let written = told.files.get(phase).map(|files| files.log().clone()).unwrap_or_default();
        let has_other_attempts = replay.runs.get(&phase.run).is_some_and(|run| run.phase(phase.phase).epoch > 1);
        let read = without_closing(&replay.runs, phase, read);
        if !has_other_attempts && !whole_log(&replay.runs, phase, &written).starts_with(read) {
            broken.note(P::LogsAreTrue, format!("the log of {phase} showed bytes that nobody wrote"));
        }
    }
}

/// Log as readers see it: after why the phase waited, without another mark at its beginning.
fn whole_log(runs: &BTreeMap<RunId, Run>, phase: &PhaseAttempt, written: &[u8]) -> Vec<u8> {
    let waited = runs.get(&phase.run).map(|run| waiting_text(run.phase(phase.phase), phase.phase)).unwrap_or_default();
    match waited.is_empty() {
        true => written.to_vec(),
        false => [waited.as_bytes(), written.get(1..).unwrap_or_default()].concat(),
    }
}

/// Log that readers saw, without the server's closing text for an agent that it had given up.
fn without_closing<'a>(runs: &BTreeMap<RunId, Run>, phase: &PhaseAttempt, read: &'a [u8]) -> &'a [u8] {
    let Some(run) = runs.get(&phase.run) else { return read };
    // The agent may have come back since.
    let then = Phase { late_outcome: None, ..run.phase(phase.phase).clone() };
    let closings = [true, false].map(|is_empty| closing_text(&then, phase.phase, is_empty));
    let mut closings = closings.iter().filter(|closing| !closing.is_empty());
    closings.find_map(|closing| read.strip_suffix(closing.as_bytes())).unwrap_or(read)
}

/// Logs of phases whose agents could report are complete, byte for byte. What an attempt before left comes first.
pub(crate) async fn check_logs(stage: &Stage, replay: &Replay, broken: &mut Broken) {
    if let Err(how) = compare_logs(stage, replay).await {
        broken.note(Promise::LogsAreTrue, how);
    }
}

async fn compare_logs(stage: &Stage, replay: &Replay) -> Result<(), String> {
    let plane = watcher(stage).await;
    let told = stage.notes.told().clone();
    for phase in &told.outcomes_acknowledged {
        let mut read = Vec::new();
        loop {
            let (run, kind, offset) = (phase.run, phase.phase, read.len() as u64);
            let part = plane.follow_log_of((stage.organization, run, kind), offset, usize::MAX, Duration::ZERO).await;
            match part.map_err(|error| format!("the log of {phase}: {error}"))? {
                part if part.is_empty() => break,
                part => read.extend(part),
            }
        }
        let written = told.files.get(phase).map(|files| files.log().clone()).unwrap_or_default();
        let run = &replay.runs[&phase.run];
        let is_complete = match run.phase(phase.phase).losses {
            0 => read == whole_log(&replay.runs, phase, &written),
            // The mark at the beginning is shown once.
            _ => read.ends_with(&written[1..]),
        };
        if !is_complete {
            return Err(format!("the log of {phase} has {} bytes, and {} were written", read.len(), written.len()));
        }
    }
    Ok(())
}

/// An attempt that an agent took was executed, or was given up for a reason that names the agent.
fn check_claims(stage: &Stage, replay: &Replay, events: &[Event], broken: &mut Broken) {
    let mut breaks = |how| broken.note(Promise::WhatIsTakenComesToSomething, how);
    let started: BTreeSet<PhaseAttempt> = events.iter().map(|event| event.phase).collect();
    for (phase, agent) in &replay.taken {
        let run = &replay.runs[&phase.run];
        let is_under_way = run.executing_phase() == Some(phase.phase) && run.phase(phase.phase).epoch == phase.epoch;
        if stage.is_calm && replay.lost.contains(phase) {
            breaks(format!("{phase} was given up though nothing went wrong"));
        }
        if replay.lost.contains(phase)
            && run.status == RunStatus::Errored
            && run.phase(phase.phase).epoch == phase.epoch
        {
            let why = run.phase(phase.phase).error.as_deref().unwrap_or_default();
            if !why.contains(agent) {
                breaks(format!("{phase} of {agent} was given up because: {why:?}"));
            }
        }
        let is_over = replay.lost.contains(phase) || replay.finished.contains(phase);
        if !started.contains(phase) && !is_over && !is_under_way {
            breaks(format!("{phase} was taken by {agent}, and nothing came of it"));
        }
    }
}

/// Checks that after the faults every run is over, or waits for a person.
pub(crate) fn check_liveness(replay: &Replay, broken: &mut Broken) {
    replay.walks.check_liveness(|workspace| replay.is_kept(workspace), broken);
    for run in replay.runs.values().filter(|run| !run.status.is_final()) {
        let awaits_decision = matches!(run.status, RunStatus::Planned | RunStatus::PlannedAndSaved);
        let is_kept = replay.is_kept(run.workspace);
        let awaits_unlock = matches!(run.status, RunStatus::Pending | RunStatus::Confirmed) && is_kept;
        if !awaits_decision && !awaits_unlock {
            let executor = run.executing_phase().and_then(|kind| run.phase(kind).executor.clone());
            let history = run.history.iter().map(|entry| format!("{} {}", entry.at, entry.action));
            let history = history.collect::<Vec<_>>().join(", ");
            let executor = executor.map(|executor| executor.agent_name).unwrap_or_default();
            let how = format!("long after the faults {} is still {} {executor}: {history}", run.id, run.status);
            broken.note(Promise::EveryRunComesToAnEnd, how);
        }
    }
}
