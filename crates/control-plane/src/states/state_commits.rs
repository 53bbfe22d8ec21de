//! Commits that make a stored state the current one, however it was uploaded.

use serde_json::value::RawValue;
use taco_domain::attribute::as_plain_text;
use taco_domain::graph::dependency::Dependency;
use taco_domain::graph::output_commit::UsedOutputs;
use taco_domain::id::{StateVersionId, WorkspaceId};
use taco_domain::lock::{Claim, LockConflict};
use taco_domain::permission::{Action, Resource};
use taco_domain::state_file::{Contents, ResourceSummary, StateFile};
use taco_domain::state_rules::{
    StateConflict, StateIdentity, StateMismatch, Verdict, check_contained, check_description, check_filing,
    check_state_write,
};
use taco_domain::state_version::{OutputMetadata, StateOrigin, StateVersion, StateVersionStatus, listed_outputs};
use taco_domain::workspace::Workspace;
use taco_domain::{Author, OrganizationState};
use taco_ledger::blob::Stored;
use taco_ledger::{Intent, Transaction};
use taco_tables::Record as _;

use crate::caller::Caller;
use crate::control_plane::{ControlPlane, OrganizationSnapshot};
use crate::error::Error;
use crate::new_state::{NewState, check_run};
use crate::output_commits::put_outputs;
use crate::run_flow::start_followers;
use crate::state_blobs::{json_state_key, state_key};
use crate::state_versions::{StateVersionView, WHAT};

/// More of what a state says about the program that wrote it is not remembered.
const MAX_VERSION_CHARACTERS: usize = 64;

/// A state that is stored and was read. Nothing names it yet.
pub(crate) struct Arrived {
    pub(crate) org: OrganizationSnapshot,
    pub(crate) workspace: WorkspaceId,
    pub(crate) claim: Claim,
    pub(crate) id: StateVersionId,
    pub(crate) blob: String,
    pub(crate) stored: Stored,
    pub(crate) file: StateFile<Box<RawValue>, ResourceSummary>,
}

/// A state that has arrived, on its way into the ledger.
pub(crate) struct StateWrite {
    /// Caller who writes, for the permission check; `None` if none is needed.
    pub(crate) caller: Option<Caller>,
    pub(crate) new: NewState,
    pub(crate) author: Author,
    pub(crate) origin: StateOrigin,
    pub(crate) arrived: Arrived,
}

impl ControlPlane {
    /// Makes a stored state the current one. The one place where that happens: it checks the lock, the lineage, that
    /// the serial goes up, and that the description fits the bytes.
    pub(crate) async fn commit_state(&self, intent: Intent, mut write: StateWrite) -> Result<StateVersionView, Error> {
        let Arrived { org, blob, .. } = &write.arrived;
        let (org, blob, key) = (org.clone(), blob.clone(), state_key(org, blob));
        let now = self.now();
        let prepared = match finished(&mut write, now) {
            Ok(finished) => self.take_in_earlier_outputs(&org, write.arrived.workspace).await.map(|()| finished),
            Err(error) => Err(error),
        };
        let (version, summary) = match prepared {
            Ok(prepared) => prepared,
            Err(error) => {
                self.remove_blob(&key).await;
                return Err(error);
            }
        };
        let outputs = self.digest_outputs(&org, &write.arrived.file, &version);
        let StateWrite { caller, new, arrived: Arrived { workspace, claim, file, stored, .. }, .. } = write;
        let (serial, lineage, md5) = (file.serial, file.lineage, stored.md5);
        let decide = move |tx: &mut Transaction<OrganizationState>| {
            let state = tx.state();
            let owner = state.workspaces.get(&workspace).cloned().ok_or(Error::NotFound(Workspace::NOUN))?;
            if let Some(caller) = &caller {
                caller.require(Action::WriteState, Resource::Workspace(state, &owner), "workspace")?;
            }
            check_run(state, workspace, version.run)?;
            let announced = state.state_versions.get(&version.id);
            if let Some(announced) = announced
                && announced.status != StateVersionStatus::Pending
            {
                if announced.status == StateVersionStatus::Finalized && announced.sha256 == version.sha256 {
                    return Ok((announced.clone(), None));
                }
                return Err(Error::Conflict("The state version is not waiting for a state any more".to_owned()));
            }
            let current = state.current_state_version(&owner);
            let force = new.force.unwrap_or_default();
            if let Verdict::SameAgain = check_write(&owner, current, &claim, version.identity(), force)? {
                return current.cloned().map(|current| (current, None)).ok_or(Error::NotFound(WHAT));
            }
            let contained = StateIdentity { serial, lineage: &lineage, md5: &md5 };
            check_filing(current.map(StateVersion::identity), version.identity(), contained, force).map_err(refused)?;
            let created_at = announced.map_or(version.created_at, |announced| announced.created_at);
            let with_json = announced.filter(|announced| announced.has_json).cloned();
            let (kept, left) = if version.encrypted { (None, with_json) } else { (with_json, None) };
            let (has_json, json_blob) = (kept.is_some(), kept.map(|kept| kept.json_blob).unwrap_or_default());
            let version = StateVersion { created_at, has_json, json_blob, ..version.clone() };
            let commit = put_outputs(tx, &version, &outputs);
            // What a run changed, others follow when it is over.
            if let Some(commit) = commit.filter(|commit| commit.run.is_none()) {
                let is_changed = |used: &UsedOutputs| commit.changes.keys().any(|name| used.includes(name));
                let edges: Vec<Dependency> = tx.state().followers(workspace, is_changed).cloned().collect();
                start_followers(tx, &edges, &commit, now);
            }
            tx.put(&version);
            tx.put(&Workspace {
                current_state_version: Some(version.id),
                resource_count: version.resource_count,
                ..owner
            });
            Ok((version, left))
        };
        let committed = org.commit(intent, decide).await;
        // After an unclear answer the commit may name the blob all the same, so it stays.
        let is_refused =
            matches!(&committed, Err(error) if !matches!(error, Error::Unavailable(_) | Error::Corrupt(_)));
        let repeated = matches!(&committed, Ok((version, _)) if version.blob != blob);
        if is_refused || repeated {
            self.remove_blob(&key).await;
        }
        let (version, json_left) = committed?;
        self.shared.counted_outputs.note(workspace, version.id);
        if let Some(announced) = json_left {
            self.remove_blob(&json_state_key(&org, &announced)).await;
        }
        if !repeated {
            self.shared.summaries.insert(version.id, summary);
        }
        Ok(StateVersionView::after_commit(org, version))
    }
}

