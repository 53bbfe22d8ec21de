//! Configurations: announce, upload, list, read, give up.

pub(crate) mod configuration_archives;

use std::error::Error as StdError;

use bytes::Bytes;
use futures::Stream;
use jiff::Timestamp;
use serde::Deserialize;
use taco_boxed::boxed;
use taco_domain::OrganizationState;
use taco_domain::configuration_version::{ConfigurationStatus, ConfigurationVersion, UploadedArchive};
use taco_domain::id::{ConfigurationVersionId, RunId};
use taco_domain::permission::{Action, Actor, Resource};
use taco_domain::run::{Run, RunSource};
use taco_domain::state_version::{BackingDataAction, TransitionNotAllowed};
use taco_domain::workspace::Workspace;
use taco_ledger::bucket::Download;
use taco_ledger::{Intent, Transaction};
use taco_tables::Record as _;

use crate::caller::Caller;
use crate::configuration_archives::{StoredArchive, unit_contents};
use crate::control_plane::{ControlPlane, OrganizationSnapshot};
use crate::error::Error;
use crate::find::find;
use crate::history::{HistoricKind, ListKey, ToChange, WorkspaceList};
use crate::page::{Listed, PageRequest};
use crate::run_flow::put_run_and_follow_up;
use crate::signed_url_token::{SignedUrlPurpose, SignedUrlToken};
use crate::upload_slots::UploadKind;
use crate::workspace_view::WorkspaceRef;

const WHAT: &str = ConfigurationVersion::NOUN;

/// A configuration as a door shows it.
#[derive(Clone)]
pub struct ConfigurationVersionView {
    pub version: ConfigurationVersion,
    pub org: OrganizationSnapshot,
}

/// The attributes of a request that announces a configuration, spelled as on the wire.
#[derive(Clone, Default, Deserialize, Debug)]
#[serde(rename_all = "kebab-case", default)]
pub struct NewConfiguration {
    /// As in Terraform Cloud, a run starts unless the client says otherwise.
    pub auto_queue_runs: Option<bool>,
    pub speculative: Option<bool>,
    pub provisional: Option<bool>,
}

/// Action on an archive that is no longer needed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ConfigurationAction {
    Archive,
    BackingData(BackingDataAction),
}

impl ConfigurationAction {
    fn status_after(self, status: ConfigurationStatus) -> Result<ConfigurationStatus, TransitionNotAllowed> {
        match self {
            Self::Archive => status.archived(),
            Self::BackingData(action) => status.after(action),
        }
    }

    /// Runs can no longer use it afterwards.
    fn takes_archive(self) -> bool {
        !matches!(self, Self::BackingData(BackingDataAction::Restore))
    }
}

/// Writing.
#[boxed]
impl ControlPlane {
    /// Announces a configuration whose archive will follow.
    pub async fn create_configuration_version(
        &self,
        caller: &Caller,
        workspace: &WorkspaceRef,
        new: NewConfiguration,
        source: RunSource,
    ) -> Result<ConfigurationVersionView, Error> {
        let view = self.find_workspace(caller, workspace).await?;
        let (mut org, workspace, now) = (view.org, view.workspace.id, self.now());
        let id = ConfigurationVersionId::within(workspace.organization_prefix(), self.random());
        let change = org.change(caller, "configuration.announce", now, move |tx| {
            let owner = tx.workspace_of::<Workspace>(&workspace, Action::QueuePlan)?;
            let (state, asker) = (tx.state(), tx.caller());
            let version = ConfigurationVersion {
                id,
                workspace,
                number: state.next_configuration_number(workspace),
                status: ConfigurationStatus::Pending,
                speculative: new.speculative.unwrap_or_default(),
                provisional: new.provisional.unwrap_or_default(),
                auto_queue_runs: new.auto_queue_runs.unwrap_or(true),
                source: source.to_string(),
                created_at: now,
                created_by: asker.author(),
                blob: String::new(),
                has_readme: false,
                size: 0,
                sha256: String::new(),
                creator_may_apply: asker.may(Action::ApplyRun, Resource::Workspace(state, &owner)).allowed,
                uploaded_at: None,
                error: None,
                error_message: None,
                contents: None,
                shares_archive: false,
            };
            tx.put(&version);
            Ok(version)
        });
        let version = change.await?;
        Ok(ConfigurationVersionView { version, org })
    }

