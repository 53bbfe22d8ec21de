//! Data that retention policies do not keep is deleted in the background.

use std::time::Duration;

use taco_control_plane::Privileged;
use tokio::time::sleep;

/// Interval of looking for data whose time is over. Policies count in days.
const SWEEP_INTERVAL: Duration = Duration::from_mins(10);
/// The pause between two batches: requests go first.
const BATCH_DELAY: Duration = Duration::from_secs(1);

/// Deletes what is due, for as long as the server lives.
pub(crate) async fn delete_for_ever(control_plane: Privileged) {
    loop {
        let pause = match control_plane.delete_expired_data().await {
            Ok(true) => BATCH_DELAY,
            Ok(false) => SWEEP_INTERVAL,
            Err(error) => {
                tracing::warn!(
                    event = "expired_data_not_deleted", %error,
                    "data that a retention policy does not keep could not be deleted; the next sweep tries again"
                );
                SWEEP_INTERVAL
            }
        };
        sleep(pause).await;
    }
}
