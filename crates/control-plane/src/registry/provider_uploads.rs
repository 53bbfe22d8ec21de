//! What publishers send for a provider: checksums, their signature, and archives. What does not fit together is refused
//! when it comes, and not when someone installs it.

use std::error::Error as StdError;
use std::io::{Seek, SeekFrom, Write};

use bytes::Bytes;
use futures::{Stream, StreamExt};
use taco_boxed::boxed;
use taco_domain::OrganizationState;
use taco_domain::checksums::{Checksums, MAX_CHECKSUMS_BYTES, is_sha256};
use taco_domain::permission::Action;
use taco_domain::provider_platform::{ProviderArchive, ProviderPlatform, ProviderPlatformId};
use taco_domain::provider_version::{ProviderVersion, ProviderVersionId};
use taco_domain::registry_file::RegistryFile;
use taco_domain::registry_provider::RegistryProvider;
use taco_ledger::Key;
use taco_ledger::blob::Stored;
use taco_openpgp::PublicKeys;
use taco_tables::Record as _;

use crate::blob_error::{blob_error, broken};
use crate::control_plane::{ControlPlane, OrganizationSnapshot};
use crate::error::Error;
use crate::find::find;
use crate::gpg_keys::find_key;
use crate::provider_archive::hash_of;
use crate::registry_blobs::provider_file_key;
use crate::signed_url_token::{SignedUrlPurpose, SignedUrlToken};
use crate::upload_slots::UploadKind;

const VERSION: &str = ProviderVersion::NOUN;
const PLATFORM: &str = ProviderPlatform::NOUN;
const MAX_SIGNATURE_BYTES: u64 = 64 * 1024;
/// Largest archive that is taken.
pub const LARGEST_PROVIDER: u64 = 1024 * 1024 * 1024;

/// The two halves of a signed list.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Half {
    Checksums,
    Signature,
}

fn refused(detail: impl Into<String>) -> Error {
    Error::Invalid { pointer: String::new(), detail: detail.into() }
}

#[boxed]
impl ControlPlane {
    /// Takes `SHA256SUMS` of a version.
    pub async fn upload_checksums<E>(
        &self,
        pass: &SignedUrlToken,
        body: impl Stream<Item = Result<Bytes, E>> + Send + 'static,
    ) -> Result<(), Error>
    where
        E: Into<Box<dyn StdError + Send + Sync>> + Send + 'static,
    {
        self.upload_half(pass, SignedUrlPurpose::UploadChecksums, Half::Checksums, body).await
    }

    /// Takes `SHA256SUMS.sig` of a version.
    pub async fn upload_signature<E>(
        &self,
        pass: &SignedUrlToken,
        body: impl Stream<Item = Result<Bytes, E>> + Send + 'static,
    ) -> Result<(), Error>
    where
        E: Into<Box<dyn StdError + Send + Sync>> + Send + 'static,
    {
        self.upload_half(pass, SignedUrlPurpose::UploadSignature, Half::Signature, body).await
    }

    /// The half that comes second is checked against the first. Once archives are there, neither changes any more.
    async fn upload_half<E>(
        &self,
        pass: &SignedUrlToken,
        purpose: SignedUrlPurpose,
        half: Half,
        body: impl Stream<Item = Result<Bytes, E>> + Send + 'static,
    ) -> Result<(), Error>
    where
        E: Into<Box<dyn StdError + Send + Sync>> + Send + 'static,
    {
        let id: ProviderVersionId = pass.object(purpose)?;
        let org = self.organization_unchecked(id.organization_prefix(), VERSION).await?;
        let before = org.get::<ProviderVersion>(&id)?.clone();
        self.check_holder_in_organization(pass, &org, Action::ManageProviders, VERSION)?;
        let _slot = self.shared.upload_slots.take(org.id(), UploadKind::Configuration).await?;
        let blob = self.fresh_blob(id.characters());
        let key = provider_file_key(org.ledger.name(), &blob);
        let limit = if half == Half::Checksums { MAX_CHECKSUMS_BYTES } else { MAX_SIGNATURE_BYTES };
        let stored = self.blobs().store(&key, body, limit).await.map_err(blob_error)?;
        let file = RegistryFile { blob: blob.clone(), size: stored.size, sha256: stored.sha256 };
        let is_known = |file: &RegistryFile| match half {
            Half::Checksums => before.checksums.as_ref().is_some_and(|own| own.sha256 == file.sha256),
            Half::Signature => before.signature.as_ref().is_some_and(|own| own.sha256 == file.sha256),
        };
        let outcome = match is_known(&file) {
            true => Ok(None),
            false => self.take_half(pass, &org, &before, half, file).await,
        };
        match &outcome {
            Ok(Some(old)) => self.remove_provider_blobs(&org, old.as_slice()).await,
            // After an unclear answer the record may name it.
            Err(Error::Unavailable(_) | Error::Corrupt(_)) => {}
            Ok(None) | Err(_) => self.remove_blob(&key).await,
        }
        outcome.map(|_| ())
    }

