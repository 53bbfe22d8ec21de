//! States on their way to and from the bucket. They can be large, so they flow; only a small one is ever whole in memory.
//!
//! A large one is read while it comes, where there is a place for that. The reader waits for every next chunk, and a
//! client may take as long as it likes to send one: where slow clients have all places, the others' states are read
//! when they are in the bucket, which does not keep anyone waiting.

use std::error::Error as StdError;
use std::io::{self, BufReader, Read};
use std::thread;

use bytes::{Bytes, BytesMut};
use futures::{Stream, StreamExt, TryStreamExt, future, stream};
use serde::de::{DeserializeOwned, IgnoredAny};
use taco_domain::state_file::{Resource, StateFile, StateFileError};
use taco_domain::state_version::StateVersion;
use taco_ledger::blob::Stored;
use taco_ledger::bucket::Download;
use taco_ledger::{Key, LedgerName, layout};
use tokio::sync::oneshot;

use crate::blob_error::{blob_error, broken};
use crate::channel_reader::{ChannelReader, Chunks, channel};
use crate::control_plane::{ControlPlane, OrganizationSnapshot};
use crate::error::Error;
use crate::state_cache::StateCache;

/// The largest state that is taken.
pub const LARGEST_STATE: u64 = 256 * 1024 * 1024;

/// A state that is no larger is read where it is: a thread for it would cost more.
const SMALL: usize = 64 * 1024;

/// A state that is no larger is held until all of it came: storing it does so anyway, and it need not be fetched back
/// to be read.
const WHOLE: usize = 1024 * 1024;

/// Source from which a state is read.
enum Source {
    /// Memory, which takes a third of the time.
    Whole(Bytes),
    Flowing(BufReader<ChannelReader>),
}

impl Source {
    fn state<V: DeserializeOwned, R: Default + Extend<Resource>>(self) -> Result<StateFile<V, R>, StateFileError> {
        match self {
            Self::Whole(bytes) => StateFile::parse(&bytes),
            Self::Flowing(reader) => StateFile::read(reader),
        }
    }

    fn reader(self) -> Box<dyn Read + Send> {
        match self {
            Self::Whole(bytes) => Box::new(io::Cursor::new(bytes)),
            Self::Flowing(reader) => Box::new(reader),
        }
    }

    fn json(self) -> serde_json::Result<IgnoredAny> {
        match self {
            Self::Whole(bytes) => serde_json::from_slice(&bytes),
            Self::Flowing(reader) => serde_json::from_reader(reader),
        }
    }
}

pub(crate) fn state_key(org: &OrganizationSnapshot, blob: &str) -> Key {
    state_key_in(org.ledger.name(), blob)
}

pub(crate) fn state_key_in(ledger: &LedgerName, blob: &str) -> Key {
    layout::blob(ledger, "states", blob)
}

pub(crate) fn json_state_key(org: &OrganizationSnapshot, version: &StateVersion) -> Key {
    json_state_key_in(org.ledger.name(), version)
}

pub(crate) fn json_state_key_in(ledger: &LedgerName, version: &StateVersion) -> Key {
    match version.json_blob.as_str() {
        "" => layout::blob(ledger, "json-states", &version.id.to_string()),
        blob => layout::blob(ledger, "json-states", blob),
    }
}

pub(crate) fn json_blob_key(org: &OrganizationSnapshot, blob: &str) -> Key {
    layout::blob(org.ledger.name(), "json-states", blob)
}

/// Size and digests of a stored version, to verify it when it is read.
pub(crate) fn stored_as(version: &StateVersion) -> Stored {
    Stored { size: version.size, sha256: version.sha256.clone(), md5: version.md5.clone() }
}

impl ControlPlane {
    /// Stores a state and reads it. After an error nothing names the blob; one that is no state is not in the bucket any
    /// more.
    pub(crate) async fn store_state<V, R, E>(
        &self,
        key: &Key,
        body: impl Stream<Item = Result<Bytes, E>> + Send + 'static,
    ) -> Result<Result<(Stored, StateFile<V, R>), StateFileError>, Error>
    where
        V: DeserializeOwned + Send + 'static,
        R: Default + Extend<Resource> + Send + 'static,
        E: Into<Box<dyn StdError + Send + Sync>> + Send + 'static,
    {
        let (stored, read) = self.store_and_read(key, body, Source::state::<V, R>).await?;
        if read.is_err() {
            self.remove_blob(key).await;
        }
        Ok(read.map(|file| (stored, file)))
    }

