//! SSH keys: private keys with which runs fetch modules.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use taco_tables::{Record, indexes};
use taco_words::id_kinds;

use crate::name::{NameKey, check_label, name_kinds};

id_kinds! {
    /// A private key with which runs fetch modules.
    SshKeyId = "sshkey";
}

name_kinds! {
    SshKeyName: |name| check_label("Name", "name", name, 255);
}

/// A private key with which runs fetch modules. The API never shows its value again.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, Debug)]
pub struct SshKey {
    pub id: SshKeyId,
    pub name: SshKeyName,
    /// The private key, encrypted by the writer of the record; this crate cannot read it.
    pub sealed_value: String,
    pub created_at: Timestamp,
}

impl Record for SshKey {
    const KIND: &'static str = "ssh-key";
    const NOUN: &'static str = "SSH key";
    const UNIQUE: &'static [&'static str] = &["name"];
    type Id = SshKeyId;
    type Indexes = SshKeyIndexes;

    fn id(&self) -> &SshKeyId {
        &self.id
    }

    fn sealed_mut(&mut self) -> Vec<(String, &mut String)> {
        vec![(self.id.to_string(), &mut self.sealed_value)]
    }
}

indexes! {
    pub struct SshKeyIndexes for SshKey {
        pub name: NameKey, unique "name" => |key| [key.name.key()];
    }
}
