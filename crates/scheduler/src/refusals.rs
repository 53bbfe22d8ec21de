//! Agents that may not stay: their pool is gone, or the token with which they came.

use crate::scheduler::Scheduler;

impl Scheduler {
    /// Ends the connections of agents whose pool or token is gone, or whose token's time is over. One that executes
    /// something stays until that has ended, and is given nothing more: while it is connected its lease holds.
    pub(crate) fn disconnect_revoked(&self) {
        for (agent, organization, pool, token) in self.agents.with_tokens() {
            if let Some(error) = self.control_plane.agent_refusal(&organization, pool, token) {
                self.agents.refuse(agent, error);
            }
        }
    }
}
