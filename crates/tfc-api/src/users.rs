//! Users, as resources.

use axum::extract::State;
use serde::Serialize;
use taco_control_plane::{Caller, ControlPlane};
use taco_domain::Author;
use taco_domain::id::UserId;
use taco_domain::user::User;

use crate::document::{Document, Identifier, Resource};
use crate::error::ApiError;
use crate::path::InPath;

pub(crate) const KIND: &str = "users";

#[derive(Serialize)]
#[serde(rename_all = "kebab-case")]
struct Attributes<'a> {
    username: &'a str,
    email: &'a str,
    avatar_url: String,
    is_service_account: bool,
    is_site_admin: bool,
    is_admin: bool,
    is_sso_login: bool,
    two_factor: TwoFactor,
    unconfirmed_email: Option<&'a str>,
    v2_only: bool,
    permissions: Permissions,
}

#[derive(Serialize)]
struct TwoFactor {
    enabled: bool,
    verified: bool,
}

#[derive(Serialize)]
#[serde(rename_all = "kebab-case")]
struct Permissions {
    can_create_organizations: bool,
    can_change_email: bool,
    can_change_username: bool,
}

pub(crate) fn resource(user: &User) -> Resource {
    let attributes = Attributes {
        username: user.username.as_str(),
        email: user.email.as_str(),
        avatar_url: avatar(user),
        is_service_account: user.service_account,
        is_site_admin: user.site_admin,
        is_admin: user.site_admin,
        is_sso_login: false,
        two_factor: TwoFactor { enabled: false, verified: false },
        unconfirmed_email: None,
        v2_only: true,
        permissions: Permissions { can_create_organizations: true, can_change_email: true, can_change_username: true },
    };
    let tokens = format!("/api/v2/users/{}/authentication-tokens", user.id);
    Resource::new(KIND, user.id, &attributes)
        .has_many("authentication-tokens", [])
        .related(tokens)
        .link("self", format!("/api/v2/users/{}", user.id))
}

/// A picture that asks no other server: the name's first letter.
fn avatar(user: &User) -> String {
    let letter = user.username.as_str().chars().next().unwrap_or('?').to_ascii_uppercase();
    format!(
        "data:image/svg+xml,%3Csvg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 10 10'%3E%3Ctext x='5' y='8' \
         font-size='8' text-anchor='middle'%3E{letter}%3C/text%3E%3C/svg%3E"
    )
}

/// Whoever did something, in a relationship.
pub(crate) fn author(author: &Author) -> Option<Identifier> {
    match author {
        Author::User(id) => Some(Identifier::new(KIND, id)),
        Author::Team(id) => Some(Identifier::new("teams", id)),
        Author::Organization(id) => Some(Identifier::new("organizations", id)),
        Author::Run(id) => Some(Identifier::new("runs", id)),
        Author::AgentPool(_) | Author::Taco => None,
    }
}

/// The user who did something. Where clients expect a user, they stumble over anything else.
pub(crate) fn user(author: &Author) -> Option<Identifier> {
    match author {
        Author::User(id) => Some(Identifier::new(KIND, id)),
        Author::Team(_) | Author::Organization(_) | Author::Run(_) | Author::AgentPool(_) | Author::Taco => None,
    }
}

/// `GET /api/v2/users/{user}`
pub(crate) async fn read(
    State(control_plane): State<ControlPlane>,
    caller: Caller,
    InPath(user): InPath<UserId>,
) -> Result<Document, ApiError> {
    Ok(Document::one(resource(&control_plane.user(&caller, user).await?)))
}
