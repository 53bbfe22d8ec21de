//! Projects: create, list, read, change, delete.

use taco_boxed::boxed;
use taco_domain::OrganizationState;
use taco_domain::execution::Execution;
use taco_domain::id::ProjectId;
use taco_domain::permission::{Action, Resource};
use taco_domain::project::{Project, ProjectPatch};
use taco_domain::tag;
use taco_domain::team_access::TeamProject;
use taco_ledger::Transaction;

use crate::agent_pools::{PoolUser, check_agent_pool};
use crate::caller::Caller;
use crate::control_plane::{ControlPlane, OrganizationSnapshot};
use crate::error::Error;
use crate::idempotency::{already_applied, idempotent};
use crate::page::{Listed, PageRequest};
use crate::{agent_pools, variable_rules};

const WHAT: &str = "project";

/// A project as a door shows it, and its organization at the same moment.
#[derive(Clone)]
pub struct ProjectView {
    pub project: Project,
    pub org: OrganizationSnapshot,
}

impl ProjectView {
    /// For [`Caller::may`].
    pub fn resource(&self) -> Resource<'_> {
        Resource::Project(&self.org.state, &self.project)
    }

    /// Default execution mode of its workspaces.
    pub fn default_execution(&self) -> Execution {
        self.org.state.default_execution(&self.project.id)
    }

    pub fn workspace_count(&self) -> usize {
        self.org.state.workspaces_in(self.project.id).count()
    }

    /// True if new workspaces go here by default.
    pub fn is_default(&self) -> bool {
        self.org.state.organization().is_some_and(|organization| organization.default_project == self.project.id)
    }

    /// `Ok` if it can be deleted in its current state, otherwise the reason why not. Permissions are not checked here.
    pub fn is_deletable(&self) -> Result<(), String> {
        check_deletable(&self.org.state, self.project.id)
    }
}

/// Filter for the projects of an organization.
#[derive(Clone, Default, Debug)]
pub struct ProjectFilter {
    /// Exactly one of these names.
    pub names: Vec<String>,
    /// A part of the name.
    pub query: Option<String>,
    /// All of these, with the value where there is one.
    pub tagged: Vec<(String, Option<String>)>,
}

impl ProjectFilter {
    fn takes(&self, project: &Project) -> bool {
        let name = project.name.key();
        (self.names.is_empty() || self.names.iter().any(|wanted| wanted.to_lowercase() == name.as_str()))
            && self.query.as_ref().is_none_or(|part| name.as_str().contains(&part.to_lowercase()))
            && self
                .tagged
                .iter()
                .all(|(key, value)| tag::matches(&project.tags, &tag::Tags::new(), key, value.as_deref()))
    }
}

#[boxed]
impl ControlPlane {
    async fn find_project(&self, caller: &Caller, id: ProjectId) -> Result<ProjectView, Error> {
        let org = self.authorized_organization(caller, id.organization_prefix(), WHAT).await?;
        let project = org.state.projects.get(&id).cloned().ok_or(Error::NotFound(WHAT))?;
        Ok(ProjectView { project, org })
    }

    pub async fn project(&self, caller: &Caller, id: ProjectId) -> Result<ProjectView, Error> {
        let view = self.find_project(caller, id).await?;
        caller.require(Action::ReadProject, view.resource(), WHAT)?;
        Ok(view)
    }

    /// The projects that the caller may see, by name.
    pub async fn projects(
        &self,
        caller: &Caller,
        organization: &str,
        filter: &ProjectFilter,
        page: PageRequest,
    ) -> Result<Listed<ProjectView>, Error> {
        let org = self.organization_named(caller, organization).await?;
        let state = &org.state;
        let by_name = state.projects.by().name.iter();
        let wanted = |project: &&Project| {
            filter.takes(project) && caller.may(Action::ReadProject, Resource::Project(state, project)).allowed
        };
        let listed = Listed::from_all(by_name.filter(wanted), page).cloned();
        Ok(listed.map(|project| ProjectView { project, org: org.clone() }))
    }

