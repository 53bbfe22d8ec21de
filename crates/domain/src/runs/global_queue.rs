//! The global queue: the phases of one organization that are ready for an agent, in the order in which they go out; and
//! whose turn it is where several organizations share agents.
//!
//! Applies go before plans, and plans before those that change nothing, regardless of their organization. Within such a
//! class the organization goes first that has least of the shared agents, so that one with a thousand runs does not
//! keep another's only run waiting. `docs/decisions/0025-organizations-take-turns.md` tells more.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use jiff::{SignedDuration, Timestamp};

use crate::agent_pool::AgentPool;
use crate::author::Author;
use crate::execution::ExecutionMode;
use crate::id::AgentPoolId;
use crate::organization_state::OrganizationState;
use crate::run::{QueueKey, Run};
use crate::wait_reason::pool_for;

/// Scope of the phases an agent may execute.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AgentScope {
    /// Within a server: every organization's workspaces that ask for no pool.
    WithinServer,
    /// On someone's own machine, with their credentials: the same workspaces, but only runs that they want.
    OfPerson(Author),
    /// The workspaces of one pool.
    Pool(AgentPoolId),
}

impl AgentScope {
    pub fn pool(self) -> Option<AgentPoolId> {
        match self {
            Self::WithinServer | Self::OfPerson(_) => None,
            Self::Pool(pool) => Some(pool),
        }
    }

    /// True for the agent that is part of a server.
    pub fn is_within(self) -> bool {
        self.pool().is_none()
    }

    /// True if an agent may execute a run's phases.
    pub fn covers(self, state: &OrganizationState, run: &Run) -> bool {
        let Some(workspace) = state.workspaces.get(&run.workspace) else { return false };
        match self {
            // A workspace that was set to `local` meanwhile still has its run finished.
            Self::WithinServer => state.execution_of(workspace).mode != ExecutionMode::Agent,
            Self::OfPerson(person) => Self::WithinServer.covers(state, run) && is_wanted_by(state, run, person),
            Self::Pool(pool) => {
                let allows = |pool: &AgentPool| pool.allows(workspace.id, workspace.project);
                pool_for(state, workspace) == Some(pool) && state.agent_pools.get(&pool).is_some_and(allows)
            }
        }
    }
}

/// True if a person has started or confirmed a run, or goes on with the walk that it is part of.
fn is_wanted_by(state: &OrganizationState, run: &Run, person: Author) -> bool {
    let walk = || state.walks.get(&state.walk_nodes.by().run.first(&run.id)?.walk);
    run.created_by == person || run.confirmed_by == Some(person) || walk().is_some_and(|walk| walk.carrier() == person)
}

/// The phases that are ready for an agent, in order.
pub fn ready_phases(state: &OrganizationState, reach: AgentScope) -> impl Iterator<Item = (QueueKey, &Run)> {
    let runs = state.runs.by().queue.iter().filter_map(|run| Some((run.queue_key()?, run)));
    runs.filter(move |(_, run)| reach.covers(state, run))
}

/// Share that an organization has of the shared agents: the one with the least goes first. It follows from the ledger
/// alone, so that all servers agree on it and it survives restarts.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Debug)]
pub struct Share {
    /// Its phases that such agents execute now.
    pub running: usize,
    /// Time it was last given one. If none has anything under way, as often with a single agent, they take turns.
    pub last_taken: Option<Timestamp>,
}

impl Share {
    /// Share of the agents within this scope. Those of a pool are not shared with other organizations.
    pub fn of(state: &OrganizationState, reach: AgentScope) -> Self {
        if reach != AgentScope::WithinServer {
            return Self::default();
        }
        let is_within = |run: &Run| {
            let executor = run.executing_phase().and_then(|kind| run.phase(kind).executor.as_ref());
            executor.is_some_and(|executor| executor.pool.is_none())
        };
        let runs = state.runs.by();
        Self {
            running: runs.executing.iter().filter(|run| is_within(run)).count(),
            last_taken: runs.taken_within.iter().next_back().and_then(Run::taken_within_at),
        }
    }

    fn with_one_more(self, now: Timestamp) -> Self {
        Self { running: self.running + 1, last_taken: self.last_taken.max(Some(now)) }
    }
}

