//! New runs: what they begin with, their place in the queue, and what starts them by itself.

use jiff::Timestamp;

use crate::author::Author;
use crate::configuration_version::ConfigurationVersion;
use crate::execution::ExecutionMode;
use crate::graph::dependency::Dependency;
use crate::graph::output_commit::OutputCommit;
use crate::id::{RunId, RunTriggerId, WorkspaceId};
use crate::organization_state::OrganizationState;
use crate::run::{Run, RunOptions, RunSource};
use crate::run_status::RunStatus;
use crate::workspace::Workspace;

/// Maximum number of open runs of a workspace.
const MAX_OPEN_RUNS: usize = 1000;

/// Facts that a run begins with.
pub struct NewRun<'a> {
    pub id: RunId,
    pub configuration: &'a ConfigurationVersion,
    pub options: RunOptions,
    pub source: RunSource,
    /// True if its log is to be structured.
    pub structured_output: bool,
    pub by: Author,
    pub now: Timestamp,
}

/// Reason why no run can start in a workspace.
#[derive(Clone, Copy, PartialEq, Eq, thiserror::Error, Debug)]
pub enum RunsRefused {
    #[error("The workspace's execution mode is local: plan and apply on the client, or change the mode")]
    LocalExecution,
    #[error("The workspace has {MAX_OPEN_RUNS} open runs already: cancel some, or wait for them")]
    TooManyOpen,
}

impl NewRun<'_> {
    /// The run, in its place. The caller has checked that it is legal.
    pub fn into_run(self, state: &OrganizationState) -> Run {
        let workspace = self.configuration.workspace;
        let plan_only = self.options.plan_only;
        let beside = plan_only || self.options.save_plan;
        let run = Run {
            id: self.id,
            workspace,
            configuration_version: self.configuration.id,
            number: state.next_run_number(workspace),
            place: (!beside).then(|| state.last_place(workspace)),
            status: RunStatus::Pending,
            options: self.options,
            source: self.source,
            created_at: self.now,
            created_by: self.by,
            confirmed_by: None,
            plan: Default::default(),
            apply: Default::default(),
            has_changes: None,
            generated_configuration: false,
            structured_output: self.structured_output,
            cancel: None,
            timestamps: Default::default(),
            history: Vec::new(),
            planned_serial: None,
            estimates_costs: state.organization().is_some_and(|organization| organization.cost_estimation_enabled),
            own_inputs: None,
            preview: None,
            output_contract: None,
            bound: Vec::new(),
            policies: state.workspaces.get(&workspace).and_then(|it| state.policies_for(it)).map(Box::new),
            stages: state.stages_of_new_run(workspace, plan_only, self.now),
        };
        run.created(self.now)
    }
}

impl OrganizationState {
    /// Checks that runs can start in a workspace at all.
    pub fn check_runs_start(&self, workspace: &Workspace) -> Result<(), RunsRefused> {
        if self.execution_of(workspace).mode == ExecutionMode::Local {
            return Err(RunsRefused::LocalExecution);
        }
        if self.runs.by().open.get(&workspace.id).count() >= MAX_OPEN_RUNS {
            return Err(RunsRefused::TooManyOpen);
        }
        Ok(())
    }

    /// The run that the upload of a configuration was meant for. Where none can start there is none: the upload is complete
    /// all the same.
    pub fn uploaded_run(&self, id: RunId, configuration: &ConfigurationVersion, now: Timestamp) -> Option<Run> {
        let workspace = self.workspaces.get(&configuration.workspace)?;
        self.check_runs_start(workspace).ok()?;
        let may_apply = configuration.creator_may_apply && !configuration.speculative;
        let new = NewRun {
            id,
            configuration,
            options: RunOptions {
                message: "Queued by the upload of a configuration".to_owned(),
                plan_only: configuration.speculative,
                auto_apply: workspace.auto_apply && may_apply,
                ..options_of(workspace)
            },
            source: RunSource::ConfigurationVersion,
            structured_output: workspace.structured_run_output_enabled,
            by: configuration.created_by,
            now,
        };
        Some(new.into_run(self))
    }

    /// The run that an apply starts in the workspace that a trigger names, if there is a configuration to plan. Its id follows
    /// from the apply's, so that a repeated transaction makes the same run.
    pub fn triggered_run(
        &self,
        trigger: RunTriggerId,
        apply: &Run,
        source: &Workspace,
        now: Timestamp,
    ) -> Result<Option<Run>, RunsRefused> {
        let Some(known) = self.run_triggers.get(&trigger) else { return Ok(None) };
        let name = &source.name;
        let cause = RunCause {
            id: RunId::derived(apply.id.organization_prefix(), &format!("{trigger} {}", apply.id)),
            message: format!("Triggered automatically from successful run {} in the workspace {name}", apply.id),
        };
        self.run_because_of(known.workspace, cause, now)
    }

