//! Connections to version control: who a forge is, and with what token it is asked.

pub mod oauth_client;
pub mod oauth_token;
pub mod service_provider;
