//! Task stages: what has to be answered before a run goes on. What is asked in one hangs on it: results of run tasks, and
//! whatever else may stop a run there.

use std::fmt;
use std::str::FromStr;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use taco_words::id_kinds;

use crate::id::{self, RunId};
use crate::organization_state::OrganizationState;
use crate::run::Run;
use crate::run_tasks::task_result::{TaskResult, TaskResultStatus};
use crate::run_word::RunWord;
use crate::small_map::SmallMap;

id_kinds! {
    /// A task stage of a run. It is made from the run's, which it leads back to.
    TaskStageId = "ts";
}

/// The moment in a run's life at which something is asked.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, Debug)]
#[serde(rename_all = "snake_case")]
pub enum StageKind {
    PrePlan,
    PostPlan,
    PreApply,
    /// After an apply that succeeded. It stops nothing any more.
    PostApply,
}

impl StageKind {
    pub const ALL: [Self; 4] = [Self::PrePlan, Self::PostPlan, Self::PreApply, Self::PostApply];

    /// Its name in the API.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::PrePlan => "pre_plan",
            Self::PostPlan => "post_plan",
            Self::PreApply => "pre_apply",
            Self::PostApply => "post_apply",
        }
    }

    /// What it is, for people.
    pub fn in_words(self) -> &'static str {
        match self {
            Self::PrePlan => "Pre-plan",
            Self::PostPlan => "Post-plan",
            Self::PreApply => "Pre-apply",
            Self::PostApply => "Post-apply",
        }
    }
}

impl fmt::Display for StageKind {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}

/// A text that is no stage.
#[derive(Clone, PartialEq, Eq, thiserror::Error, Debug)]
#[error("must be one of pre_plan, post_plan, pre_apply, post_apply")]
pub struct UnknownStage;

impl FromStr for StageKind {
    type Err = UnknownStage;

    fn from_str(text: &str) -> Result<Self, UnknownStage> {
        Self::ALL.into_iter().find(|stage| stage.as_str() == text).ok_or(UnknownStage)
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Debug)]
#[serde(rename_all = "snake_case")]
pub enum TaskStageStatus {
    /// Its turn has not come.
    Pending,
    Running,
    Passed,
    /// Something mandatory said no.
    Failed,
    /// Something mandatory gave no answer.
    Errored,
    Canceled,
    /// The run was over before its turn came.
    Unreachable,
}

impl TaskStageStatus {
    pub const ALL: [Self; 7] =
        [Self::Pending, Self::Running, Self::Passed, Self::Failed, Self::Errored, Self::Canceled, Self::Unreachable];

    /// Its name in the API.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Running => "running",
            Self::Passed => "passed",
            Self::Failed => "failed",
            Self::Errored => "errored",
            Self::Canceled => "canceled",
            Self::Unreachable => "unreachable",
        }
    }

    pub fn is_final(self) -> bool {
        !matches!(self, Self::Pending | Self::Running)
    }
}

impl fmt::Display for TaskStageStatus {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}

/// One stage of one run.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, Debug)]
pub struct TaskStage {
    pub stage: StageKind,
    pub status: TaskStageStatus,
    /// Times at which it entered each status, keyed as on the wire, for instance `passed-at`.
    #[serde(default)]
    pub timestamps: SmallMap<RunWord, Timestamp>,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
    /// Answers of run tasks.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub results: Vec<TaskResult>,
}

impl TaskStage {
    pub(crate) fn new(stage: StageKind, results: Vec<TaskResult>, now: Timestamp) -> Self {
        Self {
            stage,
            status: TaskStageStatus::Pending,
            timestamps: SmallMap::default(),
            created_at: now,
            updated_at: now,
            results,
        }
    }

    pub(crate) fn enter(&mut self, status: TaskStageStatus, now: Timestamp) {
        self.status = status;
        self.updated_at = now;
        self.timestamps.insert(format!("{status}-at").as_str().into(), now);
    }

    /// Its turn has come: everybody is asked.
    pub(crate) fn begin(&mut self, now: Timestamp) {
        self.enter(TaskStageStatus::Running, now);
        self.results.iter_mut().for_each(|result| result.begin(now));
    }

    /// The run ended without it.
    pub(crate) fn end_with_run(&mut self, now: Timestamp) {
        if self.status.is_final() {
            return;
        }
        let (stage, result) = match self.status {
            TaskStageStatus::Pending => (TaskStageStatus::Unreachable, TaskResultStatus::Unreachable),
            _ => (TaskStageStatus::Canceled, TaskResultStatus::Canceled),
        };
        self.enter(stage, now);
        self.results.iter_mut().filter(|it| !it.status.is_final()).for_each(|it| it.enter(result, now));
    }

    /// What all answers amount to; `None` while one is missing. In the last stage nothing can be stopped any more.
    pub(crate) fn verdict(&self) -> Option<TaskStageStatus> {
        if self.status != TaskStageStatus::Running || self.results.iter().any(|result| !result.status.is_final()) {
            return None;
        }
        let stops = |status| self.results.iter().any(|result| result.is_mandatory() && result.status == status);
        Some(match () {
            () if self.stage == StageKind::PostApply => TaskStageStatus::Passed,
            () if stops(TaskResultStatus::Failed) => TaskStageStatus::Failed,
            () if stops(TaskResultStatus::Errored) => TaskStageStatus::Errored,
            () => TaskStageStatus::Passed,
        })
    }

    /// A sentence about what stopped the run here.
    pub fn why_stopped(&self) -> Option<String> {
        let word = match self.status {
            TaskStageStatus::Failed => "failed",
            TaskStageStatus::Errored => "gave no answer",
            _ => return None,
        };
        let stopping = self.results.iter().filter(|result| {
            result.is_mandatory() && matches!(result.status, TaskResultStatus::Failed | TaskResultStatus::Errored)
        });
        let names: Vec<&str> = stopping.map(|result| result.task_name.as_str()).collect();
        let tasks = if names.len() == 1 { "task" } else { "tasks" };
        Some(format!("the mandatory {tasks} {} {word} in the {} stage", names.join(", "), self.stage.in_words()))
    }
}

impl Run {
    /// The id of one of its stages: the run's own characters, a little changed.
    pub fn stage_id(&self, stage: StageKind) -> TaskStageId {
        TaskStageId::from_characters(&id::turned(self.id.to_bytes(), stage as usize + 1))
            .expect("turned characters are legal")
    }
}

impl OrganizationState {
    /// The run that has this stage, and which stage it is.
    pub fn run_with_stage(&self, id: TaskStageId) -> Option<(&Run, &TaskStage)> {
        StageKind::ALL.into_iter().find_map(|kind| {
            let characters = id::turned(id.to_bytes(), id::MAX_TURNS - (kind as usize + 1));
            let run = self.runs.get(&RunId::from_characters(&characters).ok()?)?;
            Some((run, run.stage(kind)?))
        })
    }
}