pub(crate) fn check_write(
    owner: &Workspace,
    current: Option<&StateVersion>,
    claim: &Claim,
    new: StateIdentity<'_>,
    force: bool,
) -> Result<Verdict, Error> {
    let verdict = check_state_write(current.map(StateVersion::identity), owner.lock.as_ref(), claim, new, force);
    verdict.map_err(refused)
}

fn refused(conflict: StateConflict) -> Error {
    match conflict {
        StateConflict::Lock(LockConflict::Unlocked) => {
            Error::Conflict("The workspace must be locked before a state is written: lock it first".to_owned())
        }
        StateConflict::Description(mismatch) => does_not_fit(&mismatch),
        other => Error::Conflict(other.to_string()),
    }
}

fn does_not_fit(mismatch: &StateMismatch) -> Error {
    let attribute = match mismatch {
        StateMismatch::Md5 { .. } => "md5",
        StateMismatch::Serial { .. } => "serial",
    };
    Error::invalid(attribute, mismatch.to_string())
}

/// The record of a state that has arrived, if its description fits, and what its resources add up to.
pub(crate) fn finished(write: &mut StateWrite, now: jiff::Timestamp) -> Result<(StateVersion, ResourceSummary), Error> {
    let StateWrite { new, arrived, .. } = write;
    let Arrived { file, stored, .. } = arrived;
    let contained = StateIdentity { serial: file.serial, lineage: &file.lineage, md5: &stored.md5 };
    new.description().check()?;
    check_contained(contained.serial, contained.lineage)?;
    check_description(new.description(), contained).map_err(|mismatch| does_not_fit(&mismatch))?;
    let plain = match &file.contents {
        Contents::Plain(plain) => Some(plain),
        Contents::Encrypted => None,
    };
    let listed = match plain {
        None => Ok(vec![OutputMetadata::encrypted(arrived.id)]),
        Some(plain) => {
            listed_outputs(arrived.id, plain.outputs.iter().map(|(name, output)| (name.as_str(), output.sensitive)))
        }
    };
    // A state that its client wrote is kept, whatever is in it: refusing it would lose someone's work.
    let (outputs, unlisted_outputs) = match listed {
        Ok(outputs) => (outputs, None),
        Err(number) => (Vec::new(), Some(number)),
    };
    let version = StateVersion {
        id: arrived.id,
        workspace: arrived.workspace,
        status: StateVersionStatus::Finalized,
        serial: new.serial.unwrap_or(file.serial),
        lineage: new.description().lineage.unwrap_or(&file.lineage).to_owned(),
        md5: stored.md5.clone(),
        blob: arrived.blob.clone(),
        sha256: stored.sha256.clone(),
        size: stored.size,
        force: new.force.unwrap_or_default(),
        origin: write.origin,
        created_at: now,
        created_by: write.author,
        run: new.run,
        terraform_version: plain.map(|plain| as_plain_text(&plain.terraform_version, MAX_VERSION_CHARACTERS)),
        encrypted: plain.is_none(),
        resource_count: plain.map(|plain| plain.resources.managed()).unwrap_or_default(),
        outputs,
        unlisted_outputs,
        has_json: false,
        json_blob: String::new(),
        revealed: None,
    };
    let summary = match &mut write.arrived.file.contents {
        Contents::Plain(plain) => std::mem::take(&mut plain.resources),
        Contents::Encrypted => ResourceSummary::default(),
    };
    Ok((version, summary))
}
