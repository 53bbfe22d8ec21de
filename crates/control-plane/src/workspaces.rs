//! Workspaces: create, list, read, change, delete. Locks and tags have files of their own.

pub(crate) mod lock_choices;
pub(crate) mod lock_release;
pub(crate) mod lock_rollback;
pub(crate) mod tags;
pub(crate) mod workspace_lists;
pub(crate) mod workspace_locks;
pub(crate) mod workspace_view;

use std::collections::BTreeSet;

use taco_boxed::boxed;
use taco_domain::OrganizationState;
use taco_domain::comment::Comment;
use taco_domain::configuration_version::ConfigurationVersion;
use taco_domain::history::WorkspaceHistory;
use taco_domain::id::{ProjectId, RunId, WorkspaceId};
use taco_domain::permission::{Action, Resource};
use taco_domain::project::Project;
use taco_domain::run::Run;
use taco_domain::run_status::RunStatus;
use taco_domain::run_trigger::RunTrigger;
use taco_domain::ssh_key::SshKeyId;
use taco_domain::state_version::StateVersion;
use taco_domain::team_access::TeamWorkspace;
use taco_domain::variable::VariableOwner;
use taco_domain::workspace::{Workspace, WorkspacePatch, WorkspaceSource, check_consumers, check_safe_delete};
use taco_ledger::Transaction;

use crate::agent_pools::{PoolUser, check_agent_pool};
use crate::caller::Caller;
use crate::control_plane::{ControlPlane, OrganizationSnapshot};
use crate::error::Error;
use crate::find::find_if_there;
use crate::idempotency::{already_applied, idempotent};
use crate::page::{Listed, PageRequest};
use crate::presence::check_version;
use crate::variable_rules::delete_variables_of;
use crate::workspace_view::{ListChange, WorkspaceRef, WorkspaceView, forced_deletion, sees_workspace};
use crate::{agent_pools, variable_rules};

const WHAT: &str = "workspace";

/// Safety level of a deletion.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Deletion {
    /// Only while it is unlocked and manages nothing.
    Safe,
    Forced,
}

#[boxed]
impl ControlPlane {
    /// Finds a workspace, and asks nothing but whether the caller may know of it.
    pub(crate) async fn find_workspace(&self, caller: &Caller, wanted: &WorkspaceRef) -> Result<WorkspaceView, Error> {
        let (org, workspace) = self.look_for_workspace(caller, wanted).await?;
        Ok(WorkspaceView { workspace: workspace.ok_or(Error::NotFound(WHAT))?, org })
    }

    /// The organization that has or had the workspace, and the workspace if it is there.
    async fn look_for_workspace(
        &self,
        caller: &Caller,
        wanted: &WorkspaceRef,
    ) -> Result<(OrganizationSnapshot, Option<Workspace>), Error> {
        Ok(match wanted {
            WorkspaceRef::Id(id) => {
                let org = self.authorized_organization(caller, id.organization_prefix(), WHAT).await?;
                let workspace = find_if_there::<Workspace, _>(&*org.state, id)?.cloned();
                (org, workspace)
            }
            WorkspaceRef::Named { organization, name } => {
                let org = self.organization_named(caller, organization).await?;
                let workspace = org.state.workspace_named(name).cloned();
                (org, workspace)
            }
        })
    }

    pub async fn workspace(&self, caller: &Caller, wanted: &WorkspaceRef) -> Result<WorkspaceView, Error> {
        let view = self.find_workspace(caller, wanted).await?;
        caller.require(Action::ReadWorkspace, view.resource(), WHAT)?;
        Ok(view)
    }

    /// A workspace with all that belongs to it, its runs first of all. A run may look up another workspace whose state
    /// it reads, but that is none of its business.
    pub async fn workspace_with_runs(&self, caller: &Caller, wanted: &WorkspaceRef) -> Result<WorkspaceView, Error> {
        let view = self.find_workspace(caller, wanted).await?;
        caller.require(Action::ReadRuns, view.resource(), WHAT)?;
        Ok(view)
    }

