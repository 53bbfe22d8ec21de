//! Which agents are there at the moment. Not the ledger's business: it is heard, not written.

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
}

impl ControlPlane {
    /// The agents that are there.
    pub fn presence(&self) -> &Presence {
        &self.shared.presence
    }
}
