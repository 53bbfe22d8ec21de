//! Platforms of providers.

use serde::Serialize;
use taco_control_plane::{NewProviderPlatform, ProviderPlatformView, SignedUrlPurpose};

use crate::document::{Identifier, ResourceObject};
use crate::error::ApiError;
use crate::provider_versions;
use crate::registry_providers::{path_of, provider_in};
use crate::request::{Answer, ApiRequest, no_content};
use crate::resource::Resource;
use crate::signed_url::signed;

pub(crate) const KIND: &str = "registry-provider-platforms";

#[derive(Serialize)]
#[serde(rename_all = "kebab-case")]
struct Attributes<'a> {
    os: &'a str,
    arch: &'a str,
    filename: &'a str,
    shasum: &'a str,
    provider_binary_uploaded: bool,
    permissions: Permissions,
}

#[derive(Serialize)]
#[serde(rename_all = "kebab-case")]
struct Permissions {
    can_delete: bool,
    can_upload_asset: bool,
}

impl Resource for ProviderPlatformView {
    const KIND: &'static str = KIND;

    fn object(&self, request: &ApiRequest) -> Result<ResourceObject, ApiError> {
        let (platform, view) = (&self.platform, &self.version);
        let may = view.provider.may_manage(&request.caller).allowed;
        let (os, arch) = (platform.os.as_str(), platform.arch.as_str());
        let attributes = Attributes {
            os,
            arch,
            filename: &platform.filename,
            shasum: &platform.shasum,
            provider_binary_uploaded: platform.archive.is_some(),
            permissions: Permissions { can_delete: may, can_upload_asset: may },
        };
        let path = format!("{}/versions/{}/platforms/{os}/{arch}", path_of(&view.provider), view.version.version);
        let object = ResourceObject::new(KIND, platform.id, &attributes)
            .has_one("registry-provider-version", Identifier::new(provider_versions::KIND, platform.version))
            .link("self", path);
        Ok(match platform.archive.is_some() {
            true => object
                .link("provider-binary-download", signed(request, SignedUrlPurpose::DownloadProvider, platform.id)),
            false if may => {
                object.link("provider-binary-upload", signed(request, SignedUrlPurpose::UploadProvider, platform.id))
            }
            false => object,
        })
    }
}

/// `GET …/platforms`
pub(crate) async fn list(request: ApiRequest) -> Answer {
    let (provider, page) = (provider_in(&request)?, request.query.page()?);
    let version = request.name("version")?;
    let listed = request.control_plane.provider_platforms(&request.caller, &provider, version, page).await?;
    request.page_from_none(listed).await
}

/// `POST …/platforms`
pub(crate) async fn create(request: ApiRequest) -> Answer {
    let provider = provider_in(&request)?;
    let new: NewProviderPlatform = request.attributes(KIND).await?;
    let version = request.name("version")?;
    request.created(&request.control_plane.create_provider_platform(&request.caller, &provider, version, new).await?)
}

/// `GET …/platforms/{os}/{arch}`
pub(crate) async fn read(request: ApiRequest) -> Answer {
    let (provider, version) = (provider_in(&request)?, request.name("version")?);
    let platform = (request.name("os")?, request.name("arch")?);
    request.one(&request.control_plane.provider_platform(&request.caller, &provider, version, platform).await?).await
}

/// `DELETE …/platforms/{os}/{arch}`
pub(crate) async fn delete(request: ApiRequest) -> Answer {
    let (provider, version) = (provider_in(&request)?, request.name("version")?);
    let platform = (request.name("os")?, request.name("arch")?);
    request.control_plane.delete_provider_platform(&request.caller, &provider, version, platform).await?;
    no_content()
}
