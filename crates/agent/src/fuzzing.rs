//! Parsers of this crate for `crates/fuzz-targets`; no part of the API.

use std::collections::BTreeSet;

use taco_openpgp::PublicKeys;

use crate::engine_version::VersionRequest;
use crate::mask::Mask;
use crate::provider_schemas::Schemas;
use crate::redacted_plan::ShownPlan;

/// Number of keys in a text.
pub fn public_keys(text: &str) -> Result<usize, String> {
    PublicKeys::parse(text).map(|keys| keys.len())
}

/// Verifies that one of the keys has signed the message.
pub fn verify(keys: &str, message: &[u8], signature: &[u8]) -> Result<(), String> {
    PublicKeys::parse(keys)?.verify(message, signature)
}

/// True if the text is a version of an engine, or a constraint.
pub fn is_engine_version(text: &str) -> bool {
    text.parse::<VersionRequest>().is_ok()
}

/// A log in which the value of a sensitive variable is hidden.
pub fn masked(secret: &str, log: &[u8]) -> Vec<u8> {
    Mask::of_values(&BTreeSet::from([secret])).hide_bytes(log.to_vec())
}

/// A plan as it is shown, without what is sensitive.
pub fn redacted_plan(shown: &[u8], salt: [u8; 16]) -> Option<String> {
    let plan: ShownPlan = serde_json::from_slice(shown).ok()?;
    plan.counts();
    plan.types();
    serde_json::to_string(&plan.redact(Schemas::new(), &Mask::default(), salt)).ok()
}
