//! Requests and responses: what all nouns share.

pub(crate) mod address;
pub(crate) mod body;
pub(crate) mod caller;
pub(crate) mod client;
pub(crate) mod document;
pub(crate) mod error;
pub(crate) mod headers;
pub(crate) mod path;
pub(crate) mod query;
pub(crate) mod rate_limit;
pub(crate) mod response_cache;
pub(crate) mod signed_url;