    /// Checks and commits a half; tells the blob that it replaces. `None` if nothing changed.
    async fn take_half(
        &self,
        pass: &SignedUrlToken,
        org: &OrganizationSnapshot,
        before: &ProviderVersion,
        half: Half,
        file: RegistryFile,
    ) -> Result<Option<Option<String>>, Error> {
        let now = self.now();
        let after = match half {
            Half::Checksums => ProviderVersion { checksums: Some(file), ..before.clone() },
            Half::Signature => ProviderVersion { signature: Some(file), ..before.clone() },
        };
        if let Some(checksums) = &after.checksums {
            let list = self.read_provider_file(org, checksums, MAX_CHECKSUMS_BYTES).await?;
            Checksums::parse(&list).map_err(refused)?;
            if let Some(signature) = &after.signature {
                let signature = self.read_provider_file(org, signature, MAX_SIGNATURE_BYTES).await?;
                check_signature(org, &after.key_id, &list, &signature)?;
            }
        }
        let (before, id) = (before.clone(), before.id);
        let committed = org.commit(Self::holder_intent(pass, "provider-version.upload"), move |tx| {
            let now_there = find::<ProviderVersion, _>(tx.state(), &id, VERSION)?.clone();
            if now_there != before {
                return Err(Error::Conflict("The version was changed by another request meanwhile: try again".to_owned()));
            }
            if has_archives(tx.state(), id) {
                let what = "Archives of this version are published already, so that its checksums do not change any more: \
                            publish a new version";
                return Err(Error::Conflict(what.to_owned()));
            }
            let old = match half {
                Half::Checksums => &before.checksums,
                Half::Signature => &before.signature,
            };
            tx.put(&ProviderVersion { updated_at: now, ..after.clone() });
            Ok(old.as_ref().map(|file| file.blob.clone()))
        });
        committed.await.map(Some)
    }

    /// Takes the archive of a platform: its SHA-256 must be what was announced, and stand in the signed list.
    pub async fn upload_provider<E>(
        &self,
        pass: &SignedUrlToken,
        body: impl Stream<Item = Result<Bytes, E>> + Send + 'static,
    ) -> Result<(), Error>
    where
        E: Into<Box<dyn StdError + Send + Sync>> + Send + 'static,
    {
        let id: ProviderPlatformId = pass.object(SignedUrlPurpose::UploadProvider)?;
        let org = self.organization_unchecked(id.organization_prefix(), PLATFORM).await?;
        let platform = org.get::<ProviderPlatform>(&id)?.clone();
        let version = org.get::<ProviderVersion>(&platform.version)?.clone();
        let provider = org.get::<RegistryProvider>(&version.provider)?.clone();
        self.check_holder_in_organization(pass, &org, Action::ManageProviders, PLATFORM)?;
        let expected = self.expected_checksum(&org, &version, &platform).await?;
        let _slot = self.shared.upload_slots.take(org.id(), UploadKind::Configuration).await?;
        let blob = self.fresh_blob(id.characters());
        let key = provider_file_key(org.ledger.name(), &blob);
        let stored = self.blobs().store(&key, body, LARGEST_PROVIDER).await.map_err(blob_error)?;
        let committed = match platform.archive.as_ref().is_some_and(|own| own.file.sha256 == stored.sha256) {
            // A client whose answer was lost sends the same again.
            true => Ok(false),
            false => {
                let program = format!("terraform-provider-{}", provider.name);
                let archive = self.check_archive(&key, &blob, stored, &expected, &program).await;
                match archive {
                    Ok(archive) => self.commit_archive(pass, &org, &platform, archive).await.map(|()| true),
                    Err(error) => Err(error),
                }
            }
        };
        if !matches!(committed, Ok(true) | Err(Error::Unavailable(_) | Error::Corrupt(_))) {
            self.remove_blob(&key).await;
        }
        committed.map(|_| ())
    }

    async fn commit_archive(
        &self,
        pass: &SignedUrlToken,
        org: &OrganizationSnapshot,
        platform: &ProviderPlatform,
        archive: ProviderArchive,
    ) -> Result<(), Error> {
        let before = platform.clone();
        let committed = org.commit(Self::holder_intent(pass, "provider-platform.upload"), move |tx| {
            let now_there = find::<ProviderPlatform, _>(tx.state(), &before.id, PLATFORM)?.clone();
            if now_there != before {
                return Err(Error::Conflict(
                    "The platform was changed by another request meanwhile: try again".to_owned(),
                ));
            }
            tx.put(&ProviderPlatform { archive: Some(archive.clone()), ..before.clone() });
            Ok(())
        });
        committed.await
    }

