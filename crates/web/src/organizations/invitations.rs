//! `/app/settings/invitations/{invitation}`: someone is asked to join an organization, and answers.

use askama::Template;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::Response;
use taco_control_plane::{Error, InvitationRef, InvitationView};
use taco_domain::invitation::InvitationText;

use crate::error::PageError;
use crate::flash::Flash;
use crate::form::{Nothing, VisitorForm};
use crate::navigation::organization_address;
use crate::page::Layout;
use crate::visitor::Visitor;
use crate::{Web, page};

const PATH: &str = "/app/settings/invitations";

/// The whole address of an invitation's page, for the inviter, who passes it on.
pub(crate) fn address(web: &Web, text: &InvitationText) -> String {
    format!("{}{PATH}/{}", web.address.as_str().trim_end_matches('/'), text.reveal())
}

/// An invitation that waits for the visitor's answer.
pub(crate) struct InvitationRow {
    pub(crate) organization: String,
    pub(crate) email: String,
    /// Address to which the form is submitted.
    pub(crate) address: String,
}

impl InvitationRow {
    fn of(view: &InvitationView, name: &str) -> Self {
        Self {
            organization: view.organization.clone(),
            email: view.membership.email.to_string(),
            address: format!("{PATH}/{name}"),
        }
    }

    /// All that wait for the visitor.
    pub(crate) async fn all(web: &Web, visitor: &Visitor) -> Result<Vec<Self>, Error> {
        let invitations = web.control_plane.invitations(&visitor.caller).await?;
        Ok(invitations.iter().map(|view| Self::of(view, &view.membership.id.to_string())).collect())
    }
}

#[derive(Template)]
#[template(path = "invitation.html")]
struct InvitationPage {
    layout: Layout,
    username: String,
    invitation: InvitationRow,
}

/// An address names an invitation by its id or by the text of its link.
fn named(invitation: &str) -> Result<InvitationRef, PageError> {
    if let Ok(id) = invitation.parse() {
        return Ok(InvitationRef::Membership(id));
    }
    invitation.parse().map(InvitationRef::Link).map_err(|_| gone())
}

fn gone() -> PageError {
    PageError::new(
        StatusCode::NOT_FOUND,
        "This invitation does not work",
        "It was answered or withdrawn, or its link has expired, or it was mistyped. Whoever invited you can make a new \
         link.",
    )
}

fn explained(error: Error) -> PageError {
    match error {
        Error::NotFound(_) => gone(),
        other => other.into(),
    }
}

/// `GET /app/settings/invitations/{invitation}`
pub(crate) async fn show(
    State(web): State<Web>,
    visitor: Visitor,
    Path(invitation): Path<String>,
) -> Result<Response, PageError> {
    let view = web.control_plane.invitation(&visitor.caller, &named(&invitation)?).await.map_err(explained)?;
    let page = InvitationPage {
        layout: Layout::for_visitor(&web, &visitor),
        username: visitor.user.username.to_string(),
        invitation: InvitationRow::of(&view, &invitation),
    };
    Ok(page::render(StatusCode::OK, &page))
}

/// `POST /app/settings/invitations/{invitation}/accept`
pub(crate) async fn accept(
    State(web): State<Web>,
    Path(invitation): Path<String>,
    VisitorForm(visitor, Nothing {}): VisitorForm<Nothing>,
) -> Result<Response, PageError> {
    let view = web.control_plane.accept_invitation(&visitor.caller, &named(&invitation)?).await.map_err(explained)?;
    Ok(Flash::says(format!("Welcome! You are now a member of {}.", view.organization))
        .redirect_to(&organization_address(&view.organization)))
}

/// `POST /app/settings/invitations/{invitation}/decline`
pub(crate) async fn decline(
    State(web): State<Web>,
    Path(invitation): Path<String>,
    VisitorForm(visitor, Nothing {}): VisitorForm<Nothing>,
) -> Result<Response, PageError> {
    web.control_plane.decline_invitation(&visitor.caller, &named(&invitation)?).await.map_err(explained)?;
    Ok(Flash::says("Invitation declined.").redirect_to("/app/organizations"))
}
