//! Run tasks of an organization: list, make, read, change, delete. Whatever is enabled has answered once.

pub(crate) mod run_task_views;
pub(crate) mod stage_views;
pub(crate) mod task_outcomes;
pub(crate) mod task_requests;
pub(crate) mod task_results;
pub(crate) mod task_stages;
pub(crate) mod task_tokens;
pub(crate) mod workspace_run_tasks;

use taco_boxed::boxed;
use taco_domain::permission::Action;
use taco_domain::run_task::{MAX_RUN_TASKS, RunTask, RunTaskId};
use taco_domain::run_task_patch::RunTaskPatch;
use taco_domain::task_request::TaskRequest;
use taco_ledger::beacon;
use taco_tables::Record as _;

use crate::caller::Caller;
use crate::control_plane::{ControlPlane, OrganizationSnapshot};
use crate::error::Error;
use crate::page::{Listed, PageRequest};
use crate::run_task_views::RunTaskView;

#[boxed]
impl ControlPlane {
    /// An organization's run tasks by name. Members may know which there are.
    pub async fn run_tasks(
        &self,
        caller: &Caller,
        organization: &str,
        page: PageRequest,
    ) -> Result<Listed<RunTaskView>, Error> {
        let org = self.organization_named(caller, organization).await?;
        caller.require(Action::ReadDirectory, org.resource(), "organization")?;
        let tasks = &org.state.run_tasks;
        let listed = Listed::from_sorted(tasks.by().name.iter(), tasks.len(), page).cloned();
        Ok(listed.map(|task| RunTaskView { task, org: org.clone() }))
    }

    pub async fn run_task(&self, caller: &Caller, id: RunTaskId) -> Result<RunTaskView, Error> {
        let org = self.authorized_organization(caller, id.organization_prefix(), RunTask::NOUN).await?;
        caller.require(Action::ReadDirectory, org.resource(), RunTask::NOUN)?;
        let task = org.get::<RunTask>(&id)?.clone();
        Ok(RunTaskView { task, org })
    }

    pub async fn create_run_task(
        &self,
        caller: &Caller,
        organization: &str,
        patch: RunTaskPatch,
    ) -> Result<RunTaskView, Error> {
        let mut org = self.organization_named(caller, organization).await?;
        caller.require(Action::ManageRunTasks, org.resource(), RunTask::NOUN)?;
        let id = RunTaskId::within(org.id().organization_prefix(), self.random());
        let new = patch.create(id, self.sealed_task_key(id, &patch), self.now())?;
        self.check_task(&org, None, &new).await?;
        let task = org.change(caller, "run-task.create", self.now(), move |tx| {
            tx.require::<RunTask>(Action::ManageRunTasks, tx.organization())?;
            let present = tx.state().run_tasks.len();
            if present >= MAX_RUN_TASKS {
                let detail = format!("There are {present} run tasks here, which is the most: delete one");
                return Err(Error::Conflict(detail));
            }
            tx.put_unique(new.clone())
        });
        let task = task.await?;
        Ok(RunTaskView { task, org })
    }

    /// Changes a task. One that is enabled by that, or goes elsewhere, has to answer first.
    pub async fn update_run_task(
        &self,
        caller: &Caller,
        id: RunTaskId,
        patch: RunTaskPatch,
    ) -> Result<RunTaskView, Error> {
        let mut org = self.authorized_organization(caller, id.organization_prefix(), RunTask::NOUN).await?;
        caller.require(Action::ManageRunTasks, org.resource(), RunTask::NOUN)?;
        let before = org.get::<RunTask>(&id)?.clone();
        let (sealed, now) = (self.sealed_task_key(id, &patch), self.now());
        let after = patch.apply(&before, sealed.clone(), now)?;
        self.check_task(&org, Some(&before), &after).await?;
        let task = org.change(caller, "run-task.update", now, move |tx| {
            tx.require::<RunTask>(Action::ManageRunTasks, tx.organization())?;
            let before: RunTask = tx.get(&id)?;
            tx.put_unique(patch.apply(&before, sealed.clone(), now)?)
        });
        let task = task.await?;
        Ok(RunTaskView { task, org })
    }

    /// Deletes a task, and its uses in workspaces. Runs that wait for it go on waiting for an answer or for the timeout.
    pub async fn delete_run_task(&self, caller: &Caller, id: RunTaskId) -> Result<(), Error> {
        let mut org = self.authorized_organization(caller, id.organization_prefix(), RunTask::NOUN).await?;
        org.change(caller, "run-task.delete", self.now(), move |tx| {
            tx.require::<RunTask>(Action::ManageRunTasks, tx.organization())?;
            tx.delete::<RunTask>(&id)
        })
        .await
    }

    fn sealed_task_key(&self, id: RunTaskId, patch: &RunTaskPatch) -> Option<Option<String>> {
        let seal = |key: &str| self.seal(&RunTask::key_seal(id), key);
        patch.new_key().map(|key| key.map(seal))
    }

    /// The key that signs a task's requests, in clear.
    pub(crate) fn task_key(&self, task: &RunTask) -> Result<Option<String>, Error> {
        let name = RunTask::key_seal(task.id);
        task.sealed_hmac_key.as_deref().map(|sealed| self.unseal(&name, sealed)).transpose()
    }

    /// Checks a task as it is going to be: its address, and whether somebody answers there if that is new. A server that
    /// does not know tasks would let runs pass by them.
    async fn check_task(
        &self,
        org: &OrganizationSnapshot,
        before: Option<&RunTask>,
        after: &RunTask,
    ) -> Result<(), Error> {
        self.shared.notifications.courier.check_url(&after.url).map_err(|why| Error::invalid("url", why))?;
        if !self.shared.environment.peers.all_can(beacon::RUN_TASKS) {
            return Err(Error::Conflict(
                "A server of this site is of an older release, which knows no run tasks and would let runs pass by \
                 them: try again when all are upgraded"
                    .to_owned(),
            ));
        }
        let is_known = before.is_some_and(|before| {
            before.enabled && before.url == after.url && before.sealed_hmac_key == after.sealed_hmac_key
        });
        if !after.enabled || is_known {
            return Ok(());
        }
        let body = TaskRequest::test(org.entry().name.as_str()).into_body();
        let attempt = format!("{}-test", after.id);
        let reply = self.post_to_task(after, self.task_key(after)?.as_deref(), body, attempt).await;
        match reply.code {
            Some(200) => Ok(()),
            Some(code) => {
                let detail = format!("The task answered the test request with {code}; expected 200");
                Err(Error::invalid("url", detail))
            }
            None => Err(Error::invalid("url", format!("The test request did not get through: {}", reply.body))),
        }
    }
}
