//! Activity of a connection, and its timeout for being idle.

use std::mem;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until};

/// Timeout for the head of a request, from its first byte on; for a new connection from the beginning, without the TLS
/// handshake.
pub(super) const HEAD_TIMEOUT: Duration = Duration::from_secs(10);

/// Timeout for an idle connection that was used before. Go's clients keep theirs for 90 s: we must not close one at the
/// moment when terraform sends something on it.
pub(super) const IDLE_TIMEOUT: Duration = Duration::from_secs(100);

/// Timeout for a client that takes nothing of its response. What the kernel buffers for a slow one can last for
/// minutes.
pub(super) const WRITE_TIMEOUT: Duration = Duration::from_secs(300);

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Stage {
    /// No request yet. `begun` once the first byte came.
    NoRequestYet {
        since: Instant,
        begun: bool,
    },
    Idle {
        since: Instant,
    },
    /// Some of another request's head is here.
    NextHead {
        since: Instant,
    },
    /// `blocked` since the client takes nothing of the answer.
    Answering {
        blocked: Option<Instant>,
    },
    /// It speaks another protocol, which has heartbeats of its own.
    Upgraded,
}

impl Stage {
    fn deadline(self) -> Option<Instant> {
        match self {
            Self::NoRequestYet { since, .. } | Self::NextHead { since } => Some(since + HEAD_TIMEOUT),
            Self::Idle { since } => Some(since + IDLE_TIMEOUT),
            Self::Answering { blocked } => blocked.map(|since| since + WRITE_TIMEOUT),
            Self::Upgraded => None,
        }
    }
}

/// Part of a request to which arriving bytes belong.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Arrival {
    NewHead,
    SameHead,
    Elsewhere,
}

/// Activity of one connection. Its reader, its writer and the service that responds all tell it what happens.
#[derive(Debug)]
pub(super) struct Activity {
    stage: Mutex<Stage>,
    /// Closed to make room for another.
    evicted: AtomicBool,
    /// The next head says in two ways how long its body is.
    ambiguous: AtomicBool,
    /// The client may still be sending what is not read.
    lingers: AtomicBool,
    /// Where a request should be, a TLS handshake began.
    client_hello: AtomicBool,
    /// Wakes the task that waits for the deadline, so that it looks at once.
    changed: Notify,
}

