//! Agents that execute something else than the ledger says. Both can happen: a server gave up on an agent that is well,
//! or the commit that gave an agent a phase, or the message that told it, got lost on the way.

use taco_domain::id::AgentId;
use taco_domain::phase_attempt::PhaseAttempt;
use tokio::time::Instant;

use crate::cancels::attempt_of;
use crate::scheduler::Scheduler;

impl Scheduler {
    /// Stops what is no longer an agent's, and gives up what an agent, asked for long enough, does not say it has.
    pub(crate) async fn reconcile_agents(&self, now: Instant) {
        for organization in self.served() {
            let state = self.control_plane.last_seen(&organization);
            for (id, attempt) in self.agents.occupied() {
                if state.runs.get(&attempt.run).is_some_and(|run| run.is_lost_attempt(attempt)) {
                    self.agents.revoke_phase(id, attempt);
                }
            }
            for id in self.agents.ids() {
                let runs = state.runs.by().executing.get(&id);
                let said: Vec<PhaseAttempt> = runs.filter_map(attempt_of).collect();
                let (heartbeat, unknown) = self.agents.unknown_to(id, &said, self.leases.lease / 2, now);
                if unknown.is_empty() || self.is_heard_elsewhere(id, heartbeat) {
                    continue;
                }
                for attempt in unknown {
                    let executor =
                        state.runs.get(&attempt.run).and_then(|run| run.phase(attempt.phase).executor.as_ref());
                    let name = executor.map(|executor| executor.agent_name.as_str()).unwrap_or_default();
                    let why = format!("agent {name} ({id}) does not execute it");
                    match self.control_plane.lose_phase(&organization, attempt, why).await {
                        Ok(_) => {
                            tracing::warn!(
                                event = "phase_not_executed", run = %attempt.run, phase = %attempt.phase, agent = %id,
                                "not executed"
                            );
                            self.agents.revoke_phase(id, attempt);
                        }
                        Err(error) => {
                            tracing::warn!(
                                event = "phase_revoke_failed", %error, run = %attempt.run,
                                "could not take a phase away"
                            );
                        }
                    }
                }
            }
        }
    }

    /// True if another server hears a newer heartbeat: the agent may have moved there, and that server knows better.
    fn is_heard_elsewhere(&self, id: AgentId, heartbeat: u64) -> bool {
        self.peers.heard().iter().any(|other| other.agent == id && other.heartbeat > heartbeat)
    }
}
