//! The number of the bucket's format, so that a server never guesses at what a newer one wrote.

use bytes::Bytes;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::bucket::{Bucket, Created};
use crate::clock::Clock;
use crate::error::Error;
use crate::layout;

/// Format that this version writes. Each number has a folder in `migrations-in-bucket/`.
pub const FORMAT: u64 = 1;

/// The content of `taco.json`.
#[derive(Serialize, Deserialize, Debug)]
pub struct Format {
    pub format: u64,
    pub created_at: Timestamp,
    /// The version of taco that made this bucket.
    pub created_by: String,
}

/// The bucket's format, or `None` for an empty bucket.
pub async fn read(bucket: &dyn Bucket) -> Result<Option<Format>, Error> {
    let key = layout::format();
    let Some(object) = bucket.get(&key).await? else { return Ok(None) };
    let format: Format = serde_json::from_slice(&object.bytes)
        .map_err(|error| Error::corrupt(&key, format_args!("it does not tell the bucket's format: {error}")))?;
    if format.format > FORMAT {
        return Err(Error::NewerFormat { object: key, found: format.format, known: FORMAT });
    }
    Ok(Some(format))
}

/// Checks that this version can work on the bucket, and marks an empty one as ours.
pub async fn ensure(bucket: &dyn Bucket, clock: &dyn Clock) -> Result<Format, Error> {
    if let Some(format) = read(bucket).await? {
        return Ok(format);
    }
    let created_by = concat!("taco ", env!("CARGO_PKG_VERSION")).to_owned();
    let format = Format { format: FORMAT, created_at: clock.now(), created_by };
    let bytes = Bytes::from(serde_json::to_vec_pretty(&format).expect("a format is plain data"));
    match bucket.create(&layout::format(), bytes).await {
        Ok(Created::Now) => Ok(format),
        Err(error) if !error.is_outcome_unknown() => Err(error.into()),
        // Another server was first, or our own answer was lost: either way what is there now counts.
        Ok(Created::AlreadyThere) => Ok(read(bucket).await?.unwrap_or(format)),
        Err(error) => read(bucket).await?.ok_or_else(|| error.into()),
    }
}
