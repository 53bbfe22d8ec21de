//! Pace of the bucket, and of commits: how long a server leaves the next one to others.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::time::Instant;

/// Maximum latency of a local bucket. More than a look at a directory takes, also where the machine is busy and now and then runs somebody else in the
/// middle of one; less than the way over a network.
const MAX_LOCAL_LATENCY_NANOS: u64 = 300_000;

/// Smoothed times of a PUT and a GET. They only set the length of a pause, so a rough figure is enough.
#[derive(Default, Debug)]
pub(crate) struct Pace {
    put_nanos: AtomicU64,
    get_nanos: AtomicU64,
}

impl Pace {
    pub(crate) async fn time_put<T>(&self, work: impl Future<Output = T>) -> T {
        time(&self.put_nanos, work).await
    }

    pub(crate) async fn time_get<T>(&self, work: impl Future<Output = T>) -> T {
        time(&self.get_nanos, work).await
    }

    /// True if a GET takes no longer than to let other tasks go first, as on a directory.
    pub(crate) fn is_near(&self) -> bool {
        (1..MAX_LOCAL_LATENCY_NANOS).contains(&self.get_nanos.load(Ordering::Relaxed))
    }

    /// One PUT and one GET: what a server that lost a race needs to learn of it and to try again. The winner knows
    /// the next number at once; without this pause it would win every time.
    pub(crate) fn turn(&self) -> Duration {
        Duration::from_nanos(self.put_nanos.load(Ordering::Relaxed) + self.get_nanos.load(Ordering::Relaxed))
    }
}

async fn time<T>(average: &AtomicU64, work: impl Future<Output = T>) -> T {
    let begun = Instant::now();
    let outcome = work.await;
    let nanos = u64::try_from(begun.elapsed().as_nanos()).unwrap_or(u64::MAX);
    let before = average.load(Ordering::Relaxed);
    let after = if before == 0 { nanos } else { before - before / 8 + nanos / 8 };
    average.store(after, Ordering::Relaxed);
    outcome
}
