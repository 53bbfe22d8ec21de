//! A run: one plan of one configuration, and perhaps its apply.

use std::cmp::Reverse;
use std::fmt;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use taco_tables::{KeyBytes, Record, SortKey, indexes, references};

use crate::author::Author;
use crate::bound_value::BoundVariable;
use crate::engine::Engine;
use crate::graph::consumption::OwnInputs;
use crate::graph::output_contract::{AcceptedChanges, OutputContract};
use crate::id::{
    self, AgentId, AgentPoolId, ApplyId, CommentId, ConfigurationVersionId, PlanId, RunEventId, RunId, StateVersionId,
    WorkspaceId,
};
use crate::organization_state::OrganizationState;
use crate::phase::{Executor, Phase, PhaseKind, PhaseStatus};
use crate::phase_attempt::PhaseAttempt;
use crate::policy_set::PolicySetId;
use crate::run_policies::RunPolicies;
use crate::run_status::{IllegalTransition, RunEvent, RunStatus};
use crate::run_tasks::run_task::RunTaskId;
use crate::run_tasks::task_stage::{StageKind, TaskStage};
use crate::run_tasks::workspace_run_task::WorkspaceRunTaskId;
use crate::run_word::RunWord;
use crate::small_map::SmallMap;

/// Through what a run came to be.
#[derive(Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Debug)]
pub enum RunSource {
    #[serde(rename = "tfe-api")]
    Api,
    #[serde(rename = "tfe-ui")]
    Page,
    /// The `remote` backend.
    #[serde(rename = "terraform")]
    Terraform,
    /// The `cloud` block.
    #[serde(rename = "terraform+cloud")]
    Cloud,
    /// A configuration that was uploaded with `auto-queue-runs`.
    #[serde(rename = "tfe-configuration-version")]
    ConfigurationVersion,
    #[serde(rename = "tfe-run-trigger")]
    RunTrigger,
}

/// Spelling on the wire.
impl fmt::Display for RunSource {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Api => "tfe-api",
            Self::Page => "tfe-ui",
            Self::Terraform => "terraform",
            Self::Cloud => "terraform+cloud",
            Self::ConfigurationVersion => "tfe-configuration-version",
            Self::RunTrigger => "tfe-run-trigger",
        })
    }
}

/// A variable that only this run has. The value is an expression, sealed.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, Debug)]
pub struct RunVariable {
    pub key: String,
    pub sealed: String,
}

impl RunVariable {
    /// The name under which its value is sealed.
    pub fn seal_name(run: RunId, key: &str) -> String {
        format!("{run} {key}")
    }
}

/// Something that happened to a run, for people.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, Debug)]
pub struct RunHistoryEntry {
    /// Name of the action, for instance `confirmed`.
    pub action: RunWord,
    pub at: Timestamp,
    pub by: Author,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub comment: Option<CommentId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
}

/// Request to stop what an agent is executing.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, Debug)]
pub struct CancelRequest {
    pub at: Timestamp,
    pub by: Author,
    /// Without waiting for the engine to end by itself.
    pub force: bool,
}

/// Options for starting a run.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, Debug)]
pub struct RunOptions {
    pub message: String,
    /// Nothing will be applied. Such a run does not wait for others.
    pub plan_only: bool,
    /// The plan is kept until someone applies it.
    pub save_plan: bool,
    pub auto_apply: bool,
    pub is_destroy: bool,
    pub refresh: bool,
    pub refresh_only: bool,
    pub allow_empty_apply: bool,
    pub allow_config_generation: bool,
    #[serde(default)]
    pub target_addrs: Vec<String>,
    #[serde(default)]
    pub replace_addrs: Vec<String>,
    #[serde(default)]
    pub variables: Vec<RunVariable>,
    pub engine: Engine,
    /// `latest`, a version or a constraint.
    pub terraform_version: String,
}

