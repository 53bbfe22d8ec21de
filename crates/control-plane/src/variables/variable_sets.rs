//! Variable sets: create, list, read, change, delete, and apply to workspaces and projects. Their variables are in
//! `variables`.

use std::collections::BTreeSet;

use taco_boxed::boxed;
use taco_domain::OrganizationState;
use taco_domain::id::{ProjectId, VariableSetId, WorkspaceId};
use taco_domain::permission::{Action, Decision, Resource};
use taco_domain::project::Project;
use taco_domain::variable::{Variable, VariableOwner, VariablePatch};
use taco_domain::variable_set::{VariableSet, VariableSetPatch};
use taco_tables::Record as _;

use crate::caller::Caller;
use crate::change::Tx;
use crate::control_plane::{ControlPlane, OrganizationSnapshot};
use crate::error::Error;
use crate::page::{Listed, PageRequest};
use crate::projects::ProjectView;
use crate::workspace_view::{ListChange, WorkspaceRef, WorkspaceView, sees_project, sees_workspace};

/// A variable set as a door shows it, and its organization at the same moment.
#[derive(Clone)]
pub struct VariableSetView {
    pub set: VariableSet,
    pub org: OrganizationSnapshot,
}

impl VariableSetView {
    /// The project that owns it.
    pub fn owner(&self) -> Option<&Project> {
        self.set.parent.and_then(|id| self.org.state.projects.get(&id))
    }

    /// Its variables by key.
    pub fn variables(&self) -> impl Iterator<Item = &Variable> {
        self.org.state.variables_of(VariableOwner::VariableSet(self.set.id))
    }

    /// The workspaces that it is applied to, as far as the caller may see them.
    pub fn workspaces_seen_by(&self, caller: &Caller) -> Vec<WorkspaceId> {
        self.set.workspaces.iter().copied().filter(|id| sees_workspace(caller, &self.org.state, id)).collect()
    }

    /// The projects that it is applied to, as far as the caller may see them.
    pub fn projects_seen_by(&self, caller: &Caller) -> Vec<ProjectId> {
        self.set.projects.iter().copied().filter(|id| sees_project(caller, &self.org.state, id)).collect()
    }

    /// Those workspaces that the caller may read. A caller who sees a set need not see all that it is applied to.
    pub fn readable_workspaces(&self, caller: &Caller) -> Vec<WorkspaceView> {
        let found = self.set.workspaces.iter().filter_map(|id| self.org.state.workspaces.get(id));
        let views = found.map(|workspace| WorkspaceView { workspace: workspace.clone(), org: self.org.clone() });
        views.filter(|view| caller.may(Action::ReadWorkspace, view.resource()).allowed).collect()
    }

    /// Those projects that the caller may read.
    pub fn readable_projects(&self, caller: &Caller) -> Vec<ProjectView> {
        let found = self.set.projects.iter().filter_map(|id| self.org.state.projects.get(id));
        let views = found.map(|project| ProjectView { project: project.clone(), org: self.org.clone() });
        views.filter(|view| caller.may(Action::ReadProject, view.resource()).allowed).collect()
    }

    /// May the caller change it? With the reason, for pages.
    pub fn may_change(&self, caller: &Caller) -> Decision {
        let state = &self.org.state;
        let of_organization = caller.may(Action::ManageVariableSets, Resource::Organization(state));
        match self.set.parent.and_then(|parent| state.projects.get(&parent)) {
            Some(project) if !of_organization.allowed => {
                caller.may(Action::WriteProjectVariableSets, Resource::Project(state, project))
            }
            _ => of_organization,
        }
    }
}

/// A new variable set and what it begins with.
#[derive(Clone, Default, Debug)]
pub struct NewVariableSet {
    pub patch: VariableSetPatch,
    /// The project that is to own it; the organization owns it without one.
    pub parent: Option<ProjectId>,
    pub variables: Vec<VariablePatch>,
}

/// Targets that a set is applied to, or no longer.
#[derive(Clone, Debug)]
pub enum VariableSetTargets {
    Workspaces(BTreeSet<WorkspaceId>),
    Projects(BTreeSet<ProjectId>),
}

