//! Policies of one run: those that applied when its plan began, what came of each, and what that means for the run.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use taco_words::id_kinds;

use crate::attribute::as_plain_text;
use crate::author::Author;
use crate::id::{self, RunId};
use crate::organization_state::OrganizationState;
use crate::policy_set::{PolicySet, PolicySetId};
use crate::policy_set_version::PolicySetVersionStatus;
use crate::policy_words::{EnforcementLevel, PolicyFile, PolicyKind};
use crate::run::Run;
use crate::workspace::Workspace;

/// Maximum length of what a run keeps of the output of one policy, in characters. The log has more.
pub const MAX_POLICY_OUTPUT: usize = 4_000;
/// Maximum length of what it keeps of the output of all of them.
const MAX_OUTPUT_OF_RUN: usize = 100_000;
const MAX_ERROR: usize = 1_000;

id_kinds! {
    /// What the policies of a run said about its plan.
    PolicyEvaluationId = "poleval";
    /// The task stage on which clients look for them.
    PolicyStageId = "ts";
    /// What one set of them said.
    PolicySetOutcomeId = "psout";
}

/// What came of a policy.
#[derive(Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Debug)]
#[serde(rename_all = "kebab-case")]
pub enum PolicyStatus {
    Passed,
    Failed,
    /// Nothing is known about the plan, which never counts as passed.
    Errored,
}

impl PolicyStatus {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Passed => "passed",
            Self::Failed => "failed",
            Self::Errored => "errored",
        }
    }
}

/// A policy as it was when the plan began, and what came of it.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, Debug)]
pub struct RunPolicy {
    pub name: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub query: String,
    pub level: EnforcementLevel,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub description: String,
    /// Its code, if it has some of its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<PolicyFile>,
    /// Unknown while the plan is under way.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<PolicyStatus>,
    /// What it found, as JSON, or why there was an error.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub output: String,
}

/// A set that applies to the run.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, Debug)]
pub struct RunPolicySet {
    pub set: PolicySetId,
    pub name: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub description: String,
    pub kind: PolicyKind,
    #[serde(default)]
    pub overridable: bool,
    /// The version that was asked for; after the evaluation the one that there was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_version: Option<String>,
    /// Code of all of its policies, for a set that is uploaded as a whole.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<PolicyFile>,
    pub policies: Vec<RunPolicy>,
    /// Reason why none of it could be evaluated.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub error: String,
}

/// Word of somebody who let a run go on that a policy had stopped.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, Debug)]
pub struct PolicyOverride {
    pub by: Author,
    pub at: Timestamp,
}

#[derive(Clone, PartialEq, Eq, Default, Serialize, Deserialize, Debug)]
pub struct RunPolicies {
    pub sets: Vec<RunPolicySet>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub evaluated_at: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub overridden: Option<PolicyOverride>,
}

/// What an agent says about one policy.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PolicyReport {
    pub name: String,
    pub status: PolicyStatus,
    pub output: String,
}

/// What an agent says about one set.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PolicySetReport {
    pub set: String,
    pub tool_version: Option<String>,
    pub error: Option<String>,
    pub policies: Vec<PolicyReport>,
}

/// Number of policies by what came of them.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct PolicyCounts {
    pub passed: usize,
    pub advisory_failed: usize,
    pub mandatory_failed: usize,
    pub errored: usize,
}

impl PolicyCounts {
    fn add(&mut self, policy: &RunPolicy) {
        match policy.status {
            Some(PolicyStatus::Passed) => self.passed += 1,
            Some(PolicyStatus::Failed) if policy.level.is_mandatory() => self.mandatory_failed += 1,
            Some(PolicyStatus::Failed) => self.advisory_failed += 1,
            Some(PolicyStatus::Errored) => self.errored += 1,
            None => {}
        }
    }
}

/// What the policies of a run mean for it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PolicyVerdict {
    /// Nothing mandatory stands against it, or somebody has overridden what does.
    GoesOn,
    /// It waits for somebody who may override.
    WaitsForOverride,
    Stops,
}

impl RunPolicy {
    /// True if it stands against the run.
    fn stops(&self) -> bool {
        self.level.is_mandatory() && self.status != Some(PolicyStatus::Passed)
    }
}

impl RunPolicySet {
    pub fn counts(&self) -> PolicyCounts {
        let mut counts = PolicyCounts::default();
        self.policies.iter().for_each(|policy| counts.add(policy));
        counts
    }

