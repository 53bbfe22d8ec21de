//! Forms of a workspace's settings that decide who may do what: its teams, and its end. Those of its lock are in
//! `workspace_lock`.

use axum::extract::{Path, State};
use axum::response::Response;
use serde::Deserialize;
use taco_control_plane::{Deletion as Care, Error, OrganizationSnapshot, WorkspaceView};
use taco_domain::Author;
use taco_domain::id::{TeamId, TeamWorkspaceId};
use taco_domain::lock::Lock;
use taco_domain::permission::{Action, Decision};
use taco_domain::team_access::TeamWorkspace;
use taco_domain::team_access_patch::TeamWorkspacePatch;
use taco_domain::workspace::check_safe_delete;

use crate::access_roles::{AccessRole, WORKSPACE_ROLES};
use crate::error::PageError;
use crate::flash::Flash;
use crate::form::{Complaint, Nothing, VisitorForm};
use crate::navigation::organization_address;
use crate::text::Moment;
use crate::visitor::Visitor;
use crate::workspace_settings::{Place, Section, SettingsPage};
use crate::{Web, text};

/// Holder of the workspace's lock. The actions on it are on the workspace's own page.
pub(crate) struct LockState {
    pub(crate) holder: String,
    pub(crate) since: Moment,
    pub(crate) reason: Option<String>,
}

impl LockState {
    pub(crate) fn of(lock: &Lock) -> Self {
        Self { holder: holder_of(lock), since: Moment(lock.since), reason: lock.reason.as_deref().map(text::plain) }
    }
}

/// Holder of a lock in words: people and runs by their names, others also by what they are.
pub(crate) fn holder_of(lock: &Lock) -> String {
    match lock.holder {
        Author::User(_) | Author::Run(_) => lock.holder_name.clone(),
        _ => format!("{} {}", lock.holder.kind(), lock.holder_name),
    }
}

/// Access of a team to the workspace.
pub(crate) struct Access {
    pub(crate) id: TeamWorkspaceId,
    pub(crate) team: String,
    pub(crate) access: AccessRole,
}

impl Access {
    pub(crate) fn of(visitor: &Visitor, org: &OrganizationSnapshot, access: &TeamWorkspace) -> Self {
        let team = org.known_team(&visitor.caller, &access.team);
        let team = team.map_or_else(|| format!("a secret team, {}", access.team), |team| team.name.to_string());
        Self { id: access.id, team, access: AccessRole::in_workspace(access.access) }
    }
}

#[derive(Clone, Default, Deserialize)]
#[serde(default)]
pub(crate) struct TeamForm {
    pub(crate) team: String,
    pub(crate) access: String,
    #[serde(skip)]
    pub(crate) complaint: Complaint,
}

impl TeamForm {
    fn patch(&self) -> Result<TeamWorkspacePatch, Error> {
        let access = WORKSPACE_ROLES.into_iter().find(|role| role.to_string() == self.access);
        let access = access.ok_or_else(|| Error::invalid("access", "Choose what the team can do"))?;
        Ok(TeamWorkspacePatch { access: Some(access), ..TeamWorkspacePatch::default() })
    }

    async fn add(&self, web: &Web, visitor: &Visitor, place: &Place) -> Result<TeamWorkspace, Error> {
        let team: TeamId = self.team.parse().map_err(|_| Error::invalid("team", "Choose a team"))?;
        let workspace = web.control_plane.workspace(&visitor.caller, &place.workspace()).await?.workspace.id;
        web.control_plane.add_team_workspace(&visitor.caller, team, workspace, self.patch()?).await
    }
}