#[boxed]
impl ControlPlane {
    pub async fn create_variable_set(
        &self,
        caller: &Caller,
        organization: &str,
        new: NewVariableSet,
    ) -> Result<VariableSetView, Error> {
        let mut org = self.organization_named(caller, organization).await?;
        require_write_under(caller, &org.state, new.parent)?;
        let name = new.patch.name.as_deref().unwrap_or_default().parse()?;
        let id = VariableSetId::within(org.id().organization_prefix(), self.random());
        let blank = VariableSet::new(id, name, new.parent, self.now());
        let owner = VariableOwner::VariableSet(id);
        let variables = new.variables.iter().map(|patch| self.new_variable(&org, owner, patch));
        let variables: Vec<Variable> = variables.collect::<Result<_, _>>()?;
        let change = org.change(caller, "variable-set.create", self.now(), move |tx| {
            require_write_under(tx.caller(), tx.state(), new.parent)?;
            let set = put_checked(tx, &blank, new.patch.apply(&blank)?)?;
            for variable in &variables {
                tx.put_unique(variable.clone())?;
            }
            Ok(set)
        });
        let set = change.await?;
        Ok(VariableSetView { set, org })
    }

    pub async fn variable_set(&self, caller: &Caller, id: VariableSetId) -> Result<VariableSetView, Error> {
        let org = self.authorized_organization(caller, id.organization_prefix(), VariableSet::NOUN).await?;
        let set = require_read_set(caller, &org.state, id)?;
        Ok(VariableSetView { set, org })
    }

    /// The sets of an organization that the caller may see, by name. `query` is a part of the name.
    pub async fn variable_sets(
        &self,
        caller: &Caller,
        organization: &str,
        query: Option<&str>,
        page: PageRequest,
    ) -> Result<Listed<VariableSetView>, Error> {
        let org = self.organization_named(caller, organization).await?;
        let may_see = |set: &VariableSet| may_read(caller, &org.state, set);
        Ok(listed(&org, query, page, may_see))
    }

    /// The sets that apply to a workspace, by name.
    pub async fn variable_sets_of_workspace(
        &self,
        caller: &Caller,
        wanted: &WorkspaceRef,
        query: Option<&str>,
        page: PageRequest,
    ) -> Result<Listed<VariableSetView>, Error> {
        let view = self.find_workspace(caller, wanted).await?;
        caller.require(Action::ReadVariables, view.resource(), "workspace")?;
        Ok(listed(&view.org, query, page, |set| set.scope_for(&view.workspace).is_some()))
    }

    /// The sets that a project owns, and those that apply to all of its workspaces, by name.
    pub async fn variable_sets_of_project(
        &self,
        caller: &Caller,
        id: ProjectId,
        query: Option<&str>,
        page: PageRequest,
    ) -> Result<Listed<VariableSetView>, Error> {
        let org = self.authorized_organization(caller, id.organization_prefix(), "project").await?;
        let project = org.state.projects.get(&id).ok_or(Error::NotFound(Project::NOUN))?;
        caller.require(Action::ReadProjectVariableSets, Resource::Project(&org.state, project), "project")?;
        Ok(listed(&org, query, page, |set| set.global || set.parent == Some(id) || set.projects.contains(&id)))
    }

    pub async fn update_variable_set(
        &self,
        caller: &Caller,
        id: VariableSetId,
        patch: VariableSetPatch,
    ) -> Result<VariableSetView, Error> {
        let mut org = self.authorized_organization(caller, id.organization_prefix(), VariableSet::NOUN).await?;
        let change = org.change(caller, "variable-set.update", self.now(), move |tx| {
            let before = require_write_set(tx.caller(), tx.state(), id)?;
            put_checked(tx, &before, patch.apply(&before)?)
        });
        let set = change.await?;
        Ok(VariableSetView { set, org })
    }

    /// Applies a set to workspaces or projects, or takes it away from them.
    pub async fn apply_variable_set(
        &self,
        caller: &Caller,
        id: VariableSetId,
        targets: VariableSetTargets,
        change: ListChange,
    ) -> Result<VariableSetView, Error> {
        let mut org = self.authorized_organization(caller, id.organization_prefix(), VariableSet::NOUN).await?;
        let change = org.change(caller, "variable-set.apply", self.now(), move |tx| {
            let before = require_write_set(tx.caller(), tx.state(), id)?;
            let mut set = before.clone();
            match &targets {
                VariableSetTargets::Workspaces(named) => change_list(&mut set.workspaces, named, change),
                VariableSetTargets::Projects(named) => change_list(&mut set.projects, named, change),
            }
            put_checked(tx, &before, set)
        });
        let set = change.await?;
        Ok(VariableSetView { set, org })
    }

    /// Deletes a set with its variables.
    pub async fn delete_variable_set(&self, caller: &Caller, id: VariableSetId) -> Result<(), Error> {
        let mut org = self.authorized_organization(caller, id.organization_prefix(), VariableSet::NOUN).await?;
        org.change(caller, "variable-set.delete", self.now(), move |tx| {
            require_write_set(tx.caller(), tx.state(), id)?;
            tx.delete::<VariableSet>(&id)
        })
        .await
    }
}

