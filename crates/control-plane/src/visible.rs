//! View of an organization limited to what a caller may see: each method checks the permission that reading takes, so a
//! door cannot forget it.

use taco_domain::OrganizationState;
use taco_domain::id::{AgentId, ProjectId, WorkspaceId};
use taco_domain::permission::{Action, Decision, Resource};
use taco_domain::project::Project;
use taco_domain::run::Run;
use taco_domain::search::Query;
use taco_domain::workspace::Workspace;

use crate::caller::Caller;

/// An organization through the eyes of a caller.
#[derive(Clone, Copy)]
pub struct Visible<'a> {
    state: &'a OrganizationState,
    caller: &'a Caller,
}

impl<'a> Visible<'a> {
    pub(crate) fn new(state: &'a OrganizationState, caller: &'a Caller) -> Self {
        Self { state, caller }
    }

    fn may_read_workspace(&self, workspace: &Workspace) -> bool {
        self.caller.may(Action::ReadWorkspace, Resource::Workspace(self.state, workspace)).allowed
    }

    fn may_read_project(&self, project: &Project) -> bool {
        self.caller.may(Action::ReadProject, Resource::Project(self.state, project)).allowed
    }

    pub fn workspace(&self, id: &WorkspaceId) -> Option<&'a Workspace> {
        self.state.workspaces.get(id).filter(|workspace| self.may_read_workspace(workspace))
    }

    /// The workspace with this name, if the caller may know that there is one.
    pub fn workspace_named(&self, name: &str) -> Option<&'a Workspace> {
        let sees = |workspace: &&Workspace| {
            self.caller.may(Action::ReadWorkspace, Resource::Workspace(self.state, workspace)).visible
        };
        self.state.workspace_named(name).filter(sees)
    }

    /// Workspaces by name.
    pub fn workspaces(self) -> impl Iterator<Item = &'a Workspace> {
        self.state.workspaces_by_name().filter(move |workspace| self.may_read_workspace(workspace))
    }

    /// Workspaces in which the caller may start a run, the best for a search first.
    pub fn workspaces_for_runs(&self, query: &Query, limit: usize) -> Vec<&'a Workspace> {
        let (state, caller) = (self.state, self.caller);
        let may = |workspace: &Workspace| caller.may(Action::QueuePlan, Resource::Workspace(state, workspace)).allowed;
        query.best(state.workspaces.iter(), |workspace| workspace.name.as_str(), may, limit)
    }

    pub fn project(&self, id: &ProjectId) -> Option<&'a Project> {
        self.state.projects.get(id).filter(|project| self.may_read_project(project))
    }

    pub fn projects(self) -> impl Iterator<Item = &'a Project> {
        self.state.projects.iter().filter(move |project| self.may_read_project(project))
    }

    /// Decision about an action in a project.
    pub fn may_in_project(&self, action: Action, project: &Project) -> Decision {
        self.caller.may(action, Resource::Project(self.state, project))
    }

    /// The run that an agent executes, with its workspace.
    pub fn run_executed_by(&self, agent: AgentId) -> Option<(&'a Run, &'a Workspace)> {
        let run = self.state.runs.by().executing.first(&agent)?;
        Some((run, self.workspace(&run.workspace)?))
    }
}
