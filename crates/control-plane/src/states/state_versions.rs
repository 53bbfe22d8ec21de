//! State versions: list and read them, download their bytes, and remove the bytes of old ones.

use taco_boxed::boxed;
use taco_domain::Author;
use taco_domain::id::{StateVersionId, WorkspaceId};
use taco_domain::permission::{Action, Resource};
use taco_domain::state_version::{BackingDataAction, StateOrigin, StateVersion, StateVersionStatus};
use taco_domain::workspace::Workspace;
use taco_ledger::blob::BlobError;
use taco_ledger::bucket::Download;
use taco_tables::Record as _;

use crate::blob_error::{blob_error, proven_if_small};
use crate::caller::Caller;
use crate::control_plane::{ControlPlane, OrganizationSnapshot};
use crate::error::Error;
use crate::history::{HistoricKind, ListKey, ToChange, WorkspaceList, is_intermediate};
use crate::page::{Listed, PageRequest};
use crate::secret_reads::{Reader, SecretRead};
use crate::signed_url_token::{SignedUrlPurpose, SignedUrlToken};
use crate::state_blobs::{json_state_key, state_key};
use crate::workspace_view::{WorkspaceRef, WorkspaceView};

pub(crate) const WHAT: &str = StateVersion::NOUN;

/// A state version as a door shows it.
#[derive(Clone)]
pub struct StateVersionView {
    pub version: StateVersion,
    pub org: OrganizationSnapshot,
}

impl StateVersionView {
    /// A version that a commit left behind, in its organization as it is after that.
    pub(crate) fn after_commit(mut org: OrganizationSnapshot, version: StateVersion) -> Self {
        org.state = org.last_seen();
        Self { version, org }
    }

    /// True if it is its workspace's current one.
    pub fn is_current(&self) -> bool {
        let owner = self.org.state.workspaces.get(&self.version.workspace);
        owner.is_some_and(|owner| owner.current_state_version == Some(self.version.id))
    }

    /// Who started the run that wrote it, if one did and is known here.
    pub fn starter_of_run(&self) -> Option<Author> {
        let Author::Run(run) = self.version.created_by else { return None };
        self.org.state.runs.get(&run).map(|run| run.created_by)
    }

    /// The serial of the state that was restored with it, if that is still there.
    pub fn restored_serial(&self) -> Option<u64> {
        match self.version.origin {
            StateOrigin::Restore(from) => self.org.state.state_versions.get(&from).map(|old| old.serial),
            _ => None,
        }
    }

    /// True if an apply wrote it on its way to a later one.
    pub fn is_intermediate(&self) -> bool {
        self.org.state.is_intermediate(&self.version)
    }
}

/// Filter for a workspace's state versions.
#[derive(Clone, Copy, Default, Debug)]
pub struct StateFilter {
    /// Those in this status; otherwise all that have arrived.
    pub status: Option<StateVersionStatus>,
    /// Without those that an apply wrote on its way to a later one. The current one is never left out.
    pub without_intermediate: bool,
}

impl StateFilter {
    fn takes_status(self, status: StateVersionStatus) -> bool {
        match self.status {
            Some(wanted) => status == wanted,
            None => !matches!(status, StateVersionStatus::Pending | StateVersionStatus::Discarded),
        }
    }
}

#[boxed]
impl ControlPlane {
    pub async fn state_version(&self, caller: &Caller, id: StateVersionId) -> Result<StateVersionView, Error> {
        let org = self.authorized_organization(caller, id.organization_prefix(), WHAT).await?;
        let org = self.with_history(org, id).await?;
        let version = org.get::<StateVersion>(&id)?.clone();
        let owner = org.state.workspaces.get(&version.workspace).ok_or(Error::NotFound(WHAT))?;
        caller.require(Action::ReadState, Resource::Workspace(&org.state, owner), WHAT)?;
        Ok(StateVersionView { version, org })
    }

    /// The workspace of a page about states: the caller may read them, and perhaps nothing else of it.
    pub async fn workspace_with_states(&self, caller: &Caller, wanted: &WorkspaceRef) -> Result<WorkspaceView, Error> {
        let view = self.find_workspace(caller, wanted).await?;
        caller.require(Action::ReadState, view.resource(), "workspace")?;
        Ok(view)
    }

    pub async fn current_state_version(
        &self,
        caller: &Caller,
        workspace: WorkspaceId,
    ) -> Result<StateVersionView, Error> {
        let view = self.find_workspace(caller, &WorkspaceRef::Id(workspace)).await?;
        caller.require(Action::ReadState, view.resource(), "workspace")?;
        let version = view.org.state.current_state_version(&view.workspace).cloned();
        Ok(StateVersionView { version: version.ok_or(Error::NotFound(WHAT))?, org: view.org })
    }

