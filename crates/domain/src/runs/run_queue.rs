//! The queue of a workspace: which of its runs may begin. Nothing of it is stored but each run's place, so it cannot
//! disagree with the runs.

use jiff::Timestamp;

use crate::author::Author;
use crate::configuration_version::ConfigurationVersion;
use crate::id::{RunId, WorkspaceId};
use crate::lock::Lock;
use crate::organization_state::OrganizationState;
use crate::run::Run;
use crate::run_status::{IllegalTransition, RunEvent, RunStatus};
use crate::workspace::Workspace;

impl OrganizationState {
    /// A workspace's runs, newest first.
    pub fn runs_of(&self, workspace: WorkspaceId) -> impl Iterator<Item = &Run> {
        self.runs.by().workspace.under(&workspace)
    }

    /// The runs of a workspace that may change its state and are not over, in order. The first is the current one.
    pub fn queue_of(&self, workspace: WorkspaceId) -> impl Iterator<Item = &Run> {
        self.runs.by().place.under(&workspace)
    }

    /// The run that a workspace is busy with: the first of its queue, else the newest of all.
    pub fn current_run(&self, workspace: WorkspaceId) -> Option<&Run> {
        self.queue_of(workspace).next().or_else(|| self.runs_of(workspace).find(|run| !run.options.plan_only))
    }

    /// A workspace's configurations, newest first.
    pub fn configurations_of(&self, workspace: WorkspaceId) -> impl Iterator<Item = &ConfigurationVersion> {
        self.configuration_versions.by().workspace.under(&workspace)
    }

    /// The newest configuration of a workspace that is more than a plan's.
    pub fn current_configuration(&self, workspace: WorkspaceId) -> Option<&ConfigurationVersion> {
        self.configurations_of(workspace).find(|version| self.counts(version))
    }

    /// The same, among those that runs can use.
    pub fn usable_configuration(&self, workspace: WorkspaceId) -> Option<&ConfigurationVersion> {
        self.configurations_of(workspace).find(|version| version.is_usable() && self.counts(version))
    }

    /// A provisional configuration counts once someone has wanted a run of it applied.
    fn counts(&self, version: &ConfigurationVersion) -> bool {
        let mut runs = self.runs.by().configuration_version.get(&version.id);
        !version.speculative && (!version.provisional || runs.any(|run| run.confirmed_by.is_some()))
    }

    /// The number of a workspace's next configuration.
    pub fn next_configuration_number(&self, workspace: WorkspaceId) -> u64 {
        self.configurations_of(workspace).next().map_or(1, |newest| newest.number + 1)
    }

    /// Runs that agents execute or that wait for one, in order: first those under way, then those ready.
    pub fn run_queue(&self) -> impl Iterator<Item = &Run> {
        self.runs.by().executing.iter().chain(self.runs.by().queue.iter())
    }

    /// Number of the organization's phases that are under way or go out before this run's; 0 for a run of which none is
    /// ready. Clients subtract those under way, and show how many runs theirs waits for.
    pub fn position_in_queue(&self, run: &Run) -> usize {
        let Some(own) = run.queue_key() else { return 0 };
        let before = self.runs.by().queue.iter().take_while(|run| run.queue_key() < Some(own)).count();
        self.runs.by().executing.len() + before
    }

    /// The number of a workspace's next run.
    pub fn next_run_number(&self, workspace: WorkspaceId) -> u64 {
        self.runs_of(workspace).next().map_or(1, |newest| newest.number + 1)
    }

    /// The place behind everything that waits in a workspace.
    pub fn last_place(&self, workspace: WorkspaceId) -> u64 {
        self.queue_of(workspace).filter_map(|run| run.place).max().map_or(1, |last| last + 1)
    }
}

/// Next step of a workspace after any change to it: the run that may begin, and the workspace as that run holds it.
/// `None` if there is none. Every transaction that ends a run, releases a lock or creates a run also calls this, so a
/// run never waits for nothing.
pub fn advance(state: &OrganizationState, workspace: &Workspace, now: Timestamp) -> Option<(Run, Workspace)> {
    let first = state.queue_of(workspace.id).next()?;
    let waits = matches!(first.status, RunStatus::Pending | RunStatus::Confirmed);
    let holder = Author::Run(first.id);
    let free = workspace.lock.as_ref().is_none_or(|lock| lock.holder == holder);
    if !waits || !free {
        return None;
    }
    let run = first.after(RunEvent::ReachedFront, now, Author::Taco).ok()?;
    let lock = Lock { holder, holder_name: run.id.to_string(), since: now, reason: None, from: None, http: None };
    Some((run, Workspace { lock: Some(lock), ..workspace.clone() }))
}

