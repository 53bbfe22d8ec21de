//! Reasons why a run waits, as data: API, command line and page show the same.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::agent::AgentPresence;
use crate::execution::ExecutionMode;
use crate::id::{AgentPoolId, RunId};
use crate::lock::Lock;
use crate::organization_state::OrganizationState;
use crate::phase::PhaseKind;
use crate::run::Run;
use crate::run_status::RunStatus;
use crate::run_tasks::task_stage::{StageKind, TaskStage};
use crate::workspace::Workspace;

/// Something that a run waits for.
#[derive(Clone, PartialEq, Eq, Serialize, Debug)]
#[serde(tag = "reason", rename_all = "kebab-case", rename_all_fields = "kebab-case")]
pub enum WaitReason {
    /// Another run of the workspace is first.
    RunAhead { run: RunId, status: RunStatus, ahead: usize },
    /// The workspace is locked.
    Locked { holder: String, since: jiff::Timestamp, note: Option<String> },
    /// No agent that could execute it is connected.
    NoAgent { pool: Option<AgentPoolId>, pool_name: Option<String> },
    /// The pool whose agents would execute it is not for its workspace.
    PoolRefuses { pool: AgentPoolId, pool_name: String },
    /// All agents that could execute it are busy. `ahead` counts phases of the same organization; where organizations
    /// share the agents, each has its turn.
    AgentsBusy { agents: usize, ahead: usize, shared: bool },
    /// Someone has to confirm or discard it.
    Approval,
    /// Someone who may has to override the policies that stand against its plan, or discard it.
    PolicyOverride,
    /// Run tasks have not answered yet.
    Tasks { stage: StageKind, tasks: Vec<String> },
}

impl WaitReason {
    /// A sentence for people.
    pub fn in_words(&self) -> String {
        match self {
            Self::RunAhead { run, status, ahead } => {
                let runs = if *ahead == 1 { "run" } else { "runs" };
                let status = status.to_string().replace('_', " ");
                format!("waiting for {ahead} earlier {runs}; {run} is {status}")
            }
            Self::Locked { holder, since, note } => {
                let note = note.as_ref().map(|note| format!(" ({note})")).unwrap_or_default();
                format!("the workspace is locked by {holder} since {since:.0}{note}")
            }
            Self::NoAgent { pool_name: Some(pool), .. } => format!("no agents online in pool {pool}: start one"),
            Self::NoAgent { .. } => {
                "no built-in agent is running: set an agent concurrency, or use an agent pool".to_owned()
            }
            Self::PoolRefuses { pool_name, .. } => {
                format!("pool {pool_name} does not allow this workspace: allow it there, or choose another pool")
            }
            Self::AgentsBusy { agents, ahead, shared } => {
                let busy =
                    if *agents == 1 { "the only agent is busy" } else { &format!("all {agents} agents are busy") };
                let turns = if *shared { " (organizations take turns)" } else { "" };
                match ahead {
                    0 => format!("{busy}; next in line{turns}"),
                    1 => format!("{busy}; 1 run ahead{turns}"),
                    ahead => format!("{busy}; {ahead} runs ahead{turns}"),
                }
            }
            Self::Approval => "awaiting approval".to_owned(),
            Self::PolicyOverride => "awaiting an override of its policies".to_owned(),
            Self::Tasks { stage, tasks } => {
                let noun = if tasks.len() == 1 { "task" } else { "tasks" };
                format!("waiting for the {} {noun} {}", stage.in_words().to_lowercase(), tasks.join(", "))
            }
        }
    }
}

/// Reasons why a run waits; empty for one that is under way or over. `agents` are those that any server hears.
pub fn wait_reasons(
    state: &OrganizationState,
    workspace: &Workspace,
    run: &Run,
    agents: &[AgentPresence],
) -> Vec<WaitReason> {
    match run.status {
        RunStatus::Pending | RunStatus::Confirmed => behind_others(state, workspace, run),
        RunStatus::PlanQueued | RunStatus::ApplyQueued => {
            let pool = pool_for(state, workspace);
            match refusing_pool(state, workspace) {
                Some(refuses) => vec![refuses],
                None => behind_agents(state, pool, ahead_in_pool(state, run, pool), agents),
            }
        }
        RunStatus::Planned => vec![WaitReason::Approval],
        RunStatus::PlannedAndSaved => vec![WaitReason::Approval],
        RunStatus::PolicyOverride => vec![WaitReason::PolicyOverride],
        RunStatus::PrePlanRunning | RunStatus::PostPlanRunning | RunStatus::PreApplyRunning => behind_tasks(run),
        RunStatus::Planning
        | RunStatus::PlannedAndFinished
        | RunStatus::Applying
        | RunStatus::Applied
        | RunStatus::Discarded
        | RunStatus::Canceled
        | RunStatus::Errored => Vec::new(),
    }
}

