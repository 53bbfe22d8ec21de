//! Presence of agents: those connected at the moment, as servers hear them. It is not recorded in the ledger.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, PoisonError, RwLock};

use jiff::Timestamp;
use taco_domain::OrganizationState;
use taco_domain::agent::AgentPresence;
use taco_domain::engine::Engine;
use taco_domain::engine_version::check_version_exists;
use taco_domain::heartbeats::Heartbeats;
use taco_domain::id::AgentId;

use crate::error::Error;

/// By an engine's name, the versions that some agents have without a download.
pub type EnginesAtAgents = BTreeMap<String, BTreeSet<String>>;

/// The agents that any server hears, as far as this one knows. The servers' heartbeats fill it; clones share it.
#[derive(Clone, Default, Debug)]
pub struct Presence {
    agents: Arc<RwLock<Arc<[AgentPresence]>>>,
    /// When agents were last heard, also those that are gone by now.
    last_heard: Arc<RwLock<BTreeMap<AgentId, Heard>>>,
}

/// When an agent was heard.
#[derive(Clone, Copy, Debug)]
struct Heard {
    last: Timestamp,
    beats: Heartbeats,
}

/// So many agents that are gone are remembered by when they were last heard; the ones of longest ago are forgotten first.
const MAX_REMEMBERED: usize = 10_000;

impl Presence {
    pub fn set(&self, agents: Vec<AgentPresence>) {
        self.remember(&agents);
        *self.agents.write().unwrap_or_else(PoisonError::into_inner) = agents.into();
    }

    pub fn agents(&self) -> Arc<[AgentPresence]> {
        Arc::clone(&self.agents.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// When some server last heard an agent, also if it is gone; `None` if that was before this server started.
    pub fn last_heard(&self, agent: &AgentId) -> Option<Timestamp> {
        self.heard(agent).map(|heard| heard.last)
    }

    /// The minutes in which an agent was heard, as far as this server remembers.
    pub fn heartbeats(&self, agent: &AgentId) -> Option<Heartbeats> {
        self.heard(agent).map(|heard| heard.beats)
    }

    fn heard(&self, agent: &AgentId) -> Option<Heard> {
        self.last_heard.read().unwrap_or_else(PoisonError::into_inner).get(agent).copied()
    }

    fn remember(&self, agents: &[AgentPresence]) {
        let mut last_heard = self.last_heard.write().unwrap_or_else(PoisonError::into_inner);
        for (agent, at) in agents.iter().filter_map(|agent| Some((agent.agent, agent.last_heard_at?))) {
            let heard = last_heard.entry(agent).or_insert_with(|| Heard { last: at, beats: Heartbeats::new(at) });
            heard.last = at.max(heard.last);
            heard.beats.note(at);
        }
        if last_heard.len() > MAX_REMEMBERED {
            let mut by_time: Vec<(Timestamp, AgentId)> =
                last_heard.iter().map(|(agent, heard)| (heard.last, *agent)).collect();
            by_time.sort_unstable();
            by_time.truncate(last_heard.len() - MAX_REMEMBERED);
            for (_, agent) in by_time {
                last_heard.remove(&agent);
            }
        }
    }

    /// The engines of all agents, for the site's admins.
    pub fn engines(&self) -> EnginesAtAgents {
        engines_of(self.agents().iter())
    }

    /// The engines of the agents within servers, which everyone may know.
    pub fn engines_within_servers(&self) -> EnginesAtAgents {
        engines_of(self.agents().iter().filter(|agent| agent.pool.is_none()))
    }
}

fn engines_of<'a>(agents: impl Iterator<Item = &'a AgentPresence>) -> EnginesAtAgents {
    let mut engines = EnginesAtAgents::new();
    for engine in agents.flat_map(|agent| &agent.engines) {
        if let Some((name, version)) = engine.split_once(' ') {
            engines.entry(name.to_owned()).or_default().insert(version.to_owned());
        }
    }
    engines
}

/// Checks that a requested version can exist. A version that was set `before` is not checked again. Versions reported
/// by agents count for the organization that owns their pool, and for all organizations if the agents run within
/// servers.
pub(crate) fn check_version(
    engine: Engine,
    version: &str,
    before: &str,
    agents: &[AgentPresence],
    state: &OrganizationState,
) -> Result<(), Error> {
    if version == before {
        return Ok(());
    }
    let is_theirs = |agent: &&AgentPresence| agent.pool.is_none_or(|pool| state.agent_pools.contains(&pool));
    let at_agents = engines_of(agents.iter().filter(is_theirs));
    let of_engine = at_agents.get(&engine.to_string()).into_iter().flatten();
    Ok(check_version_exists(engine, version, of_engine.map(String::as_str))?)
}
