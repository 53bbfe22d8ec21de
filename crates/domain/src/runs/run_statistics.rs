//! Statistics of a workspace's recent runs.

use jiff::SignedDuration;

use crate::history::PastRun;
use crate::id::WorkspaceId;
use crate::organization_state::OrganizationState;

/// Number of runs that count, the newest. A workspace with a long history costs no more to show than another.
pub const CONSIDERED_RUNS: usize = 30;

#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct RunStatistics {
    pub runs: usize,
    pub failures: usize,
    pub plan_average: Option<SignedDuration>,
    pub apply_average: Option<SignedDuration>,
}

impl OrganizationState {
    pub fn run_statistics(&self, workspace: WorkspaceId) -> RunStatistics {
        let in_memory = self.runs_of(workspace).map(PastRun::of).take(CONSIDERED_RUNS);
        let past = self.workspace_histories.get(&workspace).map_or(&[][..], |history| &history.newest);
        let mut newest: Vec<PastRun> = in_memory.chain(past.iter().copied()).collect();
        if !past.is_empty() {
            // One that was read back from history is known twice.
            newest.sort_by_key(|run| std::cmp::Reverse(run.number));
            newest.dedup_by_key(|run| run.number);
            newest.truncate(CONSIDERED_RUNS);
        }
        RunStatistics {
            runs: newest.len(),
            failures: newest.iter().filter(|run| run.failed).count(),
            plan_average: average(newest.iter().filter_map(|run| run.plan)),
            apply_average: average(newest.iter().filter_map(|run| run.apply)),
        }
    }
}

fn average(milliseconds: impl Iterator<Item = i64>) -> Option<SignedDuration> {
    let (total, count) =
        milliseconds.fold((0_i64, 0_i64), |(total, count), one| (total.saturating_add(one), count + 1));
    (count > 0).then(|| SignedDuration::from_millis(total / count))
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;

    use super::*;
    use crate::phase::{Phase, PhaseStatus};
    use crate::run::Run;
    use crate::run::tests::given_run;
    use crate::run_queue::tests::given_state;
    use crate::run_status::RunStatus;

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
