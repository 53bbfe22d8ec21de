//! States: announce, write, read, restore. All ways to write one end in [`ControlPlane::commit_state`].

use std::collections::BTreeMap;
use std::error::Error as StdError;
use std::sync::Arc;

use bytes::Bytes;
use futures::{Stream, TryStreamExt, stream};
use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use taco_domain::id::{OutputId, RunId, StateVersionId, WorkspaceId};
use taco_domain::lock::{Claim, LockConflict};
use taco_domain::permission::{Action, Actor, Resource};
use taco_domain::state_file::{
    Contents, IndexKey, Mode, PlainState, Resource as StateResource, ResourceSummary, StateFile, summarize,
};
use taco_domain::state_rules::{
    StateConflict, StateDescription, StateIdentity, Verdict, check_description, check_state_write,
};
use taco_domain::state_version::{
    BackingDataAction, OutputMetadata, StateOrigin, StateVersion, StateVersionStatus, output_id,
};
use taco_domain::workspace::Workspace;
use taco_domain::{Author, OrganizationState};
use taco_ledger::blob::Stored;
use taco_ledger::bucket::Download;
use taco_ledger::{Intent, Transaction};

use crate::caller::Caller;
use crate::control_plane::{ControlPlane, OpenOrganization};
use crate::error::Error;
use crate::page::{Listed, PageRequest};
use crate::passes::{Pass, PassPurpose};
use crate::state_blobs::{LARGEST_STATE, blob_error, json_state_key, state_key};
use crate::workspaces::WorkspaceRef;

const WHAT: &str = "state version";

/// A state version as a door shows it.
#[derive(Clone)]
pub struct StateVersionView {
    pub version: StateVersion,
    pub open: OpenOrganization,
}

/// What a request says about the state that it sends, or will send.
#[derive(Clone, Default, Deserialize, Debug)]
#[serde(rename_all = "kebab-case", default)]
pub struct NewState {
    pub serial: Option<u64>,
    pub md5: Option<String>,
    pub lineage: Option<String>,
    pub force: Option<bool>,
    #[serde(skip)]
    pub run: Option<RunId>,
}

impl NewState {
    fn description(&self) -> StateDescription<'_> {
        let lineage = self.lineage.as_deref().filter(|lineage| !lineage.is_empty());
        StateDescription { serial: self.serial, lineage, md5: self.md5.as_deref() }
    }
}

/// One output with its value, as far as the caller may see it.
#[derive(Clone, Debug)]
pub struct OutputView {
    pub id: OutputId,
    pub name: String,
    pub sensitive: bool,
    pub type_name: &'static str,
    pub detailed_type: Option<Box<RawValue>>,
    pub value: Option<Box<RawValue>>,
}

/// One resource of a workspace's current state.
#[derive(Clone, Serialize, Debug)]
#[serde(rename_all = "kebab-case")]
pub struct ResourceView {
    #[serde(skip)]
    pub id: String,
    pub address: String,
    pub name: String,
    pub created_at: String,
    pub updated_at: String,
    pub module: String,
    pub provider: String,
    pub provider_type: String,
    pub modified_by_state_version_id: StateVersionId,
    pub name_index: Option<String>,
}

/// A state that is stored and was read, on its way into the ledger.
struct StateWrite {
    workspace: WorkspaceId,
    /// Who writes, for the permission; `None` where a pass was permission enough.
    caller: Option<Caller>,
    claim: Claim,
    new: NewState,
    id: StateVersionId,
    blob: String,
    author: Author,
    origin: StateOrigin,
    stored: Stored,
    file: StateFile<IgnoredAny>,
}