impl Default for RunOptions {
    fn default() -> Self {
        Self {
            message: String::new(),
            plan_only: false,
            save_plan: false,
            auto_apply: false,
            is_destroy: false,
            refresh: true,
            refresh_only: false,
            allow_empty_apply: false,
            allow_config_generation: false,
            target_addrs: Vec::new(),
            replace_addrs: Vec::new(),
            variables: Vec::new(),
            engine: Engine::Terraform,
            terraform_version: "latest".to_owned(),
        }
    }
}

#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, Debug)]
pub struct Run {
    pub id: RunId,
    pub workspace: WorkspaceId,
    pub configuration_version: ConfigurationVersionId,
    /// Goes up by one within a workspace: the order in which its runs were made.
    pub number: u64,
    /// Its place among the runs of the workspace that may change the state; `None` for those that do not wait for
    /// others.
    pub place: Option<u64>,
    pub status: RunStatus,
    #[serde(flatten)]
    pub options: RunOptions,
    pub source: RunSource,
    pub created_at: Timestamp,
    pub created_by: Author,
    #[serde(default)]
    pub confirmed_by: Option<Author>,
    #[serde(default)]
    pub plan: Phase,
    #[serde(default)]
    pub apply: Phase,
    /// True if the plan found something to apply; unknown before.
    #[serde(default)]
    pub has_changes: Option<bool>,
    /// The plan holds configuration that the engine wrote.
    #[serde(default)]
    pub generated_configuration: bool,
    /// Log lines are JSON, which the `cloud` block renders.
    #[serde(default)]
    pub structured_output: bool,
    #[serde(default)]
    pub cancel: Option<CancelRequest>,
    /// Times at which it entered each status, keyed as on the wire, for instance `planned-at`.
    #[serde(default)]
    pub timestamps: SmallMap<RunWord, Timestamp>,
    #[serde(default)]
    pub history: Vec<RunHistoryEntry>,
    /// The serial of the state that the plan was made from; `None` before, or where there was none.
    #[serde(default)]
    pub planned_serial: Option<u64>,
    /// The organization wanted to know what its plans cost when the run began.
    #[serde(default)]
    pub estimates_costs: bool,
    /// Inputs of its plan that are the workspace's own; unknown before it is planned, and where the configuration's
    /// contents are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub own_inputs: Option<OwnInputs>,
    /// What its plan sees of plans that nobody has applied. Such a run is never applied, and proves nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub preview: Option<String>,
    /// Outputs that its plan removes or retypes and that others use.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_contract: Option<OutputContract>,
    /// What its plan was given for variables that are bound to outputs, and so will be its apply.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub bound: Vec<BoundVariable>,
    /// The policies that apply to its plan, and what came of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub policies: Option<Box<RunPolicies>>,
    /// What is asked on its way, in the order in which its turn comes. It has them from the beginning, because clients
    /// look only then.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stages: Vec<TaskStage>,
}

impl Run {
    /// True if its plan breaks what others use, and waits for a person's word.
    pub fn waits_for_contract(&self) -> bool {
        self.output_contract.as_ref().is_some_and(OutputContract::waits_for_decision)
    }

    /// Who wanted what it did: the one who confirmed it, or else the one who started it.
    pub fn person_behind(&self) -> Author {
        self.confirmed_by.unwrap_or(self.created_by)
    }

    pub fn plan_id(&self) -> PlanId {
        PlanId::from_characters(self.id.characters()).expect("every id has these characters")
    }

    pub fn apply_id(&self) -> ApplyId {
        ApplyId::from_characters(self.id.characters()).expect("every id has these characters")
    }

    /// The id of the entry at `index` of its history: the run's own characters, a little changed. It leads back to the
    /// run (see [`runs_with_event`]), so the ids of events need not be stored.
    pub fn event_id(&self, index: usize) -> RunEventId {
        RunEventId::from_characters(&id::turned(self.id.to_bytes(), index + 1)).expect("turned characters are legal")
    }

