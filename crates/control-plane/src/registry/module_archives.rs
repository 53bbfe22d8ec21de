//! Archives of modules: they arrive at signed addresses, are checked by the rules for configurations, and read for their
//! documentation, which lies beside them.

use std::cell::Cell;
use std::error::Error as StdError;
use std::io::{BufReader, Read};

use bytes::Bytes;
use futures::{Stream, StreamExt};
use taco_boxed::boxed;
use taco_configuration_archive::{ArchiveError, LIMITS, is_configuration, texts};
use taco_domain::module_version::{ModuleVersion, ModuleVersionId};
use taco_domain::permission::Action;
use taco_domain::registry_file::RegistryFile;
use taco_domain::registry_module::RegistryModule;
use taco_ledger::Key;
use taco_ledger::blob::{BlobError, Stored};
use taco_module_docs::{MAX_FILE_BYTES, ModuleDocs, SourceFiles, is_source};
use taco_tables::Record as _;

use crate::blob_error::{blob_error, broken};
use crate::channel_reader::channel;
use crate::control_plane::{ControlPlane, OrganizationSnapshot};
use crate::error::Error;
use crate::find::find;
use crate::module_versions::ModuleVersionView;
use crate::registry_blobs::{docs_key, module_key};
use crate::registry_modules::ModuleView;
use crate::signed_url_token::{SignedUrlPurpose, SignedUrlToken};
use crate::upload_slots::UploadKind;

const WHAT: &str = ModuleVersion::NOUN;
/// Documentation is made of bounded lists; this is beyond all of them.
const MAX_DOCS_BYTES: usize = 64 * 1024 * 1024;

#[boxed]
impl ControlPlane {
    /// Takes the archive of an announced version. As long as its address is good it can be sent again, also another one;
    /// after that the version does not change any more.
    pub async fn upload_module<E>(
        &self,
        pass: &SignedUrlToken,
        body: impl Stream<Item = Result<Bytes, E>> + Send + 'static,
    ) -> Result<ModuleVersionView, Error>
    where
        E: Into<Box<dyn StdError + Send + Sync>> + Send + 'static,
    {
        let id: ModuleVersionId = pass.object(SignedUrlPurpose::UploadModule)?;
        let mut org = self.organization_unchecked(id.organization_prefix(), WHAT).await?;
        org.get::<ModuleVersion>(&id)?;
        self.check_holder_in_organization(pass, &org, Action::ManageModules, WHAT)?;
        let _slot = self.shared.upload_slots.take(org.id(), UploadKind::Configuration).await?;
        // Each attempt has a blob of its own, so that a second one cannot spoil the first.
        let attempt = ModuleVersionId::from_random(self.random());
        let blob = format!("{}-{}", id.characters(), attempt.characters());
        let arrived = self.store_module(&org, &blob, body).await?;
        let (arrived_there, now) = (arrived.clone(), self.now());
        let committed = org
            .commit(Self::holder_intent(pass, "module-version.upload"), move |tx| {
                let before = find::<ModuleVersion, _>(tx.state(), &id, WHAT)?.clone();
                let is_same = |file: &RegistryFile| before.usable().is_some_and(|own| own.sha256 == file.sha256);
                let after = match arrived_there.clone() {
                    Ok(file) if is_same(&file) => before.clone(),
                    Ok(file) => before.clone().with_archive(file, now),
                    Err(why) => before.clone().with_invalid_archive(why, now),
                };
                if after != before {
                    tx.put(&after);
                }
                Ok((before, after))
            })
            .await;
        let blob_is_named = |version: &ModuleVersion| version.archive.as_ref().is_some_and(|file| file.blob == blob);
        match &committed {
            Ok((before, after)) if blob_is_named(after) => {
                let old: Vec<String> = before.archive.iter().map(|file| file.blob.clone()).collect();
                self.remove_module_blobs(&org, &old).await;
            }
            // After an unclear answer the record may name either, so both stay.
            Err(Error::Unavailable(_) | Error::Corrupt(_)) => {}
            Ok(_) | Err(_) => self.remove_module_blobs(&org, &[blob]).await,
        }
        let (_, version) = committed?;
        if let Err(detail) = arrived {
            return Err(Error::Invalid { pointer: String::new(), detail });
        }
        org.state = org.last_seen();
        let module = org.get::<RegistryModule>(&version.module)?.clone();
        Ok(ModuleVersionView { version, module: ModuleView { module, org } })
    }

