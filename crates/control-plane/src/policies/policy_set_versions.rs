//! Versions of policy sets: announce, upload, read.

use std::collections::BTreeMap;
use std::error::Error as StdError;
use std::io::{BufReader, Read};

use bytes::Bytes;
use futures::{Stream, StreamExt as _};
use taco_boxed::boxed;
use taco_configuration_archive::{LIMITS, Limits, texts};
use taco_domain::permission::Action;
use taco_domain::policy_set::{PolicySet, PolicySetId};
use taco_domain::policy_set_version::{PolicySetVersion, PolicySetVersionId, PolicySetVersionStatus, VersionedPolicy};
use taco_domain::policy_words::{EnforcementLevel, PolicyFile, PolicyKind};
use taco_opa::{PolicyFiles, PolicyLevel, is_policy_file};
use taco_tables::Record as _;

use crate::blob_error::broken;
use crate::caller::Caller;
use crate::channel_reader::channel;
use crate::control_plane::{ControlPlane, OrganizationSnapshot};
use crate::error::Error;
use crate::find::find;
use crate::policy_code::MAX_POLICY_BYTES;
use crate::policy_sets::{PolicySetVersionView, manage, outdated_versions};
use crate::signed_url_token::{SignedUrlPurpose, SignedUrlToken};
use crate::upload_slots::UploadKind;

const WHAT: &str = PolicySetVersion::NOUN;
const VERSION_LIMITS: Limits =
    Limits { packed: MAX_POLICY_BYTES as u64, unpacked: 4 * MAX_POLICY_BYTES as u64, ..LIMITS };

/// What an archive turned out to be.
type Arrived = Result<(Vec<VersionedPolicy>, PolicyFile), String>;

#[boxed]
impl ControlPlane {
    /// Announces a version whose archive will follow.
    pub async fn create_policy_set_version(
        &self,
        caller: &Caller,
        set: PolicySetId,
    ) -> Result<PolicySetVersionView, Error> {
        let mut org = self.authorized_organization(caller, set.organization_prefix(), PolicySet::NOUN).await?;
        let now = self.now();
        let version = PolicySetVersion {
            id: PolicySetVersionId::within(org.id().organization_prefix(), self.random()),
            set,
            status: PolicySetVersionStatus::Pending,
            error: None,
            policies: Vec::new(),
            code: None,
            created_at: now,
            updated_at: now,
            created_by: caller.author(),
        };
        let version = org.change(caller, "policy-set-version.create", now, move |tx| {
            let set = manage(tx, set)?;
            tx.put(&PolicySet { newest_version: Some(version.id), ..set });
            tx.put(&version);
            Ok(version.clone())
        });
        let version = version.await?;
        Ok(PolicySetVersionView { version, org })
    }

    pub async fn policy_set_version(
        &self,
        caller: &Caller,
        id: PolicySetVersionId,
    ) -> Result<PolicySetVersionView, Error> {
        let org = self.authorized_organization(caller, id.organization_prefix(), WHAT).await?;
        caller.require(Action::ReadDirectory, org.resource(), WHAT)?;
        let version = org.get::<PolicySetVersion>(&id)?.clone();
        Ok(PolicySetVersionView { version, org })
    }

    /// Takes the archive of an announced version. What is no policy set is refused, and the version says why.
    pub async fn upload_policy_set_version<E>(
        &self,
        pass: &SignedUrlToken,
        body: impl Stream<Item = Result<Bytes, E>> + Send + 'static,
    ) -> Result<(), Error>
    where
        E: Into<Box<dyn StdError + Send + Sync>> + Send + 'static,
    {
        let id: PolicySetVersionId = pass.object(SignedUrlPurpose::UploadPolicySet)?;
        let mut org = self.organization_unchecked(id.organization_prefix(), WHAT).await?;
        let version = org.get::<PolicySetVersion>(&id)?.clone();
        let kind = org.get::<PolicySet>(&version.set)?.kind;
        self.check_holder_in_organization(pass, &org, Action::ManagePolicies, WHAT)?;
        let _slot = self.shared.upload_slots.take(org.id(), UploadKind::Configuration).await?;
        let archive = whole(body).await?;
        let arrived = self.read_policy_set(&org, id, kind, archive).await?;
        let (told, now) = (arrived.clone().map(|_| ()), self.now());
        let committed = org.commit(Self::holder_intent(pass, "policy-set-version.upload"), move |tx| {
            let version = find::<PolicySetVersion, _>(tx.state(), &id, WHAT)?.clone();
            let set = find::<PolicySet, _>(tx.state(), &version.set, WHAT)?.clone();
            // A version never changes once it is good.
            if version.status == PolicySetVersionStatus::Ready && arrived.is_err() {
                return Ok(Vec::new());
            }
            let mut blobs: Vec<String> = version.code.iter().map(|file| file.blob.clone()).collect();
            let version = match arrived.clone() {
                Ok((policies, code)) => PolicySetVersion {
                    status: PolicySetVersionStatus::Ready,
                    error: None,
                    policies,
                    code: Some(code),
                    updated_at: now,
                    ..version
                },
                Err(why) => PolicySetVersion {
                    status: PolicySetVersionStatus::Errored,
                    error: Some(why),
                    updated_at: now,
                    ..version
                },
            };
            if version.status == PolicySetVersionStatus::Ready {
                let set = PolicySet { current_version: Some(version.id), updated_at: now, ..set };
                for outdated in outdated_versions(tx.state(), &set) {
                    blobs.extend(outdated.code.iter().map(|file| file.blob.clone()));
                    tx.delete::<PolicySetVersion>(&outdated.id);
                }
                tx.put(&set);
            }
            tx.put(&version);
            Ok(blobs)
        });
        let old = committed.await?;
        org.state = org.last_seen();
        for blob in old {
            self.remove_unused_code(&org, &blob).await;
        }
        told.map_err(|detail| Error::Invalid { pointer: String::new(), detail })
    }

