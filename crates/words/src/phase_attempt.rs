//! An attempt at a phase, as agents, scheduler and ledger name it.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::id::RunId;
use crate::phase::PhaseKind;

/// One attempt at one phase of a run. Every write for it names the epoch; a stale one is refused.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, Debug)]
pub struct PhaseAttempt {
    pub run: RunId,
    pub phase: PhaseKind,
    pub epoch: u64,
}

impl fmt::Display for PhaseAttempt {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} {} (attempt {})", self.phase, self.run, self.epoch)
    }
}
