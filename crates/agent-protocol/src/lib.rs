//! Protocol between server and agent, and nothing about either of them, so that either can be upgraded first.
//!
//! An agent keeps one WebSocket at [`CONNECT_PATH`] open, with its pool's token: over it flow [`FromAgent`] and
//! [`FromServer`] as JSON texts. Everything large goes by plain requests to [`phase_path`], with the phase's token.
//! Fields that the other end does not know are ignored; a field that is added later has a default.

mod job;
mod message;
mod paths;
mod policies;

pub use job::{
    Engine, EngineRequest, Job, Operation, Outcome, PhaseAttempt, PhaseKind, PlanSummary, ResourceCounts, Variable,
    VariableCategory,
};
pub use message::{FromAgent, FromServer, Refusal};
pub use paths::{CONNECT_PATH, LogConflict, Upload, phase_path};
pub use policies::{
    PolicyBundle, PolicyGroup, PolicyParameter, PolicyQuery, PolicyResult, PolicyResultStatus, PolicySetJob,
    PolicySetResult, PolicyTiming,
};

/// The most engines that an agent is believed to have; all servers keep the list in memory and in their beacons.
pub const MAX_AGENT_ENGINES: usize = 64;

/// Protocol version. A server accepts agents of this version and of the one before it.
pub const PROTOCOL: u32 = 1;
