//! Back to an older state: its content under a new serial, unless it is encrypted.

use bytes::{Bytes, BytesMut};
use futures::future::Either;
use futures::{Stream, TryStreamExt};
use taco_boxed::boxed;
use taco_domain::id::{StateVersionId, WorkspaceId};
use taco_domain::json_cut::{JsonCut, Piece};
use taco_domain::lock::Claim;
use taco_domain::permission::Action;
use taco_domain::state_rules::next_serial;
use taco_domain::state_version::{StateOrigin, StateVersionStatus};
use taco_domain::workspace::Workspace;
use taco_ledger::BucketError;
use taco_tables::Record as _;

use crate::blob_error::broken;
use crate::caller::Caller;
use crate::control_plane::ControlPlane;
use crate::error::Error;
use crate::new_state::NewState;
use crate::state_versions::{StateVersionView, WHAT};
use crate::workspace_view::{WorkspaceRef, WorkspaceView};

const NO_NEXT_SERIAL: &str = "The current state has the highest serial that there is, so that no state can follow it: \
                              send one with a lower serial and force";

#[boxed]
impl ControlPlane {
    /// Writes the content of an older version under a new serial. One that its client encrypted keeps its own.
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
        let owner = old.org.state.workspaces.get(&workspace).ok_or(Error::NotFound(Workspace::NOUN))?;
        let current = old.org.state.current_state_version(owner).unwrap_or(&old.version);
        let (next, lineage) = (next_serial(current.serial), current.lineage.clone());
        let bytes = self.state_bytes(&old.org, &old.version).await?.body;
        let (new, body) = if old.version.encrypted {
            // Its serial and lineage are also stored where only its owner can read them, who takes a state for damaged
            // in which they differ. So they stay, and the next write counts on from there.
            (NewState { force: Some(true), ..NewState::default() }, Either::Left(bytes))
        } else {
            let serial = next.ok_or_else(|| Error::Conflict(NO_NEXT_SERIAL.to_owned()))?;
            let body = with_serial(bytes, serial, &lineage);
            (NewState { serial: Some(serial), lineage: Some(lineage), ..NewState::default() }, Either::Right(body))
        };
        let claim = Claim::Api(caller.author());
        let arrived = self.receive_state(caller, workspace, claim, body).await?;
        self.commit_arrived(caller, arrived, new, StateOrigin::Restore(from)).await
    }
}

#[boxed]
impl ControlPlane {
    /// Restores a state for someone who does not hold the lock: takes it, restores, and lets go of it again. That is
    /// three commits. If the server dies between them, the workspace stays locked by the caller, who may unlock it.
    pub async fn lock_and_restore_state(
        &self,
        caller: &Caller,
        workspace: WorkspaceId,
        from: StateVersionId,
    ) -> Result<StateVersionView, Error> {
        let wanted = WorkspaceRef::Id(workspace);
        let view = self.find_workspace(caller, &wanted).await?;
        if is_held_by(&view.workspace, caller) {
            return self.restore_state(caller, workspace, from).await;
        }
        caller.require(Action::WriteState, view.resource(), "workspace")?;
        let (control_plane, caller) = (self.clone(), caller.clone());
        // On its own: a browser that hangs up must not leave the lock behind.
        let task = tokio::spawn(async move {
            let reason = format!("Restoring {from}");
            control_plane.lock_workspace(&caller, &wanted, Some(reason)).await?;
            let restored = control_plane.restore_state(&caller, workspace, from).await;
            if let Err(error) = control_plane.unlock_workspace(&caller, &wanted).await {
                tracing::warn!(
                    event = "workspace_unlock_failed", %workspace, %error,
                    "a workspace stays locked after a state was restored"
                );
            }
            restored
        });
        task.await.map_err(|error| broken(error.to_string()))?
    }
}

impl StateVersionView {
    /// `Ok` if the caller could make this the current state now, otherwise the reason why not.
    pub fn restore_choice(&self, caller: &Caller) -> Result<(), String> {
        let gone = || "The workspace is gone".to_owned();
        let owner = self.org.state.workspaces.get(&self.version.workspace).ok_or_else(gone)?;
        let view = WorkspaceView { workspace: owner.clone(), org: self.org.clone() };
        let decision = caller.may(Action::WriteState, view.resource());
        if !decision.allowed {
            return Err(decision.reason.into_owned());
        }
        if owner.current_state_version == Some(self.version.id) {
            return Err("It is the current state already".to_owned());
        }
        if self.version.status != StateVersionStatus::Finalized {
            return Err("Its data was deleted".to_owned());
        }
        if is_held_by(owner, caller) { Ok(()) } else { view.lock_choices(caller).lock }
    }
}

fn is_held_by(workspace: &Workspace, caller: &Caller) -> bool {
    workspace.lock.as_ref().is_some_and(|lock| lock.is_held_by(&Claim::Api(caller.author())))
}

/// The same state with another serial and lineage; everything else keeps its exact text.
fn with_serial(
    state: impl Stream<Item = Result<Bytes, BucketError>> + Send + 'static,
    serial: u64,
    lineage: &str,
) -> impl Stream<Item = Result<Bytes, BucketError>> + Send + 'static {
    const PLACES: &[&[&str]] = &[&["serial"], &["lineage"]];
    let values = [serial.to_string(), serde_json::Value::from(lineage).to_string()];
    let mut cut = JsonCut::new(PLACES);
    state.map_ok(move |bytes| {
        let mut changed = BytesMut::with_capacity(bytes.len() + 64);
        cut.push(&bytes, |piece| match piece {
            Piece::Kept(bytes) => changed.extend_from_slice(bytes),
            Piece::Cut { place, begins: true, .. } => changed.extend_from_slice(values[place].as_bytes()),
            Piece::Cut { begins: false, .. } => {}
        });
        changed.freeze()
    })
}

#[cfg(test)]
mod tests {
    use futures::stream;

    use super::*;

    #[tokio::test]
    async fn only_serial_and_lineage_change() {
        let before = r#"{"version": 4, "serial": 7, "outputs": {"serial": {"value": 1.10}}, "lineage": "a\"b"}"#;
        let after = r#"{"version": 4, "serial": 12, "outputs": {"serial": {"value": 1.10}}, "lineage": "x\"y"}"#;
        for size in 1..before.len() {
            let pieces: Vec<_> =
                before.as_bytes().chunks(size).map(|bytes| Ok(Bytes::copy_from_slice(bytes))).collect();
            let changed: Vec<Bytes> = with_serial(stream::iter(pieces), 12, "x\"y").try_collect().await.expect("bytes");
            assert_eq!(String::from_utf8(changed.concat()).expect("text"), after);
        }
    }
}
