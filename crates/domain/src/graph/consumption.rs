//! Consumptions: how far a unit's states and runs have been examined for evidence, and its last effective apply.

use std::collections::BTreeSet;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use taco_tables::{Record, references};

use crate::author::Author;
use crate::id::{RunId, StateVersionId, WorkspaceId};
use crate::output::OutputDigest;
use crate::run::Run;

/// Maximum number of runs that are listed one by one while an earlier one is open.
const MAX_LISTED_RUNS: usize = 100;

/// Number of the rules by which states and plans are examined. If it goes up, everything is examined again.
pub const EXAMINER: u32 = 1;

/// How far a unit has been examined, and what it last applied.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, Debug)]
pub struct Consumption {
    pub workspace: WorkspaceId,
    /// [`EXAMINER`] of the server that examined it.
    pub examiner: u32,
    /// The newest state version that was examined.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state_version: Option<StateVersionId>,
    /// When the newest run ended that was examined.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_ended_at: Option<Timestamp>,
    /// The newest run that was examined.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<RunId>,
    /// The runs that need no examination any more. `None` from a server that went by the times of their ends.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub examined_runs: Option<ExaminedRuns>,
    /// Why the newest state or plan could not be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unreadable: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub effective: Option<EffectiveApply>,
}

/// Runs of a unit that were over when it was examined, by their numbers: servers' clocks may differ, and a run that is over
/// by a slow one must not be missed.
#[derive(Clone, PartialEq, Eq, Default, Serialize, Deserialize, Debug)]
pub struct ExaminedRuns {
    /// All with a lower number.
    pub below: u64,
    /// Later ones, while an earlier one is open.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub numbers: BTreeSet<u64>,
}

impl ExaminedRuns {
    pub fn contains(&self, number: u64) -> bool {
        number < self.below || self.numbers.contains(&number)
    }

    /// These and some more that are over, of a unit that has `runs` in memory.
    #[must_use]
    pub fn with(&self, over: &BTreeSet<u64>, runs: &BTreeSet<u64>) -> Self {
        let is_over = |number: &&u64| self.contains(**number) || over.contains(*number);
        let open = runs.iter().find(|number| !is_over(number)).copied();
        let after_all = runs.last().map_or(0, |last| last + 1);
        let mut below = self.below.max(open.unwrap_or(after_all));
        let listed: Vec<u64> = runs.iter().filter(|number| **number >= below && is_over(number)).copied().collect();
        let unlisted = listed.len().saturating_sub(MAX_LISTED_RUNS);
        if let Some(first) = listed.get(unlisted).filter(|_| unlisted > 0) {
            below = *first;
        }
        Self { below, numbers: listed.into_iter().skip(unlisted).collect() }
    }
}

/// The last apply, or plan without changes, that took in everything that the unit uses.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, Debug)]
pub struct EffectiveApply {
    pub at: Timestamp,
    pub by: Author,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<RunId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state_version: Option<StateVersionId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub own: Option<OwnInputs>,
}

/// Digests of a unit's inputs that are its own. If they equal those of its last effective apply, it has no change of its own.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, Debug)]
pub struct OwnInputs {
    /// Contents of the configuration's files.
    pub configuration: OutputDigest,
    /// Effective variables, without those that come from other units.
    pub variables: OutputDigest,
    /// Program and version.
    pub engine: String,
    /// The dependency lock file.
    pub lock_file: OutputDigest,
}

impl Consumption {
    pub fn new(workspace: WorkspaceId) -> Self {
        Self {
            workspace,
            examiner: EXAMINER,
            state_version: None,
            run_ended_at: None,
            run: None,
            examined_runs: None,
            unreadable: None,
            effective: None,
        }
    }

    /// True if this run was over when the unit was examined by rules that are not older than this server's.
    pub fn has_examined(&self, run: &Run) -> bool {
        let by_number = || match &self.examined_runs {
            Some(runs) => runs.contains(run.number),
            None => self.run_ended_at.is_some_and(|ended| run.entered_status_at() <= ended),
        };
        self.examiner >= EXAMINER && (self.run == Some(run.id) || by_number())
    }
}

impl Record for Consumption {
    const KIND: &'static str = "consumption";
    const PART_OF: &'static [&'static str] = &["workspace"];
    type Id = WorkspaceId;
    type Indexes = ();

    fn id(&self) -> &WorkspaceId {
        &self.workspace
    }

    references! {
        "workspace": WorkspaceId, cascade(|all, id| all.get(id).into_iter());
        "state_version": StateVersionId, keep("it tells how far the unit was examined");
        "run": RunId, keep("it tells how far the unit was examined");
        "effective": StateVersionId, keep("it tells what was applied");
        "effective": RunId, keep("it tells what was applied");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(numbers: impl IntoIterator<Item = u64>) -> BTreeSet<u64> {
        numbers.into_iter().collect()
    }

    #[test]
    fn a_run_that_is_open_for_long_is_examined_when_it_is_over() {
        let none = ExaminedRuns::default();
        assert_eq!(none.with(&set([]), &set([])), none);
        let first = none.with(&set([1, 3]), &set([1, 2, 3, 4]));
        assert_eq!(first, ExaminedRuns { below: 2, numbers: set([3]) });
        assert!(first.contains(1) && !first.contains(2) && first.contains(3) && !first.contains(4));
        // The first has left memory.
        let second = first.with(&set([4]), &set([2, 3, 4]));
        assert_eq!(second, ExaminedRuns { below: 2, numbers: set([3, 4]) });
        assert_eq!(second.with(&set([2]), &set([2, 3, 4])), ExaminedRuns { below: 5, numbers: set([]) });
        // The newest was deleted: its number does not come back.
        assert_eq!(ExaminedRuns { below: 5, numbers: set([]) }.with(&set([]), &set([2, 3])).below, 5);
    }

    #[test]
    fn the_list_does_not_grow_without_end() {
        let runs = set(1..=500);
        let over = set(2..=500);
        let examined = ExaminedRuns::default().with(&over, &runs);
        assert_eq!((examined.below, examined.numbers.len()), (401, MAX_LISTED_RUNS));
    }
}
