//! The caller's own invitations: what they are asked to join, and their answer.

use axum::extract::State;
use axum::http::StatusCode;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use taco_control_plane::{Caller, ControlPlane, InvitationRef, InvitationView, Listed};
use taco_domain::invitation::InvitationText;

use crate::address::Address;
use crate::body::{Body, Sent};
use crate::document::{Document, Identifier, Resource};
use crate::error::ApiError;
use crate::query::Query;
use crate::{organization_memberships, organizations};

const KIND: &str = "invitations";

#[derive(Serialize)]
#[serde(rename_all = "kebab-case")]
struct Attributes<'a> {
    organization_name: &'a str,
    email: &'a str,
    created_at: Timestamp,
}

/// An invitation has the id of its membership.
fn resource(view: &InvitationView) -> Resource {
    let InvitationView { membership, organization } = view;
    let attributes = Attributes {
        organization_name: organization,
        email: membership.email.as_str(),
        created_at: membership.created_at,
    };
    Resource::new(KIND, membership.id, &attributes)
        .has_one("organization", organizations::identifier(organization))
        .has_one("organization-membership", Identifier::new(organization_memberships::KIND, membership.id))
}

/// The complete address of an invitation's page.
pub(crate) fn link(address: &Address, text: &InvitationText) -> String {
    address.of(&format!("/app/settings/invitations/{}", text.reveal()))
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Answer {
    link: Option<String>,
}

fn asked(body: Body) -> Result<InvitationRef, ApiError> {
    let sent: Sent<Answer> = body.resource(KIND)?;
    match &sent.attributes.link {
        Some(link) => match link.parse() {
            Ok(text) => Ok(InvitationRef::Link(text)),
            Err(error) => Err(ApiError::invalid("/data/attributes/link", format!("{error}"))),
        },
        None if sent.id.is_some() => Ok(InvitationRef::Membership(sent.id()?)),
        None => {
            let detail = "Name the invitation by its `id`, as the list of yours has it, or by its `link`";
            Err(ApiError::invalid("/data/id", detail))
        }
    }
}

/// `GET /api/v2/account/invitations`
pub(crate) async fn list(
    State(control_plane): State<ControlPlane>,
    caller: Caller,
    query: Query,
) -> Result<Document, ApiError> {
    let invitations = control_plane.invitations(&caller).await?;
    Ok(Document::page(Listed::from_all(invitations, query.page()?).map(|view| resource(&view))))
}

/// `POST /api/v2/account/invitations/actions/accept`
pub(crate) async fn accept(
    State(control_plane): State<ControlPlane>,
    caller: Caller,
    body: Body,
) -> Result<Document, ApiError> {
    control_plane.account(&caller).await?;
    let view = control_plane.accept_invitation(&caller, &asked(body)?).await?;
    Ok(Document::one(resource(&view)))
}

/// `POST /api/v2/account/invitations/actions/decline`
pub(crate) async fn decline(
    State(control_plane): State<ControlPlane>,
    caller: Caller,
    body: Body,
) -> Result<StatusCode, ApiError> {
    control_plane.account(&caller).await?;
    control_plane.decline_invitation(&caller, &asked(body)?).await?;
    Ok(StatusCode::NO_CONTENT)
}
