//! Why a run waits, as data: API, command line and page show the same.

use serde::Serialize;

use crate::agent::AgentPresence;
use crate::execution::ExecutionMode;
use crate::id::{AgentPoolId, RunId};
use crate::lock::Lock;
use crate::organization_state::OrganizationState;
use crate::run::Run;
use crate::run_status::RunStatus;
use crate::workspace::Workspace;

/// Something that a run waits for.
#[derive(Clone, PartialEq, Eq, Serialize, Debug)]
#[serde(tag = "reason", rename_all = "kebab-case")]
pub enum WaitReason {
    /// Another run of the workspace is first.
    RunAhead { run: RunId, status: RunStatus, ahead: usize },
    /// Someone holds the workspace.
    Locked { holder: String, since: jiff::Timestamp, note: Option<String> },
    /// Nobody who could execute it is there.
    NoAgent { pool: Option<AgentPoolId>, pool_name: Option<String> },
    /// Everyone who could execute it is busy.
    AgentsBusy { agents: usize, ahead: usize },
    /// Someone has to confirm or discard it.
    Approval,
}

impl WaitReason {
    /// A sentence for people.
    pub fn in_words(&self) -> String {
        match self {
            Self::RunAhead { run, status, ahead: 1 } => format!("waits for {run}, which is {status}"),
            Self::RunAhead { run, status, ahead } => {
                format!("waits for {ahead} runs of the workspace; the first, {run}, is {status}")
            }
            Self::Locked { holder, since, note } => {
                let note = note.as_ref().map(|note| format!(" ({note})")).unwrap_or_default();
                format!("the workspace is locked by {holder} since {since:.0}{note}")
            }
            Self::NoAgent { pool_name: Some(pool), .. } => format!("no agent of the pool {pool} is alive: start one"),
            Self::NoAgent { .. } => {
                "no server has an agent within: set an agent concurrency, or use an agent pool".to_owned()
            }
            Self::AgentsBusy { agents: 1, ahead } => format!("the only agent is busy; {ahead} phases are ahead"),
            Self::AgentsBusy { agents, ahead } => format!("all {agents} agents are busy; {ahead} phases are ahead"),
            Self::Approval => "waits for someone to confirm or discard it".to_owned(),
        }
    }
}

/// What a run waits for; empty for one that is under way or over. `agents` are those that any server hears.
pub fn wait_reasons(
    state: &OrganizationState,
    workspace: &Workspace,
    run: &Run,
    agents: &[AgentPresence],
) -> Vec<WaitReason> {
    match run.status {
        RunStatus::Pending | RunStatus::Confirmed => behind_others(state, workspace, run),
        RunStatus::PlanQueued | RunStatus::ApplyQueued => behind_agents(state, workspace, run, agents),
        RunStatus::Planned => vec![WaitReason::Approval],
        RunStatus::PlannedAndSaved => vec![WaitReason::Approval],
        RunStatus::Planning
        | RunStatus::PlannedAndFinished
        | RunStatus::Applying
        | RunStatus::Applied
        | RunStatus::Discarded
        | RunStatus::Canceled
        | RunStatus::Errored => Vec::new(),
    }
}

fn behind_others(state: &OrganizationState, workspace: &Workspace, run: &Run) -> Vec<WaitReason> {
    let mut reasons = Vec::new();
    let mut ahead = state.queue_of(workspace.id).take_while(|other| other.place < run.place);
    if let Some(first) = ahead.next() {
        let ahead = 1 + ahead.count();
        reasons.push(WaitReason::RunAhead { run: first.id, status: first.status, ahead });
    }
    if let Some(lock) = workspace.lock.as_ref().filter(|lock| !is_of_an_open_run(state, lock)) {
        let holder = format!("{} {}", lock.holder.kind(), lock.holder_name);
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

fn behind_agents(
    state: &OrganizationState,
    workspace: &Workspace,
    run: &Run,
    agents: &[AgentPresence],
) -> Vec<WaitReason> {
    let pool = pool_for(state, workspace);
    let able = agents.iter().filter(|agent| agent.pool == pool && !agent.draining).count();
    if able == 0 {
        let pool_name = pool.and_then(|pool| state.agent_pools.get(&pool)).map(|pool| pool.name.to_string());
        return vec![WaitReason::NoAgent { pool, pool_name }];
    }
    let own = run.queue_key();
    let before = state.runs.by().queue.iter().take_while(|(key, _)| Some(**key) < own);
    let same_pool = before.filter(|(_, id)| {
        let workspace = state.runs.get(id).and_then(|run| state.workspaces.get(&run.workspace));
        workspace.is_some_and(|workspace| pool_for(state, workspace) == pool)
    });
    let ahead = same_pool.count();
    let free = agents.iter().any(|agent| agent.pool == pool && agent.busy < agent.concurrency);
    if free && ahead == 0 { Vec::new() } else { vec![WaitReason::AgentsBusy { agents: able, ahead }] }
}

/// The pool whose agents execute a workspace's runs; `None` where an agent within a server does.
pub fn pool_for(state: &OrganizationState, workspace: &Workspace) -> Option<AgentPoolId> {
    let execution = state.execution_of(workspace);
    match execution.mode {
        ExecutionMode::Agent => execution.agent_pool,
        ExecutionMode::Remote | ExecutionMode::Local => None,
    }
}
