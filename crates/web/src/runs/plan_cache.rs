//! Plans that were looked at lately, as trees: a plan never changes, and reading one can take a while.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use taco_domain::id::RunId;

use crate::plan_view::PlanView;

/// Limit for the number of cached plans.
const MAX_CACHED_PLANS: usize = 16;

/// A run and the attempt that made the plan.
type Key = (RunId, u64);

#[derive(Default, Debug)]
pub(crate) struct PlanCache {
    plans: Mutex<VecDeque<(Key, Arc<PlanView>)>>,
}

impl PlanCache {
    pub(crate) fn get(&self, key: &Key) -> Option<Arc<PlanView>> {
        let plans = self.plans.lock().unwrap_or_else(PoisonError::into_inner);
        plans.iter().find(|(known, _)| known == key).map(|(_, plan)| Arc::clone(plan))
    }

    pub(crate) fn put(&self, key: Key, plan: PlanView) -> Arc<PlanView> {
        let plan = Arc::new(plan);
        let mut plans = self.plans.lock().unwrap_or_else(PoisonError::into_inner);
        plans.retain(|(known, _)| *known != key);
        plans.push_front((key, Arc::clone(&plan)));
        plans.truncate(MAX_CACHED_PLANS);
        plan
    }
}
