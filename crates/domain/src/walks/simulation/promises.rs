//! Promises of walks, by name, so that a test can say which of them a mistake breaks.

use std::collections::{BTreeMap, BTreeSet};

use taco_words::graph::{WalkKind, WalkNodeState, WalkState};

use super::world::World;
use crate::id::WorkspaceId;
use crate::walks::steps::MAX_OUTDATED_PLANS;
use crate::walks::walk::WalkNode;

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Promise {
    /// Nothing begins before all that it uses is done; in a destroy, before all that use it are.
    WhatIsUsedComesFirst,
    /// What has no run has no change of its own, and uses what it used when it was last applied.
    WhatIsCutOffIsUnchanged,
    /// A run is started once, and a unit has one at a time.
    ARunStartsOnce,
    /// No more runs than wanted at a time.
    NotTooManyAtOnce,
    /// What a plan was made from is still so when it is applied.
    NoOutdatedPlanIsApplied,
    /// A unit is applied once in a walk.
    AnApplyHappensOnce,
    /// Resuming retries what failed and nothing else.
    OnlyFailuresAreRetried,
    /// What only plans applies nothing.
    PreviewsAreNotApplied,
    /// A walk ends, and then each of its nodes has an end and a reason, and no run is left.
    EverythingEndsWithAReason,
}

/// The promises that a history broke, each with how that was first seen.
#[derive(Default, Debug)]
pub(super) struct Broken(BTreeMap<Promise, String>);

impl Broken {
    pub(super) fn keeps(&mut self, promise: Promise, is_kept: bool, how: impl FnOnce() -> String) {
        if !is_kept {
            self.0.entry(promise).or_insert_with(how);
        }
    }

    pub(super) fn has(&self, promise: Promise) -> bool {
        self.0.contains_key(&promise)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl World {
    /// Units of the walk that have to be done before this one: what it uses, or what uses it. The walk's own list of what
    /// each node needs is not asked.
    fn before(&self, unit: WorkspaceId) -> BTreeSet<WorkspaceId> {
        let uses = |unit: &WorkspaceId| self.units[unit].uses.iter().filter_map(|used| used.producer);
        match self.walk.kind {
            WalkKind::Destroy => {
                self.nodes.keys().filter(|other| uses(other).any(|used| used == unit)).copied().collect()
            }
            _ => uses(&unit).filter(|used| self.nodes.contains_key(used)).collect(),
        }
    }

    /// Checks a node that has just changed.
    pub(super) fn check(&mut self, before: &WalkNode, node: &WalkNode) {
        let begins = node.runs.len() > before.runs.len() || node.state == WalkNodeState::CutOff;
        if begins {
            let early = self.before(node.workspace).into_iter().find(|need| !self.nodes[need].lets_others_begin());
            self.broken.keeps(Promise::WhatIsUsedComesFirst, early.is_none(), || format!("{node:?} before {early:?}"));
        }
        if node.state == WalkNodeState::CutOff && self.walk.kind != WalkKind::Destroy {
            let now = self.reads(node.workspace);
            let unit = &self.units[&node.workspace];
            let is_same = (Some(now.0), &now.1) == (unit.applied_code, &unit.applied_inputs);
            self.broken.keeps(Promise::WhatIsCutOffIsUnchanged, is_same, || format!("{node:?}"));
        }
        let has_reason = node.reason.as_ref().is_some_and(|reason| !reason.is_empty()) && node.ended_at.is_some();
        let (ends, is_tried_too_often) = (node.has_ended(), node.outdated > MAX_OUTDATED_PLANS);
        self.broken.keeps(Promise::EverythingEndsWithAReason, !ends || has_reason, || format!("{node:?}"));
        self.broken.keeps(Promise::EverythingEndsWithAReason, !is_tried_too_often, || format!("{node:?}"));
    }

    /// Checks a walk that is over.
    pub(super) fn check_at_rest(&mut self) {
        let is_over = !self.walk.is_open() && self.walk.ended_at.is_some();
        self.broken.keeps(Promise::EverythingEndsWithAReason, is_over, || format!("{:?}", self.walk));
        let open = self.nodes.values().find(|node| !node.has_ended() || node.reason.is_none());
        self.broken.keeps(Promise::EverythingEndsWithAReason, open.is_none(), || format!("{open:?}"));
        let left = self.runs.values().find(|run| !run.status.is_final());
        self.broken.keeps(Promise::EverythingEndsWithAReason, left.is_none(), || format!("{left:?}"));
        let is_as_its_nodes =
            (self.walk.state == WalkState::Done) == self.nodes.values().all(WalkNode::lets_others_begin);
        self.broken.keeps(Promise::EverythingEndsWithAReason, is_as_its_nodes, || format!("{:?}", self.walk));
        let applied = self.applied.keys().filter_map(|run| self.runs.get(run)).find(|run| run.options.plan_only);
        self.broken.keeps(Promise::PreviewsAreNotApplied, applied.is_none(), || format!("{applied:?}"));
        let mut of_units: BTreeMap<WorkspaceId, u32> = BTreeMap::new();
        for (run, times) in &self.applied {
            *of_units.entry(self.runs[run].workspace).or_default() += times;
        }
        let twice = of_units.into_iter().find(|(_, times)| *times > 1);
        self.broken.keeps(Promise::AnApplyHappensOnce, twice.is_none(), || format!("{twice:?}"));
    }
}
