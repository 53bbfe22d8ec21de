//! States and plans are examined for evidence of dependencies in the background.

use std::time::Duration;

use taco_control_plane::Privileged;
use tokio::time::sleep;

/// Interval of checking whether something is new.
const CHECK_INTERVAL: Duration = Duration::from_secs(2);
/// The pause between two batches: requests go first.
const BATCH_DELAY: Duration = Duration::from_millis(50);

/// Examines what is new, for as long as the server lives.
pub(crate) async fn examine_for_ever(control_plane: Privileged) {
    loop {
        let pause = match control_plane.examine_graphs().await {
            Ok(true) => BATCH_DELAY,
            Ok(false) => CHECK_INTERVAL,
            Err(error) => {
                tracing::warn!(
                    event = "graph_not_examined", %error,
                    "new states and plans could not be examined; they will be, when the bucket lets it"
                );
                CHECK_INTERVAL
            }
        };
        sleep(pause).await;
    }
}
