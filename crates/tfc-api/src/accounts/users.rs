//! Users, as resources.

use serde::Serialize;
use taco_domain::Author;
use taco_domain::user::User;

use crate::document::{Document, Identifier, ResourceObject};
use crate::error::ApiError;
use crate::request::{Answer, ApiRequest};
use crate::resource::Resource;

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

impl Resource for User {
    const KIND: &'static str = KIND;

    fn object(&self, _: &ApiRequest) -> Result<ResourceObject, ApiError> {
        let attributes = Attributes {
            username: self.username.as_str(),
            email: self.email.as_str(),
            avatar_url: avatar(self),
            is_service_account: self.service_account,
            is_site_admin: self.site_admin,
            is_admin: self.site_admin,
            is_sso_login: false,
            two_factor: TwoFactor { enabled: false, verified: false },
            unconfirmed_email: None,
            v2_only: true,
            permissions: Permissions {
                can_create_organizations: true,
                can_change_email: true,
                can_change_username: true,
            },
        };
        let tokens = format!("/api/v2/users/{}/authentication-tokens", self.id);
        Ok(ResourceObject::new(KIND, self.id, &attributes)
            .has_many("authentication-tokens", [])
            .related(tokens)
            .link("self", format!("/api/v2/users/{}", self.id)))
    }
}

/// A picture that asks no other server: the name's first letter.
pub(crate) fn avatar(user: &User) -> String {
    let letter = user.username.as_str().chars().next().unwrap_or('?').to_ascii_uppercase();
    format!(
        "data:image/svg+xml,%3Csvg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 10 10'%3E%3Ctext x='5' y='8' \
         font-size='8' text-anchor='middle'%3E{letter}%3C/text%3E%3C/svg%3E"
    )
}

/// Identifier of an author.
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

/// Sends along the user who did something, if it was one whom the caller may know.
pub(crate) async fn include(author: &Author, request: &ApiRequest, document: &mut Document) -> Result<(), ApiError> {
    if let Author::User(id) = author
        && let Ok(user) = request.control_plane.user(&request.caller, *id).await
    {
        document.include(user.object(request)?);
    }
    Ok(())
}

/// `GET /api/v2/users/{user}`
pub(crate) async fn read(request: ApiRequest) -> Answer {
    request.one(&request.control_plane.user(&request.caller, request.id("user")?).await?).await
}