/// The run after someone wants it applied. A saved plan joins its workspace's queue, at the end.
pub fn confirmed(state: &OrganizationState, run: &Run, by: Author, now: Timestamp) -> Result<Run, IllegalTransition> {
    let mut confirmed = run.after(RunEvent::Confirmed, now, by)?;
    if confirmed.status == RunStatus::Confirmed {
        confirmed.place = Some(state.last_place(run.workspace));
    }
    Ok(confirmed)
}

/// Reason why a run cannot begin before those ahead of it.
#[derive(Clone, PartialEq, Eq, thiserror::Error, Debug)]
pub enum ForceExecuteRefused {
    #[error("the run is {0}; force-execute needs a run that is pending")]
    NotPending(RunStatus),
    #[error("{run} is {status}, and what an agent executes is not pushed aside: cancel it, or wait")]
    UnderWay { run: RunId, status: RunStatus },
    #[error("The workspace {0}: unlock it first")]
    Locked(String),
}

/// Runs ahead of a pending run, discarded or canceled so that it can begin.
pub fn make_way(
    state: &OrganizationState,
    workspace: &Workspace,
    run: &Run,
    by: Author,
    now: Timestamp,
) -> Result<Vec<Run>, ForceExecuteRefused> {
    if run.status != RunStatus::Pending {
        return Err(ForceExecuteRefused::NotPending(run.status));
    }
    let ahead: Vec<&Run> = state.queue_of(workspace.id).take_while(|other| other.place < run.place).collect();
    let holds = |lock: &&Lock| ahead.iter().any(|other| lock.holder == Author::Run(other.id));
    if let Some(lock) = workspace.lock.as_ref().filter(|lock| !holds(lock)) {
        return Err(ForceExecuteRefused::Locked(lock.in_words()));
    }
    let aside = |other: &&Run| {
        let event = if other.status.is_discardable() { RunEvent::Discarded } else { RunEvent::Canceled };
        let under_way = ForceExecuteRefused::UnderWay { run: other.id, status: other.status };
        match other.status.is_executing() {
            true => Err(under_way),
            false => other.after(event, now, by).map_err(|_| under_way),
        }
    };
    ahead.iter().map(aside).collect()
}

