//! What policies said about plans, by the ids under which clients ask.

use taco_boxed::boxed;
use taco_domain::id::RunId;
use taco_domain::permission::Action;
use taco_domain::run_policies::{
    PolicyEvaluationId, PolicySetOutcomeId, PolicyStageId, RunPolicies, RunPolicySet, runs_with_outcome,
};

use crate::caller::Caller;
use crate::control_plane::ControlPlane;
use crate::error::Error;
use crate::runs::RunView;

/// Sets of one run that have an outcome of their own to ask for.
const MAX_SETS_OF_RUN: usize = 64;

impl RunView {
    /// Its policies, if any applied when its plan began.
    pub fn policies(&self) -> Option<&RunPolicies> {
        self.run.policies.as_deref()
    }

    /// May the caller override what its policies say?
    pub fn may_override_policies(&self, caller: &Caller) -> bool {
        caller.may(Action::OverridePolicies, self.resource()).allowed
    }
}

/// What one set said about the plan of a run.
#[derive(Clone)]
pub struct PolicySetOutcomeView {
    pub run: RunView,
    pub index: usize,
}

impl PolicySetOutcomeView {
    pub fn id(&self) -> PolicySetOutcomeId {
        self.run.run.policy_set_outcome_id(self.index)
    }

    pub fn set(&self) -> Option<&RunPolicySet> {
        self.run.policies()?.sets.get(self.index)
    }
}

#[boxed]
impl ControlPlane {
    /// The run whose policies an evaluation is about.
    pub async fn policy_evaluation(&self, caller: &Caller, id: PolicyEvaluationId) -> Result<RunView, Error> {
        let what = "policy evaluation";
        let run: RunId = RunId::from_characters(id.characters()).map_err(|_| Error::NotFound(what))?;
        let view = self.run(caller, run).await.map_err(|error| not_found(error, what))?;
        if view.policies().is_none() { Err(Error::NotFound(what)) } else { Ok(view) }
    }

    /// The run whose policies clients look for on a task stage.
    pub async fn policy_stage(&self, caller: &Caller, id: PolicyStageId) -> Result<RunView, Error> {
        let what = "task stage";
        let run: RunId = RunId::from_characters(id.characters()).map_err(|_| Error::NotFound(what))?;
        let view = self.run(caller, run).await.map_err(|error| not_found(error, what))?;
        if view.policies().is_none() { Err(Error::NotFound(what)) } else { Ok(view) }
    }

    /// What each set of an evaluation said.
    pub async fn policy_set_outcomes(
        &self,
        caller: &Caller,
        id: PolicyEvaluationId,
    ) -> Result<Vec<PolicySetOutcomeView>, Error> {
        let run = self.policy_evaluation(caller, id).await?;
        let count = run.policies().map_or(0, |policies| policies.sets.len()).min(MAX_SETS_OF_RUN);
        Ok((0..count).map(|index| PolicySetOutcomeView { run: run.clone(), index }).collect())
    }

    /// What one set said, by an id that leads to its run.
    pub async fn policy_set_outcome(
        &self,
        caller: &Caller,
        id: PolicySetOutcomeId,
    ) -> Result<PolicySetOutcomeView, Error> {
        let what = "policy set outcome";
        self.authorized_organization(caller, id.organization_prefix(), what).await?;
        for (run, index) in runs_with_outcome(id, MAX_SETS_OF_RUN) {
            match self.run(caller, run).await {
                Ok(run) => {
                    let view = PolicySetOutcomeView { run, index };
                    if view.set().is_some() {
                        return Ok(view);
                    }
                }
                Err(Error::NotFound(_)) => {}
                Err(other) => return Err(other),
            }
        }
        Err(Error::NotFound(what))
    }
}

fn not_found(error: Error, what: &'static str) -> Error {
    match error {
        Error::NotFound(_) => Error::NotFound(what),
        other => other,
    }
}
