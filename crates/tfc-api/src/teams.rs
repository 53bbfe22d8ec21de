//! Teams and their tokens.

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use taco_control_plane::{Caller, ControlPlane, TeamFilter, TeamPatch, TeamTokenOrder, TeamView};
use taco_domain::id::TeamId;
use taco_domain::permission::{Action, covers};
use taco_domain::team::{OrganizationAccess, TeamVisibility};

use crate::authentication_tokens::{self, issued, wanted};
use crate::body::Body;
use crate::document::{Document, Identifier, Resource};
use crate::error::ApiError;
use crate::path::InPath;
use crate::query::Query;
use crate::{organization_memberships, organizations, users};

pub(crate) const KIND: &str = "teams";

#[derive(Serialize)]
#[serde(rename_all = "kebab-case")]
struct Attributes<'a> {
    name: &'a str,
    visibility: TeamVisibility,
    organization_access: OrganizationAccess,
    sso_team_id: Option<&'a str>,
    users_count: usize,
    allow_member_token_management: bool,
    is_unified: bool,
    permissions: Permissions,
}

#[derive(Serialize)]
#[serde(rename_all = "kebab-case")]
struct Permissions {
    can_update_membership: bool,
    can_destroy: bool,
    can_update_organization_access: bool,
    can_update_api_token: bool,
    can_update_visibility: bool,
}

fn resource(caller: &Caller, view: &TeamView) -> Resource {
    let TeamView { team, open, members } = view;
    let may = |action| caller.may(action, open.resource()).allowed;
    let is_owners = open.state.organization().is_some_and(|organization| organization.owners_team == team.id);
    let attributes = Attributes {
        name: team.name.as_str(),
        visibility: team.visibility,
        organization_access: team.organization_access,
        sso_team_id: team.sso_team_id.as_deref(),
        users_count: members.len(),
        allow_member_token_management: team.allow_member_token_management,
        is_unified: false,
        permissions: Permissions {
            can_update_membership: may(if is_owners { Action::ManageOwners } else { Action::ManageMembership }),
            can_destroy: may(Action::ManageTeams) && !is_owners,
            can_update_organization_access: may(Action::ManageOrganizationAccess) && !is_owners,
            can_update_api_token: may(if is_owners { Action::ManageOwners } else { Action::ManageTeams })
                && covers(&caller.actor, &open.state, team),
            can_update_visibility: may(Action::ManageTeams) && !is_owners,
        },
    };
    let users = members.iter().map(|member| Identifier::new(users::KIND, member.membership.user));
    let memberships =
        members.iter().map(|member| Identifier::new(organization_memberships::KIND, member.membership.id));
    Resource::new(KIND, team.id, &attributes)
        .has_one("organization", organizations::identifier(open.entry().name.as_str()))
        .has_many("users", users)
        .has_many("organization-memberships", memberships)
        .link("self", format!("/api/v2/teams/{}", team.id))
}

fn included(caller: &Caller, view: &TeamView, query: &Query) -> Vec<Resource> {
    let mut included = Vec::new();
    if query.includes("users") {
        included.extend(view.members.iter().filter_map(|member| member.user.as_ref()).map(users::resource));
    }
    if query.includes("organization-memberships") {
        included.extend(view.members.iter().map(|member| organization_memberships::resource(caller, member)));
    }
    included
}

/// `GET /api/v2/organizations/{organization}/teams`
pub(crate) async fn list(
    State(control_plane): State<ControlPlane>,
    caller: Caller,
    InPath(organization): InPath<String>,
    query: Query,
) -> Result<Document, ApiError> {
    let names = query.list("filter[names]").into_iter().map(str::to_owned).collect();
    let filter = TeamFilter { names, query: query.get("q").map(str::to_owned) };
    let listed = control_plane.teams(&caller, &organization, &filter, query.page()?).await?;
    let along: Vec<Resource> = listed.items.iter().flat_map(|view| included(&caller, view, &query)).collect();
    Ok(Document::page(listed.map(|view| resource(&caller, &view))).including(along))
}

