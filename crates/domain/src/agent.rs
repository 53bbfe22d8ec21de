//! A process of an agent pool that executes phases. Those within servers belong to no organization and have no record.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use taco_tables::{Record, indexes};

use crate::id::{AgentId, AgentPoolId};

#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, Debug)]
pub struct Agent {
    pub id: AgentId,
    pub pool: AgentPoolId,
    pub name: String,
    pub version: String,
    pub address: Option<String>,
    pub registered_at: Timestamp,
    /// What its process says on each connection; older agents say nothing.
    #[serde(default)]
    pub instance: Option<String>,
    /// It said goodbye.
    #[serde(default)]
    pub exited_at: Option<Timestamp>,
    /// It was not heard for so long that a phase was taken from it.
    #[serde(default)]
    pub lost_at: Option<Timestamp>,
}

impl Agent {
    /// Whether whoever says `instance` is this agent. Its id lies in the memory of its process and nowhere else, so a
    /// process that says something else has the id from somewhere it should not.
    pub fn is_process(&self, instance: Option<&str>) -> bool {
        self.instance.as_deref().is_none_or(|own| Some(own) == instance)
    }
}

impl Record for Agent {
    const KIND: &'static str = "agent";
    type Id = AgentId;
    type Indexes = AgentIndexes;

    fn id(&self) -> &AgentId {
        &self.id
    }
}

indexes! {
    pub struct AgentIndexes for Agent {
        pub pool: AgentPoolId => |agent| [agent.pool];
    }
}

/// What is known of an agent at the moment.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, Debug)]
#[serde(rename_all = "kebab-case")]
pub enum AgentStatus {
    Idle,
    Busy,
    /// It was not heard for a while.
    Unknown,
    /// It was not heard for so long that it lost its phases.
    Errored,
    /// It said goodbye.
    Exited,
}

/// An agent that some server hears.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, Debug)]
pub struct AgentPresence {
    pub agent: AgentId,
    pub name: String,
    /// `None` for one within a server, which takes whatever needs no pool.
    pub pool: Option<AgentPoolId>,
    /// The newest heartbeat that was heard.
    pub heartbeat: u64,
    pub concurrency: u32,
    pub busy: u32,
    #[serde(default)]
    pub draining: bool,
    /// The engines that it has without a download, for instance `terraform 1.11.4`.
    #[serde(default)]
    pub engines: Vec<String>,
    #[serde(default)]
    pub version: String,
    #[serde(default)]
    pub last_heard_at: Option<Timestamp>,
}
