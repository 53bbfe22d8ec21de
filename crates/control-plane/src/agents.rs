//! Agents of pools, as the ledger knows them: that they came, and that they left. Whether one is there at the moment
//! is heard, not written: see `presence`.

use taco_domain::agent::Agent;
use taco_domain::id::{AgentId, AgentPoolId, OrganizationId};
use taco_domain::permission::Actor;

use crate::caller::Caller;
use crate::control_plane::{ControlPlane, OpenOrganization};
use crate::error::Error;

const WHAT: &str = "agent";

/// An agent that may execute its pool's phases.
#[derive(Clone)]
pub struct ConnectedAgent {
    pub agent: Agent,
    pub open: OpenOrganization,
}

impl ControlPlane {
    /// Lets an agent in, with its pool's token. `known` is its id from an earlier connection of the same process.
    pub async fn connect_agent(
        &self,
        caller: &Caller,
        known: Option<AgentId>,
        name: &str,
        version: &str,
    ) -> Result<ConnectedAgent, Error> {
        let (organization, pool) = pool_of(caller)?;
        let open = self.open_organization(&caller.site, organization).await?;
        let fresh = Agent {
            id: AgentId::at_home(organization.home(), self.random()),
            pool,
            name: name.chars().filter(|character| !character.is_control()).take(90).collect(),
            version: version.chars().take(40).collect(),
            address: caller.request.from.clone(),
            registered_at: self.now(),
            exited_at: None,
        };
        let agent = open
            .commit(caller.intent("agent.connect"), move |tx| {
                let state = tx.state();
                if !state.agent_pools.contains(&pool) {
                    return Err(Error::Unauthorized("the agent's pool was deleted".to_owned()));
                }
                let before = known.and_then(|id| state.agents.get(&id)).filter(|agent| agent.pool == pool);
                let agent = match before {
                    Some(agent) => Agent { exited_at: None, ..agent.clone() },
                    None => fresh.clone(),
                };
                tx.put(&agent);
                Ok(agent)
            })
            .await?;
        Ok(ConnectedAgent { agent, open })
    }

    /// Notes that an agent has left for good.
    pub async fn agent_left(&self, open: &OpenOrganization, id: AgentId) -> Result<(), Error> {
        let now = self.now();
        open.commit(Self::own_intent("agent.leave"), move |tx| {
            let agent = tx.state().agents.get(&id).cloned().ok_or(Error::NotFound(WHAT))?;
            tx.put(&Agent { exited_at: Some(now), ..agent });
            Ok(())
        })
        .await
    }

    /// An id for an agent within this server.
    pub fn id_for_agent_within(&self) -> AgentId {
        AgentId::from_random(self.random())
    }
}

fn pool_of(caller: &Caller) -> Result<(OrganizationId, AgentPoolId), Error> {
    match caller.actor {
        Actor::AgentPool { organization, pool } => Ok((organization, pool)),
        _ => Err(Error::Unauthorized("agents connect with the token of an agent pool".to_owned())),
    }
}