    pub async fn create_workspace(
        &self,
        caller: &Caller,
        organization: &str,
        patch: WorkspacePatch,
        source: WorkspaceSource,
    ) -> Result<WorkspaceView, Error> {
        let org = self.organization_named(caller, organization).await?;
        let name = patch.name.as_deref().unwrap_or_default().parse()?;
        let now = self.now();
        let id = WorkspaceId::within(org.id().organization_prefix(), self.random());
        let settings = org.state.organization().ok_or(Error::NotFound("organization"))?;
        let project = patch.project.unwrap_or(settings.default_project);
        let new = Workspace { source, ..Workspace::new(id, name, project, now) };
        let (asker, agents) = (caller.clone(), self.presence().agents());
        let decide = move |tx: &mut Transaction<OrganizationState>| {
            let state = tx.state();
            let project = project_for(state, &new.project, &asker, Action::CreateWorkspace)?;
            let mut created = patch.apply(&new, state.default_execution(&project.id), now)?;
            created.updated_at = now;
            check_version(created.engine, &created.terraform_version, &new.terraform_version, &agents, state)?;
            check_workspace(state, &created)?;
            tx.put(&created);
            Ok(created)
        };
        let workspace = org.commit(caller.intent("workspace.create"), idempotent(caller, now, decide)).await?;
        Ok(seen_after(org, workspace))
    }

    /// Changes one workspace. `change` may run several times, and decides from its arguments alone.
    pub(crate) async fn change_workspace(
        &self,
        caller: &Caller,
        wanted: &WorkspaceRef,
        action: Action,
        intent: &'static str,
        mut change: impl FnMut(&mut Transaction<OrganizationState>, Workspace) -> Result<Workspace, Error> + Send + 'static,
    ) -> Result<WorkspaceView, Error> {
        let view = self.find_workspace(caller, wanted).await?;
        let (org, id) = (view.org, view.workspace.id);
        let asker = caller.clone();
        let decide = move |tx: &mut Transaction<OrganizationState>| {
            let workspace = tx.state().workspaces.get(&id).cloned().ok_or(Error::NotFound(WHAT))?;
            asker.require(action, Resource::Workspace(tx.state(), &workspace), WHAT)?;
            let changed = change(tx, workspace)?;
            tx.put(&changed);
            Ok(changed)
        };
        let workspace = org.commit(caller.intent(intent), idempotent(caller, self.now(), decide)).await?;
        Ok(seen_after(org, workspace))
    }

    pub async fn update_workspace(
        &self,
        caller: &Caller,
        wanted: &WorkspaceRef,
        patch: WorkspacePatch,
    ) -> Result<WorkspaceView, Error> {
        let now = self.now();
        let (mover, agents) = (caller.clone(), self.presence().agents());
        self.change_workspace(caller, wanted, Action::UpdateWorkspace, "workspace.update", move |tx, workspace| {
            let state = tx.state();
            if let Some(to) = patch.project.filter(|to| *to != workspace.project) {
                mover.require(Action::MoveWorkspace, Resource::Workspace(state, &workspace), WHAT)?;
                project_for(state, &to, &mover, Action::CreateWorkspace)?;
            }
            let inherited = state.default_execution(&patch.project.unwrap_or(workspace.project));
            let changed = patch.apply(&workspace, inherited, now)?;
            check_version(changed.engine, &changed.terraform_version, &workspace.terraform_version, &agents, state)?;
            check_workspace(state, &changed)?;
            Ok(changed)
        })
        .await
    }

    /// Sets or removes the key with which runs fetch modules.
    pub async fn assign_ssh_key(
        &self,
        caller: &Caller,
        wanted: &WorkspaceRef,
        key: Option<SshKeyId>,
    ) -> Result<WorkspaceView, Error> {
        let now = self.now();
        self.change_workspace(caller, wanted, Action::UpdateWorkspace, "workspace.ssh-key", move |tx, workspace| {
            if key.is_some_and(|key| !tx.state().ssh_keys.contains(&key)) {
                return Err(Error::NotFound("ssh key"));
            }
            let updated_at = if workspace.ssh_key == key { workspace.updated_at } else { now };
            Ok(Workspace { ssh_key: key, updated_at, ..workspace })
        })
        .await
    }

