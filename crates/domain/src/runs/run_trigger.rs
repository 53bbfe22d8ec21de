use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use taco_tables::{Record, indexes, references};

use crate::id::{RunTriggerId, WorkspaceId};

/// Maximum number of workspaces that can start runs in one.
pub const MOST_SOURCES: usize = 20;

/// An apply in one workspace starts a run in another.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, Debug)]
pub struct RunTrigger {
    pub id: RunTriggerId,
    /// Workspace in which the run starts.
    pub workspace: WorkspaceId,
    /// Workspace whose apply starts it.
    pub source: WorkspaceId,
    pub created_at: Timestamp,
    /// It fires only when outputs changed that the workspace uses.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub only_when_outputs_changed: bool,
}

impl Record for RunTrigger {
    const KIND: &'static str = "run-trigger";
    const NOUN: &'static str = "run trigger";
    const PART_OF: &'static [&'static str] = &["workspace", "source"];
    type Id = RunTriggerId;
    type Indexes = RunTriggerIndexes;

    fn id(&self) -> &RunTriggerId {
        &self.id
    }

    references! {
        "workspace": WorkspaceId, cascade(|triggers, id| triggers.by().workspace.get(id));
        "source": WorkspaceId, cascade(|triggers, id| triggers.by().source.get(id));
    }
}

indexes! {
    pub struct RunTriggerIndexes for RunTrigger {
        pub workspace: WorkspaceId => |trigger| [trigger.workspace];
        pub source: WorkspaceId => |trigger| [trigger.source];
    }
}
