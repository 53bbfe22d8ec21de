//! States on their way to and from the bucket. They can be large, so they flow: what is read of them is read while
//! they pass.

use std::error::Error as StdError;
use std::io::{self, BufReader};

use bytes::Bytes;
use futures::{Stream, StreamExt, TryStreamExt, stream};
use serde::de::DeserializeOwned;
use taco_domain::state_file::{Resource, StateFile, StateFileError};
use taco_domain::state_version::StateVersion;
use taco_ledger::blob::{BlobError, Stored};
use taco_ledger::bucket::Download;
use taco_ledger::{Key, LedgerName, Trouble, layout};

use crate::channel_reader::channel;
use crate::control_plane::{ControlPlane, OpenOrganization};
use crate::error::Error;

/// The largest state that is taken.
pub const LARGEST_STATE: u64 = 256 * 1024 * 1024;

/// A state that is no larger is read where it is: a thread for it would cost more.
const SMALL: usize = 64 * 1024;

pub(crate) fn state_key(open: &OpenOrganization, blob: &str) -> Key {
    layout::blob(&ledger_name(open), "states", blob)
}

pub(crate) fn json_state_key(open: &OpenOrganization, version: &StateVersion) -> Key {
    layout::blob(&ledger_name(open), "json-states", &version.id.to_string())
}

fn ledger_name(open: &OpenOrganization) -> LedgerName {
    open.ledger.name().clone()
}

/// What was stored of a version, for the check when it is read.
fn stored_as(version: &StateVersion) -> Stored {
    Stored { size: version.size, sha256: version.sha256.clone(), md5: version.md5.clone() }
}

impl ControlPlane {
    /// Stores a state and reads it while it passes. After an error nothing names the blob.
    pub(crate) async fn store_state<V, R, E>(
        &self,
        key: &Key,
        body: impl Stream<Item = Result<Bytes, E>> + Send + 'static,
    ) -> Result<(Stored, StateFile<V, R>), Error>
    where
        V: DeserializeOwned + Send + 'static,
        R: Default + Extend<Resource> + Send + 'static,
        E: Into<Box<dyn StdError + Send + Sync>> + Send + 'static,
    {
        let (stored, parsed) = match beginning(body).await {
            Beginning::Whole(state) => {
                let stored = self.blobs().store_bytes(key, state.clone()).await.map_err(blob_error)?;
                (stored, StateFile::<V, R>::read(&*state))
            }
            Beginning::Part(body) => self.store_large_state(key, body).await?,
        };
        match parsed {
            Ok(file) => Ok((stored, file)),
            Err(error) => {
                self.remove_blob(key).await;
                Err(Error::Invalid { pointer: "/data/attributes/state".to_owned(), detail: error.to_string() })
            }
        }
    }

    async fn store_large_state<V, R, E>(
        &self,
        key: &Key,
        body: impl Stream<Item = Result<Bytes, E>> + Send + 'static,
    ) -> Result<(Stored, Result<StateFile<V, R>, StateFileError>), Error>
    where
        V: DeserializeOwned + Send + 'static,
        R: Default + Extend<Resource> + Send + 'static,
        E: Into<Box<dyn StdError + Send + Sync>> + Send + 'static,
    {
        let (chunks, reader) = channel();
        let parsed = tokio::task::spawn_blocking(move || StateFile::<V, R>::read(BufReader::new(reader)));
        let copied = body.then(move |piece| {
            let chunks = chunks.clone();
            async move {
                if let Ok(bytes) = &piece {
                    // Whoever reads along may have seen enough.
                    let _ = chunks.send(Ok(bytes.clone())).await;
                }
                piece
            }
        });
        let stored = self.blobs().store(key, copied, LARGEST_STATE).await.map_err(blob_error)?;
        Ok((stored, parsed.await.map_err(|error| broken(error.to_string()))?))
    }

    /// Removes what nothing names. If that fails it stays as garbage, which harms nobody.
    pub(crate) async fn remove_blob(&self, key: &Key) {
        if let Err(error) = self.blobs().remove(key).await {
            tracing::warn!(%key, %error, "a blob that nothing names could not be removed");
        }
    }

    pub(crate) async fn read_state_bytes(
        &self,
        open: &OpenOrganization,
        version: &StateVersion,
    ) -> Result<Download, Error> {
        let key = state_key(open, &version.blob);
        self.blobs().read_verified(&key, &stored_as(version)).await.map_err(blob_error)
    }

    /// What a stored state says of itself.
    pub(crate) async fn read_state<V, R>(
        &self,
        open: &OpenOrganization,
        version: &StateVersion,
    ) -> Result<StateFile<V, R>, Error>
    where
        V: DeserializeOwned + Send + 'static,
        R: Default + Extend<Resource> + Send + 'static,
    {
        let mut download = self.read_state_bytes(open, version).await?;
        let (chunks, reader) = channel();
        let parsed = tokio::task::spawn_blocking(move || StateFile::<V, R>::read(BufReader::new(reader)));
        while let Some(piece) = download.body.try_next().await.transpose() {
            let piece = piece.map_err(|error| io::Error::other(error.to_string()));
            if chunks.send(piece).await.is_err() {
                break;
            }
        }
        drop(chunks);
        parsed.await.map_err(|error| broken(error.to_string()))?.map_err(|error| {
            let object = state_key(open, &version.blob);
            match error {
                StateFileError::Read(error) => blob_error(BlobError::Bucket(taco_ledger::BucketError::new(
                    "read",
                    &object,
                    Trouble::Refused,
                    error.to_string(),
                ))),
                error => Error::Corrupt(taco_ledger::Error::Corrupt { object, why: error.to_string() }),
            }
        })
    }
}

/// How much of a body there is.
enum Beginning<Rest> {
    /// All of it, and it is small.
    Whole(Bytes),
    /// It is large or broken: all of it, from its first byte on.
    Part(Rest),
}

/// Waits for the first bytes of a body.
async fn beginning<E>(
    body: impl Stream<Item = Result<Bytes, E>> + Send + 'static,
) -> Beginning<impl Stream<Item = Result<Bytes, E>> + Send + 'static>
where
    E: Send + 'static,
{
    let mut body = body.boxed();
    let (mut pieces, mut size) = (Vec::new(), 0);
    while size <= SMALL {
        match body.next().await {
            None => {
                let pieces: Vec<Bytes> = pieces.into_iter().flatten().collect();
                return Beginning::Whole(match <[Bytes; 1]>::try_from(pieces) {
                    Ok([only]) => only,
                    Err(several) => several.concat().into(),
                });
            }
            Some(piece) => {
                let is_broken = piece.is_err();
                size += piece.as_ref().map_or(0, Bytes::len);
                pieces.push(piece);
                if is_broken {
                    break;
                }
            }
        }
    }
    Beginning::Part(stream::iter(pieces).chain(body))
}

pub(crate) fn broken(why: String) -> Error {
    Error::Corrupt(taco_ledger::Error::Broken(why))
}

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
        BlobError::Bucket(error) if error.trouble == Trouble::Refused => {
            let (object, why) = (error.key.clone(), error.why.clone());
            Error::Corrupt(taco_ledger::Error::Corrupt { object, why })
        }
        BlobError::Bucket(error) => Error::Unavailable(taco_ledger::Error::Unavailable(error)),
    }
}
