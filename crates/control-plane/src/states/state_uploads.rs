//! The bytes of announced states, which come to signed addresses.

use std::error::Error as StdError;

use bytes::Bytes;
use futures::Stream;
use taco_boxed::boxed;
use taco_domain::OrganizationState;
use taco_domain::id::StateVersionId;
use taco_domain::lock::Claim;
use taco_domain::permission::{Action, Resource};
use taco_domain::state_version::{StateVersion, StateVersionStatus};
use taco_ledger::{Intent, Transaction};

use crate::blob_error::blob_error;
use crate::caller::{Caller, RequestInfo};
use crate::control_plane::{ControlPlane, OrganizationSnapshot};
use crate::error::Error;
use crate::idempotency::digest;
use crate::new_state::NewState;
use crate::signed_url_token::{SignedUrlPurpose, SignedUrlToken};
use crate::state_blobs::{LARGEST_STATE, json_blob_key, json_state_key, no_state, state_key};
use crate::state_commits::{Arrived, StateWrite};
use crate::state_versions::{StateVersionView, WHAT};
use crate::upload_slots::UploadKind;

/// Result of uploading a state in the format of `show -json`.
enum JsonState {
    Kept,
    /// The state that it belongs to is encrypted.
    Unwanted,
    /// Another was faster, and is in this record.
    TooLate(Box<StateVersion>),
}

#[boxed]
impl ControlPlane {
    /// Takes the bytes of an announced state.
    pub async fn upload_state<E>(
        &self,
        pass: &SignedUrlToken,
        body: impl Stream<Item = Result<Bytes, E>> + Send + 'static,
    ) -> Result<StateVersionView, Error>
    where
        E: Into<Box<dyn StdError + Send + Sync>> + Send + 'static,
    {
        let (org, version) = self.version_of(pass, SignedUrlPurpose::UploadState).await?;
        let writer = writer_of(&org, &version)?;
        let _upload = self.shared.uploads_under_way.begin(SignedUrlPurpose::UploadState, version.id)?;
        let _slot = self.shared.upload_slots.take(org.id(), UploadKind::State).await?;
        match version.status {
            StateVersionStatus::Pending => {}
            // A client whose answer was lost sends the same again. Anything else comes too late.
            StateVersionStatus::Finalized if digest(body, LARGEST_STATE).await? == version.sha256 => {
                return Ok(StateVersionView::after_commit(org, version));
            }
            _ => return Err(Error::NotFound(WHAT)),
        }
        let refused = match self.take_announced(&org, &version, writer, body).await {
            Ok(Ok(view)) => return Ok(view),
            Ok(Err(refused)) => refused,
            Err(error) => return Err(error),
        };
        self.give_up_announced(&org, version.id).await;
        Err(refused)
    }

    /// The outer error is for bytes that may come once more, the inner one for those that are not what was announced.
    async fn take_announced<E>(
        &self,
        org: &OrganizationSnapshot,
        version: &StateVersion,
        writer: Caller,
        body: impl Stream<Item = Result<Bytes, E>> + Send + 'static,
    ) -> Result<Result<StateVersionView, Error>, Error>
    where
        E: Into<Box<dyn StdError + Send + Sync>> + Send + 'static,
    {
        // Each attempt has a blob of its own, so that a second one cannot spoil the first.
        let blob = self.blob_of(version);
        let (stored, file) = match self.store_state(&state_key(org, &blob), body).await {
            Ok(Ok(state)) => state,
            Ok(Err(error)) => return Ok(Err(no_state(&error))),
            Err(error @ Error::TooLarge { .. }) => return Ok(Err(error)),
            Err(error) => return Err(error),
        };
        let new = NewState {
            serial: Some(version.serial),
            md5: Some(version.md5.clone()),
            lineage: Some(version.lineage.clone()),
            force: Some(version.force),
            run: version.run,
        };
        let (workspace, claim) = (version.workspace, Claim::Api(version.created_by));
        let arrived = Arrived { org: org.clone(), workspace, claim, id: version.id, blob, stored, file };
        let (author, origin) = (version.created_by, version.origin);
        let write = StateWrite { caller: Some(writer), new, author, origin, arrived };
        match self.commit_state(by_author(version, "state.upload"), write).await {
            Ok(view) => Ok(Ok(view)),
            Err(error @ (Error::Invalid { .. } | Error::Conflict(_))) => Ok(Err(error)),
            Err(error) => Err(error),
        }
    }

