//! Access of teams to workspaces and projects: give, list, change and take away.

use taco_boxed::boxed;
use taco_domain::OrganizationState;
use taco_domain::id::{ProjectId, TeamId, TeamProjectId, TeamWorkspaceId, WorkspaceId};
use taco_domain::permission::{Action, Decision, Resource, covers_in_project};
use taco_domain::project::Project;
use taco_domain::team::Team;
use taco_domain::team_access::{
    ProjectRights, ProjectRole, TeamProject, TeamWorkspace, WorkspaceRights, WorkspaceRole,
};
use taco_domain::team_access_patch::{TeamProjectPatch, TeamWorkspacePatch};
use taco_domain::workspace::Workspace;
use taco_tables::Record as _;

use crate::caller::Caller;
use crate::control_plane::ControlPlane;
use crate::error::Error;
use crate::page::{Listed, PageRequest};
use crate::teams::KnownTeams;

const WHAT: &str = TeamWorkspace::NOUN;

fn require_workspace(
    caller: &Caller,
    state: &OrganizationState,
    action: Action,
    id: &WorkspaceId,
    what: &'static str,
) -> Result<(), Error> {
    let workspace = state.workspaces.get(id).ok_or(Error::NotFound(what))?;
    caller.require(action, Resource::Workspace(state, workspace), what)
}

fn require_project(
    caller: &Caller,
    state: &OrganizationState,
    action: Action,
    id: &ProjectId,
    what: &'static str,
) -> Result<(), Error> {
    let project = state.projects.get(id).ok_or(Error::NotFound(what))?;
    caller.require(action, Resource::Project(state, project), what)
}

/// True if the caller sees that a team has access to a workspace. Few know secret teams; those who manage the access of
/// teams there have to see them all.
fn sees_team_in_workspace(caller: &Caller, state: &OrganizationState, access: &TeamWorkspace) -> bool {
    KnownTeams::of(caller, state).contains(state, &access.team)
        || require_workspace(caller, state, Action::ManageWorkspaceTeams, &access.workspace, WHAT).is_ok()
}

/// The same for a project.
fn sees_team_in_project(caller: &Caller, state: &OrganizationState, access: &TeamProject) -> bool {
    KnownTeams::of(caller, state).contains(state, &access.team)
        || require_project(caller, state, Action::ManageProjectTeams, &access.project, WHAT).is_ok()
}

/// Callers cannot give a team more in a project than they have there themselves; see `teams` for the organization's
/// token.
fn check_gives_no_more(caller: &Caller, state: &OrganizationState, access: &TeamProject) -> Result<(), Error> {
    if caller.actor.is_from_organization() || covers_in_project(&caller.actor, state, access) {
        return Ok(());
    }
    Err(Error::Denied("You may not give a team more access to the project than you have yourself".to_owned()))
}

/// A team that a request names. One that the caller may not know of is as good as none.
fn check_team(caller: &Caller, state: &OrganizationState, team: &TeamId) -> Result<(), Error> {
    if KnownTeams::of(caller, state).contains(state, team) {
        return Ok(());
    }
    Err(Error::Invalid {
        pointer: "/data/relationships/team".to_owned(),
        detail: format!("The team {team} does not exist in this organization"),
    })
}

fn has_access_already() -> Error {
    Error::Invalid {
        pointer: "/data/relationships/team".to_owned(),
        detail: "Team has already been taken: it has access here; change that instead".to_owned(),
    }
}

/// In workspaces.
#[boxed]
impl ControlPlane {
    pub async fn add_team_workspace(
        &self,
        caller: &Caller,
        team: TeamId,
        workspace: WorkspaceId,
        patch: TeamWorkspacePatch,
    ) -> Result<TeamWorkspace, Error> {
        let mut org = self.authorized_organization(caller, workspace.organization_prefix(), Workspace::NOUN).await?;
        let access = patch.access.ok_or_else(|| Error::invalid("access", "Access can't be blank"))?;
        let new = TeamWorkspace {
            id: TeamWorkspaceId::within(workspace.organization_prefix(), self.random()),
            team,
            workspace,
            access: WorkspaceRole::Read,
            custom: WorkspaceRights::NONE,
        };
        let new = TeamWorkspacePatch { access: Some(access), ..patch }.apply(&new)?;
        org.change(caller, "team-workspace.create", self.now(), move |tx| {
            tx.workspace_of::<Workspace>(&workspace, Action::ManageWorkspaceTeams)?;
            let state = tx.state();
            check_team(tx.caller(), state, &team)?;
            if state.team_workspaces.by().team_and_workspace.first(&(team, workspace)).is_some() {
                return Err(has_access_already());
            }
            tx.put(&new);
            Ok(new.clone())
        })
        .await
    }

