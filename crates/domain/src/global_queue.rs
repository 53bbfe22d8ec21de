//! The global queue: the phases of one organization that are ready for an agent, in the order in which they go out.
//! Several organizations' queues merge by the same key.

use jiff::{SignedDuration, Timestamp};

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

/// A phase that has been ready for so long is overdue.
pub const OVERDUE_AFTER: SignedDuration = SignedDuration::from_mins(10);

/// Of so many phases that go out, one may be overdue and of any class: a stream of applies holds up what comes after
/// them, but not for ever. Were it more, yesterday's speculative plans would hold up an urgent apply.
const TURNS: u64 = 4;

/// Whose turn it is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Turn {
    /// Of the first in the queue.
    First,
    /// Of what is overdue, if anything is.
    Overdue,
}

impl Turn {
    /// The turn of whoever goes out after so many others.
    pub fn after(others: u64) -> Self {
        if others % TURNS == TURNS - 1 { Self::Overdue } else { Self::First }
    }
}

/// What has been ready for longest, if that is too long, and since when.
pub fn overdue_phase(state: &OrganizationState, reach: Reach, now: Timestamp) -> Option<(Timestamp, &Run)> {
    let ready = state.runs.by().ready.iter().take_while(|(since, _)| now.duration_since(**since) >= OVERDUE_AFTER);
    let mut runs = ready.filter_map(|(since, id)| state.runs.get(id).map(|run| (*since, run)));
    runs.find(|(_, run)| reach.covers(state, run))
}

/// The phase that goes out next.
pub fn next_phase(state: &OrganizationState, reach: Reach, turn: Turn, now: Timestamp) -> Option<&Run> {
    let overdue = match turn {
        Turn::First => None,
        Turn::Overdue => overdue_phase(state, reach, now).map(|(_, run)| run),
    };
    overdue.or_else(|| ready_phases(state, reach).next().map(|(_, run)| run))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::author::Author;
    use crate::run::RunOptions;
    use crate::run::tests::given_run;
    use crate::run_queue::tests::given_state;
    use crate::run_status::{RunEvent, RunStatus};

    fn at(minute: i64) -> Timestamp {
        Timestamp::from_second(minute * 60).expect("near")
    }

    /// A run whose phase became ready then.
    fn ready(number: u8, status: RunStatus, plan_only: bool, minute: i64) -> Run {
        let mut run = Run { status, created_at: at(minute), ..given_run(number) };
        run.options = RunOptions { plan_only, ..run.options };
        let phase = if status == RunStatus::ApplyQueued { &mut run.apply } else { &mut run.plan };
        phase.queued_at = Some(at(minute));
        run
    }

    #[test]
    fn applies_go_before_plans_and_plans_before_what_changes_nothing() {
        let speculative = ready(1, RunStatus::PlanQueued, true, 0);
        let plan = ready(2, RunStatus::PlanQueued, false, 1);
        let apply = ready(3, RunStatus::ApplyQueued, false, 3);
        let older = ready(4, RunStatus::ApplyQueued, false, 2);
        let (state, _) = given_state(&[speculative, plan, apply, older]);
        let order: Vec<u64> = ready_phases(&state, Reach::WithinServer).map(|(_, run)| run.number).collect();
        assert_eq!(order, [4, 3, 2, 1]);
        let next = |turn, now| next_phase(&state, Reach::WithinServer, turn, at(now)).map(|run| run.number);
        assert_eq!((next(Turn::First, 9), next(Turn::Overdue, 9)), (Some(4), Some(4)), "nobody waited for long");
        assert_eq!((next(Turn::First, 10), next(Turn::Overdue, 10)), (Some(4), Some(1)));
        let pool = Reach::Pool(AgentPoolId::from_random([1; 16]));
        assert_eq!(next_phase(&state, pool, Turn::Overdue, at(10)), None, "they are not for everyone");
    }

    /// Every minute an apply becomes ready, and one phase goes out.
    #[test]
    fn a_stream_of_applies_holds_up_nobody_for_ever() {
        let (mut state, _) = given_state(&[ready(200, RunStatus::PlanQueued, true, 0)]);
        let mut out = Vec::new();
        for minute in 0..30_u8 {
            state.runs.put(&ready(minute, RunStatus::ApplyQueued, false, minute.into())).expect("put");
            let turn = Turn::after(minute.into());
            let next = next_phase(&state, Reach::WithinServer, turn, at(minute.into())).expect("there is one").clone();
            out.push(next.number);
            let gone = next.after(RunEvent::Canceled, at(minute.into()), Author::Taco).expect("legal");
            state.runs.put(&gone).expect("put");
        }
        let place = out.iter().position(|number| *number == 200);
        assert!(place.is_some_and(|minute| (10..14).contains(&minute)), "{out:?}");
        out.retain(|number| *number != 200);
        assert_eq!(out, (0..29).collect::<Vec<u64>>(), "the others keep their order");
    }
}
