//! Agents of pools, as the ledger knows them: that they came, and that they left. Whether one is there at the moment
//! is heard, not written: see `presence`.

pub(crate) mod agent_pools;
pub(crate) mod presence;

use std::cmp::Reverse;

use jiff::{SignedDuration, Timestamp};
use taco_boxed::boxed;
use taco_domain::OrganizationState;
use taco_domain::agent::{Agent, AgentStatus};
use taco_domain::id::{AgentId, AgentPoolId, TokenId};
use taco_domain::permission::{Action, Actor};
use taco_domain::token::{TokenHolder, TokenText};
use taco_tables::Record as _;

use crate::caller::{Caller, RequestInfo};
use crate::control_plane::{ControlPlane, OrganizationSnapshot};
use crate::error::Error;
use crate::page::{Listed, PageRequest};
use crate::presence::Presence;
use crate::privileged::Privileged;

const WHAT: &str = Agent::NOUN;

/// Someone who comes with a pool's token.
#[derive(Clone)]
pub struct AgentCaller {
    caller: Caller,
    pool: AgentPoolId,
    token: TokenId,
    org: OrganizationSnapshot,
}

/// An agent that may execute its pool's phases.
#[derive(Clone)]
pub struct ConnectedAgent {
    pub agent: Agent,
    /// The token with which it came. It takes no more phases once that is gone.
    pub token: TokenId,
    pub org: OrganizationSnapshot,
}

#[boxed]
impl ControlPlane {
    /// The agents that are there.
    pub fn presence(&self) -> &Presence {
        &self.shared.presence
    }

    /// Recognises an agent by its pool's token.
    pub async fn recognise_agent(&self, text: &str, request: RequestInfo) -> Result<AgentCaller, Error> {
        let caller = self.authenticate(text, request).await?;
        let foreign = || Error::Unauthorized("agents connect with the token of an agent pool".to_owned());
        let Actor::AgentPool { organization, pool } = caller.actor else { return Err(foreign()) };
        let org = self.open_organization(&caller.site, organization).await?;
        let text: TokenText = text.parse().map_err(|_| foreign())?;
        let token = org
            .state
            .tokens
            .by()
            .hash
            .first(&text.hash(self.hash_key()))
            .map(|record| record.id)
            .ok_or_else(revoked)?;
        Ok(AgentCaller { caller, pool, token, org })
    }

    /// Lets an agent in, with its pool's token. `known` is its id from an earlier connection of the same process, which
    /// said the same `instance` then.
    pub async fn connect_agent(
        &self,
        caller: &AgentCaller,
        known: Option<AgentId>,
        instance: Option<&str>,
        name: &str,
        version: &str,
    ) -> Result<ConnectedAgent, Error> {
        let AgentCaller { caller, pool, token, org } = caller.clone();
        let instance: Option<String> = instance.map(|instance| instance.chars().take(64).collect());
        let now = self.now();
        let fresh = Agent {
            id: AgentId::within(org.id().organization_prefix(), self.random()),
            pool,
            name: name.chars().filter(|character| !character.is_control()).take(90).collect(),
            version: version.chars().take(40).collect(),
            address: caller.request.from.clone(),
            registered_at: now,
            instance,
            exited_at: None,
            lost_at: None,
        };
        let agent = org
            .commit(caller.intent("agent.connect"), move |tx| {
                let state = tx.state();
                check_agent(state, pool, token, now)?;
                let before = known.and_then(|id| state.agents.get(&id)).filter(|agent| agent.pool == pool);
                let agent = match before {
                    Some(agent) if !agent.is_process(fresh.instance.as_deref()) => return Err(taken(agent)),
                    Some(agent) => {
                        Agent { instance: fresh.instance.clone(), exited_at: None, lost_at: None, ..agent.clone() }
                    }
                    None => fresh.clone(),
                };
                tx.put(&agent);
                Ok(agent)
            })
            .await?;
        Ok(ConnectedAgent { agent, token, org })
    }
}

/// An agent as a door shows it.
#[derive(Clone)]
pub struct AgentView {
    pub agent: Agent,
    pub status: AgentStatus,
    pub last_heard_at: Option<Timestamp>,
}

/// An agent that was not heard for this long is doubtful. Another server's heartbeat, which lists its agents, can be
/// one round of 20 seconds old when this server reads it, and is valid for one more.
const SILENT_AGENT_TIMEOUT: SignedDuration = SignedDuration::from_secs(45);

