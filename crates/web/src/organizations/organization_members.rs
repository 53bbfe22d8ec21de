//! `/app/{organization}/settings/members`: who belongs to an organization, and in which teams.

use askama::Template;
use axum::extract::{Path, Query, State};
use axum::http::StatusCode;
use axum::response::Response;
use serde::Deserialize;
use taco_control_plane::{Error, MadeInvitation, MembershipFilter, MembershipView, OrganizationView};
use taco_domain::id::MembershipId;
use taco_domain::membership::MembershipStatus;
use taco_domain::permission::{Action, Decision};

use crate::error::PageError;
use crate::flash::Flash;
use crate::form::{Complaint, Nothing, VisitorForm};
use crate::list_page::ListPage;
use crate::member::{TeamChoice, chosen_teams, team_choices};
use crate::navigation::Section;
use crate::page::Layout;
use crate::pagination::{self, PageQuery};
use crate::rail::Rail;
use crate::text::{Moment, plain};
use crate::visitor::Visitor;
use crate::{Web, invitations, organization_settings, page, shown_once};

#[derive(Template)]
#[template(path = "organization_members.html")]
struct MembersPage {
    layout: Layout,
    /// Of the settings.
    rail: Rail,
    settings: String,
    list: ListPage<MemberRow>,
    right: Decision,
    teams: Vec<TeamChoice>,
    link: Option<NewLink>,
    form: MemberForm,
}

/// The link of an invitation that was created just now.
struct NewLink {
    email: String,
    address: String,
    expires: Option<Moment>,
}

impl NewLink {
    /// The text that a redirect carries: see [`shown_once`]. `None` if there is no link.
    fn spelled(web: &Web, made: &MadeInvitation) -> Option<String> {
        let membership = &made.view.membership;
        let expires = membership.link.map(|link| link.expires_at.to_string()).unwrap_or_default();
        let address = invitations::address(web, made.text.as_ref()?);
        Some(format!("{}\n{expires}\n{address}", plain(&membership.email.to_string())))
    }

    fn read(text: &str) -> Option<Self> {
        let mut lines = text.lines();
        let email = lines.next()?.to_owned();
        let expires = lines.next()?.parse().ok().map(Moment);
        Some(Self { email, expires, address: lines.next()?.to_owned() })
    }
}

/// A member, or someone who was invited.
struct MemberRow {
    id: MembershipId,
    email: String,
    username: Option<String>,
    /// It waits for an answer.
    is_invitation: bool,
    teams: Vec<String>,
    removal: Decision,
}

impl MemberRow {
    fn of(visitor: &Visitor, view: &MembershipView) -> Self {
        Self {
            id: view.membership.id,
            email: plain(&view.membership.email.to_string()),
            username: view.user.as_ref().map(|user| user.username.to_string()),
            is_invitation: view.membership.status == MembershipStatus::Invited,
            teams: view.teams().map(|team| team.name.to_string()).collect(),
            removal: view.removal(&visitor.caller),
        }
    }
}

#[derive(Clone, Default, Deserialize)]
#[serde(default)]
pub(crate) struct MemberForm {
    email: String,
    team: Vec<String>,
    #[serde(skip)]
    complaint: Complaint,
}

impl MemberForm {
    async fn invite(&self, web: &Web, visitor: &Visitor, organization: &str) -> Result<MadeInvitation, Error> {
        let teams = chosen_teams(&self.team)?;
        web.control_plane.create_invitation(&visitor.caller, organization, self.email.trim(), teams).await
    }
}

pub(crate) fn address_of(organization: &str) -> String {
    format!("{}/members", organization_settings::address(organization))
}

/// The answer to a form that was fine.
fn done(organization: &str, flash: Flash) -> Response {
    flash.redirect_to(&address_of(organization))
}

/// `GET /app/{organization}/settings/members`
pub(crate) async fn list(
    State(web): State<Web>,
    visitor: Visitor,
    Path(organization): Path<String>,
    Query(wanted): Query<PageQuery>,
) -> Result<Response, PageError> {
    let page = members_page(&web, &visitor, &organization, wanted, MemberForm::default()).await?;
    Ok(page::render(StatusCode::OK, &page))
}

/// Leads to the list, which then shows an invitation's link, and is the only page that ever does.
fn redirect_with(web: &Web, visitor: &Visitor, made: &MadeInvitation) -> Response {
    let organization = made.view.org.entry().name.as_str();
    match NewLink::spelled(web, made) {
        Some(link) => shown_once::redirect_to(web, visitor, &address_of(organization), &link),
        None => done(organization, Flash::says("Invitation saved.")),
    }
}

async fn members_page(
    web: &Web,
    visitor: &Visitor,
    organization: &str,
    wanted: PageQuery,
    form: MemberForm,
) -> Result<MembersPage, PageError> {
    let (caller, control_plane) = (&visitor.caller, &web.control_plane);
    let search = wanted.search.trim();
    let filter = MembershipFilter { query: Some(search.to_owned()), ..MembershipFilter::default() };
    // At once, so that they share one look at the bucket.
    let (view, members, teams) = tokio::try_join!(
        control_plane.organization(caller, organization),
        control_plane.memberships(caller, organization, &filter, pagination::asked_for(&wanted.page)),
        team_choices(web, visitor, organization, |team| form.team.contains(&team.to_string())),
    )?;
    let OrganizationView { org, .. } = &view;
    let name = org.entry().name.as_str();
    Ok(MembersPage {
        layout: Layout::for_visitor(web, visitor).in_organization(name, Section::Settings),
        rail: Rail::of_organization(org, caller, "/members"),
        settings: organization_settings::address(name),
        list: ListPage::of(address_of(name), search, members, |view| MemberRow::of(visitor, &view)),
        right: caller.may(Action::ManageMembership, org.resource()),
        teams,
        link: visitor.shown_once.as_deref().and_then(NewLink::read),
        form,
    })
}

/// `POST /app/{organization}/settings/members`
pub(crate) async fn invite(
    State(web): State<Web>,
    Path(organization): Path<String>,
    VisitorForm(visitor, form): VisitorForm<MemberForm>,
) -> Result<Response, PageError> {
    match form.invite(&web, &visitor, &organization).await {
        Ok(made) => Ok(redirect_with(&web, &visitor, &made)),
        Err(error) => {
            let form = MemberForm { complaint: Complaint::of(error, &["email", "teams"])?, ..form };
            let page = members_page(&web, &visitor, &organization, PageQuery::default(), form).await?;
            Ok(page::render(StatusCode::UNPROCESSABLE_ENTITY, &page))
        }
    }
}

/// `POST /app/{organization}/settings/members/{member}/link`
pub(crate) async fn renew_link(
    State(web): State<Web>,
    Path((_, id)): Path<(String, String)>,
    VisitorForm(visitor, Nothing {}): VisitorForm<Nothing>,
) -> Result<Response, PageError> {
    let id = id.parse().map_err(|_| PageError::not_found("membership"))?;
    let made = web.control_plane.renew_invitation(&visitor.caller, id).await?;
    Ok(redirect_with(&web, &visitor, &made))
}

/// `POST /app/{organization}/settings/members/{member}/remove`
pub(crate) async fn remove(
    State(web): State<Web>,
    Path((organization, id)): Path<(String, String)>,
    VisitorForm(visitor, Nothing {}): VisitorForm<Nothing>,
) -> Result<Response, PageError> {
    let id = id.parse().map_err(|_| PageError::not_found("membership"))?;
    web.control_plane.delete_membership(&visitor.caller, id).await?;
    Ok(done(&organization, Flash::says("Member removed.")))
}
