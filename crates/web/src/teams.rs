//! `/app/{organization}/settings/teams`: an organization's teams, and the form for a new one.

pub(crate) mod access_roles;
pub(crate) mod member;
pub(crate) mod organization_rights;
pub(crate) mod team;
pub(crate) mod team_access;
pub(crate) mod team_tokens;

use askama::Template;
use axum::extract::{Path, Query, State};
use axum::http::StatusCode;
use axum::response::Response;
use serde::Deserialize;
use taco_control_plane::{TeamFilter, TeamPatch, TeamView};
use taco_domain::id::TeamId;
use taco_domain::permission::{Action, Decision};
use taco_domain::team::TeamVisibility;

use crate::error::PageError;
use crate::flash::Flash;
use crate::form::{Complaint, Ticked, VisitorForm};
use crate::list_page::ListPage;
use crate::navigation::Section;
use crate::page::Layout;
use crate::pagination::{self, PageQuery};
use crate::rail::Rail;
use crate::visitor::Visitor;
use crate::{Web, organization_settings, page};

/// Address of the list.
pub(crate) fn list_address(organization: &str) -> String {
    format!("{}/teams", organization_settings::address(organization))
}

pub(crate) fn team_address(organization: &str, team: TeamId) -> String {
    format!("{}/{team}", list_address(organization))
}

#[derive(Template)]
#[template(path = "teams.html")]
struct TeamsPage {
    layout: Layout,
    rail: Rail,
    list: ListPage<TeamRow>,
    right: Decision,
}

struct TeamRow {
    address: String,
    name: String,
    is_secret: bool,
    is_owners: bool,
    members: usize,
    /// Rights in the whole organization, in words.
    rights: Vec<&'static str>,
}

impl TeamRow {
    fn of(organization: &str, view: &TeamView) -> Self {
        Self {
            address: team_address(organization, view.team.id),
            name: view.team.name.to_string(),
            is_secret: view.team.visibility == TeamVisibility::Secret,
            is_owners: view.is_owners(),
            members: view.members.len(),
            rights: organization_rights::granted(&view.team.organization_access),
        }
    }
}

/// `GET /app/{organization}/settings/teams`
pub(crate) async fn list(
    State(web): State<Web>,
    visitor: Visitor,
    Path(organization): Path<String>,
    Query(wanted): Query<PageQuery>,
) -> Result<Response, PageError> {
    let (caller, control_plane) = (&visitor.caller, &web.control_plane);
    let search = wanted.search.trim();
    let filter = TeamFilter { query: Some(search.to_owned()), ..TeamFilter::default() };
    let (org, teams) = tokio::try_join!(
        control_plane.organization_named(caller, &organization),
        control_plane.teams(caller, &organization, &filter, pagination::asked_for(&wanted.page)),
    )?;
    let name = org.entry().name.as_str();
    let page = TeamsPage {
        layout: Layout::for_visitor(&web, &visitor).in_organization(name, Section::Settings),
        rail: Rail::of_organization(&org, caller, "/teams"),
        list: ListPage::of(list_address(name), search, teams, |view| TeamRow::of(name, &view)),
        right: caller.may(Action::ManageTeams, org.resource()),
    };
    Ok(page::render(StatusCode::OK, &page))
}

/// Name and visibility of a team, and who creates its tokens.
#[derive(Clone, Default, Deserialize)]
#[serde(default)]
pub(crate) struct TeamForm {
    pub(crate) name: String,
    /// `secret` or `organization`.
    pub(crate) visibility: String,
    pub(crate) member_tokens: Ticked,
    #[serde(skip)]
    pub(crate) complaint: Complaint,
}

impl TeamForm {
    pub(crate) const FIELDS: &'static [&'static str] = &["name"];

    pub(crate) fn of(view: &TeamView) -> Self {
        let visibility = match view.team.visibility {
            TeamVisibility::Secret => "secret",
            TeamVisibility::Organization => "organization",
        };
        Self {
            name: view.team.name.to_string(),
            visibility: visibility.to_owned(),
            member_tokens: Ticked(view.team.allow_member_token_management),
            complaint: Complaint::default(),
        }
    }

    pub(crate) fn patch(&self) -> TeamPatch {
        let visibility = match self.visibility.as_str() {
            "secret" => TeamVisibility::Secret,
            _ => TeamVisibility::Organization,
        };
        TeamPatch {
            name: Some(self.name.trim().to_owned()),
            visibility: Some(visibility),
            allow_member_token_management: Some(self.member_tokens.0),
            ..TeamPatch::default()
        }
    }
}

#[derive(Template)]
#[template(path = "new_team.html")]
struct NewTeamPage {
    layout: Layout,
    rail: Rail,
    address: String,
    right: Decision,
    form: TeamForm,
}

async fn new_team_page(
    web: &Web,
    visitor: &Visitor,
    organization: &str,
    form: TeamForm,
) -> Result<NewTeamPage, PageError> {
    let org = web.control_plane.organization_named(&visitor.caller, organization).await?;
    visitor.caller.require(Action::ReadDirectory, org.resource(), "organization")?;
    let name = org.entry().name.as_str();
    Ok(NewTeamPage {
        layout: Layout::for_visitor(web, visitor).in_organization(name, Section::Settings),
        rail: Rail::of_organization(&org, &visitor.caller, "/teams"),
        address: list_address(name),
        right: visitor.caller.may(Action::ManageTeams, org.resource()),
        form,
    })
}

/// `GET /app/{organization}/settings/teams/new`
pub(crate) async fn show_new(
    State(web): State<Web>,
    visitor: Visitor,
    Path(organization): Path<String>,
) -> Result<Response, PageError> {
    let form = TeamForm { visibility: "organization".to_owned(), ..TeamForm::default() };
    Ok(page::render(StatusCode::OK, &new_team_page(&web, &visitor, &organization, form).await?))
}

/// `POST /app/{organization}/settings/teams`
pub(crate) async fn create(
    State(web): State<Web>,
    Path(organization): Path<String>,
    VisitorForm(visitor, form): VisitorForm<TeamForm>,
) -> Result<Response, PageError> {
    match web.control_plane.create_team(&visitor.caller, &organization, form.patch()).await {
        Ok(view) => {
            Ok(Flash::created("Team", view.team.name.as_str()).redirect_to(&team_address(&organization, view.team.id)))
        }
        Err(error) => {
            let form = TeamForm { complaint: Complaint::of(error, TeamForm::FIELDS)?, ..form };
            let page = new_team_page(&web, &visitor, &organization, form).await?;
            Ok(page::render(StatusCode::UNPROCESSABLE_ENTITY, &page))
        }
    }
}