    pub fn phase(&self, kind: PhaseKind) -> &Phase {
        match kind {
            PhaseKind::Plan => &self.plan,
            PhaseKind::Apply => &self.apply,
        }
    }

    pub fn phase_mut(&mut self, kind: PhaseKind) -> &mut Phase {
        match kind {
            PhaseKind::Plan => &mut self.plan,
            PhaseKind::Apply => &mut self.apply,
        }
    }

    /// It neither waits for others of its workspace nor blocks them, at least until a saved plan is confirmed.
    pub fn is_beside_the_queue(&self) -> bool {
        self.place.is_none()
    }

    /// The phase that is ready for an agent.
    pub fn queued_phase(&self) -> Option<PhaseKind> {
        match self.status {
            RunStatus::PlanQueued => Some(PhaseKind::Plan),
            RunStatus::ApplyQueued => Some(PhaseKind::Apply),
            _ => None,
        }
    }

    /// The phase that no agent has had and whose turn, or whose agent, is waited for.
    pub fn waiting_phase(&self) -> Option<PhaseKind> {
        let kind = match self.status {
            RunStatus::Pending | RunStatus::PlanQueued => PhaseKind::Plan,
            RunStatus::Confirmed | RunStatus::ApplyQueued => PhaseKind::Apply,
            _ => return None,
        };
        (self.phase(kind).epoch == 0).then_some(kind)
    }

    /// Since when it has its status.
    pub fn entered_status_at(&self) -> Timestamp {
        self.timestamps.get(timestamp_name(self.status).as_str()).copied().unwrap_or(self.created_at)
    }

    /// True if this attempt is under way.
    pub fn is_current_attempt(&self, attempt: PhaseAttempt) -> bool {
        self.executing_phase() == Some(attempt.phase) && self.phase(attempt.phase).epoch == attempt.epoch
    }

    /// True if this attempt was given up.
    pub fn is_lost_attempt(&self, attempt: PhaseAttempt) -> bool {
        self.phase(attempt.phase).is_lost(attempt.epoch)
    }

    /// The phase that an agent is executing.
    pub fn executing_phase(&self) -> Option<PhaseKind> {
        match self.status {
            RunStatus::Planning => Some(PhaseKind::Plan),
            RunStatus::Applying => Some(PhaseKind::Apply),
            _ => None,
        }
    }

    /// True if the state moved on since the plan was made, so that applying it would fail. `current` is the serial of
    /// the workspace's state. A plan that is not to be applied any more is not stale, it is over.
    pub fn is_stale(&self, current: Option<u64>) -> bool {
        let waits = matches!(
            self.status,
            RunStatus::PostPlanRunning
                | RunStatus::Planned
                | RunStatus::PolicyOverride
                | RunStatus::PlannedAndSaved
                | RunStatus::Confirmed
                | RunStatus::PreApplyRunning
                | RunStatus::ApplyQueued
        );
        waits && self.planned_serial != current
    }

    /// The run as it begins: in its workspace's queue, or at once if it does not wait for others.
    pub fn created(mut self, now: Timestamp) -> Self {
        self.timestamps.insert("plan-queueable-at".into(), now);
        self.history.push(RunHistoryEntry {
            action: "created".into(),
            at: now,
            by: self.created_by,
            comment: None,
            description: None,
        });
        match self.is_beside_the_queue() {
            true => self.after(RunEvent::ReachedFront, now, Author::Taco).unwrap_or(self),
            false => self,
        }
    }

