//! The caller's own invitations: what they are asked to join, and their answer.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use taco_control_plane::{InvitationRef, InvitationView};
use taco_domain::invitation::InvitationText;

use crate::address::Address;
use crate::body::RequestResource;
use crate::document::{Identifier, ResourceObject};
use crate::error::ApiError;
use crate::request::{Answer, ApiRequest, no_content};
use crate::resource::Resource;
use crate::{organization_memberships, organizations};

#[derive(Serialize)]
#[serde(rename_all = "kebab-case")]
struct Attributes<'a> {
    organization_name: &'a str,
    email: &'a str,
    created_at: Timestamp,
}

/// An invitation has the id of its membership.
impl Resource for InvitationView {
    const KIND: &'static str = "invitations";

    fn object(&self, _: &ApiRequest) -> Result<ResourceObject, ApiError> {
        let Self { membership, organization } = self;
        let attributes = Attributes {
            organization_name: organization,
            email: membership.email.as_str(),
            created_at: membership.created_at,
        };
        Ok(ResourceObject::new(Self::KIND, membership.id, &attributes)
            .has_one("organization", organizations::identifier(organization))
            .has_one("organization-membership", Identifier::new(organization_memberships::KIND, membership.id)))
    }
}

/// The complete address of an invitation's page.
pub(crate) fn link(address: &Address, text: &InvitationText) -> String {
    address.of(&format!("/app/settings/invitations/{}", text.reveal()))
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Reply {
    link: Option<String>,
}

async fn asked(request: &ApiRequest) -> Result<InvitationRef, ApiError> {
    let sent: RequestResource<Reply> = request.resource(InvitationView::KIND).await?;
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
pub(crate) async fn list(request: ApiRequest) -> Answer {
    request.page_of(request.control_plane.invitations(&request.caller).await?).await
}

/// `POST /api/v2/account/invitations/actions/accept`
pub(crate) async fn accept(request: ApiRequest) -> Answer {
    request.control_plane.account(&request.caller).await?;
    let invitation = asked(&request).await?;
    request.changed(&request.control_plane.accept_invitation(&request.caller, &invitation).await?)
}

/// `POST /api/v2/account/invitations/actions/decline`
pub(crate) async fn decline(request: ApiRequest) -> Answer {
    request.control_plane.account(&request.caller).await?;
    request.control_plane.decline_invitation(&request.caller, &asked(&request).await?).await?;
    no_content()
}
