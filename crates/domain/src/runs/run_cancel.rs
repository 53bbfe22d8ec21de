//! Stopping a run: at once if no agent executes it, otherwise by asking its agent, and by force when asking was not
//! enough.

use jiff::{SignedDuration, Timestamp};

use crate::author::Author;
use crate::run::{CancelRequest, Run, RunHistoryEntry};
use crate::run_status::{IllegalTransition, RunEvent};

/// Reason why a run cannot be canceled.
#[derive(Clone, PartialEq, Eq, thiserror::Error, Debug)]
pub enum CancelRefused {
    #[error("the run was asked to stop already: its agent is ending it")]
    AskedAlready,
    #[error(transparent)]
    Illegal(#[from] IllegalTransition),
}

/// Reason why a run cannot be force-canceled.
#[derive(Clone, PartialEq, Eq, thiserror::Error, Debug)]
pub enum ForceCancelRefused {
    #[error("the run is {0}; force-cancel needs a run that is planning or applying")]
    NothingExecutes(crate::run_status::RunStatus),
    #[error("force-cancel comes after cancel: cancel the run first, and give its agent time to stop")]
    NotAskedYet,
    #[error("the run was canceled a moment ago; it can be force-canceled from {0} on")]
    TooEarly(Timestamp),
}

impl Run {
    /// Checks whether it may be canceled now.
    pub fn check_cancel(&self) -> Result<(), CancelRefused> {
        if self.status.is_executing() && self.cancel.is_some() {
            return Err(CancelRefused::AskedAlready);
        }
        self.status.after(RunEvent::Canceled)?;
        Ok(())
    }

    /// The run after someone wants it to stop: over, or with a request that its agent gets. Asking again changes
    /// nothing.
    pub fn canceled(&self, by: Author, now: Timestamp) -> Result<Self, IllegalTransition> {
        let request = Some(CancelRequest { at: now, by, force: false });
        if !self.status.is_executing() {
            return Ok(Self { cancel: request, ..self.after(RunEvent::Canceled, now, by)? });
        }
        if self.cancel.is_some() {
            return Ok(self.clone());
        }
        let mut run = Self { cancel: request, ..self.clone() };
        run.note("cancel_requested", by, now);
        Ok(run)
    }

    /// Time from which it can be force-canceled; `None` before it was canceled.
    pub fn force_cancel_available_at(&self, cool_off: SignedDuration) -> Option<Timestamp> {
        let asked = self.cancel.as_ref()?;
        Some(asked.at.checked_add(cool_off).unwrap_or(Timestamp::MAX))
    }

    /// Checks whether it may be force-canceled now.
    pub fn check_force_cancel(&self, now: Timestamp, cool_off: SignedDuration) -> Result<(), ForceCancelRefused> {
        if !self.status.is_executing() {
            return Err(ForceCancelRefused::NothingExecutes(self.status));
        }
        match self.force_cancel_available_at(cool_off) {
            None => Err(ForceCancelRefused::NotAskedYet),
            Some(available) if now < available => Err(ForceCancelRefused::TooEarly(available)),
            Some(_) => Ok(()),
        }
    }

    /// The run with a request that its agent must not wait any longer. It ends when the agent has stopped the engine,
    /// or was given up: nothing else may touch the workspace before.
    pub fn force_canceled(
        &self,
        by: Author,
        now: Timestamp,
        cool_off: SignedDuration,
    ) -> Result<Self, ForceCancelRefused> {
        self.check_force_cancel(now, cool_off)?;
        let asked = self.cancel.clone().ok_or(ForceCancelRefused::NotAskedYet)?;
        if asked.force {
            return Ok(self.clone());
        }
        let mut run = Self { cancel: Some(CancelRequest { force: true, ..asked }), ..self.clone() };
        run.timestamps.insert("force-canceled-at".into(), now);
        run.note("force_canceled", by, now);
        Ok(run)
    }

    /// Adds something to the history that changes nothing else.
    pub fn note(&mut self, action: &str, by: Author, now: Timestamp) {
        self.history.push(RunHistoryEntry { action: action.into(), at: now, by, comment: None, description: None });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::AgentId;
    use crate::phase::Executor;
    use crate::run::tests::given_run;
    use crate::run_status::RunStatus;

    const COOL_OFF: SignedDuration = SignedDuration::from_secs(60);

    fn later(seconds: i64) -> Timestamp {
        Timestamp::UNIX_EPOCH + SignedDuration::from_secs(seconds)
    }

    #[test]
    fn what_nobody_executes_ends_at_once() {
        for status in RunStatus::ALL {
            let run = Run { status, ..given_run(1) };
            let canceled = run.canceled(Author::Taco, later(1));
            match status {
                RunStatus::Planning | RunStatus::Applying => assert_eq!(canceled.expect("asked").status, status),
                status if status.is_cancelable() => assert_eq!(canceled.expect("over").status, RunStatus::Canceled),
                _ => assert!(canceled.is_err(), "{status}"),
            }
        }
    }

    #[test]
    fn asking_one_phase_to_stop_says_nothing_of_the_next() {
        let executor = Executor { agent: AgentId::from_random([1; 16]), agent_name: "one".to_owned(), pool: None };
        let planning = Run { status: RunStatus::Planning, ..given_run(1) };
        let asked = planning.canceled(Author::Taco, later(1)).expect("legal");
        assert!(asked.cancel.is_some());
        for (status, next) in [(RunStatus::PlanQueued, "plan"), (RunStatus::ApplyQueued, "apply")] {
            let queued = Run { status, ..asked.clone() };
            let (taken, kind) = queued.taken(executor.clone(), later(2)).expect("legal");
            assert_eq!((taken.cancel, kind.to_string().as_str()), (None, next));
        }
    }

    #[test]
    fn force_comes_after_asking_and_waiting() {
        let run = Run { status: RunStatus::Applying, ..given_run(1) };
        let refusal = |run: &Run, second| run.force_canceled(Author::Taco, later(second), COOL_OFF).expect_err("early");
        assert_eq!(refusal(&run, 0), ForceCancelRefused::NotAskedYet);
        let asked = run.canceled(Author::Taco, later(10)).expect("legal");
        assert_eq!(refusal(&asked, 69), ForceCancelRefused::TooEarly(later(70)));
        let again = asked.canceled(Author::Taco, later(30)).expect("legal");
        assert_eq!(again, asked, "asking again does not begin the wait again");
        let forced = asked.force_canceled(Author::Taco, later(70), COOL_OFF).expect("legal");
        assert!(forced.cancel.is_some_and(|request| request.force));
        assert_eq!(forced.status, RunStatus::Applying, "until the agent has stopped it");
        let pending = Run { status: RunStatus::Pending, ..given_run(1) };
        assert_eq!(refusal(&pending, 0), ForceCancelRefused::NothingExecutes(RunStatus::Pending));
    }
}