    /// Stores an archive and its documentation, or says what is wrong with it.
    async fn store_module<E>(
        &self,
        org: &OrganizationSnapshot,
        blob: &str,
        body: impl Stream<Item = Result<Bytes, E>> + Send + 'static,
    ) -> Result<Result<RegistryFile, String>, Error>
    where
        E: Into<Box<dyn StdError + Send + Sync>> + Send + 'static,
    {
        let key = module_key(org.ledger.name(), blob);
        let stored = self.blobs().store(&key, body, LIMITS.packed).await.map_err(blob_error)?;
        match self.read_module(&key, &stored).await {
            Ok(Ok(docs)) => {
                let docs = serde_json::to_vec(&docs).map_err(|error| broken(error.to_string()))?;
                let docs_key = docs_key(org.ledger.name(), blob);
                self.blobs().store_bytes(&docs_key, docs.into()).await.map_err(blob_error)?;
                Ok(Ok(RegistryFile { blob: blob.to_owned(), size: stored.size, sha256: stored.sha256 }))
            }
            Ok(Err(error)) => Ok(Err(error.to_string())),
            Err(error) => {
                self.remove_blob(&key).await;
                Err(error)
            }
        }
    }

    async fn read_module(&self, key: &Key, stored: &Stored) -> Result<Result<ModuleDocs, ArchiveError>, Error> {
        let _place = self.shared.archive_readers.stored.acquire().await.map_err(|closed| broken(closed.to_string()))?;
        let mut download = self.blobs().read_verified(key, stored).await.map_err(blob_error)?;
        let (chunks, reader) = channel();
        let reading = tokio::task::spawn_blocking(move || read_docs(reader));
        while let Some(piece) = download.body.next().await {
            let piece = piece.map_err(|error| blob_error(error.into()))?;
            // The reader may have seen enough.
            if chunks.send(Ok(piece)).await.is_err() {
                break;
            }
        }
        drop(chunks);
        reading.await.map_err(|error| broken(error.to_string()))
    }

    /// The documentation of a version; `None` while it has no archive.
    pub async fn module_docs(&self, view: &ModuleVersionView) -> Result<Option<ModuleDocs>, Error> {
        let Some(file) = view.version.usable() else { return Ok(None) };
        let key = docs_key(view.module.org.ledger.name(), &file.blob);
        let found = self.blobs().read_bytes(&key, MAX_DOCS_BYTES).await.map_err(blob_error)?;
        let Some(bytes) = found else {
            // Between our look and this read another archive may have taken its place.
            let now = view.module.org.ledger.read().await?;
            let now = now.module_versions.get(&view.version.id);
            let is_there = now.and_then(ModuleVersion::usable).is_some_and(|now| now.blob == file.blob);
            return if is_there { Err(blob_error(BlobError::Missing(key))) } else { Ok(None) };
        };
        serde_json::from_slice(&bytes)
            .map(Some)
            .map_err(|error| Error::Corrupt(taco_ledger::Error::Corrupt { object: key, why: error.to_string() }))
    }
}

/// Reads an archive to its end.
fn read_docs(packed: impl Read) -> Result<ModuleDocs, ArchiveError> {
    let mut files = SourceFiles::default();
    let has_configuration = Cell::new(false);
    let wants = |path: &str| {
        has_configuration.set(has_configuration.get() || is_configuration(path));
        is_source(path)
    };
    texts(BufReader::new(packed), LIMITS, MAX_FILE_BYTES as u64 + 1, wants, |path, text| files.add(path, text))?;
    if !has_configuration.get() {
        return Err(ArchiveError::NoConfiguration { place: String::new() });
    }
    Ok(files.docs())
}
