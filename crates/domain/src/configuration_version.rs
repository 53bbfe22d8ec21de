//! A configuration that was, or will be, uploaded. The archive itself is a blob.

use std::cmp::Reverse;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use taco_tables::{Record, indexes};

use crate::author::Author;
use crate::id::{ConfigurationVersionId, WorkspaceId};

#[derive(Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Debug)]
#[serde(rename_all = "snake_case")]
pub enum ConfigurationStatus {
    /// Announced; the archive is yet to arrive.
    Pending,
    Uploaded,
    /// What arrived is no configuration.
    Errored,
    /// The archive is gone.
    Archived,
    BackingDataSoftDeleted,
    BackingDataPermanentlyDeleted,
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
    /// For instance `tfe-api`.
    pub source: String,
    pub created_at: Timestamp,
    pub created_by: Author,
    /// The blob with the archive; empty until it arrived.
    #[serde(default)]
    pub blob: String,
    #[serde(default)]
    pub size: u64,
    #[serde(default)]
    pub uploaded_at: Option<Timestamp>,
    /// What was wrong with it, as a word and as a sentence.
    #[serde(default)]
    pub error: Option<String>,
    #[serde(default)]
    pub error_message: Option<String>,
}

impl ConfigurationVersion {
    /// Whether runs can use it.
    pub fn is_usable(&self) -> bool {
        self.status == ConfigurationStatus::Uploaded
    }
}

impl Record for ConfigurationVersion {
    const KIND: &'static str = "configuration-version";
    type Id = ConfigurationVersionId;
    type Indexes = ConfigurationVersionIndexes;

    fn id(&self) -> &ConfigurationVersionId {
        &self.id
    }
}

indexes! {
    pub struct ConfigurationVersionIndexes for ConfigurationVersion {
        /// Newest first within a workspace: begin at `(workspace, Reverse(u64::MAX))`.
        pub workspace: (WorkspaceId, Reverse<u64>) => |version| [(version.workspace, Reverse(version.number))];
    }
}
