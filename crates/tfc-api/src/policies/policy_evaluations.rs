//! What policies said about plans: evaluations, and the outcome of each set.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::Serialize;
use serde_json::Value;
use taco_control_plane::{PolicySetOutcomeView, RunView};
use taco_domain::policy_words::{EnforcementLevel, PolicyKind};
use taco_domain::run_policies::{PolicyCounts, PolicyStatus, RunPolicies, RunPolicy, RunPolicySet};

use crate::document::{Identifier, ResourceObject};
use crate::error::ApiError;
use crate::request::{Answer, ApiRequest};
use crate::resource::Resource;
use crate::task_stages;

pub(crate) const KIND: &str = "policy-evaluations";
const OUTCOMES: &str = "policy-set-outcomes";

#[derive(Clone, Copy, Serialize)]
#[serde(rename_all = "kebab-case")]
struct ResultCount {
    advisory_failed: usize,
    mandatory_failed: usize,
    passed: usize,
    errored: usize,
}

impl From<PolicyCounts> for ResultCount {
    fn from(counts: PolicyCounts) -> Self {
        let PolicyCounts { passed, advisory_failed, mandatory_failed, errored } = counts;
        Self { advisory_failed, mandatory_failed, passed, errored }
    }
}

#[derive(Serialize)]
#[serde(rename_all = "kebab-case")]
struct Attributes<'a> {
    status: &'static str,
    policy_kind: PolicyKind,
    policy_tool_version: Option<&'a str>,
    result_count: ResultCount,
    status_timestamps: BTreeMap<String, Timestamp>,
    created_at: Timestamp,
    updated_at: Timestamp,
}

/// Policies of a run in short, among the run's attributes.
#[derive(Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) struct PolicySummary {
    status: &'static str,
    result_count: ResultCount,
    /// Mandatory policies that stand against the run.
    stopping: Vec<String>,
}

impl PolicySummary {
    pub(crate) fn of(policies: &RunPolicies) -> Self {
        let is_settled = policies.evaluated_at.is_some() && policies.overridden.is_none();
        Self {
            status: policies.status(),
            result_count: policies.counts().into(),
            stopping: if is_settled { policies.stopping() } else { Vec::new() },
        }
    }
}

/// The evaluation of a run, under its own resource.
pub(crate) struct PolicyEvaluation(pub(crate) RunView);

impl Resource for PolicyEvaluation {
    const KIND: &'static str = KIND;

    fn object(&self, _: &ApiRequest) -> Result<ResourceObject, ApiError> {
        let run = &self.0.run;
        let policies: &RunPolicies = self.0.policies().ok_or_else(ApiError::not_found)?;
        let status = policies.status();
        let begun = run.plan.started_at.unwrap_or(run.created_at);
        let ended = policies.overridden.as_ref().map(|word| word.at).or(policies.evaluated_at);
        let tool = policies.sets.iter().find_map(|set| set.tool_version.as_deref());
        let is_all_sentinel = policies.sets.iter().all(|set| set.kind == PolicyKind::Sentinel);
        let attributes = Attributes {
            status,
            policy_kind: if is_all_sentinel { PolicyKind::Sentinel } else { PolicyKind::Opa },
            policy_tool_version: tool,
            result_count: policies.counts().into(),
            status_timestamps: ended.into_iter().map(|at| (format!("{status}-at"), at)).collect(),
            created_at: begun,
            updated_at: ended.unwrap_or(begun),
        };
        let outcomes =
            (0..policies.sets.len()).map(|index| Identifier::new(OUTCOMES, run.policy_set_outcome_id(index)));
        Ok(ResourceObject::new(KIND, run.policy_evaluation_id(), &attributes)
            .has_optional("policy-attachable", task_stages::judging(&self.0))
            .has_many("policy-set-outcomes", outcomes)
            .link("self", format!("/api/v2/policy-evaluations/{}", run.policy_evaluation_id())))
    }
}

#[derive(Serialize)]
#[serde(rename_all = "kebab-case")]
struct OutcomeAttributes<'a> {
    outcomes: Vec<Outcome<'a>>,
    error: &'a str,
    overridable: bool,
    policy_set_name: &'a str,
    policy_set_description: &'a str,
    policy_tool_version: Option<&'a str>,
    result_count: ResultCount,
    /// Clients read it under this name.
    #[serde(rename = "result_count")]
    result_count_of_clients: ResultCount,
}

