//! The program itself: where it is, and what it may do.

use std::ffi::OsStr;
use std::path::PathBuf;

use serde_json::Value;

/// Version that is downloaded where a set asks for no other.
pub const DEFAULT_VERSION: &str = "1.22.0";

/// Oldest version that a set can ask for, as major and minor: it reads Rego of before and after OPA 1.0.
pub const MIN_VERSION: (u64, u64) = (1, 4);

/// Functions that policies do not have: a policy reads the plan, and neither the network nor the agent's environment.
pub const REMOVED_BUILTINS: [&str; 3] = ["http.send", "net.lookup_ip_addr", "opa.runtime"];

/// What `opa capabilities --current` says, without what policies do not have.
pub fn cut_capabilities(current: &[u8]) -> serde_json::Result<Vec<u8>> {
    let mut capabilities: Value = serde_json::from_slice(current)?;
    if let Some(builtins) = capabilities["builtins"].as_array_mut() {
        builtins.retain(|builtin| builtin["name"].as_str().is_none_or(|name| !REMOVED_BUILTINS.contains(&name)));
    }
    // Schemas are not fetched from anywhere either.
    capabilities["allow_net"] = Value::Array(Vec::new());
    serde_json::to_vec(&capabilities)
}

/// The program of this name in the first directory of a `PATH` that has one.
pub fn find_on_path(path: &OsStr) -> Option<PathBuf> {
    std::env::split_paths(path).map(|directory| directory.join("opa")).find(|program| program.is_file())
}