/// Merges the queues of several organizations: whose turn it is, again and again, as positions in `queues`. Each queue
/// is in its own order and comes with what its organization has already.
pub fn fair_turns(queues: &[(Share, Vec<QueueKey>)], now: Timestamp) -> impl Iterator<Item = usize> {
    let head = move |at: usize, next: usize, share: Share| {
        let key = *queues[at].1.get(next)?;
        Some(Reverse((key.class, share, key, at, next)))
    };
    let heads = queues.iter().enumerate().filter_map(|(at, (share, _))| head(at, 0, *share));
    let mut heads: BinaryHeap<_> = heads.collect();
    std::iter::from_fn(move || {
        let Reverse((_, share, _, at, next)) = heads.pop()?;
        heads.extend(head(at, next + 1, share.with_one_more(now)));
        Some(at)
    })
}

/// A phase that has been ready for so long is overdue.
pub const OVERDUE_AFTER: SignedDuration = SignedDuration::from_mins(10);

/// Number of phases that go out of which one may be overdue and of any class: a stream of applies holds up what comes
/// after them, but not for ever. Were it more, yesterday's speculative plans would hold up an urgent apply.
const TURNS: u64 = 4;

/// Next pick from the queue.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum QueuePick {
    /// First phase in the queue.
    Head,
    /// Overdue phase, if there is one.
    Overdue,
}

impl QueuePick {
    /// The pick that follows so many others.
    pub fn after(others: u64) -> Self {
        if others % TURNS == TURNS - 1 { Self::Overdue } else { Self::Head }
    }
}

/// Phase that has been ready for longest, if that is too long, and since when.
pub fn overdue_phase(state: &OrganizationState, reach: AgentScope, now: Timestamp) -> Option<(Timestamp, &Run)> {
    let ready = state.runs.by().ready.iter().filter_map(|run| Some((run.ready_since()?, run)));
    let mut overdue = ready.take_while(|(since, _)| now.duration_since(*since) >= OVERDUE_AFTER);
    overdue.find(|(_, run)| reach.covers(state, run))
}