    async fn read_policy_set(
        &self,
        org: &OrganizationSnapshot,
        id: PolicySetVersionId,
        kind: PolicyKind,
        archive: Bytes,
    ) -> Result<Arrived, Error> {
        let (chunks, reader) = channel();
        let sent = archive.clone();
        let reading = tokio::task::spawn_blocking(move || read_files(reader));
        let _ = chunks.send(Ok(sent)).await;
        drop(chunks);
        let files = match reading.await.map_err(|error| broken(error.to_string()))? {
            Ok(files) => files,
            Err(why) => return Ok(Err(why)),
        };
        if kind == PolicyKind::Sentinel {
            let code = self.store_policy_code(org, id.characters(), archive, None).await?;
            return Ok(Ok((Vec::new(), code)));
        }
        let set = match PolicyFiles::read(&files) {
            Ok(set) => set,
            Err(why) => return Ok(Err(why.to_string())),
        };
        let syntax = match self.check_rego(set.modules.clone()).await {
            Ok(syntax) => syntax,
            Err(Error::Invalid { detail, .. }) => return Ok(Err(detail)),
            Err(other) => return Err(other),
        };
        let modules = serde_json::to_vec(&set.modules).map_err(|error| broken(error.to_string()))?;
        let code = self.store_policy_code(org, id.characters(), modules.into(), syntax).await?;
        let policies = set.policies.into_iter().map(|policy| VersionedPolicy {
            name: policy.name,
            query: policy.query,
            level: match policy.level {
                PolicyLevel::Advisory => EnforcementLevel::Advisory,
                PolicyLevel::Mandatory => EnforcementLevel::Mandatory,
            },
            description: policy.description,
        });
        Ok(Ok((policies.collect(), code)))
    }
}

/// All of a body that is small enough.
async fn whole<E>(body: impl Stream<Item = Result<Bytes, E>> + Send + 'static) -> Result<Bytes, Error>
where
    E: Into<Box<dyn StdError + Send + Sync>> + Send + 'static,
{
    let mut body = std::pin::pin!(body);
    let mut bytes = Vec::new();
    while let Some(piece) = body.next().await {
        let piece = piece.map_err(|_| Error::Invalid {
            pointer: String::new(),
            detail: "The archive did not arrive completely: send it again".to_owned(),
        })?;
        if bytes.len() + piece.len() > MAX_POLICY_BYTES {
            return Err(Error::TooLarge { limit: MAX_POLICY_BYTES as u64 });
        }
        bytes.extend_from_slice(&piece);
    }
    Ok(bytes.into())
}

/// Files of an archive that a policy set is made of.
fn read_files(packed: impl Read) -> Result<BTreeMap<String, Vec<u8>>, String> {
    let mut files = BTreeMap::new();
    let mut link = None;
    let take = |path: &str, bytes: Option<&[u8]>| match bytes {
        Some(bytes) => {
            files.insert(path.to_owned(), bytes.to_vec());
        }
        None => link = Some(path.to_owned()),
    };
    let most = MAX_POLICY_BYTES as u64 + 1;
    texts(BufReader::new(packed), VERSION_LIMITS, most, is_policy_file, take).map_err(|error| error.to_string())?;
    match link {
        Some(path) => Err(format!("{path}: a policy cannot be a link")),
        None => Ok(files),
    }
}
