//! Status of units and edges: a pure function of the organization's state.
//!
//! An edge compares what its consumer last applied against with what its producer's outputs are now. A unit is as fresh
//! as the edge that asks for most attention. What nothing proves is unknown, and unknown is never clean.

use std::collections::{BTreeMap, BTreeSet};

use taco_words::graph::{Activity, ConsumedBy, EdgePolicy, EdgeStatus, Freshness, Grade, Health, OutputChange};

use crate::OrganizationState;
use crate::graph::consumption::EXAMINER;
use crate::graph::dependency::{Consumed, Dependency};
use crate::graph::output_commit::{OutputCommit, OutputCommitId, OutputCommitNumber, UsedOutputs, WorkspaceOutputs};
use crate::graph::output_type::is_still_usable;
use crate::id::WorkspaceId;
use crate::output::{CommittedOutput, OutputDigest};
use crate::run_status::RunStatus;
use crate::workspace::Workspace;

/// Status of a unit on three axes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct UnitStatus {
    pub freshness: Freshness,
    pub activity: Activity,
    pub health: Health,
}

/// An edge as it is now.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct EdgeState {
    pub status: EdgeStatus,
    /// False where all that speaks for it are echoes, or where it is assumed.
    pub certain: bool,
    /// The used outputs that are not as the consumer last applied them.
    pub moved: Vec<MovedOutput>,
}

/// A used output that changed after its consumer's last effective apply.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct MovedOutput {
    pub name: String,
    pub change: OutputChange,
    /// The output commit that the consumer applied against, if it is known.
    pub from: Option<OutputCommitNumber>,
    /// The output commit that made the output what it is now.
    pub to: Option<OutputCommitNumber>,
}

impl EdgeState {
    fn without_moves(status: EdgeStatus, certain: bool) -> Self {
        Self { status, certain, moved: Vec::new() }
    }

    /// Freshness of a unit that has this edge alone.
    pub fn freshness(&self) -> Freshness {
        match self.status {
            EdgeStatus::Fresh => Freshness::Clean,
            EdgeStatus::Stale => Freshness::Stale,
            EdgeStatus::Missing | EdgeStatus::Retyped => Freshness::Broken,
            EdgeStatus::Unbound | EdgeStatus::Unobserved | EdgeStatus::Opaque | EdgeStatus::Unknown => {
                Freshness::Unknown
            }
        }
    }
}

impl Dependency {
    /// False if a person has said that changes of it are of no concern.
    pub fn counts(&self) -> bool {
        self.muted.is_none() && self.policy != EdgePolicy::Ignore
    }
}

impl OrganizationState {
    /// The edges through which a unit uses others.
    pub fn dependencies_of(&self, consumer: WorkspaceId) -> impl Iterator<Item = &Dependency> {
        self.dependencies.by().consumer.get(&consumer)
    }

    /// The edges through which others use a unit.
    pub fn dependents_of(&self, producer: WorkspaceId) -> impl Iterator<Item = &Dependency> {
        self.dependencies.by().producer.get(&producer)
    }

    /// The output commit of this number, if it is in memory.
    pub fn output_commit(&self, workspace: WorkspaceId, number: OutputCommitNumber) -> Option<&OutputCommit> {
        self.output_commits.get(&OutputCommitId::of(workspace, number))
    }

    pub fn edge_state(&self, edge: &Dependency) -> EdgeState {
        let has_proof = edge.has_proof();
        let Some(producer) = edge.producer.and_then(|id| self.workspaces.get(&id)) else {
            return EdgeState::without_moves(EdgeStatus::Unbound, has_proof);
        };
        let outputs = match self.workspace_outputs.get(&producer.id) {
            Some(outputs) if outputs.opaque.is_some() => {
                return EdgeState::without_moves(EdgeStatus::Opaque, has_proof);
            }
            outputs => outputs,
        };
        if producer.current_state_version.is_none() {
            return EdgeState::without_moves(EdgeStatus::Unbound, has_proof);
        }
        if outputs.is_none() && self.has_unread_outputs(producer) {
            return EdgeState::without_moves(EdgeStatus::Unknown, false);
        }
        let used = edge.used();
        match &edge.consumed {
            Some(consumed) => compared(edge, consumed, &used, outputs),
            None if edge.observed.is_empty() => EdgeState::without_moves(EdgeStatus::Unobserved, true),
            None => unapplied(edge, &used, outputs),
        }
    }