/// Agents as people see them.
#[boxed]
impl ControlPlane {
    /// A pool's agents, the newest first.
    pub async fn agents(
        &self,
        caller: &Caller,
        pool: AgentPoolId,
        page: PageRequest,
    ) -> Result<Listed<AgentView>, Error> {
        let view = self.agent_pool(caller, pool).await?;
        let agents = &view.org.state.agents;
        let mut found: Vec<&Agent> = agents.by().pool.get(&pool).collect();
        found.sort_by_key(|agent| (Reverse(agent.registered_at), agent.id));
        Ok(Listed::from_all(found, page).map(|agent| self.agent_view(agent)))
    }

    pub async fn agent(&self, caller: &Caller, id: AgentId) -> Result<AgentView, Error> {
        let org = self.authorized_organization(caller, id.organization_prefix(), WHAT).await?;
        caller.require(Action::ReadDirectory, org.resource(), WHAT)?;
        let agent = org.state.agents.get(&id).ok_or(Error::NotFound(WHAT))?;
        Ok(self.agent_view(agent))
    }

    /// Number of a pool's agents that are connected.
    pub fn agents_present(&self, pool: AgentPoolId) -> usize {
        self.presence().agents().iter().filter(|agent| agent.pool == Some(pool)).count()
    }

    fn agent_view(&self, agent: &Agent) -> AgentView {
        let present = self.presence().agents().iter().find(|present| present.agent == agent.id).cloned();
        let last_heard_at = present.as_ref().and_then(|present| present.last_heard_at);
        let silent = last_heard_at.is_some_and(|heard| self.now().duration_since(heard) > SILENT_AGENT_TIMEOUT);
        let status = match present.as_ref().filter(|_| !silent) {
            _ if agent.exited_at.is_some() => AgentStatus::Exited,
            None if agent.lost_at.is_some() => AgentStatus::Errored,
            None => AgentStatus::Unknown,
            Some(present) if present.busy > 0 => AgentStatus::Busy,
            Some(_) => AgentStatus::Idle,
        };
        // One that is gone was heard when it left, or as this server remembers; after a restart all that is known is when
        // it was given up or came.
        let remembered = agent.exited_at.or_else(|| self.presence().last_heard(&agent.id));
        let last_heard_at = last_heard_at.or(remembered).or(agent.lost_at).unwrap_or(agent.registered_at);
        AgentView { agent: agent.clone(), status, last_heard_at: Some(last_heard_at) }
    }
}

/// Verbs without permission checks, for the server itself.
#[boxed]
impl Privileged {
    /// Notes that an agent has left for good.
    pub async fn agent_left(&self, org: &OrganizationSnapshot, id: AgentId) -> Result<(), Error> {
        let now = self.now();
        org.commit(ControlPlane::own_intent("agent.leave"), move |tx| {
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

    /// Reason why an agent with this token may not stay connected; `None` while it may. It makes no request to the
    /// bucket: the rights are checked again when the agent is given a phase.
    pub fn agent_refusal(&self, org: &OrganizationSnapshot, pool: AgentPoolId, token: TokenId) -> Option<Error> {
        if !self.shared.site.last_seen().organizations.contains(&org.id()) {
            return Some(Error::Unauthorized("the agent's organization was deleted".to_owned()));
        }
        check_agent(&org.last_seen(), pool, token, self.now()).err()
    }
}

fn taken(agent: &Agent) -> Error {
    Error::Conflict(format!(
        "{} is the id of agent {}, which is another process. Start this agent without an id: it gets its own",
        agent.id, agent.name
    ))
}

/// Checks that agents of a pool with this token may go on: both must exist, and the token must not have expired.
pub(crate) fn check_agent(
    state: &OrganizationState,
    pool: AgentPoolId,
    token: TokenId,
    now: Timestamp,
) -> Result<(), Error> {
    if !state.agent_pools.contains(&pool) {
        return Err(Error::Unauthorized("the agent's pool was deleted".to_owned()));
    }
    let held = state.tokens.get(&token).filter(|held| held.holder == TokenHolder::AgentPool(pool));
    held.ok_or_else(revoked)?.check(now).map_err(|expired| Error::Unauthorized(expired.to_string()))
}

fn revoked() -> Error {
    Error::Unauthorized("the agent's token was revoked".to_owned())
}