    /// A workspace's state versions, newest first.
    pub async fn state_versions(
        &self,
        caller: &Caller,
        workspace: &WorkspaceRef,
        filter: StateFilter,
        page: PageRequest,
    ) -> Result<Listed<StateVersionView>, Error> {
        let view = self.find_workspace(caller, workspace).await?;
        caller.require(Action::ReadState, view.resource(), "workspace")?;
        let (state, current) = (view.org.state.clone(), view.workspace.current_state_version);
        let is_left_out = |version: &StateVersion| {
            filter.without_intermediate && current != Some(version.id) && state.is_intermediate(version)
        };
        let wanted = |version: &&StateVersion| filter.takes_status(version.status) && !is_left_out(version);
        let in_memory = state.state_versions_of(view.workspace.id).filter(wanted).map(ListKey::of_state).collect();
        let list = WorkspaceList {
            workspace: view.workspace.id,
            kind: HistoricKind::StateVersions,
            fits: &|row, _| {
                let status = serde_json::from_value(row.status.into());
                status.is_ok_and(|status| filter.takes_status(status))
                    && !(filter.without_intermediate && is_intermediate(row))
            },
            searches_texts: false,
        };
        let listed = self.list_workspace(view.org, &list, in_memory, page).await?;
        let version = |id: &[u8; 16]| {
            let id = StateVersionId::from_bytes(*id).ok()?;
            let version = listed.org.state.state_versions.get(&id)?.clone();
            Some(StateVersionView { version, org: listed.org.clone() })
        };
        Ok(Listed { items: listed.ids.iter().filter_map(version).collect(), page, total: listed.total })
    }

    /// The version that came before this one. Intermediate states of the same apply are skipped: someone who looks at
    /// its end wants to see all that it changed.
    pub async fn state_before(&self, view: &StateVersionView) -> Result<Option<StateVersionId>, Error> {
        let (state, version) = (&view.org.state, &view.version);
        let is_on_the_way =
            |other: &StateVersion| !view.is_intermediate() && other.run == version.run && state.is_intermediate(other);
        let wanted = StateFilter::default();
        let in_memory = state.state_versions_of(version.workspace);
        let in_memory = in_memory.filter(|other| wanted.takes_status(other.status) && !is_on_the_way(other));
        let list = WorkspaceList {
            workspace: version.workspace,
            kind: HistoricKind::StateVersions,
            fits: &|row, _| {
                let is_in_memory =
                    StateVersionId::from_bytes(row.id).is_ok_and(|id| state.state_versions.contains(&id));
                !is_in_memory
                    && serde_json::from_value(row.status.into()).is_ok_and(|status| wanted.takes_status(status))
            },
            searches_texts: false,
        };
        let in_history = self.keys_in_history(&view.org, &list).await?;
        let keys = in_memory.map(ListKey::of_state).chain(in_history.into_iter().map(|(key, _)| key));
        let own = ListKey::of_state(version).in_list();
        let before = keys.filter(|key| key.in_list() > own).min_by_key(ListKey::in_list);
        Ok(before.and_then(|key| StateVersionId::from_bytes(key.id).ok()))
    }

    /// The bytes of a state, for the holder of a signed URL.
    pub async fn download_state(&self, pass: &SignedUrlToken) -> Result<(StateVersion, Download), Error> {
        let (org, version) = self.version_of(pass, SignedUrlPurpose::DownloadState).await?;
        let reader = self.reader_with(pass, &org, &version)?;
        let mut download = self.recorded_state_bytes(&org, reader, &version).await?;
        if let Some(Author::Run(run)) = pass.holder.as_ref().map(|holder| holder.author) {
            download = self.as_previewed(&org, run, &version, download).await?;
        }
        Ok((version, download))
    }

    /// The bytes of a state, for someone who may read it.
    pub async fn download_state_version(
        &self,
        caller: &Caller,
        id: StateVersionId,
    ) -> Result<(StateVersionView, Download), Error> {
        let view = self.state_version(caller, id).await?;
        let download = self.recorded_state_bytes(&view.org, caller, &view.version).await?;
        Ok((view, download))
    }

    /// A workspace's current state, if it has one.
    pub async fn download_current_state(
        &self,
        caller: &Caller,
        workspace: &WorkspaceRef,
    ) -> Result<Option<(StateVersion, Download)>, Error> {
        let view = self.find_workspace(caller, workspace).await?;
        caller.require(Action::ReadState, view.resource(), "workspace")?;
        let Some(version) = view.org.state.current_state_version(&view.workspace) else { return Ok(None) };
        Ok(Some((version.clone(), self.recorded_state_bytes(&view.org, caller, version).await?)))
    }

    /// The bytes of a state for someone outside, of which the audit trail tells before they go. Both are asked of the
    /// bucket at once: a far one is a long way.
    async fn recorded_state_bytes(
        &self,
        org: &OrganizationSnapshot,
        reader: impl Into<Reader>,
        version: &StateVersion,
    ) -> Result<Download, Error> {
        let recorded = self.record_secret_read(org, reader, SecretRead::State(version.id));
        let ((), download) = tokio::join!(recorded, self.state_bytes(org, version));
        download
    }

