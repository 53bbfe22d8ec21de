//! A value that several tasks watch. Unlike tokio's own, it wakes them in the order in which they came, so that a seed
//! replays.

use std::sync::{Arc, Mutex};

use tokio::sync::Notify;

struct Shared<T> {
    value: Mutex<(u64, T)>,
    changed: Notify,
}

pub(crate) struct Signal<T> {
    shared: Arc<Shared<T>>,
    seen: u64,
}

impl<T> Clone for Signal<T> {
    fn clone(&self) -> Self {
        Self { shared: Arc::clone(&self.shared), seen: self.seen }
    }
}

impl<T: Clone> Signal<T> {
    pub(crate) fn new(value: T) -> Self {
        Self { shared: Arc::new(Shared { value: Mutex::new((0, value)), changed: Notify::new() }), seen: 0 }
    }

    pub(crate) fn get(&self) -> T {
        self.shared.value.lock().expect("no panic").1.clone()
    }

    pub(crate) fn modify(&self, change: impl FnOnce(&mut T)) {
        let mut value = self.shared.value.lock().expect("no panic");
        value.0 += 1;
        change(&mut value.1);
        drop(value);
        self.shared.changed.notify_waiters();
    }

    /// Returns when the value was changed since this clone last saw it.
    pub(crate) async fn changed(&mut self) {
        loop {
            let changed = self.shared.changed.notified();
            let version = self.shared.value.lock().expect("no panic").0;
            if version != self.seen {
                self.seen = version;
                return;
            }
            changed.await;
        }
    }
}
