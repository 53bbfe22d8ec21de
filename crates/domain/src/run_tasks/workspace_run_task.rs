//! Workspace tasks: a run task of the organization, asked about the runs of one workspace.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use taco_tables::{Record, indexes, references};
use taco_words::id_kinds;

use crate::id::WorkspaceId;
use crate::run_tasks::run_task::{RunTaskId, TaskEnforcement};
use crate::run_tasks::task_stage::StageKind;

id_kinds! {
    /// A run task of a workspace.
    WorkspaceRunTaskId = "wstask";
}

/// A run task, asked about the runs of one workspace.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, Debug)]
pub struct WorkspaceRunTask {
    pub id: WorkspaceRunTaskId,
    pub workspace: WorkspaceId,
    pub task: RunTaskId,
    pub enforcement: TaskEnforcement,
    /// In the order in which they were sent, each once.
    pub stages: Vec<StageKind>,
    pub created_at: Timestamp,
}

impl Record for WorkspaceRunTask {
    const KIND: &'static str = "workspace-run-task";
    const NOUN: &'static str = "workspace run task";
    const PART_OF: &'static [&'static str] = &["workspace", "task"];
    type Id = WorkspaceRunTaskId;
    type Indexes = WorkspaceRunTaskIndexes;

    fn id(&self) -> &WorkspaceRunTaskId {
        &self.id
    }

    references! {
        "workspace": WorkspaceId, cascade(|tasks, id| tasks.by().workspace.under(id));
        "task": RunTaskId, cascade(|tasks, id| tasks.by().task.get(id));
    }
}

indexes! {
    pub struct WorkspaceRunTaskIndexes for WorkspaceRunTask {
        /// Oldest first within a workspace.
        pub workspace: (WorkspaceId, Timestamp) => |task| [(task.workspace, task.created_at)];
        pub task: RunTaskId => |task| [task.task];
    }
}
