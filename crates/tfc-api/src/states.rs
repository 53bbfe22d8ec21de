//! States, and how they come and go.

pub(crate) mod base64_text;
pub(crate) mod http_backend;
pub(crate) mod inline_state;
pub(crate) mod state_version_outputs;
pub(crate) mod state_versions;
pub(crate) mod summary_cache;
