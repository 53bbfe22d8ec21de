//! `/app/{organization}/settings/members/{member}`: the teams of a member.

use std::collections::BTreeSet;

use askama::Template;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::Response;
use serde::Deserialize;
use taco_control_plane::{Error, MembershipView, PageRequest, TeamFilter};
use taco_domain::id::TeamId;
use taco_domain::permission::{Action, Decision};

use crate::error::PageError;
use crate::flash::Flash;
use crate::form::{Complaint, VisitorForm};
use crate::navigation::Section;
use crate::page::Layout;
use crate::rail::Rail;
use crate::text::plain;
use crate::visitor::Visitor;
use crate::{Web, organization_members, page};

/// A team, as a form offers it.
pub(crate) struct TeamChoice {
    pub(crate) id: TeamId,
    pub(crate) name: String,
    pub(crate) chosen: bool,
    pub(crate) is_owners: bool,
}

/// The teams that the visitor knows of.
pub(crate) async fn team_choices(
    web: &Web,
    visitor: &Visitor,
    organization: &str,
    is_chosen: impl Fn(&TeamId) -> bool,
) -> Result<Vec<TeamChoice>, Error> {
    let all = PageRequest::new(1, PageRequest::LARGEST_SIZE);
    let teams = web.control_plane.teams(&visitor.caller, organization, &TeamFilter::default(), all).await?;
    let choice = |view: &taco_control_plane::TeamView| TeamChoice {
        id: view.team.id,
        name: view.team.name.to_string(),
        chosen: is_chosen(&view.team.id),
        is_owners: view.is_owners(),
    };
    Ok(teams.items.iter().map(choice).collect())
}

/// Teams that a form names.
pub(crate) fn chosen_teams(teams: &[String]) -> Result<BTreeSet<TeamId>, Error> {
    let id = |team: &String| team.parse().map_err(|_| Error::invalid("teams", "There is no such team"));
    teams.iter().filter(|team| !team.is_empty()).map(id).collect()
}

#[derive(Template)]
#[template(path = "member.html")]
struct MemberPage {
    layout: Layout,
    rail: Rail,
    list: String,
    address: String,
    email: String,
    right: Decision,
    teams: Vec<TeamChoice>,
    complaint: Complaint,
}

async fn find(web: &Web, visitor: &Visitor, organization: &str, id: &str) -> Result<MembershipView, PageError> {
    web.control_plane.organization_named(&visitor.caller, organization).await?;
    let id = id.parse().map_err(|_| PageError::not_found("membership"))?;
    Ok(web.control_plane.membership(&visitor.caller, id).await?)
}

async fn member_page(
    web: &Web,
    visitor: &Visitor,
    view: &MembershipView,
    complaint: Complaint,
) -> Result<MemberPage, PageError> {
    let organization = view.org.entry().name.as_str();
    let list = organization_members::address_of(organization);
    let teams = team_choices(web, visitor, organization, |team| view.membership.teams.contains(team)).await?;
    Ok(MemberPage {
        layout: Layout::for_visitor(web, visitor)
            .in_organization(organization, Section::Settings)
            .called(view.membership.id, &plain(view.membership.email.as_str())),
        rail: Rail::of_organization(&view.org, &visitor.caller, "/members"),
        address: format!("{list}/{}", view.membership.id),
        list,
        email: plain(view.membership.email.as_str()),
        right: visitor.caller.may(Action::ManageMembership, view.org.resource()),
        teams,
        complaint,
    })
}

/// `GET …/settings/members/{member}`
pub(crate) async fn show(
    State(web): State<Web>,
    visitor: Visitor,
    Path((organization, member)): Path<(String, String)>,
) -> Result<Response, PageError> {
    let view = find(&web, &visitor, &organization, &member).await?;
    let page = member_page(&web, &visitor, &view, Complaint::default()).await?;
    Ok(page::render(StatusCode::OK, &page))
}

#[derive(Default, Deserialize)]
#[serde(default)]
pub(crate) struct TeamsForm {
    team: Vec<String>,
}

/// `POST …/settings/members/{member}/teams`
pub(crate) async fn set_teams(
    State(web): State<Web>,
    Path((organization, member)): Path<(String, String)>,
    VisitorForm(visitor, form): VisitorForm<TeamsForm>,
) -> Result<Response, PageError> {
    let view = find(&web, &visitor, &organization, &member).await?;
    let changed = match chosen_teams(&form.team) {
        Ok(teams) => web.control_plane.set_member_teams(&visitor.caller, view.membership.id, teams).await,
        Err(error) => Err(error),
    };
    let complaint = match changed {
        Ok(()) => {
            return Ok(
                Flash::says("Teams of the member saved.").redirect_to(&organization_members::address_of(&organization))
            );
        }
        // The last owner stays one.
        Err(Error::Conflict(reason)) => Complaint::about_field("", reason),
        Err(error) => Complaint::of(error, &[])?,
    };
    let page = member_page(&web, &visitor, &view, complaint).await?;
    Ok(page::render(StatusCode::UNPROCESSABLE_ENTITY, &page))
}
