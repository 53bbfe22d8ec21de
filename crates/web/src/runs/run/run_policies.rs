//! What policies said about the plan of a run.

use serde_json::Value;
use taco_control_plane::RunView;
use taco_domain::policy_words::PolicyKind;
use taco_domain::run_policies::{PolicyStatus, RunPolicy, RunPolicySet};

use crate::badge::Badge;
use crate::text::plain;

/// Findings of one policy that the page shows.
const MAX_FINDINGS: usize = 20;

pub(crate) struct PolicySection {
    pub(crate) sets: Vec<SetRow>,
    /// Somebody may let the run go on.
    pub(crate) waits: bool,
    pub(crate) overridden_by: Option<String>,
}

pub(crate) struct SetRow {
    pub(crate) name: String,
    pub(crate) tool: String,
    pub(crate) error: String,
    pub(crate) policies: Vec<PolicyRow>,
}

pub(crate) struct PolicyRow {
    pub(crate) name: String,
    pub(crate) level: &'static str,
    pub(crate) description: String,
    pub(crate) badge: Badge,
    pub(crate) findings: Vec<String>,
    pub(crate) unlisted: usize,
}

impl PolicySection {
    pub(crate) fn of(view: &RunView) -> Option<Self> {
        let policies = view.policies()?;
        let by = policies.overridden.as_ref().map(|word| view.org.name_of(&word.by));
        Some(Self {
            sets: policies.sets.iter().map(SetRow::of).collect(),
            waits: view.run.waits_for_override(),
            overridden_by: by,
        })
    }
}

impl SetRow {
    fn of(set: &RunPolicySet) -> Self {
        let tool = match (set.kind, &set.tool_version) {
            (PolicyKind::Sentinel, _) => "not evaluated".to_owned(),
            (PolicyKind::Opa, Some(version)) => format!("OPA {version}"),
            (PolicyKind::Opa, None) => String::new(),
        };
        let policies = set.policies.iter().map(|policy| PolicyRow::of(policy, set.error.is_empty())).collect();
        Self { name: set.name.clone(), tool, error: plain(&set.error), policies }
    }
}

impl PolicyRow {
    fn of(policy: &RunPolicy, shows_output: bool) -> Self {
        let badge = match policy.status {
            None => Badge::new("Not evaluated yet", "○", "calm"),
            Some(PolicyStatus::Passed) => Badge::new("Passed", "✓", "good"),
            Some(PolicyStatus::Failed) if policy.level.is_mandatory() => Badge::new("Failed", "✗", "bad"),
            Some(PolicyStatus::Failed) => Badge::new("Failed (advisory)", "!", "asks"),
            Some(PolicyStatus::Errored) => Badge::new("Error", "✗", "bad"),
        };
        let found = match serde_json::from_str(&policy.output) {
            Ok(Value::Array(found)) => found,
            _ if policy.output.is_empty() || !shows_output => Vec::new(),
            _ => vec![Value::String(policy.output.clone())],
        };
        let text = |value: &Value| match value {
            Value::String(text) => plain(text),
            other => plain(&other.to_string()),
        };
        Self {
            name: policy.name.clone(),
            level: policy.level.as_str(),
            description: policy.description.clone(),
            badge,
            unlisted: found.len().saturating_sub(MAX_FINDINGS),
            findings: found.iter().take(MAX_FINDINGS).map(text).collect(),
        }
    }
}
