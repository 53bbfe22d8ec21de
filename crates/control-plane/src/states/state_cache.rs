//! States that were read lately. Many read the same one: every plan of its workspace, and of those that use its outputs.
//! A blob never changes, so what was read of it once is true for as long as something names it.

use std::sync::{Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use quick_cache::Weighter;
use quick_cache::unsync::Cache;
use taco_ledger::Key;

/// Capacity in bytes; beyond it, states that are not in demand are evicted.
const MAX_CACHE_BYTES: u64 = 4 * 1024 * 1024;
/// A larger one flows past.
const MAX_CACHED_STATE_BYTES: u64 = 1024 * 1024;
/// For the cache's own book-keeping: most states are about this large.
const USUAL: usize = 32 * 1024;

/// One shelf for all: of many small ones, none would have a place for a large state.
pub(crate) struct StateCache(Mutex<Shelf>);

type Shelf = Cache<Key, Bytes, BySize>;

#[derive(Clone)]
struct BySize;

impl Weighter<Key, Bytes> for BySize {
    fn weight(&self, _: &Key, state: &Bytes) -> u64 {
        state.len().max(1) as u64
    }
}

impl StateCache {
    pub(crate) fn get(&self, key: &Key) -> Option<Bytes> {
        self.shelf().get(key).cloned()
    }

    /// True if a state of this size may be cached.
    pub(crate) fn has_room_for(size: u64) -> bool {
        size <= MAX_CACHED_STATE_BYTES
    }

    pub(crate) fn keep(&self, key: Key, state: Bytes) {
        self.shelf().insert(key, state);
    }

    pub(crate) fn forget(&self, key: &Key) {
        self.shelf().remove(key);
    }

    fn shelf(&self) -> MutexGuard<'_, Shelf> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Default for StateCache {
    fn default() -> Self {
        Self(Mutex::new(Cache::with_weighter(MAX_CACHE_BYTES as usize / USUAL, MAX_CACHE_BYTES, BySize)))
    }
}

#[cfg(test)]
mod tests {
    use taco_ledger::{LedgerName, layout};

    use super::*;

    fn key(number: usize) -> Key {
        layout::blob(&LedgerName::site(), "states", &number.to_string())
    }

    #[test]
    fn what_was_read_is_kept_until_it_is_forgotten() {
        let states = StateCache::default();
        states.keep(key(1), Bytes::from_static(b"{}"));
        assert_eq!(states.get(&key(1)), Some(Bytes::from_static(b"{}")));
        assert_eq!(states.get(&key(2)), None);
        states.forget(&key(1));
        assert_eq!(states.get(&key(1)), None);
    }

    #[test]
    fn no_more_is_kept_than_fits() {
        let states = StateCache::default();
        assert!(
            StateCache::has_room_for(MAX_CACHED_STATE_BYTES) && !StateCache::has_room_for(MAX_CACHED_STATE_BYTES + 1)
        );
        let state = Bytes::from(vec![0; MAX_CACHED_STATE_BYTES as usize]);
        for number in 0..20 {
            states.keep(key(number), state.clone());
            assert!(states.get(&key(number)).is_some(), "{number}");
            assert!(states.shelf().weight() <= MAX_CACHE_BYTES, "{}", states.shelf().weight());
        }
        let kept = (0..20).filter(|number| states.get(&key(*number)).is_some()).count();
        assert_eq!(kept as u64, MAX_CACHE_BYTES / MAX_CACHED_STATE_BYTES);
    }
}
