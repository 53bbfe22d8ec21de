//! Locks of workspaces, which decide who may write the state: lock, unlock, and unlock by force.

use taco_boxed::boxed;
use taco_domain::lock::{
    Claim, Lock, LockConflict, LockInfo, Taken, check_reason, keeps_lock, release_lock, released_before, take_lock,
};
use taco_domain::permission::Action;
use taco_domain::workspace::Workspace;
use taco_domain::{Author, OrganizationState};

use crate::caller::Caller;
use crate::change::Tx;
use crate::control_plane::ControlPlane;
use crate::error::Error;
use crate::lock_release::{give_up_pending, unlocked};
use crate::lock_rollback::UnacknowledgedLock;
use crate::workspace_view::{WorkspaceRef, WorkspaceView};

#[boxed]
impl ControlPlane {
    /// Locks a workspace through the API.
    pub async fn lock_workspace(
        &self,
        caller: &Caller,
        wanted: &WorkspaceRef,
        reason: Option<String>,
    ) -> Result<WorkspaceView, Error> {
        self.take(caller, wanted, check_reason(reason)?, None).await
    }

    /// Locks a workspace through the `http` backend, whose clients name their locks.
    pub async fn lock_workspace_with(
        &self,
        caller: &Caller,
        wanted: &WorkspaceRef,
        info: LockInfo,
    ) -> Result<WorkspaceView, Error> {
        let info = info.checked()?;
        let reason = Some(info.operation.clone()).filter(|operation| !operation.is_empty());
        self.take(caller, wanted, reason, Some(info)).await
    }

    async fn take(
        &self,
        caller: &Caller,
        wanted: &WorkspaceRef,
        reason: Option<String>,
        http: Option<LockInfo>,
    ) -> Result<WorkspaceView, Error> {
        let WorkspaceView { mut org, workspace } = self.find_workspace(caller, wanted).await?;
        let now = self.now();
        let lock = Lock {
            holder: caller.author(),
            holder_name: org.name_of(&caller.author()),
            since: now,
            reason,
            from: caller.request.from.clone(),
            http,
        };
        // A retry with an idempotency key finds its response again; the lock waits for it.
        let unacknowledged =
            caller.request.key.is_none().then(|| UnacknowledgedLock::new(org.clone(), workspace.id, lock.clone()));
        let wanted = wanted.clone();
        let change = org.change(caller, "workspace.lock", now, move |tx| {
            let workspace = tx.workspace(&wanted, Action::LockWorkspace)?;
            match take_lock(workspace.lock.as_ref(), &lock).map_err(conflict)? {
                Taken::Now => Ok(put(tx, Workspace { lock: Some(lock.clone()), ..workspace })),
                Taken::Before => Ok(workspace),
            }
        });
        let taken = change.await;
        if !matches!(taken, Err(Error::Unavailable(_) | Error::Corrupt(_)))
            && let Some(unacknowledged) = unacknowledged
        {
            unacknowledged.acknowledge();
        }
        Ok(WorkspaceView { workspace: taken?, org })
    }

    /// Lets go of the caller's own lock.
    pub async fn unlock_workspace(&self, caller: &Caller, wanted: &WorkspaceRef) -> Result<WorkspaceView, Error> {
        let claim = Claim::Api(caller.author());
        self.release(caller, wanted, claim).await
    }

    /// Lets go of a lock of the `http` backend. One who does not say which lock they mean, or means another's, uses
    /// force: anyone who meets a lock is told its id.
    pub async fn unlock_workspace_with(
        &self,
        caller: &Caller,
        wanted: &WorkspaceRef,
        lock_id: Option<String>,
    ) -> Result<WorkspaceView, Error> {
        let author = caller.author();
        let view = self.find_workspace(caller, wanted).await?;
        let lock = view.workspace.lock.as_ref().filter(|lock| lock.http.is_some());
        let is_own = lock.is_some_and(|lock| lock.holder == author);
        let held = lock.and_then(Lock::http_id).map(str::to_owned);
        match lock_id {
            // Their own they need no force for, even if their client has forgotten what it is called.
            None if is_own => self.release(caller, wanted, Claim::Http { author, lock_id: held }).await,
            None => self.force_unlock_workspace(caller, wanted).await,
            Some(id) if !is_own && held.as_ref() == Some(&id) && may_force(caller, &view) => {
                self.unlock_by_force(caller, wanted, Some(id)).await
            }
            lock_id => self.release(caller, wanted, Claim::Http { author, lock_id }).await,
        }
    }

