//! The two parts of a run that an agent executes, and how far each has come.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
pub use taco_words::phase::{PhaseKind, ResourceCounts, UnknownPhase};

use crate::id::{AgentId, AgentPoolId};
use crate::small_map::SmallMap;
use crate::wait_note::WaitNote;

#[derive(Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, Debug)]
#[serde(rename_all = "snake_case")]
pub enum PhaseStatus {
    /// Its turn has not come.
    #[default]
    Pending,
    /// Ready for an agent.
    Queued,
    Running,
    Finished,
    Errored,
    Canceled,
    /// It will never be executed.
    Unreachable,
}

impl PhaseStatus {
    pub fn is_final(self) -> bool {
        match self {
            Self::Pending | Self::Queued | Self::Running => false,
            Self::Finished | Self::Errored | Self::Canceled | Self::Unreachable => true,
        }
    }
}

/// The agent whose phase it is.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, Debug)]
pub struct Executor {
    pub agent: AgentId,
    pub agent_name: String,
    /// `None` for an agent within a server.
    pub pool: Option<AgentPoolId>,
}

/// The longest text about the end of a phase that its run's record keeps, in bytes. All of it is in the log.
pub const MAX_OUTCOME_MESSAGE_BYTES: usize = 4096;

/// Message of an agent about the end of a phase, shortened for the run's record, which every page and list of runs has.
pub fn bounded_message(message: &str) -> String {
    if message.len() <= MAX_OUTCOME_MESSAGE_BYTES {
        return message.to_owned();
    }
    let kept = &message[..message.floor_char_boundary(MAX_OUTCOME_MESSAGE_BYTES)];
    format!("{kept}… (cut off: this is the beginning of {} bytes)", message.len())
}

/// A file as it was when the phase that made it ended: later readers get the same bytes, or none.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, Debug)]
pub struct StoredFile {
    pub size: u64,
    /// Hexadecimal.
    pub sha256: String,
}

/// Digests of a log's blocks when its phase ended: later readers get the same bytes, or an error that they were
/// altered.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, Debug)]
pub struct StoredLog {
    pub blocks: Vec<StoredLogBlock>,
}

/// Some of its bytes, from where the block before ends.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, Debug)]
pub struct StoredLogBlock {
    pub end: u64,
    /// Hexadecimal.
    pub digest: String,
}

impl StoredLog {
    /// Bytes of the whole log.
    pub fn size(&self) -> u64 {
        self.blocks.last().map_or(0, |block| block.end)
    }
}

/// One phase of one run.
#[derive(Clone, PartialEq, Eq, Default, Serialize, Deserialize, Debug)]
#[serde(default)]
pub struct Phase {
    pub status: PhaseStatus,
    /// Goes up each time an agent takes the phase. 0: none has.
    pub epoch: u64,
    /// Executor that has it, or had it last.
    pub executor: Option<Executor>,
    /// Number of agents given up while they had it.
    pub losses: u32,
    pub queued_at: Option<Timestamp>,
    pub started_at: Option<Timestamp>,
    pub ended_at: Option<Timestamp>,
    pub counts: ResourceCounts,
    /// Error message for people.
    pub error: Option<String>,
    /// Sizes in bytes of the logs of earlier attempts: readers go through those first.
    pub earlier_logs: Vec<u64>,
    /// Reasons why it waited for an agent: its log begins with them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub waits: Vec<WaitNote>,
    /// The forms of a plan that has ended, by the kind of their blobs. `None` before, and in records that are older than
    /// this.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub files: Option<SmallMap<String, StoredFile>>,
    /// The log of the attempt that ended it. `None` before, where no attempt ended it, and in records that are older than
    /// this.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub log: Option<StoredLog>,
    /// Outcome that the agent reported when it came back after it was given up, for people.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub late_outcome: Option<String>,
}

impl Phase {
    /// True if an attempt was given up. Attempts are given up in order, so their number is enough to know; each leaves
    /// a log, including one whose agent left by itself, which is not counted as a loss.
    pub fn is_lost(&self, epoch: u64) -> bool {
        epoch <= u64::from(self.losses).max(self.earlier_logs.len() as u64)
    }

    /// True if it ended because its agent was given up, and that agent has not reported the outcome since.
    pub fn is_lost_for_good(&self) -> bool {
        self.epoch > 0 && self.status.is_final() && self.is_lost(self.epoch) && self.late_outcome.is_none()
    }
}
