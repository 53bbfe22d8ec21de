//! The bucket as this process uses it: counted and timed, and with second tries where they are safe.

use std::sync::Arc;

use taco_ledger::{Bucket, LocationError, Measured, Retrying, SharedRng, WriteHealth};

use crate::config::Settings;

pub(crate) struct OpenBucket {
    /// Tries once: for who wants to know how things are now.
    pub(crate) without_retries: Arc<dyn Bucket>,
    /// Tries again for a while: for everyone else.
    pub(crate) with_retries: Arc<dyn Bucket>,
    /// Record of refused writes to either.
    pub(crate) writes: WriteHealth,
}

pub(crate) fn open(settings: &Settings, rng: &SharedRng) -> Result<OpenBucket, LocationError> {
    let measured = Measured::new(Arc::new(settings.location().open()?));
    let writes = measured.write_health();
    let without_retries: Arc<dyn Bucket> = Arc::new(measured);
    let with_retries = Arc::new(Retrying::new(Arc::clone(&without_retries), rng.clone()));
    Ok(OpenBucket { without_retries, with_retries, writes })
}