/// The workspace without the lock of a run that is over.
pub fn released(workspace: &Workspace, run: &Run) -> Workspace {
    let held_by_run = workspace.lock.as_ref().is_some_and(|lock| lock.holder == Author::Run(run.id));
    Workspace { lock: if held_by_run { None } else { workspace.lock.clone() }, ..workspace.clone() }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::configuration_version::tests::given_configuration;
    use crate::id::{ProjectId, UserId};
    use crate::run::RunOptions;
    use crate::run::tests::given_run;

    pub(crate) fn now() -> Timestamp {
        Timestamp::UNIX_EPOCH
    }

    /// An organization with one workspace, and these runs in it.
    pub(crate) fn given_state(runs: &[Run]) -> (OrganizationState, Workspace) {
        let id = WorkspaceId::from_random([1; 16]);
        let name = "web".parse().expect("legal");
        let workspace = Workspace::new(id, name, ProjectId::from_random([1; 16]), now());
        let mut state = OrganizationState::default();
        state.workspaces.put(&workspace).expect("put");
        for run in runs {
            state.runs.put(run).expect("put");
        }
        (state, workspace)
    }

    pub(crate) fn locked_by(workspace: &Workspace, holder: Author) -> Workspace {
        let holder_name = "jane".to_owned();
        let lock = Lock { holder, holder_name, since: now(), reason: None, from: None, http: None };
        Workspace { lock: Some(lock), ..workspace.clone() }
    }

    fn jane() -> Author {
        Author::User(UserId::from_random([9; 16]))
    }

    fn with_status(number: u8, status: RunStatus) -> Run {
        Run { status, ..given_run(number) }
    }

    #[test]
    fn runs_begin_in_the_order_in_which_they_came() {
        let (mut state, mut workspace) = given_state(&[given_run(3), given_run(1), given_run(2)]);
        let mut begun = Vec::new();
        while let Some((run, held)) = advance(&state, &workspace, now()) {
            assert_eq!(run.status, RunStatus::PlanQueued);
            assert_eq!(held.lock.as_ref().map(|lock| lock.holder), Some(Author::Run(run.id)));
            begun.push(run.number);
            state.runs.put(&run).expect("put");
            assert_eq!(advance(&state, &held, now()), None, "the first one blocks the rest");
            let over = run.after(RunEvent::Canceled, now(), Author::Taco).expect("legal");
            state.runs.put(&over).expect("put");
            workspace = released(&held, &over);
        }
        assert_eq!(begun, [1, 2, 3]);
    }

    #[test]
    fn a_speculative_run_waits_for_nobody_and_blocks_nobody() {
        let options = RunOptions { plan_only: true, ..RunOptions::default() };
        let speculative = Run { place: None, options, ..given_run(1) }.created(now());
        assert_eq!(speculative.status, RunStatus::PlanQueued);
        let (state, workspace) = given_state(&[speculative, given_run(2)]);
        let workspace = locked_by(&workspace, jane());
        assert_eq!(state.queue_of(workspace.id).map(|run| run.number).collect::<Vec<_>>(), [2]);
        assert_eq!(advance(&state, &workspace, now()), None, "what may change the state waits for the lock");
        let unlocked = Workspace { lock: None, ..workspace };
        assert_eq!(advance(&state, &unlocked, now()).map(|(run, _)| run.number), Some(2));
    }

    #[test]
    fn a_saved_plan_joins_the_queue_when_it_is_confirmed() {
        let saved = Run { place: None, ..with_status(1, RunStatus::PlannedAndSaved) };
        let (mut state, workspace) = given_state(&[saved.clone(), given_run(2)]);
        assert_eq!(state.current_run(workspace.id).map(|run| run.number), Some(2));
        let confirmed = confirmed(&state, &saved, jane(), now()).expect("legal");
        assert_eq!((confirmed.status, confirmed.place), (RunStatus::Confirmed, Some(3)));
        state.runs.put(&confirmed).expect("put");
        assert_eq!(state.queue_of(workspace.id).map(|run| run.number).collect::<Vec<_>>(), [2, 1]);
        state.runs.remove(&given_run(2).id);
        let (begun, _) = advance(&state, &workspace, now()).expect("its turn");
        assert_eq!(begun.status, RunStatus::ApplyQueued);
    }

    #[test]
    fn a_provisional_configuration_counts_once_a_run_of_it_is_confirmed() {
        let (mut state, workspace) = given_state(&[]);
        let provisional = ConfigurationVersion { provisional: true, ..given_configuration(3) };
        let speculative = ConfigurationVersion { speculative: true, ..given_configuration(2) };
        for version in [&given_configuration(1), &speculative, &provisional] {
            state.configuration_versions.put(version).expect("put");
        }
        let current =
            |state: &OrganizationState| state.usable_configuration(workspace.id).map(|version| version.number);
        assert_eq!(current(&state), Some(1));
        let run = Run { configuration_version: provisional.id, confirmed_by: Some(jane()), ..given_run(1) };
        state.runs.put(&run).expect("put");
        assert_eq!(current(&state), Some(3));
    }

    #[test]
    fn way_is_made_past_everything_but_what_is_under_way() {
        let last = given_run(3);
        let ahead = [with_status(1, RunStatus::Planned), given_run(2), last.clone()];
        let (state, workspace) = given_state(&ahead);
        let held = locked_by(&workspace, Author::Run(ahead[0].id));
        let aside = make_way(&state, &held, &last, jane(), now()).expect("legal");
        let statuses: Vec<_> = aside.iter().map(|run| run.status).collect();
        assert_eq!(statuses, [RunStatus::Discarded, RunStatus::Discarded]);
        let locked = locked_by(&workspace, jane());
        assert!(matches!(make_way(&state, &locked, &last, jane(), now()), Err(ForceExecuteRefused::Locked(_))));
        let (state, workspace) = given_state(&[with_status(1, RunStatus::Applying), last.clone()]);
        assert!(matches!(
            make_way(&state, &workspace, &last, jane(), now()),
            Err(ForceExecuteRefused::UnderWay { .. })
        ));
        let planned = with_status(1, RunStatus::Planned);
        assert!(matches!(
            make_way(&state, &workspace, &planned, jane(), now()),
            Err(ForceExecuteRefused::NotPending(_))
        ));
    }

    #[test]
    fn a_position_counts_what_is_under_way_and_what_goes_out_before() {
        let ready =
            |number, status| Run { workspace: WorkspaceId::from_random([number; 16]), ..with_status(number, status) };
        let (plan, apply) = (ready(2, RunStatus::PlanQueued), ready(3, RunStatus::ApplyQueued));
        let (state, _) = given_state(&[plan.clone(), apply.clone(), given_run(4)]);
        assert_eq!(state.run_queue().map(|run| run.number).collect::<Vec<_>>(), [3, 2]);
        assert_eq!((state.position_in_queue(&apply), state.position_in_queue(&plan)), (0, 1));
        assert_eq!(state.position_in_queue(&given_run(4)), 0);
    }
}
