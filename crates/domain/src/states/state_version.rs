//! A state as it was at one moment. The state itself is a blob; this is what is known about it.

use std::cmp::Reverse;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use taco_tables::{Record, indexes, references};

use crate::author::Author;
use crate::id::{OutputId, RunId, StateVersionId, WorkspaceId};
use crate::state_rules::StateIdentity;

/// Maximum number of outputs named in a record. Those are in a commit for ever, in every server's memory and in lists.
pub const MOST_LISTED_OUTPUTS: usize = 1_000;

/// Maximum total size in bytes of the output names in a record.
pub const LARGEST_LISTED_NAMES: usize = 64 * 1024;

/// Status of a state version.
#[derive(Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Debug)]
#[serde(rename_all = "snake_case")]
pub enum StateVersionStatus {
    /// Announced; its bytes are yet to arrive. Never current.
    Pending,
    Finalized,
    /// Announced, and given up before its bytes arrived.
    Discarded,
    BackingDataSoftDeleted,
    BackingDataPermanentlyDeleted,
}

/// Origin of a state.
#[derive(Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Debug)]
#[serde(rename_all = "snake_case")]
pub enum StateOrigin {
    Apply,
    RefreshOnly,
    Push,
    Import,
    StateCommand,
    /// The content of an older version, under a new serial.
    Restore(StateVersionId),
    /// Written around taco and found later.
    OutOfBand,
    /// Saved from an agent that was given up.
    Rescue,
    Unknown,
}

/// One output, without its value: that stays in the blob.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, Debug)]
pub struct OutputMetadata {
    pub id: OutputId,
    pub name: String,
    pub sensitive: bool,
}

impl OutputMetadata {
    /// Placeholder for all outputs of an encrypted state. The server does not know them; that there may be some has to
    /// be said, or clients believe that there are none and do not look into the state itself.
    pub fn encrypted(version: StateVersionId) -> Self {
        let name = "encrypted";
        Self { id: output_id(version, name), name: name.to_owned(), sensitive: true }
    }
}

/// Outputs of a state that its record names: all of them, or, if they are too many or their names too long, none. Then
/// the error is their number, and readers get them from the state.
pub fn listed_outputs<'a>(
    version: StateVersionId,
    outputs: impl ExactSizeIterator<Item = (&'a str, bool)> + Clone,
) -> Result<Vec<OutputMetadata>, u64> {
    let number = outputs.len();
    let names: usize = outputs.clone().map(|(name, _)| name.len()).sum();
    if number > MOST_LISTED_OUTPUTS || names > LARGEST_LISTED_NAMES {
        return Err(number as u64);
    }
    let of = |(name, sensitive): (&str, bool)| OutputMetadata {
        id: output_id(version, name),
        name: name.to_owned(),
        sensitive,
    };
    Ok(outputs.map(of).collect())
}

#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, Debug)]
pub struct StateVersion {
    pub id: StateVersionId,
    pub workspace: WorkspaceId,
    pub status: StateVersionStatus,
    pub serial: u64,
    /// Empty while it is pending if its creator did not send it: then it is read from the bytes.
    pub lineage: String,
    /// MD5 of the bytes as they were sent, in hexadecimal.
    pub md5: String,
    /// The blob with its bytes. Each attempt to upload them has one of its own, so that a second cannot spoil the
    /// first. Empty while it is pending, as is `sha256`.
    #[serde(default)]
    pub blob: String,
    pub sha256: String,
    pub size: u64,
    /// True if its creator may override serial and lineage.
    #[serde(default)]
    pub force: bool,
    pub origin: StateOrigin,
    pub created_at: Timestamp,
    pub created_by: Author,
    pub run: Option<RunId>,
    pub terraform_version: Option<String>,
    /// OpenTofu encrypted it on the client: the server does not know its outputs and resources.
    #[serde(default)]
    pub encrypted: bool,
    /// Managed resources in it.
    #[serde(default)]
    pub resource_count: u64,
    #[serde(default)]
    pub outputs: Vec<OutputMetadata>,
    /// Number of outputs if `outputs` does not name them: see [`listed_outputs`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unlisted_outputs: Option<u64>,
    /// The client also sent the state in the format of `show -json`.
    #[serde(default)]
    pub has_json: bool,
    /// The blob with that. Empty where it was stored under the version's own id, as it was once.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub json_blob: String,
    /// The last look at one of its sensitive outputs. Each look is a commit, so all of them stand in the log.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revealed: Option<Revealed>,
}

/// Record that someone looked at the value of a sensitive output on a page.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, Debug)]
pub struct Revealed {
    pub output: OutputId,
    pub by: Author,
    pub at: Timestamp,
    /// Number of looks, this one included.
    pub times: u64,
}

impl StateVersion {
    /// True if it has outputs, named here or not.
    pub fn has_outputs(&self) -> bool {
        !self.outputs.is_empty() || self.unlisted_outputs.is_some()
    }

    /// True if it is a state, and the number of its resources is known.
    pub fn has_known_resources(&self) -> bool {
        !self.encrypted && !matches!(self.status, StateVersionStatus::Pending | StateVersionStatus::Discarded)
    }

    /// Identity that a newer state is compared with.
    pub fn identity(&self) -> StateIdentity<'_> {
        StateIdentity { serial: self.serial, lineage: &self.lineage, md5: &self.md5 }
    }
}

