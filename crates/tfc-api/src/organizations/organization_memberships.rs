//! Memberships of organizations, and invitations to them.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use taco_control_plane::{MadeInvitation, MembershipFilter, MembershipView};
use taco_domain::attribute::shown;
use taco_domain::membership::MembershipStatus;

use crate::document::{Document, Identifier, ResourceObject};
use crate::error::ApiError;
use crate::request::{Answer, ApiRequest, no_content};
use crate::resource::Resource;
use crate::{invitations, organizations, teams, users};

pub(crate) const KIND: &str = "organization-memberships";

#[derive(Serialize)]
#[serde(rename_all = "kebab-case")]
struct Attributes<'a> {
    status: MembershipStatus,
    email: &'a str,
    created_at: Timestamp,
    /// For the inviter, and only in the response to the request that created it.
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

fn object(view: &MembershipView, invitation_link: Option<String>) -> ResourceObject {
    let MembershipView { membership, org, .. } = view;
    let expires_at = membership.link.map(|link| link.expires_at);
    let attributes = Attributes {
        status: membership.status,
        email: membership.email.as_str(),
        created_at: membership.created_at,
        invitation_link_expires_at: expires_at.filter(|_| invitation_link.is_some()),
        invitation_link,
    };
    ResourceObject::new(KIND, membership.id, &attributes)
        .has_one("organization", organizations::identifier(org.entry().name.as_str()))
        .has_one("user", Identifier::new(users::KIND, membership.user))
        .has_many("teams", membership.teams.iter().map(|team| Identifier::new(teams::KIND, team)))
        .link("self", format!("/api/v2/organization-memberships/{}", membership.id))
}

impl Resource for MembershipView {
    const KIND: &'static str = KIND;
    const INCLUDES: &'static [&'static str] = &["user"];

    fn object(&self, _: &ApiRequest) -> Result<ResourceObject, ApiError> {
        Ok(object(self, None))
    }

    async fn include(&self, _: &str, request: &ApiRequest, document: &mut Document) -> Result<(), ApiError> {
        if let Some(user) = &self.user {
            document.include(user.object(request)?);
        }
        Ok(())
    }
}

/// An invitation, as its inviter sees it.
impl Resource for MadeInvitation {
    const KIND: &'static str = KIND;

    fn object(&self, request: &ApiRequest) -> Result<ResourceObject, ApiError> {
        let link = self.text.as_ref().map(|text| invitations::link(&request.address, text));
        Ok(object(&self.view, link))
    }
}

/// `GET /api/v2/organizations/{organization}/organization-memberships`
pub(crate) async fn list(request: ApiRequest) -> Answer {
    let query = &request.query;
    let status = match query.get("filter[status]") {
        None => None,
        Some("active") => Some(MembershipStatus::Active),
        Some("invited") => Some(MembershipStatus::Invited),
        Some(other) => {
            let detail = format!("filter[status] must be active or invited; it is {}", shown(other));
            return Err(ApiError::parameter("filter[status]", detail));
        }
    };
    let filter = MembershipFilter { emails: query.texts("filter[email]"), status, query: query.text("q") };
    let organization = request.organization()?;
    request.page(request.control_plane.memberships(&request.caller, organization, &filter, query.page()?).await?).await
}

/// `POST /api/v2/organizations/{organization}/organization-memberships`
pub(crate) async fn create(request: ApiRequest) -> Answer {
    let sent = request.resource::<Invitation>(KIND).await?;
    let teams = sent.ids("teams", teams::KIND)?.unwrap_or_default();
    let (organization, email) = (request.organization()?, sent.attributes.email.unwrap_or_default());
    request.created(&request.control_plane.create_invitation(&request.caller, organization, &email, teams).await?)
}

/// `POST /api/v2/organization-memberships/{membership}/actions/renew-invitation`
pub(crate) async fn renew(request: ApiRequest) -> Answer {
    request.changed(&request.control_plane.renew_invitation(&request.caller, request.id("membership")?).await?)
}

/// `GET /api/v2/organization-memberships/{membership}`
pub(crate) async fn read(request: ApiRequest) -> Answer {
    request.query.check_include(&["user", "teams"])?;
    request.one(&request.control_plane.membership(&request.caller, request.id("membership")?).await?).await
}

/// `DELETE /api/v2/organization-memberships/{membership}`
pub(crate) async fn delete(request: ApiRequest) -> Answer {
    request.control_plane.delete_membership(&request.caller, request.id("membership")?).await?;
    no_content()
}
