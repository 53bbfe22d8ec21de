use serde::{Deserialize, Serialize};
use taco_tables::Record;

/// The key under which tokens and other secrets are hashed.
pub const HASH_KEY: &str = "hash-key";

/// A key that belongs to the site and outlives the master keys: it is random, stored once, and sealed by whichever
/// master key is current. So a new master key does not end every token.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, Debug)]
pub struct SiteSecret {
    pub name: String,
    /// Encrypted value in base64; this crate cannot decrypt it.
    pub sealed: String,
}

impl Record for SiteSecret {
    const KIND: &'static str = "site-secret";
    const NOUN: &'static str = "site secret";
    type Id = String;
    type Indexes = ();

    fn id(&self) -> &String {
        &self.name
    }
}