/// The id of an output: any server arrives at the same.
pub fn output_id(state_version: StateVersionId, name: &str) -> OutputId {
    OutputId::derived(state_version.organization_prefix(), &format!("{state_version} {name}"))
}

/// The backing data of a version goes in two steps, and comes back from the first.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum BackingDataAction {
    SoftDelete,
    Restore,
    PermanentlyDelete,
}

/// A step that cannot be taken now, worded as clients expect.
#[derive(Clone, Copy, PartialEq, Eq, thiserror::Error, Debug)]
#[error("transition not allowed")]
pub struct TransitionNotAllowed;

impl StateVersionStatus {
    /// The status after `action`. The current version of a workspace keeps its data; the caller sees to that.
    pub fn after(self, action: BackingDataAction) -> Result<Self, TransitionNotAllowed> {
        match (self, action) {
            (Self::Finalized, BackingDataAction::SoftDelete) => Ok(Self::BackingDataSoftDeleted),
            (Self::BackingDataSoftDeleted, BackingDataAction::Restore) => Ok(Self::Finalized),
            (Self::BackingDataSoftDeleted, BackingDataAction::PermanentlyDelete) => {
                Ok(Self::BackingDataPermanentlyDeleted)
            }
            _ => Err(TransitionNotAllowed),
        }
    }
}

impl Record for StateVersion {
    const KIND: &'static str = "state-version";
    const NOUN: &'static str = "state version";
    const PART_OF: &'static [&'static str] = &["workspace"];
    type Id = StateVersionId;
    type Indexes = StateVersionIndexes;

    fn id(&self) -> &StateVersionId {
        &self.id
    }

    references! {
        "workspace": WorkspaceId, cascade(|versions, id| versions.by().workspace.under(id));
        "origin": StateVersionId, keep("states are deleted with their workspace");
        "run": RunId, keep("runs are deleted with their workspace");
    }

    fn shrink(&mut self) {
        self.outputs.shrink_to_fit();
    }
}

indexes! {
    pub struct StateVersionIndexes for StateVersion {
        /// Newest first within a workspace.
        pub workspace: (WorkspaceId, Reverse<(Timestamp, u64)>) => |version| {
            [(version.workspace, Reverse((version.created_at, version.serial)))]
        };
        pub pending: WorkspaceId => |version| {
            (version.status == StateVersionStatus::Pending).then_some(version.workspace)
        };
        pub output: OutputId => |version| version.outputs.iter().map(|output| output.id).collect::<Vec<_>>();
        pub run: RunId => |version| version.run;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn backing_data_goes_in_two_steps() {
        use BackingDataAction as A;
        use StateVersionStatus as S;
        const LEGAL: &[(S, A, S)] = &[
            (S::Finalized, A::SoftDelete, S::BackingDataSoftDeleted),
            (S::BackingDataSoftDeleted, A::Restore, S::Finalized),
            (S::BackingDataSoftDeleted, A::PermanentlyDelete, S::BackingDataPermanentlyDeleted),
        ];
        for status in
            [S::Pending, S::Finalized, S::Discarded, S::BackingDataSoftDeleted, S::BackingDataPermanentlyDeleted]
        {
            for action in [A::SoftDelete, A::Restore, A::PermanentlyDelete] {
                let expected = LEGAL.iter().find(|row| row.0 == status && row.1 == action).map(|row| row.2);
                assert_eq!(status.after(action).ok(), expected, "{status:?} then {action:?}");
            }
        }
    }

    #[test]
    fn a_record_names_as_many_outputs_as_it_can_hold() {
        let version = StateVersionId::from_random([1; 16]);
        let listed = |names: &[String]| {
            let outputs = names.iter().map(|name| (name.as_str(), true));
            listed_outputs(version, outputs).map(|outputs| outputs.len())
        };
        let names = |number: usize| (0..number).map(|number| format!("output-{number}")).collect::<Vec<_>>();
        assert_eq!(listed(&[]), Ok(0));
        assert_eq!(listed(&names(MOST_LISTED_OUTPUTS)), Ok(MOST_LISTED_OUTPUTS));
        assert_eq!(listed(&names(MOST_LISTED_OUTPUTS + 1)), Err(MOST_LISTED_OUTPUTS as u64 + 1));
        assert_eq!(listed(&["x".repeat(LARGEST_LISTED_NAMES)]), Ok(1));
        assert_eq!(listed(&["x".repeat(LARGEST_LISTED_NAMES), "y".to_owned()]), Err(2));
    }

    #[test]
    fn statuses_are_spelled_as_on_the_wire() {
        let json = serde_json::to_string(&StateVersionStatus::BackingDataSoftDeleted).expect("JSON");
        assert_eq!(json, r#""backing_data_soft_deleted""#);
    }

    #[test]
    fn every_server_gives_an_output_the_same_id() {
        let version = StateVersionId::from_random([1; 16]);
        assert_eq!(output_id(version, "vpc"), output_id(version, "vpc"));
        assert_ne!(output_id(version, "vpc"), output_id(version, "subnet"));
        assert_eq!(output_id(version, "vpc").organization_prefix(), version.organization_prefix());
    }
}
