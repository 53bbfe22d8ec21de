//! The site for a command that works on the bucket itself, alongside any running servers.

use std::sync::Arc;

use taco_control_plane::Privileged;
use taco_ledger::{Environment, Peers, SharedRng, SystemClock, format};

use crate::config::Configuration;
use crate::server::{StartError, control_plane_settings};
use crate::{bucket, master_keys};

/// Opens the site; `None` if no server was started on the bucket yet.
pub(super) async fn open_site(configuration: &Configuration) -> Result<Option<Privileged>, StartError> {
    let settings = &configuration.settings;
    master_keys::check(settings)?;
    let rng = SharedRng::from_system();
    let bucket = bucket::open(settings, &rng)?.with_retries;
    if format::read(&*bucket).await?.is_none() {
        return Ok(None);
    }
    let environment = Environment {
        bucket,
        clock: Arc::new(SystemClock),
        rng: rng.clone(),
        server: rng.unique(),
        peers: Peers::none(),
    };
    Ok(Some(Privileged::open(environment, control_plane_settings(settings, &rng, Vec::new())?).await?))
}