/// Writing.
impl ControlPlane {
    /// Announces a state whose bytes will follow. Repeating it leads to the same version.
    pub async fn announce_state(
        &self,
        caller: &Caller,
        workspace: WorkspaceId,
        new: NewState,
    ) -> Result<StateVersionView, Error> {
        let required = |attribute: &'static str| Error::invalid(attribute, format!("{attribute} must be given"));
        let serial = new.serial.ok_or_else(|| required("serial"))?;
        let md5 = new.md5.clone().ok_or_else(|| required("md5"))?;
        let open = self.organization_of(caller, workspace.home(), "workspace").await?;
        let (id, now) = (StateVersionId::at_home(workspace.home(), self.random()), self.now());
        let intent = caller.intent("state.announce");
        let (caller, author) = (caller.clone(), caller.author());
        let version = open
            .commit(intent, move |tx| {
                let state = tx.state();
                let owner = state.workspaces.get(&workspace).ok_or(Error::NotFound("workspace"))?;
                caller.require(Action::WriteState, Resource::Workspace(state, owner), "workspace")?;
                let current = state.current_state_version(owner);
                let lineage = new.description().lineage.or(current.map(|current| current.lineage.as_str()));
                let identity = StateIdentity { serial, lineage: lineage.unwrap_or_default(), md5: &md5 };
                let force = new.force.unwrap_or_default();
                let claim = Claim::Api(author);
                if let Verdict::SameAgain = check_write(owner, current, &claim, identity, force)? {
                    return current.cloned().ok_or(Error::NotFound(WHAT));
                }
                let pending = state.state_versions.by().pending.get(&workspace);
                let pending: Vec<_> = pending.filter_map(|id| state.state_versions.get(id)).collect();
                if let Some(same) = pending.iter().find(|old| old.identity() == identity && old.created_by == author) {
                    return Ok((*same).clone());
                }
                let version = StateVersion {
                    id,
                    workspace,
                    status: StateVersionStatus::Pending,
                    serial,
                    lineage: identity.lineage.to_owned(),
                    md5: md5.clone(),
                    blob: String::new(),
                    sha256: String::new(),
                    size: 0,
                    force,
                    origin: origin_of(&caller.actor),
                    created_at: now,
                    created_by: author,
                    run: new.run.or(run_of(&caller.actor)),
                    terraform_version: None,
                    encrypted: false,
                    resource_count: 0,
                    outputs: Vec::new(),
                    has_json: false,
                };
                tx.put(&version);
                Ok(version)
            })
            .await?;
        Ok(seen_after(open, version))
    }

    /// Writes a state through the API, description and bytes at once.
    pub async fn write_state(
        &self,
        caller: &Caller,
        workspace: WorkspaceId,
        new: NewState,
        bytes: Bytes,
    ) -> Result<StateVersionView, Error> {
        let body = stream::iter([Ok::<_, std::convert::Infallible>(bytes)]);
        let claim = Claim::Api(caller.author());
        self.write_state_stream(caller, workspace, claim, new, origin_of(&caller.actor), body).await
    }

    /// Writes a state through the `http` backend. `lock_id` is the lock that the client holds, if it locks at all.
    pub async fn write_state_with<E>(
        &self,
        caller: &Caller,
        wanted: &WorkspaceRef,
        lock_id: Option<String>,
        md5: Option<String>,
        body: impl Stream<Item = Result<Bytes, E>> + Send + 'static,
    ) -> Result<StateVersionView, Error>
    where
        E: Into<Box<dyn StdError + Send + Sync>> + Send + 'static,
    {
        let workspace = self.find_workspace(caller, wanted).await?.workspace.id;
        let claim = Claim::Http { author: caller.author(), lock_id };
        let new = NewState { md5, ..NewState::default() };
        self.write_state_stream(caller, workspace, claim, new, StateOrigin::Push, body).await
    }

    async fn write_state_stream<E>(
        &self,
        caller: &Caller,
        workspace: WorkspaceId,
        claim: Claim,
        new: NewState,
        origin: StateOrigin,
        body: impl Stream<Item = Result<Bytes, E>> + Send + 'static,
    ) -> Result<StateVersionView, Error>
    where
        E: Into<Box<dyn StdError + Send + Sync>> + Send + 'static,
    {
        let open = self.organization_of(caller, workspace.home(), "workspace").await?;
        let owner = open.state.workspaces.get(&workspace).ok_or(Error::NotFound("workspace"))?;
        // Both are asked again in the transaction; here they spare the bucket bytes that nobody may write.
        caller.require(Action::WriteState, Resource::Workspace(&open.state, owner), "workspace")?;
        taco_domain::lock::check_lock(owner.lock.as_ref(), &claim).map_err(crate::workspace_locks::conflict)?;
        let id = StateVersionId::at_home(workspace.home(), self.random());
        let blob = id.to_string();
        let (stored, file) = self.store_state(&state_key(&open, &blob), body).await?;
        let write = StateWrite {
            workspace,
            caller: Some(caller.clone()),
            claim,
            new,
            id,
            blob,
            author: caller.author(),
            origin,
            stored,
            file,
        };
        self.commit_state(open, caller.intent("state.write"), write).await
    }

