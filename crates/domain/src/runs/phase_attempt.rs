//! An attempt at a phase, as agents, scheduler and ledger name it.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::id::RunId;
use crate::phase::PhaseKind;
use crate::run::Run;

/// One attempt at one phase of a run. Every write for it names the epoch; a stale one is refused.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, Debug)]
pub struct PhaseAttempt {
    pub run: RunId,
    pub phase: PhaseKind,
    pub epoch: u64,
}

impl PhaseAttempt {
    /// True if this attempt is under way in a run as the ledger has it.
    pub fn is_current_in(&self, run: &Run) -> bool {
        run.executing_phase() == Some(self.phase) && run.phase(self.phase).epoch == self.epoch
    }

    /// True if this attempt was given up.
    pub fn is_lost_in(&self, run: &Run) -> bool {
        run.phase(self.phase).is_lost(self.epoch)
    }
}

impl fmt::Display for PhaseAttempt {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} {} (attempt {})", self.phase, self.run, self.epoch)
    }
}
