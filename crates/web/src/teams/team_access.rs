//! Access of a team to projects and workspaces.

use axum::extract::{Path, State};
use axum::response::Response;
use serde::Deserialize;
use taco_control_plane::{AccessOfTeam, Error};
use taco_domain::id::{TeamId, TeamProjectId, TeamWorkspaceId};
use taco_domain::permission::Decision;
use taco_domain::team_access_patch::{TeamProjectPatch, TeamWorkspacePatch};

use crate::Web;
use crate::access_roles::{AccessRole, PROJECT_ROLES, WORKSPACE_ROLES};
use crate::choice::Choice;
use crate::error::PageError;
use crate::flash::Flash;
use crate::form::{Complaint, Nothing, VisitorForm};
use crate::navigation::workspace_address;
use crate::team::{TeamPage, done, find};

/// What a team has access to, of one kind.
pub(crate) struct AccessList {
    /// Word of the kind in addresses: `projects` or `workspaces`.
    pub(crate) kind: &'static str,
    /// Name of the field that chooses one.
    pub(crate) field: &'static str,
    pub(crate) title: &'static str,
    pub(crate) rows: Vec<AccessRow>,
    pub(crate) offered: Vec<Choice>,
    pub(crate) roles: Vec<AccessRole>,
    pub(crate) complaint: Complaint,
}

pub(crate) struct AccessRow {
    /// Where forms about it go.
    pub(crate) action: String,
    pub(crate) name: String,
    pub(crate) address: String,
    pub(crate) access: AccessRole,
    pub(crate) right: Decision,
}

impl AccessList {
    pub(crate) fn of_projects(team: &str, access: &AccessOfTeam) -> Self {
        let list = team.split("/settings").next().unwrap_or_default();
        let rows = access.projects.iter().map(|granted| AccessRow {
            action: format!("{team}/projects/{}", granted.access.id),
            name: granted.name.clone(),
            address: format!("{list}/projects/{}", granted.access.project),
            access: AccessRole::in_project(granted.access.access),
            right: granted.right.clone(),
        });
        Self {
            kind: "projects",
            field: "project",
            title: "Projects",
            rows: rows.collect(),
            offered: access.grantable_projects.iter().map(|(id, name)| Choice::new(id, name, "")).collect(),
            roles: AccessRole::all_in_project(),
            complaint: Complaint::default(),
        }
    }

    pub(crate) fn of_workspaces(team: &str, organization: &str, access: &AccessOfTeam) -> Self {
        let rows = access.workspaces.iter().map(|granted| AccessRow {
            action: format!("{team}/workspaces/{}", granted.access.id),
            address: workspace_address(organization, &granted.name),
            name: granted.name.clone(),
            access: AccessRole::in_workspace(granted.access.access),
            right: granted.right.clone(),
        });
        Self {
            kind: "workspaces",
            field: "workspace",
            title: "Workspaces",
            rows: rows.collect(),
            offered: access.grantable_workspaces.iter().map(|(id, name)| Choice::new(id, name, "")).collect(),
            roles: AccessRole::all_in_workspace(),
            complaint: Complaint::default(),
        }
    }
}

#[derive(Default, Deserialize)]
#[serde(default)]
pub(crate) struct AccessForm {
    project: String,
    workspace: String,
    access: String,
}

impl AccessForm {
    fn in_project(&self) -> Result<TeamProjectPatch, Error> {
        let role = PROJECT_ROLES.into_iter().find(|role| role.to_string() == self.access);
        let role = role.ok_or_else(|| Error::invalid("access", "Choose what the team can do"))?;
        Ok(TeamProjectPatch { access: Some(role), ..TeamProjectPatch::default() })
    }

    fn in_workspace(&self) -> Result<TeamWorkspacePatch, Error> {
        let role = WORKSPACE_ROLES.into_iter().find(|role| role.to_string() == self.access);
        let role = role.ok_or_else(|| Error::invalid("access", "Choose what the team can do"))?;
        Ok(TeamWorkspacePatch { access: Some(role), ..TeamWorkspacePatch::default() })
    }
}

/// `POST …/settings/teams/{team}/projects`
pub(crate) async fn add_project(
    State(web): State<Web>,
    Path((organization, team)): Path<(String, String)>,
    VisitorForm(visitor, form): VisitorForm<AccessForm>,
) -> Result<Response, PageError> {
    let view = find(&web, &visitor, &organization, &team).await?;
    let granted = match (form.project.parse(), form.in_project()) {
        (Ok(project), Ok(patch)) => {
            web.control_plane.add_team_project(&visitor.caller, view.team.id, project, patch).await.map(|_| ())
        }
        (Err(_), _) => Err(Error::invalid("project", "Choose a project")),
        (_, Err(error)) => Err(error),
    };
    match granted {
        Ok(()) => Ok(done(&organization, view.team.id, Flash::says("Project access added."))),
        Err(error) => {
            let complaint = Complaint::of(error, &[])?;
            Ok(TeamPage::of(&web, &visitor, &view).await?.again(|page| page.access[0].complaint = complaint))
        }
    }
}

