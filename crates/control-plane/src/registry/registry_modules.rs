//! Modules of the registry: create, find, change, delete.

use serde::Deserialize;
use taco_boxed::boxed;
use taco_domain::OrganizationState;
use taco_domain::module_version::{ModuleVersion, ModuleVersionStatus};
use taco_domain::name::NameKey;
use taco_domain::permission::{Action, Decision};
use taco_domain::registry_address::{ModuleName, ModuleProvider, Namespace, RegistryName};
use taco_domain::registry_module::{RegistryModule, RegistryModuleId, module_key};
use taco_domain::registry_version::{RegistryVersion, latest};
use taco_tables::Record as _;

use crate::caller::Caller;
use crate::change::Tx;
use crate::control_plane::{ControlPlane, OrganizationSnapshot};
use crate::error::Error;
use crate::page::{Listed, PageRequest};
use crate::registry_blobs::{docs_key, module_key as archive_key};

pub(crate) const WHAT: &str = RegistryModule::NOUN;

/// A module as a door shows it.
#[derive(Clone)]
pub struct ModuleView {
    pub module: RegistryModule,
    pub org: OrganizationSnapshot,
}

/// How a request names a module.
#[derive(Clone, Debug)]
pub enum ModuleRef {
    Id(RegistryModuleId),
    Named { organization: String, registry: RegistryName, namespace: String, name: String, provider: String },
}

/// The attributes of a request that makes a module, spelled as on the wire.
#[derive(Clone, Default, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
pub struct NewModule {
    pub name: Option<String>,
    pub provider: Option<String>,
    pub registry_name: Option<String>,
    pub namespace: Option<String>,
    pub no_code: Option<bool>,
}

/// The attributes of a request that changes a module.
#[derive(Clone, Default, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
pub struct ModulePatch {
    pub no_code: Option<bool>,
}

/// Modules of a list.
#[derive(Clone, Default, Debug)]
pub struct ModuleFilter {
    /// Part of the name, the provider or the namespace.
    pub search: Option<String>,
    pub provider: Option<String>,
    pub registry: Option<RegistryName>,
    pub organization: Option<String>,
}

/// Modules that a request deletes.
#[derive(Clone, Debug)]
pub struct ModuleSelection {
    pub organization: String,
    /// Registry and namespace; `None` is all of them.
    pub place: Option<(RegistryName, String)>,
    pub name: String,
    /// `None` is every provider.
    pub provider: Option<String>,
}

impl ModuleView {
    /// The first part of its address.
    pub fn namespace(&self) -> &str {
        match &self.module.namespace {
            Some(namespace) => namespace.as_str(),
            None => self.org.entry().name.as_str(),
        }
    }

    /// All versions, newest first.
    pub fn versions(&self) -> Vec<&ModuleVersion> {
        let mut versions: Vec<_> = self.org.state.module_versions.by().module.under(&self.module.id).collect();
        versions.sort_by(|one, other| other.version.cmp(&one.version));
        versions
    }

    /// The version that people mean who name none. It can be downloaded.
    pub fn latest(&self) -> Option<&ModuleVersion> {
        let usable: Vec<_> = self.versions().into_iter().filter(|version| version.usable().is_some()).collect();
        let newest = latest(usable.iter().map(|version| &version.version))?.clone();
        usable.into_iter().find(|version| version.version == newest)
    }

    /// Status of the module as a whole.
    pub fn status(&self) -> &'static str {
        let versions = &self.org.state.module_versions.by().module;
        let is_set_up = versions.under(&self.module.id).any(|version| version.status == ModuleVersionStatus::Ok);
        if is_set_up || self.module.namespace.is_some() { "setup_complete" } else { "pending" }
    }

    /// May the caller publish and delete?
    pub fn may_manage(&self, caller: &Caller) -> Decision {
        caller.may(Action::ManageModules, self.org.resource())
    }
}

#[boxed]
impl ControlPlane {
    pub async fn create_registry_module(
        &self,
        caller: &Caller,
        organization: &str,
        new: NewModule,
    ) -> Result<ModuleView, Error> {
        let mut org = self.organization_with_registry(caller, organization, WHAT).await?;
        let name: ModuleName = new.name.as_deref().unwrap_or_default().parse()?;
        let provider: ModuleProvider = new.provider.as_deref().unwrap_or_default().parse()?;
        let namespace = namespace_of(&org, new.registry_name.as_deref(), new.namespace.as_deref())?;
        let now = self.now();
        let module = RegistryModule {
            id: RegistryModuleId::within(org.id().organization_prefix(), self.random()),
            name,
            provider,
            namespace,
            no_code: new.no_code.unwrap_or_default(),
            created_at: now,
            updated_at: now,
            created_by: caller.author(),
        };
        let module = org.change(caller, "registry-module.create", now, move |tx| {
            tx.require::<RegistryModule>(Action::ManageModules, tx.organization())?;
            tx.put_unique(module.clone())
        });
        let module = module.await?;
        Ok(ModuleView { module, org })
    }

