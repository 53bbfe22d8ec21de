//! What states' resources add up to, as JSON, remembered: a stored state never changes, and clients ask for the current
//! one again and again.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};
use taco_domain::id::StateVersionId;
use taco_domain::state_file::ResourceSummary;

/// So much text is remembered; then all is forgotten, and what is asked for comes back.
const MOST: usize = 4 * 1024 * 1024;

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
pub(crate) struct KeptSummaries(Arc<Mutex<Kept>>);

#[derive(Default, Debug)]
struct Kept {
    by_version: HashMap<StateVersionId, Arc<SummaryText>>,
    size: usize,
}

impl KeptSummaries {
    pub(crate) fn get(&self, id: StateVersionId) -> Option<Arc<SummaryText>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).by_version.get(&id).cloned()
    }

    pub(crate) fn keep(&self, id: StateVersionId, text: SummaryText) -> Arc<SummaryText> {
        let (size, text) = (text.size(), Arc::new(text));
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.size + size > MOST {
            *kept = Kept::default();
        }
        if size <= MOST && kept.by_version.insert(id, Arc::clone(&text)).is_none() {
            kept.size += size;
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
        let kept = KeptSummaries::default();
        let id = |number: u8| StateVersionId::from_random([number; 16]);
        let large = "x".repeat(MOST / 2);
        for number in 0..3 {
            kept.keep(id(number), SummaryText::of(&summary(&large)));
        }
        assert!(kept.get(id(0)).is_none());
        assert!(kept.get(id(2)).is_some());
        kept.keep(id(3), SummaryText::of(&summary(&large.repeat(3))));
        assert!(kept.get(id(3)).is_none(), "too large on its own");
    }
}
