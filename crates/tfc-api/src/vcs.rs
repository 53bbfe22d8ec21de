//! Connections to version control.

pub(crate) mod oauth_clients;
pub(crate) mod oauth_tokens;
