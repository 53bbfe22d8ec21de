//! Workspaces: create, list, read, change, delete. Locks and tags have files of their own.

pub(crate) mod lock_choices;
pub(crate) mod lock_release;
pub(crate) mod lock_rollback;
pub(crate) mod reserved_tag_keys;
pub(crate) mod tags;
pub(crate) mod workspace_lists;
pub(crate) mod workspace_locks;
pub(crate) mod workspace_view;

use std::collections::BTreeSet;

use taco_boxed::boxed;
use taco_domain::OrganizationState;
use taco_domain::id::{ProjectId, WorkspaceId};
use taco_domain::organization::Organization;
use taco_domain::permission::{Action, Resource};
use taco_domain::project::Project;
use taco_domain::run_status::RunStatus;
use taco_domain::ssh_key::{SshKey, SshKeyId};
use taco_domain::workspace::{Workspace, WorkspacePatch, WorkspaceSource, check_consumers, check_safe_delete};
use taco_tables::Record as _;

use crate::agent_pools::{PoolUser, check_agent_pool};
use crate::bindings::check_nobody_is_bound;
use crate::caller::Caller;
use crate::control_plane::{ControlPlane, OrganizationSnapshot};
use crate::error::Error;
use crate::page::{Listed, PageRequest};
use crate::presence::check_version;
use crate::reserved_tag_keys::check_reserved;
use crate::workspace_view::{ListChange, WorkspaceRef, WorkspaceView, forced_deletion, sees_workspace};

/// Safety level of a deletion.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Deletion {
    /// Only while it is unlocked and manages nothing.
    Safe,
    Forced,
}

#[boxed]
impl ControlPlane {
    /// The organization of a workspace that a request names.
    pub(crate) async fn organization_with(
        &self,
        caller: &Caller,
        wanted: &WorkspaceRef,
    ) -> Result<OrganizationSnapshot, Error> {
        match wanted {
            WorkspaceRef::Id(id) => {
                self.authorized_organization(caller, id.organization_prefix(), Workspace::NOUN).await
            }
            WorkspaceRef::Named { organization, .. } => self.organization_named(caller, organization).await,
        }
    }

    /// Finds a workspace, and asks nothing but whether the caller may know of it.
    pub(crate) async fn find_workspace(&self, caller: &Caller, wanted: &WorkspaceRef) -> Result<WorkspaceView, Error> {
        let org = self.organization_with(caller, wanted).await?;
        let workspace = wanted.find_in(&org.state)?.ok_or(Error::NotFound(Workspace::NOUN))?.clone();
        Ok(WorkspaceView { workspace, org })
    }

    pub async fn workspace(&self, caller: &Caller, wanted: &WorkspaceRef) -> Result<WorkspaceView, Error> {
        let view = self.find_workspace(caller, wanted).await?;
        caller.require(Action::ReadWorkspace, view.resource(), Workspace::NOUN)?;
        Ok(view)
    }

    /// A workspace with all that belongs to it, its runs first of all. A run may look up another workspace whose state
    /// it reads, but that is none of its business.
    pub async fn workspace_with_runs(&self, caller: &Caller, wanted: &WorkspaceRef) -> Result<WorkspaceView, Error> {
        let view = self.find_workspace(caller, wanted).await?;
        caller.require(Action::ReadRuns, view.resource(), Workspace::NOUN)?;
        Ok(view)
    }

    pub async fn create_workspace(
        &self,
        caller: &Caller,
        organization: &str,
        patch: WorkspacePatch,
        source: WorkspaceSource,
    ) -> Result<WorkspaceView, Error> {
        let mut org = self.organization_named(caller, organization).await?;
        let name = patch.name.as_deref().unwrap_or_default().parse()?;
        let now = self.now();
        let id = WorkspaceId::within(org.id().organization_prefix(), self.random());
        let settings = org.state.organization().ok_or(Error::NotFound(Organization::NOUN))?;
        let project = patch.project.unwrap_or(settings.default_project);
        let new = Workspace { source, ..Workspace::new(id, name, project, now) };
        let agents = self.presence().agents();
        let change = org.change(caller, "workspace.create", now, move |tx| {
            let state = tx.state();
            let project = project_for(state, &new.project, tx.caller(), Action::CreateWorkspace)?;
            let mut created = patch.apply(&new, state.default_execution(&project.id), now)?;
            created.updated_at = now;
            check_version(created.engine, &created.terraform_version, &new.terraform_version, &agents, state)?;
            check_pool(state, &created)?;
            check_reserved(state, &new.tags, &created)?;
            tx.put_unique(created)
        });
        let workspace = change.await?;
        Ok(WorkspaceView { workspace, org })
    }

