//! The agents that are connected to this server.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use jiff::Timestamp;
use taco_control_plane::{Error, OrganizationSnapshot, PhaseRequest, TakenPhase};
use taco_domain::agent::AgentPresence;
use taco_domain::global_queue::{AgentScope, QueuePick};
use taco_domain::id::{AgentId, AgentPoolId, TokenId};
use taco_domain::phase::Executor;
use taco_domain::phase_attempt::PhaseAttempt;
use tokio::sync::{Notify, mpsc};
use tokio::time::Instant;

/// Message of the scheduler to an agent.
#[derive(Clone)]
pub enum ToAgent {
    Execute(Box<TakenPhase>),
    Cancel {
        attempt: PhaseAttempt,
        force: bool,
    },
    /// The phase is no longer the agent's.
    Lost {
        attempt: PhaseAttempt,
    },
    /// All servers can know of this heartbeat.
    Published {
        number: u64,
    },
    /// The agent may not stay.
    Refused {
        error: Error,
    },
    /// The server is stopping: the agent finds another one, or this one when it is back.
    Dismissed,
}

/// An agent that wants to work.
#[derive(Clone)]
pub struct NewAgent {
    pub id: AgentId,
    pub name: String,
    pub version: String,
    pub reach: AgentScope,
    /// Its organization; `None` for one within a server, which works for all.
    pub organization: Option<OrganizationSnapshot>,
    /// The token of its pool with which it came.
    pub token: Option<TokenId>,
    pub concurrency: u32,
    pub engines: Vec<String>,
    /// It takes one phase and no more.
    pub once: bool,
    /// Phases it is executing already.
    pub running: Vec<PhaseAttempt>,
}

pub(crate) struct Connected {
    pub(crate) new: NewAgent,
    sender: mpsc::UnboundedSender<ToAgent>,
    /// Number of this connection, because an agent may come back before its old connection is seen to be dead.
    connection: u64,
    running: BTreeSet<PhaseAttempt>,
    /// Phases it was given and has not reported yet: a heartbeat may have been on its way.
    sent_unconfirmed: BTreeSet<PhaseAttempt>,
    heartbeat: u64,
    heard_at: Timestamp,
    /// The same by this server's own clock, to reckon with.
    heard: Instant,
    draining: bool,
    taken_any: bool,
    /// It may not stay: it is given nothing, and goes when it has nothing left to execute.
    refused: Option<Error>,
    /// Cancels that it was told, so that it is told once.
    cancels_sent: BTreeSet<(PhaseAttempt, bool)>,
    /// Phases that it executes according to the ledger but does not report: since when, and its heartbeat then.
    unreported_since: BTreeMap<PhaseAttempt, (Instant, u64)>,
}

impl Connected {
    /// One that was not heard for `max_silence` may be gone, though nothing has ended its connection.
    fn free(&self, max_silence: Duration, now: Instant) -> bool {
        let has_had_its_one = self.new.once && self.taken_any;
        let is_heard = now.saturating_duration_since(self.heard) <= max_silence;
        is_heard && !self.draining && self.refused.is_none() && !has_had_its_one && self.busy() < self.new.concurrency
    }

    fn busy(&self) -> u32 {
        (self.running.len() + self.sent_unconfirmed.len()) as u32
    }

    fn forget(&mut self, attempt: &PhaseAttempt) {
        self.running.remove(attempt);
        self.sent_unconfirmed.remove(attempt);
    }

    /// The one within a server stays for as long as the server does.
    fn disconnect(&self) {
        if !self.new.reach.is_within() {
            let _ = self.sender.send(ToAgent::Dismissed);
        }
    }

    fn executor(&self) -> Executor {
        Executor { agent: self.new.id, agent_name: self.new.name.clone(), pool: self.new.reach.pool() }
    }
}

/// An agent with room for phases.
#[derive(Clone)]
pub(crate) struct FreeAgent {
    pub(crate) taker: PhaseRequest,
    pub(crate) organization: Option<OrganizationSnapshot>,
    pub(crate) room: u32,
}

/// All agents of this server.
#[derive(Clone, Default)]
pub(crate) struct Agents {
    connected: Arc<Mutex<BTreeMap<AgentId, Connected>>>,
    pub(crate) changed: Arc<Notify>,
    /// Lets the other servers know soon.
    pub(crate) publish: Arc<Notify>,
    /// Held while phases are handed out, from the look at who is free until all have what was taken for them. How many
    /// were handed out before.
    pub(crate) turn: Arc<tokio::sync::Mutex<u64>>,
    /// Agents that come back: what they have is being found out. How often each does it at the moment.
    greeting: Arc<Mutex<BTreeMap<AgentId, u32>>>,
    /// The server is stopping.
    leaving: Arc<AtomicBool>,
}

