//! A lock that was taken for a client who never heard of it is given back.
//!
//! A client that goes away while the bucket works, or is told to try again because the bucket left open whether it
//! wrote, asks once more and would find its own lock in the way. No client was told of that lock, so none relies on it.
//! After the answer has left this is over: only the client knows whether it arrived.

use std::time::Duration;

use taco_domain::OrganizationState;
use taco_domain::id::WorkspaceId;
use taco_domain::lock::Lock;
use taco_ledger::Transaction;
use tokio::runtime::Handle;
use tokio::time::{Instant, sleep};

use crate::control_plane::{ControlPlane, OrganizationSnapshot};
use crate::error::Error;
use crate::lock_release::{give_up_pending, unlocked};

/// A bucket that is away for longer than this has people look after it, who find the lock.
const GIVE_BACK_TIMEOUT: Duration = Duration::from_secs(300);
const GIVE_BACK_RETRY_DELAY: Duration = Duration::from_secs(1);

/// Gives the lock back when dropped, unless the client is told.
pub(crate) struct UnacknowledgedLock {
    taken: Option<(OrganizationSnapshot, WorkspaceId, Lock)>,
}

impl UnacknowledgedLock {
    pub(crate) fn new(org: OrganizationSnapshot, workspace: WorkspaceId, lock: Lock) -> Self {
        Self { taken: Some((org, workspace, lock)) }
    }

    /// The client gets an answer that says how things are.
    pub(crate) fn acknowledge(mut self) {
        self.taken = None;
    }
}

impl Drop for UnacknowledgedLock {
    fn drop(&mut self) {
        if let Some((org, workspace, lock)) = self.taken.take()
            && let Ok(runtime) = Handle::try_current()
        {
            runtime.spawn(give_back(org, workspace, lock));
        }
    }
}

async fn give_back(org: OrganizationSnapshot, workspace: WorkspaceId, lock: Lock) {
    let deadline = Instant::now() + GIVE_BACK_TIMEOUT;
    loop {
        let lock = lock.clone();
        let decide = move |tx: &mut Transaction<OrganizationState>| {
            let found = tx.state().workspaces.get(&workspace).filter(|found| found.lock.as_ref() == Some(&lock));
            let Some(locked) = found.cloned() else { return Ok(()) };
            give_up_pending(tx, workspace, None)?;
            // What waited for it begins, as of the moment at which the lock was taken in vain.
            let free = unlocked(tx, locked, lock.since);
            tx.put(&free);
            Ok(())
        };
        match org.commit(ControlPlane::own_intent("workspace.give-back-lock"), decide).await {
            Err(Error::Unavailable(_)) if Instant::now() < deadline => sleep(GIVE_BACK_RETRY_DELAY).await,
            Err(error) => {
                tracing::warn!(
                    event = "lock_release_failed", %workspace, %error,
                    "a lock that nobody was told of could not be given back"
                );
                return;
            }
            Ok(()) => return,
        }
    }
}