    /// Takes the archive of an announced configuration, and starts a run if that was wished for. It may be sent again
    /// as long as no run uses it.
    pub async fn upload_configuration<E>(
        &self,
        pass: &SignedUrlToken,
        body: impl Stream<Item = Result<Bytes, E>> + Send + 'static,
    ) -> Result<ConfigurationVersionView, Error>
    where
        E: Into<Box<dyn StdError + Send + Sync>> + Send + 'static,
    {
        let id: ConfigurationVersionId = pass.object(SignedUrlPurpose::UploadConfiguration)?;
        let mut org = self.organization_unchecked(id.organization_prefix(), WHAT).await?;
        let version = org.get::<ConfigurationVersion>(&id)?.clone();
        let workspace = org.state.workspaces.get(&version.workspace).ok_or(Error::NotFound(WHAT))?;
        self.holder_of(pass, &org, Action::QueuePlan, &workspace.id, WHAT)?;
        let _slot = self.shared.upload_slots.take(org.id(), UploadKind::Configuration).await?;
        // Each attempt has a blob of its own, so that a second one cannot spoil the first.
        let attempt = RunId::from_random(self.random());
        let blob = format!("{}-{}", id.characters(), attempt.characters());
        let working_directory = workspace.working_directory.clone();
        let archive = self.store_archive(&org, &blob, &working_directory, body).await?;
        let archive = archive.map_err(|error| error.to_string());
        let has_readme = archive.as_ref().is_ok_and(|archive| archive.has_readme);
        let run = RunId::within(id.organization_prefix(), self.random());
        let arrived = Arrived { blob: blob.clone(), archive, now: self.now(), run, working_directory };
        let intent = Intent { actor: version.created_by.to_string(), action: "configuration.upload", request: None };
        // In the name of the one who announced it, who need not be there any more.
        let committed = org.commit(intent, move |tx| take_archive(tx, id, &arrived)).await;
        match &committed {
            Ok(Taken { version, replaced }) if version.blob == blob => {
                if let Some(old) = replaced {
                    self.remove_archive(&org, &old.blob, old.has_readme).await;
                }
            }
            // After an unclear answer the record may name the new one or the old one, so both stay.
            Err(Error::Unavailable(_) | Error::Corrupt(_)) => {}
            Ok(_) | Err(_) => self.remove_archive(&org, &blob, has_readme).await,
        }
        let Taken { version, .. } = committed?;
        match version.error_message.clone().filter(|_| version.status == ConfigurationStatus::Errored) {
            Some(detail) => Err(Error::Invalid { pointer: String::new(), detail }),
            None => {
                org.state = org.last_seen();
                Ok(ConfigurationVersionView { version, org })
            }
        }
    }

    /// Gives up an archive that is no longer needed, or takes that back.
    pub async fn change_configuration(
        &self,
        caller: &Caller,
        id: ConfigurationVersionId,
        action: ConfigurationAction,
    ) -> Result<(), Error> {
        let mut org = self.authorized_organization(caller, id.organization_prefix(), WHAT).await?;
        let record = ToChange::new(id, Action::ApplyRun, WHAT);
        let change = self.change_restored(caller, &mut org, record, "configuration.give-up", move |tx| {
            let version: ConfigurationVersion = tx.get(&id)?;
            tx.workspace_of::<ConfigurationVersion>(&version.workspace, Action::ApplyRun)?;
            let status = action.status_after(version.status).map_err(|error| refused(error.to_string()))?;
            if action.takes_archive() {
                check_is_unused(tx.state(), &version)?;
            }
            tx.put(&ConfigurationVersion { status, ..version.clone() });
            Ok((status, version.blob, version.has_readme, version.shares_archive))
        });
        let (status, blob, has_readme, shares_archive) = change.await?;
        let gone = matches!(status, ConfigurationStatus::Archived | ConfigurationStatus::BackingDataPermanentlyDeleted);
        if gone && !blob.is_empty() && !shares_archive {
            self.remove_archive(&org, &blob, has_readme).await;
        }
        Ok(())
    }
}

