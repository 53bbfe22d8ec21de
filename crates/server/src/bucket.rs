//! The bucket as this process uses it: counted and timed, and with second tries where they are safe.

use std::sync::Arc;

use taco_ledger::{Bucket, Dice, LocationError, Measured, Retrying, WriteTrouble};

use crate::config::Settings;

pub(crate) struct OpenBucket {
    /// Tries once: for who wants to know how things are now.
    pub(crate) candid: Arc<dyn Bucket>,
    /// Tries again for a while: for everyone else.
    pub(crate) patient: Arc<dyn Bucket>,
    /// Record of refused writes to either.
    pub(crate) writes: WriteTrouble,
}

pub(crate) fn open(settings: &Settings, dice: &Dice) -> Result<OpenBucket, LocationError> {
    let measured = Measured::new(Arc::new(settings.location().open()?));
    let writes = measured.write_trouble();
    let candid: Arc<dyn Bucket> = Arc::new(measured);
    let patient = Arc::new(Retrying::new(Arc::clone(&candid), dice.clone()));
    Ok(OpenBucket { candid, patient, writes })
}
