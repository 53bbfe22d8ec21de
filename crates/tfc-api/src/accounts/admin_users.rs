//! Users of the site, as its admins see them.

use serde::Serialize;
use taco_domain::user::User;

use crate::document::ResourceObject;
use crate::error::ApiError;
use crate::request::{Answer, ApiRequest};
use crate::resource::Resource;
use crate::users;

/// A user, with whether they may log in.
struct AdminUser(User);

#[derive(Serialize)]
#[serde(rename_all = "kebab-case")]
struct Attributes<'a> {
    username: &'a str,
    email: &'a str,
    avatar_url: String,
    is_admin: bool,
    is_suspended: bool,
    is_service_account: bool,
    /// Taco's own: a site admin or a link has shown that the address is theirs.
    has_verified_email: bool,
    created_at: jiff::Timestamp,
}

impl Resource for AdminUser {
    const KIND: &'static str = users::KIND;

    fn object(&self, _: &ApiRequest) -> Result<ResourceObject, ApiError> {
        let Self(user) = self;
        let attributes = Attributes {
            username: user.username.as_str(),
            email: user.email.as_str(),
            avatar_url: users::avatar(user),
            is_admin: user.site_admin,
            is_suspended: user.suspended,
            is_service_account: user.service_account,
            has_verified_email: user.has_verified_email(),
            created_at: user.created_at,
        };
        Ok(ResourceObject::new(Self::KIND, user.id, &attributes).link("self", format!("/api/v2/users/{}", user.id)))
    }
}

/// `GET /api/v2/admin/users`: `q` is a part of a username or an address.
pub(crate) async fn list(request: ApiRequest) -> Answer {
    let ApiRequest { control_plane, caller, query, .. } = &request;
    let listed = control_plane.users(caller, query.get("q"), query.page()?).await?;
    request.page(listed.map(AdminUser)).await
}

/// `POST /api/v2/admin/users/{user}/actions/suspend`
pub(crate) async fn suspend(request: ApiRequest) -> Answer {
    set_suspended(request, true).await
}

/// `POST /api/v2/admin/users/{user}/actions/unsuspend`
pub(crate) async fn unsuspend(request: ApiRequest) -> Answer {
    set_suspended(request, false).await
}

async fn set_suspended(request: ApiRequest, suspended: bool) -> Answer {
    let user = request.control_plane.suspend_user(&request.caller, request.id("user")?, suspended).await?;
    request.one(&AdminUser(user)).await
}
