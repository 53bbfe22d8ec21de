//! Slots for threads that read large objects.

use tokio::sync::Semaphore;

/// So many large objects of one kind are read at a time while they come, and as many out of the bucket. Each takes a
/// thread of its own for as long as it takes to come: from tokio's pool of blocking threads, of which every operation
/// on a directory needs one. Where slow clients have all slots, the others' objects are read when they are stored: the
/// bucket keeps no request waiting.
const AT_ONCE: usize = 32;

/// Slots for objects of one kind.
pub(crate) struct ReaderSlots {
    /// For those that are read while they come.
    pub(crate) along: Semaphore,
    /// For those that are read out of the bucket.
    pub(crate) stored: Semaphore,
}

impl Default for ReaderSlots {
    fn default() -> Self {
        Self { along: Semaphore::new(AT_ONCE), stored: Semaphore::new(AT_ONCE) }
    }
}
