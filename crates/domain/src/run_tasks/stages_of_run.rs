//! The stages of a run: which it has when it begins, when their turn comes, and where the run goes from there.

use jiff::Timestamp;

use crate::author::Author;
use crate::id::WorkspaceId;
use crate::organization_state::OrganizationState;
use crate::phase::PhaseKind;
use crate::run::{Run, RunSource};
use crate::run_status::{IllegalTransition, RunEvent, RunStatus};
use crate::run_tasks::run_task::{RunTask, TaskEnforcement};
use crate::run_tasks::task_result::{MAX_TASKS_OF_STAGE, TaskResult, TaskResultStatus};
use crate::run_tasks::task_stage::{StageKind, TaskStage, TaskStageStatus};
use crate::run_tasks::workspace_run_task::{WorkspaceRunTask, WorkspaceRunTaskId};
use crate::small_map::SmallMap;

impl OrganizationState {
    /// A workspace's own tasks, oldest first.
    pub fn run_tasks_of(&self, workspace: WorkspaceId) -> impl Iterator<Item = &WorkspaceRunTask> {
        self.workspace_run_tasks.by().workspace.under(&workspace)
    }

    /// The stages that a new run of a workspace has. A run that is never applied has those of a plan.
    pub fn stages_of_new_run(&self, workspace: WorkspaceId, plan_only: bool, now: Timestamp) -> Vec<TaskStage> {
        if self.run_tasks.is_empty() {
            return Vec::new();
        }
        let is_reached = |stage: &StageKind| !plan_only || *stage <= StageKind::PostPlan;
        let stages = StageKind::ALL.into_iter().filter(is_reached);
        let stages = stages.map(|stage| TaskStage::new(stage, self.results_of_stage(workspace, stage, now), now));
        stages.filter(|stage| !stage.results.is_empty()).collect()
    }

    /// The tasks that are asked in one stage: the workspace's own, then those of all workspaces. One that is both is asked
    /// once, and stops the run if either says so.
    fn results_of_stage(&self, workspace: WorkspaceId, stage: StageKind, now: Timestamp) -> Vec<TaskResult> {
        let mut results = Vec::new();
        for own in self.run_tasks_of(workspace).filter(|own| own.stages.contains(&stage)) {
            if let Some(task) = self.run_tasks.get(&own.task).filter(|task| task.enabled) {
                let level = own.enforcement.max(task.everywhere_in(stage).unwrap_or_default());
                results.push(new_result(task, Some(own.id), level, stage, now));
            }
        }
        for task in self.run_tasks.by().global.iter().filter(|task| task.enabled) {
            let is_there = results.iter().any(|result: &TaskResult| result.task == task.id);
            if let Some(level) = task.everywhere_in(stage).filter(|_| !is_there) {
                results.push(new_result(task, None, level, stage, now));
            }
        }
        // What stops a run comes first, so that none of it is left out.
        results.sort_by_key(|result| !result.is_mandatory());
        results.truncate(MAX_TASKS_OF_STAGE);
        results
    }
}

fn new_result(
    task: &RunTask,
    workspace_task: Option<WorkspaceRunTaskId>,
    level: TaskEnforcement,
    stage: StageKind,
    now: Timestamp,
) -> TaskResult {
    let stops_nothing = stage == StageKind::PostApply;
    TaskResult {
        task: task.id,
        workspace_task,
        task_name: task.name.to_string(),
        task_url: task.url.clone(),
        enforcement: if stops_nothing { TaskEnforcement::Advisory } else { level },
        status: TaskResultStatus::Pending,
        message: String::new(),
        url: None,
        timestamps: SmallMap::default(),
        created_at: now,
        updated_at: now,
        begun_at: None,
        heard_at: None,
        attempts: 0,
        next_attempt_at: None,
        outcomes: None,
    }
}

impl Run {
    pub fn stage(&self, kind: StageKind) -> Option<&TaskStage> {
        self.stages.iter().find(|stage| stage.stage == kind)
    }

    pub fn stage_mut(&mut self, kind: StageKind) -> Option<&mut TaskStage> {
        self.stages.iter_mut().find(|stage| stage.stage == kind)
    }