    /// An organization's modules by name. A page of all of them does not walk over the others.
    pub async fn registry_modules(
        &self,
        caller: &Caller,
        organization: &str,
        filter: &ModuleFilter,
        page: PageRequest,
    ) -> Result<Listed<ModuleView>, Error> {
        let org = self.organization_with_registry(caller, organization, "organization").await?;
        let listed = filter.list(&org, page).cloned();
        Ok(listed.map(|module| ModuleView { module, org: org.clone() }))
    }

    pub async fn registry_module(&self, caller: &Caller, wanted: &ModuleRef) -> Result<ModuleView, Error> {
        let org = self.organization_of_module(caller, wanted).await?;
        let module = wanted.find_in(&org)?.clone();
        Ok(ModuleView { module, org })
    }

    pub(crate) async fn organization_of_module(
        &self,
        caller: &Caller,
        wanted: &ModuleRef,
    ) -> Result<OrganizationSnapshot, Error> {
        match wanted {
            ModuleRef::Id(id) => {
                let org = self.authorized_organization(caller, id.organization_prefix(), WHAT).await?;
                caller.require(Action::DownloadModules, org.resource(), WHAT)?;
                Ok(org)
            }
            ModuleRef::Named { organization, .. } => self.organization_with_registry(caller, organization, WHAT).await,
        }
    }

    pub async fn update_registry_module(
        &self,
        caller: &Caller,
        wanted: &ModuleRef,
        patch: ModulePatch,
    ) -> Result<ModuleView, Error> {
        let mut org = self.organization_of_module(caller, wanted).await?;
        let (id, now) = (wanted.find_in(&org)?.id, self.now());
        let module = org.change(caller, "registry-module.update", now, move |tx| {
            tx.require::<RegistryModule>(Action::ManageModules, tx.organization())?;
            let module: RegistryModule = tx.get(&id)?;
            let no_code = patch.no_code.unwrap_or(module.no_code);
            let updated_at = if no_code == module.no_code { module.updated_at } else { now };
            let module = RegistryModule { no_code, updated_at, ..module };
            tx.put(&module);
            Ok(module)
        });
        let module = module.await?;
        Ok(ModuleView { module, org })
    }

    /// Deletes modules with all their versions: one, or those of a name for every provider.
    pub async fn delete_registry_modules(&self, caller: &Caller, wanted: &ModuleSelection) -> Result<(), Error> {
        let mut org = self.organization_with_registry(caller, &wanted.organization, WHAT).await?;
        wanted.check_namespace(&org)?;
        let wanted = wanted.clone();
        let blobs = org.change(caller, "registry-module.delete", self.now(), move |tx| {
            tx.require::<RegistryModule>(Action::ManageModules, tx.organization())?;
            let modules = wanted.modules(tx.state());
            if modules.is_empty() {
                return Err(Error::NotFound(WHAT));
            }
            let mut blobs = Vec::new();
            for module in modules {
                blobs.extend(delete_module(tx, module)?);
            }
            Ok(blobs)
        });
        let blobs = blobs.await?;
        self.remove_module_blobs(&org, &blobs).await;
        Ok(())
    }

    pub(crate) async fn remove_module_blobs(&self, org: &OrganizationSnapshot, blobs: &[String]) {
        for blob in blobs {
            self.remove_blob(&archive_key(org.ledger.name(), blob)).await;
            self.remove_blob(&docs_key(org.ledger.name(), blob)).await;
        }
    }
}

/// Deletes a module, and tells the blobs of its versions.
pub(crate) fn delete_module(tx: &mut Tx<'_>, module: RegistryModuleId) -> Result<Vec<String>, Error> {
    let versions = tx.state().module_versions.by().module.under(&module);
    let blobs = versions.filter_map(|version| Some(version.archive.as_ref()?.blob.clone())).collect();
    tx.delete::<RegistryModule>(&module)?;
    Ok(blobs)
}

/// The namespace that a record remembers: of the private registry none, because it is the organization's name.
pub(crate) fn namespace_of(
    org: &OrganizationSnapshot,
    registry: Option<&str>,
    namespace: Option<&str>,
) -> Result<Option<Namespace>, Error> {
    let registry = registry.filter(|text| !text.is_empty()).map_or(Ok(RegistryName::Private), str::parse)?;
    let namespace = namespace.unwrap_or_default();
    match registry {
        RegistryName::Public => Ok(Some(namespace.parse()?)),
        RegistryName::Private if namespace.is_empty() || is_namespace_of(org, namespace) => Ok(None),
        RegistryName::Private => {
            let own = &org.entry().name;
            Err(Error::invalid(
                "namespace",
                format!("Namespace of the private registry is the organization's name, {own}; leave it out"),
            ))
        }
    }
}

