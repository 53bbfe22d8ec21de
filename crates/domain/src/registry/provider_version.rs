//! One version of a provider: its list of checksums, and the signature of that list.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use taco_tables::{Record, indexes, references};
use taco_words::id_kinds;

use crate::attribute::{InvalidAttribute, shown};
use crate::author::Author;
use crate::registry_file::RegistryFile;
use crate::registry_provider::RegistryProviderId;
use crate::registry_version::RegistryVersion;

/// Protocol that a provider speaks if its publisher does not say which.
const DEFAULT_PROTOCOL: &str = "5.0";
const MAX_PROTOCOLS: usize = 10;

id_kinds! {
    /// One version of a provider.
    ProviderVersionId = "provver";
}

#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, Debug)]
pub struct ProviderVersion {
    pub id: ProviderVersionId,
    pub provider: RegistryProviderId,
    pub version: RegistryVersion,
    /// The GPG key that signed it, as its publisher says. The signature is checked when it arrives.
    pub key_id: String,
    pub protocols: Vec<String>,
    /// `SHA256SUMS`
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checksums: Option<RegistryFile>,
    /// `SHA256SUMS.sig`
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signature: Option<RegistryFile>,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
    pub created_by: Author,
}

impl ProviderVersion {
    /// True if its checksums are there, and signed by its key.
    pub fn is_signed(&self) -> bool {
        self.checksums.is_some() && self.signature.is_some()
    }
}

/// The protocols of a request, such as `5.0` and `6.0`.
pub fn checked_protocols(protocols: Option<Vec<String>>) -> Result<Vec<String>, InvalidAttribute> {
    let protocols = protocols.unwrap_or_default();
    let is_protocol = |text: &String| {
        let number = |text: &str| !text.is_empty() && text.len() < 4 && text.bytes().all(|it| it.is_ascii_digit());
        text.split_once('.').is_some_and(|(major, minor)| number(major) && number(minor))
    };
    if let Some(wrong) = protocols.iter().find(|text| !is_protocol(text)) {
        let detail =
            format!("Protocols are versions of the plugin protocol such as 5.0 or 6.0; one is {}", shown(wrong));
        return Err(InvalidAttribute::new("protocols", detail));
    }
    if protocols.len() > MAX_PROTOCOLS {
        return Err(InvalidAttribute::new("protocols", format!("Protocols can be at most {MAX_PROTOCOLS}")));
    }
    Ok(if protocols.is_empty() { vec![DEFAULT_PROTOCOL.to_owned()] } else { protocols })
}

impl Record for ProviderVersion {
    const KIND: &'static str = "provider-version";
    const NOUN: &'static str = "provider version";
    const PART_OF: &'static [&'static str] = &["provider"];
    type Id = ProviderVersionId;
    type Indexes = ProviderVersionIndexes;

    fn id(&self) -> &ProviderVersionId {
        &self.id
    }

    references! {
        "provider": RegistryProviderId, cascade(|versions, id| versions.by().provider.under(id));
    }
}

indexes! {
    pub struct ProviderVersionIndexes for ProviderVersion {
        pub provider: (RegistryProviderId, RegistryVersion), unique "version"
            => |version| [(version.provider, version.version.clone())];
        /// Those that a key has signed.
        pub key_id: String => |version| version.signature.is_some().then(|| version.key_id.to_ascii_uppercase());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn protocols_are_versions() {
        let checked = |texts: &[&str]| checked_protocols(Some(texts.iter().map(|it| (*it).to_owned()).collect()));
        assert_eq!(checked(&["5.0", "6.0"]).expect("two"), ["5.0", "6.0"]);
        assert_eq!(checked(&[]).expect("the default"), ["5.0"]);
        for wrong in ["5", "a.b", "5.", "", "5.0.0.0"] {
            assert!(checked(&[wrong]).is_err(), "{wrong}");
        }
    }
}
