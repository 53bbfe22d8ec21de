//! Projects: create, list, read, change, delete.

use taco_boxed::boxed;
use taco_domain::OrganizationState;
use taco_domain::execution::Execution;
use taco_domain::graph::words::ContractPolicy;
use taco_domain::id::ProjectId;
use taco_domain::organization::Organization;
use taco_domain::permission::{Action, Resource};
use taco_domain::project::{Project, ProjectPatch};
use taco_domain::tag;
use taco_tables::Record as _;

use crate::agent_pools::{PoolUser, check_agent_pool};
use crate::caller::Caller;
use crate::change::Tx;
use crate::control_plane::{ControlPlane, OrganizationSnapshot};
use crate::error::Error;
use crate::page::{Listed, PageRequest};

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

    /// Policy for plans of its workspaces that break outputs which others use.
    pub fn contract_policy(&self) -> ContractPolicy {
        self.org.state.inherited_contract_policy(self.project.id)
    }

    /// The same, where it has none of its own.
    pub fn inherited_contract_policy(&self) -> ContractPolicy {
        self.org.state.default_contract_policy()
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
    pub async fn project(&self, caller: &Caller, id: ProjectId) -> Result<ProjectView, Error> {
        let org = self.authorized_organization(caller, id.organization_prefix(), Project::NOUN).await?;
        let project = org.get::<Project>(&id)?.clone();
        let view = ProjectView { project, org };
        caller.require(Action::ReadProject, view.resource(), Project::NOUN)?;
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
        let mut org = self.organization_named(caller, organization).await?;
        let name = patch.name.as_deref().unwrap_or_default().parse()?;
        let new = Project::new(ProjectId::within(org.id().organization_prefix(), self.random()), name, self.now());
        let change = org.change(caller, "project.create", self.now(), move |tx| {
            tx.require::<Organization>(Action::CreateProject, tx.organization())?;
            put_patched(tx, &new, &patch)
        });
        let project = change.await?;
        Ok(ProjectView { project, org })
    }

    pub async fn update_project(
        &self,
        caller: &Caller,
        id: ProjectId,
        patch: ProjectPatch,
    ) -> Result<ProjectView, Error> {
        let mut org = self.authorized_organization(caller, id.organization_prefix(), Project::NOUN).await?;
        let change = org.change(caller, "project.update", self.now(), move |tx| {
            let project = tx.project(&id, Action::UpdateProject)?;
            put_patched(tx, &project, &patch)
        });
        let project = change.await?;
        Ok(ProjectView { project, org })
    }

    /// Deletes an empty project.
    pub async fn delete_project(&self, caller: &Caller, id: ProjectId) -> Result<(), Error> {
        let mut org = self.authorized_organization(caller, id.organization_prefix(), Project::NOUN).await?;
        org.change(caller, "project.delete", self.now(), move |tx| {
            tx.project(&id, Action::DeleteProject)?;
            check_deletable(tx.state(), id).map_err(Error::Conflict)?;
            tx.delete::<Project>(&id)
        })
        .await
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

/// Puts the project as it is after a request, if its name is free and its pool is for it.
fn put_patched(tx: &mut Tx<'_>, project: &Project, patch: &ProjectPatch) -> Result<Project, Error> {
    let organization = tx.state().organization().ok_or(Error::NotFound(Organization::NOUN))?;
    let changed = patch.apply(project, organization.default_execution)?;
    if let Some(execution) = changed.default_execution {
        let user = PoolUser::Project(project.id);
        check_agent_pool(tx.state(), execution, project.default_execution, user, "default-agent-pool-id")?;
    }
    tx.put_unique(changed)
}