/// `POST …/settings/teams/{team}/workspaces`
pub(crate) async fn add_workspace(
    State(web): State<Web>,
    Path((organization, team)): Path<(String, String)>,
    VisitorForm(visitor, form): VisitorForm<AccessForm>,
) -> Result<Response, PageError> {
    let view = find(&web, &visitor, &organization, &team).await?;
    let granted = match (form.workspace.parse(), form.in_workspace()) {
        (Ok(workspace), Ok(patch)) => {
            web.control_plane.add_team_workspace(&visitor.caller, view.team.id, workspace, patch).await.map(|_| ())
        }
        (Err(_), _) => Err(Error::invalid("workspace", "Choose a workspace")),
        (_, Err(error)) => Err(error),
    };
    match granted {
        Ok(()) => Ok(done(&organization, view.team.id, Flash::says("Workspace access added."))),
        Err(error) => {
            let complaint = Complaint::of(error, &[])?;
            Ok(TeamPage::of(&web, &visitor, &view).await?.again(|page| page.access[1].complaint = complaint))
        }
    }
}

/// A path to access that a team has, and the kind of the id in it.
struct AccessPath<T> {
    organization: String,
    team: TeamId,
    access: T,
}

impl<T: std::str::FromStr> AccessPath<T> {
    fn parse((organization, team, access): (String, String, String)) -> Result<Self, PageError> {
        let team = team.parse().map_err(|_| PageError::not_found("team"))?;
        let access = access.parse().map_err(|_| PageError::not_found("team access"))?;
        Ok(Self { organization, team, access })
    }

    fn done(&self, flash: Flash) -> Response {
        done(&self.organization, self.team, flash)
    }
}

/// `POST …/settings/teams/{team}/projects/{team_project}`
pub(crate) async fn change_project(
    State(web): State<Web>,
    Path(path): Path<(String, String, String)>,
    VisitorForm(visitor, form): VisitorForm<AccessForm>,
) -> Result<Response, PageError> {
    let path = AccessPath::<TeamProjectId>::parse(path)?;
    web.control_plane.organization_named(&visitor.caller, &path.organization).await?;
    web.control_plane.update_team_project(&visitor.caller, path.access, form.in_project()?).await?;
    Ok(path.done(Flash::says("Project access changed.")))
}

/// `POST …/settings/teams/{team}/projects/{team_project}/remove`
pub(crate) async fn remove_project(
    State(web): State<Web>,
    Path(path): Path<(String, String, String)>,
    VisitorForm(visitor, Nothing {}): VisitorForm<Nothing>,
) -> Result<Response, PageError> {
    let path = AccessPath::<TeamProjectId>::parse(path)?;
    web.control_plane.organization_named(&visitor.caller, &path.organization).await?;
    web.control_plane.remove_team_project(&visitor.caller, path.access).await?;
    Ok(path.done(Flash::says("Project access removed.")))
}

/// `POST …/settings/teams/{team}/workspaces/{team_workspace}`
pub(crate) async fn change_workspace(
    State(web): State<Web>,
    Path(path): Path<(String, String, String)>,
    VisitorForm(visitor, form): VisitorForm<AccessForm>,
) -> Result<Response, PageError> {
    let path = AccessPath::<TeamWorkspaceId>::parse(path)?;
    web.control_plane.organization_named(&visitor.caller, &path.organization).await?;
    web.control_plane.update_team_workspace(&visitor.caller, path.access, form.in_workspace()?).await?;
    Ok(path.done(Flash::says("Workspace access changed.")))
}

/// `POST …/settings/teams/{team}/workspaces/{team_workspace}/remove`
pub(crate) async fn remove_workspace(
    State(web): State<Web>,
    Path(path): Path<(String, String, String)>,
    VisitorForm(visitor, Nothing {}): VisitorForm<Nothing>,
) -> Result<Response, PageError> {
    let path = AccessPath::<TeamWorkspaceId>::parse(path)?;
    web.control_plane.organization_named(&visitor.caller, &path.organization).await?;
    web.control_plane.remove_team_workspace(&visitor.caller, path.access).await?;
    Ok(path.done(Flash::says("Workspace access removed.")))
}
