//! Access of teams to workspaces.

use serde::Serialize;
use taco_domain::team_access::{RunsRight, StateRight, TeamWorkspace, VariablesRight, WorkspaceRole};
use taco_domain::team_access_patch::{MocksRight, TeamWorkspacePatch};

use crate::document::{Identifier, ResourceObject};
use crate::error::ApiError;
use crate::request::{Answer, ApiRequest, no_content};
use crate::resource::Resource;
use crate::{teams, workspaces};

/// The rights are told for fixed roles too: what they come to.
#[derive(Serialize)]
#[serde(rename_all = "kebab-case")]
struct Attributes {
    access: WorkspaceRole,
    runs: RunsRight,
    variables: VariablesRight,
    state_versions: StateRight,
    sentinel_mocks: MocksRight,
    workspace_locking: bool,
    run_tasks: bool,
    policy_overrides: bool,
}

impl Resource for TeamWorkspace {
    const KIND: &'static str = "team-workspaces";

    fn object(&self, _: &ApiRequest) -> Result<ResourceObject, ApiError> {
        let rights = self.rights();
        let attributes = Attributes {
            access: self.access,
            runs: rights.runs,
            variables: rights.variables,
            state_versions: rights.state_versions,
            sentinel_mocks: rights.sentinel_mocks.into(),
            workspace_locking: rights.workspace_locking,
            run_tasks: rights.run_tasks,
            policy_overrides: rights.policy_overrides,
        };
        Ok(ResourceObject::new(Self::KIND, self.id, &attributes)
            .has_one("team", Identifier::new(teams::KIND, self.team))
            .has_one("workspace", Identifier::new(workspaces::KIND, self.workspace))
            .link("self", format!("/api/v2/team-workspaces/{}", self.id)))
    }
}

/// `GET /api/v2/team-workspaces?filter[workspace][id]=…`
pub(crate) async fn list(request: ApiRequest) -> Answer {
    let (workspace, page) = (request.query.id("filter[workspace][id]")?, request.query.page()?);
    request.page(request.control_plane.team_workspaces(&request.caller, workspace, page).await?).await
}

/// `POST /api/v2/team-workspaces`
pub(crate) async fn create(request: ApiRequest) -> Answer {
    let sent = request.resource::<TeamWorkspacePatch>(TeamWorkspace::KIND).await?;
    let (team, workspace) = (sent.required("team")?, sent.required("workspace")?);
    request.created(&request.control_plane.add_team_workspace(&request.caller, team, workspace, sent.attributes).await?)
}

/// `GET /api/v2/team-workspaces/{team_workspace}`
pub(crate) async fn read(request: ApiRequest) -> Answer {
    request.one(&request.control_plane.team_workspace(&request.caller, request.id("team_workspace")?).await?).await
}

/// `PATCH /api/v2/team-workspaces/{team_workspace}`
pub(crate) async fn update(request: ApiRequest) -> Answer {
    let (access, patch) = (request.id("team_workspace")?, request.attributes(TeamWorkspace::KIND).await?);
    request.changed(&request.control_plane.update_team_workspace(&request.caller, access, patch).await?)
}

/// `DELETE /api/v2/team-workspaces/{team_workspace}`
pub(crate) async fn delete(request: ApiRequest) -> Answer {
    request.control_plane.remove_team_workspace(&request.caller, request.id("team_workspace")?).await?;
    no_content()
}
