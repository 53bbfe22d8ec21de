//! A configuration that was, or will be, uploaded. The archive itself is a blob.

use std::cmp::Reverse;
use std::collections::BTreeSet;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use taco_tables::{Record, indexes, references};

use crate::author::Author;
use crate::id::{ConfigurationVersionId, WorkspaceId};
use crate::registry_address::ModuleSource;
use crate::state_version::{BackingDataAction, TransitionNotAllowed};

#[derive(Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Debug)]
#[serde(rename_all = "snake_case")]
pub enum ConfigurationStatus {
    /// Announced; the archive is yet to arrive.
    Pending,
    Uploaded,
    /// The upload is not a valid configuration.
    Errored,
    /// The archive is gone.
    Archived,
    BackingDataSoftDeleted,
    BackingDataPermanentlyDeleted,
}

impl ConfigurationStatus {
    /// The status once the archive is given up. The one that runs use keeps it; the caller sees to that.
    pub fn archived(self) -> Result<Self, TransitionNotAllowed> {
        match self {
            Self::Uploaded | Self::Archived => Ok(Self::Archived),
            _ => Err(TransitionNotAllowed),
        }
    }

    /// The status after `action`.
    pub fn after(self, action: BackingDataAction) -> Result<Self, TransitionNotAllowed> {
        match (self, action) {
            (Self::Uploaded, BackingDataAction::SoftDelete) => Ok(Self::BackingDataSoftDeleted),
            (Self::BackingDataSoftDeleted, BackingDataAction::Restore) => Ok(Self::Uploaded),
            (Self::BackingDataSoftDeleted, BackingDataAction::PermanentlyDelete) => {
                Ok(Self::BackingDataPermanentlyDeleted)
            }
            _ => Err(TransitionNotAllowed),
        }
    }
}

#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, Debug)]
pub struct ConfigurationVersion {
    pub id: ConfigurationVersionId,
    pub workspace: WorkspaceId,
    /// Goes up by one within a workspace.
    pub number: u64,
    pub status: ConfigurationStatus,
    /// Its runs only plan.
    pub speculative: bool,
    /// It becomes the workspace's current one only when a run applies it.
    pub provisional: bool,
    /// A run starts when the upload is complete.
    pub auto_queue_runs: bool,
    /// Source, for instance `tfe-api`.
    pub source: String,
    pub created_at: Timestamp,
    pub created_by: Author,
    /// The blob with the archive; empty until it arrived.
    #[serde(default)]
    pub blob: String,
    /// True if the archive's README is stored as a separate blob.
    #[serde(default)]
    pub has_readme: bool,
    #[serde(default)]
    pub size: u64,
    /// Digest of the archive, in hexadecimal.
    #[serde(default)]
    pub sha256: String,
    /// True if its creator may apply, so that the run that starts with its upload may auto-apply.
    #[serde(default)]
    pub creator_may_apply: bool,
    #[serde(default)]
    pub uploaded_at: Option<Timestamp>,
    /// Error code and message.
    #[serde(default)]
    pub error: Option<String>,
    #[serde(default)]
    pub error_message: Option<String>,
    /// What the archive says for the workspace; unknown for older ones.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub contents: Option<ConfigurationContents>,
    /// Other workspaces' configurations have the same archive, which stays for them.
    #[serde(default)]
    pub shares_archive: bool,
}

/// Digests of what a configuration says, however it is packed.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, Debug)]
pub struct ConfigurationContents {
    /// The directory for which they hold.
    #[serde(default)]
    pub working_directory: String,
    /// Files of the directory, and those outside that it names, in hexadecimal.
    pub files: String,
    /// The dependency lock file, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lock_file: Option<String>,
    /// Modules of registries that the configuration calls.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub modules: Vec<CalledModule>,
}

/// A module of a registry that a configuration calls.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, Debug)]
pub struct CalledModule {
    pub source: String,
    /// Constraint on its version; empty where there is none.
    #[serde(default)]
    pub version: String,
}

/// Maximum number of modules that are remembered of one configuration.
const MAX_CALLED_MODULES: usize = 200;

