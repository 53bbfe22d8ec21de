//! Bringing records back into memory, before something changes them.

use std::sync::{Arc, Mutex, PoisonError};

use serde_json::value::RawValue;
use taco_boxed::boxed;
use taco_domain::OrganizationState;
use taco_domain::history::{RestoredBundle, without_restored};
use taco_domain::id::WorkspaceId;
use taco_domain::permission::{Action, Resource};
use taco_ledger::{Intent, Transaction};
use taco_tables::{LooseRecords, RecordKey, State as _};

use super::lookup::HistoricId;
use super::parts::{Located, PartName, tables_of};
use super::rows::{Masked, run_flags};
use crate::caller::Caller;
use crate::control_plane::{ControlPlane, OrganizationSnapshot};
use crate::error::Error;

/// A record that leaves memory again between being brought back and being changed is brought back so often.
const MOST_ATTEMPTS: usize = 5;

/// A record that a verb changes, and what the caller must be allowed to do for that.
#[derive(Clone, Copy)]
pub(crate) struct ToChange {
    pub(crate) id: HistoricId,
    pub(crate) action: Action,
    pub(crate) what: &'static str,
}

impl ToChange {
    pub(crate) fn new(id: impl Into<HistoricId>, action: Action, what: &'static str) -> Self {
        Self { id: id.into(), action, what }
    }
}

#[boxed]
impl ControlPlane {
    /// Changes a record that may have left memory, for someone who may: brings it back first, and again if it leaves just
    /// before `decide` looks for it.
    pub(crate) async fn change_historic<T: Send + 'static>(
        &self,
        caller: &Caller,
        org: &OrganizationSnapshot,
        record: ToChange,
        intent: Intent,
        decide: impl FnMut(&mut Transaction<OrganizationState>) -> Result<T, Error> + Send + 'static,
    ) -> Result<T, Error> {
        let decide = Arc::new(Mutex::new(decide));
        let mut org = org.clone();
        for _ in 0..MOST_ATTEMPTS {
            let was_there = self.restore_for(caller, &org, record).await?;
            let decide = Arc::clone(&decide);
            let decide = move |tx: &mut Transaction<OrganizationState>| {
                let mut decide = decide.lock().unwrap_or_else(PoisonError::into_inner);
                (*decide)(tx)
            };
            let done = org.commit(intent.clone(), decide).await;
            org.state = org.last_seen();
            if done.is_ok() || !was_there || record.id.is_in_memory(&org) {
                return done;
            }
        }
        Err(Error::Conflict(format!("The {} was moved again and again; try again", record.what)))
    }

    /// Brings a record that left memory back for someone who is about to change it, if they may. Whether it is in memory
    /// then; if not, it is nowhere.
    async fn restore_for(&self, caller: &Caller, org: &OrganizationSnapshot, record: ToChange) -> Result<bool, Error> {
        let ToChange { id, action, what } = record;
        if id.is_in_memory(org) {
            return Ok(true);
        }
        if org.state.history_segments.is_empty() {
            return Ok(false);
        }
        let Some((located, bundle)) = self.historic_bundle(org, id).await? else { return Ok(false) };
        let with_it = org.clone().with_bundles([&*bundle]);
        let state = &with_it.state;
        let workspace =
            owner_of(&tables_of(&bundle)).and_then(|id| state.workspaces.get(&id)).ok_or(Error::NotFound(what))?;
        caller.require(action, Resource::Workspace(state, workspace), what)?;
        self.restore_bundle(org, located, bundle).await?;
        Ok(true)
    }

    /// Brings a record that left memory back for the server itself.
    pub(crate) async fn restore_unchecked(&self, org: &OrganizationSnapshot, id: HistoricId) -> Result<(), Error> {
        let mut org = org.clone();
        org.state = org.last_seen();
        if !id.is_in_memory(&org)
            && let Some((located, bundle)) = self.historic_bundle(&org, id).await?
        {
            self.restore_bundle(&org, located, bundle).await?;
        }
        Ok(())
    }

    async fn restore_bundle(
        &self,
        org: &OrganizationSnapshot,
        located: Located,
        bundle: Arc<LooseRecords>,
    ) -> Result<(), Error> {
        let bundle = tables_of(&bundle);
        let restored = RestoredBundle { id: RestoredBundle::id_of(&located.0, located.1.offset), at: self.now() };
        let decide = move |tx: &mut Transaction<OrganizationState>| {
            restore(tx, &restored, &bundle);
            Ok(())
        };
        org.commit(Self::own_intent("history.restore"), decide).await
    }

    /// Brings back every run that has sealed variables, so that they follow when the master key changes.
    pub(crate) async fn restore_sealed(&self, org: &OrganizationSnapshot) -> Result<(), Error> {
        let reader = self.history_of(org);
        let mut places = Vec::new();
        let masked = Masked::of(&org.state);
        for catalog in reader.catalogs(&org.state, PartName::Runs).await? {
            let sealed = catalog.rows().filter(|row| row.flags & run_flags::SEALED != 0);
            let counting = sealed.filter(|row| !masked.is_row(&catalog, row));
            places.extend(counting.map(|row| (catalog.page(row.place).to_owned(), row.place)));
        }
        for (located, bundle) in reader.bundles(places).await? {
            self.restore_bundle(org, located, bundle).await?;
        }
        Ok(())
    }
}

/// Puts the records of a bundle back, unless that was done already, or their workspace is gone.
fn restore(tx: &mut Transaction<OrganizationState>, restored: &RestoredBundle, bundle: &OrganizationState) {
    if tx.state().restored_bundles.contains(&restored.id) {
        return;
    }
    let mut put = |kind: &str, id: &str, value: &RawValue| {
        tx.put_json(&RecordKey { kind: kind.to_owned(), id: id.to_owned() }, value);
    };
    bundle.for_each_json(&mut put).expect("a record is plain data");
    let Some(history) = owner_of(bundle).and_then(|id| tx.state().workspace_histories.get(&id)) else { return };
    let (states, configurations) = (bundle.state_versions.len() as u64, bundle.configuration_versions.len() as u64);
    let history = without_restored(history, bundle.runs.iter().next(), states, configurations);
    tx.put(&history);
    tx.put(restored);
}

/// The workspace that the records of a bundle belong to.
fn owner_of(bundle: &OrganizationState) -> Option<WorkspaceId> {
    let of_run = bundle.runs.iter().map(|run| run.workspace);
    let of_states = bundle.state_versions.iter().map(|version| version.workspace);
    let of_configurations = bundle.configuration_versions.iter().map(|version| version.workspace);
    of_run.chain(of_states).chain(of_configurations).next()
}
