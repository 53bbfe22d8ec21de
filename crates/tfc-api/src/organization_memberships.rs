//! Who belongs to an organization.

use std::collections::BTreeSet;

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use taco_control_plane::{Caller, ControlPlane, MadeInvitation, MembershipFilter, MembershipView};
use taco_domain::attribute::shown;
use taco_domain::id::MembershipId;
use taco_domain::membership::MembershipStatus;

use crate::address::Address;
use crate::body::{Body, NoAttributes};
use crate::document::{Document, Identifier, Resource};
use crate::error::ApiError;
use crate::path::InPath;
use crate::query::Query;
use crate::{invitations, organizations, teams, users};

pub(crate) const KIND: &str = "organization-memberships";

#[derive(Serialize)]
#[serde(rename_all = "kebab-case")]
struct Attributes<'a> {
    status: MembershipStatus,
    email: &'a str,
    created_at: Timestamp,
    /// For whoever invites, and only in the answer to the request that made it.
    #[serde(skip_serializing_if = "Option::is_none")]
    invitation_link: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    invitation_link_expires_at: Option<Timestamp>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Invitation {
    email: Option<String>,
}

pub(crate) fn resource(_: &Caller, view: &MembershipView) -> Resource {
    with_link(view, None)
}

fn with_link(view: &MembershipView, invitation_link: Option<String>) -> Resource {
    let MembershipView { membership, open, .. } = view;
    let expires_at = membership.link.map(|link| link.expires_at);
    let attributes = Attributes {
        status: membership.status,
        email: membership.email.as_str(),
        created_at: membership.created_at,
        invitation_link_expires_at: expires_at.filter(|_| invitation_link.is_some()),
        invitation_link,
    };
    Resource::new(KIND, membership.id, &attributes)
        .has_one("organization", organizations::identifier(open.entry().name.as_str()))
        .has_one("user", Identifier::new(users::KIND, membership.user))
        .has_many("teams", membership.teams.iter().map(|team| Identifier::new(teams::KIND, team)))
        .link("self", format!("/api/v2/organization-memberships/{}", membership.id))
}

/// An invitation, to whoever makes it.
fn made(address: &Address, made: &MadeInvitation) -> Resource {
    with_link(&made.view, made.text.as_ref().map(|text| invitations::link(address, text)))
}

fn included(view: &MembershipView, query: &Query) -> Vec<Resource> {
    if !query.includes("user") {
        return Vec::new();
    }
    view.user.as_ref().map(users::resource).into_iter().collect()
}

/// `GET /api/v2/organizations/{organization}/organization-memberships`
pub(crate) async fn list(
    State(control_plane): State<ControlPlane>,
    caller: Caller,
    InPath(organization): InPath<String>,
    query: Query,
) -> Result<Document, ApiError> {
    let status = match query.get("filter[status]") {
        None => None,
        Some("active") => Some(MembershipStatus::Active),
        Some("invited") => Some(MembershipStatus::Invited),
        Some(other) => {
            let detail = format!("filter[status] must be active or invited; it is {}", shown(other));
            return Err(ApiError::parameter("filter[status]", detail));
        }
    };
    let emails = query.list("filter[email]").into_iter().map(str::to_owned).collect();
    let filter = MembershipFilter { emails, status, query: query.get("q").map(str::to_owned) };
    let listed = control_plane.memberships(&caller, &organization, &filter, query.page()?).await?;
    let along: Vec<Resource> = listed.items.iter().flat_map(|view| included(view, &query)).collect();
    Ok(Document::page(listed.map(|view| resource(&caller, &view))).including(along))
}

/// `POST /api/v2/organizations/{organization}/organization-memberships`
pub(crate) async fn create(
    State(control_plane): State<ControlPlane>,
    caller: Caller,
    address: Address,
    InPath(organization): InPath<String>,
    body: Body,
) -> Result<Response, ApiError> {
    let sent = body.resource::<Invitation>(KIND)?;
    let teams = sent.to_many::<NoAttributes>("teams", teams::KIND)?.unwrap_or_default();
    let teams = teams.iter().map(|team| team.id()).collect::<Result<BTreeSet<_>, _>>()?;
    let email = sent.attributes.email.unwrap_or_default();
    let invitation = control_plane.create_invitation(&caller, &organization, &email, teams).await?;
    Ok((StatusCode::CREATED, Document::one(made(&address, &invitation))).into_response())
}

/// `POST /api/v2/organization-memberships/{membership}/actions/renew-invitation`
pub(crate) async fn renew(
    State(control_plane): State<ControlPlane>,
    caller: Caller,
    address: Address,
    InPath(membership): InPath<MembershipId>,
) -> Result<Document, ApiError> {
    let invitation = control_plane.renew_invitation(&caller, membership).await?;
    Ok(Document::one(made(&address, &invitation)))
}

/// `GET /api/v2/organization-memberships/{membership}`
pub(crate) async fn read(
    State(control_plane): State<ControlPlane>,
    caller: Caller,
    InPath(membership): InPath<MembershipId>,
    query: Query,
) -> Result<Document, ApiError> {
    query.check_include(&["user", "teams"])?;
    let view = control_plane.membership(&caller, membership).await?;
    Ok(Document::one(resource(&caller, &view)).including(included(&view, &query)))
}

/// `DELETE /api/v2/organization-memberships/{membership}`
pub(crate) async fn delete(
    State(control_plane): State<ControlPlane>,
    caller: Caller,
    InPath(membership): InPath<MembershipId>,
) -> Result<StatusCode, ApiError> {
    control_plane.delete_membership(&caller, membership).await?;
    Ok(StatusCode::NO_CONTENT)
}