/// Of the modules that a configuration calls, those of registries, once each.
pub fn modules_of_registries(calls: impl IntoIterator<Item = CalledModule>) -> Vec<CalledModule> {
    let of_registries = calls.into_iter().filter(|call| ModuleSource::parse(&call.source).is_some());
    let once: BTreeSet<CalledModule> = of_registries.collect();
    once.into_iter().take(MAX_CALLED_MODULES).collect()
}

impl ConfigurationVersion {
    /// True if runs can use it.
    pub fn is_usable(&self) -> bool {
        self.status == ConfigurationStatus::Uploaded
    }

    /// True if an archive may still come, in place of an earlier one if no run uses that.
    pub fn waits_for_archive(&self) -> bool {
        use ConfigurationStatus as S;
        matches!(self.status, S::Pending | S::Errored | S::Uploaded)
    }

    fn called_modules(&self) -> BTreeSet<String> {
        let modules = self.contents.iter().flat_map(|contents| &contents.modules);
        modules.filter_map(|call| Some(ModuleSource::parse(&call.source)?.key())).collect()
    }

    /// The configuration with an archive that has arrived.
    pub fn with_archive(self, archive: UploadedArchive, now: Timestamp) -> Self {
        let UploadedArchive { blob, has_readme, size, sha256, contents } = archive;
        Self {
            status: ConfigurationStatus::Uploaded,
            blob,
            has_readme,
            size,
            sha256,
            uploaded_at: Some(now),
            error: None,
            error_message: None,
            contents: Some(contents),
            ..self
        }
    }

    /// The configuration after an archive that cannot be used.
    pub fn with_invalid_archive(self, why: String) -> Self {
        Self {
            status: ConfigurationStatus::Errored,
            error: Some("invalid-archive".to_owned()),
            error_message: Some(why),
            ..self
        }
    }
}

/// An archive in the bucket.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct UploadedArchive {
    pub blob: String,
    /// True if its README is stored as a separate blob.
    pub has_readme: bool,
    pub size: u64,
    pub sha256: String,
    pub contents: ConfigurationContents,
}

impl Record for ConfigurationVersion {
    const KIND: &'static str = "configuration-version";
    const NOUN: &'static str = "configuration version";
    const PART_OF: &'static [&'static str] = &["workspace"];
    type Id = ConfigurationVersionId;
    type Indexes = ConfigurationVersionIndexes;

    fn id(&self) -> &ConfigurationVersionId {
        &self.id
    }

    references! {
        "workspace": WorkspaceId, cascade(|versions, id| versions.by().workspace.under(id));
    }
}

indexes! {
    pub struct ConfigurationVersionIndexes for ConfigurationVersion {
        /// Newest first within a workspace.
        pub workspace: (WorkspaceId, Reverse<u64>) => |version| [(version.workspace, Reverse(version.number))];
        /// By the modules of registries that they call: `namespace/name/provider`.
        pub called_module: String => |version| version.called_modules();
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) fn given_configuration(number: u8) -> ConfigurationVersion {
        ConfigurationVersion {
            id: ConfigurationVersionId::from_random([number; 16]),
            workspace: WorkspaceId::from_random([1; 16]),
            number: u64::from(number),
            status: ConfigurationStatus::Uploaded,
            speculative: false,
            provisional: false,
            auto_queue_runs: false,
            source: "tfe-api".to_owned(),
            created_at: Timestamp::UNIX_EPOCH,
            created_by: Author::Taco,
            blob: "blob".to_owned(),
            has_readme: false,
            size: 1,
            sha256: String::new(),
            creator_may_apply: false,
            uploaded_at: None,
            error: None,
            error_message: None,
            contents: None,
            shares_archive: false,
        }
    }

    #[test]
    fn only_what_was_uploaded_can_be_given_up() {
        use BackingDataAction as B;
        use ConfigurationStatus as S;
        assert_eq!(S::Uploaded.archived(), Ok(S::Archived));
        assert!(S::Pending.archived().is_err() && S::Errored.archived().is_err());
        assert_eq!(S::Uploaded.after(B::SoftDelete).and_then(|gone| gone.after(B::Restore)), Ok(S::Uploaded));
        assert!(S::Uploaded.after(B::PermanentlyDelete).is_err() && S::Pending.after(B::SoftDelete).is_err());
    }
}