    /// True once readers of a phase may take it as ended. The `remote` backend knows no task stages: it looks at the run
    /// once, right after its plan, so the plan's end is held back for it until the tasks have answered.
    pub fn has_ended_for_readers(&self, kind: PhaseKind) -> bool {
        let asks_about_plan = kind == PhaseKind::Plan && self.status == RunStatus::PostPlanRunning;
        let is_held_back = asks_about_plan && self.source == RunSource::Terraform;
        self.phase(kind).status.is_final() && !is_held_back
    }

    /// The stage that is being answered.
    pub fn running_stage(&self) -> Option<&TaskStage> {
        self.stages.iter().find(|stage| stage.status == TaskStageStatus::Running)
    }

    /// The earliest time at which a server has to look at one of its tasks.
    pub fn tasks_due_at(&self) -> Option<Timestamp> {
        self.running_stage()?.results.iter().filter_map(TaskResult::due_at).min()
    }

    /// True if a stage has to be answered before what comes next.
    pub(crate) fn has_ahead(&self, kind: StageKind) -> bool {
        self.stage(kind).is_some_and(|stage| stage.status == TaskStageStatus::Pending)
    }

    /// Brings the stages in line with the run's status, after `event`.
    pub(crate) fn follow_with_stages(&mut self, event: RunEvent, now: Timestamp) {
        let current = match self.status {
            RunStatus::PrePlanRunning => Some(StageKind::PrePlan),
            RunStatus::PostPlanRunning => Some(StageKind::PostPlan),
            RunStatus::PreApplyRunning => Some(StageKind::PreApply),
            RunStatus::Applied => Some(StageKind::PostApply),
            _ => None,
        };
        let is_over = self.status.is_final();
        for stage in &mut self.stages {
            if Some(stage.stage) == current && stage.status == TaskStageStatus::Pending {
                stage.begin(now);
            } else if is_over && Some(stage.stage) != current {
                stage.end_with_run(now);
            }
        }
        if event == RunEvent::StagePassed {
            let done = match self.status {
                RunStatus::PlanQueued => "pre-plan-completed-at",
                _ => "pre-apply-completed-at",
            };
            self.timestamps.insert(done.into(), now);
        }
    }