/// `POST …/settings/teams`
pub(crate) async fn add_team(
    State(web): State<Web>,
    Path(place): Path<Place>,
    VisitorForm(visitor, form): VisitorForm<TeamForm>,
) -> Result<Response, PageError> {
    match form.add(&web, &visitor, &place).await {
        Ok(_) => Ok(place.done(Section::Teams, Flash::says("Team access added."))),
        Err(error) => {
            let team = TeamForm { complaint: Complaint::of(error, &["team", "access"])?, ..form };
            Ok(SettingsPage::of(&web, &visitor, &place, Section::Teams).await?.again(|page| page.team = team))
        }
    }
}

fn access_id(id: &str) -> Result<TeamWorkspaceId, PageError> {
    id.parse().map_err(|_| PageError::not_found("team access"))
}

/// `POST …/settings/teams/{access}`
pub(crate) async fn change_team(
    State(web): State<Web>,
    Path((organization, workspace, id)): Path<(String, String, String)>,
    VisitorForm(visitor, form): VisitorForm<TeamForm>,
) -> Result<Response, PageError> {
    web.control_plane.update_team_workspace(&visitor.caller, access_id(&id)?, form.patch()?).await?;
    Ok(Place { organization, workspace }.done(Section::Teams, Flash::says("Team access changed.")))
}

/// `POST …/settings/teams/{access}/remove`
pub(crate) async fn remove_team(
    State(web): State<Web>,
    Path((organization, workspace, id)): Path<(String, String, String)>,
    VisitorForm(visitor, Nothing {}): VisitorForm<Nothing>,
) -> Result<Response, PageError> {
    web.control_plane.remove_team_workspace(&visitor.caller, access_id(&id)?).await?;
    Ok(Place { organization, workspace }.done(Section::Teams, Flash::says("Team access removed.")))
}

/// Consequences of a deletion, and whether it is possible.
pub(crate) struct Deletion {
    pub(crate) right: Decision,
    /// Reason why it should not be deleted without force.
    pub(crate) unsafe_because: Option<String>,
    /// Reason why it cannot be deleted even with force.
    pub(crate) refusal: Option<String>,
    pub(crate) resources: u64,
    pub(crate) states: u64,
    pub(crate) runs: u64,
    pub(crate) variables: usize,
}

impl Deletion {
    pub(crate) fn of(visitor: &Visitor, view: &WorkspaceView) -> Self {
        let (workspace, contents) = (&view.workspace, view.contents());
        let right = visitor.caller.may(Action::DeleteWorkspace, view.resource());
        let forced = view.forced_deletion(&visitor.caller);
        Self {
            right,
            unsafe_because: check_safe_delete(workspace)
                .err()
                .map(|refusal| refusal.to_string())
                .or_else(|| view.bound_consumers_refusal(&visitor.caller)),
            refusal: forced.err().map(|refusal| refusal.to_string()),
            resources: contents.resources,
            states: contents.states,
            runs: contents.runs,
            variables: contents.variables,
        }
    }
}

#[derive(Clone, Default, Deserialize)]
#[serde(default)]
pub(crate) struct DeletionForm {
    /// The workspace's name, typed by hand.
    pub(crate) confirmation: String,
    care: String,
    #[serde(skip)]
    pub(crate) complaint: Complaint,
}

/// `POST …/settings/delete`
pub(crate) async fn delete(
    State(web): State<Web>,
    Path(place): Path<Place>,
    VisitorForm(visitor, form): VisitorForm<DeletionForm>,
) -> Result<Response, PageError> {
    if form.confirmation.trim() != place.workspace {
        let detail = format!("Type {} to confirm", place.workspace);
        let delete = DeletionForm { complaint: Complaint::about_field("confirmation", detail), ..form };
        return Ok(SettingsPage::of(&web, &visitor, &place, Section::Deletion)
            .await?
            .again(|page| page.delete = delete));
    }
    let care = if form.care == "force" { Care::Forced } else { Care::Safe };
    web.control_plane.delete_workspace(&visitor.caller, &place.workspace(), care).await?;
    let list = format!("{}/workspaces", organization_address(&place.organization));
    Ok(Flash::deleted("Workspace", &place.workspace).redirect_to(&list))
}
