//! Old commits are packed in the background.

use std::time::Duration;

use taco_control_plane::Privileged;
use tokio::time::sleep;

/// Longest interval of checking whether commits have become old enough.
const MAX_INTERVAL: Duration = Duration::from_secs(60);
/// The pause between two packs: requests go first.
const BETWEEN_PACKS: Duration = Duration::from_millis(200);

/// Packs what is settled, for as long as the server lives.
pub(crate) async fn pack_for_ever(control_plane: Privileged, pack_after: Duration) {
    let interval = pack_after.clamp(BETWEEN_PACKS, MAX_INTERVAL);
    loop {
        let pause = match control_plane.pack_commits().await {
            Ok(true) => BETWEEN_PACKS,
            Ok(false) => interval,
            Err(error) => {
                tracing::warn!(event = "pack_failed", %error, "old commits could not be packed; they stay as they are");
                interval
            }
        };
        sleep(pause).await;
    }
}
