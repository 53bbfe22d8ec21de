//! A request that says which one it is, and is repeated because its answer was lost, gets the first answer again. One
//! that sends bytes says so by the bytes.

use std::error::Error as StdError;
use std::pin::pin;

use bytes::Bytes;
use futures::{Stream, TryStreamExt};
use jiff::Timestamp;
use serde::Serialize;
use serde::de::DeserializeOwned;
use sha2::{Digest, Sha256};
use taco_domain::idempotency_record::IdempotencyRecord;
use taco_ledger::Transaction;
use taco_ledger::blob::BlobError;
use taco_tables::Holds;

use crate::blob_error::blob_error;
use crate::caller::Caller;
use crate::error::Error;

/// Lets `decide` decide once for each request that the caller has a key for. What it did and that it was done are one
/// commit, so that no crash comes between them. A refusal is not remembered: it has changed nothing.
///
/// Secrets are shown once and never stored, so a verb that hands one out must not be wrapped in this.
pub(crate) fn idempotent<S, T>(
    caller: &Caller,
    now: Timestamp,
    mut decide: impl FnMut(&mut Transaction<S>) -> Result<T, Error> + Send + 'static,
) -> impl FnMut(&mut Transaction<S>) -> Result<T, Error> + Send + 'static
where
    S: Holds<IdempotencyRecord>,
    T: Serialize + DeserializeOwned,
{
    let (key, author) = (caller.request.key.clone(), caller.author());
    move |tx| {
        let Some(key) = &key else { return decide(tx) };
        if let Some(before) = IdempotencyRecord::recall(tx.state().table(), key, author, now)? {
            return serde_json::from_str(&before.outcome).map_err(|error| {
                tracing::warn!(
                    event = "idempotency_record_unreadable", %error,
                    "the outcome of a request cannot be read by this version"
                );
                Error::Conflict("The request was done by another version of this server; look at the result".to_owned())
            });
        }
        let outcome = decide(tx)?;
        let json = serde_json::to_string(&outcome).expect("an outcome is plain data");
        for old in IdempotencyRecord::to_forget(tx.state().table(), now) {
            tx.delete::<IdempotencyRecord>(&old);
        }
        tx.put(&IdempotencyRecord::new(key, author, now, json));
        Ok(outcome)
    }
}

/// True if the request was applied before, for verbs that would no longer find the thing that they deleted.
pub(crate) fn already_applied<S: Holds<IdempotencyRecord>>(
    state: &S,
    caller: &Caller,
    now: Timestamp,
) -> Result<bool, Error> {
    match &caller.request.key {
        Some(key) => Ok(IdempotencyRecord::recall(state.table(), key, caller.author(), now)?.is_some()),
        None => Ok(false),
    }
}

/// The SHA-256 of what flows by, up to `limit` bytes, as hexadecimal text.
pub(crate) async fn digest<E>(body: impl Stream<Item = Result<Bytes, E>>, limit: u64) -> Result<String, Error>
where
    E: Into<Box<dyn StdError + Send + Sync>>,
{
    let (mut hash, mut size) = (Sha256::new(), 0);
    let mut body = pin!(body);
    while let Some(piece) = body.try_next().await.map_err(|error| blob_error(BlobError::Body(error.into())))? {
        size += piece.len() as u64;
        if size > limit {
            return Err(Error::TooLarge { limit });
        }
        hash.update(&piece);
    }
    Ok(hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect())
}