/// An agent that comes back is given nothing before this is dropped. Over its old connection, which may be dead, it
/// would be given something that is never heard of again.
pub struct ReconnectGuard {
    agents: Agents,
    id: AgentId,
}

/// A connected agent's end. Dropping it ends the connection; what the agent executes stays its own for its lease.
pub struct AgentLink {
    agents: Agents,
    id: AgentId,
    connection: u64,
    pub receiver: mpsc::UnboundedReceiver<ToAgent>,
}

impl Agents {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<AgentId, Connected>> {
        self.connected.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes an agent in. An earlier connection of the same agent is replaced.
    pub(crate) fn connect(&self, new: NewAgent, now: Timestamp) -> AgentLink {
        let (sender, receiver) = mpsc::unbounded_channel();
        let id = new.id;
        let mut connected = self.lock();
        let connection = connected.get(&id).map_or(1, |old| old.connection + 1);
        let running = new.running.iter().copied().collect();
        let heartbeat = connected.get(&id).map_or(0, |old| old.heartbeat);
        let agent = Connected {
            taken_any: !new.running.is_empty(),
            new,
            sender,
            connection,
            running,
            sent_unconfirmed: BTreeSet::new(),
            heartbeat,
            heard_at: now,
            heard: Instant::now(),
            draining: false,
            refused: None,
            cancels_sent: BTreeSet::new(),
            unreported_since: BTreeMap::new(),
        };
        if self.leaving.load(Ordering::Relaxed) {
            agent.disconnect();
        }
        connected.insert(id, agent);
        drop(connected);
        self.changed.notify_one();
        self.publish.notify_one();
        AgentLink { agents: self.clone(), id, connection, receiver }
    }

    /// Lets an agent come back: see [`ReconnectGuard`].
    pub(crate) async fn begin_reconnect(&self, id: AgentId) -> ReconnectGuard {
        let greeting = ReconnectGuard { agents: self.clone(), id };
        *greeting.list().entry(id).or_default() += 1;
        // A task that is handing out now may not have seen it.
        drop(self.turn.lock().await);
        greeting
    }

    /// True when the server is stopping.
    pub(crate) fn is_leaving(&self) -> bool {
        self.leaving.load(Ordering::Relaxed)
    }

    /// Stops handing out phases from now on.
    pub(crate) fn stop_handing_out(&self) {
        self.leaving.store(true, Ordering::Relaxed);
    }

    /// Ends the connections of all agents that can go elsewhere.
    pub(crate) fn disconnect_all(&self) {
        self.lock().values().for_each(Connected::disconnect);
    }

    /// The agents that can take a phase now, and were heard within `max_silence`.
    pub(crate) fn free(&self, max_silence: Duration, now: Instant) -> Vec<FreeAgent> {
        if self.leaving.load(Ordering::Relaxed) {
            return Vec::new();
        }
        let greeting = self.greeting.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let connected = self.lock();
        let free = connected.values().filter(|agent| agent.free(max_silence, now));
        let free = free.filter(|agent| !greeting.contains_key(&agent.new.id)).map(|agent| FreeAgent {
            taker: PhaseRequest {
                reach: agent.new.reach,
                executor: agent.executor(),
                token: agent.new.token,
                turn: QueuePick::Head,
            },
            organization: agent.new.organization.clone(),
            room: if agent.new.once { 1 } else { agent.new.concurrency - agent.busy() },
        });
        free.collect()
    }

    /// Hands a phase to an agent. False if it has gone meanwhile.
    pub(crate) fn send_phase(&self, id: AgentId, phase: TakenPhase) -> bool {
        let mut connected = self.lock();
        let Some(agent) = connected.get_mut(&id) else { return false };
        agent.sent_unconfirmed.insert(phase.attempt);
        agent.taken_any = true;
        agent.sender.send(ToAgent::Execute(Box::new(phase))).is_ok()
    }

    /// Tells an agent of this server to stop a phase, once.
    pub(crate) fn cancel(&self, id: AgentId, attempt: PhaseAttempt, force: bool) {
        let mut connected = self.lock();
        if let Some(agent) = connected.get_mut(&id)
            && agent.cancels_sent.insert((attempt, force))
        {
            let _ = agent.sender.send(ToAgent::Cancel { attempt, force });
        }
    }

    /// Takes a phase away from an agent of this server.
    pub(crate) fn revoke_phase(&self, id: AgentId, attempt: PhaseAttempt) {
        if let Some(agent) = self.lock().get_mut(&id) {
            agent.forget(&attempt);
            let _ = agent.sender.send(ToAgent::Lost { attempt });
        }
    }

