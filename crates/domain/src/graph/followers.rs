//! Followers: units that want a run when outputs change that they use.

use taco_words::graph::EdgePolicy;

use crate::OrganizationState;
use crate::execution::ExecutionMode;
use crate::graph::dependency::Dependency;
use crate::graph::output_commit::{OutputCommit, UsedOutputs, differences_between};
use crate::id::{RunId, WorkspaceId};
use crate::run_trigger::MOST_SOURCES;

impl OrganizationState {
    /// True if a run changed outputs that a unit uses. Where nothing tells what it uses, all count.
    pub fn run_changed_outputs_of(&self, producer: WorkspaceId, run: RunId, consumer: WorkspaceId) -> bool {
        let commits = || self.commits_of_run(producer, run);
        if commits().any(|commit| commit.opaque.is_some()) {
            return true;
        }
        let edge = self.dependencies_of(consumer).find(|edge| edge.producer == Some(producer));
        let used = edge.map_or(UsedOutputs::All, Dependency::used);
        differences_between(commits()).keys().any(|name| used.includes(name))
    }

    /// True if a run trigger would keep an edge's consumer up to date, and there is none: it is proven that it uses outputs,
    /// its runs execute here, and nothing starts them by itself.
    pub fn proposes_trigger(&self, edge: &Dependency) -> bool {
        let (Some(producer), Some(consumer)) = (edge.producer, self.workspaces.get(&edge.consumer)) else {
            return false;
        };
        let mut triggers = self.run_triggers.by().workspace.get(&consumer.id);
        let is_wanted = edge.has_proof() && edge.counts() && edge.policy != EdgePolicy::Auto;
        is_wanted
            && producer != consumer.id
            && self.workspaces.get(&producer).is_some()
            && self.execution_of(consumer).mode != ExecutionMode::Local
            && self.run_triggers.by().workspace.get(&consumer.id).count() < MOST_SOURCES
            && !triggers.any(|trigger| trigger.source == producer)
    }

    fn commits_of_run(&self, workspace: WorkspaceId, run: RunId) -> impl Iterator<Item = &OutputCommit> {
        self.output_commits.by().workspace.under(&workspace).filter(move |commit| commit.run == Some(run))
    }

    /// The last output commit that a run made.
    pub fn last_commit_of_run(&self, workspace: WorkspaceId, run: RunId) -> Option<&OutputCommit> {
        self.commits_of_run(workspace, run).last()
    }

    /// The edges whose consumers start a run by themselves when these outputs of a producer changed. An echo alone starts
    /// nothing.
    pub fn followers<'a>(
        &'a self,
        producer: WorkspaceId,
        is_changed: impl Fn(&UsedOutputs) -> bool + 'a,
    ) -> impl Iterator<Item = &'a Dependency> {
        let wants = |edge: &&Dependency| {
            let is_known = edge.has_proof() || edge.declared.is_some();
            edge.policy == EdgePolicy::Auto && edge.muted.is_none() && is_known
        };
        self.dependents_of(producer).filter(wants).filter(move |edge| is_changed(&edge.used()))
    }
}
