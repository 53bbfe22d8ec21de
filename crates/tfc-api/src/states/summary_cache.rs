//! Cache of states' resource summaries as JSON: a stored state never changes, and clients ask for the current
//! one again and again.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};
use taco_domain::id::StateVersionId;
use taco_domain::state_file::ResourceSummary;

/// Budget in bytes; when it is exceeded, the whole cache is dropped.
const MAX_CACHE_BYTES: usize = 4 * 1024 * 1024;

/// The attributes of a state version that a [`ResourceSummary`] makes.
#[derive(Serialize, Debug)]
pub(crate) struct SummaryText {
    modules: Box<RawValue>,
    providers: Box<RawValue>,
    resources: Box<RawValue>,
}

impl SummaryText {
    pub(crate) fn of(summary: &ResourceSummary) -> Self {
        fn text(value: &impl Serialize) -> Box<RawValue> {
            to_raw_value(value).expect("a summary is plain data")
        }
        let ResourceSummary { modules, providers, resources } = summary;
        Self { modules: text(modules), providers: text(providers), resources: text(resources) }
    }

    fn size(&self) -> usize {
        [&self.modules, &self.providers, &self.resources].iter().map(|text| text.get().len()).sum()
    }
}

#[derive(Clone, Default, Debug)]
pub(crate) struct SummaryCache(Arc<Mutex<Entries>>);

#[derive(Default, Debug)]
struct Entries {
    by_version: HashMap<StateVersionId, Arc<SummaryText>>,
    size: usize,
}

impl SummaryCache {
    pub(crate) fn get(&self, id: StateVersionId) -> Option<Arc<SummaryText>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).by_version.get(&id).cloned()
    }

    pub(crate) fn insert(&self, id: StateVersionId, text: SummaryText) -> Arc<SummaryText> {
        let (size, text) = (text.size(), Arc::new(text));
        let mut cached = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if cached.size + size > MAX_CACHE_BYTES {
            *cached = Entries::default();
        }
        if size <= MAX_CACHE_BYTES && cached.by_version.insert(id, Arc::clone(&text)).is_none() {
            cached.size += size;
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};
    use taco_domain::state_file::ResourceCount;

    use super::*;

    fn summary(name: &str) -> ResourceSummary {
        let [kind, module, provider] = ["null_resource", "root", "null"].map(Arc::from);
        let resource = ResourceCount { name: name.to_owned(), kind, count: 1, module, provider };
        ResourceSummary { resources: vec![resource], ..ResourceSummary::default() }
    }

    #[test]
    fn the_text_says_what_the_summary_says() {
        let summary = summary("a \"name\"");
        let text: Value = serde_json::to_value(SummaryText::of(&summary)).expect("JSON");
        assert_eq!(text, serde_json::to_value(&summary).expect("JSON"));
        assert_eq!(text["modules"], json!({}));
    }

    #[test]
    fn no_more_is_remembered_than_fits() {
        let cached = SummaryCache::default();
        let id = |number: u8| StateVersionId::from_random([number; 16]);
        let large = "x".repeat(MAX_CACHE_BYTES / 2);
        for number in 0..3 {
            cached.insert(id(number), SummaryText::of(&summary(&large)));
        }
        assert!(cached.get(id(0)).is_none());
        assert!(cached.get(id(2)).is_some());
        cached.insert(id(3), SummaryText::of(&summary(&large.repeat(3))));
        assert!(cached.get(id(3)).is_none(), "too large on its own");
    }
}
