//! Uploads of agents while they execute a phase: chunks of its log, the plan in its forms, and the state.

use std::error::Error as StdError;

use bytes::Bytes;
use futures::Stream;
use taco_boxed::boxed;
use taco_domain::phase::PhaseKind;
use taco_ledger::AppendError;

use crate::blob_error::blob_error;
use crate::control_plane::ControlPlane;
use crate::error::Error;
use crate::log_id::log_id;
use crate::new_state::NewState;
use crate::phases::PhaseCaller;
use crate::plan_files::plan_key;
use crate::state_versions::StateVersionView;
use crate::upload_slots::UploadKind;
use crate::uploaded_plans::PlanForm;

/// The largest plan that is taken, in each of its forms.
pub const LARGEST_PLAN: u64 = 512 * 1024 * 1024;

/// Reason why a chunk of a log was refused.
#[derive(Debug)]
pub enum LogRefusal {
    /// It does not fit: the log goes on at `next`.
    Elsewhere {
        next: u64,
    },
    Error(Error),
}

#[boxed]
impl ControlPlane {
    /// Stores a plan while it is made. Each attempt has its own place, so one that was given up spoils nothing.
    pub async fn upload_plan<E>(
        &self,
        caller: &PhaseCaller,
        form: PlanForm,
        body: impl Stream<Item = Result<Bytes, E>> + Send + 'static,
    ) -> Result<(), Error>
    where
        E: Into<Box<dyn StdError + Send + Sync>> + Send + 'static,
    {
        let attempt = caller.attempt;
        if attempt.phase != PhaseKind::Plan {
            return Err(Error::Conflict("an apply has no plan of its own".to_owned()));
        }
        caller.check_under_way()?;
        let _slot = self.shared.upload_slots.take(caller.org.id(), UploadKind::Phase).await?;
        let key = plan_key(&caller.org, form, attempt.run, attempt.epoch);
        let stored = self.blobs().store(&key, body, LARGEST_PLAN).await.map_err(blob_error)?;
        self.shared.uploaded_plans.remember(attempt, form, stored);
        Ok(())
    }

    /// Appends to the log of a phase that goes on, or of an apply that was given up. Repeating it is harmless.
    pub async fn append_log(&self, caller: &PhaseCaller, offset: u64, bytes: Bytes) -> Result<u64, LogRefusal> {
        let attempt = caller.attempt;
        caller.check_log_is_open().map_err(LogRefusal::Error)?;
        let log = log_id(attempt.run, attempt.phase);
        let ledger = caller.org.ledger.name();
        let appended = self.shared.logs.append(ledger, &log, attempt.epoch, offset, bytes).await;
        if appended.is_ok() {
            self.shared.log_signals.raise(&log);
        }
        appended.map_err(|error| match error {
            AppendError::Conflict { next } | AppendError::Gap { next } => LogRefusal::Elsewhere { next },
            AppendError::Bucket(error) => LogRefusal::Error(taco_ledger::Error::from(error).into()),
        })
    }

    /// Writes the state as an apply leaves it, while it goes on and at its end. The same bytes again change nothing. An
    /// upload of an agent that was given up, after its run lost the workspace, is kept in addition to the current
    /// state.
    pub async fn write_phase_state<E>(
        &self,
        caller: &PhaseCaller,
        body: impl Stream<Item = Result<Bytes, E>> + Send + 'static,
    ) -> Result<StateVersionView, Error>
    where
        E: Into<Box<dyn StdError + Send + Sync>> + Send + 'static,
    {
        if caller.attempt.phase != PhaseKind::Apply {
            return Err(Error::Conflict("a plan does not change the state".to_owned()));
        }
        let run = caller.run_not_ended()?;
        if !caller.holds_workspace(run) {
            return self.rescue_state(caller, run, body).await;
        }
        let new = NewState { run: Some(run.id), ..NewState::default() };
        self.write_state(&caller.caller, run.workspace, body, || Ok::<_, Error>(new)).await
    }
}