    /// Takes the bytes of an announced state.
    pub async fn upload_state<E>(
        &self,
        pass: &Pass,
        body: impl Stream<Item = Result<Bytes, E>> + Send + 'static,
    ) -> Result<StateVersionView, Error>
    where
        E: Into<Box<dyn StdError + Send + Sync>> + Send + 'static,
    {
        let (open, version) = self.version_of(pass, PassPurpose::UploadState).await?;
        if version.status != StateVersionStatus::Pending {
            return Err(Error::NotFound(WHAT));
        }
        // Each attempt has a blob of its own, so that a second one cannot spoil the first.
        let blob = format!("{}-{}", version.id, hex(&self.random()));
        let (stored, file) = self.store_state(&state_key(&open, &blob), body).await?;
        let lineage = Some(version.lineage.clone());
        let write = StateWrite {
            workspace: version.workspace,
            caller: None,
            claim: Claim::Api(version.created_by),
            new: NewState {
                serial: Some(version.serial),
                md5: Some(version.md5.clone()),
                lineage,
                force: Some(version.force),
                run: version.run,
            },
            id: version.id,
            blob,
            author: version.created_by,
            origin: version.origin,
            stored,
            file,
        };
        let intent = Intent { actor: version.created_by.to_string(), action: "state.upload", request: None };
        self.commit_state(open, intent, write).await
    }

    /// Makes a stored state the current one. The one place where that happens: it checks the lock, the lineage, that
    /// the serial goes up, and that the description fits the bytes.
    async fn commit_state(
        &self,
        open: OpenOrganization,
        intent: Intent,
        write: StateWrite,
    ) -> Result<StateVersionView, Error> {
        let key = state_key(&open, &write.blob);
        let id = write.id;
        let now = self.now();
        let (version, summary) = match finished(&write, now) {
            Ok(finished) => finished,
            Err(error) => {
                self.remove_blob(&key).await;
                return Err(error);
            }
        };
        let StateWrite { workspace, caller, claim, new, .. } = write;
        let decide = move |tx: &mut Transaction<OrganizationState>| {
            let state = tx.state();
            let owner = state.workspaces.get(&workspace).cloned().ok_or(Error::NotFound("workspace"))?;
            if let Some(caller) = &caller {
                caller.require(Action::WriteState, Resource::Workspace(state, &owner), "workspace")?;
            }
            let announced = state.state_versions.get(&version.id);
            if announced.is_some_and(|announced| announced.status != StateVersionStatus::Pending) {
                return Err(Error::Conflict("The state version is not waiting for a state any more".to_owned()));
            }
            let current = state.current_state_version(&owner);
            let force = new.force.unwrap_or_default();
            if let Verdict::SameAgain = check_write(&owner, current, &claim, version.identity(), force)? {
                return current.cloned().ok_or(Error::NotFound(WHAT));
            }
            let created_at = announced.map_or(version.created_at, |announced| announced.created_at);
            let has_json = announced.is_some_and(|announced| announced.has_json);
            let version = StateVersion { created_at, has_json, ..version.clone() };
            tx.put(&version);
            tx.put(&Workspace {
                current_state_version: Some(version.id),
                resource_count: version.resource_count,
                ..owner
            });
            Ok(version)
        };
        let committed = open.commit(intent, decide).await;
        // After an unclear answer the commit may name the blob all the same, so it stays.
        let refused = matches!(&committed, Err(error) if !matches!(error, Error::Unavailable(_) | Error::Corrupt(_)));
        let repeated = matches!(&committed, Ok(version) if version.id != id);
        if refused || repeated {
            self.remove_blob(&key).await;
        }
        let version = committed?;
        if !repeated {
            self.remember_summary(version.id, summary);
        }
        Ok(seen_after(open, version))
    }

    /// Takes the same state in the format of `terraform show -json`, which some clients send beside it.
    pub async fn upload_json_state<E>(
        &self,
        pass: &Pass,
        body: impl Stream<Item = Result<Bytes, E>> + Send + 'static,
    ) -> Result<(), Error>
    where
        E: Into<Box<dyn StdError + Send + Sync>> + Send + 'static,
    {
        let (open, version) = self.version_of(pass, PassPurpose::UploadJsonState).await?;
        if version.has_json {
            return Err(Error::NotFound(WHAT));
        }
        let key = json_state_key(&open, &version);
        self.blobs().store(&key, body, LARGEST_STATE).await.map_err(blob_error)?;
        let intent = Intent { actor: version.created_by.to_string(), action: "state.upload-json", request: None };
        let id = version.id;
        open.commit(intent, move |tx| {
            let version = tx.state().state_versions.get(&id).cloned().ok_or(Error::NotFound(WHAT))?;
            tx.put(&StateVersion { has_json: true, ..version });
            Ok(())
        })
        .await
    }

