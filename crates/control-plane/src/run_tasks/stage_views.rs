//! Task stages and results, as doors show them.

use taco_domain::task_result::{TaskResult, TaskResultId};
use taco_domain::task_stage::{StageKind, TaskStage, TaskStageId};

use crate::error::Error;
use crate::runs::RunView;

/// What a result is called.
pub(crate) const RESULT: &str = "task result";

/// A stage as a door shows it.
#[derive(Clone)]
pub struct TaskStageView {
    pub stage: TaskStage,
    pub run: RunView,
}

impl TaskStageView {
    pub fn id(&self) -> TaskStageId {
        self.run.run.stage_id(self.stage.stage)
    }

    /// Its results, in the order in which tasks are asked.
    pub fn results(&self) -> Vec<TaskResultView> {
        let kind = self.stage.stage;
        let views = (0..self.stage.results.len()).map(|index| TaskResultView { run: self.run.clone(), kind, index });
        views.collect()
    }
}

impl RunView {
    /// Its stages, in the order in which their turns come.
    pub fn task_stages(&self) -> Vec<TaskStageView> {
        self.run.stages.iter().map(|stage| TaskStageView { stage: stage.clone(), run: self.clone() }).collect()
    }

    pub fn task_stage(&self, kind: StageKind) -> Option<TaskStageView> {
        Some(TaskStageView { stage: self.run.stage(kind)?.clone(), run: self.clone() })
    }
}

/// A result as a door shows it.
#[derive(Clone)]
pub struct TaskResultView {
    pub run: RunView,
    pub kind: StageKind,
    pub index: usize,
}

impl TaskResultView {
    pub fn id(&self) -> TaskResultId {
        self.run.run.result_id(self.kind, self.index)
    }

    pub fn result(&self) -> Result<&TaskResult, Error> {
        let stage = self.run.run.stage(self.kind).ok_or(Error::NotFound(RESULT))?;
        stage.results.get(self.index).ok_or(Error::NotFound(RESULT))
    }

    pub fn stage(&self) -> Option<TaskStageView> {
        self.run.task_stage(self.kind)
    }
}

/// A refusal that names what was asked for, not what it belongs to.
pub(crate) fn not_found(error: Error, what: &'static str) -> Error {
    match error {
        Error::NotFound(_) => Error::NotFound(what),
        other => other,
    }
}