    /// The run after `event`: status, times, phases and history together.
    pub fn after(&self, event: RunEvent, now: Timestamp, by: Author) -> Result<Self, IllegalTransition> {
        let mut run = self.clone();
        run.status = self.status.after(event)?;
        if run.asks_before(event) {
            run.status = run.status.after(RunEvent::StageBegan)?;
        }
        run.timestamps.insert(timestamp_name(run.status).into(), now);
        if event == RunEvent::Confirmed {
            run.timestamps.insert(timestamp_name(RunStatus::Confirmed).into(), now);
            run.confirmed_by = Some(by);
            if let Some(contract) = run.output_contract.as_mut().filter(|contract| contract.waits_for_decision()) {
                contract.accepted = Some(AcceptedChanges { by, at: now });
            }
        }
        if event == RunEvent::PolicyRefused {
            // It is the policy that ends the run: the plan itself was made.
            run.plan.follow(PhaseStatus::Finished, now);
        }
        run.follow_with_phases(now);
        run.follow_with_stages(event, now);
        if run.status.is_final() {
            run.place = None;
        }
        run.history.push(RunHistoryEntry {
            action: history_word(event, run.status).into(),
            at: now,
            by,
            comment: None,
            description: None,
        });
        Ok(run)
    }

    /// True if a stage has to be answered before the phase that is queued by `event`. Nothing is asked twice.
    fn asks_before(&self, event: RunEvent) -> bool {
        let queues = matches!(event, RunEvent::ReachedFront | RunEvent::Confirmed);
        match self.status {
            RunStatus::PlanQueued => queues && self.has_ahead(StageKind::PrePlan),
            RunStatus::ApplyQueued => queues && self.has_ahead(StageKind::PreApply),
            _ => false,
        }
    }

    /// Brings the phases' statuses in line with the run's.
    fn follow_with_phases(&mut self, now: Timestamp) {
        use PhaseStatus as P;
        let (plan, apply) = match self.status {
            RunStatus::Pending | RunStatus::PrePlanRunning => (P::Pending, P::Pending),
            RunStatus::PlanQueued => (P::Queued, P::Pending),
            RunStatus::Planning => (P::Running, P::Pending),
            RunStatus::PostPlanRunning
            | RunStatus::Planned
            | RunStatus::PolicyOverride
            | RunStatus::PlannedAndSaved
            | RunStatus::Confirmed
            | RunStatus::PreApplyRunning => (P::Finished, P::Pending),
            RunStatus::PlannedAndFinished => (P::Finished, P::Unreachable),
            RunStatus::ApplyQueued => (P::Finished, P::Queued),
            RunStatus::Applying => (P::Finished, P::Running),
            RunStatus::Applied => (P::Finished, P::Finished),
            RunStatus::Discarded | RunStatus::Canceled | RunStatus::Errored => {
                let last = if self.status == RunStatus::Errored { P::Errored } else { P::Canceled };
                (ended(self.plan.status, last), ended(self.apply.status, last))
            }
        };
        self.plan.follow(plan, now);
        self.apply.follow(apply, now);
    }

    /// The run with a phase given to an agent. The epoch goes up, so an earlier holder can write no more.
    pub fn taken(&self, executor: Executor, now: Timestamp) -> Result<(Self, PhaseKind), IllegalTransition> {
        let (event, kind) = match self.status {
            RunStatus::ApplyQueued => (RunEvent::ApplyTaken, PhaseKind::Apply),
            _ => (RunEvent::PlanTaken, PhaseKind::Plan),
        };
        let mut run = self.after(event, now, Author::Taco)?;
        // A cancel of an earlier phase does not apply to this one.
        run.cancel = None;
        let phase = run.phase_mut(kind);
        phase.epoch += 1;
        phase.executor = Some(executor);
        Ok((run, kind))
    }
}

/// The runs that could have an event of this id, with its index in each.
fn runs_with_event(event: RunEventId) -> impl Iterator<Item = (RunId, usize)> {
    (0..id::MAX_TURNS).filter_map(move |index| {
        let characters = id::turned(event.to_bytes(), id::MAX_TURNS - (index + 1) % id::MAX_TURNS);
        Some((RunId::from_characters(&characters).ok()?, index))
    })
}

