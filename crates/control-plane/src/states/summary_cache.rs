//! Cache of what states' resources add up to: a stored state never changes, and reading it again is work.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use taco_domain::id::StateVersionId;
use taco_domain::state_file::ResourceSummary;

/// Summaries of so many resources are cached; then all are forgotten, and those that are asked for come back.
const MAX_RESOURCES: usize = 50_000;

#[derive(Default)]
pub(crate) struct SummaryCache(Mutex<Cached>);

#[derive(Default)]
struct Cached {
    by_version: HashMap<StateVersionId, Arc<ResourceSummary>>,
    resources: usize,
}

impl SummaryCache {
    pub(crate) fn get(&self, id: StateVersionId) -> Option<Arc<ResourceSummary>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).by_version.get(&id).cloned()
    }

    pub(crate) fn insert(&self, id: StateVersionId, summary: ResourceSummary) -> Arc<ResourceSummary> {
        let mut cached = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // An empty one takes its place too.
        let weight = summary.resources.len() + 1;
        if cached.resources + weight > MAX_RESOURCES {
            *cached = Cached::default();
        }
        cached.resources += weight;
        Arc::clone(cached.by_version.entry(id).insert_entry(Arc::new(summary)).get())
    }
}