    /// Stores any JSON, and checks that it is JSON.
    pub(crate) async fn store_json<E>(
        &self,
        key: &Key,
        body: impl Stream<Item = Result<Bytes, E>> + Send + 'static,
    ) -> Result<Stored, Error>
    where
        E: Into<Box<dyn StdError + Send + Sync>> + Send + 'static,
    {
        let (stored, read) = self.store_and_read(key, body, Source::json).await?;
        if let Err(error) = read {
            self.remove_blob(key).await;
            return Err(Error::Invalid { pointer: "/data".to_owned(), detail: format!("this is not JSON: {error}") });
        }
        Ok(stored)
    }

    async fn store_and_read<T, E>(
        &self,
        key: &Key,
        body: impl Stream<Item = Result<Bytes, E>> + Send + 'static,
        read: impl FnOnce(Source) -> T + Send + 'static,
    ) -> Result<(Stored, T), Error>
    where
        T: Send + 'static,
        E: Into<Box<dyn StdError + Send + Sync>> + Send + 'static,
    {
        match beginning(body).await {
            Beginning::Whole(bytes) => {
                let (stored, read) =
                    tokio::join!(self.blobs().store_bytes(key, bytes.clone()), read_whole(bytes, read));
                Ok((stored.map_err(blob_error)?, read?))
            }
            Beginning::Part(body) => {
                if let Ok(_place) = self.shared.state_readers.along.try_acquire() {
                    return self.store_reading_along(key, body, read).await;
                }
                let stored = self.blobs().store(key, body, LARGEST_STATE).await.map_err(blob_error)?;
                let read = async {
                    let download = self.blobs().read_verified(key, &stored).await.map_err(blob_error)?;
                    self.read_download(download, read).await
                };
                match read.await {
                    Ok(read) => Ok((stored, read)),
                    Err(error) => {
                        self.remove_blob(key).await;
                        Err(error)
                    }
                }
            }
        }
    }

    async fn store_reading_along<T, E>(
        &self,
        key: &Key,
        body: impl Stream<Item = Result<Bytes, E>> + Send + 'static,
        read: impl FnOnce(Source) -> T + Send + 'static,
    ) -> Result<(Stored, T), Error>
    where
        T: Send + 'static,
        E: Into<Box<dyn StdError + Send + Sync>> + Send + 'static,
    {
        let (chunks, told) = read_apart(read)?;
        let copied = body.then(move |piece| {
            let chunks = chunks.clone();
            async move {
                if let Ok(bytes) = &piece {
                    // The concurrent reader may have seen enough.
                    let _ = chunks.send(Ok(bytes.clone())).await;
                }
                piece
            }
        });
        let stored = self.blobs().store(key, copied, LARGEST_STATE).await.map_err(blob_error)?;
        Ok((stored, told.await.map_err(|_| reader_panicked())?))
    }

    /// Reads what comes out of the bucket. What is large waits for a place, and is read on a thread of its own.
    async fn read_download<T: Send + 'static>(
        &self,
        mut download: Download,
        read: impl FnOnce(Source) -> T + Send + 'static,
    ) -> Result<T, Error> {
        if download.size <= WHOLE as u64 {
            let bytes: BytesMut = download.body.try_collect().await.map_err(|error| blob_error(error.into()))?;
            return read_whole(bytes.freeze(), read).await;
        }
        let _place = self.shared.state_readers.stored.acquire().await.map_err(|closed| broken(closed.to_string()))?;
        let (chunks, told) = read_apart(read)?;
        let mut trouble = None;
        while let Some(piece) = download.body.next().await {
            let piece = piece.map_err(|error| {
                let told = io::Error::other(error.to_string());
                trouble = Some(error);
                told
            });
            // The reader may have seen enough.
            if chunks.send(piece).await.is_err() || trouble.is_some() {
                break;
            }
        }
        drop(chunks);
        let read = told.await.map_err(|_| reader_panicked())?;
        match trouble {
            Some(error) => Err(blob_error(error.into())),
            None => Ok(read),
        }
    }

    /// Removes what nothing names. If that fails it stays as garbage, which does no harm.
    pub(crate) async fn remove_blob(&self, key: &Key) {
        self.shared.state_cache.forget(key);
        if let Err(error) = self.blobs().remove(key).await {
            tracing::warn!(
                event = "orphaned_blob_not_deleted", %key, %error,
                "a blob that nothing names could not be removed"
            );
        }
    }

    pub(crate) async fn read_state_bytes(
        &self,
        org: &OrganizationSnapshot,
        version: &StateVersion,
    ) -> Result<Download, Error> {
        let key = state_key(org, &version.blob);
        let size = version.size;
        let flowing = |state| Download { size, body: stream::once(future::ready(Ok(state))).boxed() };
        if let Some(state) = self.shared.state_cache.get(&key) {
            return Ok(flowing(state));
        }
        let download = self.blobs().read_verified(&key, &stored_as(version)).await.map_err(blob_error)?;
        if !StateCache::has_room_for(size) {
            return Ok(download);
        }
        let state: BytesMut = download.body.try_collect().await.map_err(|error| blob_error(error.into()))?;
        let state = state.freeze();
        self.shared.state_cache.keep(key, state.clone());
        Ok(flowing(state))
    }

    /// Parsed content of a stored state.
    pub(crate) async fn read_state<V, R>(
        &self,
        org: &OrganizationSnapshot,
        version: &StateVersion,
    ) -> Result<StateFile<V, R>, Error>
    where
        V: DeserializeOwned + Send + 'static,
        R: Default + Extend<Resource> + Send + 'static,
    {
        let download = self.read_state_bytes(org, version).await?;
        let read = self.read_download(download, Source::state::<V, R>).await?;
        read.map_err(|error| {
            let object = state_key(org, &version.blob);
            Error::Corrupt(taco_ledger::Error::Corrupt { object, why: error.to_string() })
        })
    }
}

