//! Tells those who follow a log through this server that it has grown. It carries nothing and may be missed: readers
//! look now and then anyway, because the log may grow through another server.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use tokio::sync::Notify;

#[derive(Default, Debug)]
pub(crate) struct LogSignals {
    followed: Mutex<HashMap<String, Weak<Notify>>>,
    closed: AtomicBool,
}

impl LogSignals {
    /// A signal that is raised whenever the log grows, for as long as someone holds it.
    pub(crate) fn follow(&self, log: &str) -> Arc<Notify> {
        let mut followed = self.followed.lock().unwrap_or_else(PoisonError::into_inner);
        followed.retain(|_, signal| signal.strong_count() > 0);
        if let Some(signal) = followed.get(log).and_then(Weak::upgrade) {
            return signal;
        }
        let signal = Arc::new(Notify::new());
        followed.insert(log.to_owned(), Arc::downgrade(&signal));
        signal
    }

    /// Ends all waiting from now on.
    pub(crate) fn close(&self) {
        self.closed.store(true, Ordering::Relaxed);
        let followed = self.followed.lock().unwrap_or_else(PoisonError::into_inner);
        followed.values().filter_map(Weak::upgrade).for_each(|signal| signal.notify_waiters());
    }

    pub(crate) fn are_closed(&self) -> bool {
        self.closed.load(Ordering::Relaxed)
    }

    pub(crate) fn raise(&self, log: &str) {
        let followed = self.followed.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(signal) = followed.get(log).and_then(Weak::upgrade) {
            signal.notify_waiters();
        }
    }
}