    /// The run that changed outputs start in a workspace which wants to follow them by itself, as [`Self::triggered_run`].
    pub fn following_run(
        &self,
        edge: &Dependency,
        commit: &OutputCommit,
        now: Timestamp,
    ) -> Result<Option<Run>, RunsRefused> {
        let name = self.workspaces.get(&commit.workspace).map(|source| source.name.as_str()).unwrap_or_default();
        let cause = RunCause {
            id: RunId::derived(commit.id.organization_prefix(), &format!("{} {}", edge.id, commit.id)),
            message: format!("Outputs of the workspace {name} changed in commit {}", commit.number),
        };
        self.run_because_of(edge.consumer, cause, now)
    }

    fn run_because_of(
        &self,
        workspace: WorkspaceId,
        cause: RunCause,
        now: Timestamp,
    ) -> Result<Option<Run>, RunsRefused> {
        let Some(workspace) = self.workspaces.get(&workspace) else { return Ok(None) };
        let Some(configuration) = self.usable_configuration(workspace.id) else { return Ok(None) };
        self.check_runs_start(workspace)?;
        if self.runs.contains(&cause.id) {
            return Ok(None);
        }
        let new = NewRun {
            id: cause.id,
            configuration,
            options: RunOptions {
                message: cause.message,
                auto_apply: workspace.auto_apply_run_trigger,
                ..options_of(workspace)
            },
            source: RunSource::RunTrigger,
            structured_output: workspace.structured_run_output_enabled,
            by: Author::Taco,
            now,
        };
        Ok(Some(new.into_run(self)))
    }
}

/// What starts a run by itself.
struct RunCause {
    /// It follows from the cause alone.
    id: RunId,
    message: String,
}

/// Options of a run that nobody asked for with others.
fn options_of(workspace: &Workspace) -> RunOptions {
    RunOptions {
        engine: workspace.engine,
        terraform_version: workspace.terraform_version.clone(),
        ..RunOptions::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::configuration_version::tests::given_configuration;
    use crate::execution::Execution;
    use crate::id::{ProjectId, WorkspaceId};
    use crate::run::tests::given_run;

    fn workspace() -> Workspace {
        let (id, project) = (WorkspaceId::from_random([1; 16]), ProjectId::from_random([2; 16]));
        Workspace::new(id, "web".parse().expect("legal"), project, Timestamp::UNIX_EPOCH)
    }

    fn state(workspace: &Workspace, runs: usize) -> OrganizationState {
        let mut state = OrganizationState::default();
        state.workspaces.put(workspace).expect("put");
        for number in 0..runs {
            let mut random = [9; 16];
            random[..8].copy_from_slice(&(number as u64).to_be_bytes());
            let run = Run { id: RunId::from_random(random), number: number as u64 + 1, ..given_run(1) };
            state.runs.put(&run).expect("put");
        }
        state
    }

    #[test]
    fn an_upload_starts_a_run_that_applies_where_its_sender_may() {
        let workspace = Workspace { auto_apply: true, ..workspace() };
        let state = state(&workspace, 0);
        let (id, now) = (RunId::from_random([3; 16]), Timestamp::UNIX_EPOCH);
        for (creator_may_apply, speculative, auto_apply) in
            [(true, false, true), (false, false, false), (true, true, false)]
        {
            let configuration = ConfigurationVersion { creator_may_apply, speculative, ..given_configuration(1) };
            let run = state.uploaded_run(id, &configuration, now).expect("one");
            assert_eq!((run.options.auto_apply, run.options.plan_only), (auto_apply, speculative));
            assert_eq!((run.number, run.place.is_some()), (1, !speculative), "a plan alone needs no place");
        }
    }

    #[test]
    fn no_run_starts_where_the_client_executes_or_too_many_wait() {
        let (id, now) = (RunId::from_random([3; 16]), Timestamp::UNIX_EPOCH);
        let local = Workspace { execution: Some(Execution::LOCAL), ..workspace() };
        assert_eq!(state(&local, 0).check_runs_start(&local), Err(RunsRefused::LocalExecution));
        let remote = workspace();
        assert_eq!(state(&remote, MAX_OPEN_RUNS - 1).check_runs_start(&remote), Ok(()));
        let full = state(&remote, MAX_OPEN_RUNS);
        assert_eq!(full.check_runs_start(&remote), Err(RunsRefused::TooManyOpen));
        assert_eq!(full.uploaded_run(id, &given_configuration(1), now), None);
    }
}