    /// True if one of its policies stands against the run. A set whose policies nobody knows stands against it, too.
    pub fn stops(&self) -> bool {
        self.policies.iter().any(RunPolicy::stops) || (self.policies.is_empty() && !self.error.is_empty())
    }

    fn settle(&mut self, report: Option<&PolicySetReport>) {
        if self.kind == PolicyKind::Sentinel {
            self.fail("Sentinel policies are not evaluated here: write them for OPA, or ask a run task");
            return;
        }
        if self.policies.is_empty() {
            return;
        }
        let Some(report) = report else {
            self.fail("the agent did not evaluate this set: it is older than policies, and has to be upgraded");
            return;
        };
        if let Some(version) = &report.tool_version {
            self.tool_version = Some(as_plain_text(version, 60));
        }
        if let Some(error) = &report.error {
            self.fail(&as_plain_text(error, MAX_ERROR));
            return;
        }
        for policy in &mut self.policies {
            match report.policies.iter().find(|report| report.name == policy.name) {
                Some(report) => {
                    policy.status = Some(report.status);
                    policy.output = shortened(&report.output, MAX_POLICY_OUTPUT);
                }
                None => {
                    policy.status = Some(PolicyStatus::Errored);
                    policy.output = "the agent did not say what came of it".to_owned();
                }
            }
        }
    }

    fn fail(&mut self, why: &str) {
        self.error = why.to_owned();
        for policy in &mut self.policies {
            policy.status = Some(PolicyStatus::Errored);
        }
    }
}

/// The beginning of a text, and a word about the rest.
fn shortened(text: &str, longest: usize) -> String {
    let short = as_plain_text(text, longest);
    if text.chars().count() > longest { format!("{short}… (the plan's log has the rest)") } else { short }
}

impl RunPolicies {
    /// Takes what an agent says. What it does not mention was not evaluated, and so has not passed.
    pub fn settle(&mut self, reports: &[PolicySetReport], now: Timestamp) {
        for set in &mut self.sets {
            let id = set.set.to_string();
            set.settle(reports.iter().find(|report| report.set == id));
        }
        let mut room = MAX_OUTPUT_OF_RUN;
        for policy in self.sets.iter_mut().flat_map(|set| &mut set.policies) {
            if policy.output.len() > room {
                policy.output = "(the plan's log has what it found)".to_owned();
            }
            room = room.saturating_sub(policy.output.len());
        }
        self.evaluated_at = Some(now);
    }

    pub fn counts(&self) -> PolicyCounts {
        let mut counts = PolicyCounts::default();
        self.sets.iter().flat_map(|set| &set.policies).for_each(|policy| counts.add(policy));
        counts
    }

    /// What they mean for the run. What only plans has nothing to override.
    pub fn verdict(&self, plan_only: bool) -> PolicyVerdict {
        let mut stopping = self.sets.iter().filter(|set| set.stops()).peekable();
        match () {
            () if stopping.peek().is_none() || self.overridden.is_some() => PolicyVerdict::GoesOn,
            () if plan_only || !stopping.all(|set| set.overridable) => PolicyVerdict::Stops,
            () => PolicyVerdict::WaitsForOverride,
        }
    }

    /// Names of what stands against the run: `set/policy`.
    pub fn stopping(&self) -> Vec<String> {
        let sets = self.sets.iter().filter(|set| set.stops());
        let names = |set: &RunPolicySet| -> Vec<String> {
            let stopping = set.policies.iter().filter(|policy| policy.stops());
            let names: Vec<_> = stopping.map(|policy| format!("{}/{}", set.name, policy.name)).collect();
            if names.is_empty() { vec![set.name.clone()] } else { names }
        };
        sets.flat_map(names).collect()
    }

    /// True if agents have something to evaluate.
    pub fn has_opa(&self) -> bool {
        self.sets.iter().any(|set| set.kind == PolicyKind::Opa && !set.policies.is_empty())
    }

    /// Status of the evaluation, as Terraform Cloud calls it.
    pub fn status(&self) -> &'static str {
        let counts = self.counts();
        match (self.evaluated_at, &self.overridden) {
            (None, _) => "pending",
            (Some(_), Some(_)) => "overridden",
            (Some(_), None) if self.sets.iter().any(|set| !set.error.is_empty()) || counts.errored > 0 => "errored",
            (Some(_), None) if counts.mandatory_failed > 0 => "failed",
            (Some(_), None) => "passed",
        }
    }
}

