//! Actions on a workspace's lock that are open to a caller, for pages that also show the disabled ones and why.

use taco_domain::lock::{Claim, LockConflict, check_lock, release_lock};
use taco_domain::permission::Action;

use crate::caller::Caller;
use crate::workspace_locks::check_holder_is_over;
use crate::workspace_view::WorkspaceView;

/// Each is possible now, or there is a reason why not.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LockChoices {
    pub lock: Result<(), String>,
    pub unlock: Result<(), String>,
    pub force_unlock: Result<(), String>,
}

impl LockChoices {
    /// True if a run that is not over has the lock. Then the reason against force says all that the other one says.
    pub fn is_held_by_run(&self) -> bool {
        let is_about_run = |choice: &Result<(), String>| {
            choice.as_ref().is_err_and(|reason| reason.starts_with("The workspace is locked by Run "))
        };
        is_about_run(&self.unlock) && is_about_run(&self.force_unlock)
    }
}

impl WorkspaceView {
    /// `Ok` if the caller could write a state now, otherwise the reason why not.
    pub fn state_upload_choice(&self, caller: &Caller) -> Result<(), String> {
        let decision = caller.may(Action::WriteState, self.resource());
        if !decision.allowed {
            return Err(decision.reason.into_owned());
        }
        let claim = Claim::Api(caller.author());
        check_lock(self.workspace.lock.as_ref(), &claim).map_err(|conflict| conflict.to_string())
    }

    pub fn lock_choices(&self, caller: &Caller) -> LockChoices {
        let lock = self.workspace.lock.as_ref();
        let allowed = |action: Action| {
            let decision = caller.may(action, self.resource());
            if decision.allowed { Ok(()) } else { Err(decision.reason.into_owned()) }
        };
        let in_words = |conflict: LockConflict| conflict.to_string();
        LockChoices {
            lock: allowed(Action::LockWorkspace).and_then(|()| match lock {
                Some(lock) => Err(in_words(LockConflict::Locked(Box::new(lock.clone())))),
                None => Ok(()),
            }),
            unlock: allowed(Action::LockWorkspace)
                .and_then(|()| release_lock(lock, &Claim::Api(caller.author())).map_err(in_words)),
            force_unlock: allowed(Action::ForceUnlockWorkspace).and_then(|()| match lock {
                Some(lock) => check_holder_is_over(&self.org.state, lock).map_err(|error| error.to_string()),
                None => Err(in_words(LockConflict::AlreadyUnlocked)),
            }),
        }
    }
}