    /// Deletes a workspace with its states. What is in the bucket stays there, where it cannot be found by name.
    pub async fn delete_workspace(
        &self,
        caller: &Caller,
        wanted: &WorkspaceRef,
        deletion: Deletion,
    ) -> Result<(), Error> {
        let now = self.now();
        let (org, found) = self.look_for_workspace(caller, wanted).await?;
        if already_applied(&*org.state, caller, now)? {
            return Ok(());
        }
        let id = found.ok_or(Error::NotFound(WHAT))?.id;
        let asker = caller.clone();
        let decide = move |tx: &mut Transaction<OrganizationState>| {
            let Some(workspace) = tx.state().workspaces.get(&id).cloned() else { return Ok(()) };
            asker.require(Action::DeleteWorkspace, Resource::Workspace(tx.state(), &workspace), WHAT)?;
            if deletion == Deletion::Safe {
                check_safe_delete(&workspace).map_err(|refusal| Error::Conflict(refusal.to_string()))?;
            }
            forced_deletion(&asker, tx.state(), &workspace).map_err(|refusal| Error::Conflict(refusal.to_string()))?;
            check_nothing_applies(tx.state(), &workspace)?;
            delete_workspace_records(tx, &workspace);
            Ok(())
        };
        org.commit(caller.intent("workspace.delete"), idempotent(caller, now, decide)).await
    }

    /// The workspaces whose runs may read this one's state because they are on its list, by name.
    /// See [`WorkspaceView::remote_state_consumers`].
    pub async fn remote_state_consumers(
        &self,
        caller: &Caller,
        wanted: &WorkspaceRef,
        page: PageRequest,
    ) -> Result<Listed<WorkspaceView>, Error> {
        let view = self.workspace_with_runs(caller, wanted).await?;
        let mut consumers: Vec<&Workspace> = view.remote_state_consumers(caller).collect();
        consumers.sort_by_key(|workspace| workspace.name.key());
        let consumers = Listed::from_all(consumers, page).cloned();
        Ok(consumers.map(|workspace| WorkspaceView { workspace, org: view.org.clone() }))
    }

    pub async fn change_remote_state_consumers(
        &self,
        caller: &Caller,
        wanted: &WorkspaceRef,
        consumers: BTreeSet<WorkspaceId>,
        change: ListChange,
    ) -> Result<(), Error> {
        let (now, asker) = (self.now(), caller.clone());
        let decide = move |tx: &mut Transaction<OrganizationState>, workspace: Workspace| {
            check_consumers(&workspace, &consumers)?;
            let sees = |id: &WorkspaceId| sees_workspace(&asker, tx.state(), id);
            let before = &workspace.remote_state_consumers;
            if change != ListChange::Remove
                && let Some(unknown) = consumers.iter().find(|id| !sees(id))
            {
                return Err(Error::Invalid {
                    pointer: "/data".to_owned(),
                    detail: format!("The workspace {unknown} does not exist in this organization"),
                });
            }
            let after = change.of_seen(before, &consumers, sees);
            let updated_at = if after == workspace.remote_state_consumers { workspace.updated_at } else { now };
            Ok(Workspace { remote_state_consumers: after, updated_at, ..workspace })
        };
        self.change_workspace(caller, wanted, Action::UpdateWorkspace, "workspace.consumers", decide).await?;
        Ok(())
    }
}

/// The workspace that a commit left behind, in an organization that knows of it.
pub(crate) fn seen_after(mut org: OrganizationSnapshot, workspace: Workspace) -> WorkspaceView {
    org.state = org.ledger.last_seen();
    WorkspaceView { workspace, org }
}

