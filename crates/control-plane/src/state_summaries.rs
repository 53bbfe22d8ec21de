//! What states' resources add up to, remembered: a stored state never changes, and reading it again is work.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use taco_domain::id::StateVersionId;
use taco_domain::state_file::ResourceSummary;

use crate::control_plane::ControlPlane;

/// So many are remembered; then all are forgotten, and those that are asked for come back.
const MOST: usize = 1000;

#[derive(Default)]
pub(crate) struct Summaries(Mutex<HashMap<StateVersionId, Arc<ResourceSummary>>>);

impl ControlPlane {
    pub(crate) fn known_summary(&self, id: StateVersionId) -> Option<Arc<ResourceSummary>> {
        self.shared.summaries.0.lock().unwrap_or_else(PoisonError::into_inner).get(&id).cloned()
    }

    pub(crate) fn remember_summary(&self, id: StateVersionId, summary: ResourceSummary) -> Arc<ResourceSummary> {
        let mut summaries = self.shared.summaries.0.lock().unwrap_or_else(PoisonError::into_inner);
        if summaries.len() >= MOST {
            summaries.clear();
        }
        Arc::clone(summaries.entry(id).insert_entry(Arc::new(summary)).get())
    }
}
