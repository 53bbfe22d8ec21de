//! Versions of providers.

use jiff::Timestamp;
use serde::Serialize;
use taco_control_plane::{NewProviderVersion, ProviderVersionView, SignedUrlPurpose};

use crate::document::{Identifier, ResourceObject};
use crate::error::ApiError;
use crate::registry_providers::{path_of, provider_in};
use crate::request::{Answer, ApiRequest, no_content};
use crate::resource::Resource;
use crate::signed_url::signed;
use crate::{provider_platforms, registry_providers};

pub(crate) const KIND: &str = "registry-provider-versions";

#[derive(Serialize)]
#[serde(rename_all = "kebab-case")]
struct Attributes<'a> {
    version: &'a str,
    key_id: &'a str,
    protocols: &'a [String],
    shasums_uploaded: bool,
    shasums_sig_uploaded: bool,
    permissions: Permissions,
    created_at: Timestamp,
    updated_at: Timestamp,
}

#[derive(Serialize)]
#[serde(rename_all = "kebab-case")]
struct Permissions {
    can_delete: bool,
    can_upload_asset: bool,
}

impl Resource for ProviderVersionView {
    const KIND: &'static str = KIND;

    fn object(&self, request: &ApiRequest) -> Result<ResourceObject, ApiError> {
        let (version, may) = (&self.version, self.provider.may_manage(&request.caller).allowed);
        let attributes = Attributes {
            version: version.version.as_str(),
            key_id: &version.key_id,
            protocols: &version.protocols,
            shasums_uploaded: version.checksums.is_some(),
            shasums_sig_uploaded: version.signature.is_some(),
            permissions: Permissions { can_delete: may, can_upload_asset: may },
            created_at: version.created_at,
            updated_at: version.updated_at,
        };
        let platforms = self.platforms().map(|platform| Identifier::new(provider_platforms::KIND, platform.id));
        let mut object = ResourceObject::new(KIND, version.id, &attributes)
            .has_one("registry-provider", Identifier::new(registry_providers::KIND, version.provider))
            .has_many("platforms", platforms)
            .link("self", format!("{}/versions/{}", path_of(&self.provider), version.version));
        let halves = [
            (
                version.checksums.is_some(),
                ("shasums-upload", SignedUrlPurpose::UploadChecksums),
                ("shasums-download", SignedUrlPurpose::DownloadChecksums),
            ),
            (
                version.signature.is_some(),
                ("shasums-sig-upload", SignedUrlPurpose::UploadSignature),
                ("shasums-sig-download", SignedUrlPurpose::DownloadSignature),
            ),
        ];
        for (is_there, (upload, to_upload), (download, to_download)) in halves {
            object = match is_there {
                true => object.link(download, signed(request, to_download, version.id)),
                false if may => object.link(upload, signed(request, to_upload, version.id)),
                false => object,
            };
        }
        Ok(object)
    }
}

/// `GET …/versions`
pub(crate) async fn list(request: ApiRequest) -> Answer {
    let (provider, page) = (provider_in(&request)?, request.query.page()?);
    request.page_from_none(request.control_plane.provider_versions(&request.caller, &provider, page).await?).await
}

/// `POST …/versions`
pub(crate) async fn create(request: ApiRequest) -> Answer {
    let provider = provider_in(&request)?;
    let new: NewProviderVersion = request.attributes(KIND).await?;
    request.created(&request.control_plane.create_provider_version(&request.caller, &provider, new).await?)
}

/// `GET …/versions/{version}`
pub(crate) async fn read(request: ApiRequest) -> Answer {
    let provider = provider_in(&request)?;
    let version = request.name("version")?;
    request.one(&request.control_plane.provider_version(&request.caller, &provider, version).await?).await
}

/// `DELETE …/versions/{version}`
pub(crate) async fn delete(request: ApiRequest) -> Answer {
    let provider = provider_in(&request)?;
    request.control_plane.delete_provider_version(&request.caller, &provider, request.name("version")?).await?;
    no_content()
}