    /// The teams that have access to a workspace.
    pub async fn team_workspaces(
        &self,
        caller: &Caller,
        workspace: WorkspaceId,
        page: PageRequest,
    ) -> Result<Listed<TeamWorkspace>, Error> {
        let org = self.authorized_organization(caller, workspace.organization_prefix(), Workspace::NOUN).await?;
        require_workspace(caller, &org.state, Action::ReadWorkspaceTeams, &workspace, Workspace::NOUN)?;
        let all = &org.state.team_workspaces;
        let seen = |access: &&TeamWorkspace| sees_team_in_workspace(caller, &org.state, access);
        let of_workspace = all.by().workspace.get(&workspace).filter(seen);
        Ok(Listed::from_all(of_workspace, page).cloned())
    }

    pub async fn team_workspace(&self, caller: &Caller, id: TeamWorkspaceId) -> Result<TeamWorkspace, Error> {
        let org = self.authorized_organization(caller, id.organization_prefix(), WHAT).await?;
        let access = org.get::<TeamWorkspace>(&id)?.clone();
        require_workspace(caller, &org.state, Action::ReadWorkspaceTeams, &access.workspace, WHAT)?;
        if !sees_team_in_workspace(caller, &org.state, &access) {
            return Err(Error::NotFound(WHAT));
        }
        Ok(access)
    }

    pub async fn update_team_workspace(
        &self,
        caller: &Caller,
        id: TeamWorkspaceId,
        patch: TeamWorkspacePatch,
    ) -> Result<TeamWorkspace, Error> {
        let mut org = self.authorized_organization(caller, id.organization_prefix(), WHAT).await?;
        org.change(caller, "team-workspace.update", self.now(), move |tx| {
            let before: TeamWorkspace = tx.get(&id)?;
            tx.workspace_of::<TeamWorkspace>(&before.workspace, Action::ManageWorkspaceTeams)?;
            let after = patch.apply(&before)?;
            tx.put(&after);
            Ok(after)
        })
        .await
    }

    pub async fn remove_team_workspace(&self, caller: &Caller, id: TeamWorkspaceId) -> Result<(), Error> {
        let mut org = self.authorized_organization(caller, id.organization_prefix(), WHAT).await?;
        org.change(caller, "team-workspace.delete", self.now(), move |tx| {
            let access: TeamWorkspace = tx.get(&id)?;
            tx.workspace_of::<TeamWorkspace>(&access.workspace, Action::ManageWorkspaceTeams)?;
            tx.delete::<TeamWorkspace>(&id)
        })
        .await
    }
}

/// In projects.
#[boxed]
impl ControlPlane {
    pub async fn add_team_project(
        &self,
        caller: &Caller,
        team: TeamId,
        project: ProjectId,
        patch: TeamProjectPatch,
    ) -> Result<TeamProject, Error> {
        let mut org = self.authorized_organization(caller, project.organization_prefix(), Project::NOUN).await?;
        let access = patch.access.ok_or_else(|| Error::invalid("access", "Access can't be blank"))?;
        let new = TeamProject {
            id: TeamProjectId::within(project.organization_prefix(), self.random()),
            team,
            project,
            access: ProjectRole::Read,
            custom: ProjectRights::NONE,
            custom_workspaces: WorkspaceRights::NONE,
        };
        let new = TeamProjectPatch { access: Some(access), ..patch }.apply(&new)?;
        org.change(caller, "team-project.create", self.now(), move |tx| {
            tx.project_of::<Project>(&project, Action::ManageProjectTeams)?;
            let state = tx.state();
            check_team(tx.caller(), state, &team)?;
            check_gives_no_more(tx.caller(), state, &new)?;
            if state.team_projects.by().team_and_project.first(&(team, project)).is_some() {
                return Err(has_access_already());
            }
            tx.put(&new);
            Ok(new.clone())
        })
        .await
    }

    /// The teams that have access to a project.
    pub async fn team_projects(
        &self,
        caller: &Caller,
        project: ProjectId,
        page: PageRequest,
    ) -> Result<Listed<TeamProject>, Error> {
        let org = self.authorized_organization(caller, project.organization_prefix(), Project::NOUN).await?;
        require_project(caller, &org.state, Action::ReadProject, &project, Project::NOUN)?;
        let all = &org.state.team_projects;
        let seen = |access: &&TeamProject| sees_team_in_project(caller, &org.state, access);
        let of_project = all.by().project.get(&project).filter(seen);
        Ok(Listed::from_all(of_project, page).cloned())
    }

