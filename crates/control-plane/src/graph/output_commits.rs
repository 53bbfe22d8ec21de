//! Output commits: made in the transaction that makes a state current, so that no change of an output is without one.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Mutex, PoisonError};

use futures::{StreamExt as _, TryStreamExt as _, stream};
use serde_json::value::RawValue;
use taco_domain::OrganizationState;
use taco_domain::graph::output_commit::{OutputCommit, OutputSource, StateOutputs, next_output_commit};
use taco_domain::id::{StateVersionId, WorkspaceId};
use taco_domain::run::Run;
use taco_domain::state_file::{Contents, ResourceSummary, StateFile};
use taco_domain::state_version::{StateOrigin, StateVersion, StateVersionStatus};
use taco_ledger::Transaction;

use crate::control_plane::{ControlPlane, OrganizationSnapshot};
use crate::error::Error;
use crate::history::{HistoricKind, ListKey, WorkspaceList};

/// States of a workspace from before there were output commits that are taken in: its newest ones.
const MAX_TAKEN_IN: usize = 500;
/// States that are read at the same time.
const READ_AT_ONCE: usize = 4;

impl ControlPlane {
    /// The key under which an organization's outputs are digested.
    pub(crate) fn output_key(&self, org: &OrganizationSnapshot) -> [u8; 32] {
        self.hash_key().derive("outputs", &org.id().to_string())
    }

    pub(crate) fn digest_outputs<R>(
        &self,
        org: &OrganizationSnapshot,
        file: &StateFile<Box<RawValue>, R>,
        version: &StateVersion,
    ) -> StateOutputs {
        let key = self.output_key(org);
        match &file.contents {
            Contents::Plain(plain) => StateOutputs::of(&key, &plain.outputs),
            Contents::Encrypted => StateOutputs::encrypted(&key, &version.sha256),
        }
    }

    /// Makes the output commits of states that came before one that is about to be written.
    pub(crate) async fn take_in_earlier_outputs(
        &self,
        org: &OrganizationSnapshot,
        workspace: WorkspaceId,
    ) -> Result<(), Error> {
        self.take_in_first_outputs(org, workspace).await?;
        self.take_in_outputs(org, workspace).await
    }

    /// Makes the output commits of a workspace whose states were written before there were any.
    pub(crate) async fn take_in_first_outputs(
        &self,
        org: &OrganizationSnapshot,
        workspace: WorkspaceId,
    ) -> Result<(), Error> {
        let state = org.last_seen();
        if !has_outputs_to_take_in(&state, workspace) {
            return Ok(());
        }
        let versions = self.stored_versions(org, &state, workspace).await?;
        let reading = stream::iter(versions).map(|version| async move {
            let outputs = self.read_outputs_of(org, &version).await?;
            Ok::<_, Error>(outputs.map(|outputs| (version, outputs)))
        });
        let read: Vec<Option<(StateVersion, StateOutputs)>> = reading.buffered(READ_AT_ONCE).try_collect().await?;
        let decide = move |tx: &mut Transaction<OrganizationState>| {
            if has_outputs_to_take_in(tx.state(), workspace) {
                for (version, outputs) in read.iter().flatten() {
                    put_outputs(tx, version, outputs);
                }
            }
            Ok(())
        };
        org.commit(Self::own_intent("outputs.take-in"), decide).await
    }

    /// Makes the output commits of states that servers of an older version have written: those that came after the newest
    /// output commit and after what was examined last.
    pub(crate) async fn take_in_outputs(
        &self,
        org: &OrganizationSnapshot,
        workspace: WorkspaceId,
    ) -> Result<(), Error> {
        let known = self.shared.counted_outputs.newest(workspace);
        let versions = uncounted(&org.last_seen(), workspace, known);
        let Some(newest) = versions.last().map(|version| version.id) else { return Ok(()) };
        let reading = stream::iter(versions).map(|version| async move {
            let outputs = self.read_outputs_of(org, &version).await?;
            Ok::<_, Error>(outputs.map(|outputs| (version, outputs)))
        });
        let read: Vec<Option<(StateVersion, StateOutputs)>> = reading.buffered(READ_AT_ONCE).try_collect().await?;
        let read: Vec<(StateVersion, StateOutputs)> = read.into_iter().flatten().collect();
        if changes_outputs(&org.last_seen(), workspace, &read) {
            let decide = move |tx: &mut Transaction<OrganizationState>| {
                if tx.state().workspaces.contains(&workspace) {
                    let uncounted = uncounted(tx.state(), workspace, known);
                    let is_due = |version: &StateVersion| uncounted.iter().any(|due| due.id == version.id);
                    for (version, outputs) in read.iter().filter(|(version, _)| is_due(version)) {
                        put_outputs(tx, version, outputs);
                    }
                }
                Ok(())
            };
            org.commit(Self::own_intent("outputs.take-in"), decide).await?;
        }
        self.shared.counted_outputs.note(workspace, newest);
        Ok(())
    }

