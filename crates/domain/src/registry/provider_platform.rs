//! A provider's program for one platform, at one version.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use taco_tables::{Record, indexes, references};
use taco_words::id_kinds;

use crate::attribute::{InvalidAttribute, shown};
use crate::provider_version::ProviderVersionId;
use crate::registry_file::RegistryFile;

const LONGEST: usize = 255;

id_kinds! {
    /// A provider's program for one platform.
    ProviderPlatformId = "provpltfrm";
}

#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, Debug)]
pub struct ProviderPlatform {
    pub id: ProviderPlatformId,
    pub version: ProviderVersionId,
    pub os: PlatformPart,
    pub arch: PlatformPart,
    /// Of the archive, as the list of checksums has it.
    pub filename: String,
    /// SHA-256 of the archive, as its publisher says. It is checked when the archive arrives.
    pub shasum: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub archive: Option<ProviderArchive>,
    pub created_at: Timestamp,
}

/// An archive that arrived and was found to be what its publisher said.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, Debug)]
pub struct ProviderArchive {
    pub file: RegistryFile,
    /// Hash of the unpacked files, as dependency lock files have it: `h1:…`.
    pub h1: String,
}

/// An operating system or an architecture, as the engines call it.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, Debug)]
#[serde(transparent)]
pub struct PlatformPart(String);

impl PlatformPart {
    pub fn parse(attribute: &'static str, text: &str) -> Result<Self, InvalidAttribute> {
        let title = if attribute == "os" { "Os" } else { "Arch" };
        let is_plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
        if text.is_empty() {
            return Err(InvalidAttribute::new(attribute, format!("{title} can't be blank")));
        }
        if text.len() > 32 || !text.bytes().all(is_plain) {
            let detail = format!(
                "{title} may only contain lower-case letters and numbers, as linux or amd64 do; it is {}",
                shown(text)
            );
            return Err(InvalidAttribute::new(attribute, detail));
        }
        Ok(Self(text.to_owned()))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// A file name without directories, of plain characters.
pub fn checked_filename(text: &str) -> Result<String, InvalidAttribute> {
    let is_plain = |character: char| character.is_ascii_alphanumeric() || "-_.+".contains(character);
    if text.is_empty() {
        return Err(InvalidAttribute::new("filename", "Filename can't be blank"));
    }
    if text.len() > LONGEST || text.starts_with('.') || !text.chars().all(is_plain) {
        let detail = format!(
            "Filename may only contain letters, numbers and - _ . +, and does not begin with a dot; it is {}",
            shown(text)
        );
        return Err(InvalidAttribute::new("filename", detail));
    }
    Ok(text.to_owned())
}

/// What a publisher says the SHA-256 is. Whether it is true, the archive shows.
pub fn checked_shasum(text: &str) -> Result<String, InvalidAttribute> {
    if text.is_empty() || text.len() > LONGEST || !text.bytes().all(|byte| byte.is_ascii_alphanumeric()) {
        let detail = format!("Shasum must be the SHA-256 of the archive in hexadecimal; it is {}", shown(text));
        return Err(InvalidAttribute::new("shasum", detail));
    }
    Ok(text.to_ascii_lowercase())
}

impl Record for ProviderPlatform {
    const KIND: &'static str = "provider-platform";
    const NOUN: &'static str = "provider platform";
    const PART_OF: &'static [&'static str] = &["version"];
    type Id = ProviderPlatformId;
    type Indexes = ProviderPlatformIndexes;

    fn id(&self) -> &ProviderPlatformId {
        &self.id
    }

    references! {
        "version": ProviderVersionId, cascade(|platforms, id| platforms.by().version.under(id));
    }
}

indexes! {
    pub struct ProviderPlatformIndexes for ProviderPlatform {
        pub version: (ProviderVersionId, String, String), unique "os"
            => |platform| [(platform.version, platform.os.0.clone(), platform.arch.0.clone())];
    }
}
