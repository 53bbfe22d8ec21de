//! Which agents are there at the moment. Not the ledger's business: it is heard, not written.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, PoisonError, RwLock};

use taco_domain::agent::AgentPresence;

use crate::control_plane::ControlPlane;

/// The agents that any server hears, as far as this one knows. Whoever hears them fills it; clones share it.
#[derive(Clone, Default, Debug)]
pub struct Presence {
    agents: Arc<RwLock<Arc<[AgentPresence]>>>,
}

impl Presence {
    pub fn set(&self, agents: Vec<AgentPresence>) {
        *self.agents.write().unwrap_or_else(PoisonError::into_inner) = agents.into();
    }

    pub fn agents(&self) -> Arc<[AgentPresence]> {
        Arc::clone(&self.agents.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// By an engine's name, the versions that any agent has without a download.
    pub fn engines(&self) -> BTreeMap<String, BTreeSet<String>> {
        let mut engines: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        for engine in self.agents().iter().flat_map(|agent| &agent.engines) {
            if let Some((name, version)) = engine.split_once(' ') {
                engines.entry(name.to_owned()).or_default().insert(version.to_owned());
            }
        }
        engines
    }
}

impl ControlPlane {
    /// The agents that are there.
    pub fn presence(&self) -> &Presence {
        &self.shared.presence
    }
}