    /// A phase is over: its agent has room for another, before its next heartbeat says so.
    pub(crate) fn finished(&self, attempt: &PhaseAttempt) {
        self.lock().values_mut().for_each(|agent| agent.forget(attempt));
        self.changed.notify_one();
    }

    /// An agent does not execute this any more.
    pub(crate) fn forget(&self, id: AgentId, attempt: &PhaseAttempt) {
        if let Some(agent) = self.lock().get_mut(&id) {
            agent.forget(attempt);
        }
    }

    /// Phases that each agent is thought to execute.
    pub(crate) fn occupied(&self) -> Vec<(AgentId, PhaseAttempt)> {
        let connected = self.lock();
        let attempts = |agent: &Connected| agent.running.union(&agent.sent_unconfirmed).copied().collect::<Vec<_>>();
        connected.iter().flat_map(|(id, agent)| attempts(agent).into_iter().map(|attempt| (*id, attempt))).collect()
    }

    /// Attempts that an agent executes according to the ledger but has not reported for `max_silence`, though it was
    /// heard; and its newest heartbeat.
    pub(crate) fn unknown_to(
        &self,
        id: AgentId,
        said: &[PhaseAttempt],
        max_silence: Duration,
        now: Instant,
    ) -> (u64, Vec<PhaseAttempt>) {
        let mut connected = self.lock();
        let (Some(agent), Some(first)) = (connected.get_mut(&id), said.first()) else { return (0, Vec::new()) };
        // A phase it was given may never have arrived, or be over by now without a message.
        let unknown = said.iter().filter(|attempt| !agent.running.contains(attempt));
        let unknown: Vec<PhaseAttempt> = unknown.copied().collect();
        // Those of other organizations are not in question.
        let prefix = first.run.organization_prefix();
        agent.unreported_since.retain(|known, _| known.run.organization_prefix() != prefix || unknown.contains(known));
        let heartbeat = agent.heartbeat;
        let is_due = |attempt: &PhaseAttempt| {
            let (since, then) = *agent.unreported_since.entry(*attempt).or_insert((now, heartbeat));
            heartbeat >= then + 2 && now >= since + max_silence
        };
        (heartbeat, unknown.into_iter().filter(is_due).collect())
    }

    /// The agents that came with a pool's token: with which, and for which organization.
    pub(crate) fn with_tokens(&self) -> Vec<(AgentId, OrganizationSnapshot, AgentPoolId, TokenId)> {
        let connected = self.lock();
        let with_token = |agent: &Connected| {
            let NewAgent { id, organization, reach, token, .. } = &agent.new;
            Some((*id, organization.clone()?, reach.pool()?, (*token)?))
        };
        connected.values().filter_map(with_token).collect()
    }

    /// Lets an agent go that may not stay. What it executes it may end: that has a token of its own, and an apply that
    /// is cut off leaves an unknown outcome.
    pub(crate) fn refuse(&self, id: AgentId, error: Error) {
        let mut connected = self.lock();
        let Some(agent) = connected.get_mut(&id) else { return };
        let error = agent.refused.get_or_insert(error).clone();
        if agent.busy() == 0 {
            let _ = agent.sender.send(ToAgent::Refused { error });
        }
    }

    pub(crate) fn ids(&self) -> Vec<AgentId> {
        self.lock().keys().copied().collect()
    }

    /// Tells the agents that their heartbeats are known.
    pub(crate) fn published(&self, agents: &[AgentPresence]) {
        let connected = self.lock();
        for presence in agents {
            if let Some(agent) = connected.get(&presence.agent) {
                let _ = agent.sender.send(ToAgent::Published { number: presence.heartbeat });
            }
        }
    }

    /// Agents that this server hears.
    pub(crate) fn presence(&self) -> Vec<AgentPresence> {
        let connected = self.lock();
        let presence = connected.values().map(|agent| AgentPresence {
            agent: agent.new.id,
            name: agent.new.name.clone(),
            pool: agent.new.reach.pool(),
            heartbeat: agent.heartbeat,
            concurrency: agent.new.concurrency,
            busy: agent.busy(),
            draining: agent.draining || agent.refused.is_some(),
            engines: agent.new.engines.clone(),
            version: agent.new.version.clone(),
            last_heard_at: Some(agent.heard_at),
        });
        presence.collect()
    }

