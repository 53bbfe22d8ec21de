//! Run tasks of an organization: whom to ask, and how.

use std::fmt;
use std::str::FromStr;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use taco_tables::{Record, indexes};
use taco_words::id_kinds;

use crate::name::{NameKey, check_label, name_kinds};
use crate::run_tasks::task_stage::StageKind;

/// Maximum number of run tasks of an organization.
pub const MAX_RUN_TASKS: usize = 100;

id_kinds! {
    /// A program that can be asked about runs.
    RunTaskId = "task";
}

name_kinds! {
    RunTaskName: |name| check_label("Name", "name", name, 255);
}

/// What a task that fails does to a run.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, Deserialize, Debug)]
#[serde(rename_all = "snake_case")]
pub enum TaskEnforcement {
    /// It is shown, and the run goes on.
    #[default]
    Advisory,
    /// It stops the run.
    Mandatory,
}

impl TaskEnforcement {
    pub const ALL: [Self; 2] = [Self::Advisory, Self::Mandatory];

    /// Its name in the API.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Advisory => "advisory",
            Self::Mandatory => "mandatory",
        }
    }
}

impl fmt::Display for TaskEnforcement {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}

/// A text that is no enforcement level.
#[derive(Clone, PartialEq, Eq, thiserror::Error, Debug)]
#[error("must be one of advisory, mandatory")]
pub struct UnknownEnforcement;

impl FromStr for TaskEnforcement {
    type Err = UnknownEnforcement;

    fn from_str(text: &str) -> Result<Self, UnknownEnforcement> {
        Self::ALL.into_iter().find(|level| level.as_str() == text).ok_or(UnknownEnforcement)
    }
}

/// Use of a task in all workspaces of the organization.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, Debug)]
pub struct GlobalConfiguration {
    pub enabled: bool,
    /// In the order in which they were sent, each once.
    pub stages: Vec<StageKind>,
    pub enforcement: TaskEnforcement,
}

impl Default for GlobalConfiguration {
    fn default() -> Self {
        Self { enabled: false, stages: vec![StageKind::PostPlan], enforcement: TaskEnforcement::Advisory }
    }
}

/// A program that can be asked about runs.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, Debug)]
pub struct RunTask {
    pub id: RunTaskId,
    pub name: RunTaskName,
    /// Where it is asked.
    pub url: String,
    #[serde(default)]
    pub description: String,
    /// The key that signs requests, sealed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sealed_hmac_key: Option<String>,
    pub enabled: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub global: Option<GlobalConfiguration>,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
}

impl RunTask {
    /// The name under which its key is sealed.
    pub fn key_seal(id: RunTaskId) -> String {
        format!("{id} hmac-key")
    }

    /// The use in all workspaces, if the task is asked in this stage everywhere.
    pub(crate) fn everywhere_in(&self, stage: StageKind) -> Option<TaskEnforcement> {
        let global = self.global.as_ref().filter(|global| global.enabled && global.stages.contains(&stage))?;
        Some(global.enforcement)
    }
}

impl Record for RunTask {
    const KIND: &'static str = "run-task";
    const NOUN: &'static str = "run task";
    const UNIQUE: &'static [&'static str] = &["name"];
    type Id = RunTaskId;
    type Indexes = RunTaskIndexes;

    fn id(&self) -> &RunTaskId {
        &self.id
    }

    fn sealed_mut(&mut self) -> Vec<(String, &mut String)> {
        let name = Self::key_seal(self.id);
        self.sealed_hmac_key.iter_mut().map(|sealed| (name.clone(), sealed)).collect()
    }
}

indexes! {
    pub struct RunTaskIndexes for RunTask {
        pub name: NameKey, unique "name" => |task| [task.name.key()];
        /// Tasks that are asked in all workspaces.
        pub global: NameKey => |task| task.global.as_ref().filter(|global| global.enabled).map(|_| task.name.key());
    }
}