impl ControlPlane {
    /// What `read` makes of a stored state.
    pub(crate) async fn read_state_with<T: Send + 'static>(
        &self,
        org: &OrganizationSnapshot,
        version: &StateVersion,
        read: impl FnOnce(Box<dyn Read + Send>) -> T + Send + 'static,
    ) -> Result<T, Error> {
        let download = self.read_state_bytes(org, version).await?;
        self.read_download_with(download, read).await
    }

    /// What `read` makes of what comes out of the bucket.
    pub(crate) async fn read_download_with<T: Send + 'static>(
        &self,
        download: Download,
        read: impl FnOnce(Box<dyn Read + Send>) -> T + Send + 'static,
    ) -> Result<T, Error> {
        self.read_download(download, |source| read(source.reader())).await
    }
}

/// Reads on a thread of its own what comes in pieces, and tells what came of it.
fn read_apart<T: Send + 'static>(
    read: impl FnOnce(Source) -> T + Send + 'static,
) -> Result<(Chunks, oneshot::Receiver<T>), Error> {
    let (chunks, reader) = channel();
    let (tell, told) = oneshot::channel();
    let reading = move || {
        // The receiver is gone if the client has disconnected.
        let _ = tell.send(read(Source::Flowing(BufReader::new(reader))));
    };
    let thread = thread::Builder::new().name("state-reader".to_owned());
    thread.spawn(reading).map_err(|error| broken(error.to_string()))?;
    Ok((chunks, told))
}

fn reader_panicked() -> Error {
    broken("whoever read a state panicked".to_owned())
}

/// Reads what is in memory.
async fn read_whole<T: Send + 'static>(
    bytes: Bytes,
    read: impl FnOnce(Source) -> T + Send + 'static,
) -> Result<T, Error> {
    let small = bytes.len() <= SMALL;
    let reading = move || read(Source::Whole(bytes));
    if small {
        return Ok(reading());
    }
    tokio::task::spawn_blocking(reading).await.map_err(|error| broken(error.to_string()))
}

/// Error for an upload that is not a state.
pub(crate) fn no_state(error: &StateFileError) -> Error {
    Error::Invalid { pointer: "/data/attributes/state".to_owned(), detail: error.to_string() }
}

/// Body after its beginning was read: small and complete, or not.
enum Beginning<Rest> {
    /// All of it, and it is not large.
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
    // Pieces can be a byte long, so they are put together: each by itself would take many times its size.
    let mut came = BytesMut::new();
    let mut pieces = Vec::new();
    while came.len() <= WHOLE {
        match body.next().await {
            None => return Beginning::Whole(came.freeze()),
            Some(Ok(bytes)) if came.is_empty() => came = bytes.into(),
            Some(Ok(bytes)) => came.extend_from_slice(&bytes),
            Some(Err(error)) => {
                pieces.push(Err(error));
                break;
            }
        }
    }
    pieces.insert(0, Ok(came.freeze()));
    Beginning::Part(stream::iter(pieces).chain(body))
}
