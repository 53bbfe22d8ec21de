//! Consumptions: how far a unit's states and runs have been examined for evidence, and its last effective apply.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use taco_tables::{Record, references};

use crate::author::Author;
use crate::id::{RunId, StateVersionId, WorkspaceId};
use crate::output::OutputDigest;

/// Number of the rules by which states and plans are examined. If it goes up, everything is examined again.
pub const EXAMINER: u32 = 1;

/// How far a unit has been examined, and what it last applied.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, Debug)]
pub struct Consumption {
    pub workspace: WorkspaceId,
    /// [`EXAMINER`] of the server that examined it.
    pub examiner: u32,
    /// The newest state version that was examined.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state_version: Option<StateVersionId>,
    /// When the newest run ended that was examined.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_ended_at: Option<Timestamp>,
    /// The newest run that was examined.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<RunId>,
    /// Why the newest state or plan could not be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unreadable: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub effective: Option<EffectiveApply>,
}

/// The last apply, or plan without changes, that took in everything that the unit uses.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, Debug)]
pub struct EffectiveApply {
    pub at: Timestamp,
    pub by: Author,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<RunId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state_version: Option<StateVersionId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub own: Option<OwnInputs>,
}

/// Digests of a unit's inputs that are its own. If they equal those of its last effective apply, it has no change of its own.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, Debug)]
pub struct OwnInputs {
    /// Contents of the configuration's files.
    pub configuration: OutputDigest,
    /// Effective variables, without those that come from other units.
    pub variables: OutputDigest,
    /// Program and version.
    pub engine: String,
    /// The dependency lock file.
    pub lock_file: OutputDigest,
}

impl Consumption {
    pub fn new(workspace: WorkspaceId) -> Self {
        Self {
            workspace,
            examiner: EXAMINER,
            state_version: None,
            run_ended_at: None,
            run: None,
            unreadable: None,
            effective: None,
        }
    }
}

impl Record for Consumption {
    const KIND: &'static str = "consumption";
    const PART_OF: &'static [&'static str] = &["workspace"];
    type Id = WorkspaceId;
    type Indexes = ();

    fn id(&self) -> &WorkspaceId {
        &self.workspace
    }

    references! {
        "workspace": WorkspaceId, cascade(|all, id| all.get(id).into_iter());
        "state_version": StateVersionId, keep("it tells how far the unit was examined");
        "run": RunId, keep("it tells how far the unit was examined");
        "effective": StateVersionId, keep("it tells what was applied");
        "effective": RunId, keep("it tells what was applied");
    }
}