/// Rules that need to know the other workspaces.
fn check_workspace(state: &OrganizationState, workspace: &Workspace) -> Result<(), Error> {
    if state.workspace_name_is_taken(&workspace.name, Some(&workspace.id)) {
        return Err(Error::name_taken("name", "Name"));
    }
    match workspace.execution {
        Some(execution) => {
            // One that moves has to ask its pool again.
            let before = state.workspaces.get(&workspace.id).filter(|before| before.project == workspace.project);
            let user = PoolUser::Workspace(workspace.id, workspace.project);
            check_agent_pool(state, execution, before.and_then(|before| before.execution), user, "agent-pool-id")
        }
        None => Ok(()),
    }
}

/// A project that a request names, if the caller may do `action` there.
fn project_for<'a>(
    state: &'a OrganizationState,
    id: &ProjectId,
    caller: &Caller,
    action: Action,
) -> Result<&'a Project, Error> {
    let unknown = || Error::Invalid {
        pointer: "/data/relationships/project".to_owned(),
        detail: format!("The project {id} does not exist in this organization"),
    };
    let project = state.projects.get(id).ok_or_else(unknown)?;
    caller.require(action, Resource::Project(state, project), "project")?;
    Ok(project)
}

/// Takes a workspace out of everything that knows it.
fn delete_workspace_records(tx: &mut Transaction<OrganizationState>, workspace: &Workspace) {
    let state = tx.state();
    let versions: Vec<_> = state.state_versions_of(workspace.id).map(|version| version.id).collect();
    let accesses = state.team_workspaces.by().workspace.get(&workspace.id);
    let accesses: Vec<_> = accesses.map(|access| access.id).collect();
    let producers = state.workspaces.by().consumer.get(&workspace.id);
    let producers: Vec<Workspace> = producers.cloned().collect();
    for mut producer in producers {
        producer.remote_state_consumers.remove(&workspace.id);
        tx.put(&producer);
    }
    for id in versions {
        tx.delete::<StateVersion>(&id);
    }
    for id in accesses {
        tx.delete::<TeamWorkspace>(&id);
    }
    delete_runs_of(tx, workspace.id);
    delete_variables_of(tx, VariableOwner::Workspace(workspace.id));
    variable_rules::forget_workspace(tx, workspace.id);
    agent_pools::forget_workspace(tx, workspace.id);
    tx.delete::<Workspace>(&workspace.id);
}

/// An apply has to be able to send its state. Anything else in progress may be deleted with its workspace.
fn check_nothing_applies(state: &OrganizationState, workspace: &Workspace) -> Result<(), Error> {
    let mut unfinished = state.runs.by().open.get(&workspace.id);
    match unfinished.find(|run| run.status == RunStatus::Applying) {
        Some(run) => Err(Error::Conflict(format!(
            "The workspace is locked and cannot be deleted: {} is applying. Cancel the run, or wait until it is over",
            run.id
        ))),
        None => Ok(()),
    }
}

/// Runs with what is said about them, configurations, and triggers at either end.
fn delete_runs_of(tx: &mut Transaction<OrganizationState>, workspace: WorkspaceId) {
    let state = tx.state();
    let runs: Vec<RunId> = state.runs_of(workspace).map(|run| run.id).collect();
    let comments = runs.iter().flat_map(|run| state.comments.by().run.under(run));
    let comments: Vec<_> = comments.map(|comment| comment.id).collect();
    let history = state.workspace_histories.get(&workspace);
    let history = history.map(|_| WorkspaceHistory { deleted: true, ..WorkspaceHistory::new(workspace) });
    let configurations: Vec<_> = state.configurations_of(workspace).map(|version| version.id).collect();
    let triggers = state.run_triggers.by();
    let triggers = triggers.workspace.get(&workspace).chain(triggers.source.get(&workspace));
    let triggers: Vec<_> = triggers.map(|trigger| trigger.id).collect();
    for id in comments {
        tx.delete::<Comment>(&id);
    }
    for id in runs {
        tx.delete::<Run>(&id);
    }
    for id in configurations {
        tx.delete::<ConfigurationVersion>(&id);
    }
    for id in triggers {
        tx.delete::<RunTrigger>(&id);
    }
    if let Some(history) = history {
        tx.put(&history);
    }
}
