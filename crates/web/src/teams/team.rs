//! `/app/{organization}/settings/teams/{team}`: members of a team, its rights, its tokens and its settings.

use askama::Template;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::Response;
use serde::Deserialize;
use taco_control_plane::{Error, MemberRef, MembershipFilter, PageRequest, TeamPatch, TeamView};
use taco_domain::id::{MembershipId, TeamId};
use taco_domain::permission::{Action, Decision};

use crate::choice::Choice;
use crate::error::PageError;
use crate::flash::Flash;
use crate::form::{Complaint, Nothing, VisitorForm};
use crate::lifetimes::{self, Lifetime};
use crate::navigation::Section;
use crate::organization_rights::{self, RightChoice};
use crate::page::Layout;
use crate::rail::Rail;
use crate::team_access::AccessList;
use crate::team_tokens::TokenRow;
use crate::teams::{TeamForm, list_address, team_address};
use crate::text::plain;
use crate::visitor::Visitor;
use crate::{Web, organization_settings, page};

const DEFAULT_LIFETIME_DAYS: i64 = 90;

#[derive(Template)]
#[template(path = "team.html")]
pub(crate) struct TeamPage {
    layout: Layout,
    rail: Rail,
    settings: String,
    address: String,
    id: TeamId,
    name: String,
    is_owners: bool,
    /// Decision about members.
    member_right: Decision,
    members: Vec<MemberRow>,
    /// People who could be added.
    others: Vec<Choice>,
    pub(crate) member_complaint: Complaint,
    /// Decision about rights in the organization.
    access_right: Decision,
    rights: Vec<RightChoice>,
    /// Access to projects, and to workspaces.
    pub(crate) access: [AccessList; 2],
    /// `None` for visitors who may not see them.
    tokens: Option<Vec<TokenRow>>,
    token_right: Decision,
    pub(crate) token_complaint: Complaint,
    /// The text of a token that was created just now.
    issued: Option<String>,
    lifetimes: Vec<Lifetime>,
    /// Decision about name, visibility and deletion.
    right: Decision,
    pub(crate) form: TeamForm,
}

struct MemberRow {
    id: MembershipId,
    email: String,
    username: Option<String>,
    removal: Decision,
}

/// A team of this organization. Who may not know of it is told what that takes, whether or not it exists.
pub(crate) async fn find(web: &Web, visitor: &Visitor, organization: &str, id: &str) -> Result<TeamView, PageError> {
    let found = match id.parse() {
        Ok(id) => web.control_plane.team(&visitor.caller, id).await,
        Err(_) => Err(Error::NotFound("team")),
    };
    match found {
        Ok(view) if view.org.entry().name.as_str() == organization => Ok(view),
        Ok(_) | Err(Error::NotFound(_)) => {
            let org = web.control_plane.organization_named(&visitor.caller, organization).await?;
            visitor.caller.require(Action::ManageTeams, org.resource(), "team")?;
            Err(PageError::not_found("team"))
        }
        Err(error) => Err(error.into()),
    }
}

impl TeamPage {
    pub(crate) async fn of(web: &Web, visitor: &Visitor, view: &TeamView) -> Result<Self, PageError> {
        let (caller, control_plane) = (&visitor.caller, &web.control_plane);
        let (id, now) = (view.team.id, control_plane.now());
        let organization = view.org.entry().name.as_str();
        let address = team_address(organization, id);
        let is_owners = view.is_owners();
        let may = |action| caller.may(action, view.org.resource());
        let fixed = is_owners.then_some("Owners always have full access, so this team cannot be edited or deleted");
        let member_right = view.choice_of_members(caller);
        let everyone = MembershipFilter::default();
        let all = PageRequest::new(1, PageRequest::LARGEST_SIZE);
        let (access, people) = tokio::try_join!(
            control_plane.access_of_team(caller, id),
            control_plane.memberships(caller, organization, &everyone, all),
        )?;
        let tokens = match control_plane.team_tokens(caller, id).await {
            Ok(tokens) => Some(tokens.into_iter().map(|token| TokenRow::of(token, now)).collect()),
            Err(Error::Denied(_) | Error::NotFound(_)) => None,
            Err(error) => return Err(error.into()),
        };
        let others = people.items.iter().filter(|person| !person.membership.teams.contains(&id));
        let others = others.map(|person| Choice::new(person.membership.id, person.membership.email.as_str(), ""));
        let member = |member: &taco_control_plane::MembershipView| MemberRow {
            id: member.membership.id,
            email: plain(member.membership.email.as_str()),
            username: member.user.as_ref().map(|user| user.username.to_string()),
            removal: view.removal_of_member(caller, member.membership.id),
        };
        Ok(Self {
            layout: Layout::for_visitor(web, visitor)
                .in_organization(organization, Section::Settings)
                .called(id, view.team.name.as_str()),
            rail: Rail::of_organization(&view.org, caller, "/teams"),
            settings: organization_settings::address(organization),
            id,
            name: view.team.name.to_string(),
            is_owners,
            members: view.members.iter().map(member).collect(),
            others: if member_right.allowed { others.collect() } else { Vec::new() },
            member_right,
            member_complaint: Complaint::default(),
            access_right: may(Action::ManageOrganizationAccess).unless(fixed),
            rights: organization_rights::choices(&view.team.organization_access),
            access: [
                AccessList::of_projects(&address, &access),
                AccessList::of_workspaces(&address, organization, &access),
            ],
            tokens,
            token_right: view.creation_of_token(caller),
            token_complaint: Complaint::default(),
            issued: visitor.shown_once.clone(),
            lifetimes: lifetimes::offered(DEFAULT_LIFETIME_DAYS, now),
            right: may(Action::ManageTeams).unless(fixed),
            form: TeamForm::of(view),
            address,
        })
    }

