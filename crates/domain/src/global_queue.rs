//! The global queue: the phases of one organization that are ready for an agent, in the order in which they go out.
//! Several organizations' queues merge by the same key.

use crate::agent_pool::AgentPool;
use crate::execution::ExecutionMode;
use crate::id::AgentPoolId;
use crate::organization_state::OrganizationState;
use crate::run::{QueueKey, Run};
use crate::wait_reason::pool_for;

/// Which phases an agent may execute.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Reach {
    /// Within a server: every organization's workspaces that ask for no pool.
    WithinServer,
    /// The workspaces of one pool.
    Pool(AgentPoolId),
}

impl Reach {
    pub fn pool(self) -> Option<AgentPoolId> {
        match self {
            Self::WithinServer => None,
            Self::Pool(pool) => Some(pool),
        }
    }

    /// Whether an agent may execute a run's phases.
    pub fn covers(self, state: &OrganizationState, run: &Run) -> bool {
        let Some(workspace) = state.workspaces.get(&run.workspace) else { return false };
        match self {
            // A workspace that was set to `local` meanwhile still has its run finished.
            Self::WithinServer => state.execution_of(workspace).mode != ExecutionMode::Agent,
            Self::Pool(pool) => {
                let allows = |pool: &AgentPool| pool.allows(workspace.id, workspace.project);
                pool_for(state, workspace) == Some(pool) && state.agent_pools.get(&pool).is_some_and(allows)
            }
        }
    }
}

/// The phases that are ready for an agent, in order.
pub fn ready_phases(state: &OrganizationState, reach: Reach) -> impl Iterator<Item = (QueueKey, &Run)> {
    let queue = state.runs.by().queue.iter();
    let runs = queue.filter_map(|(key, id)| state.runs.get(id).map(|run| (*key, run)));
    runs.filter(move |(_, run)| reach.covers(state, run))
}
