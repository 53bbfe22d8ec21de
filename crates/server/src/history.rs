//! Finished runs leave memory in the background.

use std::time::Duration;

use taco_control_plane::Privileged;
use tokio::time::sleep;

/// Interval of checking whether something may leave.
const CHECK_INTERVAL: Duration = Duration::from_secs(60);
/// The pause between two batches: requests go first.
const BATCH_DELAY: Duration = Duration::from_millis(200);

/// Moves what is finished into history, for as long as the server lives.
pub(crate) async fn archive_for_ever(control_plane: Privileged) {
    loop {
        let pause = match control_plane.archive_finished().await {
            Ok(archived) if archived.more => BATCH_DELAY,
            Ok(_) => CHECK_INTERVAL,
            Err(error) => {
                tracing::warn!(
                    event = "history_archive_failed", %error,
                    "finished runs could not be moved into history"
                );
                CHECK_INTERVAL
            }
        };
        sleep(pause).await;
    }
}