    pub async fn team_project(&self, caller: &Caller, id: TeamProjectId) -> Result<TeamProject, Error> {
        let org = self.authorized_organization(caller, id.organization_prefix(), WHAT).await?;
        let access = org.get::<TeamProject>(&id)?.clone();
        require_project(caller, &org.state, Action::ReadProject, &access.project, WHAT)?;
        if !sees_team_in_project(caller, &org.state, &access) {
            return Err(Error::NotFound(WHAT));
        }
        Ok(access)
    }

    pub async fn update_team_project(
        &self,
        caller: &Caller,
        id: TeamProjectId,
        patch: TeamProjectPatch,
    ) -> Result<TeamProject, Error> {
        let mut org = self.authorized_organization(caller, id.organization_prefix(), WHAT).await?;
        org.change(caller, "team-project.update", self.now(), move |tx| {
            let before: TeamProject = tx.get(&id)?;
            tx.project_of::<TeamProject>(&before.project, Action::ManageProjectTeams)?;
            let after = patch.apply(&before)?;
            check_gives_no_more(tx.caller(), tx.state(), &after)?;
            tx.put(&after);
            Ok(after)
        })
        .await
    }

    pub async fn remove_team_project(&self, caller: &Caller, id: TeamProjectId) -> Result<(), Error> {
        let mut org = self.authorized_organization(caller, id.organization_prefix(), WHAT).await?;
        org.change(caller, "team-project.delete", self.now(), move |tx| {
            let access: TeamProject = tx.get(&id)?;
            tx.project_of::<TeamProject>(&access.project, Action::ManageProjectTeams)?;
            tx.delete::<TeamProject>(&id)
        })
        .await
    }
}

/// Something that a team has access to, with its name.
#[derive(Clone)]
pub struct Granted<A> {
    pub access: A,
    pub name: String,
    /// Decision about changing it.
    pub right: Decision,
}

/// What a team has access to, as far as the caller may know, and where the caller could grant it more.
#[derive(Clone, Default)]
pub struct AccessOfTeam {
    pub projects: Vec<Granted<TeamProject>>,
    pub workspaces: Vec<Granted<TeamWorkspace>>,
    pub grantable_projects: Vec<(ProjectId, String)>,
    pub grantable_workspaces: Vec<(WorkspaceId, String)>,
}

/// As many things are offered at most.
const OFFERED: usize = 500;

#[boxed]
impl ControlPlane {
    pub async fn access_of_team(&self, caller: &Caller, team: TeamId) -> Result<AccessOfTeam, Error> {
        let org = self.authorized_organization(caller, team.organization_prefix(), Team::NOUN).await?;
        org.known_team(caller, &team).ok_or(Error::NotFound(Team::NOUN))?;
        let state = &org.state;
        let mut found = AccessOfTeam::default();
        for access in state.team_projects.by().team.get(&team) {
            let Some(project) = state.projects.get(&access.project) else { continue };
            let resource = Resource::Project(state, project);
            if caller.may(Action::ReadProject, resource).allowed {
                let right = caller.may(Action::ManageProjectTeams, resource);
                found.projects.push(Granted { access: access.clone(), name: project.name.to_string(), right });
            }
        }
        for access in state.team_workspaces.by().team.get(&team) {
            let Some(workspace) = state.workspaces.get(&access.workspace) else { continue };
            let resource = Resource::Workspace(state, workspace);
            if caller.may(Action::ReadWorkspaceTeams, resource).allowed {
                let right = caller.may(Action::ManageWorkspaceTeams, resource);
                found.workspaces.push(Granted { access: access.clone(), name: workspace.name.to_string(), right });
            }
        }
        let has = &state.team_projects.by().team_and_project;
        let projects = state.projects.by().name.iter().filter(|project| {
            has.first(&(team, project.id)).is_none()
                && caller.may(Action::ManageProjectTeams, Resource::Project(state, project)).allowed
        });
        found.grantable_projects =
            projects.take(OFFERED).map(|project| (project.id, project.name.to_string())).collect();
        let has = &state.team_workspaces.by().team_and_workspace;
        let workspaces = state.workspaces.by().name.iter().filter(|workspace| {
            has.first(&(team, workspace.id)).is_none()
                && caller.may(Action::ManageWorkspaceTeams, Resource::Workspace(state, workspace)).allowed
        });
        found.grantable_workspaces =
            workspaces.take(OFFERED).map(|workspace| (workspace.id, workspace.name.to_string())).collect();
        found.projects.sort_by(|one, other| one.name.cmp(&other.name));
        found.workspaces.sort_by(|one, other| one.name.cmp(&other.name));
        Ok(found)
    }
}
