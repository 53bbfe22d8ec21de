//! `/app/{organization}/workspaces/{workspace}/settings` and the pages beside it: all that can be set about a workspace.
//! Their forms are handled in `workspace_general`, `workspace_sharing` and `workspace_control`.

use askama::Template;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::Response;
use serde::Deserialize;
use taco_control_plane::{
    AgentPoolFilter, LockChoices, PageRequest, ProjectFilter, TeamFilter, TriggerDirection, WorkspaceRef,
};
use taco_domain::id::WorkspaceId;
use taco_domain::permission::{Action, Decision};

use crate::choice::Choice;
use crate::error::PageError;
use crate::flash::Flash;
use crate::navigation::{WorkspaceSection, workspace_address};
use crate::page::Layout;
use crate::rail::Rail;
use crate::visitor::Visitor;
use crate::workspace_control::{Access, Deletion, DeletionForm, LockState, TeamForm};
use crate::workspace_general::{ExecutionForm, GeneralForm};
use crate::workspace_sharing::{Other, OtherForm, Trigger};
use crate::{Web, contract_choice, page};

/// A form offers at most so many of anything.
const MAX_OFFERED: usize = PageRequest::LARGEST_SIZE;

#[derive(Deserialize)]
pub(crate) struct Place {
    pub(crate) organization: String,
    pub(crate) workspace: String,
}

impl Place {
    pub(crate) fn workspace(&self) -> WorkspaceRef {
        WorkspaceRef::Named { organization: self.organization.clone(), name: self.workspace.clone() }
    }

    /// The settings' own address.
    pub(crate) fn address(&self) -> String {
        format!("{}/settings", workspace_address(&self.organization, &self.workspace))
    }

    /// The answer to a form of a section that was fine.
    pub(crate) fn done(&self, section: Section, flash: Flash) -> Response {
        flash.redirect_to(&format!("{}{}", self.address(), section.path()))
    }
}

/// One page of the settings.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Section {
    General,
    Execution,
    Locking,
    Sharing,
    Triggers,
    Teams,
    Deletion,
}

impl Section {
    /// End of its address.
    fn path(self) -> &'static str {
        match self {
            Self::General => "",
            Self::Execution => "/execution",
            Self::Locking => "/locking",
            Self::Sharing => "/sharing",
            Self::Triggers => "/triggers",
            Self::Teams => "/teams",
            Self::Deletion => "/delete",
        }
    }
}

#[derive(Template)]
#[template(path = "workspace_settings.html")]
pub(crate) struct SettingsPage {
    layout: Layout,
    rail: Rail,
    section: Section,
    address: String,
    workspace_address: String,
    organization: String,
    name: String,
    id: WorkspaceId,
    right: Decision,
    move_right: Decision,
    pub(crate) general: GeneralForm,
    projects: Vec<Choice>,
    pub(crate) execution: ExecutionForm,
    contracts: Vec<Choice>,
    pools: Vec<Choice>,
    inherited: String,
    shares_with_all: bool,
    shares_with_project: bool,
    consumers: Vec<Other>,
    pub(crate) consumer: OtherForm,
    inbound: Vec<Trigger>,
    outbound: Vec<Trigger>,
    pub(crate) source: OtherForm,
    /// Names of other workspaces, to choose from.
    others: Vec<String>,
    keys: Vec<Choice>,
    lock: Option<LockState>,
    choices: LockChoices,
    team_right: Decision,
    teams: Vec<Access>,
    offered_teams: Vec<Choice>,
    pub(crate) team: TeamForm,
    deletion: Deletion,
    pub(crate) delete: DeletionForm,
}

