//! Cost estimates of plans. Taco has no prices, and says so: every resource of a plan is counted as one without a
//! price.

use jiff::Timestamp;

use crate::id::CostEstimateId;
use crate::phase::PhaseStatus;
use crate::run::Run;
use crate::run_status::RunStatus;

/// Cost estimate of a run's plan.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CostEstimate {
    pub id: CostEstimateId,
    pub progress: CostEstimateProgress,
    /// Number of resources that the plan adds, changes or imports; none of them has a price.
    pub resources: u64,
    /// Time at which the plan was available, or was given up.
    pub ended_at: Option<Timestamp>,
}

/// Status, with the names of Terraform Cloud.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CostEstimateProgress {
    /// The plan is not there yet.
    Pending,
    Finished,
    /// There will be no plan.
    Canceled,
}

impl Run {
    /// Cost estimate of the run, if its organization had them enabled when it began.
    pub fn cost_estimate(&self) -> Option<CostEstimate> {
        let counts = self.plan.counts;
        let progress = match self.plan.status {
            PhaseStatus::Pending | PhaseStatus::Queued | PhaseStatus::Running => CostEstimateProgress::Pending,
            PhaseStatus::Finished => CostEstimateProgress::Finished,
            PhaseStatus::Errored | PhaseStatus::Canceled | PhaseStatus::Unreachable => CostEstimateProgress::Canceled,
        };
        self.estimates_costs.then(|| CostEstimate {
            id: CostEstimateId::from_characters(self.id.characters()).expect("every id has these characters"),
            progress,
            resources: counts.additions + counts.changes + counts.imports,
            ended_at: self.plan.ended_at,
        })
    }

    /// Its status as clients know it: where costs are estimated, a plan that awaits a decision has its estimate.
    pub fn status_on_the_wire(&self) -> &'static str {
        match self.status {
            RunStatus::Planned if self.estimates_costs => "cost_estimated",
            status => status.as_str(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::phase::{Phase, ResourceCounts};
    use crate::run::tests::given_run;

    fn run(status: RunStatus, plan: PhaseStatus) -> Run {
        let counts = ResourceCounts { additions: 2, changes: 1, destructions: 4, imports: 1 };
        let plan = Phase { status: plan, counts, ..Phase::default() };
        Run { status, plan, estimates_costs: true, ..given_run(1) }
    }

    #[test]
    fn a_plan_is_estimated_where_the_organization_wants_it() {
        let planned = run(RunStatus::Planned, PhaseStatus::Finished);
        let estimate = planned.cost_estimate().expect("an estimate");
        assert_eq!((estimate.progress, estimate.resources), (CostEstimateProgress::Finished, 4));
        assert_eq!(planned.status_on_the_wire(), "cost_estimated");

        let without = Run { estimates_costs: false, ..planned };
        assert_eq!(without.cost_estimate(), None);
        assert_eq!(without.status_on_the_wire(), "planned");
    }

    #[test]
    fn an_estimate_goes_with_its_plan() {
        let progress = |plan| run(RunStatus::Planning, plan).cost_estimate().map(|estimate| estimate.progress);
        assert_eq!(progress(PhaseStatus::Running), Some(CostEstimateProgress::Pending));
        assert_eq!(progress(PhaseStatus::Errored), Some(CostEstimateProgress::Canceled));
        assert_eq!(run(RunStatus::Applying, PhaseStatus::Finished).status_on_the_wire(), "applying");
    }
}
