//! Next step of a run whose plan has succeeded.

use jiff::Timestamp;

use crate::author::Author;
use crate::run::Run;
use crate::run_status::{IllegalTransition, RunEvent, RunStatus};

impl Run {
    /// The run after its plan has ended and found `has_changes`: over, or waiting for a decision, which may have been
    /// made when it began.
    pub fn after_plan(&self, has_changes: bool, now: Timestamp) -> Result<Self, IllegalTransition> {
        // It was done before its agent heard that it should stop. The person who canceled it wants nothing to follow.
        if let Some(cancel) = &self.cancel {
            return self.after(RunEvent::Canceled, now, cancel.by);
        }
        let options = &self.options;
        let applicable = has_changes || options.allow_empty_apply;
        let event = match () {
            () if options.plan_only || !applicable => RunEvent::PlanWasAll,
            () if options.save_plan => RunEvent::PlanSaved,
            () => RunEvent::PlanAwaitsDecision,
        };
        let planned = self.after(event, now, Author::Taco)?;
        match planned.status == RunStatus::Planned && planned.options.auto_apply {
            true => planned.after(RunEvent::Confirmed, now, planned.created_by),
            false => Ok(planned),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::tests::given_run;
    use crate::run::{CancelRequest, RunOptions};
    use crate::run_status::RunStatus as S;

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
