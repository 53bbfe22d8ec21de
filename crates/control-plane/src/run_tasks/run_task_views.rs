//! Run tasks of organizations and of workspaces, as doors show them.

use taco_domain::permission::{Action, Decision};
use taco_domain::run_task::RunTask;
use taco_domain::workspace_run_task::WorkspaceRunTask;

use crate::caller::Caller;
use crate::control_plane::OrganizationSnapshot;
use crate::workspace_view::WorkspaceView;

/// A run task as a door shows it.
#[derive(Clone)]
pub struct RunTaskView {
    pub task: RunTask,
    pub org: OrganizationSnapshot,
}

impl RunTaskView {
    /// Its uses in workspaces of which the caller may know.
    pub fn workspace_tasks(&self, caller: &Caller) -> Vec<WorkspaceRunTaskView> {
        let state = &self.org.state;
        let uses = state.workspace_run_tasks.by().task.get(&self.task.id);
        let seen = uses.filter(|one| self.org.visible_to(caller).workspace(&one.workspace).is_some());
        seen.map(|one| WorkspaceRunTaskView { task: one.clone(), org: self.org.clone() }).collect()
    }

    /// May the caller change it?
    pub fn may_manage(&self, caller: &Caller) -> Decision {
        caller.may(Action::ManageRunTasks, self.org.resource())
    }
}

/// A workspace's task as a door shows it.
#[derive(Clone)]
pub struct WorkspaceRunTaskView {
    pub task: WorkspaceRunTask,
    pub org: OrganizationSnapshot,
}

impl WorkspaceRunTaskView {
    /// The task of the organization that is asked.
    pub fn run_task(&self) -> Option<RunTaskView> {
        let task = self.org.state.run_tasks.get(&self.task.task)?.clone();
        Some(RunTaskView { task, org: self.org.clone() })
    }

    pub fn workspace(&self) -> Option<WorkspaceView> {
        let workspace = self.org.state.workspaces.get(&self.task.workspace)?.clone();
        Some(WorkspaceView { workspace, org: self.org.clone() })
    }
}

impl WorkspaceView {
    /// May the caller choose its run tasks?
    pub fn may_attach_tasks(&self, caller: &Caller) -> Decision {
        caller.may(Action::AttachRunTasks, self.resource())
    }

    /// Run tasks of the organization that are asked in all workspaces.
    pub fn global_run_tasks(&self) -> Vec<RunTask> {
        self.org.state.run_tasks.by().global.iter().filter(|task| task.enabled).cloned().collect()
    }

    /// Run tasks of the organization, by name, that this workspace could use and does not.
    pub fn unattached_run_tasks(&self) -> Vec<RunTask> {
        let state = &self.org.state;
        let is_used = |task: &RunTask| state.run_tasks_of(self.workspace.id).any(|own| own.task == task.id);
        state.run_tasks.by().name.iter().filter(|task| !is_used(task)).cloned().collect()
    }
}
