//! States on their way in: announced, or sent at once. What is announced comes through `state_uploads`, and
//! `state_commits` makes it current.

use std::error::Error as StdError;

use bytes::Bytes;
use futures::Stream;
use taco_boxed::boxed;
use taco_domain::id::{RunId, StateVersionId, WorkspaceId};
use taco_domain::lock::{Claim, check_lock};
use taco_domain::permission::{Action, Actor, Resource};
use taco_domain::state_rules::{StateIdentity, Verdict};
use taco_domain::state_version::{StateOrigin, StateVersion, StateVersionStatus};
use taco_domain::workspace::Workspace;
use taco_tables::Record as _;

use crate::caller::Caller;
use crate::control_plane::ControlPlane;
use crate::error::Error;
use crate::new_state::{NewState, check_run};
use crate::state_blobs::{no_state, state_key};
use crate::state_commits::{Arrived, StateWrite, check_write};
use crate::state_versions::{StateVersionView, WHAT};
use crate::upload_slots::UploadKind;
use crate::workspace_locks::conflict;
use crate::workspace_view::WorkspaceRef;

#[boxed]
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
        let mut org = self.authorized_organization(caller, workspace.organization_prefix(), Workspace::NOUN).await?;
        let (id, now) = (StateVersionId::within(workspace.organization_prefix(), self.random()), self.now());
        let author = caller.author();
        let change = org.change(caller, "state.announce", now, move |tx| {
            let owner = tx.workspace_of::<Workspace>(&workspace, Action::WriteState)?;
            let state = tx.state();
            let described = new.description();
            described.check()?;
            check_run(state, workspace, new.run)?;
            let current = state.current_state_version(&owner);
            let identity = StateIdentity { serial, lineage: described.lineage.unwrap_or_default(), md5: &md5 };
            // If the request does not name the lineage, the bytes will: until then it may well be the right one.
            let lineage = described.lineage.or(current.map(|current| current.lineage.as_str()));
            let assumed = StateIdentity { lineage: lineage.unwrap_or_default(), ..identity };
            let force = new.force.unwrap_or_default();
            let claim = Claim::Api(author);
            if let Verdict::SameAgain = check_write(&owner, current, &claim, assumed, force)? {
                return current.cloned().ok_or(Error::NotFound(WHAT));
            }
            let pending = state.state_versions.by().pending.get(&workspace);
            let pending: Vec<_> = pending.collect();
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
                origin: origin_of(&tx.caller().actor),
                created_at: now,
                created_by: author,
                run: new.run.or(run_of(&tx.caller().actor)),
                terraform_version: None,
                encrypted: false,
                resource_count: 0,
                outputs: Vec::new(),
                unlisted_outputs: None,
                has_json: false,
                json_blob: String::new(),
                revealed: None,
            };
            tx.put(&version);
            Ok(version)
        });
        let version = change.await?;
        Ok(StateVersionView { version, org })
    }

    /// Writes a state through the API. Its attributes may follow the bytes in the request, so `describe` is asked when
    /// they have arrived.
    pub async fn write_state<B, E>(
        &self,
        caller: &Caller,
        workspace: WorkspaceId,
        body: impl Stream<Item = Result<Bytes, B>> + Send + 'static,
        describe: impl FnOnce() -> Result<NewState, E> + Send,
    ) -> Result<StateVersionView, E>
    where
        B: Into<Box<dyn StdError + Send + Sync>> + Send + 'static,
        E: From<Error>,
    {
        let claim = Claim::Api(caller.author());
        let arrived = self.receive_state(caller, workspace, claim, body).await?;
        match describe() {
            Ok(new) => {
                let new = NewState { run: new.run.or(run_of(&caller.actor)), ..new };
                Ok(self.commit_arrived(caller, arrived, new, origin_of(&caller.actor)).await?)
            }
            Err(error) => {
                self.remove_blob(&state_key(&arrived.org, &arrived.blob)).await;
                Err(error)
            }
        }
    }

    /// Writes a state through the `http` backend. `lock_id` is the lock that the client holds, if it locks at all.
    pub async fn write_state_with<B>(
        &self,
        caller: &Caller,
        wanted: &WorkspaceRef,
        lock_id: Option<String>,
        md5: Option<String>,
        body: impl Stream<Item = Result<Bytes, B>> + Send + 'static,
    ) -> Result<StateVersionView, Error>
    where
        B: Into<Box<dyn StdError + Send + Sync>> + Send + 'static,
    {
        let workspace = self.find_workspace(caller, wanted).await?.workspace.id;
        let claim = Claim::Http { author: caller.author(), lock_id };
        let arrived = self.receive_state(caller, workspace, claim, body).await?;
        let new = NewState { md5, ..NewState::default() };
        self.commit_arrived(caller, arrived, new, StateOrigin::Push).await
    }

    /// Stores the bytes of a state that the caller may write. Nothing names them yet.
    pub(crate) async fn receive_state<B>(
        &self,
        caller: &Caller,
        workspace: WorkspaceId,
        claim: Claim,
        body: impl Stream<Item = Result<Bytes, B>> + Send + 'static,
    ) -> Result<Arrived, Error>
    where
        B: Into<Box<dyn StdError + Send + Sync>> + Send + 'static,
    {
        let org = self.authorized_organization(caller, workspace.organization_prefix(), "workspace").await?;
        let owner = org.state.workspaces.get(&workspace).ok_or(Error::NotFound(Workspace::NOUN))?;
        // Both are checked again in the transaction; here they save an upload to the bucket that is not permitted.
        caller.require(Action::WriteState, Resource::Workspace(&org.state, owner), "workspace")?;
        check_lock(owner.lock.as_ref(), &claim).map_err(conflict)?;
        let kind = if matches!(caller.actor, Actor::Run { .. }) { UploadKind::Phase } else { UploadKind::State };
        let _slot = self.shared.upload_slots.take(org.id(), kind).await?;
        let id = StateVersionId::within(workspace.organization_prefix(), self.random());
        let blob = id.to_string();
        let received = self.store_state(&state_key(&org, &blob), body).await?;
        let (stored, file) = received.map_err(|error| no_state(&error))?;
        Ok(Arrived { org, workspace, claim, id, blob, stored, file })
    }

    pub(crate) async fn commit_arrived(
        &self,
        caller: &Caller,
        arrived: Arrived,
        new: NewState,
        origin: StateOrigin,
    ) -> Result<StateVersionView, Error> {
        let write = StateWrite { caller: Some(caller.clone()), new, author: caller.author(), origin, arrived };
        self.commit_state(caller.intent("state.write"), write).await
    }
}

fn origin_of(actor: &Actor) -> StateOrigin {
    match actor {
        Actor::Attempt { .. } => StateOrigin::Apply,
        _ => StateOrigin::Push,
    }
}

fn run_of(actor: &Actor) -> Option<RunId> {
    match actor {
        Actor::Attempt { run, .. } => Some(*run),
        _ => None,
    }
}
