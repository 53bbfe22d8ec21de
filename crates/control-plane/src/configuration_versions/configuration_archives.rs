//! The archives of configurations: checked on their way to the bucket, and stored along with their READMEs. They are
//! unpacked by agents alone.

use std::error::Error as StdError;
use std::io::BufReader;

use bytes::Bytes;
use futures::stream::BoxStream;
use futures::{Stream, StreamExt, stream};
use taco_boxed::boxed;
use taco_configuration_archive::{ArchiveError, Contents, Inspected, LIMITS, MAX_README_BYTES, inspect};
use taco_domain::configuration_version::{
    CalledModule, ConfigurationContents, ConfigurationVersion, modules_of_registries,
};
use taco_ledger::blob::{BlobError, Stored};
use taco_ledger::bucket::Download;
use taco_ledger::{Key, LedgerName, layout};
use tokio::task::JoinHandle;

use crate::blob_error::{blob_error, broken, proven_if_small};
use crate::caller::Caller;
use crate::channel_reader::{Chunks, channel};
use crate::control_plane::{ControlPlane, OrganizationSnapshot};
use crate::error::Error;
use crate::workspace_view::WorkspaceRef;

/// The largest archive that is taken.
pub const LARGEST_CONFIGURATION: u64 = LIMITS.packed;

/// Key of an archive in the bucket.
pub(crate) fn configuration_key(ledger: &LedgerName, blob: &str) -> Key {
    layout::blob(ledger, "configurations", blob)
}

/// Key of its README, if it has one.
pub(crate) fn readme_key(ledger: &LedgerName, blob: &str) -> Key {
    layout::blob(ledger, "readmes", blob)
}

/// An archive that is in the bucket and in no record yet.
pub(crate) struct StoredArchive {
    pub(crate) stored: Stored,
    /// True if its README is stored as well.
    pub(crate) has_readme: bool,
    pub(crate) contents: Contents,
}

/// What an archive says for a workspace.
pub(crate) fn unit_contents(contents: &Contents, working_directory: &str) -> ConfigurationContents {
    let unit = contents.of_unit(working_directory);
    ConfigurationContents {
        working_directory: working_directory.to_owned(),
        files: unit.files,
        lock_file: unit.lock_file,
        modules: modules_of_registries(
            unit.module_calls.into_iter().map(|call| CalledModule { source: call.source, version: call.version }),
        ),
    }
}

#[boxed]
impl ControlPlane {
    /// Stores an archive, or says what is wrong with it; then nothing needs the blob.
    pub(crate) async fn store_archive<E>(
        &self,
        org: &OrganizationSnapshot,
        blob: &str,
        working_directory: &str,
        body: impl Stream<Item = Result<Bytes, E>> + Send + 'static,
    ) -> Result<Result<StoredArchive, ArchiveError>, Error>
    where
        E: Into<Box<dyn StdError + Send + Sync>> + Send + 'static,
    {
        let key = configuration_key(org.ledger.name(), blob);
        let (stored, inspected) = match self.shared.archive_readers.along.try_acquire() {
            Ok(_place) => self.store_inspecting(&key, working_directory, body).await?,
            Err(_) => {
                let stored = self.blobs().store(&key, body, LARGEST_CONFIGURATION).await.map_err(blob_error)?;
                match self.inspect_stored(&key, &stored, working_directory).await {
                    Ok(inspected) => (stored, inspected),
                    Err(error) => {
                        self.remove_blob(&key).await;
                        return Err(error);
                    }
                }
            }
        };
        let Inspected { readme, contents } = match inspected {
            Ok(inspected) => inspected,
            Err(error) => return Ok(Err(error)),
        };
        let has_readme = readme.is_some();
        if let Some(readme) = readme {
            self.blobs().store_bytes(&readme_key(org.ledger.name(), blob), readme.into()).await.map_err(blob_error)?;
        }
        Ok(Ok(StoredArchive { stored, has_readme, contents }))
    }

    /// An archive that a record names.
    pub(crate) async fn read_archive(
        &self,
        org: &OrganizationSnapshot,
        version: &ConfigurationVersion,
    ) -> Result<Download, Error> {
        let key = configuration_key(org.ledger.name(), &version.blob);
        let stored = Stored { size: version.size, sha256: version.sha256.clone(), md5: String::new() };
        proven_if_small(self.blobs().read_verified(&key, &stored).await.map_err(blob_error)?).await
    }

