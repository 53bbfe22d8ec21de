use std::collections::BTreeSet;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use taco_tables::{Record, indexes};

use crate::id::{AgentPoolId, ProjectId, WorkspaceId};
use crate::name::{AgentPoolName, NameKey};

/// The agents that may execute certain workspaces' runs. It is the boundary between teams that do not trust each
/// other: whoever may plan, runs code there.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, Debug)]
pub struct AgentPool {
    pub id: AgentPoolId,
    pub name: AgentPoolName,
    /// Every workspace of the organization may use it; otherwise the allowed ones alone.
    pub organization_scoped: bool,
    #[serde(default)]
    pub allowed_workspaces: BTreeSet<WorkspaceId>,
    #[serde(default)]
    pub allowed_projects: BTreeSet<ProjectId>,
    #[serde(default)]
    pub excluded_workspaces: BTreeSet<WorkspaceId>,
    pub created_at: Timestamp,
}

impl Record for AgentPool {
    const KIND: &'static str = "agent-pool";
    type Id = AgentPoolId;
    type Indexes = AgentPoolIndexes;

    fn id(&self) -> &AgentPoolId {
        &self.id
    }
}

indexes! {
    pub struct AgentPoolIndexes for AgentPool {
        pub name: NameKey => |pool| [pool.name.key()];
    }
}