    /// Writes the content of an older version under a new serial.
    pub async fn restore_state(
        &self,
        caller: &Caller,
        workspace: WorkspaceId,
        from: StateVersionId,
    ) -> Result<StateVersionView, Error> {
        let old = self.state_version(caller, from).await?;
        if old.version.workspace != workspace {
            return Err(Error::NotFound(WHAT));
        }
        let owner = old.open.state.workspaces.get(&workspace).ok_or(Error::NotFound("workspace"))?;
        let current = old.open.state.current_state_version(owner).unwrap_or(&old.version);
        let serial = current.serial + 1;
        let bytes = self.whole_state(&old).await?;
        let bytes = with_serial(&bytes, serial, &current.lineage).map_err(crate::state_blobs::broken)?;
        let body = stream::iter([Ok::<_, std::convert::Infallible>(bytes)]);
        let new = NewState { serial: Some(serial), lineage: Some(current.lineage.clone()), ..NewState::default() };
        let claim = Claim::Api(caller.author());
        self.write_state_stream(caller, workspace, claim, new, StateOrigin::Restore(from), body).await
    }

    async fn whole_state(&self, view: &StateVersionView) -> Result<Bytes, Error> {
        let mut download = self.read_state_bytes(&view.open, &view.version).await?;
        let mut whole = Vec::with_capacity(usize::try_from(download.size).unwrap_or_default());
        while let Some(piece) = download.body.try_next().await.map_err(|error| blob_error(error.into()))? {
            whole.extend_from_slice(&piece);
        }
        Ok(whole.into())
    }

    /// Removes a state's bytes in two steps, or brings them back from the first.
    pub async fn change_backing_data(
        &self,
        caller: &Caller,
        id: StateVersionId,
        action: BackingDataAction,
    ) -> Result<(), Error> {
        let open = self.organization_of(caller, id.home(), WHAT).await?;
        let intent = caller.intent("state.backing-data");
        let caller = caller.clone();
        open.commit(intent, move |tx| {
            let state = tx.state();
            let version = state.state_versions.get(&id).cloned().ok_or(Error::NotFound(WHAT))?;
            let owner = state.workspaces.get(&version.workspace).ok_or(Error::NotFound(WHAT))?;
            caller.require(Action::WriteState, Resource::Workspace(state, owner), WHAT)?;
            let refused = |detail: String| Error::Invalid { pointer: "/data".to_owned(), detail };
            if owner.current_state_version == Some(id) {
                return Err(refused("transition not allowed: it is the current state version".to_owned()));
            }
            let status = version.status.after(action).map_err(|error| refused(error.to_string()))?;
            tx.put(&StateVersion { status, ..version });
            Ok(())
        })
        .await
    }
}

/// Reading.
impl ControlPlane {
    pub async fn state_version(&self, caller: &Caller, id: StateVersionId) -> Result<StateVersionView, Error> {
        let open = self.organization_of(caller, id.home(), WHAT).await?;
        let version = open.state.state_versions.get(&id).cloned().ok_or(Error::NotFound(WHAT))?;
        let owner = open.state.workspaces.get(&version.workspace).ok_or(Error::NotFound(WHAT))?;
        caller.require(Action::ReadState, Resource::Workspace(&open.state, owner), WHAT)?;
        Ok(StateVersionView { version, open })
    }

    pub async fn current_state_version(
        &self,
        caller: &Caller,
        workspace: WorkspaceId,
    ) -> Result<StateVersionView, Error> {
        let view = self.find_workspace(caller, &WorkspaceRef::Id(workspace)).await?;
        caller.require(Action::ReadState, view.resource(), "workspace")?;
        let version = view.open.state.current_state_version(&view.workspace).cloned();
        Ok(StateVersionView { version: version.ok_or(Error::NotFound(WHAT))?, open: view.open })
    }

