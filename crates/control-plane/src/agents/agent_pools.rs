//! Agent pools: create, list, read, change, delete. Their tokens and agents are elsewhere.

use std::cmp::Reverse;
use std::collections::BTreeSet;

use serde::Deserialize;
use taco_boxed::boxed;
use taco_domain::OrganizationState;
use taco_domain::agent_pool::AgentPool;
use taco_domain::execution::Execution;
use taco_domain::id::{AgentPoolId, ProjectId, WorkspaceId};
use taco_domain::permission::Action;
use taco_domain::workspace::Workspace;
use taco_tables::Record as _;

use crate::caller::Caller;
use crate::control_plane::{ControlPlane, OrganizationSnapshot};
use crate::error::Error;
use crate::page::{Listed, PageRequest};
use crate::workspace_view::{ListChange, sees_project, sees_workspace};

/// An agent pool as a door shows it.
#[derive(Clone)]
pub struct AgentPoolView {
    /// Its lists name what the caller may see.
    pub pool: AgentPool,
    pub org: OrganizationSnapshot,
    /// The workspaces that name it, as far as the caller may see them.
    pub users: Vec<WorkspaceId>,
}

impl AgentPoolView {
    /// The workspaces on its list of those that may use it, as far as the caller may know of them.
    pub fn allowed_workspaces(&self) -> impl Iterator<Item = &Workspace> {
        self.pool.allowed_workspaces.iter().filter_map(|id| self.org.state.workspaces.get(id))
    }

    fn of(caller: &Caller, org: OrganizationSnapshot, mut pool: AgentPool) -> Self {
        let state = &org.state;
        let sees = |id: &WorkspaceId| sees_workspace(caller, state, id);
        pool.allowed_workspaces.retain(sees);
        pool.excluded_workspaces.retain(sees);
        pool.allowed_projects.retain(|id| sees_project(caller, state, id));
        let users = state.workspaces.by().agent_pool.get(&pool.id).map(|user| user.id).filter(sees).collect();
        Self { pool, users, org }
    }
}

/// In which order pools are listed.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum AgentPoolOrder {
    #[default]
    Name,
    OldestFirst,
    NewestFirst,
}

/// Filter for the pools of an organization.
#[derive(Clone, Default, Debug)]
pub struct AgentPoolFilter {
    /// A part of the name.
    pub name: Option<String>,
    /// Those that the workspace of this name may use.
    pub workspace: Option<String>,
    /// Those that every workspace of the project of this name may use.
    pub project: Option<String>,
    pub order: AgentPoolOrder,
}

impl AgentPoolFilter {
    /// True if a pool matches. A workspace or project that the caller may not see is as good as none.
    fn takes(&self, caller: &Caller, state: &OrganizationState, pool: &AgentPool) -> bool {
        let may_be_used_by = |name: &String| {
            let workspace = state.workspace_named(name).filter(|found| sees_workspace(caller, state, &found.id));
            workspace.is_some_and(|workspace| pool.allows(workspace.id, workspace.project))
        };
        let may_be_used_in = |name: &String| {
            let project = state.project_named(name).filter(|found| sees_project(caller, state, &found.id));
            project.is_some_and(|project| pool.allows_project(project.id))
        };
        self.name.as_ref().is_none_or(|part| pool.name.key().as_str().contains(&part.to_lowercase()))
            && self.workspace.as_ref().is_none_or(may_be_used_by)
            && self.project.as_ref().is_none_or(may_be_used_in)
    }
}

/// The attributes of a request that makes or changes a pool, spelled as on the wire.
#[derive(Clone, Default, Deserialize, Debug)]
#[serde(rename_all = "kebab-case", default)]
pub struct AgentPoolPatch {
    pub name: Option<String>,
    pub organization_scoped: Option<bool>,
    /// On the wire this is a relationship, as are the following.
    #[serde(skip)]
    pub allowed_workspaces: Option<BTreeSet<WorkspaceId>>,
    #[serde(skip)]
    pub allowed_projects: Option<BTreeSet<ProjectId>>,
    #[serde(skip)]
    pub excluded_workspaces: Option<BTreeSet<WorkspaceId>>,
}

impl AgentPoolPatch {
    /// The pool after the change. Of its lists it changes what the caller may see.
    fn apply(&self, caller: &Caller, state: &OrganizationState, mut pool: AgentPool) -> Result<AgentPool, Error> {
        if let Some(name) = &self.name {
            pool.name = name.parse()?;
        }
        pool.organization_scoped = self.organization_scoped.unwrap_or(pool.organization_scoped);
        for (asked, list) in [
            (&self.allowed_workspaces, &mut pool.allowed_workspaces),
            (&self.excluded_workspaces, &mut pool.excluded_workspaces),
        ] {
            if let Some(asked) = asked {
                *list = ListChange::Replace.of_seen(list, asked, |id| sees_workspace(caller, state, id));
            }
        }
        if let Some(asked) = &self.allowed_projects {
            let sees = |id: &ProjectId| sees_project(caller, state, id);
            pool.allowed_projects = ListChange::Replace.of_seen(&pool.allowed_projects, asked, sees);
        }
        Ok(pool)
    }
}

