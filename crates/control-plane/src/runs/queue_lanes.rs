//! The queue as lanes: for each pool, and for the agents within servers, the slots that are taken and what waits for one.

use std::collections::BTreeMap;

use taco_boxed::boxed;
use taco_domain::id::AgentPoolId;
use taco_domain::permission::Action;
use taco_domain::run::Run;
use taco_domain::run_status::RunStatus;
use taco_domain::wait_reason::pool_for;

use crate::caller::Caller;
use crate::control_plane::ControlPlane;
use crate::error::Error;
use crate::runs::{RunView, VisibleWorkspaces};

/// Runs of each kind that a lane tells one by one.
const MAX_RUNS: usize = 40;

/// A pool, or the agents within servers, and its part of the queue, as far as the caller may see it.
#[derive(Clone, Default)]
pub struct QueueLane {
    /// `None` for the agents within servers.
    pub pool: Option<(AgentPoolId, String)>,
    pub agents: usize,
    pub slots: u32,
    pub busy: u32,
    pub executing: Vec<RunView>,
    /// Runs that are ready for an agent, the first ones in order, and how many there are.
    pub ready: Vec<RunView>,
    pub ready_total: usize,
    /// Runs that wait for others of their workspace.
    pub behind: usize,
}

impl QueueLane {
    fn has_runs(&self) -> bool {
        !self.executing.is_empty() || self.ready_total + self.behind > 0
    }

    fn is_empty(&self) -> bool {
        self.slots == 0 && !self.has_runs()
    }
}

#[boxed]
impl ControlPlane {
    /// The agents within servers first, then the pools by name; those with neither agents nor runs are left out.
    pub async fn queue_lanes(&self, caller: &Caller, organization: &str) -> Result<Vec<QueueLane>, Error> {
        let org = self.organization_named(caller, organization).await?;
        let state = &org.state;
        let mut lanes: BTreeMap<Option<AgentPoolId>, QueueLane> = BTreeMap::new();
        let of_pool = |pool: Option<AgentPoolId>| {
            let found = pool.and_then(|id| state.agent_pools.get(&id));
            QueueLane { pool: found.map(|pool| (pool.id, pool.name.to_string())), ..QueueLane::default() }
        };
        for agent in self.presence().agents().iter() {
            if agent.pool.is_some_and(|pool| !state.agent_pools.contains(&pool)) {
                continue;
            }
            let lane = lanes.entry(agent.pool).or_insert_with(|| of_pool(agent.pool));
            lane.agents += 1;
            lane.slots = lane.slots.saturating_add(agent.concurrency);
            lane.busy = lane.busy.saturating_add(agent.busy);
        }
        let mut sight = VisibleWorkspaces::new(caller, state);
        let behind = state.runs.by().open.iter();
        let behind = behind.filter(|run| matches!(run.status, RunStatus::Pending | RunStatus::Confirmed));
        for run in state.run_queue().chain(behind) {
            let Some(workspace) = sight.of(run) else { continue };
            let executor = executor_pool(run);
            let pool = executor.unwrap_or_else(|| pool_for(state, workspace));
            let lane = lanes.entry(pool).or_insert_with(|| of_pool(pool));
            let view = || RunView { run: run.clone(), workspace: workspace.clone(), org: org.clone(), reader: None };
            match run.queued_phase() {
                _ if executor.is_some() && lane.executing.len() < MAX_RUNS => lane.executing.push(view()),
                _ if executor.is_some() => {}
                Some(_) => {
                    lane.ready_total += 1;
                    if lane.ready.len() < MAX_RUNS {
                        lane.ready.push(view());
                    }
                }
                None => lane.behind += 1,
            }
        }
        // Pools with runs of theirs are known to everyone; the others are for those who may look them up.
        let sees_pools = caller.may(Action::ReadDirectory, org.resource()).allowed;
        let is_seen = |lane: &QueueLane| sees_pools || lane.pool.is_none() || lane.has_runs();
        let mut lanes: Vec<QueueLane> = lanes.into_values().filter(|lane| !lane.is_empty() && is_seen(lane)).collect();
        lanes.sort_by(|one, other| name_of(one).cmp(&name_of(other)));
        Ok(lanes)
    }
}

fn name_of(lane: &QueueLane) -> Option<&str> {
    lane.pool.as_ref().map(|(_, name)| name.as_str())
}

/// The pool of the agent that executes a run; the outer `None` if none does.
fn executor_pool(run: &Run) -> Option<Option<AgentPoolId>> {
    let executor = run.phase(run.executing_phase()?).executor.as_ref()?;
    Some(executor.pool)
}