/// Reading.
#[boxed]
impl ControlPlane {
    pub async fn configuration_version(
        &self,
        caller: &Caller,
        id: ConfigurationVersionId,
    ) -> Result<ConfigurationVersionView, Error> {
        self.configuration_for(caller, id, Action::ReadRuns).await
    }

    async fn configuration_for(
        &self,
        caller: &Caller,
        id: ConfigurationVersionId,
        action: Action,
    ) -> Result<ConfigurationVersionView, Error> {
        let org = self.authorized_organization(caller, id.organization_prefix(), WHAT).await?;
        let org = self.with_history(org, id).await?;
        let version = org.get::<ConfigurationVersion>(&id)?.clone();
        let owner = org.state.workspaces.get(&version.workspace).ok_or(Error::NotFound(WHAT))?;
        caller.require(action, Resource::Workspace(&org.state, owner), WHAT)?;
        Ok(ConfigurationVersionView { version, org })
    }

    /// The configuration of the run that a run task is asked about, for that task.
    async fn configuration_asked_about(
        &self,
        caller: &Caller,
        id: ConfigurationVersionId,
    ) -> Result<ConfigurationVersionView, Error> {
        let view = self.run_asked_about(caller).await?;
        caller.require(Action::DownloadConfiguration, view.resource(), WHAT)?;
        if view.run.configuration_version != id {
            return Err(Error::NotFound(WHAT));
        }
        let version = view.org.get::<ConfigurationVersion>(&id)?.clone();
        Ok(ConfigurationVersionView { version, org: view.org })
    }

    /// A workspace's configurations, newest first.
    pub async fn configuration_versions(
        &self,
        caller: &Caller,
        workspace: &WorkspaceRef,
        page: PageRequest,
    ) -> Result<Listed<ConfigurationVersionView>, Error> {
        let view = self.workspace_with_runs(caller, workspace).await?;
        let in_memory = view.org.state.configurations_of(view.workspace.id);
        let in_memory = in_memory.map(|version| ListKey::by_number(version.number, version.id.to_bytes())).collect();
        let list = WorkspaceList {
            workspace: view.workspace.id,
            kind: HistoricKind::ConfigurationVersions,
            fits: &|_, _| true,
            searches_texts: false,
        };
        let listed = self.list_workspace(view.org, &list, in_memory, page).await?;
        let version = |id: &[u8; 16]| {
            let id = ConfigurationVersionId::from_bytes(*id).ok()?;
            let version = listed.org.state.configuration_versions.get(&id)?.clone();
            Some(ConfigurationVersionView { version, org: listed.org.clone() })
        };
        Ok(Listed { items: listed.ids.iter().filter_map(version).collect(), page, total: listed.total })
    }

    /// The archive. It may contain any file next to the configuration, so it takes more than reading.
    pub async fn download_configuration(&self, caller: &Caller, id: ConfigurationVersionId) -> Result<Download, Error> {
        let view = match caller.actor {
            Actor::RunTask { .. } => self.configuration_asked_about(caller, id).await?,
            _ => self.configuration_for(caller, id, Action::DownloadConfiguration).await?,
        };
        if !view.version.is_usable() {
            return Err(Error::NotFound(WHAT));
        }
        self.read_archive(&view.org, &view.version).await
    }
}

/// An archive that is in the bucket and in no record yet, or what is wrong with it.
struct Arrived {
    blob: String,
    archive: Result<StoredArchive, String>,
    now: Timestamp,
    /// The id of the run that may follow.
    run: RunId,
    working_directory: String,
}

/// Result of an upload.
struct Taken {
    version: ConfigurationVersion,
    /// The version as it was, if it had another archive, which nothing names any more.
    replaced: Option<ConfigurationVersion>,
}