impl Run {
    /// The id of its policy evaluation: the run's own characters.
    pub fn policy_evaluation_id(&self) -> PolicyEvaluationId {
        PolicyEvaluationId::from_characters(self.id.characters()).expect("every id has these characters")
    }

    /// The id of the task stage of its policies: the run's own characters.
    pub fn policy_stage_id(&self) -> PolicyStageId {
        PolicyStageId::from_characters(self.id.characters()).expect("every id has these characters")
    }

    /// The id of what one of its policy sets said: the run's characters, a little changed.
    pub fn policy_set_outcome_id(&self, index: usize) -> PolicySetOutcomeId {
        let turned = id::turned(self.id.to_bytes(), index + 1);
        PolicySetOutcomeId::from_characters(&turned).expect("turned characters are legal")
    }

    /// Checks that its policies were evaluated: a server of an older release does not know of them.
    pub fn check_policies(&self) -> Result<(), PoliciesNotEvaluated> {
        let is_asked = self.asks_policies(self.has_changes.unwrap_or_default());
        let is_open = self.policies.as_ref().is_some_and(|policies| policies.evaluated_at.is_none());
        let is_planned = self.plan.ended_at.is_some();
        if is_asked && is_open && is_planned { Err(PoliciesNotEvaluated) } else { Ok(()) }
    }

    /// True if it waits for somebody who may override its policies.
    pub fn waits_for_override(&self) -> bool {
        self.status == crate::run_status::RunStatus::PolicyOverride
    }
}

/// Refusal to apply a plan that policies should have judged.
#[derive(Clone, Copy, PartialEq, Eq, thiserror::Error, Debug)]
#[error(
    "The policies of this run were not evaluated, because a server of an older release ended its plan: run it again"
)]
pub struct PoliciesNotEvaluated;

/// The runs that could have such an outcome, with its index in each.
pub fn runs_with_outcome(outcome: PolicySetOutcomeId, most: usize) -> impl Iterator<Item = (RunId, usize)> {
    (0..most).filter_map(move |index| {
        let characters = id::turned(outcome.to_bytes(), id::MAX_TURNS - (index + 1) % id::MAX_TURNS);
        Some((RunId::from_characters(&characters).ok()?, index))
    })
}

impl OrganizationState {
    /// The policies that apply to a run of a workspace that begins now; `None` if there are none.
    pub fn policies_for(&self, workspace: &Workspace) -> Option<RunPolicies> {
        let sets = self.policy_sets.by().name.iter().filter(|set| set.applies_to(workspace));
        let sets: Vec<RunPolicySet> = sets.filter_map(|set| self.policies_of(set)).collect();
        if sets.is_empty() { None } else { Some(RunPolicies { sets, ..RunPolicies::default() }) }
    }

