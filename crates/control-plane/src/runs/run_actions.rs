//! Decisions about a run: confirm, discard, cancel, and both kinds of force. Their consequences happen in the same
//! transaction.

use jiff::Timestamp;
use taco_boxed::boxed;
use taco_domain::comment::{Comment, check_body};
use taco_domain::id::{CommentId, RunId};
use taco_domain::permission::Action;
use taco_domain::run::Run;
use taco_domain::run_queue::{confirmed, make_way};
use taco_domain::run_status::RunEvent;
use taco_domain::workspace::Workspace;
use taco_tables::Record as _;

use crate::caller::Caller;
use crate::change::Tx;
use crate::control_plane::ControlPlane;
use crate::error::Error;
use crate::history::ToChange;
use crate::run_flow::put_run_and_follow_up;
use crate::runs::RunView;

/// Decision that someone can make about a run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RunDecision {
    Confirm,
    Discard,
    Cancel,
    ForceCancel,
    ForceExecute,
    /// Lets a plan go on that mandatory policies stand against.
    OverridePolicies,
}

impl RunDecision {
    fn action(self) -> Action {
        match self {
            Self::Confirm | Self::Discard | Self::Cancel => Action::ApplyRun,
            Self::ForceCancel | Self::ForceExecute => Action::ForceCancelRun,
            Self::OverridePolicies => Action::OverridePolicies,
        }
    }

    /// As the audit trail calls it.
    fn intent(self) -> &'static str {
        match self {
            Self::Confirm => "run.confirm",
            Self::Discard => "run.discard",
            Self::Cancel => "run.cancel",
            Self::ForceCancel => "run.force-cancel",
            Self::ForceExecute => "run.force-execute",
            Self::OverridePolicies => "run.override-policies",
        }
    }
}

#[boxed]
impl ControlPlane {
    /// Reason why the caller cannot decide this about a run now; `None` if they can.
    pub fn refusal(&self, caller: &Caller, view: &RunView, decision: RunDecision) -> Option<String> {
        let right = caller.may(decision.action(), view.resource());
        if !right.allowed {
            return Some(right.reason.into_owned());
        }
        let RunView { run, workspace, org, .. } = view;
        let now = self.now();
        let illegal = |event| run.status.after(event).err().map(|refusal| refusal.to_string());
        match decision {
            RunDecision::Confirm => illegal(RunEvent::Confirmed),
            RunDecision::Discard => illegal(RunEvent::Discarded),
            RunDecision::Cancel => run.check_cancel().err().map(|refusal| refusal.to_string()),
            RunDecision::ForceCancel if run.cancel.as_ref().is_some_and(|cancel| cancel.force) => {
                Some("the run is already being force-canceled".to_owned())
            }
            RunDecision::ForceCancel => {
                let check = run.check_force_cancel(now, self.shared.timeouts.before_force);
                check.err().map(|refusal| refusal.to_string())
            }
            RunDecision::OverridePolicies if run.waits_for_override() => None,
            RunDecision::OverridePolicies => Some("no policy that could be overridden stops the run".to_owned()),
            RunDecision::ForceExecute => {
                let way = make_way(&org.state, workspace, run, caller.author(), now);
                way.err().map(|refusal| refusal.to_string())
            }
        }
    }

    /// Lets a plan be applied. If it breaks outputs that others use and would have applied by itself otherwise, that has
    /// to be accepted.
    pub async fn confirm_run(
        &self,
        caller: &Caller,
        id: RunId,
        comment: Option<String>,
        accepts_output_changes: bool,
    ) -> Result<RunView, Error> {
        let now = self.now();
        self.decide_run(caller, id, RunDecision::Confirm, comment, move |tx, run, _| {
            let confirmed = confirmed(tx.state(), &run, tx.caller().author(), now).map_err(conflict)?;
            run.check_accepted(accepts_output_changes).map_err(conflict)?;
            run.check_policies().map_err(conflict)?;
            Ok(confirmed)
        })
        .await
    }

    /// Discards a plan, which will not be applied.
    pub async fn discard_run(&self, caller: &Caller, id: RunId, comment: Option<String>) -> Result<RunView, Error> {
        let now = self.now();
        self.decide_run(caller, id, RunDecision::Discard, comment, move |tx, run, _| {
            run.after(RunEvent::Discarded, now, tx.caller().author()).map_err(conflict)
        })
        .await
    }

