//! What states' resources add up to, remembered: a stored state never changes, and reading it again is work.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use taco_domain::id::StateVersionId;
use taco_domain::state_file::ResourceSummary;

use crate::control_plane::ControlPlane;

/// Summaries of so many resources are remembered; then all are forgotten, and those that are asked for come back.
const MOST: usize = 50_000;

#[derive(Default)]
pub(crate) struct Summaries(Mutex<Remembered>);

#[derive(Default)]
struct Remembered {
    by_version: HashMap<StateVersionId, Arc<ResourceSummary>>,
    resources: usize,
}

impl ControlPlane {
    pub(crate) fn known_summary(&self, id: StateVersionId) -> Option<Arc<ResourceSummary>> {
        let remembered = self.shared.summaries.0.lock().unwrap_or_else(PoisonError::into_inner);
        remembered.by_version.get(&id).cloned()
    }

    pub(crate) fn remember_summary(&self, id: StateVersionId, summary: ResourceSummary) -> Arc<ResourceSummary> {
        let mut remembered = self.shared.summaries.0.lock().unwrap_or_else(PoisonError::into_inner);
        // An empty one takes its place too.
        let weight = summary.resources.len() + 1;
        if remembered.resources + weight > MOST {
            *remembered = Remembered::default();
        }
        remembered.resources += weight;
        Arc::clone(remembered.by_version.entry(id).insert_entry(Arc::new(summary)).get())
    }
}
