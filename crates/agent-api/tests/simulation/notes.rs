//! Responses that everybody got, to compare them with the truth.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard};

use bytes::Bytes;
use sha2::{Digest, Sha256};
use taco_agent_protocol::PhaseAttempt;
use taco_domain::id::{RunId, WorkspaceId};
use taco_domain::walks::walk::WalkId;

use crate::check::Locks;
use crate::outside::Files;
use crate::promise::Promise;

#[derive(Default)]
pub(crate) struct Notes {
    inner: Mutex<Told>,
}

#[derive(Clone, Default)]
pub(crate) struct Told {
    /// States that a server has acknowledged, by SHA-256.
    pub(crate) states: Vec<(WorkspaceId, String)>,
    pub(crate) outcomes_sent: BTreeSet<PhaseAttempt>,
    pub(crate) outcomes_acknowledged: BTreeSet<PhaseAttempt>,
    /// Files that engines wrote, by attempt.
    pub(crate) files: BTreeMap<PhaseAttempt, Arc<Files>>,
    /// Logs as readers saw them while they grew: the run, whether it was the plan's, and the bytes.
    pub(crate) logs_read: Vec<(PhaseAttempt, Vec<u8>)>,
    /// Runs whose making was acknowledged.
    pub(crate) runs: BTreeSet<RunId>,
    /// Walks whose beginning was acknowledged.
    pub(crate) walks: BTreeSet<WalkId>,
    /// Locks that a person was told to have, or to have let go.
    pub(crate) locks: BTreeMap<WorkspaceId, Locks>,
    /// Promises that were broken before everybody's eyes.
    pub(crate) broken: Vec<(Promise, String)>,
}

impl Notes {
    pub(crate) fn told(&self) -> MutexGuard<'_, Told> {
        self.inner.lock().expect("no panic")
    }

    pub(crate) fn outcome_sent(&self, phase: PhaseAttempt) {
        self.told().outcomes_sent.insert(phase);
    }

    pub(crate) fn acknowledged(&self, phase: PhaseAttempt, workspace: WorkspaceId, word: &str, bytes: &Bytes) {
        let mut told = self.told();
        match word {
            "state" => {
                let digest = Sha256::digest(bytes);
                let digest = digest.iter().map(|byte| format!("{byte:02x}")).collect();
                told.states.push((workspace, digest));
            }
            "outcome" => {
                told.outcomes_acknowledged.insert(phase);
            }
            _ => {}
        }
    }
}
