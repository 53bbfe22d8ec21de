//! A file of the registry in the bucket.

use serde::{Deserialize, Serialize};

#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, Debug)]
pub struct RegistryFile {
    pub blob: String,
    pub size: u64,
    /// In hexadecimal.
    pub sha256: String,
}
