//! Who is in a team. A body names users by their names, or memberships by their ids.

use axum::extract::State;
use axum::http::StatusCode;
use taco_control_plane::{Caller, ControlPlane, MemberRef};
use taco_domain::id::TeamId;

use crate::body::{Body, NoAttributes};
use crate::error::ApiError;
use crate::path::InPath;
use crate::{organization_memberships, users};

fn memberships(body: Body) -> Result<Vec<MemberRef>, ApiError> {
    let sent = body.resources::<NoAttributes>(organization_memberships::KIND)?;
    sent.iter().map(|membership| Ok(MemberRef::Membership(membership.id()?))).collect()
}

fn users(body: Body) -> Result<Vec<MemberRef>, ApiError> {
    let sent = body.resources::<NoAttributes>(users::KIND)?;
    sent.iter().map(|user| Ok(MemberRef::Username(user.id()?))).collect()
}

/// `POST /api/v2/teams/{team}/relationships/organization-memberships`
pub(crate) async fn add_memberships(
    State(control_plane): State<ControlPlane>,
    caller: Caller,
    InPath(team): InPath<TeamId>,
    body: Body,
) -> Result<StatusCode, ApiError> {
    control_plane.add_team_members(&caller, team, memberships(body)?).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// `DELETE /api/v2/teams/{team}/relationships/organization-memberships`
pub(crate) async fn remove_memberships(
    State(control_plane): State<ControlPlane>,
    caller: Caller,
    InPath(team): InPath<TeamId>,
    body: Body,
) -> Result<StatusCode, ApiError> {
    control_plane.remove_team_members(&caller, team, memberships(body)?).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// `POST /api/v2/teams/{team}/relationships/users`
pub(crate) async fn add_users(
    State(control_plane): State<ControlPlane>,
    caller: Caller,
    InPath(team): InPath<TeamId>,
    body: Body,
) -> Result<StatusCode, ApiError> {
    control_plane.add_team_members(&caller, team, users(body)?).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// `DELETE /api/v2/teams/{team}/relationships/users`
pub(crate) async fn remove_users(
    State(control_plane): State<ControlPlane>,
    caller: Caller,
    InPath(team): InPath<TeamId>,
    body: Body,
) -> Result<StatusCode, ApiError> {
    control_plane.remove_team_members(&caller, team, users(body)?).await?;
    Ok(StatusCode::NO_CONTENT)
}
