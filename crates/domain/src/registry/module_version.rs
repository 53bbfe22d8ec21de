//! One version of a module: announced first, then its archive is sent.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use taco_tables::{Record, indexes, references};
use taco_words::id_kinds;

use crate::attribute::{InvalidAttribute, is_plain_text};
use crate::author::Author;
use crate::registry_file::RegistryFile;
use crate::registry_module::RegistryModuleId;
use crate::registry_version::RegistryVersion;

const LONGEST_REASON: usize = 1_000;
const LONGEST_LINK: usize = 2_000;

id_kinds! {
    /// One version of a module.
    ModuleVersionId = "modver";
}

#[derive(Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Debug)]
#[serde(rename_all = "snake_case")]
pub enum ModuleVersionStatus {
    /// Announced; the archive is yet to arrive.
    Pending,
    Ok,
    /// What arrived is no module.
    RegIngressFailed,
}

impl ModuleVersionStatus {
    pub fn word(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Ok => "ok",
            Self::RegIngressFailed => "reg_ingress_failed",
        }
    }
}

#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, Debug)]
pub struct ModuleVersion {
    pub id: ModuleVersionId,
    pub module: RegistryModuleId,
    pub version: RegistryVersion,
    pub status: ModuleVersionStatus,
    /// Reason why what arrived is no module.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// The archive. The documentation lies beside it, under the same name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub archive: Option<RegistryFile>,
    /// Commit that it was made from, as its publisher says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit_sha: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deprecation: Option<Deprecation>,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
    pub created_by: Author,
}

/// A word to users of a version that they had better use another.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, Debug)]
pub struct Deprecation {
    #[serde(default)]
    pub reason: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub link: Option<String>,
    pub at: Timestamp,
    pub by: Author,
}

impl ModuleVersion {
    /// The archive that can be downloaded.
    pub fn usable(&self) -> Option<&RegistryFile> {
        self.archive.as_ref().filter(|_| self.status == ModuleVersionStatus::Ok)
    }

    pub fn with_archive(self, archive: RegistryFile, now: Timestamp) -> Self {
        Self { status: ModuleVersionStatus::Ok, error: None, archive: Some(archive), updated_at: now, ..self }
    }

    /// The version after an archive that is no module. One that had a good archive keeps it.
    pub fn with_invalid_archive(self, why: String, now: Timestamp) -> Self {
        if self.status == ModuleVersionStatus::Ok {
            return self;
        }
        Self { status: ModuleVersionStatus::RegIngressFailed, error: Some(why), updated_at: now, ..self }
    }
}

impl Deprecation {
    /// Checks what a person wrote.
    pub fn new(reason: &str, link: Option<&str>, by: Author, at: Timestamp) -> Result<Self, InvalidAttribute> {
        let refuse = |what: String| InvalidAttribute::new("deprecation", what);
        let reason = reason.trim();
        if reason.chars().count() > LONGEST_REASON || !is_plain_text(reason) {
            return Err(refuse(format!("Reason must be text of at most {LONGEST_REASON} characters")));
        }
        let link = link.map(str::trim).filter(|link| !link.is_empty());
        if let Some(link) = link {
            let is_web = link.starts_with("https://") || link.starts_with("http://");
            if !is_web || link.len() > LONGEST_LINK || link.chars().any(|it| it.is_whitespace() || it.is_control()) {
                return Err(refuse(format!(
                    "Link must be an address that begins with https:// or http://, of at most {LONGEST_LINK} characters"
                )));
            }
        }
        Ok(Self { reason: reason.to_owned(), link: link.map(str::to_owned), at, by })
    }
}

impl Record for ModuleVersion {
    const KIND: &'static str = "module-version";
    const NOUN: &'static str = "module version";
    const PART_OF: &'static [&'static str] = &["module"];
    type Id = ModuleVersionId;
    type Indexes = ModuleVersionIndexes;

    fn id(&self) -> &ModuleVersionId {
        &self.id
    }

    references! {
        "module": RegistryModuleId, cascade(|versions, id| versions.by().module.under(id));
    }
}

indexes! {
    pub struct ModuleVersionIndexes for ModuleVersion {
        pub module: (RegistryModuleId, RegistryVersion), unique "version" => |version| [(version.module, version.version.clone())];
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_deprecation_has_a_reason_and_a_link_that_can_be_followed() {
        let made = |reason: &str, link| Deprecation::new(reason, link, Author::Taco, Timestamp::UNIX_EPOCH);
        let deprecation = made(" Use network. ", Some("https://acme.test/network")).expect("fine");
        assert_eq!(deprecation.reason, "Use network.");
        assert_eq!(made("", Some("")).expect("neither is needed").link, None);
        for link in ["javascript:alert(1)", "https://a b", "acme.test"] {
            assert!(made("", Some(link)).is_err(), "{link}");
        }
        assert!(made(&"x".repeat(1001), None).is_err() && made("a\u{202e}b", None).is_err());
    }
}
