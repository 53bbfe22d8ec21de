//! Versions of providers and their platforms: announce, read, delete.

use serde::Deserialize;
use taco_boxed::boxed;
use taco_domain::OrganizationState;
use taco_domain::permission::Action;
use taco_domain::provider_platform::{
    PlatformPart, ProviderPlatform, ProviderPlatformId, checked_filename, checked_shasum,
};
use taco_domain::provider_version::{ProviderVersion, ProviderVersionId, checked_protocols};
use taco_domain::registry_provider::{RegistryProvider, RegistryProviderId};
use taco_domain::registry_version::RegistryVersion;
use taco_tables::Record as _;

use crate::caller::Caller;
use crate::control_plane::ControlPlane;
use crate::error::Error;
use crate::page::{Listed, PageRequest};
use crate::registry_providers::{ProviderRef, ProviderView, blobs_of_version};

const LONGEST_KEY_ID: usize = 100;

/// One version of a provider as a door shows it.
#[derive(Clone)]
pub struct ProviderVersionView {
    pub version: ProviderVersion,
    pub provider: ProviderView,
}

/// One platform of a version as a door shows it.
#[derive(Clone)]
pub struct ProviderPlatformView {
    pub platform: ProviderPlatform,
    pub version: ProviderVersionView,
}

/// The attributes of a request that announces a version, spelled as on the wire.
#[derive(Clone, Default, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
pub struct NewProviderVersion {
    pub version: Option<String>,
    pub key_id: Option<String>,
    pub protocols: Option<Vec<String>>,
}

/// The attributes of a request that announces a platform.
#[derive(Clone, Default, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
pub struct NewProviderPlatform {
    pub os: Option<String>,
    pub arch: Option<String>,
    pub shasum: Option<String>,
    pub filename: Option<String>,
}

impl ProviderVersionView {
    /// Platforms by operating system and architecture.
    pub fn platforms(&self) -> impl Iterator<Item = &ProviderPlatform> {
        self.provider.org.state.provider_platforms.by().version.under(&self.version.id)
    }

    /// The platforms that can be installed.
    pub fn usable_platforms(&self) -> Vec<&ProviderPlatform> {
        if !self.version.is_signed() {
            return Vec::new();
        }
        self.platforms().filter(|platform| platform.archive.is_some()).collect()
    }
}

impl ProviderView {
    /// Views of its versions, newest first.
    pub fn version_views(&self) -> Vec<ProviderVersionView> {
        let versions = self.versions().into_iter();
        versions.map(|version| ProviderVersionView { version: version.clone(), provider: self.clone() }).collect()
    }
}

#[boxed]
impl ControlPlane {
    /// Announces a version, whose checksums and their signature will follow.
    pub async fn create_provider_version(
        &self,
        caller: &Caller,
        wanted: &ProviderRef,
        new: NewProviderVersion,
    ) -> Result<ProviderVersionView, Error> {
        let mut org = self.organization_of_provider(caller, wanted).await?;
        let provider = wanted.find_in(&org)?.clone();
        let version: RegistryVersion = new.version.as_deref().unwrap_or_default().parse()?;
        let key_id = new.key_id.unwrap_or_default();
        if key_id.is_empty() {
            return Err(Error::invalid(
                "key-id",
                "Key can't be blank: it is the id of the GPG key that signs the version",
            ));
        }
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
        if key_id.len() > LONGEST_KEY_ID || !key_id.bytes().all(is_plain) {
            return Err(Error::invalid(
                "key-id",
                "Key must be the id of a GPG key, as GPG keys of the registry show it",
            ));
        }
        let now = self.now();
        let version = ProviderVersion {
            id: ProviderVersionId::within(org.id().organization_prefix(), self.random()),
            provider: provider.id,
            version,
            key_id,
            protocols: checked_protocols(new.protocols)?,
            checksums: None,
            signature: None,
            created_at: now,
            updated_at: now,
            created_by: caller.author(),
        };
        let version = org.change(caller, "provider-version.create", now, move |tx| {
            tx.require::<RegistryProvider>(Action::ManageProviders, tx.organization())?;
            let provider: RegistryProvider = tx.get(&version.provider)?;
            if provider.namespace.is_some() {
                let what = "Versions of a provider of the public registry come from there: only private providers are published here";
                return Err(Error::invalid("version", what));
            }
            tx.put_unique(version.clone())
        });
        let version = version.await?;
        Ok(ProviderVersionView { version, provider: ProviderView { provider, org } })
    }

    /// A provider's versions, newest first.
    pub async fn provider_versions(
        &self,
        caller: &Caller,
        wanted: &ProviderRef,
        page: PageRequest,
    ) -> Result<Listed<ProviderVersionView>, Error> {
        let provider = self.registry_provider(caller, wanted).await?;
        Ok(Listed::from_all(provider.version_views(), page))
    }

    pub async fn provider_version(
        &self,
        caller: &Caller,
        wanted: &ProviderRef,
        version: &str,
    ) -> Result<ProviderVersionView, Error> {
        let provider = self.registry_provider(caller, wanted).await?;
        let version = provider_version_of(&provider.org.state, provider.provider.id, version)?.clone();
        Ok(ProviderVersionView { version, provider })
    }

