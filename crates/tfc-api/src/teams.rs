//! Teams and their tokens.

pub(crate) mod team_members;
pub(crate) mod team_projects;
pub(crate) mod team_workspaces;

use serde::Serialize;
use taco_control_plane::{Error, Listed, PageRequest, TeamFilter, TeamPatch, TeamTokenOrder, TeamView};
use taco_domain::id::TeamId;
use taco_domain::team::{OrganizationAccess, TeamVisibility};

use crate::authentication_tokens::new_token;
use crate::crud::Crud;
use crate::document::{Document, Identifier, ResourceObject};
use crate::error::ApiError;
use crate::request::{Answer, ApiRequest, no_content};
use crate::resource::Resource;
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

impl Resource for TeamView {
    const KIND: &'static str = KIND;
    const INCLUDES: &'static [&'static str] = &["users", "organization-memberships"];

    fn object(&self, request: &ApiRequest) -> Result<ResourceObject, ApiError> {
        let Self { team, org, members } = self;
        let rights = self.rights(&request.caller);
        let attributes = Attributes {
            name: team.name.as_str(),
            visibility: team.visibility,
            organization_access: team.organization_access,
            sso_team_id: team.sso_team_id.as_deref(),
            users_count: members.len(),
            allow_member_token_management: team.allow_member_token_management,
            is_unified: false,
            permissions: Permissions {
                can_update_membership: rights.change_members,
                can_destroy: rights.delete,
                can_update_organization_access: rights.change_organization_access,
                can_update_api_token: rights.manage_token,
                can_update_visibility: rights.change_visibility,
            },
        };
        let users = members.iter().map(|member| Identifier::new(users::KIND, member.membership.user));
        let memberships =
            members.iter().map(|member| Identifier::new(organization_memberships::KIND, member.membership.id));
        Ok(ResourceObject::new(KIND, team.id, &attributes)
            .has_one("organization", organizations::identifier(org.entry().name.as_str()))
            .has_many("users", users)
            .has_many("organization-memberships", memberships)
            .link("self", format!("/api/v2/teams/{}", team.id)))
    }

    async fn include(&self, name: &str, request: &ApiRequest, document: &mut Document) -> Result<(), ApiError> {
        for member in &self.members {
            match name {
                "users" => document.include_some(member.user.as_ref(), request)?,
                _ => document.include(member.object(request)?),
            }
        }
        Ok(())
    }
}

impl Crud for TeamView {
    type Id = TeamId;
    type Patch = TeamPatch;

    async fn list(request: &ApiRequest, organization: &str, page: PageRequest) -> Result<Listed<Self>, Error> {
        let query = &request.query;
        let filter = TeamFilter { names: query.texts("filter[names]"), query: query.text("q") };
        request.control_plane.teams(&request.caller, organization, &filter, page).await
    }

    async fn create(request: &ApiRequest, organization: &str, patch: TeamPatch) -> Result<Self, Error> {
        request.control_plane.create_team(&request.caller, organization, patch).await
    }

    async fn read(request: &ApiRequest, id: TeamId) -> Result<Self, Error> {
        request.control_plane.team(&request.caller, id).await
    }

    async fn update(request: &ApiRequest, id: TeamId, patch: TeamPatch) -> Result<Self, Error> {
        request.control_plane.update_team(&request.caller, id, patch).await
    }

    async fn delete(request: &ApiRequest, id: TeamId) -> Result<(), Error> {
        request.control_plane.delete_team(&request.caller, id).await
    }
}

/// `GET /api/v2/organizations/{organization}/team-tokens`
pub(crate) async fn list_tokens(request: ApiRequest) -> Answer {
    let ApiRequest { control_plane, caller, query, .. } = &request;
    let sort = query.get("sort").unwrap_or_default();
    let order = match sort.trim_start_matches('-') {
        "expired-at" => TeamTokenOrder::Expiry,
        "last-used-at" => TeamTokenOrder::LastUse,
        "created-by" => TeamTokenOrder::Creator,
        _ => TeamTokenOrder::TeamName,
    };
    let reversed = sort.starts_with('-');
    let (organization, teams, page) = (request.organization()?, query.get("q"), query.page()?);
    request.page(control_plane.team_tokens_of(caller, organization, teams, order, reversed, page).await?).await
}

/// `GET /api/v2/teams/{team}/authentication-token`
pub(crate) async fn read_token(request: ApiRequest) -> Answer {
    request.one(&request.control_plane.team_token(&request.caller, request.id("team")?).await?).await
}

/// `POST /api/v2/teams/{team}/authentication-token`, and `…-tokens` for one of several
pub(crate) async fn create_token(request: ApiRequest) -> Answer {
    let (team, new) = (request.id("team")?, new_token(request.body().await?)?);
    request.created(&request.control_plane.create_team_token(&request.caller, team, new).await?)
}

/// `DELETE /api/v2/teams/{team}/authentication-token`
pub(crate) async fn delete_token(request: ApiRequest) -> Answer {
    let token = request.control_plane.team_token(&request.caller, request.id("team")?).await?;
    request.control_plane.revoke_token(&request.caller, token.id).await?;
    no_content()
}