fn change_list<I: Ord + Copy>(list: &mut BTreeSet<I>, named: &BTreeSet<I>, change: ListChange) {
    match change {
        ListChange::Add => list.extend(named),
        ListChange::Remove => list.retain(|id| !named.contains(id)),
        ListChange::Replace => list.clone_from(named),
    }
}

fn listed(
    org: &OrganizationSnapshot,
    query: Option<&str>,
    page: PageRequest,
    wanted: impl Fn(&VariableSet) -> bool,
) -> Listed<VariableSetView> {
    let query = query.unwrap_or_default().to_lowercase();
    let sets = org.state.variable_sets_by_name();
    let sets = sets.filter(|set| set.name.key().as_str().contains(&query) && wanted(set));
    Listed::from_all(sets, page).cloned().map(|set| VariableSetView { set, org: org.clone() })
}

/// Puts a set, if it may be applied to what it is applied to. What it was applied to `before` may have moved to another
/// project; that is nothing to refuse now.
fn put_checked(tx: &mut Tx<'_>, before: &VariableSet, set: VariableSet) -> Result<VariableSet, Error> {
    check_targets(tx.caller(), tx.state(), before, &set)?;
    tx.put_unique(set)
}

fn check_targets(
    caller: &Caller,
    state: &OrganizationState,
    before: &VariableSet,
    set: &VariableSet,
) -> Result<(), Error> {
    let refuse = |detail: String| Err(Error::Invalid { pointer: "/data".to_owned(), detail });
    for id in set.workspaces.difference(&before.workspaces) {
        match state.workspaces.get(id).filter(|_| sees_workspace(caller, state, id)) {
            None => return refuse(format!("The workspace {id} does not exist in this organization")),
            Some(workspace) if set.parent.is_some_and(|parent| parent != workspace.project) => {
                return refuse(format!("The workspace {id} is not in the project that owns the set"));
            }
            Some(_) => {}
        }
    }
    for id in set.projects.difference(&before.projects) {
        if !sees_project(caller, state, id) {
            return refuse(format!("The project {id} does not exist in this organization"));
        }
        if set.parent.is_some_and(|parent| parent != *id) {
            return refuse(format!("The project {id} is not the one that owns the set"));
        }
    }
    Ok(())
}

/// A set is visible to those who see all sets, and to those who see variables of something that it reaches.
pub(crate) fn may_read(caller: &Caller, state: &OrganizationState, set: &VariableSet) -> bool {
    let may = |action, resource| caller.may(action, resource).allowed;
    let in_project = |id: &ProjectId| {
        let project = state.projects.get(id);
        project.is_some_and(|project| may(Action::ReadProjectVariableSets, Resource::Project(state, project)))
    };
    may(Action::ReadVariableSets, Resource::Organization(state))
        || set.parent.iter().chain(&set.projects).any(in_project)
        || state.workspaces.iter().any(|workspace| {
            set.scope_for(workspace).is_some() && may(Action::ReadVariables, Resource::Workspace(state, workspace))
        })
}

/// The set, if the caller may see it.
pub(crate) fn require_read_set(
    caller: &Caller,
    state: &OrganizationState,
    id: VariableSetId,
) -> Result<VariableSet, Error> {
    let set = state.variable_sets.get(&id).ok_or(Error::NotFound(VariableSet::NOUN))?;
    if !may_read(caller, state, set) {
        caller.require(Action::ReadVariableSets, Resource::Organization(state), VariableSet::NOUN)?;
    }
    Ok(set.clone())
}

/// The set, if the caller may change it.
pub(crate) fn require_write_set(
    caller: &Caller,
    state: &OrganizationState,
    id: VariableSetId,
) -> Result<VariableSet, Error> {
    let set = state.variable_sets.get(&id).ok_or(Error::NotFound(VariableSet::NOUN))?;
    require_write_under(caller, state, set.parent)?;
    Ok(set.clone())
}

/// Checks the right to write sets. Those who manage the organization's sets manage those of its projects, too.
fn require_write_under(caller: &Caller, state: &OrganizationState, parent: Option<ProjectId>) -> Result<(), Error> {
    let of_organization = caller.require(Action::ManageVariableSets, Resource::Organization(state), VariableSet::NOUN);
    let Some(parent) = parent else { return of_organization };
    let Some(project) = state.projects.get(&parent).filter(|_| sees_project(caller, state, &parent)) else {
        return Err(Error::Invalid {
            pointer: "/data/relationships/parent".to_owned(),
            detail: format!("The project {parent} does not exist in this organization"),
        });
    };
    match of_organization {
        Ok(()) => Ok(()),
        Err(_) => {
            caller.require(Action::WriteProjectVariableSets, Resource::Project(state, project), VariableSet::NOUN)
        }
    }
}
