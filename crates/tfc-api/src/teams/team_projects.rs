//! Access of teams to projects and all their workspaces.

use serde::Serialize;
use taco_domain::team_access::{
    ProjectRole, RunsRight, SettingsRight, StateRight, TeamProject, TeamsRight, VariablesRight,
};
use taco_domain::team_access_patch::{MocksRight, TeamProjectPatch};

use crate::document::{Identifier, ResourceObject};
use crate::error::ApiError;
use crate::request::{Answer, ApiRequest, no_content};
use crate::resource::Resource;
use crate::{projects, teams};

#[derive(Serialize)]
#[serde(rename_all = "kebab-case")]
struct Attributes {
    access: ProjectRole,
    project_access: ProjectAccess,
    workspace_access: WorkspaceAccess,
}

#[derive(Serialize)]
#[serde(rename_all = "kebab-case")]
struct ProjectAccess {
    settings: SettingsRight,
    teams: TeamsRight,
    variable_sets: VariablesRight,
}

#[derive(Serialize)]
#[serde(rename_all = "kebab-case")]
struct WorkspaceAccess {
    runs: RunsRight,
    variables: VariablesRight,
    state_versions: StateRight,
    sentinel_mocks: MocksRight,
    create: bool,
    locking: bool,
    #[serde(rename = "move")]
    move_workspaces: bool,
    delete: bool,
    run_tasks: bool,
    policy_overrides: bool,
}

impl Resource for TeamProject {
    const KIND: &'static str = "team-projects";

    fn object(&self, _: &ApiRequest) -> Result<ResourceObject, ApiError> {
        let (project, workspaces) = (self.rights(), self.workspace_rights());
        let attributes = Attributes {
            access: self.access,
            project_access: ProjectAccess {
                settings: project.settings,
                teams: project.teams,
                variable_sets: project.variable_sets,
            },
            workspace_access: WorkspaceAccess {
                runs: workspaces.runs,
                variables: workspaces.variables,
                state_versions: workspaces.state_versions,
                sentinel_mocks: workspaces.sentinel_mocks.into(),
                create: project.create_workspaces,
                locking: workspaces.workspace_locking,
                move_workspaces: project.move_workspaces,
                delete: project.delete_workspaces,
                run_tasks: workspaces.run_tasks,
                policy_overrides: workspaces.policy_overrides,
            },
        };
        Ok(ResourceObject::new(Self::KIND, self.id, &attributes)
            .has_one("team", Identifier::new(teams::KIND, self.team))
            .has_one("project", Identifier::new(projects::KIND, self.project))
            .link("self", format!("/api/v2/team-projects/{}", self.id)))
    }
}

/// `GET /api/v2/team-projects?filter[project][id]=…`
pub(crate) async fn list(request: ApiRequest) -> Answer {
    let (project, page) = (request.query.id("filter[project][id]")?, request.query.page()?);
    request.page(request.control_plane.team_projects(&request.caller, project, page).await?).await
}

/// `POST /api/v2/team-projects`
pub(crate) async fn create(request: ApiRequest) -> Answer {
    let sent = request.resource::<TeamProjectPatch>(TeamProject::KIND).await?;
    let (team, project) = (sent.required("team")?, sent.required("project")?);
    request.created(&request.control_plane.add_team_project(&request.caller, team, project, sent.attributes).await?)
}

/// `GET /api/v2/team-projects/{team_project}`
pub(crate) async fn read(request: ApiRequest) -> Answer {
    request.one(&request.control_plane.team_project(&request.caller, request.id("team_project")?).await?).await
}

/// `PATCH /api/v2/team-projects/{team_project}`
pub(crate) async fn update(request: ApiRequest) -> Answer {
    let (access, patch) = (request.id("team_project")?, request.attributes(TeamProject::KIND).await?);
    request.changed(&request.control_plane.update_team_project(&request.caller, access, patch).await?)
}

/// `DELETE /api/v2/team-projects/{team_project}`
pub(crate) async fn delete(request: ApiRequest) -> Answer {
    request.control_plane.remove_team_project(&request.caller, request.id("team_project")?).await?;
    no_content()
}
