//! A process of an agent pool that executes phases. Those within servers belong to no organization and have no record.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use taco_tables::{Record, indexes, references};

use crate::engine_version::is_exact_version;
use crate::id::{AgentId, AgentPoolId};

#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, Debug)]
pub struct Agent {
    pub id: AgentId,
    pub pool: AgentPoolId,
    pub name: String,
    pub version: String,
    pub address: Option<String>,
    pub registered_at: Timestamp,
    /// Instance id that its process sends on each connection; older agents send none.
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
    /// True if the process that sends `instance` is this agent. The instance id is only in the memory of its process,
    /// so a process that sends a different one has the agent's id from somewhere it should not.
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

    references! {
        "pool": AgentPoolId, cascade(|agents, id| agents.by().pool.get(id));
    }
}

indexes! {
    pub struct AgentIndexes for Agent {
        pub pool: AgentPoolId => |agent| [agent.pool];
    }
}

/// The most phases that an agent executes at a time.
pub const MAX_AGENT_CONCURRENCY: u32 = 1000;
/// Bytes of an agent's name and of its version.
const MAX_NAME_BYTES: usize = 255;
const MAX_VERSION_BYTES: usize = 64;

/// Description that an agent sends of itself.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Introduction<'a> {
    pub name: &'a str,
    pub version: &'a str,
    /// The versions of its engines.
    pub engine_versions: Vec<&'a str>,
    /// Number of phases it reports as running.
    pub running: usize,
}

impl Introduction<'_> {
    /// Refuses what no agent of ours says. The error is one for the agent's people.
    pub fn check(&self) -> Result<(), String> {
        let limit = |what: &str, length: usize, most: usize| match length <= most {
            true => Ok(()),
            false => Err(format!("the agent's {what} has {length} bytes; at most {most} are allowed")),
        };
        limit("name", self.name.len(), MAX_NAME_BYTES)?;
        limit("version", self.version.len(), MAX_VERSION_BYTES)?;
        if let Some(wrong) = self.engine_versions.iter().find(|version| !is_exact_version(version)) {
            let shown: String = wrong.chars().filter(|letter| !letter.is_control()).take(40).collect();
            return Err(format!("the agent has an engine of the version {shown:?}; a version is one such as 1.11.4"));
        }
        match self.running <= MAX_AGENT_CONCURRENCY as usize * 2 {
            true => Ok(()),
            false => Err(format!("the agent says that it executes {} phases", self.running)),
        }
    }
}

/// Current status of an agent.
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
    /// `None` for one within a server, which takes everything that needs no pool.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_agent_says_no_more_of_itself_than_it_needs() {
        let fair =
            Introduction { name: "rack", version: "0.1.0", engine_versions: vec!["1.11.4", "1.12.0-rc1"], running: 3 };
        fair.check().expect("it is fair");
        let long = "x".repeat(300);
        for (unfair, words) in [
            (Introduction { name: &long, ..fair.clone() }, "the agent's name has 300 bytes; at most 255"),
            (Introduction { version: &long, ..fair.clone() }, "the agent's version has 300 bytes; at most 64"),
            (Introduction { engine_versions: vec!["1.0.0", &long], ..fair.clone() }, "a version is one such as 1.11.4"),
            (Introduction { engine_versions: vec!["1.0.0<script>"], ..fair.clone() }, "1.0.0<script>"),
            (Introduction { running: 5_000, ..fair.clone() }, "executes 5000 phases"),
        ] {
            let refusal = unfair.check().expect_err("it is unfair");
            assert!(refusal.contains(words) && refusal.len() < 200, "{refusal}");
        }
    }
}
