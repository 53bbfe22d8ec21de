use serde::{Deserialize, Serialize};
use taco_words::id::AgentId;

use crate::job::{EngineRequest, Job, PhaseAttempt};

/// Message of an agent.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, Debug)]
#[serde(tag = "type", rename_all = "kebab-case")]
pub enum FromAgent {
    /// The first message on every connection.
    Hello {
        protocol: u32,
        /// Version of the agent's program.
        version: String,
        /// Display name.
        name: String,
        /// Id that the server gave it before, if this is not the first connection of this process.
        #[serde(default)]
        agent: Option<AgentId>,
        /// Random id that is generated when the process begins, and the same on all of its connections: a process that
        /// names an agent and does not know this is another one.
        #[serde(default)]
        instance: Option<String>,
        /// Maximum number of phases it executes at a time.
        concurrency: u32,
        /// The engines that it has without a download.
        #[serde(default)]
        engines: Vec<EngineRequest>,
        /// Phases it is executing: a connection may break while phases go on.
        #[serde(default)]
        running: Vec<PhaseAttempt>,
        /// It takes one phase and leaves.
        #[serde(default)]
        once: bool,
    },
    /// Sent every few seconds. `number` goes up by one each time within a process.
    Heartbeat { number: u64, running: Vec<PhaseAttempt>, draining: bool },
    /// It takes no more work, finishes what it has and leaves.
    Draining,
    /// The last message: nothing is running any more.
    Goodbye,
}

/// Message of a server.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, Debug)]
#[serde(tag = "type", rename_all = "kebab-case")]
pub enum FromServer {
    /// The answer to [`FromAgent::Hello`].
    Welcome {
        agent: AgentId,
        /// Lease of phases after the last heartbeat that the server has published. An agent stops its processes before
        /// it ends.
        lease_milliseconds: u64,
        /// Heartbeat interval.
        heartbeat_milliseconds: u64,
        /// Phases that the agent said it runs and that are no longer its own: it must stop them at once, and write
        /// nothing more for them.
        #[serde(default)]
        lost: Vec<PhaseAttempt>,
    },
    /// The answer to [`FromAgent::Hello`] of an agent that may not stay. It should not try again by itself, unless
    /// the refusal says so.
    Refused { reason: Refusal, detail: String },
    /// All servers can know of this heartbeat and those before it: the lease counts from when it was sent.
    Published { number: u64 },
    /// A phase that is the agent's from now on.
    Execute(Box<Job>),
    /// Stop a phase: by an interrupt, or by force.
    Cancel { phase: PhaseAttempt, force: bool },
    /// A phase is no longer the agent's: stop it by force, and write nothing more for it.
    Lost { phase: PhaseAttempt },
}

/// Reason why an agent is refused.
#[derive(Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Debug)]
#[serde(rename_all = "kebab-case")]
pub enum Refusal {
    /// The token is not, or no longer, a pool's.
    Unauthorized,
    /// It speaks a protocol that this server does not.
    ProtocolTooOld,
    /// The agent that it says it is, is another process. It may come again as a new one.
    AlreadyConnected,
    /// The server is stopping: try again, perhaps elsewhere.
    Stopping,
}