/// `GET /api/v2/teams/{team}`
pub(crate) async fn read(
    State(control_plane): State<ControlPlane>,
    caller: Caller,
    InPath(team): InPath<TeamId>,
    query: Query,
) -> Result<Document, ApiError> {
    let view = control_plane.team(&caller, team).await?;
    Ok(Document::one(resource(&caller, &view)).including(included(&caller, &view, &query)))
}

/// `POST /api/v2/organizations/{organization}/teams`
pub(crate) async fn create(
    State(control_plane): State<ControlPlane>,
    caller: Caller,
    InPath(organization): InPath<String>,
    body: Body,
) -> Result<Response, ApiError> {
    let patch: TeamPatch = body.resource(KIND)?.attributes;
    let view = control_plane.create_team(&caller, &organization, patch).await?;
    Ok((StatusCode::CREATED, Document::one(resource(&caller, &view))).into_response())
}

/// `PATCH /api/v2/teams/{team}`
pub(crate) async fn update(
    State(control_plane): State<ControlPlane>,
    caller: Caller,
    InPath(team): InPath<TeamId>,
    body: Body,
) -> Result<Document, ApiError> {
    let patch: TeamPatch = body.resource(KIND)?.attributes;
    Ok(Document::one(resource(&caller, &control_plane.update_team(&caller, team, patch).await?)))
}

/// `DELETE /api/v2/teams/{team}`
pub(crate) async fn delete(
    State(control_plane): State<ControlPlane>,
    caller: Caller,
    InPath(team): InPath<TeamId>,
) -> Result<StatusCode, ApiError> {
    control_plane.delete_team(&caller, team).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// `GET /api/v2/organizations/{organization}/team-tokens`
pub(crate) async fn list_tokens(
    State(control_plane): State<ControlPlane>,
    caller: Caller,
    InPath(organization): InPath<String>,
    query: Query,
) -> Result<Document, ApiError> {
    let sort = query.get("sort").unwrap_or_default();
    let order = match sort.trim_start_matches('-') {
        "expired-at" => TeamTokenOrder::Expiry,
        "last-used-at" => TeamTokenOrder::LastUse,
        "created-by" => TeamTokenOrder::Creator,
        _ => TeamTokenOrder::TeamName,
    };
    let reversed = sort.starts_with('-');
    let (teams, page) = (query.get("q"), query.page()?);
    let listed = control_plane.team_tokens_of(&caller, &organization, teams, order, reversed, page).await?;
    Ok(Document::page(listed.map(|token| authentication_tokens::resource(&token, None))))
}

/// `GET /api/v2/teams/{team}/authentication-token`
pub(crate) async fn read_token(
    State(control_plane): State<ControlPlane>,
    caller: Caller,
    InPath(team): InPath<TeamId>,
) -> Result<Document, ApiError> {
    let token = control_plane.team_token(&caller, team).await?;
    Ok(Document::one(authentication_tokens::resource(&token, None)))
}

/// `POST /api/v2/teams/{team}/authentication-token`, and `…-tokens` for one of several
pub(crate) async fn create_token(
    State(control_plane): State<ControlPlane>,
    caller: Caller,
    InPath(team): InPath<TeamId>,
    body: Body,
) -> Result<Response, ApiError> {
    Ok(issued(&control_plane.create_team_token(&caller, team, wanted(body)?).await?))
}

/// `DELETE /api/v2/teams/{team}/authentication-token`
pub(crate) async fn delete_token(
    State(control_plane): State<ControlPlane>,
    caller: Caller,
    InPath(team): InPath<TeamId>,
) -> Result<StatusCode, ApiError> {
    let token = control_plane.team_token(&caller, team).await?;
    control_plane.revoke_token(&caller, token.id).await?;
    Ok(StatusCode::NO_CONTENT)
}
