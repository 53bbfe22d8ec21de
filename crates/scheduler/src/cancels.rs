//! Agents that are asked to stop a phase, and agents that are given up.

use taco_domain::phase_attempt::PhaseAttempt;
use taco_domain::run::Run;
use tokio::time::Instant;

use crate::leases::Watch;
use crate::scheduler::Scheduler;

impl Scheduler {
    /// Tells this server's agents which of their phases someone wants to stop.
    pub(crate) fn deliver_cancels(&self) {
        let ids = self.agents.ids();
        for organization in self.followed() {
            let state = self.control_plane.last_seen(&organization);
            for id in &ids {
                for run in state.runs.by().executing.get(id) {
                    if let (Some(cancel), Some(attempt)) = (&run.cancel, attempt_of(run)) {
                        self.agents.cancel(*id, attempt, cancel.force);
                    }
                }
            }
        }
    }

    /// Takes their phases away from agents that were silent for too long. `now` is a moment of which everything is
    /// known that any server had published by then.
    pub(crate) async fn expire_silent_agents(&self, watch: &mut Watch, now: Instant) {
        for organization in self.served() {
            let state = self.control_plane.last_seen(&organization);
            for run in state.runs.by().executing.iter() {
                let Some(attempt) = attempt_of(run) else { continue };
                let Some(executor) = &run.phase(attempt.phase).executor else { continue };
                let (agent, name) = (executor.agent, &executor.agent_name);
                if !watch.is_lost(agent, attempt, &self.leases, now) {
                    continue;
                }
                let silence = (self.leases.lease + self.leases.margin).as_secs();
                let why = format!("agent {name} ({agent}) was not heard for {silence} s");
                match self.control_plane.lose_phase(&organization, attempt, why).await {
                    Ok(true) => {
                        tracing::warn!(
                            event = "agent_lost", run = %attempt.run, phase = %attempt.phase, %agent,
                            "given up on a silent agent"
                        );
                        self.agents.revoke_phase(agent, attempt);
                    }
                    Ok(false) => {}
                    Err(error) => {
                        tracing::warn!(
                            event = "agent_loss_not_recorded", %error, run = %attempt.run,
                            "could not give up on a silent agent"
                        );
                    }
                }
            }
        }
    }
}

/// The attempt that is under way.
pub(crate) fn attempt_of(run: &Run) -> Option<PhaseAttempt> {
    let phase = run.executing_phase()?;
    Some(PhaseAttempt { run: run.id, phase, epoch: run.phase(phase).epoch })
}