    pub(crate) fn any_busy(&self) -> bool {
        self.lock().values().any(|agent| agent.busy() > 0)
    }
}

impl ReconnectGuard {
    fn list(&self) -> MutexGuard<'_, BTreeMap<AgentId, u32>> {
        self.agents.greeting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for ReconnectGuard {
    fn drop(&mut self) {
        let mut list = self.list();
        if let Some(times) = list.get_mut(&self.id) {
            *times -= 1;
        }
        list.retain(|_, times| *times > 0);
        drop(list);
        self.agents.changed.notify_one();
    }
}

impl AgentLink {
    /// Notes a heartbeat, with what the agent is executing.
    pub fn heard(&self, number: u64, running: impl IntoIterator<Item = PhaseAttempt>, draining: bool, now: Timestamp) {
        self.with(|agent| {
            agent.heartbeat = agent.heartbeat.max(number);
            agent.heard_at = now;
            agent.heard = Instant::now();
            agent.draining |= draining;
            agent.running = running.into_iter().collect();
            agent.sent_unconfirmed.retain(|given| !agent.running.contains(given));
        });
        self.agents.changed.notify_one();
    }

    /// The agent takes no more phases.
    pub fn drains(&self) {
        self.with(|agent| agent.draining = true);
        self.agents.changed.notify_one();
    }

    fn with<T>(&self, change: impl FnOnce(&mut Connected) -> T) -> Option<T> {
        let mut connected = self.agents.lock();
        connected.get_mut(&self.id).filter(|agent| agent.connection == self.connection).map(change)
    }
}

impl Drop for AgentLink {
    fn drop(&mut self) {
        let mut connected = self.agents.lock();
        if connected.get(&self.id).is_some_and(|agent| agent.connection == self.connection) {
            connected.remove(&self.id);
        }
        drop(connected);
        self.agents.changed.notify_one();
        // Peers should not count on it any more.
        self.agents.publish.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const REPORT_TIMEOUT: Duration = Duration::from_secs(10);

    fn agent(id: AgentId, reach: AgentScope) -> NewAgent {
        NewAgent {
            id,
            name: "one".to_owned(),
            version: String::new(),
            reach,
            organization: None,
            token: None,
            concurrency: 1,
            engines: Vec::new(),
            once: false,
            running: Vec::new(),
        }
    }

    fn free(agents: &Agents, now: Instant) -> usize {
        agents.free(REPORT_TIMEOUT, now).len()
    }

    #[tokio::test(start_paused = true)]
    async fn an_agent_that_is_not_heard_is_given_nothing() {
        let agents = Agents::default();
        let link =
            agents.connect(agent(AgentId::from_random([1; 16]), AgentScope::WithinServer), Timestamp::UNIX_EPOCH);
        assert_eq!(free(&agents, Instant::now()), 1);
        assert_eq!(free(&agents, Instant::now() + REPORT_TIMEOUT), 1);
        tokio::time::advance(REPORT_TIMEOUT * 2).await;
        assert_eq!(free(&agents, Instant::now()), 0, "its connection is still there, but it may not be");
        link.heard(1, [], false, Timestamp::UNIX_EPOCH);
        assert_eq!(free(&agents, Instant::now()), 1);
    }

    #[tokio::test]
    async fn an_agent_that_comes_back_is_given_nothing_over_its_old_connection() {
        let (agents, id) = (Agents::default(), AgentId::from_random([1; 16]));
        let _old = agents.connect(agent(id, AgentScope::WithinServer), Timestamp::UNIX_EPOCH);
        // Something is being handed out at the moment.
        let turn = agents.turn.clone().lock_owned().await;
        let mut coming = Box::pin(agents.begin_reconnect(id));
        assert!(futures::poll!(&mut coming).is_pending(), "it waits for what is on its way to it");
        assert_eq!(free(&agents, Instant::now()), 0);
        drop(turn);
        let greeting = coming.await;
        let again = agents.begin_reconnect(id).await;
        drop(greeting);
        assert_eq!(free(&agents, Instant::now()), 0, "it tries twice at once");
        let _new = agents.connect(agent(id, AgentScope::WithinServer), Timestamp::UNIX_EPOCH);
        drop(again);
        assert_eq!(free(&agents, Instant::now()), 1);
    }

    #[tokio::test]
    async fn a_server_that_stops_dismisses_its_agents_but_not_its_own() {
        let agents = Agents::default();
        let elsewhere = AgentScope::Pool(AgentPoolId::from_random([3; 16]));
        let connect =
            |id: u8, reach| agents.connect(agent(AgentId::from_random([id; 16]), reach), Timestamp::UNIX_EPOCH);
        let (mut remote, mut own) = (connect(1, elsewhere), connect(2, AgentScope::WithinServer));
        agents.stop_handing_out();
        assert_eq!(free(&agents, Instant::now()), 0);
        assert!(remote.receiver.try_recv().is_err(), "what is on its way to it comes first");
        agents.disconnect_all();
        assert!(matches!(remote.receiver.try_recv(), Ok(ToAgent::Dismissed)));
        assert!(own.receiver.try_recv().is_err());
        let mut late = connect(3, elsewhere);
        assert!(matches!(late.receiver.try_recv(), Ok(ToAgent::Dismissed)));
    }
}
