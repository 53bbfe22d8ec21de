//! A module of the registry. What it contains, its versions say.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use taco_tables::{Record, indexes};
use taco_words::id_kinds;

use crate::author::Author;
use crate::name::NameKey;
use crate::registry_address::{ModuleName, ModuleProvider, Namespace, RegistryName};

id_kinds! {
    /// A module of the registry.
    RegistryModuleId = "mod";
}

#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, Debug)]
pub struct RegistryModule {
    pub id: RegistryModuleId,
    pub name: ModuleName,
    pub provider: ModuleProvider,
    /// Of a module of a public registry; the namespace of a private one is the organization's name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<Namespace>,
    /// It may be used without writing any configuration.
    #[serde(default)]
    pub no_code: bool,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
    pub created_by: Author,
}

impl RegistryModule {
    pub fn registry(&self) -> RegistryName {
        if self.namespace.is_some() { RegistryName::Public } else { RegistryName::Private }
    }

    /// The key under which it is found: lists are in this order.
    pub fn key(&self) -> ModuleKey {
        module_key(self.name.as_str(), self.provider.as_str(), self.namespace.as_ref().map(Namespace::as_str))
    }
}

/// Name, provider and namespace.
pub type ModuleKey = (NameKey, NameKey, Option<NameKey>);

pub fn module_key(name: &str, provider: &str, namespace: Option<&str>) -> ModuleKey {
    (NameKey::of(name), NameKey::of(provider), namespace.map(NameKey::of))
}

impl Record for RegistryModule {
    const KIND: &'static str = "registry-module";
    const NOUN: &'static str = "module";
    type Id = RegistryModuleId;
    type Indexes = RegistryModuleIndexes;

    fn id(&self) -> &RegistryModuleId {
        &self.id
    }
}

indexes! {
    pub struct RegistryModuleIndexes for RegistryModule {
        pub address: ModuleKey, unique "name" => |module| [module.key()];
        pub private: ModuleKey => |module| module.namespace.is_none().then(|| module.key());
        pub public: ModuleKey => |module| module.namespace.is_some().then(|| module.key());
        pub provider: (NameKey, NameKey) => |module| [(module.provider.key(), module.name.key())];
    }
}