    pub async fn create_project(
        &self,
        caller: &Caller,
        organization: &str,
        patch: ProjectPatch,
    ) -> Result<ProjectView, Error> {
        let org = self.organization_named(caller, organization).await?;
        let name = patch.name.as_deref().unwrap_or_default().parse()?;
        let new = Project::new(ProjectId::within(org.id().organization_prefix(), self.random()), name, self.now());
        let asker = caller.clone();
        let decide = move |tx: &mut Transaction<OrganizationState>| {
            asker.require(Action::CreateProject, Resource::Organization(tx.state()), "organization")?;
            let created = patched(tx.state(), &new, &patch)?;
            tx.put(&created);
            Ok(created)
        };
        let project = org.commit(caller.intent("project.create"), idempotent(caller, self.now(), decide)).await?;
        Ok(seen_after(org, project))
    }

    /// Changes one project. `change` may run several times, and decides from its arguments alone.
    pub(crate) async fn change_project(
        &self,
        caller: &Caller,
        id: ProjectId,
        action: Action,
        intent: &'static str,
        mut change: impl FnMut(&mut Transaction<OrganizationState>, Project) -> Result<Project, Error> + Send + 'static,
    ) -> Result<ProjectView, Error> {
        let org = self.find_project(caller, id).await?.org;
        let intent = caller.intent(intent);
        let caller = caller.clone();
        let project = org
            .commit(intent, move |tx| {
                let project = tx.state().projects.get(&id).cloned().ok_or(Error::NotFound(WHAT))?;
                caller.require(action, Resource::Project(tx.state(), &project), WHAT)?;
                let changed = change(tx, project)?;
                tx.put(&changed);
                Ok(changed)
            })
            .await?;
        Ok(seen_after(org, project))
    }

    pub async fn update_project(
        &self,
        caller: &Caller,
        id: ProjectId,
        patch: ProjectPatch,
    ) -> Result<ProjectView, Error> {
        self.change_project(caller, id, Action::UpdateProject, "project.update", move |tx, project| {
            patched(tx.state(), &project, &patch)
        })
        .await
    }

    /// Deletes an empty project.
    pub async fn delete_project(&self, caller: &Caller, id: ProjectId) -> Result<(), Error> {
        let now = self.now();
        let before = self.authorized_organization(caller, id.organization_prefix(), WHAT).await?;
        if already_applied(&*before.state, caller, now)? {
            return Ok(());
        }
        let org = self.find_project(caller, id).await?.org;
        let asker = caller.clone();
        let decide = move |tx: &mut Transaction<OrganizationState>| {
            let state = tx.state();
            let Some(project) = state.projects.get(&id) else { return Ok(()) };
            asker.require(Action::DeleteProject, Resource::Project(state, project), WHAT)?;
            check_deletable(state, id).map_err(Error::Conflict)?;
            let accesses: Vec<_> = state.team_projects.by().project.get(&id).map(|access| access.id).collect();
            for access in accesses {
                tx.delete::<TeamProject>(&access);
            }
            variable_rules::forget_project(tx, id);
            agent_pools::forget_project(tx, id);
            tx.delete::<Project>(&id);
            Ok(())
        };
        org.commit(caller.intent("project.delete"), idempotent(caller, now, decide)).await
    }
}

fn check_deletable(state: &OrganizationState, id: ProjectId) -> Result<(), String> {
    if state.organization().is_some_and(|organization| organization.default_project == id) {
        let reason = "The default project cannot be deleted: workspaces that name no project live in it";
        return Err(reason.to_owned());
    }
    match state.workspaces_in(id).count() {
        0 => Ok(()),
        workspaces => Err(format!("The project has {workspaces} workspaces: move or delete them first")),
    }
}

fn seen_after(mut org: OrganizationSnapshot, project: Project) -> ProjectView {
    org.state = org.ledger.last_seen();
    ProjectView { project, org }
}

/// The project after a request, if its name is free and its pool is for it.
fn patched(state: &OrganizationState, project: &Project, patch: &ProjectPatch) -> Result<Project, Error> {
    let organization = state.organization().ok_or(Error::NotFound("organization"))?;
    let changed = patch.apply(project, organization.default_execution)?;
    if state.project_name_is_taken(&changed.name, Some(&changed.id)) {
        return Err(Error::name_taken("name", "Name"));
    }
    if let Some(execution) = changed.default_execution {
        let user = PoolUser::Project(project.id);
        check_agent_pool(state, execution, project.default_execution, user, "default-agent-pool-id")?;
    }
    Ok(changed)
}