    /// True if a workspace's state has outputs that were not taken in yet.
    fn has_unread_outputs(&self, workspace: &Workspace) -> bool {
        let current = self.current_state_version(workspace);
        current.is_none_or(|version| version.has_outputs() || version.encrypted)
    }

    /// True if the unit's newest state was examined for evidence, by rules that are not older than this server's.
    pub fn is_examined(&self, workspace: &Workspace) -> bool {
        let examined = self.consumptions.get(&workspace.id);
        examined.is_some_and(|examined| {
            examined.examiner >= EXAMINER
                && examined.state_version == workspace.current_state_version
                && examined.unreadable.is_none()
        })
    }

    pub fn freshness(&self, workspace: &Workspace) -> Freshness {
        if workspace.current_state_version.is_none() {
            return Freshness::NeverApplied;
        }
        let examined = if self.is_examined(workspace) { Freshness::Clean } else { Freshness::Unknown };
        let counting = self.dependencies_of(workspace.id).filter(|edge| edge.counts());
        counting.fold(examined, |freshness, edge| freshness.and(self.edge_state(edge).freshness()))
    }

    pub fn activity(&self, workspace: &Workspace) -> Activity {
        let open = self.runs.by().open.get(&workspace.id);
        // Runs that change nothing do not keep a unit busy.
        let active = open.filter(|run| !run.options.plan_only && run.status != RunStatus::PlannedAndSaved);
        let of = |status: RunStatus| match status {
            RunStatus::Applying | RunStatus::PreApplyRunning => Activity::Applying,
            RunStatus::Planning | RunStatus::PrePlanRunning | RunStatus::PostPlanRunning => Activity::Planning,
            RunStatus::Planned | RunStatus::PolicyOverride => Activity::NeedsApproval,
            _ => Activity::Queued,
        };
        let rank = |activity: &Activity| match activity {
            Activity::Applying => 4,
            Activity::Planning => 3,
            Activity::NeedsApproval => 2,
            Activity::Queued => 1,
            Activity::Locked | Activity::Idle => 0,
        };
        let locked = || if workspace.lock.is_some() { Activity::Locked } else { Activity::Idle };
        active.map(|run| of(run.status)).max_by_key(rank).unwrap_or_else(locked)
    }

    pub fn health(&self, workspace: &Workspace) -> Health {
        let runs = self.runs.by().workspace.under(&workspace.id);
        let ended = runs.filter(|run| !run.options.plan_only).find(|run| run.status.is_final());
        match ended {
            Some(run) if run.status == RunStatus::Errored => Health::Errored,
            Some(run)
                if run.options.refresh_only && run.has_changes == Some(true) && run.status != RunStatus::Applied =>
            {
                Health::Drifted
            }
            _ => Health::Ok,
        }
    }

    pub fn unit_status(&self, workspace: &Workspace) -> UnitStatus {
        UnitStatus {
            freshness: self.freshness(workspace),
            activity: self.activity(workspace),
            health: self.health(workspace),
        }
    }
}

