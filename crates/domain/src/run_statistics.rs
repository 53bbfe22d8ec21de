//! How a workspace's runs went lately.

use jiff::SignedDuration;

use crate::id::WorkspaceId;
use crate::organization_state::OrganizationState;
use crate::phase::{Phase, PhaseStatus};
use crate::run::Run;
use crate::run_status::RunStatus;

/// So many runs count, the newest. A workspace with a long history costs no more to show than another.
const NEWEST: usize = 30;

#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct RunStatistics {
    pub runs: usize,
    pub failures: usize,
    pub plan_average: Option<SignedDuration>,
    pub apply_average: Option<SignedDuration>,
}

impl OrganizationState {
    pub fn run_statistics(&self, workspace: WorkspaceId) -> RunStatistics {
        let newest: Vec<&Run> = self.runs_of(workspace).take(NEWEST).collect();
        RunStatistics {
            runs: newest.len(),
            failures: newest.iter().filter(|run| run.status == RunStatus::Errored).count(),
            plan_average: average(newest.iter().map(|run| &run.plan)),
            apply_average: average(newest.iter().map(|run| &run.apply)),
        }
    }
}

fn average<'a>(phases: impl Iterator<Item = &'a Phase>) -> Option<SignedDuration> {
    let finished = phases.filter(|phase| phase.status == PhaseStatus::Finished);
    let times: Vec<SignedDuration> =
        finished.filter_map(|phase| Some(phase.ended_at?.duration_since(phase.started_at?))).collect();
    let count = i32::try_from(times.len()).ok().filter(|count| *count > 0)?;
    let total = times.into_iter().fold(SignedDuration::ZERO, SignedDuration::saturating_add);
    Some(total / count)
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;

    use super::*;
    use crate::run::tests::given_run;
    use crate::run_queue::tests::given_state;

    #[test]
    fn what_ended_well_makes_the_average() {
        let took = |seconds, status| Phase {
            status,
            started_at: Some(Timestamp::UNIX_EPOCH),
            ended_at: Timestamp::from_second(seconds).ok(),
            ..Phase::default()
        };
        let runs = [
            Run { plan: took(2, PhaseStatus::Finished), ..given_run(1) },
            Run { plan: took(4, PhaseStatus::Finished), ..given_run(2) },
            Run { plan: took(99, PhaseStatus::Errored), status: RunStatus::Errored, ..given_run(3) },
        ];
        let (state, workspace) = given_state(&runs);
        let statistics = state.run_statistics(workspace.id);
        assert_eq!((statistics.runs, statistics.failures), (3, 1));
        assert_eq!(statistics.plan_average, Some(SignedDuration::from_secs(3)));
        assert_eq!(statistics.apply_average, None);
    }
}