    /// The run after an answer was noted in the stage `kind`: still waiting, or gone on, or stopped.
    pub fn after_answers(&self, kind: StageKind, now: Timestamp) -> Result<Self, IllegalTransition> {
        let mut run = self.clone();
        let Some(stage) = run.stage_mut(kind) else { return Ok(run) };
        let Some(verdict) = stage.verdict() else { return Ok(run) };
        stage.enter(verdict, now);
        let why = stage.why_stopped();
        match (kind, verdict) {
            (StageKind::PostApply, _) => Ok(run),
            (_, TaskStageStatus::Passed) => match kind {
                StageKind::PostPlan => {
                    run.timestamps.insert("post-plan-completed-at".into(), now);
                    let has_changes = run.has_changes.unwrap_or_default();
                    run.after_plan(has_changes, now)
                }
                _ => run.after(RunEvent::StagePassed, now, Author::Taco),
            },
            _ => {
                let mut failed = run.after(RunEvent::Failed, now, Author::Taco)?;
                let why = why.map(|why| format!("The run was stopped: {why}"));
                // The phase that does not begin says why.
                let stopped = if kind == StageKind::PrePlan { &mut failed.plan } else { &mut failed.apply };
                stopped.error.clone_from(&why);
                if let Some(entry) = failed.history.last_mut() {
                    entry.description = why;
                }
                Ok(failed)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::configuration_version::tests::given_configuration;
    use crate::id::{AgentId, RunId};
    use crate::new_run::NewRun;
    use crate::phase::{Executor, PhaseStatus};
    use crate::run::RunOptions;
    use crate::run::tests::given_run;
    use crate::run_policies::tests::failed_policies;
    use crate::run_queue::tests::{given_state, now};
    use crate::run_tasks::run_task::{GlobalConfiguration, RunTaskId};
    use crate::run_tasks::task_result::tests::given_result;
    use crate::run_tasks::task_result::{RequestOutcome, TaskAnswer};

    const ADVISORY: TaskEnforcement = TaskEnforcement::Advisory;
    const MANDATORY: TaskEnforcement = TaskEnforcement::Mandatory;

    /// A run that is asked about in these stages by one task each.
    fn asked_in(stages: &[StageKind], enforcement: TaskEnforcement, options: RunOptions) -> Run {
        let stages = stages.iter().map(|stage| TaskStage::new(*stage, vec![given_result(1, enforcement)], now()));
        Run { stages: stages.collect(), options, ..given_run(1) }.created(now())
    }

    fn taken(run: &Run) -> Run {
        let executor = Executor { agent: AgentId::from_random([1; 16]), agent_name: "one".to_owned(), pool: None };
        run.taken(executor, now()).expect("legal").0
    }

    fn answered(run: &Run, kind: StageKind, status: TaskResultStatus) -> Run {
        let mut run = run.clone();
        let result = &mut run.stage_mut(kind).expect("a stage").results[0];
        result.answer(&TaskAnswer { status, message: None, url: None }, None, now()).expect("in time");
        run.after_answers(kind, now()).expect("legal")
    }

    fn status_of(run: &Run, kind: StageKind) -> TaskStageStatus {
        run.stage(kind).expect("a stage").status
    }

    #[test]
    fn policies_are_judged_when_the_tasks_after_the_plan_have_passed() {
        use {RunStatus as S, StageKind as K};
        let judged = |overridable, answer| {
            let planning = Run {
                status: S::Planning,
                policies: Some(Box::new(failed_policies(overridable))),
                has_changes: Some(true),
                ..asked_in(&[K::PostPlan], MANDATORY, RunOptions::default())
            };
            let asked = planning.after_plan(true, now()).expect("legal");
            assert_eq!(asked.status, S::PostPlanRunning);
            answered(&asked, K::PostPlan, answer)
        };
        let waits = judged(true, TaskResultStatus::Passed);
        assert_eq!(waits.status, S::PolicyOverride);
        let overridden = waits.after_override(Author::Taco, now()).expect("legal");
        assert_eq!(overridden.status, S::Planned, "its tasks are not asked again");
        assert_eq!(judged(false, TaskResultStatus::Passed).status, S::Errored);
        assert_eq!(judged(true, TaskResultStatus::Failed).status, S::Errored, "a task stops it before that");
    }

    #[test]
    fn each_stage_is_asked_when_its_turn_comes() {
        use {RunStatus as S, StageKind as K, TaskStageStatus as T};
        let run = asked_in(&K::ALL, MANDATORY, RunOptions::default());
        assert_eq!((run.status, run.tasks_due_at()), (S::Pending, None));
        let run = run.after(RunEvent::ReachedFront, now(), Author::Taco).expect("legal");
        assert_eq!((run.status, run.queue_key(), run.tasks_due_at()), (S::PrePlanRunning, None, Some(now())));
        assert_eq!((run.plan.status, status_of(&run, K::PrePlan)), (PhaseStatus::Pending, T::Running));
        let run = answered(&run, K::PrePlan, TaskResultStatus::Running);
        assert_eq!(run.status, S::PrePlanRunning, "it works on it");
        let run = answered(&run, K::PrePlan, TaskResultStatus::Passed);
        assert_eq!((run.status, status_of(&run, K::PrePlan)), (S::PlanQueued, T::Passed));
        let again = taken(&run).after(RunEvent::PlanLost, now(), Author::Taco).expect("legal");
        assert_eq!(again.status, S::PlanQueued, "what has passed is not asked again");
        let run = taken(&again).after_plan(true, now()).expect("legal");
        assert_eq!((run.status, run.plan.status), (S::PostPlanRunning, PhaseStatus::Finished));
        let knows_no_stages = Run { source: RunSource::Terraform, ..run.clone() };
        assert!(run.has_ended_for_readers(PhaseKind::Plan) && !knows_no_stages.has_ended_for_readers(PhaseKind::Plan));
        let run = Run { has_changes: Some(true), ..run };
        let run = answered(&run, K::PostPlan, TaskResultStatus::Passed);
        assert_eq!(run.status, S::Planned);
        let run = run.after(RunEvent::Confirmed, now(), Author::Taco).expect("legal");
        assert_eq!((run.status, run.apply.status), (S::PreApplyRunning, PhaseStatus::Pending));
        assert!(run.confirmed_by.is_some());
        let run = answered(&run, K::PreApply, TaskResultStatus::Passed);
        assert_eq!(run.status, S::ApplyQueued);
        let run = taken(&run).after(RunEvent::Applied, now(), Author::Taco).expect("legal");
        assert_eq!((run.status, status_of(&run, K::PostApply)), (S::Applied, T::Running));
        assert!(run.tasks_due_at().is_some(), "it is still asked");
        let run = answered(&run, K::PostApply, TaskResultStatus::Failed);
        assert_eq!((run.status, status_of(&run, K::PostApply)), (S::Applied, T::Passed), "nothing can be stopped");
        let words: Vec<&str> = run.history.iter().map(|entry| entry.action.as_str()).collect();
        assert_eq!(
            words,
            [
                "created",
                "pre_plan_running",
                "plan_queued",
                "planning",
                "plan_requeued",
                "planning",
                "post_plan_running",
                "planned",
                "confirmed",
                "apply_queued",
                "applying",
                "applied",
            ]
        );
        for time in ["pre-plan-completed-at", "post-plan-completed-at", "pre-apply-completed-at", "confirmed-at"] {
            assert!(run.timestamps.contains_key(time), "{time}");
        }
    }

    #[test]
    fn what_is_mandatory_stops_a_run_and_what_is_advisory_does_not() {
        use {RunStatus as S, StageKind as K, TaskStageStatus as T};
        for (level, answer, expected, stage) in [
            (MANDATORY, TaskResultStatus::Failed, S::Errored, T::Failed),
            (ADVISORY, TaskResultStatus::Failed, S::PlanQueued, T::Passed),
            (MANDATORY, TaskResultStatus::Passed, S::PlanQueued, T::Passed),
        ] {
            let run = asked_in(&K::ALL, level, RunOptions::default());
            let run = run.after(RunEvent::ReachedFront, now(), Author::Taco).expect("legal");
            let run = answered(&run, K::PrePlan, answer);
            assert_eq!((run.status, status_of(&run, K::PrePlan)), (expected, stage), "{level} {answer}");
            let later = if expected == S::Errored { T::Unreachable } else { T::Pending };
            assert_eq!(status_of(&run, K::PostApply), later);
        }
        let planning = Run { status: S::Planning, ..asked_in(&[K::PostPlan], MANDATORY, RunOptions::default()) };
        let mut run = planning.after_plan(true, now()).expect("legal");
        run.stage_mut(K::PostPlan).expect("one").results[0]
            .note_request(&RequestOutcome::Refused("it answered 404".to_owned()), now());
        let stopped = run.after_answers(K::PostPlan, now()).expect("legal");
        assert_eq!((stopped.status, status_of(&stopped, K::PostPlan)), (S::Errored, T::Errored));
        let why = "The run was stopped: the mandatory task task-1 gave no answer in the Post-plan stage";
        assert_eq!(stopped.apply.error.as_deref(), Some(why));
        assert_eq!((stopped.plan.status, stopped.apply.status), (PhaseStatus::Finished, PhaseStatus::Unreachable));
    }

    #[test]
    fn a_run_that_applies_by_itself_is_asked_on_its_way() {
        use {RunStatus as S, StageKind as K};
        let auto = RunOptions { auto_apply: true, ..RunOptions::default() };
        let run = asked_in(&[K::PostPlan, K::PreApply], MANDATORY, auto);
        let planning = Run { status: S::Planning, has_changes: Some(true), ..run };
        let run = planning.after_plan(true, now()).expect("legal");
        assert_eq!(run.status, S::PostPlanRunning);
        let run = answered(&run, K::PostPlan, TaskResultStatus::Passed);
        assert_eq!(run.status, S::PreApplyRunning);
        assert_eq!(answered(&run, K::PreApply, TaskResultStatus::Passed).status, S::ApplyQueued);
        let saved = RunOptions { save_plan: true, ..RunOptions::default() };
        let run = Run { status: S::PlannedAndSaved, ..asked_in(&[K::PreApply], MANDATORY, saved) };
        let run = run.after(RunEvent::Confirmed, now(), Author::Taco).expect("legal");
        assert_eq!(run.status, S::Confirmed, "it waits for its place first");
        assert_eq!(run.after(RunEvent::ReachedFront, now(), Author::Taco).expect("legal").status, S::PreApplyRunning);
    }

    #[test]
    fn a_run_that_is_canceled_asks_no_more() {
        use {StageKind as K, TaskStageStatus as T};
        let run = asked_in(&K::ALL, MANDATORY, RunOptions::default());
        let run = run.after(RunEvent::ReachedFront, now(), Author::Taco).expect("legal");
        let canceled = run.canceled(Author::Taco, now()).expect("legal");
        assert_eq!((canceled.status, canceled.tasks_due_at()), (RunStatus::Canceled, None));
        assert_eq!(
            (status_of(&canceled, K::PrePlan), status_of(&canceled, K::PreApply)),
            (T::Canceled, T::Unreachable)
        );
        let results: Vec<_> = canceled.stages.iter().map(|stage| stage.results[0].status).collect();
        use TaskResultStatus as R;
        assert_eq!(results, [R::Canceled, R::Unreachable, R::Unreachable, R::Unreachable]);
    }

    #[test]
    fn a_new_run_has_the_stages_of_its_workspace_and_of_all() {
        let (mut state, workspace) = given_state(&[]);
        let task = |number: u8, enabled, global: Option<(&[StageKind], TaskEnforcement)>| RunTask {
            id: RunTaskId::from_random([number; 16]),
            name: format!("task-{number}").parse().expect("legal"),
            url: "https://task.test".to_owned(),
            description: String::new(),
            sealed_hmac_key: None,
            enabled,
            global: global.map(|(stages, enforcement)| GlobalConfiguration {
                enabled: true,
                stages: stages.to_vec(),
                enforcement,
            }),
            created_at: now(),
            updated_at: now(),
        };
        let own = |number: u8, stages: &[StageKind], enforcement| WorkspaceRunTask {
            id: WorkspaceRunTaskId::from_random([number; 16]),
            workspace: workspace.id,
            task: RunTaskId::from_random([number; 16]),
            enforcement,
            stages: stages.to_vec(),
            created_at: now(),
        };
        use StageKind as K;
        for task in
            [task(1, true, None), task(2, false, None), task(3, true, Some((&[K::PostPlan, K::PostApply], MANDATORY)))]
        {
            state.run_tasks.put(&task).expect("put");
        }
        for own in [
            own(1, &[K::PostPlan, K::PreApply], ADVISORY),
            own(2, &[K::PrePlan], MANDATORY),
            own(3, &[K::PostPlan], ADVISORY),
        ] {
            state.workspace_run_tasks.put(&own).expect("put");
        }
        let configuration = given_configuration(1);
        let new = |plan_only| NewRun {
            id: RunId::from_random([5; 16]),
            configuration: &configuration,
            options: RunOptions { plan_only, ..RunOptions::default() },
            source: RunSource::Api,
            structured_output: false,
            by: Author::Taco,
            now: now(),
        };
        let run = new(false).into_run(&state);
        let shown: Vec<_> = run
            .stages
            .iter()
            .map(|stage| {
                let names = stage.results.iter().map(|result| (result.task_name.as_str(), result.enforcement));
                (stage.stage, names.collect::<Vec<_>>())
            })
            .collect();
        assert_eq!(
            shown,
            [
                (K::PostPlan, vec![("task-3", MANDATORY), ("task-1", ADVISORY)]),
                (K::PreApply, vec![("task-1", ADVISORY)]),
                (K::PostApply, vec![("task-3", ADVISORY)]),
            ]
        );
        let stages: Vec<_> = new(true).into_run(&state).stages.iter().map(|stage| stage.stage).collect();
        assert_eq!(stages, [K::PostPlan], "nothing is applied");

        state.runs.put(&run).expect("put");
        for stage in &run.stages {
            let found = state.run_with_stage(run.stage_id(stage.stage)).expect("there");
            assert_eq!((found.0.id, found.1), (run.id, stage));
            for index in 0..stage.results.len() {
                let place = state.place_of_result(run.result_id(stage.stage, index)).expect("there");
                assert_eq!((place.run, place.stage, place.index), (run.id, stage.stage, index));
            }
        }
        assert_eq!(state.run_with_stage(run.stage_id(K::PrePlan)), None);
        assert_eq!(state.due_results(Timestamp::MAX), []);
    }
}
