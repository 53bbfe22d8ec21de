//! The queue of a workspace: which of its runs may begin. Nothing of it is stored but each run's place, so it cannot
//! disagree with the runs.

use std::cmp::Reverse;

use jiff::Timestamp;

use crate::author::Author;
use crate::configuration_version::ConfigurationVersion;
use crate::id::WorkspaceId;
use crate::lock::Lock;
use crate::organization_state::OrganizationState;
use crate::run::Run;
use crate::run_status::{RunEvent, RunStatus};
use crate::workspace::Workspace;

impl OrganizationState {
    /// A workspace's runs, newest first.
    pub fn runs_of(&self, workspace: WorkspaceId) -> impl Iterator<Item = &Run> {
        let from_newest = self.runs.by().workspace.from((workspace, Reverse(u64::MAX)));
        from_newest.take_while(move |((owner, _), _)| *owner == workspace).filter_map(|(_, id)| self.runs.get(id))
    }

    /// The runs of a workspace that may change its state and are not over, in order. The first is the current one.
    pub fn queue_of(&self, workspace: WorkspaceId) -> impl Iterator<Item = &Run> {
        let from_first = self.runs.by().place.from((workspace, 0));
        from_first.take_while(move |((owner, _), _)| *owner == workspace).filter_map(|(_, id)| self.runs.get(id))
    }

    /// The run that a workspace is busy with: the first of its queue, else the newest of all.
    pub fn current_run(&self, workspace: WorkspaceId) -> Option<&Run> {
        self.queue_of(workspace).next().or_else(|| self.runs_of(workspace).find(|run| !run.options.plan_only))
    }

    /// The newest configuration of a workspace that runs can use and that is more than a plan's.
    pub fn usable_configuration(&self, workspace: WorkspaceId) -> Option<&ConfigurationVersion> {
        let from_newest = self.configuration_versions.by().workspace.from((workspace, Reverse(u64::MAX)));
        let of_workspace = from_newest.take_while(move |((owner, _), _)| *owner == workspace);
        let versions = of_workspace.filter_map(|(_, id)| self.configuration_versions.get(id));
        versions.into_iter().find(|version| version.is_usable() && !version.speculative && !version.provisional)
    }

    /// The number of a workspace's next run.
    pub fn next_run_number(&self, workspace: WorkspaceId) -> u64 {
        self.runs_of(workspace).next().map_or(1, |newest| newest.number + 1)
    }

    /// The place behind everything that waits in a workspace.
    pub fn last_place(&self, workspace: WorkspaceId) -> u64 {
        self.queue_of(workspace).filter_map(|run| run.place).max().map_or(1, |last| last + 1)
    }
}

/// What follows for a workspace from whatever just happened to it: the run that may begin, and the workspace as that
/// run holds it. `None` where nothing follows. Whoever ends a run, takes away a lock or makes a run asks this in the
/// same transaction, so a run never waits for nothing.
pub fn advance(state: &OrganizationState, workspace: &Workspace, now: Timestamp) -> Option<(Run, Workspace)> {
    let first = state.queue_of(workspace.id).next()?;
    let waits = matches!(first.status, RunStatus::Pending | RunStatus::Confirmed);
    let holder = Author::Run(first.id);
    let free = workspace.lock.as_ref().is_none_or(|lock| lock.holder == holder);
    if !waits || !free {
        return None;
    }
    let run = first.after(RunEvent::ReachedFront, now, Author::Taco).ok()?;
    let lock = Lock { holder, holder_name: run.id.to_string(), since: now, reason: None, from: None, http: None };
    Some((run, Workspace { lock: Some(lock), ..workspace.clone() }))
}

/// The workspace without the lock of a run that is over.
pub fn released(workspace: &Workspace, run: &Run) -> Workspace {
    let held_by_run = workspace.lock.as_ref().is_some_and(|lock| lock.holder == Author::Run(run.id));
    Workspace { lock: if held_by_run { None } else { workspace.lock.clone() }, ..workspace.clone() }
}
