//! A workspace as doors see it, and what a caller sees of its neighbours.

use std::collections::BTreeSet;

use jiff::Timestamp;
use taco_domain::OrganizationState;
use taco_domain::agent_pool::AgentPool;
use taco_domain::configuration_version::ConfigurationVersion;
use taco_domain::execution::Execution;
use taco_domain::graph::words::ContractPolicy;
use taco_domain::id::{OutputId, ProjectId, WorkspaceId};
use taco_domain::permission::{Action, Resource};
use taco_domain::project::Project;
use taco_domain::retention::RetentionPolicy;
use taco_domain::run::Run;
use taco_domain::run_statistics::RunStatistics;
use taco_domain::state_version::StateVersion;
use taco_domain::variable::{Variable, VariableOwner};
use taco_domain::variable_precedence::{ReachingVariable, variables_reaching};
use taco_domain::variable_set::VariableSet;
use taco_domain::workspace::{OwnerRequired, Workspace, check_forced_delete};

use crate::caller::Caller;
use crate::control_plane::OrganizationSnapshot;
use crate::error::Error;
use crate::find::find_if_there;

/// A workspace as a door shows it, and its organization at the same moment.
#[derive(Clone)]
pub struct WorkspaceView {
    pub workspace: Workspace,
    pub org: OrganizationSnapshot,
}

impl WorkspaceView {
    /// For [`Caller::may`].
    pub fn resource(&self) -> Resource<'_> {
        Resource::Workspace(&self.org.state, &self.workspace)
    }

    /// Execution mode of its runs: its own, or that of its project or organization.
    pub fn execution(&self) -> Execution {
        self.org.state.execution_of(&self.workspace)
    }

    /// Execution mode that it inherits where it has none of its own.
    pub fn inherited_execution(&self) -> Execution {
        self.org.state.default_execution(&self.workspace.project)
    }

    /// Policy for its plans that break outputs which others use.
    pub fn contract_policy(&self) -> ContractPolicy {
        self.org.state.contract_policy(&self.workspace)
    }

    /// The same, where it has none of its own.
    pub fn inherited_contract_policy(&self) -> ContractPolicy {
        self.org.state.inherited_contract_policy(self.workspace.project)
    }

    /// The policy for its old data that holds: its own, or else the organization's.
    pub fn retention(&self) -> Option<RetentionPolicy> {
        self.org.state.retention_of(&self.workspace)
    }

    /// The pool whose agents execute its runs.
    pub fn agent_pool(&self) -> Option<&AgentPool> {
        self.execution().agent_pool.and_then(|id| self.org.state.agent_pools.get(&id))
    }

    pub fn project(&self) -> Option<&Project> {
        self.org.state.projects.get(&self.workspace.project)
    }

    /// The run that people look at: the one that goes on, or the newest.
    pub fn current_run(&self) -> Option<&Run> {
        self.org.state.current_run(self.workspace.id)
    }

    pub fn latest_run(&self) -> Option<&Run> {
        self.org.state.runs_of(self.workspace.id).next()
    }

    pub fn run_statistics(&self) -> RunStatistics {
        self.org.state.run_statistics(self.workspace.id)
    }

    pub fn current_state_version(&self) -> Option<&StateVersion> {
        self.org.state.current_state_version(&self.workspace)
    }

    pub fn current_configuration(&self) -> Option<&ConfigurationVersion> {
        self.org.state.current_configuration(self.workspace.id)
    }

    /// The configuration that the next run uses.
    pub fn usable_configuration(&self) -> Option<&ConfigurationVersion> {
        self.org.state.usable_configuration(self.workspace.id)
    }

    pub fn latest_state_change(&self) -> Timestamp {
        self.org.state.latest_state_change(&self.workspace)
    }

    pub fn latest_change(&self) -> Timestamp {
        self.org.state.latest_change(&self.workspace)
    }

    /// The variables that reach its runs, with those that others override.
    pub fn variables_reaching(&self) -> Vec<ReachingVariable<'_>> {
        variables_reaching(&self.org.state, &self.workspace)
    }

    /// Set that a variable belongs to; `None` if it is the workspace's own.
    pub fn variable_set_of(&self, variable: &Variable) -> Option<&VariableSet> {
        match variable.owner {
            VariableOwner::Workspace(_) => None,
            VariableOwner::VariableSet(id) => self.org.state.variable_sets.get(&id),
        }
    }

    /// True if an output belongs to one of this workspace's states.
    pub fn has_output(&self, id: &OutputId) -> bool {
        let version = self.org.state.state_versions.by().output.first(id);
        version.is_some_and(|version| version.workspace == self.workspace.id)
    }

    /// Contents that are deleted with it.
    pub fn contents(&self) -> WorkspaceContents {
        let (state, workspace) = (&self.org.state, &self.workspace);
        WorkspaceContents {
            resources: workspace.resource_count,
            states: state.state_version_count(workspace),
            runs: state.run_count(workspace),
            variables: state.variables_of(VariableOwner::Workspace(workspace.id)).count(),
        }
    }

    /// `Ok` if someone who may delete workspaces could delete this one now with all that it manages, otherwise the
    /// reason why not.
    pub fn forced_deletion(&self, caller: &Caller) -> Result<(), OwnerRequired> {
        forced_deletion(caller, &self.org.state, &self.workspace)
    }

    /// The workspaces on the list of those whose runs may read this one's state, as far as the caller may see them.
    pub fn remote_state_consumers(&self, caller: &Caller) -> impl Iterator<Item = &Workspace> {
        let state = &self.org.state;
        let listed = self.workspace.remote_state_consumers.iter().filter_map(move |id| state.workspaces.get(id));
        listed.filter(move |other| caller.may(Action::ReadWorkspace, Resource::Workspace(state, other)).allowed)
    }
}