/// An edge whose consumer has applied it.
fn compared(
    edge: &Dependency,
    consumed: &Consumed,
    used: &UsedOutputs,
    outputs: Option<&WorkspaceOutputs>,
) -> EdgeState {
    let seen: BTreeMap<&str, Seen<'_>> = consumed
        .outputs
        .iter()
        .map(|(name, output)| {
            (name.as_str(), Seen { digest: output.digest, detailed_type: Some(&output.detailed_type) })
        })
        .collect();
    let mut moved = moves(used, &seen, outputs, consumed.commit);
    // An acknowledgement counts as proof: a person answers for it.
    let is_proof = consumed.grade.is_proof() || consumed.how == ConsumedBy::Acknowledged;
    let certain = is_proof && !consumed.assumed;
    let maybe: BTreeSet<&String> = edge.observed.values().flat_map(|seen| &seen.maybe).collect();
    let doubtful = |name: &String| maybe.contains(name);
    let had_moves = !moved.is_empty();
    moved.retain(|output| !doubtful(&output.name));
    if moved.is_empty() && had_moves {
        return EdgeState::without_moves(EdgeStatus::Unknown, false);
    }
    let unproven = if is_proof { EdgeStatus::Fresh } else { EdgeStatus::Unknown };
    EdgeState { status: status_of(&moved, unproven), certain, moved }
}

/// An edge that was seen, and whose consumer was never seen to apply it.
fn unapplied(edge: &Dependency, used: &UsedOutputs, outputs: Option<&WorkspaceOutputs>) -> EdgeState {
    // What was read or is held is at least as new as what was applied.
    let best = edge.observed.iter().find(|(_, seen)| !seen.values.is_empty());
    let Some((grade, observation)) = best else { return EdgeState::without_moves(EdgeStatus::Unknown, false) };
    let seen: BTreeMap<&str, Seen<'_>> = observation
        .values
        .iter()
        .map(|(name, digest)| (name.as_str(), Seen { digest: *digest, detailed_type: None }))
        .collect();
    let mut moved = moves(used, &seen, outputs, None);
    moved.retain(|output| !observation.maybe.contains(&output.name));
    EdgeState {
        status: status_of(&moved, EdgeStatus::Unknown),
        certain: grade.is_proof() && *grade != Grade::Echo,
        moved,
    }
}

#[derive(Clone, Copy)]
struct Seen<'a> {
    digest: OutputDigest,
    detailed_type: Option<&'a String>,
}

/// The used outputs that are not as they were seen.
fn moves(
    used: &UsedOutputs,
    seen: &BTreeMap<&str, Seen<'_>>,
    outputs: Option<&WorkspaceOutputs>,
    from: Option<OutputCommitNumber>,
) -> Vec<MovedOutput> {
    let current = |name: &str| outputs.and_then(|outputs| outputs.outputs.get(name));
    let names: BTreeSet<&str> = match used {
        UsedOutputs::Names(names) => names.iter().map(String::as_str).collect(),
        UsedOutputs::All => {
            let now = outputs.into_iter().flat_map(|outputs| outputs.outputs.keys().map(String::as_str));
            seen.keys().copied().chain(now).collect()
        }
    };
    let moved = |name: &str| {
        let (then, now) = (seen.get(name), current(name));
        let change = match (then, now) {
            (None, None) => return None,
            (None, Some(_)) => OutputChange::Added,
            (Some(_), None) => OutputChange::Removed,
            (Some(then), Some(now)) => changed(*then, &now.committed)?,
        };
        let to = now.map(|output| output.since).or(outputs.map(|outputs| outputs.number));
        Some(MovedOutput { name: name.to_owned(), change, from, to })
    };
    names.into_iter().filter_map(moved).collect()
}

/// A change of type that whoever uses the output does not mind, as a list that has one element more, is one of its value.
fn changed(then: Seen<'_>, now: &CommittedOutput) -> Option<OutputChange> {
    match then.detailed_type {
        Some(detailed_type) if !is_still_usable(detailed_type, &now.detailed_type) => Some(OutputChange::Type),
        _ if then.digest != now.digest => Some(OutputChange::Value),
        _ => None,
    }
}

fn status_of(moved: &[MovedOutput], unmoved: EdgeStatus) -> EdgeStatus {
    let has = |change| moved.iter().any(|output| output.change == change);
    match () {
        () if moved.is_empty() => unmoved,
        () if has(OutputChange::Removed) => EdgeStatus::Missing,
        () if has(OutputChange::Type) => EdgeStatus::Retyped,
        () => EdgeStatus::Stale,
    }
}