impl OrganizationState {
    /// The run that an event happened to, and which of its events it is.
    pub fn run_with_event(&self, event: RunEventId) -> Option<(&Run, usize)> {
        let known = runs_with_event(event).filter_map(|(run, index)| Some((self.runs.get(&run)?, index)));
        known.into_iter().find(|(run, index)| *index < run.history.len())
    }
}

/// Final status of a phase in `status` when its run ends with `last`.
fn ended(status: PhaseStatus, last: PhaseStatus) -> PhaseStatus {
    match status {
        PhaseStatus::Running | PhaseStatus::Queued => last,
        PhaseStatus::Pending => PhaseStatus::Unreachable,
        ended => ended,
    }
}

impl Phase {
    fn follow(&mut self, status: PhaseStatus, now: Timestamp) {
        if self.status == status {
            return;
        }
        self.status = status;
        match status {
            PhaseStatus::Queued => self.queued_at = Some(now),
            PhaseStatus::Running => self.started_at = Some(now),
            PhaseStatus::Finished | PhaseStatus::Errored | PhaseStatus::Canceled => self.ended_at = Some(now),
            PhaseStatus::Pending | PhaseStatus::Unreachable => {}
        }
    }
}

/// Name on the wire: `planned_and_finished` becomes `planned-and-finished-at`.
fn timestamp_name(status: RunStatus) -> String {
    format!("{}-at", status.to_string().replace('_', "-"))
}

fn history_word(event: RunEvent, status: RunStatus) -> &'static str {
    match event {
        RunEvent::ReachedFront | RunEvent::StageBegan if status == RunStatus::PrePlanRunning => "pre_plan_running",
        RunEvent::ReachedFront if status == RunStatus::PreApplyRunning => "pre_apply_running",
        RunEvent::ReachedFront | RunEvent::StagePassed if status == RunStatus::ApplyQueued => "apply_queued",
        RunEvent::ReachedFront | RunEvent::StagePassed => "plan_queued",
        RunEvent::StageBegan if status == RunStatus::PostPlanRunning => "post_plan_running",
        RunEvent::StageBegan => "pre_apply_running",
        RunEvent::PlanTaken => "planning",
        RunEvent::PlanLost => "plan_requeued",
        RunEvent::PlanAwaitsDecision => "planned",
        RunEvent::PlanWasAll => "planned_and_finished",
        RunEvent::PlanSaved => "planned_and_saved",
        RunEvent::PolicyOverridable => "policy_override",
        RunEvent::PolicyRefused => "policy_failed",
        RunEvent::Confirmed => "confirmed",
        RunEvent::ApplyTaken => "applying",
        RunEvent::Applied => "applied",
        RunEvent::Discarded => "discarded",
        RunEvent::Canceled => "canceled",
        RunEvent::Failed => "errored",
    }
}

impl Record for Run {
    const KIND: &'static str = "run";
    const PART_OF: &'static [&'static str] = &["workspace"];
    type Id = RunId;
    type Indexes = RunIndexes;

    fn id(&self) -> &RunId {
        &self.id
    }

    references! {
        "workspace": WorkspaceId, cascade(|runs, id| runs.by().workspace.under(id));
        "configuration_version": ConfigurationVersionId, keep("configurations are deleted with their workspace");
        "plan": AgentId, keep("it tells who executed it");
        "plan": AgentPoolId, keep("it tells who executed it");
        "apply": AgentId, keep("it tells who executed it");
        "apply": AgentPoolId, keep("it tells who executed it");
        "history": CommentId, keep("comments are deleted with their run");
        "output_contract": WorkspaceId, keep("it tells whom the plan would break");
        "policies": PolicySetId, keep("it tells what the plan was judged by");
        "bound": WorkspaceId, keep("it tells what the run was given");
        "bound": StateVersionId, keep("it tells what the run was given");
        "bound": RunId, keep("it tells what the run was given");
        "stages": RunTaskId, keep("it tells what was asked");
        "stages": WorkspaceRunTaskId, keep("it tells what was asked");
    }

    fn shrink(&mut self) {
        self.history.shrink_to_fit();
        self.stages.iter_mut().for_each(|stage| stage.results.shrink_to_fit());
        for phase in [&mut self.plan, &mut self.apply] {
            phase.waits.shrink_to_fit();
            phase.log.iter_mut().for_each(|log| log.blocks.shrink_to_fit());
        }
    }

    fn sealed_mut(&mut self) -> Vec<(String, &mut String)> {
        let id = self.id;
        let variables = self.options.variables.iter_mut();
        variables.map(|variable| (RunVariable::seal_name(id, &variable.key), &mut variable.sealed)).collect()
    }
}

