//! Dashboard of an organization for its members: the runs that wait for a decision, are in progress, failed, or wait
//! and why, and the agents that could execute them.

use jiff::{SignedDuration, Timestamp};
use taco_boxed::boxed;
use taco_domain::agent::{Agent, AgentPresence};
use taco_domain::permission::Action;
use taco_domain::run::Run;
use taco_domain::run_status::RunStatus;
use taco_domain::workspace::Workspace;
use taco_domain::{Author, OrganizationState};

use crate::caller::Caller;
use crate::control_plane::{ControlPlane, OrganizationSnapshot};
use crate::error::Error;
use crate::page::{Listed, PageRequest};
use crate::runs::{RunView, VisibleWorkspaces};

/// So many of each are told; the lists tell all.
const MAX_ROWS: usize = 20;
/// Number of the newest runs that are searched for failed ones.
const NEWEST: usize = 2000;
const DAY: SignedDuration = SignedDuration::from_hours(24);

/// An organization at a glance, as far as the caller may see it.
pub struct Dashboard {
    pub org: OrganizationSnapshot,
    /// Plans that the caller may confirm or discard.
    pub to_decide: Vec<RunView>,
    /// Plans that others have to decide about.
    pub for_others: usize,
    pub under_way: Vec<RunView>,
    /// Those that failed within a day, newest first.
    pub failed: Vec<RunView>,
    /// Runs that wait for their turn or for an agent.
    pub waiting: usize,
    /// Workspaces that someone has locked, with no run in them.
    pub locked: Vec<Workspace>,
    /// Agents that are there and could execute something here, and how many of them are busy.
    pub agents: usize,
    pub busy_agents: usize,
    /// Agents of pools that neither left nor are heard.
    pub silent_agents: Vec<Agent>,
}

#[boxed]
impl ControlPlane {
    pub async fn dashboard(&self, caller: &Caller, organization: &str) -> Result<Dashboard, Error> {
        let org = self.organization_named(caller, organization).await?;
        let state = org.state.clone();
        let mut sight = VisibleWorkspaces::new(caller, &state);
        let open_runs: Vec<&Run> = state.runs.by().open.iter().collect();
        let waits = [RunStatus::Pending, RunStatus::Confirmed, RunStatus::PlanQueued, RunStatus::ApplyQueued];
        let waiting = open_runs.iter().filter(|run| waits.contains(&run.status) && sight.of(run).is_some()).count();
        let mut view = |run: &Run| {
            let workspace = sight.of(run)?;
            Some(RunView { run: run.clone(), workspace: workspace.clone(), org: org.clone(), reader: None })
        };
        let in_status = |wanted: &'static [RunStatus]| {
            let mut found: Vec<&Run> = open_runs.iter().copied().filter(|run| wanted.contains(&run.status)).collect();
            found.sort_by_key(|run| (run.created_at, run.id));
            found
        };
        let planned: Vec<RunView> =
            in_status(&[RunStatus::Planned, RunStatus::PolicyOverride, RunStatus::PlannedAndSaved])
                .into_iter()
                .filter_map(&mut view)
                .collect();
        let under_way = in_status(&[
            RunStatus::PrePlanRunning,
            RunStatus::Planning,
            RunStatus::PostPlanRunning,
            RunStatus::PreApplyRunning,
            RunStatus::Applying,
        ])
        .into_iter()
        .filter_map(&mut view)
        .take(MAX_ROWS)
        .collect();
        let since = self.now().saturating_sub(DAY).unwrap_or(Timestamp::MIN);
        let newest = state.runs.by().newest.iter().take(NEWEST);
        let failed = newest.filter(|run| failed_after(run, since)).filter_map(&mut view).take(MAX_ROWS).collect();
        let may_decide = |view: &RunView| caller.may(Action::ApplyRun, view.resource()).allowed;
        let (mut to_decide, for_others): (Vec<_>, Vec<_>) = planned.into_iter().partition(may_decide);
        to_decide.truncate(MAX_ROWS);
        let locked = state.workspaces_by_name().filter(|workspace| is_locked_by_someone(workspace));
        let seen = |workspace: &&Workspace| {
            let resource = taco_domain::permission::Resource::Workspace(&state, workspace);
            caller.may(Action::ReadWorkspace, resource).allowed
        };
        let locked = locked.filter(seen).take(MAX_ROWS).cloned().collect();
        let present = self.presence().agents();
        let able: Vec<&AgentPresence> = present.iter().filter(|agent| is_of(&state, agent)).collect();
        let silent = state
            .agents
            .iter()
            .filter(|agent| agent.exited_at.is_none() && !present.iter().any(|present| present.agent == agent.id));
        Ok(Dashboard {
            to_decide,
            for_others: for_others.len(),
            under_way,
            failed,
            waiting,
            locked,
            agents: able.len(),
            busy_agents: able.iter().filter(|agent| agent.busy > 0).count(),
            silent_agents: silent.take(MAX_ROWS).cloned().collect(),
            org: org.clone(),
        })
    }

    /// Runs that agents execute, that wait for one, and that wait for their turn, in this order, as far as the caller
    /// may see them.
    pub async fn queued_runs(
        &self,
        caller: &Caller,
        organization: &str,
        page: PageRequest,
    ) -> Result<Listed<RunView>, Error> {
        let org = self.organization_named(caller, organization).await?;
        let state = &org.state;
        let mut sight = VisibleWorkspaces::new(caller, state);
        let open_runs = state.runs.by().open.iter();
        let mut behind: Vec<&Run> =
            open_runs.filter(|run| matches!(run.status, RunStatus::Pending | RunStatus::Confirmed)).collect();
        behind.sort_by_key(|run| (run.created_at, run.id));
        let all = state.run_queue().chain(behind);
        let seen = all.filter_map(|run| sight.of(run).map(|workspace| (run, workspace)));
        Ok(RunView::page_of(&org, seen, page))
    }
}

fn failed_after(run: &Run, since: Timestamp) -> bool {
    run.status == RunStatus::Errored && run.timestamps.get("errored-at").is_some_and(|at| *at >= since)
}

fn is_locked_by_someone(workspace: &Workspace) -> bool {
    workspace.lock.as_ref().is_some_and(|lock| !matches!(lock.holder, Author::Run(_)))
}

/// True if an agent belongs to one of the organization's pools, or runs within a server.
fn is_of(state: &OrganizationState, agent: &AgentPresence) -> bool {
    agent.pool.is_none_or(|pool| state.agent_pools.contains(&pool))
}
