//! Errors of large objects in the bucket, as callers see them.

use bytes::BytesMut;
use futures::{StreamExt as _, TryStreamExt as _, future, stream};
use taco_ledger::BucketErrorKind;
use taco_ledger::blob::BlobError;
use taco_ledger::bucket::Download;

use crate::error::Error;

/// An object that is no larger is read to its end before its first byte is sent.
const PROVEN_FIRST: u64 = 1024 * 1024;

pub(crate) fn blob_error(error: BlobError) -> Error {
    match error {
        BlobError::TooLarge { limit } => Error::TooLarge { limit },
        BlobError::Body(cause) => {
            tracing::debug!(%cause, "a body broke off");
            Error::Invalid { pointer: String::new(), detail: "The body did not arrive completely".to_owned() }
        }
        BlobError::Missing(object) => {
            Error::Corrupt(taco_ledger::Error::Corrupt { object, why: "it is missing".to_owned() })
        }
        BlobError::Bucket(error) if error.kind == BucketErrorKind::Refused => {
            let (object, why) = (error.key.clone(), error.why.clone());
            Error::Corrupt(taco_ledger::Error::Corrupt { object, why })
        }
        BlobError::Bucket(error) => Error::Unavailable(taco_ledger::Error::Unavailable(error)),
    }
}

pub(crate) fn broken(why: String) -> Error {
    Error::Corrupt(taco_ledger::Error::Broken(why))
}

/// Reads what is not large before its first byte goes out: if it is damaged, that can still be said.
pub(crate) async fn proven_if_small(download: Download) -> Result<Download, Error> {
    if download.size > PROVEN_FIRST {
        return Ok(download);
    }
    let size = download.size;
    let whole: BytesMut = download.body.try_collect().await.map_err(|error| blob_error(error.into()))?;
    Ok(Download { size, body: stream::once(future::ready(Ok(whole.freeze()))).boxed() })
}
