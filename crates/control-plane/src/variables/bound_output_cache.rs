//! Cache of the outputs of states that variables are bound to: many runs take their values from one state, which never
//! changes, and may be large.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, PoisonError};

use taco_domain::id::StateVersionId;
use taco_domain::state_file::Output;

/// Outputs of a state by name; or why they cannot be read, ever.
pub(crate) type StateOutputs = Result<BTreeMap<String, Output>, String>;

/// Outputs of so many bytes are cached; then all are forgotten, and those that are asked for come back.
const MAX_BYTES: usize = 8 * 1024 * 1024;
/// Weight of a state without outputs.
const BYTES_OF_A_STATE: usize = 256;

#[derive(Default)]
pub(crate) struct BoundOutputCache(Mutex<Cached>);

#[derive(Default)]
struct Cached {
    by_version: HashMap<StateVersionId, Arc<StateOutputs>>,
    bytes: usize,
}

impl BoundOutputCache {
    pub(crate) fn get(&self, id: StateVersionId) -> Option<Arc<StateOutputs>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).by_version.get(&id).cloned()
    }

    /// Keeps what was read, unless it is too large. What cannot be read may be mended.
    pub(crate) fn insert(&self, id: StateVersionId, outputs: StateOutputs) -> Arc<StateOutputs> {
        let outputs = Arc::new(outputs);
        let Ok(by_name) = outputs.as_ref() else { return outputs };
        let weight = |(name, output): (&String, &Output)| {
            name.len() + output.value.get().len() + output.detailed_type.get().len()
        };
        let weight = BYTES_OF_A_STATE + by_name.iter().map(weight).sum::<usize>();
        if weight <= MAX_BYTES / 2 {
            let mut cached = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            if cached.bytes + weight > MAX_BYTES {
                *cached = Cached::default();
            }
            cached.bytes += weight;
            cached.by_version.insert(id, Arc::clone(&outputs));
        }
        outputs
    }
}

#[cfg(test)]
mod tests {
    use serde_json::value::RawValue;

    use super::*;

    fn outputs(bytes: usize) -> StateOutputs {
        let raw = |text: String| RawValue::from_string(text).expect("JSON");
        let value = raw(format!("\"{}\"", "x".repeat(bytes)));
        let output = Output { value, detailed_type: raw("\"string\"".to_owned()), sensitive: false };
        Ok(BTreeMap::from([("o".to_owned(), output)]))
    }

    #[test]
    fn no_more_is_kept_than_fits_and_nothing_that_may_be_mended() {
        let cache = BoundOutputCache::default();
        let id = |number: u8| StateVersionId::from_random([number; 16]);
        cache.insert(id(0), outputs(MAX_BYTES));
        cache.insert(id(1), Err("it is damaged".to_owned()));
        assert!(cache.get(id(0)).is_none() && cache.get(id(1)).is_none());
        for number in 2..30 {
            cache.insert(id(number), outputs(MAX_BYTES / 5));
            assert!(cache.get(id(number)).is_some());
            assert!(cache.0.lock().expect("nobody panicked").bytes <= MAX_BYTES);
        }
        assert!(cache.get(id(2)).is_none());
    }
}
