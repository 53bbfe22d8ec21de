//! Downloads of providers, by the engines: what they ask for, and the files at signed addresses.

use taco_boxed::boxed;
use taco_domain::gpg_key::GpgKey;
use taco_domain::permission::Action;
use taco_domain::provider_platform::{ProviderPlatform, ProviderPlatformId};
use taco_domain::provider_version::{ProviderVersion, ProviderVersionId};
use taco_domain::registry_file::RegistryFile;
use taco_ledger::blob::Stored;
use taco_ledger::bucket::Download;
use taco_tables::Record as _;

use crate::blob_error::{blob_error, proven_if_small};
use crate::caller::Caller;
use crate::control_plane::{ControlPlane, OrganizationSnapshot};
use crate::error::Error;
use crate::gpg_keys::find_key;
use crate::provider_versions::{ProviderPlatformView, ProviderVersionView, provider_version_of};
use crate::registry_blobs::provider_file_key;
use crate::registry_providers::{ProviderRef, ProviderView};
use crate::signed_url_token::{SignedUrlPurpose, SignedUrlToken};

#[boxed]
impl ControlPlane {
    /// A provider by the address that configurations call it by, of the private registry.
    pub async fn provider_at(&self, caller: &Caller, namespace: &str, name: &str) -> Result<ProviderView, Error> {
        let org = self.organization_of_namespace(caller, namespace, "provider").await?;
        let provider = ProviderRef::private(org.entry().name.as_str(), name).find_in(&org)?.clone();
        Ok(ProviderView { provider, org })
    }

    /// A platform of it that can be installed, with the key that signed it.
    pub async fn provider_platform_at(
        &self,
        caller: &Caller,
        (namespace, name): (&str, &str),
        version: &str,
        (os, arch): (&str, &str),
    ) -> Result<(ProviderPlatformView, GpgKey), Error> {
        let provider = self.provider_at(caller, namespace, name).await?;
        let version = provider_version_of(&provider.org.state, provider.provider.id, version)?.clone();
        let key = find_key(&provider.org, &version.key_id)?.clone();
        let view = ProviderVersionView { version, provider };
        let usable = view.usable_platforms().into_iter();
        let platform = usable.clone().find(|it| it.os.as_str() == os && it.arch.as_str() == arch).cloned();
        let platform = platform.ok_or(Error::NotFound(ProviderPlatform::NOUN))?;
        Ok((ProviderPlatformView { platform, version: view }, key))
    }

    /// A file of a provider, for whoever has its address.
    pub async fn download_provider_file(
        &self,
        pass: &SignedUrlToken,
        purpose: SignedUrlPurpose,
    ) -> Result<Download, Error> {
        let what = ProviderVersion::NOUN;
        let missing = || Error::NotFound(what);
        let (org, file): (OrganizationSnapshot, Option<RegistryFile>) = match purpose {
            SignedUrlPurpose::DownloadProvider => {
                let id: ProviderPlatformId = pass.object(purpose)?;
                let org = self.organization_unchecked(id.organization_prefix(), what).await?;
                let archive = org.get::<ProviderPlatform>(&id)?.archive.clone();
                (org, archive.map(|archive| archive.file))
            }
            _ => {
                let id: ProviderVersionId = pass.object(purpose)?;
                let org = self.organization_unchecked(id.organization_prefix(), what).await?;
                let version = org.get::<ProviderVersion>(&id)?.clone();
                let file = match purpose {
                    SignedUrlPurpose::DownloadChecksums => version.checksums,
                    SignedUrlPurpose::DownloadSignature => version.signature,
                    _ => None,
                };
                (org, file)
            }
        };
        self.check_holder_in_organization(pass, &org, Action::DownloadModules, what)?;
        let file = file.ok_or_else(missing)?;
        let key = provider_file_key(org.ledger.name(), &file.blob);
        let stored = Stored { size: file.size, sha256: file.sha256, md5: String::new() };
        proven_if_small(self.blobs().read_verified(&key, &stored).await.map_err(blob_error)?).await
    }
}
