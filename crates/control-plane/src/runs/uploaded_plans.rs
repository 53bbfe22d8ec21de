//! Plans that this server has stored, in the forms that agents send.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use taco_domain::id::RunId;
use taco_domain::phase::StoredFile;
use taco_domain::phase_attempt::PhaseAttempt;
use taco_domain::small_map::SmallMap;
use taco_ledger::blob::Stored;

/// The forms of a plan.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PlanForm {
    /// The engine's own file.
    File,
    /// `show -json` of it.
    Json,
    /// Form that the `cloud` block renders, without sensitive values.
    Redacted,
}

impl PlanForm {
    pub const ALL: [Self; 3] = [Self::File, Self::Json, Self::Redacted];

    /// The kind of its blobs.
    pub(crate) fn blobs(self) -> &'static str {
        match self {
            Self::File => "plans",
            Self::Json => "json-plans",
            Self::Redacted => "redacted-plans",
        }
    }
}

/// A server remembers no more attempts than this; what it forgot it reads again.
const MAX_REMEMBERED: usize = 1024;

pub(crate) type Files = SmallMap<String, StoredFile>;

/// Files that this server has stored for unfinished plans, so that finishing them need not read everything again.
#[derive(Default)]
pub(crate) struct UploadedPlans(Mutex<HashMap<(RunId, u64), Files>>);

impl UploadedPlans {
    fn all(&self) -> MutexGuard<'_, HashMap<(RunId, u64), Files>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn remember(&self, attempt: PhaseAttempt, form: PlanForm, stored: Stored) {
        let mut all = self.all();
        // Attempts that were lost never end, and no request asks for them.
        if all.len() >= MAX_REMEMBERED {
            all.clear();
        }
        let file = StoredFile { size: stored.size, sha256: stored.sha256 };
        all.entry((attempt.run, attempt.epoch)).or_default().insert(form.blobs().to_owned(), file);
    }

    pub(crate) fn take(&self, attempt: PhaseAttempt) -> Files {
        self.all().remove(&(attempt.run, attempt.epoch)).unwrap_or_default()
    }
}
