//! Consequences of the release of a workspace's lock.

use jiff::{SignedDuration, Timestamp};
use taco_domain::OrganizationState;
use taco_domain::id::WorkspaceId;
use taco_domain::state_version::{StateVersion, StateVersionStatus};
use taco_domain::workspace::Workspace;
use taco_ledger::Transaction;

use crate::error::Error;
use crate::run_flow::advance_workspace;

/// An announced state whose bytes did not come within this time is given up when its workspace is unlocked.
const PENDING_STATE_TIMEOUT: SignedDuration = SignedDuration::from_secs(60);

/// The workspace without its lock, or with that of the run which begins at once.
pub(crate) fn unlocked(tx: &mut Transaction<OrganizationState>, workspace: Workspace, now: Timestamp) -> Workspace {
    let last_released = workspace.lock.as_ref().and_then(|lock| lock.http.as_ref()).map(|info| info.id.clone());
    let workspace = Workspace { lock: None, last_released, ..workspace };
    tx.put(&workspace);
    advance_workspace(tx, workspace.id, now);
    tx.state().workspaces.get(&workspace.id).cloned().unwrap_or(workspace)
}

/// States that were announced and did not arrive end with the lock under which they were announced. With `now`, one
/// that may still be on its way keeps the workspace locked.
pub(crate) fn give_up_pending(
    tx: &mut Transaction<OrganizationState>,
    workspace: WorkspaceId,
    now: Option<Timestamp>,
) -> Result<(), Error> {
    let state = tx.state();
    let pending = state.state_versions.by().pending.get(&workspace);
    let pending: Vec<StateVersion> = pending.cloned().collect();
    for version in pending {
        let age = now.map(|now| now.duration_since(version.created_at));
        if age.is_some_and(|age| age < PENDING_STATE_TIMEOUT) {
            // Terraform looks for the text "latest state version is still pending" and tries again. It would never see
            // them in a conflict, which go-tfe reads as "already unlocked": a workspace would stay locked unnoticed.
            let detail = format!(
                "The workspace cannot be unlocked yet: the latest state version is still pending. Try again when its \
                 upload is over; one that does not come is given up {} seconds after it was announced",
                PENDING_STATE_TIMEOUT.as_secs()
            );
            return Err(Error::Invalid { pointer: "/data".to_owned(), detail });
        }
        tx.put(&StateVersion { status: StateVersionStatus::Discarded, ..version });
    }
    Ok(())
}