pub(crate) fn forced_deletion(
    caller: &Caller,
    state: &OrganizationState,
    workspace: &Workspace,
) -> Result<(), OwnerRequired> {
    let by_owner = caller.may(Action::UpdateOrganization, Resource::Organization(state)).allowed;
    check_forced_delete(workspace, state.organization(), by_owner)
}

/// Counts of what a workspace contains.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct WorkspaceContents {
    pub resources: u64,
    pub states: u64,
    pub runs: u64,
    pub variables: usize,
}

/// Reference to a workspace in a path.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum WorkspaceRef {
    Id(WorkspaceId),
    Named { organization: String, name: String },
}

impl WorkspaceRef {
    /// The workspace, if its organization has it.
    pub(crate) fn find_in<'a>(&self, state: &'a OrganizationState) -> Result<Option<&'a Workspace>, Error> {
        match self {
            Self::Id(id) => find_if_there(state, id),
            Self::Named { name, .. } => Ok(state.workspace_named(name)),
        }
    }
}

/// Change to a list of consumers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ListChange {
    Add,
    Remove,
    Replace,
}

impl ListChange {
    /// The list after the change. A caller who sees a part of it changes that part: the rest is not theirs to take
    /// away, and they could not know what they add.
    pub(crate) fn of_seen<I: Ord + Copy>(
        self,
        before: &BTreeSet<I>,
        named: &BTreeSet<I>,
        sees: impl Fn(&I) -> bool,
    ) -> BTreeSet<I> {
        let named: BTreeSet<I> = named.iter().copied().filter(|id| sees(id)).collect();
        let kept = before.iter().copied().filter(|id| match self {
            Self::Add => true,
            Self::Remove => !named.contains(id),
            Self::Replace => !sees(id),
        });
        match self {
            Self::Remove => kept.collect(),
            Self::Add | Self::Replace => kept.chain(named.iter().copied()).collect(),
        }
    }
}

/// True if there is such a workspace, as far as the caller may know.
pub(crate) fn sees_workspace(caller: &Caller, state: &OrganizationState, id: &WorkspaceId) -> bool {
    let workspace = state.workspaces.get(id);
    workspace.is_some_and(|workspace| caller.may(Action::ReadWorkspace, Resource::Workspace(state, workspace)).visible)
}

/// True if there is such a project, as far as the caller may know.
pub(crate) fn sees_project(caller: &Caller, state: &OrganizationState, id: &ProjectId) -> bool {
    let project = state.projects.get(id);
    project.is_some_and(|project| caller.may(Action::ReadProject, Resource::Project(state, project)).visible)
}