/// The phase that goes out next.
pub fn next_phase(state: &OrganizationState, reach: AgentScope, turn: QueuePick, now: Timestamp) -> Option<&Run> {
    let overdue = match turn {
        QueuePick::Head => None,
        QueuePick::Overdue => overdue_phase(state, reach, now).map(|(_, run)| run),
    };
    overdue.or_else(|| ready_phases(state, reach).next().map(|(_, run)| run))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::{AgentId, RunId, UserId};
    use crate::phase::Executor;
    use crate::run::tests::given_run;
    use crate::run::{PhaseClass, RunOptions};
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
        let order: Vec<u64> = ready_phases(&state, AgentScope::WithinServer).map(|(_, run)| run.number).collect();
        assert_eq!(order, [4, 3, 2, 1]);
        let next = |turn, now| next_phase(&state, AgentScope::WithinServer, turn, at(now)).map(|run| run.number);
        assert_eq!(
            (next(QueuePick::Head, 9), next(QueuePick::Overdue, 9)),
            (Some(4), Some(4)),
            "nobody waited for long"
        );
        assert_eq!((next(QueuePick::Head, 10), next(QueuePick::Overdue, 10)), (Some(4), Some(1)));
        let pool = AgentScope::Pool(AgentPoolId::from_random([1; 16]));
        assert_eq!(next_phase(&state, pool, QueuePick::Overdue, at(10)), None, "they are not for everyone");
    }

    #[test]
    fn a_persons_own_machine_executes_what_that_person_wants_and_nothing_else() {
        let (me, other) = (Author::User(UserId::from_random([1; 16])), Author::User(UserId::from_random([2; 16])));
        let of = |number, created_by, confirmed_by| {
            let status = if confirmed_by == Some(me) { RunStatus::ApplyQueued } else { RunStatus::PlanQueued };
            Run { created_by, confirmed_by, ..ready(number, status, false, number.into()) }
        };
        let (state, _) =
            given_state(&[of(1, other, None), of(2, me, None), of(3, other, Some(me)), of(4, other, Some(other))]);
        let taken: Vec<u64> = ready_phases(&state, AgentScope::OfPerson(me)).map(|(_, run)| run.number).collect();
        assert_eq!(taken, [3, 2]);
        assert_eq!(ready_phases(&state, AgentScope::WithinServer).count(), 4);
    }

    /// Every minute an apply becomes ready, and one phase goes out.
    #[test]
    fn a_stream_of_applies_holds_up_nobody_for_ever() {
        let (mut state, _) = given_state(&[ready(200, RunStatus::PlanQueued, true, 0)]);
        let mut out = Vec::new();
        for minute in 0..30_u8 {
            state.runs.put(&ready(minute, RunStatus::ApplyQueued, false, minute.into())).expect("put");
            let turn = QueuePick::after(minute.into());
            let next =
                next_phase(&state, AgentScope::WithinServer, turn, at(minute.into())).expect("there is one").clone();
            out.push(next.number);
            let gone = next.after(RunEvent::Canceled, at(minute.into()), Author::Taco).expect("legal");
            state.runs.put(&gone).expect("put");
        }
        let place = out.iter().position(|number| *number == 200);
        assert!(place.is_some_and(|minute| (10..14).contains(&minute)), "{out:?}");
        out.retain(|number| *number != 200);
        assert_eq!(out, (0..29).collect::<Vec<u64>>(), "the others keep their order");
    }

    fn key(class: PhaseClass, minute: i64, number: u8) -> QueueKey {
        QueueKey { class, since: at(minute), run: RunId::from_random([number; 16]) }
    }

    #[test]
    fn the_share_of_an_organization_is_what_its_ledger_says_of_agents_within_servers() {
        let executor = |pool| Executor { agent: AgentId::from_random([7; 16]), agent_name: "one".to_owned(), pool };
        let taken = |number, minute, pool| {
            let queued = ready(number, RunStatus::PlanQueued, false, 0);
            queued.taken(executor(pool), at(minute)).expect("legal").0
        };
        let of_pool = taken(3, 9, Some(AgentPoolId::from_random([1; 16])));
        let over = taken(2, 5, None).after(RunEvent::Failed, at(6), Author::Taco).expect("legal");
        let (state, _) = given_state(&[ready(4, RunStatus::PlanQueued, false, 0), of_pool.clone()]);
        assert_eq!(Share::of(&state, AgentScope::WithinServer), Share::default(), "a pool is nobody else's");
        let (state, _) = given_state(&[taken(1, 4, None), over, of_pool]);
        let share = Share { running: 1, last_taken: Some(at(5)) };
        assert_eq!(Share::of(&state, AgentScope::WithinServer), share);
        assert_eq!(Share::of(&state, AgentScope::Pool(AgentPoolId::from_random([1; 16]))), Share::default());
    }

    #[test]
    fn organizations_take_turns_within_a_class() {
        use PhaseClass::{Apply, Plan, SpeculativePlan};
        let noisy: Vec<_> = (0..4).map(|minute| key(Plan, minute, 1)).collect();
        let turns = |queues: &[(Share, Vec<QueueKey>)]| fair_turns(queues, at(60)).collect::<Vec<_>>();
        let idle = Share::default();
        assert_eq!(turns(&[(idle, noisy.clone()), (idle, vec![key(Plan, 9, 2)])]), [0, 1, 0, 0, 0]);
        let served = Share { running: 0, last_taken: Some(at(30)) };
        assert_eq!(turns(&[(served, noisy.clone()), (idle, vec![key(Plan, 9, 2)])]), [1, 0, 0, 0, 0]);
        let busy = Share { running: 1, ..served };
        let earlier = Share { running: 0, last_taken: Some(at(29)) };
        assert_eq!(turns(&[(busy, noisy.clone()), (served, vec![key(Plan, 9, 2), key(Plan, 9, 3)])])[..2], [1, 0]);
        assert_eq!(turns(&[(served, noisy.clone()), (earlier, vec![key(Plan, 9, 2)])])[0], 1, "it waited longer");
        let mixed = vec![key(Apply, 50, 2), key(SpeculativePlan, 0, 3)];
        assert_eq!(turns(&[(idle, noisy), (busy, mixed)]), [1, 0, 0, 0, 0, 1], "the class comes first");
    }

    /// Organizations with queues of all lengths share few agents: each that waits goes out before any other goes out
    /// twice, regardless of the length of their queues.
    #[test]
    fn nobody_waits_for_more_than_one_of_each_other_organization() {
        for organizations in 2..6_usize {
            let mut queues: Vec<(Share, Vec<QueueKey>)> = (0..organizations)
                .map(|number| {
                    // The first has far more than the rest, and all of it is older.
                    let (length, since) = if number == 0 { (40, 0) } else { (3, 100 + number as i64) };
                    let keys = (0..length).map(|_| key(PhaseClass::Plan, since, number as u8)).collect();
                    (Share::default(), keys)
                })
                .collect();
            let mut waited = vec![0; organizations];
            for minute in 0.. {
                // One agent: nothing is under way when it asks for more.
                let Some(next) = fair_turns(&queues, at(1_000 + minute)).next() else { break };
                queues[next].1.remove(0);
                queues[next].0.last_taken = Some(at(1_000 + minute));
                for (number, (_, queue)) in queues.iter().enumerate() {
                    waited[number] = if number == next || queue.is_empty() { 0 } else { waited[number] + 1 };
                    assert!(waited[number] < organizations, "{number} of {organizations} is passed over");
                }
            }
        }
    }
}