impl SettingsPage {
    pub(crate) async fn of(web: &Web, visitor: &Visitor, place: &Place, section: Section) -> Result<Self, PageError> {
        let (caller, control_plane) = (&visitor.caller, &web.control_plane);
        let wanted = place.workspace();
        let view = control_plane.workspace(caller, &wanted).await?;
        let organization = place.organization.as_str();
        let all = PageRequest::new(1, MAX_OFFERED);
        let workspace = &view.workspace;
        let may = |action| caller.may(action, view.resource());
        // At once, so that they share one look at the bucket.
        let (every_project, every_pool) = (ProjectFilter::default(), AgentPoolFilter::default());
        let every_team = TeamFilter::default();
        let (projects, pools, consumers, inbound, outbound, keys, teams, accesses) = tokio::try_join!(
            control_plane.projects(caller, organization, &every_project, all),
            control_plane.agent_pools(caller, organization, &every_pool, all),
            control_plane.remote_state_consumers(caller, &wanted, all),
            control_plane.run_triggers(caller, &wanted, TriggerDirection::Inbound, all),
            control_plane.run_triggers(caller, &wanted, TriggerDirection::Outbound, all),
            control_plane.ssh_keys(caller, organization, all),
            control_plane.teams(caller, organization, &every_team, all),
            control_plane.team_workspaces(caller, workspace.id, all),
        )?;
        let general = GeneralForm::of(workspace);
        let execution = ExecutionForm::of(workspace);
        let key = workspace.ssh_key.map(|key| key.to_string()).unwrap_or_default();
        let offered_teams = teams.items.iter().filter(|team| {
            // Owners have all access anyway.
            !team.is_owners() && !accesses.items.iter().any(|has| has.team == team.team.id)
        });
        let others = view.org.visible_to(caller).workspaces().filter(|other| other.id != workspace.id);
        Ok(Self {
            layout: Layout::for_visitor(web, visitor).in_workspace(organization, workspace, WorkspaceSection::Settings),
            rail: Rail::of_workspace(organization, &place.workspace, section.path()),
            section,
            address: place.address(),
            workspace_address: workspace_address(organization, &place.workspace),
            organization: organization.to_owned(),
            name: place.workspace.clone(),
            id: workspace.id,
            right: may(Action::UpdateWorkspace),
            move_right: may(Action::MoveWorkspace),
            contracts: contract_choice::offered(
                execution.output_contract.as_deref(),
                Some(("Project default", view.inherited_contract_policy())),
            ),
            projects: projects
                .items
                .iter()
                .map(|view| Choice::new(view.project.id, &view.project.name, &general.project))
                .collect(),
            pools: pools
                .items
                .iter()
                .map(|view| Choice::new(view.pool.id, &view.pool.name, &execution.agent_pool))
                .collect(),
            inherited: view.inherited_execution().mode.to_string(),
            shares_with_all: workspace.global_remote_state,
            shares_with_project: workspace.project_remote_state,
            consumers: consumers.items.iter().map(|other| Other::of(organization, &other.workspace)).collect(),
            consumer: OtherForm::default(),
            inbound: inbound.items.iter().map(|view| Trigger::of(organization, view, &view.source)).collect(),
            outbound: outbound.items.iter().map(|view| Trigger::of(organization, view, &view.workspace)).collect(),
            source: OtherForm::default(),
            others: others.take(MAX_OFFERED).map(|other| other.name.to_string()).collect(),
            keys: keys.items.iter().map(|item| Choice::new(item.id, &item.name, &key)).collect(),
            lock: workspace.lock.as_ref().map(LockState::of),
            choices: view.lock_choices(caller),
            team_right: may(Action::ManageWorkspaceTeams),
            teams: accesses.items.iter().map(|access| Access::of(visitor, &view.org, access)).collect(),
            offered_teams: offered_teams.map(|team| Choice::new(team.team.id, &team.team.name, "")).collect(),
            team: TeamForm::default(),
            deletion: Deletion::of(visitor, &view),
            delete: DeletionForm::default(),
            general,
            execution,
        })
    }

    /// The page again, after a form with a mistake, which `put` puts in its place.
    pub(crate) fn again(mut self, put: impl FnOnce(&mut Self)) -> Response {
        put(&mut self);
        page::render(StatusCode::UNPROCESSABLE_ENTITY, &self)
    }
}

async fn page_of(web: Web, visitor: Visitor, place: Place, section: Section) -> Result<Response, PageError> {
    Ok(page::render(StatusCode::OK, &SettingsPage::of(&web, &visitor, &place, section).await?))
}

/// `GET …/settings`
pub(crate) async fn show(
    State(web): State<Web>,
    visitor: Visitor,
    Path(place): Path<Place>,
) -> Result<Response, PageError> {
    page_of(web, visitor, place, Section::General).await
}

/// `GET …/settings/execution`
pub(crate) async fn show_execution(
    State(web): State<Web>,
    visitor: Visitor,
    Path(place): Path<Place>,
) -> Result<Response, PageError> {
    page_of(web, visitor, place, Section::Execution).await
}

/// `GET …/settings/locking`
pub(crate) async fn show_locking(
    State(web): State<Web>,
    visitor: Visitor,
    Path(place): Path<Place>,
) -> Result<Response, PageError> {
    page_of(web, visitor, place, Section::Locking).await
}

/// `GET …/settings/sharing`
pub(crate) async fn show_sharing(
    State(web): State<Web>,
    visitor: Visitor,
    Path(place): Path<Place>,
) -> Result<Response, PageError> {
    page_of(web, visitor, place, Section::Sharing).await
}

/// `GET …/settings/triggers`
pub(crate) async fn show_triggers(
    State(web): State<Web>,
    visitor: Visitor,
    Path(place): Path<Place>,
) -> Result<Response, PageError> {
    page_of(web, visitor, place, Section::Triggers).await
}

/// `GET …/settings/teams`
pub(crate) async fn show_teams(
    State(web): State<Web>,
    visitor: Visitor,
    Path(place): Path<Place>,
) -> Result<Response, PageError> {
    page_of(web, visitor, place, Section::Teams).await
}

/// `GET …/settings/delete`
pub(crate) async fn show_deletion(
    State(web): State<Web>,
    visitor: Visitor,
    Path(place): Path<Place>,
) -> Result<Response, PageError> {
    page_of(web, visitor, place, Section::Deletion).await
}