    /// Outputs of a stored state; `None` if its bytes are gone, or damaged: such a state must not keep others out.
    async fn read_outputs_of(
        &self,
        org: &OrganizationSnapshot,
        version: &StateVersion,
    ) -> Result<Option<StateOutputs>, Error> {
        if version.status != StateVersionStatus::Finalized {
            return Ok(None);
        }
        let read: Result<StateFile<Box<RawValue>, ResourceSummary>, Error> = self.read_state(org, version).await;
        match read {
            Ok(file) => Ok(Some(self.digest_outputs(org, &file, version))),
            Err(Error::Corrupt(error)) => {
                tracing::warn!(
                    event = "outputs_not_taken_in", state_version = %version.id, %error,
                    "the outputs of a state that cannot be read have no output commit"
                );
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    /// A workspace's newest state versions, oldest first, also those that left memory.
    async fn stored_versions(
        &self,
        org: &OrganizationSnapshot,
        state: &OrganizationState,
        workspace: WorkspaceId,
    ) -> Result<Vec<StateVersion>, Error> {
        let in_memory = state.state_versions_of(workspace);
        let mut versions: BTreeMap<_, StateVersion> =
            in_memory.map(|version| (ListKey::of_state(version).in_list(), version.clone())).collect();
        let list =
            WorkspaceList { workspace, kind: HistoricKind::StateVersions, fits: &|_, _| true, searches_texts: false };
        let mut historic = self.keys_in_history(org, &list).await?;
        historic.sort_by_key(|(key, _)| key.in_list());
        for (key, _) in historic.into_iter().take(MAX_TAKEN_IN) {
            let Ok(id) = StateVersionId::from_bytes(key.id) else { continue };
            let with_history = self.with_history(org.clone(), id).await?;
            if let Some(version) = with_history.state.state_versions.get(&id) {
                versions.entry(key.in_list()).or_insert_with(|| version.clone());
            }
        }
        // The list is newest first.
        let mut newest: Vec<StateVersion> = versions.into_values().take(MAX_TAKEN_IN).collect();
        newest.reverse();
        Ok(newest)
    }
}

/// True if a workspace has a state from before there were output commits, with outputs.
fn has_outputs_to_take_in(state: &OrganizationState, workspace: WorkspaceId) -> bool {
    if state.workspace_outputs.contains(&workspace) {
        return false;
    }
    let current = state.workspaces.get(&workspace).and_then(|owner| state.current_state_version(owner));
    current.is_some_and(|current| current.has_outputs() || current.encrypted)
}

/// The newest state version of each workspace whose outputs this server has compared with those before it. A hint: what it
/// does not know, it compares again.
#[derive(Default)]
pub(crate) struct CountedOutputs(Mutex<HashMap<WorkspaceId, StateVersionId>>);

impl CountedOutputs {
    fn newest(&self, workspace: WorkspaceId) -> Option<StateVersionId> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get(&workspace).copied()
    }

    pub(crate) fn note(&self, workspace: WorkspaceId, version: StateVersionId) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(workspace, version);
    }
}

/// State versions of a workspace whose outputs may be in no output commit, in the order in which they became current.
/// Serials tell that order; the clocks of servers do not.
fn uncounted(state: &OrganizationState, workspace: WorkspaceId, known: Option<StateVersionId>) -> Vec<StateVersion> {
    let owner = state.workspaces.get(&workspace);
    let Some(current) = owner.and_then(|owner| owner.current_state_version) else { return Vec::new() };
    let newest_commit = state.workspace_outputs.get(&workspace).map(|outputs| outputs.state_version);
    let examined = state.consumptions.get(&workspace).and_then(|examined| examined.state_version);
    let counted: Vec<StateVersionId> = [known, newest_commit, examined].into_iter().flatten().collect();
    if counted.contains(&current) {
        return Vec::new();
    }
    let serial = |id: &StateVersionId| state.state_versions.get(id).map(|version| version.serial);
    let last = counted.iter().filter_map(serial).max();
    let is_newer = |version: &&StateVersion| {
        version.id == current
            || (version.status == StateVersionStatus::Finalized
                && version.origin != StateOrigin::Rescue
                && last.is_none_or(|last| version.serial > last))
    };
    let mut newer: Vec<StateVersion> =
        state.state_versions_of(workspace).filter(is_newer).take(MAX_TAKEN_IN).cloned().collect();
    newer.sort_by_key(|version| (version.id == current, version.serial));
    newer
}

/// True if one of these states has other outputs than the newest output commit left.
fn changes_outputs(state: &OrganizationState, workspace: WorkspaceId, read: &[(StateVersion, StateOutputs)]) -> bool {
    let before = state.workspace_outputs.get(&workspace);
    let next = |version, outputs| next_output_commit(before, workspace, outputs, source_of(state, version));
    read.iter().any(|(version, outputs)| next(version, outputs).is_some())
}

fn source_of(state: &OrganizationState, version: &StateVersion) -> OutputSource {
    let run = version.run.and_then(|run| state.runs.get(&run));
    OutputSource {
        state_version: version.id,
        at: version.created_at,
        // The person behind a run says more than its number, which is told beside it.
        by: run.map_or(version.created_by, Run::person_behind),
        run: version.run,
    }
}

/// Puts the output commit that a state makes on becoming current, if it changes any output.
pub(crate) fn put_outputs(
    tx: &mut Transaction<OrganizationState>,
    version: &StateVersion,
    outputs: &StateOutputs,
) -> Option<OutputCommit> {
    let before = tx.state().workspace_outputs.get(&version.workspace);
    let source = source_of(tx.state(), version);
    if let Some((commit, outputs)) = next_output_commit(before, version.workspace, outputs, source) {
        tx.put(&commit);
        tx.put(&outputs);
        return Some(commit);
    }
    None
}