    pub async fn delete_provider_version(
        &self,
        caller: &Caller,
        wanted: &ProviderRef,
        version: &str,
    ) -> Result<(), Error> {
        let mut org = self.organization_of_provider(caller, wanted).await?;
        let (provider, version) = (wanted.find_in(&org)?.id, version.to_owned());
        let blobs = org.change(caller, "provider-version.delete", self.now(), move |tx| {
            tx.require::<RegistryProvider>(Action::ManageProviders, tx.organization())?;
            let version = provider_version_of(tx.state(), provider, &version)?.clone();
            let blobs = blobs_of_version(tx.state(), &version);
            tx.delete::<ProviderVersion>(&version.id)?;
            Ok(blobs)
        });
        let blobs = blobs.await?;
        self.remove_provider_blobs(&org, &blobs).await;
        Ok(())
    }

    /// Announces a platform whose archive will follow.
    pub async fn create_provider_platform(
        &self,
        caller: &Caller,
        wanted: &ProviderRef,
        version: &str,
        new: NewProviderPlatform,
    ) -> Result<ProviderPlatformView, Error> {
        let view = self.provider_version(caller, wanted, version).await?;
        let (mut org, now) = (view.provider.org.clone(), self.now());
        let platform = ProviderPlatform {
            id: ProviderPlatformId::within(org.id().organization_prefix(), self.random()),
            version: view.version.id,
            os: PlatformPart::parse("os", new.os.as_deref().unwrap_or_default())?,
            arch: PlatformPart::parse("arch", new.arch.as_deref().unwrap_or_default())?,
            filename: checked_filename(new.filename.as_deref().unwrap_or_default())?,
            shasum: checked_shasum(new.shasum.as_deref().unwrap_or_default())?,
            archive: None,
            created_at: now,
        };
        let platform = org.change(caller, "provider-platform.create", now, move |tx| {
            tx.require::<RegistryProvider>(Action::ManageProviders, tx.organization())?;
            tx.get::<ProviderVersion>(&platform.version)?;
            tx.put_unique(platform.clone())
        });
        let platform = platform.await?;
        let provider = ProviderView { org, ..view.provider };
        Ok(ProviderPlatformView { platform, version: ProviderVersionView { provider, ..view } })
    }

    pub async fn provider_platforms(
        &self,
        caller: &Caller,
        wanted: &ProviderRef,
        version: &str,
        page: PageRequest,
    ) -> Result<Listed<ProviderPlatformView>, Error> {
        let view = self.provider_version(caller, wanted, version).await?;
        let listed = Listed::from_all(view.platforms(), page).cloned();
        Ok(listed.map(|platform| ProviderPlatformView { platform, version: view.clone() }))
    }

    pub async fn provider_platform(
        &self,
        caller: &Caller,
        wanted: &ProviderRef,
        version: &str,
        (os, arch): (&str, &str),
    ) -> Result<ProviderPlatformView, Error> {
        let view = self.provider_version(caller, wanted, version).await?;
        let platform = platform_of(&view.provider.org.state, view.version.id, os, arch)?.clone();
        Ok(ProviderPlatformView { platform, version: view })
    }

    pub async fn delete_provider_platform(
        &self,
        caller: &Caller,
        wanted: &ProviderRef,
        version: &str,
        (os, arch): (&str, &str),
    ) -> Result<(), Error> {
        let mut org = self.organization_of_provider(caller, wanted).await?;
        let provider = wanted.find_in(&org)?.id;
        let (version, os, arch) = (version.to_owned(), os.to_owned(), arch.to_owned());
        let blob = org.change(caller, "provider-platform.delete", self.now(), move |tx| {
            tx.require::<RegistryProvider>(Action::ManageProviders, tx.organization())?;
            let version = provider_version_of(tx.state(), provider, &version)?.id;
            let platform = platform_of(tx.state(), version, &os, &arch)?.clone();
            tx.delete::<ProviderPlatform>(&platform.id)?;
            Ok(platform.archive.map(|archive| archive.file.blob))
        });
        let blob = blob.await?;
        self.remove_provider_blobs(&org, blob.as_slice()).await;
        Ok(())
    }
}

/// The version of this text, of a provider.
pub(crate) fn provider_version_of<'a>(
    state: &'a OrganizationState,
    provider: RegistryProviderId,
    version: &str,
) -> Result<&'a ProviderVersion, Error> {
    let unknown = || Error::NotFound(ProviderVersion::NOUN);
    let version: RegistryVersion = version.parse().map_err(|_| unknown())?;
    state.provider_versions.by().provider.first(&(provider, version)).ok_or_else(unknown)
}

fn platform_of<'a>(
    state: &'a OrganizationState,
    version: ProviderVersionId,
    os: &str,
    arch: &str,
) -> Result<&'a ProviderPlatform, Error> {
    let key = (version, os.to_owned(), arch.to_owned());
    state.provider_platforms.by().version.first(&key).ok_or(Error::NotFound(ProviderPlatform::NOUN))
}