    /// A workspace's state versions that have arrived, newest first.
    pub async fn state_versions(
        &self,
        caller: &Caller,
        workspace: &WorkspaceRef,
        status: Option<StateVersionStatus>,
        page: PageRequest,
    ) -> Result<Listed<StateVersionView>, Error> {
        let view = self.find_workspace(caller, workspace).await?;
        caller.require(Action::ReadState, view.resource(), "workspace")?;
        let wanted = |version: &&StateVersion| match status {
            Some(status) => version.status == status,
            None => !matches!(version.status, StateVersionStatus::Pending | StateVersionStatus::Discarded),
        };
        let versions = view.open.state.state_versions_of(view.workspace.id).filter(wanted).cloned();
        let listed = Listed::from_all(versions, page);
        Ok(listed.map(|version| StateVersionView { version, open: view.open.clone() }))
    }

    /// The bytes of a state, for whoever has a pass.
    pub async fn download_state(&self, pass: &Pass) -> Result<(StateVersion, Download), Error> {
        let (open, version) = self.version_of(pass, PassPurpose::DownloadState).await?;
        let download = self.state_bytes(&open, &version).await?;
        Ok((version, download))
    }

    /// A workspace's current state, if it has one.
    pub async fn download_current_state(
        &self,
        caller: &Caller,
        workspace: &WorkspaceRef,
    ) -> Result<Option<(StateVersion, Download)>, Error> {
        let view = self.find_workspace(caller, workspace).await?;
        caller.require(Action::ReadState, view.resource(), "workspace")?;
        let Some(version) = view.open.state.current_state_version(&view.workspace) else { return Ok(None) };
        Ok(Some((version.clone(), self.state_bytes(&view.open, version).await?)))
    }

    async fn state_bytes(&self, open: &OpenOrganization, version: &StateVersion) -> Result<Download, Error> {
        match version.status {
            StateVersionStatus::Finalized => self.read_state_bytes(open, version).await,
            _ => Err(Error::NotFound(WHAT)),
        }
    }

    pub async fn download_json_state(&self, pass: &Pass) -> Result<Download, Error> {
        let (open, version) = self.version_of(pass, PassPurpose::DownloadJsonState).await?;
        let key = json_state_key(&open, &version);
        let download = if version.has_json {
            self.blobs().read(&key, None).await.map_err(|error| blob_error(error.into()))?
        } else {
            None
        };
        download.ok_or(Error::NotFound(WHAT))
    }

    async fn version_of(&self, pass: &Pass, purpose: PassPurpose) -> Result<(OpenOrganization, StateVersion), Error> {
        let id: StateVersionId = pass.object(purpose)?;
        let site = self.read_site().await?;
        let organization = site.organization_at(id.home()).map(|entry| entry.id).ok_or(Error::NotFound(WHAT))?;
        let open = self.open_organization(&site, organization).await?;
        let version = open.state.state_versions.get(&id).cloned().ok_or(Error::NotFound(WHAT))?;
        Ok((open, version))
    }

    /// What a state's resources add up to.
    pub async fn resource_summary(&self, view: &StateVersionView) -> Result<Arc<ResourceSummary>, Error> {
        let version = &view.version;
        if let Some(known) = self.known_summary(version.id) {
            return Ok(known);
        }
        if version.status != StateVersionStatus::Finalized {
            return Ok(Arc::default());
        }
        let file: StateFile<IgnoredAny> = self.read_state(&view.open, version).await?;
        let summary = match file.contents {
            Contents::Plain(plain) => summarize(&plain.resources),
            Contents::Encrypted => ResourceSummary::default(),
        };
        Ok(self.remember_summary(version.id, summary))
    }

    /// All outputs of a state version, by name. Values of sensitive ones take the right to read the whole state.
    pub async fn outputs(&self, caller: &Caller, id: StateVersionId) -> Result<Vec<OutputView>, Error> {
        let open = self.organization_of(caller, id.home(), WHAT).await?;
        let version = open.state.state_versions.get(&id).cloned().ok_or(Error::NotFound(WHAT))?;
        let owner = open.state.workspaces.get(&version.workspace).ok_or(Error::NotFound(WHAT))?;
        let resource = Resource::Workspace(&open.state, owner);
        caller.require(Action::ReadOutputs, resource, WHAT)?;
        let sensitive_too = caller.may(Action::ReadState, resource).allowed;
        let view = StateVersionView { version, open: open.clone() };
        if sensitive_too { self.output_values(&view).await } else { self.read_outputs(&view).await }
    }