/// The tasks that have not answered.
fn behind_tasks(run: &Run) -> Vec<WaitReason> {
    let waits = |stage: &TaskStage| {
        let open = stage.results.iter().filter(|result| !result.status.is_final());
        WaitReason::Tasks { stage: stage.stage, tasks: open.map(|result| result.task_name.clone()).collect() }
    };
    run.running_stage().map(waits).into_iter().collect()
}

/// Reasons why a run that starts now would wait for its turn, if it may change the state.
pub fn new_run_waits(state: &OrganizationState, workspace: &Workspace) -> Vec<WaitReason> {
    let mut ahead = state.queue_of(workspace.id);
    let first = ahead.next().map(|first| (first, 1 + ahead.count()));
    behind(state, workspace, first)
}

/// The same of every run whose next phase no agent has had, at the price of one walk through the queues.
pub fn waiting_runs<'a>(
    state: &'a OrganizationState,
    agents: &[AgentPresence],
) -> Vec<(&'a Run, PhaseKind, Vec<WaitReason>)> {
    let mut waiting = Vec::new();
    let mut add = |run: &'a Run, reasons: Vec<WaitReason>| {
        if let Some(kind) = run.waiting_phase().filter(|_| !reasons.is_empty()) {
            waiting.push((run, kind, reasons));
        }
    };
    let mut first: Option<(&Run, usize)> = None;
    for run in state.runs.by().place.iter() {
        let ahead = first.filter(|(first, _)| first.workspace == run.workspace);
        if matches!(run.status, RunStatus::Pending | RunStatus::Confirmed)
            && let Some(workspace) = state.workspaces.get(&run.workspace)
        {
            add(run, behind(state, workspace, ahead));
        }
        first = Some(ahead.map_or((run, 1), |(first, count)| (first, count + 1)));
    }
    let mut queued: BTreeMap<Option<AgentPoolId>, usize> = BTreeMap::new();
    for run in state.runs.by().queue.iter() {
        let Some(workspace) = state.workspaces.get(&run.workspace) else { continue };
        if let Some(refuses) = refusing_pool(state, workspace) {
            add(run, vec![refuses]);
            continue;
        }
        let pool = pool_for(state, workspace);
        let ahead = queued.entry(pool).or_default();
        add(run, behind_agents(state, pool, *ahead, agents));
        *ahead += 1;
    }
    waiting
}

fn behind_others(state: &OrganizationState, workspace: &Workspace, run: &Run) -> Vec<WaitReason> {
    let mut ahead = state.queue_of(workspace.id).take_while(|other| other.place < run.place);
    let first = ahead.next().map(|first| (first, 1 + ahead.count()));
    behind(state, workspace, first)
}

/// Reasons for a run that has not reached the front: the first of its workspace and how many are ahead, and a lock.
fn behind(state: &OrganizationState, workspace: &Workspace, first: Option<(&Run, usize)>) -> Vec<WaitReason> {
    let mut reasons = Vec::new();
    if let Some((first, ahead)) = first {
        reasons.push(WaitReason::RunAhead { run: first.id, status: first.status, ahead });
    }
    if let Some(lock) = workspace.lock.as_ref().filter(|lock| !is_of_an_open_run(state, lock)) {
        let holder = lock.holder_name.clone();
        reasons.push(WaitReason::Locked { holder, since: lock.since, note: lock.reason.clone() });
    }
    reasons
}

/// A run that is ahead explains its own lock.
fn is_of_an_open_run(state: &OrganizationState, lock: &Lock) -> bool {
    match lock.holder {
        crate::Author::Run(id) => state.runs.get(&id).is_some_and(|run| !run.status.is_final()),
        _ => false,
    }
}

