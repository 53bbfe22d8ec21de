//! Next step of a run whose plan has succeeded.

use jiff::Timestamp;

use crate::author::Author;
use crate::run::{Run, RunHistoryEntry};
use crate::run_policies::{PolicyOverride, PolicyVerdict};
use crate::run_status::{IllegalTransition, RunEvent, RunStatus};
use crate::run_tasks::task_stage::StageKind;

/// Refusal to apply a plan that breaks what others use without a word that this is meant.
#[derive(Clone, PartialEq, Eq, thiserror::Error, Debug)]
#[error(
    "The plan {0}, so the run is not auto-applied: apply it with accept-output-changes, or discard it and plan again"
)]
pub struct OutputChangesNotAccepted(pub String);

impl Run {
    /// Checks that who wants the plan applied knows what it breaks. Where nothing is applied by itself, wanting it is
    /// enough.
    pub fn check_accepted(&self, accepts: bool) -> Result<(), OutputChangesNotAccepted> {
        let contract = self.output_contract.as_ref().filter(|contract| contract.waits_for_decision());
        match contract {
            Some(contract) if self.options.auto_apply && !accepts => Err(OutputChangesNotAccepted(contract.in_short())),
            _ => Ok(()),
        }
    }

    /// The run after its plan has ended and found `has_changes`: over, or waiting for a decision, which may have been
    /// made when it began. What is to be asked about the plan comes before that.
    pub fn after_plan(&self, has_changes: bool, now: Timestamp) -> Result<Self, IllegalTransition> {
        // It was done before its agent heard that it should stop. The person who canceled it wants nothing to follow.
        if let Some(cancel) = &self.cancel {
            return self.after(RunEvent::Canceled, now, cancel.by);
        }
        if self.has_ahead(StageKind::PostPlan) {
            return self.after(RunEvent::StageBegan, now, Author::Taco);
        }
        let options = &self.options;
        let applicable = has_changes || options.allow_empty_apply;
        let event = match () {
            () if options.plan_only || !applicable => RunEvent::PlanWasAll,
            () if options.save_plan => RunEvent::PlanSaved,
            () => RunEvent::PlanAwaitsDecision,
        };
        let verdict = self
            .policies
            .as_ref()
            .filter(|_| applicable)
            .map_or(PolicyVerdict::GoesOn, |it| it.verdict(options.plan_only));
        match verdict {
            PolicyVerdict::GoesOn => {}
            PolicyVerdict::WaitsForOverride => return self.after(RunEvent::PolicyOverridable, now, Author::Taco),
            PolicyVerdict::Stops => return self.after(RunEvent::PolicyRefused, now, Author::Taco),
        }
        let planned = self.after(event, now, Author::Taco)?;
        let applies = planned.options.auto_apply && !planned.waits_for_contract();
        match planned.status == RunStatus::Planned && applies {
            true => planned.after(RunEvent::Confirmed, now, planned.created_by),
            false => Ok(planned),
        }
    }

    /// True if the plan leads to something that policies have to judge: without changes nothing would be applied.
    pub fn asks_policies(&self, has_changes: bool) -> bool {
        has_changes || self.options.allow_empty_apply
    }

    /// The run after somebody has overridden the policies that stood against its plan: it goes on where the plan ended.
    pub fn after_override(&self, by: Author, now: Timestamp) -> Result<Self, IllegalTransition> {
        if !self.waits_for_override() {
            return Err(IllegalTransition { status: self.status, event: RunEvent::PlanAwaitsDecision });
        }
        let mut run = self.clone();
        if let Some(policies) = &mut run.policies {
            policies.overridden = Some(PolicyOverride { by, at: now });
        }
        run.history.push(RunHistoryEntry {
            action: "policies_overridden".into(),
            at: now,
            by,
            comment: None,
            description: None,
        });
        run.after_plan(run.has_changes.unwrap_or_default(), now)
    }
}

#[cfg(test)]
mod tests {
    use taco_words::graph::ContractPolicy;

    use super::*;
    use crate::graph::output_contract::OutputContract;
    use crate::run::tests::given_run;
    use crate::run::{CancelRequest, RunOptions};
    use crate::run_status::RunStatus as S;

    #[test]
    fn a_plan_that_breaks_what_others_use_waits_for_a_word() {
        let contract = |stops| OutputContract {
            policy: ContractPolicy::Stop,
            broken: Vec::new(),
            unlisted: 0,
            consumers: 1,
            stops,
            accepted: None,
        };
        let now = Timestamp::UNIX_EPOCH;
        let planning = |auto_apply, stops| Run {
            status: S::Planning,
            options: RunOptions { auto_apply, ..RunOptions::default() },
            output_contract: Some(contract(stops)),
            ..given_run(1)
        };
        let warned = planning(true, false).after_plan(true, now).expect("legal");
        assert_eq!((warned.status, warned.check_accepted(false)), (S::ApplyQueued, Ok(())));
        let stopped = planning(true, true).after_plan(true, now).expect("legal");
        assert_eq!(stopped.status, S::Planned);
        assert!(stopped.check_accepted(false).is_err() && stopped.check_accepted(true).is_ok());
        let asked = planning(false, true).after_plan(true, now).expect("legal");
        assert_eq!(asked.check_accepted(false), Ok(()), "who confirms it decides");
        let confirmed = stopped.after(RunEvent::Confirmed, now, Author::Taco).expect("legal");
        assert!(confirmed.output_contract.as_ref().is_some_and(|contract| contract.accepted.is_some()));
        assert!(!confirmed.waits_for_contract());
    }

    #[test]
    fn a_plan_leads_to_what_was_asked_for() {
        let usual = RunOptions::default;
        let plan_only = || RunOptions { plan_only: true, ..usual() };
        let saved = || RunOptions { save_plan: true, ..usual() };
        let auto = || RunOptions { auto_apply: true, ..usual() };
        let empty = || RunOptions { allow_empty_apply: true, ..usual() };
        for (options, has_changes, expected) in [
            (usual(), true, S::Planned),
            (usual(), false, S::PlannedAndFinished),
            (empty(), false, S::Planned),
            (plan_only(), true, S::PlannedAndFinished),
            (saved(), true, S::PlannedAndSaved),
            (auto(), true, S::ApplyQueued),
            (auto(), false, S::PlannedAndFinished),
        ] {
            let now = Timestamp::UNIX_EPOCH;
            let run = Run { status: S::Planning, options, ..given_run(1) };
            assert_eq!(run.after_plan(has_changes, now).expect("legal").status, expected, "{:?}", run.options);
            let cancel = Some(CancelRequest { at: now, by: Author::Taco, force: false });
            let canceled = Run { cancel, ..run }.after_plan(has_changes, now).expect("legal");
            assert_eq!(canceled.status, S::Canceled, "nothing follows a plan that was to stop");
        }
    }
}
