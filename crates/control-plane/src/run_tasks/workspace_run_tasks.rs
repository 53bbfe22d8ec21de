//! Run tasks of workspaces: list, make, read, change, delete.

use taco_boxed::boxed;
use taco_domain::id::WorkspaceId;
use taco_domain::permission::Action;
use taco_domain::run_task::{RunTask, RunTaskId};
use taco_domain::run_task_patch::WorkspaceRunTaskPatch;
use taco_domain::task_result::MAX_TASKS_OF_STAGE;
use taco_domain::workspace::Workspace;
use taco_domain::workspace_run_task::{WorkspaceRunTask, WorkspaceRunTaskId};
use taco_tables::Record as _;

use crate::caller::Caller;
use crate::change::Tx;
use crate::control_plane::ControlPlane;
use crate::error::Error;
use crate::page::{Listed, PageRequest};
use crate::run_task_views::WorkspaceRunTaskView;
use crate::workspace_view::WorkspaceRef;

#[boxed]
impl ControlPlane {
    /// A workspace's own tasks, oldest first.
    pub async fn workspace_run_tasks(
        &self,
        caller: &Caller,
        workspace: &WorkspaceRef,
        page: PageRequest,
    ) -> Result<Listed<WorkspaceRunTaskView>, Error> {
        let view = self.workspace_with_runs(caller, workspace).await?;
        let listed = Listed::from_all(view.org.state.run_tasks_of(view.workspace.id), page).cloned();
        Ok(listed.map(|task| WorkspaceRunTaskView { task, org: view.org.clone() }))
    }

    pub async fn workspace_run_task(
        &self,
        caller: &Caller,
        workspace: WorkspaceId,
        id: WorkspaceRunTaskId,
    ) -> Result<WorkspaceRunTaskView, Error> {
        let view = self.workspace_with_runs(caller, &WorkspaceRef::Id(workspace)).await;
        let view = view.map_err(|error| match error {
            Error::NotFound(_) => Error::NotFound(WorkspaceRunTask::NOUN),
            other => other,
        })?;
        let task = view.org.get::<WorkspaceRunTask>(&id)?.clone();
        if task.workspace != workspace {
            return Err(Error::NotFound(WorkspaceRunTask::NOUN));
        }
        Ok(WorkspaceRunTaskView { task, org: view.org })
    }

    pub async fn create_workspace_run_task(
        &self,
        caller: &Caller,
        workspace: WorkspaceId,
        patch: WorkspaceRunTaskPatch,
    ) -> Result<WorkspaceRunTaskView, Error> {
        let prefix = workspace.organization_prefix();
        let mut org = self.authorized_organization(caller, prefix, Workspace::NOUN).await?;
        let (id, now) = (WorkspaceRunTaskId::within(prefix, self.random()), self.now());
        let task = org.change(caller, "workspace-run-task.create", now, move |tx| {
            tx.workspace_of::<Workspace>(&workspace, Action::AttachRunTasks)?;
            let wanted = checked_task(tx, patch.task)?;
            let new = patch.create(id, workspace, wanted.id, now)?;
            let state = tx.state();
            if state.run_tasks_of(workspace).any(|own| own.task == wanted.id) {
                let detail = format!("The task {} is attached to the workspace already: change it there", wanted.name);
                return Err(Error::Invalid { pointer: "/data/relationships/task".to_owned(), detail });
            }
            if state.run_tasks_of(workspace).count() >= MAX_TASKS_OF_STAGE {
                let detail = format!("The workspace has {MAX_TASKS_OF_STAGE} run tasks, which is the most: remove one");
                return Err(Error::Conflict(detail));
            }
            tx.put(&new);
            Ok(new)
        });
        let task = task.await?;
        Ok(WorkspaceRunTaskView { task, org })
    }

    pub async fn update_workspace_run_task(
        &self,
        caller: &Caller,
        workspace: WorkspaceId,
        id: WorkspaceRunTaskId,
        patch: WorkspaceRunTaskPatch,
    ) -> Result<WorkspaceRunTaskView, Error> {
        let prefix = workspace.organization_prefix();
        let mut org = self.authorized_organization(caller, prefix, WorkspaceRunTask::NOUN).await?;
        let task = org.change(caller, "workspace-run-task.update", self.now(), move |tx| {
            let changed = patch.apply(&own_task(tx, workspace, id)?)?;
            tx.put(&changed);
            Ok(changed)
        });
        let task = task.await?;
        Ok(WorkspaceRunTaskView { task, org })
    }

    /// Runs that have begun go on asking it.
    pub async fn delete_workspace_run_task(
        &self,
        caller: &Caller,
        workspace: WorkspaceId,
        id: WorkspaceRunTaskId,
    ) -> Result<(), Error> {
        let prefix = workspace.organization_prefix();
        let mut org = self.authorized_organization(caller, prefix, WorkspaceRunTask::NOUN).await?;
        org.change(caller, "workspace-run-task.delete", self.now(), move |tx| {
            own_task(tx, workspace, id)?;
            tx.delete::<WorkspaceRunTask>(&id)
        })
        .await
    }
}

fn checked_task(tx: &Tx<'_>, task: Option<RunTaskId>) -> Result<RunTask, Error> {
    let invalid = |detail: String| Error::Invalid { pointer: "/data/relationships/task".to_owned(), detail };
    let id = task.ok_or_else(|| invalid("The task must be given".to_owned()))?;
    let found = tx.state().run_tasks.get(&id).cloned();
    found.ok_or_else(|| invalid(format!("There is no run task {id} in the organization")))
}

/// The task that a request names, if it is this workspace's and the caller may change it.
fn own_task(tx: &Tx<'_>, workspace: WorkspaceId, id: WorkspaceRunTaskId) -> Result<WorkspaceRunTask, Error> {
    tx.workspace_of::<WorkspaceRunTask>(&workspace, Action::AttachRunTasks)?;
    let own: WorkspaceRunTask = tx.get(&id)?;
    if own.workspace == workspace { Ok(own) } else { Err(Error::NotFound(WorkspaceRunTask::NOUN)) }
}
