//! Compares what happened outside, and what everybody was told, with the log, read by a replay of its own.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use taco_agent_protocol::{PhaseKind, PhaseRef};
use taco_domain::Author;
use taco_domain::id::{RunId, StateVersionId, WorkspaceId};
use taco_domain::run::Run;
use taco_domain::run_status::{RunEvent, RunStatus};
use taco_domain::state_version::{StateVersion, StateVersionStatus};
use taco_domain::wait_note::waiting_text;
use taco_domain::workspace::Workspace;
use taco_ledger::{Commit, Entry, layout};

use crate::agent::agent_name;
use crate::notes::Told;
use crate::outside::{Deed, Event};
use crate::phase::engine_version;
use crate::sabotage::PLANTED;
use crate::stage::{Stage, watcher};

/// What the log adds up to, and what happened on the way.
#[derive(Default)]
pub(crate) struct Replay {
    pub(crate) commits: u64,
    pub(crate) runs: BTreeMap<RunId, Run>,
    workspaces: BTreeMap<WorkspaceId, Workspace>,
    states: BTreeMap<StateVersionId, StateVersion>,
    /// Which agent took an attempt.
    taken: BTreeMap<PhaseRef, String>,
    /// The attempt with which a phase ended.
    finished: BTreeSet<PhaseRef>,
    lost: BTreeSet<PhaseRef>,
}

pub(crate) fn check(stage: &Stage) -> Result<Replay, String> {
    let replay = replay(stage)?;
    let told = stage.notes.told().clone();
    if let Some(broken) = told.broken.first() {
        return Err(broken.clone());
    }
    let events = stage.outside.events();
    check_engines(&replay, &events)?;
    check_told(&replay, &told)?;
    check_claims(stage, &replay, &events)?;
    Ok(replay)
}

fn replay(stage: &Stage) -> Result<Replay, String> {
    let objects = stage.world.objects();
    let mut replay = Replay::default();
    for seq in 1.. {
        let key = layout::commit(&stage.ledger_name, seq);
        let Some(bytes) = objects.get(&key) else { break };
        let commit = Commit::decode(&key, seq, bytes).map_err(|error| error.to_string())?;
        replay.commits = seq;
        for entry in &commit.transactions {
            let at = |broken: String| format!("commit {seq}, {}: {broken}", entry.action);
            let checked = replay.apply(entry).and_then(|()| replay.check_workspaces());
            // A planted bug has to be found by what it leads to.
            if entry.action != PLANTED {
                checked.map_err(at)?;
            }
        }
    }
    Ok(replay)
}