/// Order in which phases that are ready go out: applies, then plans, then plans that change nothing.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum PhaseClass {
    Apply,
    Plan,
    SpeculativePlan,
}

/// A phase's place in the global queue: what goes out first sorts first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct QueueKey {
    pub class: PhaseClass,
    pub since: Timestamp,
    pub run: RunId,
}

impl SortKey for QueueKey {
    fn encode(&self, key: &mut KeyBytes) {
        (self.class as u8, self.since, self.run).encode(key);
    }
}

impl Run {
    /// Position of its phase in the global queue, if one is ready.
    pub fn queue_key(&self) -> Option<QueueKey> {
        let class = match self.queued_phase()? {
            PhaseKind::Apply => PhaseClass::Apply,
            PhaseKind::Plan if self.options.plan_only => PhaseClass::SpeculativePlan,
            PhaseKind::Plan => PhaseClass::Plan,
        };
        Some(QueueKey { class, since: self.created_at, run: self.id })
    }

    /// Time at which an agent within a server was last given one of its phases.
    pub(crate) fn taken_within_at(&self) -> Option<Timestamp> {
        let phases = [&self.plan, &self.apply].into_iter();
        phases
            .filter(|phase| phase.executor.as_ref().is_some_and(|who| who.pool.is_none()))
            .filter_map(|phase| phase.started_at)
            .max()
    }

    /// Since when its phase has been in the global queue, if one is there.
    pub fn ready_since(&self) -> Option<Timestamp> {
        self.phase(self.queued_phase()?).queued_at
    }
}

