//! How runs went lately: per day in an organization, and the newest of a workspace. Counts come from memory and from the
//! catalogs of history, never from records in history.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use taco_boxed::boxed;
use taco_domain::history::PastRun;
use taco_domain::id::{RunId, WorkspaceId};
use taco_domain::permission::{Action, Resource};
use taco_domain::phase::Phase;
use taco_domain::run::Run;
use taco_domain::run_activity::RunActivity;
use taco_domain::run_outcome::RunOutcome;
use taco_domain::run_status::RunStatus;
use taco_domain::state_version::StateVersion;

use crate::caller::Caller;
use crate::control_plane::{ControlPlane, OrganizationSnapshot};
use crate::runs::VisibleWorkspaces;
use crate::workspace_view::WorkspaceView;

/// A run among the newest of its workspace.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RecentRun {
    pub id: RunId,
    pub number: u64,
    pub outcome: RunOutcome,
    /// `None` for one in history, of which only the outcome is at hand; so too its message.
    pub status: Option<RunStatus>,
    pub message: String,
    pub created_at: Timestamp,
    /// Time that agents spent on it; `None` if they did not, or nobody knows any more.
    pub executed: Option<SignedDuration>,
}

impl RecentRun {
    fn of(run: &Run, now: Timestamp) -> Self {
        let phases = [&run.plan, &run.apply].map(|phase| executed(phase, now));
        Self {
            id: run.id,
            number: run.number,
            outcome: RunOutcome::of(run.status),
            status: Some(run.status),
            message: run.options.message.lines().next().unwrap_or_default().to_owned(),
            created_at: run.created_at,
            executed: phases.into_iter().flatten().reduce(|plan, apply| plan.saturating_add(apply)),
        }
    }
}

fn executed(phase: &Phase, now: Timestamp) -> Option<SignedDuration> {
    let started = phase.started_at?;
    Some(phase.ended_at.unwrap_or(now).duration_since(started).max(SignedDuration::ZERO))
}

/// Number of resources that a state version manages.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ResourcesAt {
    pub serial: u64,
    pub created_at: Timestamp,
    pub resources: u64,
}

#[boxed]
impl ControlPlane {
    /// The runs of the last days that the caller may see.
    pub async fn run_activity(&self, caller: &Caller, org: &OrganizationSnapshot, days: usize) -> RunActivity {
        let state = org.state.clone();
        let mut activity = RunActivity::of_days(days, self.now());
        let mut sight = VisibleWorkspaces::new(caller, &state);
        let newest = state.runs.by().newest.iter().take_while(|run| run.created_at >= activity.begins());
        let seen: Vec<&Run> = newest.filter(|run| sight.of(run).is_some()).collect();
        for run in seen {
            activity.add(run.created_at, RunOutcome::of(run.status));
        }
        let sees = |id: WorkspaceId| {
            let workspace = state.workspaces.get(&id);
            workspace
                .is_some_and(|workspace| caller.may(Action::ReadRuns, Resource::Workspace(&state, workspace)).allowed)
        };
        if let Err(error) = self.add_historic_runs(org, &mut activity, &sees).await {
            tracing::debug!(%error, "a dashboard lacks the runs in history");
        }
        activity
    }

    /// The newest runs of a workspace, newest first; none if the caller may not see them.
    pub async fn recent_runs(&self, caller: &Caller, view: &WorkspaceView, most: usize) -> Vec<RecentRun> {
        if !caller.may(Action::ReadRuns, view.resource()).allowed {
            return Vec::new();
        }
        let (state, id) = (&view.org.state, view.workspace.id);
        let now = self.now();
        let mut runs: Vec<RecentRun> = state.runs_of(id).take(most).map(|run| RecentRun::of(run, now)).collect();
        let historic = match self.newest_historic_runs(&view.org, id, most - runs.len()).await {
            Ok(historic) => historic,
            Err(error) => {
                tracing::debug!(%error, "a workspace's page lacks the runs in history");
                Vec::new()
            }
        };
        let past = state.workspace_histories.get(&id).map_or(&[][..], |history| &history.newest);
        let past: BTreeMap<u64, &PastRun> = past.iter().map(|run| (run.number, run)).collect();
        runs.extend(historic.into_iter().map(|run| {
            let phases = past.get(&run.number).map(|past| [past.plan, past.apply]);
            let executed = phases.and_then(|phases| phases.into_iter().flatten().reduce(|plan, apply| plan + apply));
            RecentRun {
                id: run.id,
                number: run.number,
                outcome: run.outcome,
                status: None,
                message: String::new(),
                created_at: run.created_at,
                executed: executed.map(SignedDuration::from_millis),
            }
        }));
        runs
    }

    /// How many resources the newest state versions of a workspace manage, the oldest first; none if the caller may not
    /// see them. What an apply wrote on its way counts as little as in lists.
    pub fn resource_history(&self, caller: &Caller, view: &WorkspaceView, most: usize) -> Vec<ResourcesAt> {
        if !caller.may(Action::ReadState, view.resource()).allowed {
            return Vec::new();
        }
        let state = &view.org.state;
        let counts = |version: &&StateVersion| version.has_known_resources() && !state.is_intermediate(version);
        let newest = state.state_versions_of(view.workspace.id).filter(counts).take(most);
        let mut counts: Vec<ResourcesAt> = newest
            .map(|version| ResourcesAt {
                serial: version.serial,
                created_at: version.created_at,
                resources: version.resource_count,
            })
            .collect();
        let history = state.workspace_histories.get(&view.workspace.id);
        let past = history.map_or(&[][..], |history| &history.newest_states);
        counts.extend(past.iter().map(|past| ResourcesAt {
            serial: past.serial,
            created_at: past.created_at,
            resources: past.resources,
        }));
        // What came back from history is in both.
        counts.sort_by_key(|one| (one.created_at, one.serial));
        counts.dedup_by_key(|one| (one.created_at, one.serial));
        counts.drain(..counts.len().saturating_sub(most));
        counts
    }
}
