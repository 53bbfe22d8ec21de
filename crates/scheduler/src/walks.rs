//! Walks go on: whoever sees a change takes the steps that follow from it.

use std::time::Duration;

use tokio::time::{sleep, timeout};

use crate::scheduler::Scheduler;

/// Interval of looking without a signal: some steps only wait for time to pass.
const TICK_INTERVAL: Duration = Duration::from_secs(5);

/// Time in which changes gather before steps are taken: many runs end together.
const GATHER_INTERVAL: Duration = Duration::from_millis(20);

/// Delay before a retry after trouble.
const RETRY_DELAY: Duration = Duration::from_secs(1);

impl Scheduler {
    pub(crate) async fn advance_walks_for_ever(&self) {
        loop {
            let _ = timeout(TICK_INTERVAL, self.walks_changed.notified()).await;
            sleep(GATHER_INTERVAL).await;
            for org in self.served() {
                if let Err(error) = self.control_plane.advance_walks(&org).await {
                    tracing::warn!(
                        event = "walk_advance_failed", organization = %org.id(), %error,
                        "the walks of an organization could not go on; trying again"
                    );
                    sleep(RETRY_DELAY).await;
                    self.walks_changed.notify_one();
                }
            }
        }
    }
}