#[boxed]
impl ControlPlane {
    pub async fn create_agent_pool(
        &self,
        caller: &Caller,
        organization: &str,
        patch: AgentPoolPatch,
    ) -> Result<AgentPoolView, Error> {
        let mut org = self.organization_named(caller, organization).await?;
        let new = AgentPool {
            id: AgentPoolId::within(org.id().organization_prefix(), self.random()),
            name: patch.name.as_deref().unwrap_or_default().parse()?,
            organization_scoped: true,
            allowed_workspaces: BTreeSet::new(),
            allowed_projects: BTreeSet::new(),
            excluded_workspaces: BTreeSet::new(),
            created_at: self.now(),
        };
        let change = org.change(caller, "agent-pool.create", self.now(), move |tx| {
            tx.require::<AgentPool>(Action::ManageAgentPools, tx.organization())?;
            tx.put_unique(patch.apply(tx.caller(), tx.state(), new.clone())?)
        });
        let pool = change.await?;
        Ok(AgentPoolView::of(caller, org, pool))
    }

    pub async fn update_agent_pool(
        &self,
        caller: &Caller,
        id: AgentPoolId,
        patch: AgentPoolPatch,
    ) -> Result<AgentPoolView, Error> {
        let mut org = self.authorized_organization(caller, id.organization_prefix(), AgentPool::NOUN).await?;
        let change = org.change(caller, "agent-pool.update", self.now(), move |tx| {
            tx.require::<AgentPool>(Action::ManageAgentPools, tx.organization())?;
            tx.put_unique(patch.apply(tx.caller(), tx.state(), tx.get(&id)?)?)
        });
        let pool = change.await?;
        Ok(AgentPoolView::of(caller, org, pool))
    }

    pub async fn agent_pool(&self, caller: &Caller, id: AgentPoolId) -> Result<AgentPoolView, Error> {
        let org = self.authorized_organization(caller, id.organization_prefix(), AgentPool::NOUN).await?;
        caller.require(Action::ReadDirectory, org.resource(), AgentPool::NOUN)?;
        let pool = org.get::<AgentPool>(&id)?.clone();
        Ok(AgentPoolView::of(caller, org, pool))
    }

    /// An organization's pools.
    pub async fn agent_pools(
        &self,
        caller: &Caller,
        organization: &str,
        filter: &AgentPoolFilter,
        page: PageRequest,
    ) -> Result<Listed<AgentPoolView>, Error> {
        let org = self.organization_named(caller, organization).await?;
        caller.require(Action::ReadDirectory, org.resource(), AgentPool::NOUN)?;
        let pools = &org.state.agent_pools;
        let by_name = pools.by().name.iter();
        let mut found: Vec<&AgentPool> = by_name.filter(|pool| filter.takes(caller, &org.state, pool)).collect();
        match filter.order {
            AgentPoolOrder::Name => {}
            AgentPoolOrder::OldestFirst => found.sort_by_key(|pool| (pool.created_at, pool.id)),
            AgentPoolOrder::NewestFirst => found.sort_by_key(|pool| Reverse((pool.created_at, pool.id))),
        }
        let listed = Listed::from_all(found, page).cloned();
        Ok(listed.map(|pool| AgentPoolView::of(caller, org.clone(), pool)))
    }

    /// Deletes a pool with its tokens. What named it goes back to where runs happen without one.
    pub async fn delete_agent_pool(&self, caller: &Caller, id: AgentPoolId) -> Result<(), Error> {
        let mut org = self.authorized_organization(caller, id.organization_prefix(), AgentPool::NOUN).await?;
        org.change(caller, "agent-pool.delete", self.now(), move |tx| {
            tx.require::<AgentPool>(Action::ManageAgentPools, tx.organization())?;
            tx.delete::<AgentPool>(&id)
        })
        .await
    }
}

/// Scope of an execution setting: the workspaces whose runs it is for.
#[derive(Clone, Copy)]
pub(crate) enum PoolUser {
    /// All workspaces that have nothing else.
    Organization,
    /// The same within a project.
    Project(ProjectId),
    Workspace(WorkspaceId, ProjectId),
}

/// An execution that names a pool needs one that exists and is for its user. What `was` set before may stay: a pool's
/// limits can change later, and a change of something else must not fail because of that. Agents are still checked.
pub(crate) fn check_agent_pool(
    state: &OrganizationState,
    execution: Execution,
    was: Option<Execution>,
    user: PoolUser,
    attribute: &'static str,
) -> Result<(), Error> {
    let Some(id) = execution.agent_pool else { return Ok(()) };
    let Some(pool) = state.agent_pools.get(&id) else {
        return Err(Error::invalid(attribute, format!("The agent pool {id} does not exist")));
    };
    let (is_allowed, who) = match user {
        PoolUser::Organization => (pool.organization_scoped, "being the organization's default"),
        PoolUser::Project(project) => (pool.allows_project(project), "being this project's default"),
        PoolUser::Workspace(workspace, project) => (pool.allows(workspace, project), "this workspace"),
    };
    if is_allowed || was == Some(execution) {
        return Ok(());
    }
    let (name, allowed) = (&pool.name, pool.allowed_in_words());
    Err(Error::invalid(attribute, format!("The agent pool {name} does not allow {who}: it is for {allowed}")))
}
