//! A workspace as doors see it, and what a caller sees of those beside it.

use std::collections::BTreeSet;

use taco_domain::OrganizationState;
use taco_domain::id::{ProjectId, WorkspaceId};
use taco_domain::permission::{Action, Resource};
use taco_domain::workspace::{OwnerRequired, Workspace, check_forced_delete};

use crate::caller::Caller;
use crate::control_plane::OrganizationSnapshot;

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

    /// Whether someone who may delete workspaces could delete this one now with all that it manages, or why not.
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

/// How a path names a workspace.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum WorkspaceRef {
    Id(WorkspaceId),
    Named { organization: String, name: String },
}

/// What to do with a list of consumers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ListChange {
    Add,
    Remove,
    Replace,
}

impl ListChange {
    /// The list after the change. Whoever sees a part of it changes that part: the rest is not theirs to take away, and they
    /// could not know what they add.
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

/// Whether there is such a workspace, as far as the caller may know.
pub(crate) fn sees_workspace(caller: &Caller, state: &OrganizationState, id: &WorkspaceId) -> bool {
    let workspace = state.workspaces.get(id);
    workspace.is_some_and(|workspace| caller.may(Action::ReadWorkspace, Resource::Workspace(state, workspace)).visible)
}

/// Whether there is such a project, as far as the caller may know.
pub(crate) fn sees_project(caller: &Caller, state: &OrganizationState, id: &ProjectId) -> bool {
    let project = state.projects.get(id);
    project.is_some_and(|project| caller.may(Action::ReadProject, Resource::Project(state, project)).visible)
}
