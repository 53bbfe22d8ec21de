//! Outcome of a phase, as its agent reports it, and the run after it.

use jiff::Timestamp;

use crate::author::Author;
use crate::engine::Engine;
use crate::engine_version::is_exact_version;
use crate::phase::{PhaseKind, ResourceCounts, bounded_message};
use crate::phase_loss::LateOutcome;
use crate::run::Run;
use crate::run_policies::PolicySetReport;
use crate::run_status::{IllegalTransition, RunEvent};

/// Outcome of a phase, as its agent reports it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum PhaseOutcome {
    Planned {
        has_changes: bool,
        counts: ResourceCounts,
        generated_configuration: bool,
        engine: (Engine, String),
        /// What its policies say, as far as the agent knows of policies.
        policies: Vec<PolicySetReport>,
    },
    Applied {
        counts: ResourceCounts,
        engine: (Engine, String),
    },
    Errored {
        message: String,
        engine: Option<(Engine, String)>,
    },
    Canceled,
    /// The engine did not end by itself, so that not all that it did may be in the state. `canceled`: somebody wanted it
    /// to stop by force.
    Incomplete {
        message: String,
        canceled: bool,
    },
}

/// Reason why a phase cannot end in this way.
#[derive(Clone, PartialEq, Eq, thiserror::Error, Debug)]
pub enum OutcomeRefused {
    #[error(transparent)]
    Illegal(#[from] IllegalTransition),
    #[error("an apply does not end with a plan")]
    ApplyWithPlan,
    #[error("a plan does not end with an apply")]
    PlanWithApply,
}

impl PhaseOutcome {
    /// The outcome as a record of the run keeps it. Only an apply can leave unknown changes.
    pub fn kept(self, kind: PhaseKind) -> Self {
        match self {
            Self::Incomplete { canceled: true, .. } if kind == PhaseKind::Plan => Self::Canceled,
            Self::Incomplete { message, .. } if kind == PhaseKind::Plan => {
                Self::Errored { message: bounded_message(&message), engine: None }
            }
            Self::Incomplete { message, canceled } => Self::Incomplete { message: bounded_message(&message), canceled },
            Self::Errored { message, engine } => Self::Errored { message: bounded_message(&message), engine },
            other => other,
        }
    }

    /// The end of an apply, as an agent tells it that comes back.
    pub fn late(&self) -> Result<LateOutcome<'_>, OutcomeRefused> {
        match self {
            Self::Planned { .. } => Err(OutcomeRefused::ApplyWithPlan),
            Self::Applied { counts, .. } => Ok(LateOutcome::Applied(*counts)),
            Self::Errored { message, .. } | Self::Incomplete { message, canceled: false } => {
                Ok(LateOutcome::Errored(message))
            }
            Self::Canceled | Self::Incomplete { canceled: true, .. } => Ok(LateOutcome::Canceled),
        }
    }

    fn engine(&self) -> Option<&(Engine, String)> {
        match self {
            Self::Planned { engine, .. } | Self::Applied { engine, .. } => Some(engine),
            Self::Errored { engine, .. } => engine.as_ref(),
            Self::Canceled | Self::Incomplete { .. } => None,
        }
    }
}

impl Run {
    /// The run after its phase has ended.
    pub fn after_outcome(
        mut self,
        kind: PhaseKind,
        outcome: &PhaseOutcome,
        now: Timestamp,
    ) -> Result<Self, OutcomeRefused> {
        let by = Author::Taco;
        if let Some((engine, version)) = outcome.engine().filter(|(_, version)| is_exact_version(version)) {
            self.options.engine = *engine;
            self.options.terraform_version.clone_from(version);
        }
        let after = match outcome {
            PhaseOutcome::Canceled => {
                self.after(RunEvent::Canceled, now, self.cancel.as_ref().map_or(by, |cancel| cancel.by))
            }
            PhaseOutcome::Errored { message, .. } | PhaseOutcome::Incomplete { message, .. } => {
                self.phase_mut(kind).error = Some(message.clone());
                self.after(RunEvent::Failed, now, by)
            }
            PhaseOutcome::Planned { .. } if kind == PhaseKind::Apply => return Err(OutcomeRefused::ApplyWithPlan),
            PhaseOutcome::Applied { .. } if kind == PhaseKind::Plan => return Err(OutcomeRefused::PlanWithApply),
            PhaseOutcome::Planned { has_changes, counts, generated_configuration, policies, .. } => {
                self.has_changes = Some(*has_changes);
                self.generated_configuration = *generated_configuration;
                self.plan.counts = *counts;
                let is_asked = self.asks_policies(*has_changes);
                if let Some(own) = self.policies.as_mut().filter(|_| is_asked) {
                    own.settle(policies, now);
                }
                self.after_plan(*has_changes, now)
            }
            PhaseOutcome::Applied { counts, .. } => {
                self.apply.counts = *counts;
                self.after(RunEvent::Applied, now, by)
            }
        };
        Ok(after?)
    }

    /// The run after its phase has failed before an agent had it.
    pub fn failed_before(&self, kind: PhaseKind, why: &str, now: Timestamp) -> Result<Self, IllegalTransition> {
        let mut failed = self.after(RunEvent::Failed, now, Author::Taco)?;
        failed.phase_mut(kind).error = Some(format!("The {kind} was not begun: {why}"));
        Ok(failed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::tests::given_run;
    use crate::run_status::RunStatus;

    #[test]
    fn a_phase_ends_as_its_kind_does() {
        let (now, engine) = (Timestamp::UNIX_EPOCH, (Engine::Tofu, "1.9.0".to_owned()));
        let counts = ResourceCounts { additions: 2, ..ResourceCounts::default() };
        let planned = PhaseOutcome::Planned {
            has_changes: true,
            counts,
            generated_configuration: false,
            engine: engine.clone(),
            policies: Vec::new(),
        };
        let applied = PhaseOutcome::Applied { counts, engine };
        let planning = Run { status: RunStatus::Planning, ..given_run(1) };
        let applying = Run { status: RunStatus::Applying, ..given_run(1) };
        let after = planning.clone().after_outcome(PhaseKind::Plan, &planned, now).expect("legal");
        assert_eq!((after.status, after.plan.counts), (RunStatus::Planned, counts));
        assert_eq!((after.options.engine, after.options.terraform_version.as_str()), (Engine::Tofu, "1.9.0"));
        let after = applying.clone().after_outcome(PhaseKind::Apply, &applied, now).expect("legal");
        assert_eq!((after.status, after.apply.counts), (RunStatus::Applied, counts));
        let refused = planning.after_outcome(PhaseKind::Plan, &applied, now);
        assert_eq!(refused, Err(OutcomeRefused::PlanWithApply));
        let refused = applying.after_outcome(PhaseKind::Apply, &planned, now);
        assert_eq!(refused, Err(OutcomeRefused::ApplyWithPlan));
    }

    #[test]
    fn only_an_apply_leaves_unknown_changes() {
        let incomplete = |canceled| PhaseOutcome::Incomplete { message: "killed".to_owned(), canceled };
        assert_eq!(incomplete(true).kept(PhaseKind::Plan), PhaseOutcome::Canceled);
        let errored = PhaseOutcome::Errored { message: "killed".to_owned(), engine: None };
        assert_eq!(incomplete(false).kept(PhaseKind::Plan), errored);
        assert_eq!(incomplete(false).kept(PhaseKind::Apply), incomplete(false));
    }
}