pub(crate) fn is_namespace_of(org: &OrganizationSnapshot, namespace: &str) -> bool {
    org.entry().name.key() == NameKey::of(namespace)
}

impl ModuleRef {
    /// A module of the private registry.
    pub fn private(organization: &str, name: &str, provider: &str) -> Self {
        Self::Named {
            organization: organization.to_owned(),
            registry: RegistryName::Private,
            namespace: organization.to_owned(),
            name: name.to_owned(),
            provider: provider.to_owned(),
        }
    }

    pub(crate) fn find_in<'a>(&self, org: &'a OrganizationSnapshot) -> Result<&'a RegistryModule, Error> {
        match self {
            Self::Id(id) => org.get::<RegistryModule>(id),
            Self::Named { registry, namespace, name, provider, .. } => {
                let namespace = match registry {
                    RegistryName::Private if is_namespace_of(org, namespace) => None,
                    RegistryName::Private => return Err(Error::NotFound(WHAT)),
                    RegistryName::Public => Some(namespace.as_str()),
                };
                let key = module_key(name, provider, namespace);
                org.state.registry_modules.by().address.first(&key).ok_or(Error::NotFound(WHAT))
            }
        }
    }
}

impl ModuleSelection {
    fn check_namespace(&self, org: &OrganizationSnapshot) -> Result<(), Error> {
        match &self.place {
            Some((RegistryName::Private, namespace)) if !is_namespace_of(org, namespace) => Err(Error::NotFound(WHAT)),
            _ => Ok(()),
        }
    }

    fn modules(&self, state: &OrganizationState) -> Vec<RegistryModuleId> {
        let place = self.place.as_ref();
        let place = place.map(|(registry, namespace)| match registry {
            RegistryName::Private => None,
            RegistryName::Public => Some(NameKey::of(namespace)),
        });
        let named = state.registry_modules.by().address.under(&NameKey::of(&self.name));
        let fits = |module: &&RegistryModule| {
            let provider = self.provider.as_deref().map(NameKey::of);
            place.as_ref().is_none_or(|namespace| module.namespace.as_ref().map(Namespace::key) == *namespace)
                && provider.is_none_or(|provider| module.provider.key() == provider)
        };
        named.filter(fits).map(|module| module.id).collect()
    }
}

impl ModuleFilter {
    fn list<'a>(&self, org: &'a OrganizationSnapshot, page: PageRequest) -> Listed<&'a RegistryModule> {
        let modules = &org.state.registry_modules;
        if self.organization.as_deref().is_some_and(|name| !is_namespace_of(org, name)) {
            return Listed::from_all([], page);
        }
        let registry = match (self.registry, &self.organization) {
            // The organization's own are the private ones.
            (None, Some(_)) => Some(RegistryName::Private),
            (registry, _) => registry,
        };
        let index = match registry {
            None => &modules.by().address,
            Some(RegistryName::Private) => &modules.by().private,
            Some(RegistryName::Public) => &modules.by().public,
        };
        let search = self.search.as_deref().map(str::trim).filter(|text| !text.is_empty());
        match (search, &self.provider) {
            (None, None) => Listed::from_sorted(index.iter(), index.len(), page),
            (search, provider) => {
                let words: Vec<String> =
                    search.unwrap_or_default().to_lowercase().split_whitespace().map(str::to_owned).collect();
                let fits = |module: &&RegistryModule| {
                    let text = format!(
                        "{}/{}/{}",
                        module.namespace.as_ref().map_or(org.entry().name.as_str(), Namespace::as_str),
                        module.name,
                        module.provider
                    );
                    let text = text.to_lowercase();
                    words.iter().all(|word| text.contains(word))
                };
                let of_provider = provider.as_deref().map(NameKey::of);
                match of_provider {
                    Some(key) => {
                        let of_registry =
                            |module: &&RegistryModule| registry.is_none_or(|registry| module.registry() == registry);
                        Listed::from_all(modules.by().provider.under(&key).filter(of_registry).filter(fits), page)
                    }
                    None => Listed::from_all(index.iter().filter(fits), page),
                }
            }
        }
    }
}

/// The version of this text, of a module.
pub(crate) fn version_of<'a>(
    state: &'a OrganizationState,
    module: RegistryModuleId,
    version: &str,
) -> Result<&'a ModuleVersion, Error> {
    let unknown = || Error::NotFound(ModuleVersion::NOUN);
    let version: RegistryVersion = version.parse().map_err(|_| unknown())?;
    state.module_versions.by().module.first(&(module, version)).ok_or_else(unknown)
}