    /// The page again, after a form with a mistake, which `put` puts in its place.
    pub(crate) fn again(mut self, put: impl FnOnce(&mut Self)) -> Response {
        put(&mut self);
        page::render(StatusCode::UNPROCESSABLE_ENTITY, &self)
    }
}

/// The answer to a form that was fine.
pub(crate) fn done(organization: &str, team: TeamId, flash: Flash) -> Response {
    flash.redirect_to(&team_address(organization, team))
}

/// `GET …/settings/teams/{team}`
pub(crate) async fn show(
    State(web): State<Web>,
    visitor: Visitor,
    Path((organization, team)): Path<(String, String)>,
) -> Result<Response, PageError> {
    let view = find(&web, &visitor, &organization, &team).await?;
    Ok(page::render(StatusCode::OK, &TeamPage::of(&web, &visitor, &view).await?))
}

/// `POST …/settings/teams/{team}`: name and visibility.
pub(crate) async fn update(
    State(web): State<Web>,
    Path((organization, team)): Path<(String, String)>,
    VisitorForm(visitor, form): VisitorForm<TeamForm>,
) -> Result<Response, PageError> {
    let view = find(&web, &visitor, &organization, &team).await?;
    match web.control_plane.update_team(&visitor.caller, view.team.id, form.patch()).await {
        Ok(view) => Ok(done(&organization, view.team.id, Flash::saved("Team", view.team.name.as_str()))),
        Err(error) => {
            let form = TeamForm { complaint: Complaint::of(error, TeamForm::FIELDS)?, ..form };
            Ok(TeamPage::of(&web, &visitor, &view).await?.again(|page| page.form = form))
        }
    }
}

#[derive(Default, Deserialize)]
#[serde(default)]
pub(crate) struct RightsForm {
    right: Vec<String>,
}

/// `POST …/settings/teams/{team}/rights`: what the team may do in the whole organization.
pub(crate) async fn update_rights(
    State(web): State<Web>,
    Path((organization, team)): Path<(String, String)>,
    VisitorForm(visitor, form): VisitorForm<RightsForm>,
) -> Result<Response, PageError> {
    let view = find(&web, &visitor, &organization, &team).await?;
    let organization_access = Some(organization_rights::chosen(&form.right));
    let patch = TeamPatch { organization_access, ..TeamPatch::default() };
    web.control_plane.update_team(&visitor.caller, view.team.id, patch).await?;
    Ok(done(&organization, view.team.id, Flash::says(format!("Organization access of team {} saved.", view.team.name))))
}

#[derive(Default, Deserialize)]
#[serde(default)]
pub(crate) struct MemberForm {
    member: String,
}

/// `POST …/settings/teams/{team}/members`
pub(crate) async fn add_member(
    State(web): State<Web>,
    Path((organization, team)): Path<(String, String)>,
    VisitorForm(visitor, form): VisitorForm<MemberForm>,
) -> Result<Response, PageError> {
    let view = find(&web, &visitor, &organization, &team).await?;
    let added = match form.member.parse() {
        Ok(id) => {
            let member = vec![MemberRef::Membership(id)];
            web.control_plane.add_team_members(&visitor.caller, view.team.id, member).await
        }
        Err(_) => Err(Error::invalid("member", "Choose a member")),
    };
    match added {
        Ok(()) => {
            Ok(done(&organization, view.team.id, Flash::says(format!("Member added to team {}.", view.team.name))))
        }
        Err(error) => {
            let complaint = Complaint::of(error, &["member"])?;
            Ok(TeamPage::of(&web, &visitor, &view).await?.again(|page| page.member_complaint = complaint))
        }
    }
}

/// `POST …/settings/teams/{team}/members/remove`
pub(crate) async fn remove_member(
    State(web): State<Web>,
    Path((organization, team)): Path<(String, String)>,
    VisitorForm(visitor, form): VisitorForm<MemberForm>,
) -> Result<Response, PageError> {
    let view = find(&web, &visitor, &organization, &team).await?;
    let id = form.member.parse().map_err(|_| PageError::not_found("membership"))?;
    let member = vec![MemberRef::Membership(id)];
    web.control_plane.remove_team_members(&visitor.caller, view.team.id, member).await?;
    Ok(done(&organization, view.team.id, Flash::says(format!("Member removed from team {}.", view.team.name))))
}

/// `POST …/settings/teams/{team}/delete`
pub(crate) async fn delete(
    State(web): State<Web>,
    Path((organization, team)): Path<(String, String)>,
    VisitorForm(visitor, Nothing {}): VisitorForm<Nothing>,
) -> Result<Response, PageError> {
    let view = find(&web, &visitor, &organization, &team).await?;
    web.control_plane.delete_team(&visitor.caller, view.team.id).await?;
    Ok(Flash::deleted("Team", view.team.name.as_str()).redirect_to(&list_address(&organization)))
}