/// Number of phases of the same pool that go out before a run's.
fn ahead_in_pool(state: &OrganizationState, run: &Run, pool: Option<AgentPoolId>) -> usize {
    let own = run.queue_key();
    let before = state.runs.by().queue.iter().take_while(|other| other.queue_key() < own);
    let same_pool = before.filter(|other| {
        let workspace = state.workspaces.get(&other.workspace);
        workspace
            .is_some_and(|workspace| pool_for(state, workspace) == pool && refusing_pool(state, workspace).is_none())
    });
    same_pool.count()
}

fn behind_agents(
    state: &OrganizationState,
    pool: Option<AgentPoolId>,
    ahead: usize,
    agents: &[AgentPresence],
) -> Vec<WaitReason> {
    let able = agents.iter().filter(|agent| agent.pool == pool && !agent.draining).count();
    if able == 0 {
        let pool_name = pool.and_then(|pool| state.agent_pools.get(&pool)).map(|pool| pool.name.to_string());
        return vec![WaitReason::NoAgent { pool, pool_name }];
    }
    let takes_more = |agent: &AgentPresence| agent.busy < agent.concurrency && !agent.draining;
    let free = agents.iter().any(|agent| agent.pool == pool && takes_more(agent));
    if free && ahead == 0 {
        Vec::new()
    } else {
        vec![WaitReason::AgentsBusy { agents: able, ahead, shared: pool.is_none() }]
    }
}

/// The pool whose agents execute a workspace's runs; `None` where an agent within a server does.
pub fn pool_for(state: &OrganizationState, workspace: &Workspace) -> Option<AgentPoolId> {
    let execution = state.execution_of(workspace);
    match execution.mode {
        ExecutionMode::Agent => execution.agent_pool,
        ExecutionMode::Remote | ExecutionMode::Local => None,
    }
}

