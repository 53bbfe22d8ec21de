//! How runs ended, as coarse as statistics need it.

use crate::run_status::RunStatus;

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum RunOutcome {
    /// It was applied, or there was nothing to apply.
    Succeeded,
    Failed,
    /// Someone canceled it or discarded its plan.
    Stopped,
    /// It is not over.
    Open,
}

impl RunOutcome {
    pub fn of(status: RunStatus) -> Self {
        match status {
            RunStatus::Applied | RunStatus::PlannedAndFinished => Self::Succeeded,
            RunStatus::Errored => Self::Failed,
            RunStatus::Discarded | RunStatus::Canceled => Self::Stopped,
            RunStatus::Pending
            | RunStatus::PrePlanRunning
            | RunStatus::PlanQueued
            | RunStatus::Planning
            | RunStatus::PostPlanRunning
            | RunStatus::Planned
            | RunStatus::PolicyOverride
            | RunStatus::PlannedAndSaved
            | RunStatus::Confirmed
            | RunStatus::PreApplyRunning
            | RunStatus::ApplyQueued
            | RunStatus::Applying => Self::Open,
        }
    }

    /// The outcome that a status tells as it is spelled in the catalogs of history.
    pub fn of_word(status: &str) -> Self {
        match status {
            "applied" | "planned_and_finished" => Self::Succeeded,
            "errored" => Self::Failed,
            "discarded" | "canceled" => Self::Stopped,
            _ => Self::Open,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_say_the_same_as_statuses() {
        for status in RunStatus::ALL {
            assert_eq!(RunOutcome::of(status), RunOutcome::of_word(&status.to_string()), "{status}");
            assert_eq!(RunOutcome::of(status) == RunOutcome::Open, !status.is_final(), "{status}");
        }
    }
}