impl Activity {
    pub(super) fn new() -> Self {
        Self {
            stage: Mutex::new(Stage::NoRequestYet { since: Instant::now(), begun: false }),
            evicted: AtomicBool::new(false),
            ambiguous: AtomicBool::new(false),
            lingers: AtomicBool::new(false),
            client_hello: AtomicBool::new(false),
            changed: Notify::new(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Stage> {
        self.stage.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn stage(&self) -> Stage {
        *self.lock()
    }

    /// The TLS handshake is done; the time for the head begins.
    pub(super) fn ready(&self) {
        *self.lock() = Stage::NoRequestYet { since: Instant::now(), begun: false };
    }

    pub(super) fn received(&self) -> Arrival {
        let mut stage = self.lock();
        match &mut *stage {
            Stage::NoRequestYet { begun, .. } => {
                let first = !mem::replace(begun, true);
                if first { Arrival::NewHead } else { Arrival::SameHead }
            }
            Stage::Idle { .. } => {
                *stage = Stage::NextHead { since: Instant::now() };
                Arrival::NewHead
            }
            Stage::NextHead { .. } => Arrival::SameHead,
            Stage::Answering { .. } | Stage::Upgraded => Arrival::Elsewhere,
        }
    }

    /// Some of an answer went out, also of the end of one that is complete on our side.
    pub(super) fn sent(&self) {
        match &mut *self.lock() {
            Stage::Idle { since } => *since = Instant::now(),
            Stage::Answering { blocked } => *blocked = None,
            Stage::NoRequestYet { .. } | Stage::NextHead { .. } | Stage::Upgraded => {}
        }
    }

    /// The client does not take what it asked for.
    pub(super) fn cannot_send(&self) {
        if let Stage::Answering { blocked: blocked @ None } = &mut *self.lock() {
            *blocked = Some(Instant::now());
        }
    }

    /// A whole head came. It is being answered until what is returned is dropped.
    pub(super) fn begin_answer(self: &Arc<Self>) -> Answering {
        *self.lock() = Stage::Answering { blocked: None };
        Answering(Arc::clone(self))
    }

    pub(super) fn upgraded(&self) {
        *self.lock() = Stage::Upgraded;
    }

    pub(super) fn note_ambiguous_head(&self) {
        self.ambiguous.store(true, Ordering::Relaxed);
    }

    pub(super) fn take_ambiguous_head(&self) -> bool {
        self.ambiguous.swap(false, Ordering::Relaxed)
    }

    pub(super) fn linger(&self) {
        self.lingers.store(true, Ordering::Relaxed);
    }

    pub(super) fn lingers(&self) -> bool {
        self.lingers.load(Ordering::Relaxed)
    }

    pub(super) fn note_client_hello(&self) {
        self.client_hello.store(true, Ordering::Relaxed);
    }

    pub(super) fn saw_client_hello(&self) -> bool {
        self.client_hello.load(Ordering::Relaxed)
    }

    pub(super) fn evict(&self) {
        self.evicted.store(true, Ordering::Relaxed);
        self.changed.notify_one();
    }

    /// Waits until the connection has to be closed, and says why.
    ///
    /// It looks now and then, rather than being told of each stage: a request goes through three of them, and each would
    /// wake the task once more. No stage has less time than [`HEAD_TIMEOUT`], so no deadline passes between two looks.
    pub(super) async fn ended(&self) -> &'static str {
        loop {
            if self.evicted.load(Ordering::Relaxed) {
                return "it made room for another";
            }
            let (stage, now) = (self.stage(), Instant::now());
            let deadline = stage.deadline();
            if deadline.is_some_and(|deadline| deadline <= now) {
                return match stage {
                    Stage::Idle { .. } => "it was idle",
                    Stage::Answering { .. } => "its client took nothing of the answer",
                    _ => "the head of a request took too long",
                };
            }
            let next_look = now + HEAD_TIMEOUT;
            tokio::select! {
                () = sleep_until(deadline.map_or(next_look, |deadline| deadline.min(next_look))) => {}
                () = self.changed.notified() => {}
            }
        }
    }
}

/// An answer under way.
#[derive(Debug)]
pub(super) struct Answering(Arc<Activity>);

impl Drop for Answering {
    fn drop(&mut self) {
        let mut stage = self.0.lock();
        if let Stage::Answering { .. } = *stage {
            *stage = Stage::Idle { since: Instant::now() };
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::advance;

    use super::*;

    /// True if a connection has to be closed after so much more time.
    async fn closes_after(activity: &Activity, time: Duration) -> bool {
        advance(time).await;
        activity.stage().deadline().is_some_and(|deadline| deadline <= Instant::now())
    }

    #[tokio::test(start_paused = true)]
    async fn a_head_has_ten_seconds_and_the_first_one_counts_from_the_beginning() {
        let activity = Arc::new(Activity::new());
        assert_eq!(activity.received(), Arrival::NewHead);
        assert!(!closes_after(&activity, Duration::from_secs(9)).await);
        assert_eq!(activity.received(), Arrival::SameHead);
        assert!(closes_after(&activity, Duration::from_secs(1)).await, "more bytes give no more time");
        assert!(activity.ended().await.contains("head"));
    }

    #[tokio::test(start_paused = true)]
    async fn an_idle_connection_has_more_time_until_another_head_begins() {
        let activity = Arc::new(Activity::new());
        let answering = activity.begin_answer();
        assert!(!closes_after(&activity, Duration::from_secs(10_000)).await, "answers take as long as they take");
        assert_eq!(activity.received(), Arrival::Elsewhere, "it is of a body");
        drop(answering);
        assert!(!closes_after(&activity, Duration::from_secs(95)).await);
        assert_eq!(activity.received(), Arrival::NewHead);
        assert!(!closes_after(&activity, Duration::from_secs(9)).await);
        assert!(closes_after(&activity, Duration::from_secs(1)).await);
    }

    #[tokio::test(start_paused = true)]
    async fn a_deadline_is_kept_to_the_moment_also_where_it_came_between_two_looks() {
        let activity = Arc::new(Activity::new());
        let begun = Instant::now();
        let ended = tokio::spawn({
            let activity = Arc::clone(&activity);
            async move { activity.ended().await }
        });
        drop(activity.begin_answer());
        // The first look is over, the second is at 10 s.
        sleep_until(begun + Duration::from_secs(4)).await;
        assert_eq!(activity.received(), Arrival::NewHead);
        assert!(ended.await.expect("it ends").contains("head"));
        assert_eq!(begun.elapsed().as_secs(), 4 + HEAD_TIMEOUT.as_secs());
    }

    #[tokio::test(start_paused = true)]
    async fn whoever_takes_nothing_of_an_answer_is_closed() {
        let activity = Arc::new(Activity::new());
        let _answering = activity.begin_answer();
        activity.cannot_send();
        assert!(!closes_after(&activity, WRITE_TIMEOUT - Duration::from_secs(1)).await);
        activity.sent();
        activity.cannot_send();
        assert!(!closes_after(&activity, Duration::from_secs(2)).await, "it took some");
        assert!(closes_after(&activity, WRITE_TIMEOUT).await);
    }

    #[tokio::test(start_paused = true)]
    async fn a_connection_that_speaks_something_else_stays() {
        let activity = Arc::new(Activity::new());
        let answering = activity.begin_answer();
        activity.upgraded();
        drop(answering);
        assert!(!closes_after(&activity, Duration::from_secs(10_000)).await);
    }
}