    fn reader_with(
        &self,
        pass: &SignedUrlToken,
        org: &OrganizationSnapshot,
        version: &StateVersion,
    ) -> Result<Reader, Error> {
        let holder = self.holder_of(pass, org, Action::ReadState, &version.workspace, WHAT)?;
        Ok(holder.as_ref().map_or_else(Reader::unknown, Reader::from))
    }

    pub(crate) async fn state_bytes(
        &self,
        org: &OrganizationSnapshot,
        version: &StateVersion,
    ) -> Result<Download, Error> {
        match version.status {
            StateVersionStatus::Finalized => self.read_state_bytes(org, version).await,
            _ => Err(Error::NotFound(WHAT)),
        }
    }

    pub async fn download_json_state(&self, pass: &SignedUrlToken) -> Result<Download, Error> {
        let (org, version) = self.version_of(pass, SignedUrlPurpose::DownloadJsonState).await?;
        if !version.has_json || version.status != StateVersionStatus::Finalized {
            return Err(Error::NotFound(WHAT));
        }
        let reader = self.reader_with(pass, &org, &version)?;
        let key = json_state_key(&org, &version);
        let recorded = self.record_secret_read(&org, reader, SecretRead::State(version.id));
        let ((), download) = tokio::join!(recorded, self.blobs().read(&key, None));
        let download = download.map_err(|error| blob_error(error.into()))?;
        proven_if_small(download.ok_or_else(|| blob_error(BlobError::Missing(key)))?).await
    }

    pub(crate) async fn version_of(
        &self,
        pass: &SignedUrlToken,
        purpose: SignedUrlPurpose,
    ) -> Result<(OrganizationSnapshot, StateVersion), Error> {
        let id: StateVersionId = pass.object(purpose)?;
        let org = self.organization_unchecked(id.organization_prefix(), WHAT).await?;
        let org = self.with_history(org, id).await?;
        let version = org.get::<StateVersion>(&id)?.clone();
        Ok((org, version))
    }

    /// Removes a state's bytes in two steps, or brings them back from the first.
    pub async fn change_backing_data(
        &self,
        caller: &Caller,
        id: StateVersionId,
        action: BackingDataAction,
    ) -> Result<(), Error> {
        let mut org = self.authorized_organization(caller, id.organization_prefix(), WHAT).await?;
        let record = ToChange::new(id, right_for(action), WHAT);
        let change = self.change_restored(caller, &mut org, record, "state.backing-data", move |tx| {
            let version: StateVersion = tx.get(&id)?;
            let owner = tx.workspace_of::<StateVersion>(&version.workspace, right_for(action))?;
            let refused = |detail| Error::Invalid { pointer: "/data".to_owned(), detail };
            let status = status_after(&owner, &version, action).map_err(refused)?;
            let version = StateVersion { status, ..version };
            tx.put(&version);
            Ok(version)
        });
        let version = change.await?;
        if version.status == StateVersionStatus::BackingDataPermanentlyDeleted {
            self.remove_blob(&state_key(&org, &version.blob)).await;
            if version.has_json {
                self.remove_blob(&json_state_key(&org, &version)).await;
            }
        }
        Ok(())
    }
}

/// For pages that show what is out of reach and why.
impl StateVersionView {
    /// True if someone could do this with the state's bytes.
    pub fn is_possible(&self, action: BackingDataAction) -> bool {
        let owner = self.org.state.workspaces.get(&self.version.workspace);
        owner.is_some_and(|owner| status_after(owner, &self.version, action).is_ok())
    }

    /// `Ok` if the caller could do this with the state's bytes now, otherwise the reason why not.
    pub fn data_choice(&self, caller: &Caller, action: BackingDataAction) -> Result<(), String> {
        let state = &self.org.state;
        let owner = state.workspaces.get(&self.version.workspace).ok_or("The workspace is gone")?;
        let decision = caller.may(right_for(action), Resource::Workspace(state, owner));
        if !decision.allowed {
            return Err(decision.reason.into_owned());
        }
        status_after(owner, &self.version, action).map(|_| ())
    }
}

/// Right that an action takes. One that can be undone takes no more than writing the next state does.
fn right_for(action: BackingDataAction) -> Action {
    match action {
        BackingDataAction::SoftDelete | BackingDataAction::Restore => Action::WriteState,
        BackingDataAction::PermanentlyDelete => Action::DeleteStateForGood,
    }
}

/// The current state keeps its bytes.
fn status_after(
    owner: &Workspace,
    version: &StateVersion,
    action: BackingDataAction,
) -> Result<StateVersionStatus, String> {
    if owner.current_state_version == Some(version.id) {
        return Err("transition not allowed: it is the current state version".to_owned());
    }
    version.status.after(action).map_err(|error| error.to_string())
}
