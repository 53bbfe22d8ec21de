//! A provider of the registry.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use taco_tables::{Record, indexes};
use taco_words::id_kinds;

use crate::author::Author;
use crate::name::NameKey;
use crate::registry_address::{Namespace, ProviderName, RegistryName};

id_kinds! {
    /// A provider of the registry.
    RegistryProviderId = "prov";
}

#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, Debug)]
pub struct RegistryProvider {
    pub id: RegistryProviderId,
    pub name: ProviderName,
    /// Of a provider of a public registry; the namespace of a private one is the organization's name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<Namespace>,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
    pub created_by: Author,
}

impl RegistryProvider {
    pub fn registry(&self) -> RegistryName {
        if self.namespace.is_some() { RegistryName::Public } else { RegistryName::Private }
    }

    pub fn key(&self) -> ProviderKey {
        provider_key(self.name.as_str(), self.namespace.as_ref().map(Namespace::as_str))
    }
}

/// Name and namespace.
pub type ProviderKey = (NameKey, Option<NameKey>);

pub fn provider_key(name: &str, namespace: Option<&str>) -> ProviderKey {
    (NameKey::of(name), namespace.map(NameKey::of))
}

impl Record for RegistryProvider {
    const KIND: &'static str = "registry-provider";
    const NOUN: &'static str = "provider";
    type Id = RegistryProviderId;
    type Indexes = RegistryProviderIndexes;

    fn id(&self) -> &RegistryProviderId {
        &self.id
    }
}

indexes! {
    pub struct RegistryProviderIndexes for RegistryProvider {
        pub address: ProviderKey, unique "name" => |provider| [provider.key()];
        pub private: ProviderKey => |provider| provider.namespace.is_none().then(|| provider.key());
        pub public: ProviderKey => |provider| provider.namespace.is_some().then(|| provider.key());
    }
}