/// The pool that a workspace's runs are for, if it does not allow the workspace. Its limits may have changed since the
/// workspace was given to it, and who inherits it was never asked.
fn refusing_pool(state: &OrganizationState, workspace: &Workspace) -> Option<WaitReason> {
    let pool = state.agent_pools.get(&pool_for(state, workspace)?)?;
    let refuses = || WaitReason::PoolRefuses { pool: pool.id, pool_name: pool.name.to_string() };
    (!pool.allows(workspace.id, workspace.project)).then(refuses)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agent_pool::AgentPool;
    use crate::agent_pool::tests::given_pool;
    use crate::author::Author;
    use crate::execution::Execution;
    use crate::global_queue::{AgentScope, ready_phases};
    use crate::id::{AgentId, UserId};
    use crate::run::tests::given_run;
    use crate::run_queue::tests::{given_state, locked_by};

    fn agent(busy: u32) -> AgentPresence {
        AgentPresence {
            agent: AgentId::from_random([1; 16]),
            name: "one".to_owned(),
            pool: None,
            heartbeat: 1,
            concurrency: 1,
            busy,
            draining: false,
            engines: Vec::new(),
            version: String::new(),
            last_heard_at: None,
        }
    }

    #[test]
    fn every_run_that_waits_can_say_why() {
        let jane = Author::User(UserId::from_random([9; 16]));
        let in_status = |number, status| Run { status, ..given_run(number) };
        let pending = given_run(2);
        let lost = Run { place: None, ..in_status(1, RunStatus::Errored) };
        let ready = in_status(2, RunStatus::PlanQueued);
        let apply = in_status(3, RunStatus::ApplyQueued);
        type Row<'a> = (&'a str, Vec<Run>, Option<Author>, &'a Run, Vec<AgentPresence>, &'a [&'a str]);
        let planned = in_status(1, RunStatus::Planned);
        let holder = Some(Author::Run(planned.id));
        let draining = AgentPresence { draining: true, ..agent(0) };
        let rows: Vec<Row<'_>> = vec![
            (
                "a run ahead",
                vec![planned.clone(), pending.clone()],
                holder,
                &pending,
                vec![],
                &["waiting for 1 earlier run; run-"],
            ),
            ("a lock", vec![pending.clone()], Some(jane), &pending, vec![], &["locked by jane since"]),
            (
                "a lost apply",
                vec![lost.clone(), pending.clone()],
                Some(Author::Run(lost.id)),
                &pending,
                vec![],
                &["locked by "],
            ),
            (
                "both",
                vec![given_run(1), pending.clone()],
                Some(jane),
                &pending,
                vec![],
                &["waiting for 1 earlier run; run-", "locked by jane"],
            ),
            ("nobody there", vec![ready.clone()], None, &ready, vec![], &["no built-in agent is running"]),
            ("all leaving", vec![ready.clone()], None, &ready, vec![draining], &["no built-in agent is running"]),
            ("all busy", vec![ready.clone()], None, &ready, vec![agent(1)], &["the only agent is busy; next in line"]),
            (
                "behind an apply",
                vec![ready.clone(), apply.clone()],
                None,
                &ready,
                vec![agent(0)],
                &["the only agent is busy; 1 run ahead"],
            ),
            ("about to begin", vec![ready.clone()], None, &ready, vec![agent(0)], &[]),
            ("a decision", vec![planned.clone()], holder, &planned, vec![], &["awaiting approval"]),
            ("nothing", vec![lost.clone()], None, &lost, vec![], &[]),
        ];
        for (name, runs, holder, run, agents, expected) in rows {
            let (state, workspace) = given_state(&runs);
            let workspace = holder.map_or(workspace.clone(), |holder| locked_by(&workspace, holder));
            let reasons = wait_reasons(&state, &workspace, run, &agents);
            if let Some(kind) = run.waiting_phase() {
                // The walk through all of them says the same.
                let mut state = state.clone();
                state.workspaces.put(&workspace).expect("put");
                let found = waiting_runs(&state, &agents).into_iter().find(|(other, ..)| other.id == run.id);
                let found = found.map(|(_, kind, reasons)| (kind, reasons));
                assert_eq!(found, (!reasons.is_empty()).then(|| (kind, reasons.clone())), "{name}");
            }
            let words: Vec<String> = reasons.iter().map(WaitReason::in_words).collect();
            assert_eq!(words.len(), expected.len(), "{name}: {words:?}");
            for (words, part) in words.iter().zip(expected) {
                assert!(words.contains(part), "{name}: {words}");
            }
        }
    }

    #[test]
    fn a_run_waits_for_nobody_whose_pool_does_not_allow_its_workspace() {
        let ready = |number| Run { status: RunStatus::PlanQueued, ..given_run(number) };
        let (mut state, workspace) = given_state(&[ready(1), ready(2)]);
        let pool = AgentPool { allowed_workspaces: [workspace.id].into(), ..given_pool("rack") };
        let execution = Some(Execution { mode: ExecutionMode::Agent, agent_pool: Some(pool.id) });
        let workspace = Workspace { execution, ..workspace };
        state.workspaces.put(&workspace).expect("put");
        let idle = AgentPresence { pool: Some(pool.id), ..agent(0) };
        for (pool, expected) in [
            (pool.clone(), [None, Some("the only agent is busy; 1 run ahead")]),
            (
                AgentPool { excluded_workspaces: [workspace.id].into(), ..pool },
                [Some("pool rack does not allow this workspace"); 2],
            ),
        ] {
            state.agent_pools.put(&pool).expect("put");
            for (number, expected) in [1, 2].into_iter().zip(expected) {
                let run = ready(number);
                let reasons = wait_reasons(&state, &workspace, &run, std::slice::from_ref(&idle));
                let all = waiting_runs(&state, std::slice::from_ref(&idle));
                let found = all.into_iter().find(|(other, ..)| other.id == run.id).map(|(.., reasons)| reasons);
                assert_eq!(found.unwrap_or_default(), reasons);
                let words = reasons.first().map(WaitReason::in_words);
                assert!(words.as_deref().unwrap_or_default().starts_with(expected.unwrap_or_default()), "{words:?}");
                assert_eq!(words.is_some(), expected.is_some());
            }
            let taken = ready_phases(&state, AgentScope::Pool(pool.id)).count();
            assert_eq!(taken, if pool.allows(workspace.id, workspace.project) { 2 } else { 0 });
        }
    }

    #[test]
    fn a_reason_is_data_with_a_name() {
        let json = serde_json::to_value(WaitReason::AgentsBusy { agents: 2, ahead: 5, shared: true }).expect("JSON");
        assert_eq!(json, serde_json::json!({ "reason": "agents-busy", "agents": 2, "ahead": 5, "shared": true }));
    }
}