impl Replay {
    fn apply(&mut self, entry: &Entry) -> Result<(), String> {
        let readable = |error: serde_json::Error| error.to_string();
        // The order of the global queue is that before the transaction.
        let first = self.runs.values().filter_map(Run::queue_key).min();
        for put in &entry.puts {
            match put.kind.as_str() {
                "run" => {
                    let run: Run = serde_json::from_str(put.value.get()).map_err(readable)?;
                    let followed = self.follow(&run, &entry.action, first.map(|key| key.run));
                    self.runs.insert(run.id, run);
                    followed?;
                }
                "workspace" => {
                    let workspace: Workspace = serde_json::from_str(put.value.get()).map_err(readable)?;
                    self.workspaces.insert(workspace.id, workspace);
                }
                "state-version" => {
                    let version: StateVersion = serde_json::from_str(put.value.get()).map_err(readable)?;
                    self.add_state(version)?;
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// One run's step: only along the graph, one epoch at a time, and in the order of the global queue.
    fn follow(&mut self, run: &Run, action: &str, first: Option<RunId>) -> Result<(), String> {
        let Some(before) = self.runs.get(&run.id) else { return Ok(()) };
        if before.status != run.status && !is_reachable(before.status, run.status) {
            return Err(format!("{} went from {} to {}", run.id, before.status, run.status));
        }
        for kind in [PhaseKind::Plan, PhaseKind::Apply] {
            let (old, new) = (before.phase(kind), run.phase(kind));
            let attempt = |epoch| PhaseRef { run: run.id, phase: kind, epoch };
            if new.epoch != old.epoch {
                if new.epoch != old.epoch + 1 || action != "phase.take" {
                    return Err(format!("the {kind} of {} went from epoch {} to {}", run.id, old.epoch, new.epoch));
                }
                if kind == PhaseKind::Apply && new.epoch > 1 {
                    return Err(format!("the apply of {} was given out twice", run.id));
                }
                if first != Some(run.id) {
                    return Err(format!("{} was given out, though {first:?} was first", run.id));
                }
                let agent = new.executor.as_ref().map(|executor| executor.agent_name.clone());
                self.taken.insert(attempt(new.epoch), agent.unwrap_or_default());
            }
            if new.losses > old.losses {
                self.lost.insert(attempt(new.epoch));
            } else if action == "phase.finish" && !old.status.is_final() && new.status.is_final() && new.epoch > 0 {
                self.finished.insert(attempt(new.epoch));
                let (said, of_this) = (&run.options.terraform_version, engine_version(attempt(new.epoch)));
                if *said != before.options.terraform_version && *said != of_this {
                    return Err(format!("{} ended with the outcome of another attempt: {said}", attempt(new.epoch)));
                }
            }
        }
        Ok(())
    }

    /// Serials go up, and what is final does not change.
    fn add_state(&mut self, version: StateVersion) -> Result<(), String> {
        let finalized = |version: &&StateVersion| version.status == StateVersionStatus::Finalized;
        if let Some(before) = self.states.get(&version.id).filter(finalized) {
            if before.sha256 != version.sha256 || before.serial != version.serial {
                return Err(format!("the state {} was changed", version.id));
            }
        } else if version.status == StateVersionStatus::Finalized {
            let of_workspace = self.states.values().filter(|other| other.workspace == version.workspace);
            if let Some(newer) = of_workspace.filter(finalized).find(|other| other.serial >= version.serial) {
                return Err(format!("serial {} came after serial {}", version.serial, newer.serial));
            }
        }
        self.states.insert(version.id, version);
        Ok(())
    }

    /// In each workspace at most one run is under way, the first of its queue, and it holds the lock; the current
    /// state is the newest.
    fn check_workspaces(&self) -> Result<(), String> {
        for workspace in self.workspaces.values() {
            let placed = self.runs.values().filter(|run| run.workspace == workspace.id && run.place.is_some());
            let mut queue: Vec<&Run> = placed.collect();
            queue.sort_by_key(|run| run.place);
            let waits = |run: &&&Run| matches!(run.status, RunStatus::Pending | RunStatus::Confirmed);
            if let Some(second) = queue.iter().skip(1).find(|run| !waits(run)) {
                return Err(format!("{} is {}, though it is not first", second.id, second.status));
            }
            if let Some(current) = queue.first().filter(|run| !waits(run)) {
                let holder = workspace.lock.as_ref().map(|lock| lock.holder);
                if holder != Some(Author::Run(current.id)) {
                    return Err(format!("{} is {}, and {holder:?} holds the lock", current.id, current.status));
                }
            }
            let states = self.states.values().filter(|version| version.workspace == workspace.id);
            let finalized = states.filter(|version| version.status == StateVersionStatus::Finalized);
            let newest = finalized.max_by_key(|version| version.serial).map(|version| version.id);
            if newest != workspace.current_state_version {
                return Err(format!("{} has {:?} as its current state", workspace.id, workspace.current_state_version));
            }
        }
        Ok(())
    }
}

/// One transaction may take a run two steps further: a plan that is applied without asking is confirmed at once.
fn is_reachable(from: RunStatus, to: RunStatus) -> bool {
    let steps = |from: RunStatus| RunEvent::ALL.into_iter().filter_map(move |event| from.after(event).ok());
    steps(from).any(|next| next == to || steps(next).any(|after| after == to))
}

/// What engines did: each attempt once, by the agent that took it; each apply once; one apply of a workspace at a time.
fn check_engines(replay: &Replay, events: &[Event]) -> Result<(), String> {
    let mut started = BTreeSet::new();
    let mut applied = BTreeSet::new();
    let mut applying: BTreeMap<WorkspaceId, PhaseRef> = BTreeMap::new();
    for event in events {
        let is_apply = event.phase.phase == PhaseKind::Apply;
        match event.deed {
            Deed::Started => {
                let taken_by = replay.taken.get(&event.phase);
                if taken_by != Some(&agent_name(event.agent)) {
                    return Err(format!("agent-{} executed {}, which {taken_by:?} has", event.agent, event.phase));
                }
                if !started.insert(event.phase) {
                    return Err(format!("{} was executed twice", event.phase));
                }
                if is_apply && !applied.insert(event.phase.run) {
                    return Err(format!("the apply of {} began twice", event.phase.run));
                }
                if is_apply && let Some(other) = applying.insert(event.workspace, event.phase) {
                    return Err(format!("{} began while {other} went on", event.phase));
                }
            }
            Deed::Stopped if is_apply => {
                applying.remove(&event.workspace);
            }
            Deed::Stopped => {}
        }
    }
    Ok(())
}

/// What was acknowledged is there for ever, and what ended was ended by who had it.
fn check_told(replay: &Replay, told: &Told) -> Result<(), String> {
    if let Some(run) = told.runs.iter().find(|run| !replay.runs.contains_key(run)) {
        return Err(format!("{run} was acknowledged and is lost"));
    }
    for (workspace, digest) in &told.states {
        let is_it = |version: &&StateVersion| version.workspace == *workspace && version.sha256 == *digest;
        if !replay.states.values().any(|version| is_it(&version) && version.status == StateVersionStatus::Finalized) {
            return Err(format!("a state of {workspace} was acknowledged and is lost"));
        }
    }
    if let Some(phase) = told.outcomes_acknowledged.iter().find(|phase| !replay.finished.contains(phase)) {
        return Err(format!("the outcome of {phase} was acknowledged, and the log does not have it"));
    }
    if let Some(phase) = replay.finished.iter().find(|phase| !told.outcomes_sent.contains(phase)) {
        return Err(format!("{phase} ended, though its agent never said so"));
    }
    for (phase, read) in &told.logs_read {
        let written = told.files.get(phase).map(|files| files.log().clone()).unwrap_or_default();
        let has_other_attempts = replay.runs.get(&phase.run).is_some_and(|run| run.phase(phase.phase).epoch > 1);
        if !has_other_attempts && !whole_log(&replay.runs, phase, &written).starts_with(read) {
            return Err(format!("the log of {phase} showed bytes that nobody wrote"));
        }
    }
    Ok(())
}

/// What readers see of what an agent wrote: after why the phase waited, without another mark at its beginning.
fn whole_log(runs: &BTreeMap<RunId, Run>, phase: &PhaseRef, written: &[u8]) -> Vec<u8> {
    let waited = runs.get(&phase.run).map(|run| waiting_text(run.phase(phase.phase), phase.phase)).unwrap_or_default();
    match waited.is_empty() {
        true => written.to_vec(),
        false => [waited.as_bytes(), written.get(1..).unwrap_or_default()].concat(),
    }
}

/// Logs of phases whose agents could report are complete, byte for byte. What an attempt before left comes first.
pub(crate) async fn check_logs(stage: &Stage, replay: &Replay) -> Result<(), String> {
    let plane = watcher(stage).await;
    let told = stage.notes.told().clone();
    for phase in &told.outcomes_acknowledged {
        let mut read = Vec::new();
        loop {
            let (run, kind, offset) = (phase.run, phase.phase, read.len() as u64);
            let part = plane.follow_log(stage.organization, run, kind, offset, usize::MAX, Duration::ZERO).await;
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
fn check_claims(stage: &Stage, replay: &Replay, events: &[Event]) -> Result<(), String> {
    let started: BTreeSet<PhaseRef> = events.iter().map(|event| event.phase).collect();
    for (phase, agent) in &replay.taken {
        let run = &replay.runs[&phase.run];
        let is_under_way = run.executing_phase() == Some(phase.phase) && run.phase(phase.phase).epoch == phase.epoch;
        if stage.is_calm && replay.lost.contains(phase) {
            return Err(format!("{phase} was given up though nothing went wrong"));
        }
        if replay.lost.contains(phase)
            && run.status == RunStatus::Errored
            && run.phase(phase.phase).epoch == phase.epoch
        {
            let why = run.phase(phase.phase).error.as_deref().unwrap_or_default();
            if !why.contains(agent) {
                return Err(format!("{phase} of {agent} was given up because: {why:?}"));
            }
        }
        let is_over = replay.lost.contains(phase) || replay.finished.contains(phase);
        if !started.contains(phase) && !is_over && !is_under_way {
            return Err(format!("{phase} was taken by {agent}, and nothing came of it"));
        }
    }
    Ok(())
}

/// After the faults: every run is over, or waits for a person.
pub(crate) fn check_liveness(replay: &Replay) -> Result<(), String> {
    for run in replay.runs.values().filter(|run| !run.status.is_final()) {
        let awaits_decision = matches!(run.status, RunStatus::Planned | RunStatus::PlannedAndSaved);
        let lock = replay.workspaces.get(&run.workspace).and_then(|workspace| workspace.lock.as_ref());
        let is_kept = lock.is_some_and(|lock| match lock.holder {
            Author::Run(holder) => replay.runs.get(&holder).is_some_and(|holder| holder.status.is_final()),
            _ => true,
        });
        let awaits_unlock = matches!(run.status, RunStatus::Pending | RunStatus::Confirmed) && is_kept;
        if !awaits_decision && !awaits_unlock {
            let executor = run.executing_phase().and_then(|kind| run.phase(kind).executor.clone());
            let history = run.history.iter().map(|entry| format!("{} {}", entry.at, entry.action));
            let history = history.collect::<Vec<_>>().join(", ");
            let executor = executor.map(|executor| executor.agent_name).unwrap_or_default();
            return Err(format!("long after the faults {} is still {} {executor}: {history}", run.id, run.status));
        }
    }
    Ok(())
}
