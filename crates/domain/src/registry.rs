//! The private registry: modules and providers that an organization publishes, and the keys that its publishers sign with.

pub mod checksums;
pub mod gpg_key;
pub mod module_version;
pub mod provider_platform;
pub mod provider_version;
pub mod registry_address;
pub mod registry_file;
pub mod registry_module;
pub mod registry_provider;
pub mod registry_version;
