//! Providers of the registry: create, find, delete.

use serde::Deserialize;
use taco_boxed::boxed;
use taco_domain::OrganizationState;
use taco_domain::permission::{Action, Decision};
use taco_domain::provider_version::ProviderVersion;
use taco_domain::registry_address::{Namespace, ProviderName, RegistryName};
use taco_domain::registry_provider::{RegistryProvider, RegistryProviderId, provider_key};
use taco_tables::Record as _;

use crate::caller::Caller;
use crate::control_plane::{ControlPlane, OrganizationSnapshot};
use crate::error::Error;
use crate::page::{Listed, PageRequest};
use crate::registry_blobs::provider_file_key;
use crate::registry_modules::{is_namespace_of, namespace_of};

pub(crate) const WHAT: &str = RegistryProvider::NOUN;

/// A provider as a door shows it.
#[derive(Clone)]
pub struct ProviderView {
    pub provider: RegistryProvider,
    pub org: OrganizationSnapshot,
}

/// How a request names a provider.
#[derive(Clone, Debug)]
pub enum ProviderRef {
    Id(RegistryProviderId),
    Named { organization: String, registry: RegistryName, namespace: String, name: String },
}

/// The attributes of a request that makes a provider, spelled as on the wire.
#[derive(Clone, Default, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
pub struct NewProvider {
    pub name: Option<String>,
    pub namespace: Option<String>,
    pub registry_name: Option<String>,
}

/// Providers of a list.
#[derive(Clone, Default, Debug)]
pub struct ProviderFilter {
    pub search: Option<String>,
    pub registry: Option<RegistryName>,
    pub organization: Option<String>,
}

impl ProviderView {
    /// The first part of its address.
    pub fn namespace(&self) -> &str {
        match &self.provider.namespace {
            Some(namespace) => namespace.as_str(),
            None => self.org.entry().name.as_str(),
        }
    }

    /// All versions, newest first.
    pub fn versions(&self) -> Vec<&ProviderVersion> {
        let mut versions: Vec<_> = self.org.state.provider_versions.by().provider.under(&self.provider.id).collect();
        versions.sort_by(|one, other| other.version.cmp(&one.version));
        versions
    }

    /// May the caller publish and delete?
    pub fn may_manage(&self, caller: &Caller) -> Decision {
        caller.may(Action::ManageProviders, self.org.resource())
    }
}

#[boxed]
impl ControlPlane {
    pub async fn create_registry_provider(
        &self,
        caller: &Caller,
        organization: &str,
        new: NewProvider,
    ) -> Result<ProviderView, Error> {
        let mut org = self.organization_with_registry(caller, organization, WHAT).await?;
        let name: ProviderName = new.name.as_deref().unwrap_or_default().parse()?;
        let namespace = namespace_of(&org, new.registry_name.as_deref(), new.namespace.as_deref())?;
        let now = self.now();
        let provider = RegistryProvider {
            id: RegistryProviderId::within(org.id().organization_prefix(), self.random()),
            name,
            namespace,
            created_at: now,
            updated_at: now,
            created_by: caller.author(),
        };
        let provider = org.change(caller, "registry-provider.create", now, move |tx| {
            tx.require::<RegistryProvider>(Action::ManageProviders, tx.organization())?;
            tx.put_unique(provider.clone())
        });
        let provider = provider.await?;
        Ok(ProviderView { provider, org })
    }

    /// An organization's providers by name. A page of all of them does not walk over the others.
    pub async fn registry_providers(
        &self,
        caller: &Caller,
        organization: &str,
        filter: &ProviderFilter,
        page: PageRequest,
    ) -> Result<Listed<ProviderView>, Error> {
        let org = self.organization_with_registry(caller, organization, "organization").await?;
        let listed = filter.list(&org, page).cloned();
        Ok(listed.map(|provider| ProviderView { provider, org: org.clone() }))
    }

    pub async fn registry_provider(&self, caller: &Caller, wanted: &ProviderRef) -> Result<ProviderView, Error> {
        let org = self.organization_of_provider(caller, wanted).await?;
        let provider = wanted.find_in(&org)?.clone();
        Ok(ProviderView { provider, org })
    }