    /// A client whose bytes were refused wants to unlock, which a state that is still to come would not let it.
    async fn give_up_announced(&self, org: &OrganizationSnapshot, id: StateVersionId) {
        let decide = move |tx: &mut Transaction<OrganizationState>| {
            let announced = tx.state().state_versions.get(&id).cloned();
            let announced = announced.filter(|version| version.status == StateVersionStatus::Pending);
            if let Some(version) = &announced {
                tx.put(&StateVersion { status: StateVersionStatus::Discarded, ..version.clone() });
            }
            Ok(announced)
        };
        match org.commit(Self::own_intent("state.give-up"), decide).await {
            Ok(Some(version)) if version.has_json => self.remove_blob(&json_state_key(org, &version)).await,
            Ok(_) => {}
            Err(error) => {
                tracing::warn!(
                    event = "rejected_upload_not_cleared", %id, %error,
                    "a state that was refused counts as being on its way"
                );
            }
        }
    }

    /// Takes the same state in the format of `terraform show -json`, which some clients upload as well.
    ///
    /// Tofu sends it as plain text even for a state that it encrypts. Users who encrypt a state do not want its
    /// contents stored here, so we do not keep it.
    pub async fn upload_json_state<E>(
        &self,
        pass: &SignedUrlToken,
        body: impl Stream<Item = Result<Bytes, E>> + Send + 'static,
    ) -> Result<(), Error>
    where
        E: Into<Box<dyn StdError + Send + Sync>> + Send + 'static,
    {
        let (org, version) = self.version_of(pass, SignedUrlPurpose::UploadJsonState).await?;
        writer_of(&org, &version)?;
        let _upload = self.shared.uploads_under_way.begin(SignedUrlPurpose::UploadJsonState, version.id)?;
        let _slot = self.shared.upload_slots.take(org.id(), UploadKind::State).await?;
        if !takes_json(&version) {
            return Err(Error::NotFound(WHAT));
        }
        if version.encrypted {
            return digest(body, LARGEST_STATE).await.map(drop);
        }
        if version.has_json {
            return self.check_same_json(&org, &version, &digest(body, LARGEST_STATE).await?).await;
        }
        let blob = self.blob_of(&version);
        let key = json_blob_key(&org, &blob);
        let stored = self.store_json(&key, body).await?;
        let id = version.id;
        let decide = move |tx: &mut Transaction<OrganizationState>| {
            let version = tx.state().state_versions.get(&id).cloned();
            let version = version.filter(takes_json).ok_or(Error::NotFound(WHAT))?;
            Ok(match version {
                version if version.encrypted => JsonState::Unwanted,
                version if version.has_json && version.json_blob != blob => JsonState::TooLate(Box::new(version)),
                version => {
                    tx.put(&StateVersion { has_json: true, json_blob: blob.clone(), ..version });
                    JsonState::Kept
                }
            })
        };
        let kept = org.commit(by_author(&version, "state.upload-json"), decide).await;
        // After an unclear answer the commit may name the blob all the same, so it stays.
        if !matches!(kept, Ok(JsonState::Kept) | Err(Error::Unavailable(_) | Error::Corrupt(_))) {
            self.remove_blob(&key).await;
        }
        match kept? {
            JsonState::Kept | JsonState::Unwanted => Ok(()),
            JsonState::TooLate(other) => self.check_same_json(&org, &other, &stored.sha256).await,
        }
    }

    /// A client whose answer was lost sends the same again. Anything else comes too late.
    async fn check_same_json(
        &self,
        org: &OrganizationSnapshot,
        version: &StateVersion,
        sha256: &str,
    ) -> Result<(), Error> {
        let kept = self.blobs().read(&json_state_key(org, version), None).await;
        let kept = kept.map_err(|error| blob_error(error.into()))?.ok_or(Error::NotFound(WHAT))?;
        if digest(kept.body, LARGEST_STATE).await? == sha256 { Ok(()) } else { Err(Error::NotFound(WHAT)) }
    }

    /// A blob of its own for an attempt to send a version's bytes.
    fn blob_of(&self, version: &StateVersion) -> String {
        let attempt: String = self.random().iter().map(|byte| format!("{byte:02x}")).collect();
        format!("{}-{attempt}", version.id)
    }
}

/// True if a version still has, or will have, the content of its JSON.
fn takes_json(version: &StateVersion) -> bool {
    matches!(version.status, StateVersionStatus::Pending | StateVersionStatus::Finalized)
}

/// Author of an announced state, if they may still write it: the URL alone must not outlive their right.
fn writer_of(org: &OrganizationSnapshot, version: &StateVersion) -> Result<Caller, Error> {
    let owner = org.state.workspaces.get(&version.workspace).ok_or(Error::NotFound(WHAT))?;
    let writer = org.caller_for(&version.created_by, RequestInfo::default()).ok_or(Error::NotFound(WHAT))?;
    writer.require(Action::WriteState, Resource::Workspace(&org.state, owner), WHAT)?;
    Ok(writer)
}

/// Audit entry in the name of the state's author: the URL was issued to them.
fn by_author(version: &StateVersion, action: &'static str) -> Intent {
    Intent { actor: version.created_by.to_string(), action, request: None }
}
