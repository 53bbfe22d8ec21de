//! The secret key of a bucket that people use without a server. For a directory it lies beside it, as always. A bucket
//! behind a network has nothing beside it, and nobody to give the key to everyone: there it lies in the bucket, unless
//! TACO_SECRET_KEY is set. `docs/decisions/0054-the-key-of-a-bucket-without-a-server.md` says what that is worth.

use axum::body::Bytes;
use taco_ledger::bucket::Created;
use taco_ledger::{Bucket, SharedRng, format, layout};

use crate::config::{Secret, Settings};
use crate::master_keys::{self, KeyError};
use crate::server::StartError;

/// Sets the secret key that the bucket has in it, if none was given. An empty bucket gets one.
pub(super) async fn find_or_make(
    settings: &mut Settings,
    bucket: &dyn Bucket,
    rng: &SharedRng,
) -> Result<(), StartError> {
    if settings.secret_key.is_some() || master_keys::key_file(settings.bucket.as_str()).is_some() {
        return Ok(());
    }
    let text = match read(bucket).await? {
        Some(text) => text,
        // It was made by a server, which has the key.
        None if format::read(bucket).await?.is_some() => {
            return Err(KeyError::Missing { bucket: settings.bucket.as_str().to_owned() }.into());
        }
        None => make(bucket, rng).await?,
    };
    settings.secret_key = Some(Secret::new(&text));
    Ok(())
}

/// The key that lies in a bucket.
pub(crate) async fn read(bucket: &dyn Bucket) -> Result<Option<String>, StartError> {
    let found = bucket.get(&layout::secret_key()).await.map_err(taco_ledger::Error::from)?;
    Ok(found.map(|object| String::from_utf8_lossy(&object.bytes).trim().to_owned()))
}

async fn make(bucket: &dyn Bucket, rng: &SharedRng) -> Result<String, StartError> {
    let text = format!("{}{}", rng.unique(), rng.unique());
    match bucket.create(&layout::secret_key(), Bytes::from(format!("{text}\n"))).await {
        Ok(Created::Now) => Ok(text),
        // Someone else was first, or the answer got lost: what is there counts.
        Ok(Created::AlreadyThere) => Ok(read(bucket).await?.unwrap_or(text)),
        Err(error) if error.is_outcome_unknown() => match read(bucket).await? {
            Some(text) => Ok(text),
            None => Err(taco_ledger::Error::from(error).into()),
        },
        Err(error) => Err(taco_ledger::Error::from(error).into()),
    }
}