    pub(crate) async fn organization_of_provider(
        &self,
        caller: &Caller,
        wanted: &ProviderRef,
    ) -> Result<OrganizationSnapshot, Error> {
        match wanted {
            ProviderRef::Id(id) => {
                let org = self.authorized_organization(caller, id.organization_prefix(), WHAT).await?;
                caller.require(Action::DownloadModules, org.resource(), WHAT)?;
                Ok(org)
            }
            ProviderRef::Named { organization, .. } => {
                self.organization_with_registry(caller, organization, WHAT).await
            }
        }
    }

    /// Deletes a provider with all its versions.
    pub async fn delete_registry_provider(&self, caller: &Caller, wanted: &ProviderRef) -> Result<(), Error> {
        let mut org = self.organization_of_provider(caller, wanted).await?;
        let id = wanted.find_in(&org)?.id;
        let blobs = org.change(caller, "registry-provider.delete", self.now(), move |tx| {
            tx.require::<RegistryProvider>(Action::ManageProviders, tx.organization())?;
            let versions = tx.state().provider_versions.by().provider.under(&id);
            let blobs: Vec<String> = versions.flat_map(|version| blobs_of_version(tx.state(), version)).collect();
            tx.delete::<RegistryProvider>(&id)?;
            Ok(blobs)
        });
        let blobs = blobs.await?;
        self.remove_provider_blobs(&org, &blobs).await;
        Ok(())
    }

    pub(crate) async fn remove_provider_blobs(&self, org: &OrganizationSnapshot, blobs: &[String]) {
        for blob in blobs {
            self.remove_blob(&provider_file_key(org.ledger.name(), blob)).await;
        }
    }
}

/// Blobs that a version and its platforms name.
pub(crate) fn blobs_of_version(state: &OrganizationState, version: &ProviderVersion) -> Vec<String> {
    let own = version.checksums.iter().chain(&version.signature).map(|file| file.blob.clone());
    let platforms = state.provider_platforms.by().version.under(&version.id);
    own.chain(platforms.filter_map(|platform| Some(platform.archive.as_ref()?.file.blob.clone()))).collect()
}

impl ProviderRef {
    /// A provider of the private registry.
    pub fn private(organization: &str, name: &str) -> Self {
        let (organization, name) = (organization.to_owned(), name.to_owned());
        Self::Named { namespace: organization.clone(), organization, registry: RegistryName::Private, name }
    }

    pub(crate) fn find_in<'a>(&self, org: &'a OrganizationSnapshot) -> Result<&'a RegistryProvider, Error> {
        match self {
            Self::Id(id) => org.get::<RegistryProvider>(id),
            Self::Named { registry, namespace, name, .. } => {
                let namespace = match registry {
                    RegistryName::Private if is_namespace_of(org, namespace) => None,
                    RegistryName::Private => return Err(Error::NotFound(WHAT)),
                    RegistryName::Public => Some(namespace.as_str()),
                };
                let key = provider_key(name, namespace);
                org.state.registry_providers.by().address.first(&key).ok_or(Error::NotFound(WHAT))
            }
        }
    }
}

impl ProviderFilter {
    fn list<'a>(&self, org: &'a OrganizationSnapshot, page: PageRequest) -> Listed<&'a RegistryProvider> {
        let providers = &org.state.registry_providers;
        if self.organization.as_deref().is_some_and(|name| !is_namespace_of(org, name)) {
            return Listed::from_all([], page);
        }
        let registry = match (self.registry, &self.organization) {
            (None, Some(_)) => Some(RegistryName::Private),
            (registry, _) => registry,
        };
        let index = match registry {
            None => &providers.by().address,
            Some(RegistryName::Private) => &providers.by().private,
            Some(RegistryName::Public) => &providers.by().public,
        };
        let Some(search) = self.search.as_deref().map(str::trim).filter(|text| !text.is_empty()) else {
            return Listed::from_sorted(index.iter(), index.len(), page);
        };
        let words: Vec<String> = search.to_lowercase().split_whitespace().map(str::to_owned).collect();
        let fits = |provider: &&RegistryProvider| {
            let namespace = provider.namespace.as_ref().map_or(org.entry().name.as_str(), Namespace::as_str);
            let text = format!("{namespace}/{}", provider.name).to_lowercase();
            words.iter().all(|word| text.contains(word))
        };
        Listed::from_all(index.iter().filter(fits), page)
    }
}