    async fn release(&self, caller: &Caller, wanted: &WorkspaceRef, claim: Claim) -> Result<WorkspaceView, Error> {
        let mut org = self.organization_with(caller, wanted).await?;
        let (wanted, now) = (wanted.clone(), self.now());
        let change = org.change(caller, "workspace.unlock", now, move |tx| {
            let workspace = tx.workspace(&wanted, Action::LockWorkspace)?;
            if released_before(workspace.lock.as_ref(), workspace.last_released.as_deref(), &claim) {
                return Ok(workspace);
            }
            release_lock(workspace.lock.as_ref(), &claim).map_err(conflict)?;
            if workspace.lock.as_ref().is_some_and(keeps_lock) {
                return Ok(workspace);
            }
            give_up_pending(tx, workspace.id, Some(now))?;
            let free = unlocked(tx, workspace, now);
            Ok(put(tx, free))
        });
        let workspace = change.await?;
        Ok(WorkspaceView { workspace, org })
    }

    /// Takes the lock away from its holder.
    pub async fn force_unlock_workspace(&self, caller: &Caller, wanted: &WorkspaceRef) -> Result<WorkspaceView, Error> {
        self.unlock_by_force(caller, wanted, None).await
    }

    /// With the id of a lock of the `http` backend, no other lock is taken away.
    async fn unlock_by_force(
        &self,
        caller: &Caller,
        wanted: &WorkspaceRef,
        only: Option<String>,
    ) -> Result<WorkspaceView, Error> {
        let mut org = self.organization_with(caller, wanted).await?;
        let (wanted, now) = (wanted.clone(), self.now());
        let change = org.change(caller, "workspace.force-unlock", now, move |tx| {
            let workspace = tx.workspace(&wanted, Action::ForceUnlockWorkspace)?;
            let Some(lock) = &workspace.lock else { return Err(conflict(LockConflict::AlreadyUnlocked)) };
            if only.is_some() && only.as_deref() != lock.http_id() {
                return Err(conflict(LockConflict::Locked(Box::new(lock.clone()))));
            }
            check_holder_is_over(tx.state(), lock)?;
            give_up_pending(tx, workspace.id, None)?;
            let free = unlocked(tx, workspace, now);
            Ok(put(tx, free))
        });
        let workspace = change.await?;
        Ok(WorkspaceView { workspace, org })
    }
}

fn put(tx: &mut Tx<'_>, workspace: Workspace) -> Workspace {
    tx.put(&workspace);
    workspace
}

fn may_force(caller: &Caller, view: &WorkspaceView) -> bool {
    caller.may(Action::ForceUnlockWorkspace, view.resource()).allowed
}

/// A run lets go of its workspace when it ends; before, it cannot be taken away.
pub(crate) fn check_holder_is_over(state: &OrganizationState, lock: &Lock) -> Result<(), Error> {
    let Author::Run(id) = lock.holder else { return Ok(()) };
    match state.runs.get(&id).filter(|run| !run.status.is_final()) {
        Some(run) => Err(Error::Conflict(format!(
            "The workspace is locked by Run {id}, which is {}: discard or cancel the run, or wait until it is over",
            run.status
        ))),
        None => Ok(()),
    }
}

pub(crate) fn conflict(conflict: LockConflict) -> Error {
    Error::Conflict(conflict.to_string())
}
