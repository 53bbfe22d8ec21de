//! States of applies that were given up, whose agents came back after someone had unlocked the workspace. They must not
//! become current any more: others may have gone on from the state before. But they may be the only ones that know of
//! what the apply made. So they are kept as state versions that are not current: people find them in the list of the
//! workspace's states, compare them with the current one, and download or restore them.

use std::error::Error as StdError;

use bytes::Bytes;
use futures::Stream;
use taco_domain::id::StateVersionId;
use taco_domain::lock::Claim;
use taco_domain::run::Run;
use taco_domain::state_version::{StateOrigin, StateVersion};
use taco_domain::{Author, OrganizationState};
use taco_ledger::Transaction;
use taco_tables::Record as _;

use crate::control_plane::ControlPlane;
use crate::error::Error;
use crate::new_state::NewState;
use crate::phases::PhaseCaller;
use crate::state_blobs::{no_state, state_key};
use crate::state_commits::{Arrived, StateWrite, finished};
use crate::state_versions::StateVersionView;
use crate::upload_slots::UploadKind;

impl ControlPlane {
    /// Keeps a state that comes too late to be the current one. The same bytes again change nothing.
    pub(crate) async fn rescue_state<E>(
        &self,
        caller: &PhaseCaller,
        run: &Run,
        body: impl Stream<Item = Result<Bytes, E>> + Send + 'static,
    ) -> Result<StateVersionView, Error>
    where
        E: Into<Box<dyn StdError + Send + Sync>> + Send + 'static,
    {
        let (org, author, now) = (caller.org.clone(), caller.caller.author(), self.now());
        let (run, workspace) = (run.id, run.workspace);
        let _slot = self.shared.upload_slots.take(org.id(), UploadKind::Phase).await?;
        let id = StateVersionId::within(workspace.organization_prefix(), self.random());
        let blob = id.to_string();
        let key = state_key(&org, &blob);
        let (stored, file) = self.store_state(&key, body).await?.map_err(|error| no_state(&error))?;
        let new = NewState { run: Some(run), ..NewState::default() };
        let arrived = Arrived { org: org.clone(), workspace, claim: Claim::Api(author), id, blob, stored, file };
        let mut write = StateWrite { caller: None, new, author, origin: StateOrigin::Rescue, arrived };
        let (version, summary) = match finished(&mut write, now) {
            Ok(finished) => finished,
            Err(error) => {
                self.remove_blob(&key).await;
                return Err(error);
            }
        };
        let decide = move |tx: &mut Transaction<OrganizationState>| {
            let state = tx.state();
            let mut run = state.runs.get(&run).cloned().ok_or(Error::NotFound(Run::NOUN))?;
            let of_run = state.state_versions.by().run.get(&run.id);
            let of_run: Vec<&StateVersion> = of_run.filter(|known| known.workspace == workspace).collect();
            if let Some(same) = of_run.iter().find(|known| known.sha256 == version.sha256) {
                return Ok((*same).clone());
            }
            if !of_run.iter().any(|known| known.origin == StateOrigin::Rescue) {
                run.note("state_rescued", Author::Taco, now);
                if let Some(entry) = run.history.last_mut() {
                    entry.description = Some(format!(
                        "its agent came back after the workspace was unlocked. The state that it sent is kept as {}, \
                         which is not the current state: compare it with what exists, and restore it if it is right",
                        version.id
                    ));
                }
                tx.put(&run);
            }
            tx.put(&version);
            Ok(version.clone())
        };
        let committed = org.commit(caller.caller.intent("state.rescue"), decide).await;
        // After an unclear answer the commit may name the blob all the same, so it stays.
        let is_refused =
            matches!(&committed, Err(error) if !matches!(error, Error::Unavailable(_) | Error::Corrupt(_)));
        let is_repeated = matches!(&committed, Ok(version) if version.id != id);
        if is_refused || is_repeated {
            self.remove_blob(&key).await;
        }
        let version = committed?;
        if !is_repeated {
            self.shared.summaries.insert(version.id, summary);
        }
        Ok(StateVersionView::after_commit(org, version))
    }
}