    /// Inspects an archive while it flows into the bucket.
    async fn store_inspecting<E>(
        &self,
        key: &Key,
        working_directory: &str,
        body: impl Stream<Item = Result<Bytes, E>> + Send + 'static,
    ) -> Result<(Stored, Result<Inspected, ArchiveError>), Error>
    where
        E: Into<Box<dyn StdError + Send + Sync>> + Send + 'static,
    {
        let (chunks, inspecting) = begin_inspection(working_directory);
        let passing = Passing { body: body.boxed(), chunks, size: 0 };
        let passing = stream::unfold(passing, Passing::next);
        let stored = self.blobs().store(key, passing, LARGEST_CONFIGURATION).await.map_err(blob_error)?;
        Ok((stored, inspecting.await.map_err(|error| broken(error.to_string()))?))
    }

    /// Inspects an archive that is in the bucket.
    async fn inspect_stored(
        &self,
        key: &Key,
        stored: &Stored,
        working_directory: &str,
    ) -> Result<Result<Inspected, ArchiveError>, Error> {
        let _place = self.shared.archive_readers.stored.acquire().await.map_err(|closed| broken(closed.to_string()))?;
        let mut download = self.blobs().read_verified(key, stored).await.map_err(blob_error)?;
        let (chunks, inspecting) = begin_inspection(working_directory);
        while let Some(piece) = download.body.next().await {
            let piece = piece.map_err(|error| blob_error(error.into()))?;
            // The reader may have seen enough.
            if chunks.send(Ok(piece)).await.is_err() {
                break;
            }
        }
        drop(chunks);
        inspecting.await.map_err(|error| broken(error.to_string()))
    }

    /// What an archive that a record names says, for each directory in it.
    pub(crate) async fn contents_of(
        &self,
        org: &OrganizationSnapshot,
        version: &ConfigurationVersion,
        working_directory: &str,
    ) -> Result<Contents, Error> {
        let key = configuration_key(org.ledger.name(), &version.blob);
        let stored = Stored { size: version.size, sha256: version.sha256.clone(), md5: String::new() };
        let inspected = self.inspect_stored(&key, &stored, working_directory).await?;
        Ok(inspected.map_err(|error| Error::Conflict(error.to_string()))?.contents)
    }

    /// Removes what nothing names any more.
    pub(crate) async fn remove_archive(&self, org: &OrganizationSnapshot, blob: &str, has_readme: bool) {
        self.remove_blob(&configuration_key(org.ledger.name(), blob)).await;
        if has_readme {
            self.remove_blob(&readme_key(org.ledger.name(), blob)).await;
        }
    }

    /// README of a workspace: the `README.md` of the configuration that its next run would use. It has at most
    /// [`MAX_README_BYTES`] bytes.
    pub async fn readme(&self, caller: &Caller, workspace: &WorkspaceRef) -> Result<Option<String>, Error> {
        let view = self.workspace_with_runs(caller, workspace).await?;
        let version = view.org.state.usable_configuration(view.workspace.id);
        let Some(version) = version.filter(|version| version.has_readme) else { return Ok(None) };
        let key = readme_key(view.org.ledger.name(), &version.blob);
        let found = self.blobs().read_bytes(&key, MAX_README_BYTES).await.map_err(blob_error)?;
        let Some(bytes) = found else {
            // Between our look and this read the configuration may have been given up.
            let now = view.org.ledger.read().await?;
            let is_there = now.configuration_versions.get(&version.id).is_some_and(|now| now.blob == version.blob);
            return if is_there { Err(blob_error(BlobError::Missing(key))) } else { Ok(None) };
        };
        match String::from_utf8(bytes.to_vec()) {
            Ok(text) => Ok(Some(text)),
            Err(error) => {
                let damaged = taco_ledger::Error::Corrupt { object: key, why: error.to_string() };
                Err(Error::Corrupt(damaged))
            }
        }
    }
}

fn begin_inspection(working_directory: &str) -> (Chunks, JoinHandle<Result<Inspected, ArchiveError>>) {
    let (chunks, reader) = channel();
    let working_directory = working_directory.to_owned();
    let inspecting = tokio::task::spawn_blocking(move || inspect(BufReader::new(reader), LIMITS, &working_directory));
    (chunks, inspecting)
}

/// An archive that flows into the bucket while someone reads along.
struct Passing<E> {
    body: BoxStream<'static, Result<Bytes, E>>,
    chunks: Chunks,
    size: u64,
}

impl<E> Passing<E> {
    async fn next(mut self) -> Option<(Result<Bytes, E>, Self)> {
        let bytes = match self.body.next().await? {
            Ok(bytes) => bytes,
            Err(error) => return Some((Err(error), self)),
        };
        self.size += bytes.len() as u64;
        let is_read = self.chunks.send(Ok(bytes.clone())).await.is_ok();
        match is_read {
            true => Some((Ok(bytes), self)),
            // The concurrent reader refuses it. Clients hear so only after they have sent everything; nothing of it is
            // kept.
            false if self.size <= LARGEST_CONFIGURATION => Some((Ok(Bytes::new()), self)),
            false => None,
        }
    }
}