fn take_archive(
    tx: &mut Transaction<OrganizationState>,
    id: ConfigurationVersionId,
    arrived: &Arrived,
) -> Result<Taken, Error> {
    let before = find::<ConfigurationVersion, _>(tx.state(), &id, WHAT)?.clone();
    let repeated = |archive: &StoredArchive| before.is_usable() && before.sha256 == archive.stored.sha256;
    if arrived.archive.as_ref().is_ok_and(repeated) {
        return Ok(Taken { version: before, replaced: None });
    }
    let in_use = tx.state().runs.by().configuration_version.first(&id).is_some();
    if in_use || !before.waits_for_archive() {
        return Err(Error::Conflict("The configuration version is not waiting for an archive any more".to_owned()));
    }
    let StoredArchive { stored, has_readme, contents } = match &arrived.archive {
        Ok(archive) => archive,
        Err(why) => {
            let version = before.with_invalid_archive(why.clone());
            tx.put(&version);
            return Ok(Taken { version, replaced: None });
        }
    };
    let replaced = (!before.blob.is_empty()).then(|| before.clone());
    let archive = UploadedArchive {
        blob: arrived.blob.clone(),
        has_readme: *has_readme,
        size: stored.size,
        sha256: stored.sha256.clone(),
        contents: unit_contents(contents, &arrived.working_directory),
    };
    let version = before.with_archive(archive, arrived.now);
    tx.put(&version);
    let run = tx.state().uploaded_run(arrived.run, &version, arrived.now).filter(|_| version.auto_queue_runs);
    if let Some(run) = run {
        put_run_and_follow_up(tx, run, arrived.now)?;
    }
    Ok(Taken { version, replaced })
}

/// The configuration that the next run would use stays, and so does one that an open run uses.
fn check_is_unused(state: &OrganizationState, version: &ConfigurationVersion) -> Result<(), Error> {
    let why = match need_for(state, version) {
        None => return Ok(()),
        Some(Need::IsCurrent) => "configuration could not be archived because it is current".to_owned(),
        Some(Need::UsedBy(run)) => format!("{} uses the configuration and is {}", run.id, run.status),
    };
    Err(refused(format!("transition not allowed: {why}")))
}

/// Reason why an archive has to stay.
enum Need<'a> {
    IsCurrent,
    UsedBy(&'a Run),
}

fn need_for<'a>(state: &'a OrganizationState, version: &ConfigurationVersion) -> Option<Need<'a>> {
    let current = state.usable_configuration(version.workspace).is_some_and(|current| current.id == version.id);
    if current {
        return Some(Need::IsCurrent);
    }
    let mut runs = state.runs.by().configuration_version.get(&version.id);
    runs.find(|run| !run.status.is_final()).map(Need::UsedBy)
}

/// For pages that show what is out of reach and why.
impl ConfigurationVersionView {
    /// True if the next run of its workspace uses it.
    pub fn is_current(&self) -> bool {
        let usable = self.org.state.usable_configuration(self.version.workspace);
        usable.is_some_and(|current| current.id == self.version.id)
    }

    /// True if the action would change anything about a configuration in this status.
    pub fn is_possible(&self, action: ConfigurationAction) -> bool {
        let status = self.version.status;
        action.status_after(status).is_ok_and(|after| after != status)
    }

    /// `Ok` if the caller could do this with the archive now, otherwise the reason why not.
    pub fn choice(&self, caller: &Caller, action: ConfigurationAction) -> Result<(), String> {
        let state = &self.org.state;
        let owner = state.workspaces.get(&self.version.workspace).ok_or("The workspace is gone")?;
        let decision = caller.may(Action::ApplyRun, Resource::Workspace(state, owner));
        if !decision.allowed {
            return Err(decision.reason.into_owned());
        }
        action.status_after(self.version.status).map_err(|error| error.to_string())?;
        match need_for(state, &self.version).filter(|_| action.takes_archive()) {
            Some(Need::IsCurrent) => Err("The next run uses it".to_owned()),
            Some(Need::UsedBy(run)) => Err(format!("{} uses it and is {}", run.id, run.status)),
            None => Ok(()),
        }
    }
}

fn refused(detail: String) -> Error {
    Error::Invalid { pointer: "/data".to_owned(), detail }
}
