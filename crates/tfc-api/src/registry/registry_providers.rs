//! Providers of the registry.

use jiff::Timestamp;
use serde::Serialize;
use taco_control_plane::{NewProvider, ProviderFilter, ProviderRef, ProviderView};
use taco_domain::registry_address::RegistryName;

use crate::document::{Document, Identifier, ResourceObject};
use crate::error::ApiError;
use crate::request::{Answer, ApiRequest, no_content};
use crate::resource::Resource;
use crate::{organizations, provider_versions};

pub(crate) const KIND: &str = "registry-providers";

#[derive(Serialize)]
#[serde(rename_all = "kebab-case")]
struct Attributes<'a> {
    name: &'a str,
    namespace: &'a str,
    registry_name: RegistryName,
    permissions: Permissions,
    created_at: Timestamp,
    updated_at: Timestamp,
}

#[derive(Serialize)]
#[serde(rename_all = "kebab-case")]
struct Permissions {
    can_delete: bool,
}

/// Path of a provider within the API.
pub(crate) fn path_of(view: &ProviderView) -> String {
    let (organization, provider) = (&view.org.entry().name, &view.provider);
    let address = format!("{}/{}/{}", provider.registry().word(), view.namespace(), provider.name);
    format!("/api/v2/organizations/{organization}/registry-providers/{address}")
}

impl Resource for ProviderView {
    const KIND: &'static str = KIND;
    const INCLUDES: &'static [&'static str] = &["registry-provider-versions"];

    fn object(&self, request: &ApiRequest) -> Result<ResourceObject, ApiError> {
        let provider = &self.provider;
        let attributes = Attributes {
            name: provider.name.as_str(),
            namespace: self.namespace(),
            registry_name: provider.registry(),
            permissions: Permissions { can_delete: self.may_manage(&request.caller).allowed },
            created_at: provider.created_at,
            updated_at: provider.updated_at,
        };
        let versions = self.versions().into_iter().map(|version| Identifier::new(provider_versions::KIND, version.id));
        Ok(ResourceObject::new(KIND, provider.id, &attributes)
            .has_one("organization", organizations::identifier(self.org.entry().name.as_str()))
            .has_many("registry-provider-versions", versions)
            .link("self", path_of(self)))
    }

    async fn include(&self, _: &str, request: &ApiRequest, document: &mut Document) -> Result<(), ApiError> {
        document.include_all(&self.version_views(), request)
    }
}

/// The provider that a path names: by its id, or by its whole address.
pub(crate) fn provider_in(request: &ApiRequest) -> Result<ProviderRef, ApiError> {
    if let Ok(id) = request.name("provider") {
        return Ok(ProviderRef::Id(id.parse().map_err(|_| ApiError::not_found())?));
    }
    Ok(ProviderRef::Named {
        organization: request.organization()?.to_owned(),
        registry: request.name("registry")?.parse().map_err(|_| ApiError::not_found())?,
        namespace: request.name("namespace")?.to_owned(),
        name: request.name("provider_name")?.to_owned(),
    })
}

/// `GET /api/v2/organizations/{organization}/registry-providers`
pub(crate) async fn list(request: ApiRequest) -> Answer {
    let page = request.query.page()?;
    let registry = request.query.get("filter[registry_name]").map(str::parse).transpose()?;
    let organization = request.query.text("filter[organization_name]");
    let filter = ProviderFilter { search: request.query.text("q"), registry, organization };
    let organization = request.organization()?;
    let listed = request.control_plane.registry_providers(&request.caller, organization, &filter, page).await?;
    request.page_from_none(listed).await
}

/// `POST /api/v2/organizations/{organization}/registry-providers`
pub(crate) async fn create(request: ApiRequest) -> Answer {
    let new: NewProvider = request.attributes(KIND).await?;
    if new.registry_name.as_deref().unwrap_or_default().is_empty() {
        let invalid = |detail: &str| ApiError::invalid("/data/attributes/registry-name", detail);
        return Err(invalid("Registry name can't be blank").and(invalid("Registry name is not included in the list")));
    }
    let organization = request.organization()?;
    request.created(&request.control_plane.create_registry_provider(&request.caller, organization, new).await?)
}

/// `GET …/registry-providers/…`
pub(crate) async fn read(request: ApiRequest) -> Answer {
    let provider = provider_in(&request)?;
    request.one(&request.control_plane.registry_provider(&request.caller, &provider).await?).await
}

/// `DELETE …/registry-providers/…`
pub(crate) async fn delete(request: ApiRequest) -> Answer {
    let provider = provider_in(&request)?;
    request.control_plane.delete_registry_provider(&request.caller, &provider).await?;
    no_content()
}