/// Attributes of attributes are spelled with underscores.
#[derive(Serialize)]
struct Outcome<'a> {
    enforcement_level: EnforcementLevel,
    query: &'a str,
    status: &'static str,
    policy_name: &'a str,
    description: &'a str,
    output: Vec<Output>,
}

#[derive(Serialize)]
struct Output {
    print: String,
}

/// What a policy found, one by one, as texts.
fn outputs(policy: &RunPolicy) -> Vec<Output> {
    let found = match (policy.status, serde_json::from_str(&policy.output)) {
        (Some(PolicyStatus::Failed), Ok(Value::Array(found))) => found,
        _ if policy.output.is_empty() => Vec::new(),
        _ => vec![Value::String(policy.output.clone())],
    };
    let text = |value: Value| match value {
        Value::String(text) => text,
        other => other.to_string(),
    };
    found.into_iter().map(|value| Output { print: text(value) }).collect()
}

impl PolicyOutcomes<'_> {
    /// True if one of these policies is what a filter asks for.
    fn has(&self, status: Option<&str>, level: Option<&str>) -> bool {
        let takes = |policy: &RunPolicy| {
            let own = policy.status.map_or("pending", PolicyStatus::as_str);
            status.is_none_or(|wanted| wanted == own) && level.is_none_or(|wanted| wanted == policy.level.as_str())
        };
        self.0.policies.iter().any(takes)
    }
}

struct PolicyOutcomes<'a>(&'a RunPolicySet);

impl Resource for PolicySetOutcomeView {
    const KIND: &'static str = OUTCOMES;

    fn object(&self, _: &ApiRequest) -> Result<ResourceObject, ApiError> {
        let set = self.set().ok_or_else(ApiError::not_found)?;
        let outcomes = set.policies.iter().map(|policy| Outcome {
            enforcement_level: policy.level,
            query: &policy.query,
            status: policy.status.map_or("pending", PolicyStatus::as_str),
            policy_name: &policy.name,
            description: &policy.description,
            output: outputs(policy),
        });
        let count = ResultCount::from(set.counts());
        let attributes = OutcomeAttributes {
            outcomes: outcomes.collect(),
            error: &set.error,
            overridable: set.overridable,
            policy_set_name: &set.name,
            policy_set_description: &set.description,
            policy_tool_version: set.tool_version.as_deref(),
            result_count: count,
            result_count_of_clients: count,
        };
        Ok(ResourceObject::new(OUTCOMES, self.id(), &attributes)
            .has_one("policy-evaluation", Identifier::new(KIND, self.run.run.policy_evaluation_id()))
            .link("self", format!("/api/v2/policy-set-outcomes/{}", self.id())))
    }
}

/// `GET /api/v2/policy-evaluations/{policy_evaluation}`
pub(crate) async fn read(request: ApiRequest) -> Answer {
    let run = request.control_plane.policy_evaluation(&request.caller, request.id("policy_evaluation")?).await?;
    request.one(&PolicyEvaluation(run)).await
}

/// `GET /api/v2/policy-evaluations/{policy_evaluation}/policy-set-outcomes`, with `filter[n][status]` and
/// `filter[n][enforcement-level]`: an outcome that fits one of them is shown.
pub(crate) async fn outcomes(request: ApiRequest) -> Answer {
    let id = request.id("policy_evaluation")?;
    let outcomes = request.control_plane.policy_set_outcomes(&request.caller, id).await?;
    let filters: Vec<(Option<&str>, Option<&str>)> = (0..10)
        .map(|n| {
            let status = request.query.get(&format!("filter[{n}][status]"));
            let level = request.query.get(&format!("filter[{n}][enforcementLevel]"));
            (status, level.or_else(|| request.query.get(&format!("filter[{n}][enforcement-level]"))))
        })
        .filter(|(status, level)| status.is_some() || level.is_some())
        .collect();
    let takes = |view: &PolicySetOutcomeView| {
        let fits = |(status, level): &(Option<&str>, Option<&str>)| {
            view.set().is_some_and(|set| PolicyOutcomes(set).has(*status, *level))
        };
        filters.is_empty() || filters.iter().any(fits)
    };
    request.page_of(outcomes.into_iter().filter(takes).collect::<Vec<_>>()).await
}

/// `GET /api/v2/policy-set-outcomes/{policy_set_outcome}`
pub(crate) async fn outcome(request: ApiRequest) -> Answer {
    let id = request.id("policy_set_outcome")?;
    request.one(&request.control_plane.policy_set_outcome(&request.caller, id).await?).await
}
