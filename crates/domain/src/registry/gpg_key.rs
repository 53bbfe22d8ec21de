//! Public keys of those who sign an organization's providers.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use taco_tables::{Record, indexes};
use taco_words::id_kinds;

id_kinds! {
    /// A public key of someone who signs providers.
    GpgKeyId = "gpgkey";
}

/// A public key of someone who signs providers. It is not secret: everyone who installs such a provider gets it.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, Debug)]
pub struct GpgKey {
    pub id: GpgKeyId,
    /// The last 16 digits of the primary key's fingerprint, in upper case.
    pub key_id: String,
    pub ascii_armor: String,
    #[serde(default)]
    pub source: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source_url: Option<String>,
    #[serde(default)]
    pub trust_signature: String,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
}

impl Record for GpgKey {
    const KIND: &'static str = "gpg-key";
    const NOUN: &'static str = "GPG key";
    const UNIQUE: &'static [&'static str] = &["key_id"];
    type Id = GpgKeyId;
    type Indexes = GpgKeyIndexes;

    fn id(&self) -> &GpgKeyId {
        &self.id
    }
}

indexes! {
    pub struct GpgKeyIndexes for GpgKey {
        pub key_id: String, unique "ascii-armor" => |key| [key.key_id.clone()];
    }
}