    /// A set as a run has it; `None` if there is no policy in it.
    fn policies_of(&self, set: &PolicySet) -> Option<RunPolicySet> {
        let version = set.current_version.and_then(|id| self.policy_set_versions.get(&id));
        let version = version.filter(|version| version.status == PolicySetVersionStatus::Ready);
        let own = set.policies.iter().filter_map(|id| self.policies.get(id)).filter(|policy| policy.kind == set.kind);
        let own = own.map(|policy| RunPolicy {
            name: policy.name.to_string(),
            query: policy.query.clone().unwrap_or_default(),
            level: policy.level,
            description: policy.description.clone(),
            code: policy.code.clone(),
            status: None,
            output: String::new(),
        });
        let versioned = version.into_iter().flat_map(|version| &version.policies).map(|policy| RunPolicy {
            name: policy.name.clone(),
            query: policy.query.clone(),
            level: policy.level,
            description: policy.description.clone(),
            code: None,
            status: None,
            output: String::new(),
        });
        let mut policies: Vec<RunPolicy> = versioned.chain(own).collect();
        if policies.is_empty() && version.is_some() && set.kind == PolicyKind::Sentinel {
            // Nothing here reads what is in it, so it has to be taken for the strictest.
            policies.push(RunPolicy {
                name: set.name.to_string(),
                query: String::new(),
                level: EnforcementLevel::HardMandatory,
                description: String::new(),
                code: None,
                status: None,
                output: String::new(),
            });
        }
        if policies.is_empty() {
            return None;
        }
        Some(RunPolicySet {
            set: set.id,
            name: set.name.to_string(),
            description: set.description.clone(),
            kind: set.kind,
            overridable: set.overridable,
            tool_version: set.tool_version.clone(),
            code: version.and_then(|version| version.code.clone()).filter(|_| set.kind == PolicyKind::Opa),
            policies,
            error: String::new(),
        })
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// Policies of which a mandatory one has failed.
    pub(crate) fn failed_policies(overridable: bool) -> RunPolicies {
        let mut policies = policies(EnforcementLevel::Mandatory, overridable);
        policies.settle(&[report(PolicyStatus::Failed)], Timestamp::UNIX_EPOCH);
        policies
    }

    fn policies(level: EnforcementLevel, overridable: bool) -> RunPolicies {
        let policy = RunPolicy {
            name: "tags".to_owned(),
            query: "data.a".to_owned(),
            level,
            description: String::new(),
            code: None,
            status: None,
            output: String::new(),
        };
        let set = RunPolicySet {
            set: PolicySetId::from_random([1; 16]),
            name: "all".to_owned(),
            description: String::new(),
            kind: PolicyKind::Opa,
            overridable,
            tool_version: None,
            code: None,
            policies: vec![policy],
            error: String::new(),
        };
        RunPolicies { sets: vec![set], ..RunPolicies::default() }
    }

    fn report(status: PolicyStatus) -> PolicySetReport {
        let policies = vec![PolicyReport { name: "tags".to_owned(), status, output: "[]".to_owned() }];
        let set = PolicySetId::from_random([1; 16]).to_string();
        PolicySetReport { set, tool_version: Some("1.22.0".to_owned()), error: None, policies }
    }

    #[test]
    fn only_what_is_mandatory_and_not_overridden_stands_against_a_run() {
        use {EnforcementLevel as L, PolicyStatus as S, PolicyVerdict as V};
        for (level, overridable, status, expected) in [
            (L::Mandatory, false, S::Passed, V::GoesOn),
            (L::Mandatory, false, S::Failed, V::Stops),
            (L::Mandatory, true, S::Failed, V::WaitsForOverride),
            (L::Mandatory, true, S::Errored, V::WaitsForOverride),
            (L::Mandatory, false, S::Errored, V::Stops),
            (L::Advisory, false, S::Failed, V::GoesOn),
            (L::Advisory, false, S::Errored, V::GoesOn),
        ] {
            let mut policies = policies(level, overridable);
            policies.settle(&[report(status)], Timestamp::UNIX_EPOCH);
            assert_eq!(policies.verdict(false), expected, "{level} {overridable} {status:?}");
            if expected == V::WaitsForOverride {
                assert_eq!(policies.verdict(true), V::Stops, "a plan that is never applied has nothing to override");
                assert_eq!(policies.stopping(), ["all/tags"]);
                policies.overridden = Some(PolicyOverride { by: Author::Taco, at: Timestamp::UNIX_EPOCH });
                assert_eq!(policies.verdict(false), V::GoesOn);
            }
        }
    }

    #[test]
    fn what_was_not_evaluated_has_not_passed() {
        let silent = PolicySetReport { policies: Vec::new(), ..report(PolicyStatus::Passed) };
        let broken = PolicySetReport { error: Some("no opa".to_owned()), ..report(PolicyStatus::Passed) };
        for reports in [vec![], vec![silent], vec![broken]] {
            let mut policies = policies(EnforcementLevel::Mandatory, false);
            policies.settle(&reports, Timestamp::UNIX_EPOCH);
            assert_eq!((policies.verdict(false), policies.status()), (PolicyVerdict::Stops, "errored"));
        }
        let mut sentinel = policies(EnforcementLevel::HardMandatory, false);
        sentinel.sets[0].kind = PolicyKind::Sentinel;
        sentinel.settle(&[report(PolicyStatus::Passed)], Timestamp::UNIX_EPOCH);
        assert_eq!(sentinel.verdict(false), PolicyVerdict::Stops);
        assert!(sentinel.sets[0].error.contains("not evaluated"));
    }

    #[test]
    fn outputs_are_kept_in_short() {
        let mut policies = policies(EnforcementLevel::Advisory, false);
        let mut report = report(PolicyStatus::Failed);
        report.policies[0].output = "x".repeat(MAX_POLICY_OUTPUT * 2);
        policies.settle(&[report], Timestamp::UNIX_EPOCH);
        assert!(policies.sets[0].policies[0].output.len() < MAX_POLICY_OUTPUT + 100);
    }

    #[test]
    fn an_outcome_leads_to_its_run() {
        let run = crate::run::tests::given_run(7);
        for index in [0, 5, 99] {
            let outcome = run.policy_set_outcome_id(index);
            assert!(runs_with_outcome(outcome, 100).any(|found| found == (run.id, index)));
        }
    }
}
