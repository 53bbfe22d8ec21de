//! Parsers of this crate for `crates/fuzz-targets`; no part of the API.

use crate::cloud_block;
use crate::host::Host;

/// Host, organization and workspace of a configuration.
pub fn cloud_block(configuration: &str) -> Option<[Option<String>; 3]> {
    cloud_block::parse(configuration).map(|block| [block.hostname, block.organization, block.workspace])
}

/// Name and address of a host.
pub fn host(text: &str) -> Option<(String, String)> {
    text.parse::<Host>().ok().map(|host| (host.name, host.address.to_string()))
}