    /// The checksum that an archive must have.
    async fn expected_checksum(
        &self,
        org: &OrganizationSnapshot,
        version: &ProviderVersion,
        platform: &ProviderPlatform,
    ) -> Result<String, Error> {
        let checksums = version.checksums.as_ref().filter(|_| version.is_signed());
        let checksums = checksums.ok_or_else(|| {
            refused("Send SHA256SUMS and its signature first: an archive is taken if it stands in the signed list")
        })?;
        let list = self.read_provider_file(org, checksums, MAX_CHECKSUMS_BYTES).await?;
        let list = Checksums::parse(&list).map_err(refused)?;
        let (filename, shasum) = (&platform.filename, &platform.shasum);
        match list.of(filename) {
            None => Err(refused(format!("SHA256SUMS does not have {filename}: it lists every archive of the version"))),
            Some(listed) if listed != shasum => Err(refused(format!(
                "The platform was announced with the checksum {shasum}, and SHA256SUMS has {listed} for {filename}: delete \
                 the platform and announce it again"
            ))),
            Some(listed) => Ok(listed.to_owned()),
        }
    }

    /// Looks into an archive that is in the bucket. Zip files are read from their ends, so it is copied to a file.
    async fn check_archive(
        &self,
        key: &Key,
        blob: &str,
        stored: Stored,
        expected: &str,
        program: &str,
    ) -> Result<ProviderArchive, Error> {
        if !is_sha256(expected) || stored.sha256 != expected {
            return Err(refused(format!(
                "The archive has the SHA-256 {}, and SHA256SUMS says {expected}: send the file that was signed",
                stored.sha256
            )));
        }
        let _place = self.shared.archive_readers.stored.acquire().await.map_err(|closed| broken(closed.to_string()))?;
        let mut download = self.blobs().read_verified(key, &stored).await.map_err(blob_error)?;
        let mut file = tempfile::tempfile().map_err(|error| broken(format!("no temporary file: {error}")))?;
        while let Some(piece) = download.body.next().await {
            let piece = piece.map_err(|error| blob_error(error.into()))?;
            file = in_background(move || file.write_all(&piece).map(|()| file)).await?;
        }
        let program = program.to_owned();
        let hash = in_background(move || {
            file.seek(SeekFrom::Start(0))?;
            Ok(hash_of(file, &program))
        });
        let h1 = hash.await?.map_err(|why| refused(format!("The archive {why}")))?;
        let file = RegistryFile { blob: blob.to_owned(), size: stored.size, sha256: stored.sha256 };
        Ok(ProviderArchive { file, h1 })
    }

    /// A small file of a provider, whole.
    pub(crate) async fn read_provider_file(
        &self,
        org: &OrganizationSnapshot,
        file: &RegistryFile,
        limit: u64,
    ) -> Result<Bytes, Error> {
        let key = provider_file_key(org.ledger.name(), &file.blob);
        let found = self.blobs().read_bytes(&key, usize::try_from(limit).unwrap_or(usize::MAX)).await;
        found.map_err(blob_error)?.ok_or_else(|| blob_error(taco_ledger::blob::BlobError::Missing(key)))
    }

    fn fresh_blob(&self, of: &str) -> String {
        format!("{of}-{}", ProviderVersionId::from_random(self.random()).characters())
    }
}

/// Runs what waits for a disk where it keeps nobody waiting.
async fn in_background<T: Send + 'static>(
    act: impl FnOnce() -> std::io::Result<T> + Send + 'static,
) -> Result<T, Error> {
    let done = tokio::task::spawn_blocking(act).await.map_err(|error| broken(error.to_string()))?;
    done.map_err(|error| broken(format!("a temporary file could not be used: {error}")))
}

fn has_archives(state: &OrganizationState, version: ProviderVersionId) -> bool {
    state.provider_platforms.by().version.under(&version).any(|platform| platform.archive.is_some())
}

fn check_signature(org: &OrganizationSnapshot, key_id: &str, list: &[u8], signature: &[u8]) -> Result<(), Error> {
    let key = find_key(org, key_id).map_err(|_| {
        refused(format!(
            "The version is to be signed by the GPG key {key_id}, which the organization does not have: add the public key first"
        ))
    })?;
    let keys = PublicKeys::parse(&key.ascii_armor).map_err(|why| refused(format!("The GPG key {key_id} {why}")))?;
    keys.verify(list, signature)
        .map_err(|why| refused(format!("The signature {why}; it must be by the GPG key {key_id}")))
}
