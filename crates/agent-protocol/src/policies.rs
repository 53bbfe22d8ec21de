//! Policies of a plan: what an agent is given to evaluate, and what it says about it.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// When an agent evaluates policies after a plan.
#[derive(Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, Debug)]
#[serde(rename_all = "kebab-case")]
pub enum PolicyTiming {
    /// There are none.
    #[default]
    Never,
    /// When the plan has changes: without them, nothing is applied.
    WithChanges,
    Always,
}

/// The answer to `GET` of `policies` of a phase.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PolicyBundle {
    /// What policies see as `input.run`.
    pub run: Value,
    pub sets: Vec<PolicySetJob>,
}

/// Parameters may be secret.
impl fmt::Debug for PolicyBundle {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "PolicyBundle({} sets)", self.sets.len())
    }
}

/// One set.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PolicySetJob {
    pub id: String,
    pub name: String,
    /// Exact version of `opa`; `None` for whatever is newest.
    #[serde(default)]
    pub opa_version: Option<String>,
    #[serde(default)]
    pub parameters: Vec<PolicyParameter>,
    pub groups: Vec<PolicyGroup>,
    /// Reason why the server cannot give it.
    #[serde(default)]
    pub error: Option<String>,
}

/// A parameter that policies see as `input.parameters`.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PolicyParameter {
    pub key: String,
    pub value: String,
    pub sensitive: bool,
}

/// Modules that see each other, and what is asked of them.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, Debug)]
pub struct PolicyGroup {
    /// `v0` or `v1`; `None` if the server had no `opa` to find out.
    #[serde(default)]
    pub syntax: Option<String>,
    /// By path.
    pub modules: BTreeMap<String, String>,
    pub policies: Vec<PolicyQuery>,
}

#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, Debug)]
pub struct PolicyQuery {
    pub name: String,
    pub query: String,
    pub mandatory: bool,
    #[serde(default)]
    pub description: String,
}

/// What an agent says about a set.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, Debug)]
pub struct PolicySetResult {
    pub set: String,
    /// Version of `opa` that evaluated it.
    #[serde(default)]
    pub opa_version: Option<String>,
    /// Reason why none of it could be evaluated.
    #[serde(default)]
    pub error: Option<String>,
    pub policies: Vec<PolicyResult>,
}

#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, Debug)]
pub struct PolicyResult {
    pub name: String,
    pub status: PolicyResultStatus,
    /// What it found, as a JSON list, or why there was an error. A long one is cut.
    #[serde(default)]
    pub output: String,
}

#[derive(Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Debug)]
#[serde(rename_all = "kebab-case")]
pub enum PolicyResultStatus {
    Passed,
    Failed,
    Errored,
}
