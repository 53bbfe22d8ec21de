//! Members of teams. A body names users by their names, or memberships by their ids.

use taco_control_plane::MemberRef;

use crate::error::ApiError;
use crate::request::{Answer, ApiRequest, no_content};
use crate::{organization_memberships, users};

async fn memberships(request: &ApiRequest) -> Result<Vec<MemberRef>, ApiError> {
    let ids: Vec<_> = request.ids(organization_memberships::KIND).await?;
    Ok(ids.into_iter().map(MemberRef::Membership).collect())
}

async fn users(request: &ApiRequest) -> Result<Vec<MemberRef>, ApiError> {
    let names: Vec<_> = request.ids(users::KIND).await?;
    Ok(names.into_iter().map(MemberRef::Username).collect())
}

async fn add(request: &ApiRequest, members: Vec<MemberRef>) -> Answer {
    request.control_plane.add_team_members(&request.caller, request.id("team")?, members).await?;
    no_content()
}

async fn remove(request: &ApiRequest, members: Vec<MemberRef>) -> Answer {
    request.control_plane.remove_team_members(&request.caller, request.id("team")?, members).await?;
    no_content()
}

/// `POST /api/v2/teams/{team}/relationships/organization-memberships`
pub(crate) async fn add_memberships(request: ApiRequest) -> Answer {
    add(&request, memberships(&request).await?).await
}

/// `DELETE /api/v2/teams/{team}/relationships/organization-memberships`
pub(crate) async fn remove_memberships(request: ApiRequest) -> Answer {
    remove(&request, memberships(&request).await?).await
}

/// `POST /api/v2/teams/{team}/relationships/users`
pub(crate) async fn add_users(request: ApiRequest) -> Answer {
    add(&request, users(&request).await?).await
}

/// `DELETE /api/v2/teams/{team}/relationships/users`
pub(crate) async fn remove_users(request: ApiRequest) -> Answer {
    remove(&request, users(&request).await?).await
}