    pub async fn update_workspace(
        &self,
        caller: &Caller,
        wanted: &WorkspaceRef,
        patch: WorkspacePatch,
    ) -> Result<WorkspaceView, Error> {
        let mut org = self.organization_with(caller, wanted).await?;
        let (wanted, agents, now) = (wanted.clone(), self.presence().agents(), self.now());
        let change = org.change(caller, "workspace.update", now, move |tx| {
            let (workspace, state) = (tx.workspace(&wanted, Action::UpdateWorkspace)?, tx.state());
            if let Some(to) = patch.project.filter(|to| *to != workspace.project) {
                tx.require::<Workspace>(Action::MoveWorkspace, Resource::Workspace(state, &workspace))?;
                project_for(state, &to, tx.caller(), Action::CreateWorkspace)?;
            }
            let inherited = state.default_execution(&patch.project.unwrap_or(workspace.project));
            let changed = patch.apply(&workspace, inherited, now)?;
            check_version(changed.engine, &changed.terraform_version, &workspace.terraform_version, &agents, state)?;
            check_pool(state, &changed)?;
            check_reserved(state, &workspace.tags, &changed)?;
            tx.put_unique(changed)
        });
        let workspace = change.await?;
        Ok(WorkspaceView { workspace, org })
    }

    /// Sets or removes the key with which runs fetch modules.
    pub async fn assign_ssh_key(
        &self,
        caller: &Caller,
        wanted: &WorkspaceRef,
        key: Option<SshKeyId>,
    ) -> Result<WorkspaceView, Error> {
        let mut org = self.organization_with(caller, wanted).await?;
        let (wanted, now) = (wanted.clone(), self.now());
        let change = org.change(caller, "workspace.ssh-key", now, move |tx| {
            let workspace = tx.workspace(&wanted, Action::UpdateWorkspace)?;
            if let Some(key) = &key {
                tx.get::<SshKey>(key)?;
            }
            let updated_at = if workspace.ssh_key == key { workspace.updated_at } else { now };
            let changed = Workspace { ssh_key: key, updated_at, ..workspace };
            tx.put(&changed);
            Ok(changed)
        });
        let workspace = change.await?;
        Ok(WorkspaceView { workspace, org })
    }

    /// Deletes a workspace with its states. What is in the bucket stays there, where it cannot be found by name.
    pub async fn delete_workspace(
        &self,
        caller: &Caller,
        wanted: &WorkspaceRef,
        deletion: Deletion,
    ) -> Result<(), Error> {
        let mut org = self.organization_with(caller, wanted).await?;
        let wanted = wanted.clone();
        org.change(caller, "workspace.delete", self.now(), move |tx| {
            let workspace = tx.workspace(&wanted, Action::DeleteWorkspace)?;
            if deletion == Deletion::Safe {
                check_safe_delete(&workspace).map_err(|refusal| Error::Conflict(refusal.to_string()))?;
                check_nobody_is_bound(tx.state(), tx.caller(), &workspace)?;
            }
            let forced = forced_deletion(tx.caller(), tx.state(), &workspace);
            forced.map_err(|refusal| Error::Conflict(refusal.to_string()))?;
            check_nothing_applies(tx.state(), &workspace)?;
            tx.delete::<Workspace>(&workspace.id)
        })
        .await
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
        let mut org = self.organization_with(caller, wanted).await?;
        let (wanted, now) = (wanted.clone(), self.now());
        org.change(caller, "workspace.consumers", now, move |tx| {
            let workspace = tx.workspace(&wanted, Action::UpdateWorkspace)?;
            check_consumers(&workspace, &consumers)?;
            let sees = |id: &WorkspaceId| sees_workspace(tx.caller(), tx.state(), id);
            if change != ListChange::Remove
                && let Some(unknown) = consumers.iter().find(|id| !sees(id))
            {
                return Err(Error::Invalid {
                    pointer: "/data".to_owned(),
                    detail: format!("The workspace {unknown} does not exist in this organization"),
                });
            }
            let after = change.of_seen(&workspace.remote_state_consumers, &consumers, sees);
            let updated_at = if after == workspace.remote_state_consumers { workspace.updated_at } else { now };
            tx.put(&Workspace { remote_state_consumers: after, updated_at, ..workspace });
            Ok(())
        })
        .await
    }
}

/// An execution with a pool needs one that is for the workspace.
fn check_pool(state: &OrganizationState, workspace: &Workspace) -> Result<(), Error> {
    let Some(execution) = workspace.execution else { return Ok(()) };
    // One that moves has to ask its pool again.
    let before = state.workspaces.get(&workspace.id).filter(|before| before.project == workspace.project);
    let user = PoolUser::Workspace(workspace.id, workspace.project);
    check_agent_pool(state, execution, before.and_then(|before| before.execution), user, "agent-pool-id")
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
    caller.require(action, Resource::Project(state, project), Project::NOUN)?;
    Ok(project)
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