indexes! {
    pub struct RunIndexes for Run {
        /// Newest first within a workspace.
        pub workspace: (WorkspaceId, Reverse<u64>) => |run| [(run.workspace, Reverse(run.number))];
        /// The workspace's queue, in order.
        pub place: (WorkspaceId, u64) => |run| run.place.map(|place| (run.workspace, place));
        /// The global queue of this organization, in order.
        pub queue: QueueKey => |run| run.queue_key();
        /// The same phases, by how long they have been there.
        pub ready: Timestamp => |run| run.ready_since();
        /// Runs that agents are executing.
        pub executing: AgentId => |run| {
            let phase = run.executing_phase().and_then(|kind| run.phase(kind).executor.as_ref());
            phase.map(|executor| executor.agent)
        };
        /// Runs that an agent within a server has had, by when it was last given a phase of them.
        pub taken_within: Timestamp => |run| run.taken_within_at();
        /// Runs with a task that a server has to look at, by when.
        pub tasks_due: Timestamp => |run| run.tasks_due_at();
        /// Runs that are not final.
        pub open: WorkspaceId => |run| (!run.status.is_final()).then_some(run.workspace);
        pub configuration_version: ConfigurationVersionId => |run| [run.configuration_version];
        /// All of the organization, newest first.
        pub newest: Reverse<Timestamp> => |run| [Reverse(run.created_at)];
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// A run of the workspace made from 1s.
    pub(crate) fn given_run(number: u8) -> Run {
        Run {
            id: RunId::from_random([number; 16]),
            workspace: WorkspaceId::from_random([1; 16]),
            configuration_version: ConfigurationVersionId::from_random([1; 16]),
            number: u64::from(number),
            place: Some(u64::from(number)),
            status: RunStatus::Pending,
            options: RunOptions::default(),
            source: RunSource::Api,
            created_at: Timestamp::UNIX_EPOCH,
            created_by: Author::Taco,
            confirmed_by: None,
            plan: Phase::default(),
            apply: Phase::default(),
            has_changes: None,
            generated_configuration: false,
            structured_output: false,
            cancel: None,
            timestamps: SmallMap::new(),
            history: Vec::new(),
            planned_serial: None,
            estimates_costs: false,
            own_inputs: None,
            preview: None,
            output_contract: None,
            bound: Vec::new(),
            policies: None,
            stages: Vec::new(),
        }
    }

    fn executor() -> Executor {
        Executor { agent: AgentId::from_random([1; 16]), agent_name: "one".to_owned(), pool: None }
    }

    #[test]
    fn status_phases_times_and_history_change_together() {
        let now = Timestamp::UNIX_EPOCH;
        let queued = given_run(1).after(RunEvent::ReachedFront, now, Author::Taco).expect("legal");
        let (planning, kind) = queued.taken(executor(), now).expect("legal");
        assert_eq!((kind, planning.plan.epoch, planning.plan.status), (PhaseKind::Plan, 1, PhaseStatus::Running));
        let planned = planning.after(RunEvent::PlanAwaitsDecision, now, Author::Taco).expect("legal");
        assert_eq!((planned.plan.status, planned.apply.status), (PhaseStatus::Finished, PhaseStatus::Pending));
        let confirmed = planned.after(RunEvent::Confirmed, now, Author::Taco).expect("legal");
        assert_eq!(confirmed.confirmed_by, Some(Author::Taco));
        for name in ["plan-queued-at", "planning-at", "planned-at", "confirmed-at", "apply-queued-at"] {
            assert!(confirmed.timestamps.contains_key(name), "{name}");
        }
        let (applying, kind) = confirmed.taken(executor(), now).expect("legal");
        assert_eq!((kind, applying.apply.epoch), (PhaseKind::Apply, 1));
        let applied = applying.after(RunEvent::Applied, now, Author::Taco).expect("legal");
        assert_eq!((applied.apply.status, applied.place), (PhaseStatus::Finished, None));
        let words: Vec<_> = applied.history.iter().map(|entry| entry.action.as_str()).collect();
        assert_eq!(words, ["plan_queued", "planning", "planned", "confirmed", "applying", "applied"]);
    }

    #[test]
    fn a_phase_that_never_ran_is_unreachable_in_the_end() {
        let now = Timestamp::UNIX_EPOCH;
        let canceled = given_run(1).after(RunEvent::Canceled, now, Author::Taco).expect("legal");
        assert_eq!((canceled.plan.status, canceled.apply.status), (PhaseStatus::Unreachable, PhaseStatus::Unreachable));
        let queued = given_run(1).after(RunEvent::ReachedFront, now, Author::Taco).expect("legal");
        let failed = queued.after(RunEvent::Failed, now, Author::Taco).expect("legal");
        assert_eq!((failed.plan.status, failed.apply.status), (PhaseStatus::Errored, PhaseStatus::Unreachable));
    }

    #[test]
    fn a_plan_is_stale_while_it_waits_and_the_state_moved_on() {
        let plan = |status, planned_serial| Run { status, planned_serial, ..given_run(1) };
        for (run, current, stale) in [
            (plan(RunStatus::Planned, Some(3)), Some(3), false),
            (plan(RunStatus::Planned, Some(3)), Some(4), true),
            (plan(RunStatus::PlannedAndSaved, None), Some(1), true),
            (plan(RunStatus::ApplyQueued, None), None, false),
            (plan(RunStatus::Applied, Some(3)), Some(4), false),
            (plan(RunStatus::Planning, Some(3)), Some(4), false),
        ] {
            assert_eq!(run.is_stale(current), stale, "{run:?} {current:?}");
        }
    }
}