    /// Stops a run: at once while no agent executes it, otherwise by asking its agent.
    pub async fn cancel_run(&self, caller: &Caller, id: RunId, comment: Option<String>) -> Result<RunView, Error> {
        let now = self.now();
        self.decide_run(caller, id, RunDecision::Cancel, comment, move |tx, run, _| {
            run.canceled(tx.caller().author(), now).map_err(conflict)
        })
        .await
    }

    /// Stops a run whose agent did not stop it by itself.
    pub async fn force_cancel_run(
        &self,
        caller: &Caller,
        id: RunId,
        comment: Option<String>,
    ) -> Result<RunView, Error> {
        let (now, cool_off) = (self.now(), self.shared.timeouts.before_force);
        self.decide_run(caller, id, RunDecision::ForceCancel, comment, move |tx, run, _| {
            run.force_canceled(tx.caller().author(), now, cool_off).map_err(conflict)
        })
        .await
    }

    /// Lets a run begin before those ahead of it, which end.
    pub async fn force_execute_run(&self, caller: &Caller, id: RunId) -> Result<RunView, Error> {
        let now = self.now();
        self.decide_run(caller, id, RunDecision::ForceExecute, None, move |tx, run, workspace| {
            let by = tx.caller().author();
            for aside in make_way(tx.state(), workspace, &run, by, now).map_err(conflict)? {
                put_run_and_follow_up(tx, aside, now)?;
            }
            let mut begun: Run = tx.get(&run.id)?;
            begun.note("force_executed", by, now);
            Ok(begun)
        })
        .await
    }

    /// Lets a run go on that mandatory policies have stopped. It waits for approval then, unless it applies by itself.
    pub async fn override_policies(
        &self,
        caller: &Caller,
        id: RunId,
        comment: Option<String>,
    ) -> Result<RunView, Error> {
        let now = self.now();
        self.decide_run(caller, id, RunDecision::OverridePolicies, comment, move |tx, run, _| {
            run.after_override(tx.caller().author(), now).map_err(|_| {
                Error::Conflict(format!("The run is {}: no policy that could be overridden stops it", run.status))
            })
        })
        .await
    }

    /// From when on a run can be stopped by force.
    pub fn force_cancel_available_at(&self, run: &Run) -> Option<Timestamp> {
        run.force_cancel_available_at(self.shared.timeouts.before_force)
    }

    /// True if the run can be force-canceled now.
    pub fn is_force_cancelable(&self, run: &Run) -> bool {
        run.check_force_cancel(self.now(), self.shared.timeouts.before_force).is_ok()
    }

    /// Puts the run that `decide` makes of it, with a comment and all that follows.
    async fn decide_run(
        &self,
        caller: &Caller,
        id: RunId,
        decision: RunDecision,
        comment: Option<String>,
        mut decide: impl FnMut(&mut Tx<'_>, Run, &Workspace) -> Result<Run, Error> + Send + 'static,
    ) -> Result<RunView, Error> {
        let mut org = self.authorized_organization(caller, id.organization_prefix(), Run::NOUN).await?;
        let now = self.now();
        let comment = self.new_comment(caller, id, comment.filter(|body| !body.is_empty()))?;
        let record = ToChange::new(id, decision.action(), Run::NOUN);
        let change = self.change_restored(caller, &mut org, record, decision.intent(), move |tx| {
            let run: Run = tx.get(&id)?;
            let workspace = tx.workspace_of::<Run>(&run.workspace, decision.action())?;
            let mut run = decide(tx, run, &workspace)?;
            if let Some(comment) = &comment {
                tx.put(comment);
                if let Some(entry) = run.history.last_mut() {
                    entry.comment = Some(comment.id);
                }
            }
            put_run_and_follow_up(tx, run, now)
        });
        let run = change.await?;
        RunView::of(org, run)
    }

    /// A remark that is legal, if there is one at all.
    pub(crate) fn new_comment(
        &self,
        caller: &Caller,
        run: RunId,
        body: Option<String>,
    ) -> Result<Option<Comment>, Error> {
        let Some(body) = body else { return Ok(None) };
        check_body(&body)?;
        let id = CommentId::within(run.organization_prefix(), self.random());
        Ok(Some(Comment { id, run, body, created_at: self.now(), created_by: caller.author() }))
    }
}

fn conflict(refusal: impl std::fmt::Display) -> Error {
    Error::Conflict(refusal.to_string())
}
