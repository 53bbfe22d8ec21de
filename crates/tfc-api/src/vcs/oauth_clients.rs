//! OAuth clients: connections to forges. Their secrets go in and never come out.

use jiff::Timestamp;
use serde::Serialize;
use taco_control_plane::{Error, ListChange, Listed, OauthClientView, PageRequest};
use taco_domain::oauth_client::{OauthClientId, OauthClientPatch};

use crate::body::RequestResource;
use crate::crud::Crud;
use crate::document::{Document, Identifier, ResourceObject};
use crate::error::ApiError;
use crate::request::{Answer, ApiRequest, no_content};
use crate::resource::Resource;
use crate::{oauth_tokens, organizations, projects};

pub(crate) const KIND: &str = "oauth-clients";

/// `None` is what taco does not have: it asks forges with tokens that people make there.
type Absent = Option<&'static str>;

#[derive(Serialize)]
#[serde(rename_all = "kebab-case")]
struct Attributes<'a> {
    name: Option<&'a str>,
    created_at: Timestamp,
    service_provider: &'static str,
    service_provider_display_name: &'static str,
    api_url: &'a str,
    http_url: &'a str,
    key: Option<&'a str>,
    rsa_public_key: Option<&'a str>,
    secret: Absent,
    callback_url: Absent,
    connect_path: Absent,
    organization_scoped: bool,
}

impl Resource for OauthClientView {
    const KIND: &'static str = KIND;
    const INCLUDES: &'static [&'static str] = &["oauth_tokens", "projects"];

    fn object(&self, request: &ApiRequest) -> Result<ResourceObject, ApiError> {
        let Self { client, org } = self;
        let attributes = Attributes {
            name: client.name.as_deref(),
            created_at: client.created_at,
            service_provider: client.service_provider.word(),
            service_provider_display_name: client.service_provider.display_name(),
            api_url: &client.api_url,
            http_url: &client.http_url,
            key: client.key.as_deref(),
            rsa_public_key: client.rsa_public_key.as_deref(),
            secret: None,
            callback_url: None,
            connect_path: None,
            organization_scoped: client.organization_scoped,
        };
        let seen = self.projects_seen_by(&request.caller);
        Ok(ResourceObject::new(KIND, client.id, &attributes)
            .has_one("organization", organizations::identifier(org.entry().name.as_str()))
            .has_many("oauth-tokens", self.tokens().map(|token| Identifier::new(oauth_tokens::KIND, token.id)))
            .related(format!("/api/v2/oauth-clients/{}/oauth-tokens", client.id))
            .has_many("projects", seen.iter().map(|view| Identifier::new(projects::KIND, view.project.id)))
            .has_optional("agent-pool", client.agent_pool.map(|pool| Identifier::new("agent-pools", pool)))
            .link("self", format!("/api/v2/oauth-clients/{}", client.id)))
    }

    async fn include(&self, name: &str, request: &ApiRequest, document: &mut Document) -> Result<(), ApiError> {
        match name {
            "oauth_tokens" => document.include_all(self.tokens(), request),
            _ => document.include_all(&self.projects_seen_by(&request.caller), request),
        }
    }
}

impl Crud for OauthClientView {
    type Id = OauthClientId;
    type Patch = OauthClientPatch;

    fn patch(sent: RequestResource<OauthClientPatch>) -> Result<OauthClientPatch, ApiError> {
        let projects = sent.ids("projects", projects::KIND)?;
        let agent_pool = sent.to_one("agent-pool")?;
        Ok(OauthClientPatch { projects, agent_pool, ..sent.attributes })
    }

    async fn list(request: &ApiRequest, organization: &str, page: PageRequest) -> Result<Listed<Self>, Error> {
        request.control_plane.oauth_clients(&request.caller, organization, page).await
    }

    async fn create(request: &ApiRequest, organization: &str, patch: OauthClientPatch) -> Result<Self, Error> {
        request.control_plane.create_oauth_client(&request.caller, organization, patch).await
    }

    async fn read(request: &ApiRequest, id: OauthClientId) -> Result<Self, Error> {
        request.control_plane.oauth_client(&request.caller, id).await
    }

    async fn update(request: &ApiRequest, id: OauthClientId, patch: OauthClientPatch) -> Result<Self, Error> {
        request.control_plane.update_oauth_client(&request.caller, id, patch).await
    }

    async fn delete(request: &ApiRequest, id: OauthClientId) -> Result<(), Error> {
        request.control_plane.delete_oauth_client(&request.caller, id).await
    }
}

async fn change_projects(request: &ApiRequest, change: ListChange) -> Answer {
    let (client, projects) = (request.id("oauth_client")?, request.ids(projects::KIND).await?);
    request.control_plane.change_oauth_client_projects(&request.caller, client, projects, change).await?;
    no_content()
}

/// `POST /api/v2/oauth-clients/{oauth_client}/relationships/projects`
pub(crate) async fn add_projects(request: ApiRequest) -> Answer {
    change_projects(&request, ListChange::Add).await
}

/// `DELETE /api/v2/oauth-clients/{oauth_client}/relationships/projects`
pub(crate) async fn remove_projects(request: ApiRequest) -> Answer {
    change_projects(&request, ListChange::Remove).await
}
