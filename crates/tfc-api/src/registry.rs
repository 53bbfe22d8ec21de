//! The private registry: modules, providers and GPG keys as JSON:API, and the protocols by which the engines get them.

pub(crate) mod gpg_keys;
pub(crate) mod module_protocol;
pub(crate) mod provider_platforms;
pub(crate) mod provider_protocol;
pub(crate) mod provider_versions;
pub(crate) mod registry_files;
pub(crate) mod registry_modules;
pub(crate) mod registry_providers;
