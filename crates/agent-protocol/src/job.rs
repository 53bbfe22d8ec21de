use std::fmt;

use serde::{Deserialize, Serialize};
pub use taco_words::engine::Engine;
use taco_words::id::WorkspaceId;
pub use taco_words::phase::{PhaseKind, ResourceCounts};
pub use taco_words::phase_attempt::PhaseAttempt;
pub use taco_words::variable::VariableCategory;

use crate::policies::{PolicySetResult, PolicyTiming};

/// Program and version: `latest`, `1.11.4`, or a constraint such as `~> 1.11.0`.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, Debug)]
pub struct EngineRequest {
    pub engine: Engine,
    pub version: String,
}

/// All that an agent has to know to execute a phase. Configuration, state and plan it fetches.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Job {
    #[serde(flatten)]
    pub phase: PhaseAttempt,
    /// Token for the agent's requests of this phase. Ends with the phase.
    pub token: String,
    /// Token for what runs inside the phase: it cannot send what the agent sends. Older servers give none, and then the
    /// agent's own is used.
    #[serde(default)]
    pub run_token: Option<String>,
    pub organization: String,
    pub workspace: String,
    pub workspace_id: WorkspaceId,
    pub engine: EngineRequest,
    /// Within the configuration; empty for its root.
    pub working_directory: String,
    pub operation: Operation,
    /// Log as JSON lines, which the `cloud` block renders; otherwise as text for people.
    pub structured_output: bool,
    /// One for each key and category: the server has decided which of several counts.
    pub variables: Vec<Variable>,
    /// A private key with which git fetches modules.
    #[serde(default)]
    pub ssh_key: Option<String>,
    /// True if the workspace has a state to fetch.
    pub has_state: bool,
    pub timeout_seconds: u64,
    /// The address under which clients know the server: its host gets credentials in the engine's configuration.
    pub server_url: String,
    /// Whether there are policies to evaluate after the plan. Older servers have none.
    #[serde(default)]
    pub policies: PolicyTiming,
}

impl Job {
    /// The token for what runs inside the phase.
    pub fn run_token(&self) -> &str {
        self.run_token.as_deref().unwrap_or(&self.token)
    }
}

/// Secrets are in it, so logs must not have it.
impl fmt::Debug for Job {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Job({})", self.phase)
    }
}

/// Operation and options for the engine.
#[derive(Clone, PartialEq, Eq, Default, Serialize, Deserialize, Debug)]
#[serde(default)]
pub struct Operation {
    pub destroy: bool,
    /// Look at the real resources first; false for `-refresh=false`.
    pub refresh: bool,
    pub refresh_only: bool,
    pub targets: Vec<String>,
    pub replace: Vec<String>,
    /// Let the engine write configuration for what is imported.
    pub generate_configuration: bool,
}

/// A variable as the engine gets it. As Terraform Cloud documents it, it takes precedence over all `*.auto.tfvars` and
/// `terraform.tfvars` in the configuration.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Variable {
    pub key: String,
    pub value: String,
    pub category: VariableCategory,
    /// The value is an expression, not a text.
    pub hcl: bool,
    pub sensitive: bool,
}

/// The value may be secret.
impl fmt::Debug for Variable {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Variable({:?} {})", self.category, self.key)
    }
}

/// Outcome of a phase: the last thing that an agent sends for it, after everything else has arrived.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, Debug)]
#[serde(tag = "outcome", rename_all = "kebab-case")]
pub enum Outcome {
    Planned(PlanSummary),
    Applied {
        counts: ResourceCounts,
        engine: EngineRequest,
    },
    /// The engine, or the agent before it, failed. The text is one for people.
    Errored {
        message: String,
        #[serde(default)]
        engine: Option<EngineRequest>,
        /// The engine did not end by itself, so that not all that it did may be in the state. Agents that are older than
        /// this never say so.
        #[serde(default)]
        incomplete: bool,
    },
    /// The run was canceled, and the engine has stopped.
    Canceled {
        /// Same as above: it was stopped by force.
        #[serde(default)]
        incomplete: bool,
    },
}

/// Result of a plan.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, Debug)]
pub struct PlanSummary {
    pub has_changes: bool,
    pub counts: ResourceCounts,
    pub generated_configuration: bool,
    /// Engine that executed it; the version is exact.
    pub engine: EngineRequest,
    /// What its policies say. Older agents say nothing.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub policies: Vec<PolicySetResult>,
}
