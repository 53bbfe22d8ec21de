//! Task results: what tasks answer, and what follows from it for their runs.

use bytes::Bytes;
use jiff::Timestamp;
use taco_boxed::boxed;
use taco_domain::OrganizationState;
use taco_domain::permission::Actor;
use taco_domain::run::Run;
use taco_domain::task_result::{ResultPlace, StoredOutcomes, TaskAnswer, TaskResult, TaskResultId};
use taco_ledger::Transaction;

use crate::blob_error::blob_error;
use crate::caller::Caller;
use crate::control_plane::ControlPlane;
use crate::error::Error;
use crate::find::find;
use crate::run_flow::put_run_and_follow_up;
use crate::stage_views::{RESULT, TaskResultView, not_found};
use crate::task_outcomes::{TaskOutcome, outcomes_key, read_outcomes, stored_outcomes};

/// An answer as a task sends it.
#[derive(Clone)]
pub struct SentAnswer {
    pub status: Option<String>,
    pub message: Option<String>,
    pub url: Option<String>,
    /// `None` if it says nothing of outcomes.
    pub outcomes: Option<Vec<TaskOutcome>>,
}

#[boxed]
impl ControlPlane {
    pub async fn task_result(&self, caller: &Caller, id: TaskResultId) -> Result<TaskResultView, Error> {
        let org = self.authorized_organization(caller, id.organization_prefix(), RESULT).await?;
        let org = self.with_history(org, id).await?;
        let place = org.state.place_of_result(id).ok_or(Error::NotFound(RESULT))?;
        let run = self.run(caller, place.run).await.map_err(|error| not_found(error, RESULT))?;
        Ok(TaskResultView { run, kind: place.stage, index: place.index })
    }

    /// The outcomes that a task sent with its result.
    pub async fn task_outcomes(&self, view: &TaskResultView) -> Result<Vec<TaskOutcome>, Error> {
        let Some(stored) = &view.result()?.outcomes else { return Ok(Vec::new()) };
        read_outcomes(self, &view.run.org, stored).await
    }

    /// Takes in the answer of a task, which comes with the token of its request. Repeating it is harmless; what it means
    /// for the run happens in the same transaction.
    pub async fn answer_task(&self, caller: &Caller, id: TaskResultId, sent: SentAnswer) -> Result<(), Error> {
        let Actor::RunTask { result: own, .. } = caller.actor else { return Err(Error::NotFound(RESULT)) };
        if own != id {
            return Err(Error::NotFound(RESULT));
        }
        let answer = TaskAnswer::checked(sent.status.as_deref(), sent.message, sent.url)?;
        let mut org = self.organization_of_task(caller, RESULT).await?;
        let outcomes = match sent.outcomes {
            Some(outcomes) if !outcomes.is_empty() => {
                let (stored, bytes): (StoredOutcomes, Bytes) = stored_outcomes(id, &outcomes)?;
                let key = outcomes_key(org.ledger.name(), &stored.blob);
                self.blobs().store_bytes(&key, bytes).await.map_err(blob_error)?;
                Some(stored)
            }
            _ => None,
        };
        let now = self.now();
        org.change(caller, "task-result.answer", now, move |tx| {
            let place = tx.state().place_of_result(id).ok_or(Error::NotFound(RESULT))?;
            change_result(tx, place, now, |result| {
                let taken = result.answer(&answer, outcomes.clone(), now);
                taken.map_err(|refused| Error::Conflict(refused.to_string()))
            })
        })
        .await
    }
}

/// Changes a result, and lets its run go where that leads.
pub(crate) fn change_result(
    tx: &mut Transaction<OrganizationState>,
    place: ResultPlace,
    now: Timestamp,
    change: impl FnOnce(&mut TaskResult) -> Result<(), Error>,
) -> Result<(), Error> {
    let before = find::<Run, _>(tx.state(), &place.run, RESULT)?.clone();
    let mut run = before.clone();
    let stage = run.stage_mut(place.stage).ok_or(Error::NotFound(RESULT))?;
    change(stage.results.get_mut(place.index).ok_or(Error::NotFound(RESULT))?)?;
    if run == before {
        return Ok(());
    }
    let run = run.after_answers(place.stage, now).map_err(|illegal| Error::Conflict(illegal.to_string()))?;
    if run.status == before.status {
        tx.put(&run);
        return Ok(());
    }
    put_run_and_follow_up(tx, run, now).map(|_| ())
}
