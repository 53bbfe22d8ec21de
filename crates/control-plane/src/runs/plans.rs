//! Plans and applies, as parts of runs that have addresses of their own.

use std::time::Duration;

use bytes::Bytes;
use futures::TryStreamExt as _;
use taco_boxed::boxed;
use taco_domain::cost_estimate::CostEstimate;
use taco_domain::id::{ApplyId, CostEstimateId, PlanId, RunId};
use taco_domain::permission::{Action, Actor};
use taco_domain::phase::PhaseKind;
use taco_ledger::bucket::Download;

use crate::blob_error::{blob_error, proven_if_small};
use crate::caller::Caller;
use crate::control_plane::ControlPlane;
use crate::error::Error;
use crate::runs::RunView;
use crate::secret_reads::SecretRead;
use crate::signed_url_token::{SignedUrlPurpose, SignedUrlToken};
use crate::uploaded_plans::PlanForm;

/// A plan in one of its forms.
pub enum PlanOutput {
    Ready(Download),
    /// The plan has not ended yet.
    NotYet,
}

#[boxed]
impl ControlPlane {
    /// The run that a plan belongs to.
    pub async fn run_of_plan(&self, caller: &Caller, plan: PlanId) -> Result<RunView, Error> {
        let run = run_with(plan.characters())?;
        self.run(caller, run).await.map_err(|error| renamed(error, "plan"))
    }

    /// The run that an apply belongs to.
    pub async fn run_of_apply(&self, caller: &Caller, apply: ApplyId) -> Result<RunView, Error> {
        let run = run_with(apply.characters())?;
        self.run(caller, run).await.map_err(|error| renamed(error, "apply"))
    }

    /// Cost estimate of a plan, as far as it is known.
    pub async fn cost_estimate(&self, caller: &Caller, estimate: CostEstimateId) -> Result<CostEstimate, Error> {
        const WHAT: &str = "cost estimate";
        let run = run_with(estimate.characters())?;
        let view = self.run(caller, run).await.map_err(|error| renamed(error, WHAT))?;
        view.run.cost_estimate().ok_or(Error::NotFound(WHAT))
    }

    /// Output of a plan. The redacted form is for everyone who may see the run; the others contain all that the engine
    /// knew.
    pub async fn plan_output(&self, caller: &Caller, plan: PlanId, form: PlanForm) -> Result<PlanOutput, Error> {
        let view = match caller.actor {
            Actor::RunTask { .. } => self.run_asked_about(caller).await?,
            _ => self.run_of_plan(caller, plan).await?,
        };
        if view.run.plan_id() != plan {
            return Err(Error::NotFound("plan"));
        }
        let action = match form {
            PlanForm::Redacted => Action::ReadRuns,
            PlanForm::File | PlanForm::Json => Action::ReadWholePlan,
        };
        caller.require(action, view.resource(), "plan")?;
        if !view.run.plan.status.is_final() {
            return Ok(PlanOutput::NotYet);
        }
        let found = self.plan_file(&view.org, &view.run, form).await?.ok_or(Error::NotFound("plan"))?;
        let found = proven_if_small(found).await?;
        if form != PlanForm::Redacted {
            self.record_secret_read(&view.org, caller, SecretRead::Plan(view.run.id)).await;
        }
        Ok(PlanOutput::Ready(found))
    }

    /// The plan without what is sensitive, for everyone who may see the run; `None` where there is none, or a larger
    /// one than `limit`.
    pub async fn redacted_plan(&self, view: &RunView, limit: u64) -> Result<Option<Vec<u8>>, Error> {
        if !view.run.plan.status.is_final() {
            return Ok(None);
        }
        let found = self.plan_file(&view.org, &view.run, PlanForm::Redacted).await?;
        let Some(download) = found.filter(|download| download.size <= limit) else { return Ok(None) };
        let pieces: Vec<Bytes> = download.body.try_collect().await.map_err(|error| blob_error(error.into()))?;
        Ok(Some(pieces.concat()))
    }

    /// The bytes of a log from `offset` on, at most `limit`, for the holder of a signed URL. Waits up to `patience` for
    /// some.
    pub async fn read_log(
        &self,
        pass: &SignedUrlToken,
        kind: PhaseKind,
        offset: u64,
        limit: usize,
        patience: Duration,
    ) -> Result<Vec<u8>, Error> {
        let run = match kind {
            PhaseKind::Plan => run_with(pass.object::<PlanId>(SignedUrlPurpose::ReadPlanLog)?.characters()),
            PhaseKind::Apply => run_with(pass.object::<ApplyId>(SignedUrlPurpose::ReadApplyLog)?.characters()),
        }?;
        let org = self.organization_unchecked(run.organization_prefix(), "log").await?;
        let org = self.with_history(org, run).await?;
        let workspace = org.state.runs.get(&run).map(|run| run.workspace).ok_or(Error::NotFound("log"))?;
        let reader = self.holder_of(pass, &org, Action::ReadRuns, &workspace, "log")?;
        self.follow_log_in(&org, run, kind, offset, limit, patience, reader.as_ref()).await
    }
}

/// Plans and applies have the characters of their runs.
fn run_with(characters: &str) -> Result<RunId, Error> {
    RunId::from_characters(characters).map_err(|_| Error::NotFound("run"))
}

fn renamed(error: Error, what: &'static str) -> Error {
    match error {
        Error::NotFound(_) => Error::NotFound(what),
        other => other,
    }
}