    /// The outputs of a workspace's current state, without values of sensitive ones; none if it has no state.
    pub async fn current_outputs(&self, caller: &Caller, workspace: &WorkspaceRef) -> Result<Vec<OutputView>, Error> {
        let view = self.find_workspace(caller, workspace).await?;
        caller.require(Action::ReadOutputs, view.resource(), "workspace")?;
        match view.open.state.current_state_version(&view.workspace).cloned() {
            Some(version) => self.read_outputs(&StateVersionView { version, open: view.open }).await,
            None => Ok(Vec::new()),
        }
    }

    /// One output with its value. A sensitive one takes the right to read the whole state.
    pub async fn output(&self, caller: &Caller, id: OutputId) -> Result<OutputView, Error> {
        let what = "output";
        let open = self.organization_of(caller, id.home(), what).await?;
        let version = open.state.state_versions.by().output.first(&id);
        let version = version.and_then(|id| open.state.state_versions.get(id)).cloned().ok_or(Error::NotFound(what))?;
        let owner = open.state.workspaces.get(&version.workspace).ok_or(Error::NotFound(what))?;
        let resource = Resource::Workspace(&open.state, owner);
        caller.require(Action::ReadOutputs, resource, what)?;
        let sensitive_too = caller.may(Action::ReadState, resource).allowed;
        let mut values = self.output_values(&StateVersionView { version, open: open.clone() }).await?;
        let at = values.iter().position(|output| output.id == id).ok_or(Error::NotFound(what))?;
        let mut output = values.swap_remove(at);
        if output.sensitive && !sensitive_too {
            output.value = None;
        }
        Ok(output)
    }

    async fn read_outputs(&self, view: &StateVersionView) -> Result<Vec<OutputView>, Error> {
        let mut outputs = self.output_values(view).await?;
        for output in &mut outputs {
            if output.sensitive {
                output.value = None;
            }
        }
        Ok(outputs)
    }

    async fn output_values(&self, view: &StateVersionView) -> Result<Vec<OutputView>, Error> {
        let version = &view.version;
        if version.outputs.is_empty() || version.status != StateVersionStatus::Finalized {
            return Ok(Vec::new());
        }
        let file: StateFile = self.read_state(&view.open, version).await?;
        let Contents::Plain(plain) = file.contents else { return Ok(Vec::new()) };
        let of = |(name, output): (String, taco_domain::state_file::Output)| OutputView {
            id: output_id(version.id, &name),
            name,
            sensitive: output.sensitive,
            type_name: output.type_name(),
            value: Some(output.value),
            detailed_type: Some(output.detailed_type),
        };
        Ok(plain.outputs.into_iter().map(of).collect())
    }

    /// What a workspace's current state manages, by address.
    pub async fn workspace_resources(
        &self,
        caller: &Caller,
        workspace: &WorkspaceRef,
        page: PageRequest,
    ) -> Result<Listed<ResourceView>, Error> {
        let view = self.find_workspace(caller, workspace).await?;
        caller.require(Action::ReadState, view.resource(), "workspace")?;
        let Some(version) = view.open.state.current_state_version(&view.workspace).cloned() else {
            return Ok(Listed::from_all([], page));
        };
        let file: StateFile<IgnoredAny> = self.read_state(&view.open, &version).await?;
        let resources = match file.contents {
            Contents::Plain(plain) => resources_of(&plain, &version),
            Contents::Encrypted => Vec::new(),
        };
        Ok(Listed::from_all(resources, page))
    }
}

fn resources_of(state: &PlainState<IgnoredAny>, version: &StateVersion) -> Vec<ResourceView> {
    let mut views = Vec::new();
    for resource in state.resources.iter().filter(|resource| resource.mode == Mode::Managed) {
        for index in &resource.instances {
            let address = address_of(resource, index.as_ref());
            let date = version.created_at.to_string();
            views.push(ResourceView {
                id: OutputId::derived(version.workspace.home(), &format!("{} {address}", version.workspace))
                    .to_string()
                    .replace(OutputId::PREFIX, "wsr"),
                name: resource.name.clone(),
                created_at: date.clone(),
                updated_at: date,
                module: resource.module_name(),
                provider: provider_name(&resource.provider).to_owned(),
                provider_type: resource.qualified_type(),
                modified_by_state_version_id: version.id,
                name_index: index.as_ref().map(|index| index.to_string().trim_matches('"').to_owned()),
                address,
            });
        }
    }
    views.sort_by(|one, other| one.address.cmp(&other.address));
    views
}

/// A resource's address as Terraform Cloud lists it: without the words `module`.
fn address_of(resource: &StateResource, index: Option<&IndexKey>) -> String {
    let within_module = StateResource { module: None, ..resource.clone() }.address(index);
    match &resource.module {
        Some(_) => format!("{}.{within_module}", resource.module_name()),
        None => within_module,
    }
}

/// `provider["registry.terraform.io/hashicorp/null"]` is called `hashicorp/null`.
fn provider_name(text: &str) -> &str {
    let source = text.split('"').nth(1).unwrap_or(text);
    source.split_once('/').map_or(source, |(_, name)| name)
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn origin_of(actor: &Actor) -> StateOrigin {
    match actor {
        Actor::Run { .. } => StateOrigin::Apply,
        _ => StateOrigin::Push,
    }
}

fn run_of(actor: &Actor) -> Option<RunId> {
    match actor {
        Actor::Run { run, .. } => Some(*run),
        _ => None,
    }
}

fn seen_after(mut open: OpenOrganization, version: StateVersion) -> StateVersionView {
    open.state = open.ledger.last_seen();
    StateVersionView { version, open }
}

fn check_write(
    owner: &Workspace,
    current: Option<&StateVersion>,
    claim: &Claim,
    new: StateIdentity<'_>,
    force: bool,
) -> Result<Verdict, Error> {
    let verdict = check_state_write(current.map(StateVersion::identity), owner.lock.as_ref(), claim, new, force);
    verdict.map_err(|conflict| match conflict {
        StateConflict::Lock(LockConflict::Unlocked) => {
            Error::Conflict("The workspace must be locked before a state is written: lock it first".to_owned())
        }
        other => Error::Conflict(other.to_string()),
    })
}

/// The record of a state that has arrived, if its description fits.
fn finished(write: &StateWrite, now: jiff::Timestamp) -> Result<(StateVersion, ResourceSummary), Error> {
    let StateWrite { new, file, stored, .. } = write;
    let contained = StateIdentity { serial: file.serial, lineage: &file.lineage, md5: &stored.md5 };
    check_description(new.description(), contained).map_err(|mismatch| {
        use taco_domain::state_rules::StateMismatch as M;
        let attribute = match &mismatch {
            M::Md5 { .. } => "md5",
            M::Serial { .. } => "serial",
        };
        Error::invalid(attribute, mismatch.to_string())
    })?;
    let plain = match &file.contents {
        Contents::Plain(plain) => Some(plain),
        Contents::Encrypted => None,
    };
    let outputs = plain.iter().flat_map(|plain| &plain.outputs).map(|(name, output)| OutputMetadata {
        id: output_id(write.id, name),
        name: name.clone(),
        sensitive: output.sensitive,
    });
    let version = StateVersion {
        id: write.id,
        workspace: write.workspace,
        status: StateVersionStatus::Finalized,
        serial: new.serial.unwrap_or(file.serial),
        lineage: new.description().lineage.unwrap_or(&file.lineage).to_owned(),
        md5: stored.md5.clone(),
        blob: write.blob.clone(),
        sha256: stored.sha256.clone(),
        size: stored.size,
        force: new.force.unwrap_or_default(),
        origin: write.origin,
        created_at: now,
        created_by: write.author,
        run: new.run,
        terraform_version: plain.map(|plain| plain.terraform_version.clone()),
        encrypted: plain.is_none(),
        resource_count: plain.map(PlainState::resource_count).unwrap_or_default(),
        outputs: outputs.collect(),
        has_json: false,
    };
    let summary = plain.map(|plain| summarize(&plain.resources)).unwrap_or_default();
    Ok((version, summary))
}

/// The same state with another serial and lineage; everything else keeps its exact text.
fn with_serial(state: &[u8], serial: u64, lineage: &str) -> Result<Bytes, String> {
    let mut fields: BTreeMap<String, Box<RawValue>> =
        serde_json::from_slice(state).map_err(|error| error.to_string())?;
    let raw = |value: serde_json::Value| serde_json::value::to_raw_value(&value).map_err(|error| error.to_string());
    fields.insert("serial".to_owned(), raw(serial.into())?);
    fields.insert("lineage".to_owned(), raw(lineage.into())?);
    Ok(serde_json::to_vec(&fields).map_err(|error| error.to_string())?.into())
}
