//! Decisions about a run (confirm, discard, cancel, by force), another run like it, and comments on it.

use std::borrow::Cow;

use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::Response;
use serde::Deserialize;
use taco_control_plane::{Error, RunDecision, RunView};
use taco_domain::permission::Action;
use taco_domain::run::Run;
use taco_domain::run_request::check_retry;
use taco_domain::run_status::RunStatus;

use crate::Web;
use crate::error::PageError;
use crate::flash::Flash;
use crate::form::{Nothing, VisitorForm};
use crate::run::page::{RunPath, ViewQuery, address_of, counts, find, render};
use crate::run::waits::sentence;
use crate::text::Moment;
use crate::visitor::Visitor;
use crate::words::counts_words;

/// The bar of buttons.
pub(crate) struct Decisions {
    pub(crate) buttons: Vec<Button>,
    /// Effect of a confirmation, in words.
    pub(crate) consequence: Option<String>,
    /// The plan breaks what others use: whoever confirms it accepts that.
    pub(crate) accepts_output_changes: bool,
    /// For a destroy, the name that has to be typed.
    pub(crate) typed_name: Option<String>,
    pub(crate) confirm_error: Option<String>,
}

/// A decision, and why it cannot be made.
pub(crate) struct Button {
    pub(crate) word: Cow<'static, str>,
    /// The last part of its address.
    pub(crate) path: &'static str,
    pub(crate) address: String,
    pub(crate) class: &'static str,
    pub(crate) refusal: Option<String>,
    pub(crate) question: Option<Question>,
}

impl Button {
    pub(crate) fn is_confirm(&self) -> bool {
        self.path == "confirm"
    }
}

impl Decisions {
    pub(crate) fn of(web: &Web, visitor: &Visitor, view: &RunView, confirm_error: Option<String>) -> Self {
        let run = &view.run;
        let offered = offered(view).into_iter().map(|decision| {
            let (word, path, class) = spelled(decision, run);
            let refusal = web.control_plane.refusal(&visitor.caller, view, decision).map(|why| {
                match web.control_plane.force_cancel_available_at(run) {
                    Some(at) if decision == RunDecision::ForceCancel && web.control_plane.now() < at => {
                        format!(
                            "Possible from {} on: its agent has time to stop by itself until then.",
                            Moment(at).text()
                        )
                    }
                    _ => sentence(&why),
                }
            });
            let address = format!("{}/decisions/{path}", address_of(view));
            let question = question(decision, run).filter(|_| refusal.is_none());
            Button { word, path, address, class, refusal, question }
        });
        Self {
            buttons: offered.collect(),
            accepts_output_changes: run.waits_for_contract(),
            consequence: counts(run).map(|counts| counts_words(&counts)),
            typed_name: run.options.is_destroy.then(|| view.workspace.name.to_string()),
            confirm_error,
        }
    }
}

/// Decisions that make sense for a run in its status, regardless of the visitor's rights.
fn offered(view: &RunView) -> Vec<RunDecision> {
    use RunDecision as D;
    let run = &view.run;
    match run.status {
        RunStatus::Pending => vec![D::Cancel, D::ForceExecute],
        RunStatus::PrePlanRunning | RunStatus::PlanQueued => vec![D::Cancel],
        RunStatus::Planning | RunStatus::Applying if run.cancel.is_some() => vec![D::Cancel, D::ForceCancel],
        RunStatus::Planning | RunStatus::PostPlanRunning if run.options.plan_only || run.options.auto_apply => {
            vec![D::Cancel]
        }
        RunStatus::Planning | RunStatus::PostPlanRunning => vec![D::Confirm, D::Cancel],
        RunStatus::Planned | RunStatus::PlannedAndSaved => vec![D::Confirm, D::Discard],
        RunStatus::PolicyOverride => vec![D::OverridePolicies, D::Discard],
        RunStatus::Confirmed => vec![D::Discard, D::Cancel],
        RunStatus::PreApplyRunning | RunStatus::ApplyQueued | RunStatus::Applying => vec![D::Cancel],
        RunStatus::PlannedAndFinished
        | RunStatus::Applied
        | RunStatus::Discarded
        | RunStatus::Canceled
        | RunStatus::Errored => Vec::new(),
    }
}

fn spelled(decision: RunDecision, run: &Run) -> (Cow<'static, str>, &'static str, &'static str) {
    match decision {
        RunDecision::Confirm if run.waits_for_contract() => (breaking_words(run).into(), "confirm", "destroy"),
        RunDecision::Confirm if run.options.is_destroy => (destroy_words(run).into(), "confirm", "destroy"),
        RunDecision::Confirm => ("Confirm & apply".into(), "confirm", "primary"),
        RunDecision::Discard => ("Discard".into(), "discard", ""),
        RunDecision::Cancel => ("Cancel".into(), "cancel", "danger"),
        RunDecision::ForceCancel => ("Force cancel".into(), "force-cancel", "danger"),
        RunDecision::OverridePolicies => ("Override policies".into(), "override-policies", "danger"),
        RunDecision::ForceExecute => ("Run now (skip the queue)".into(), "force-execute", ""),
    }
}

/// `Apply and break 2 workspaces`.
fn breaking_words(run: &Run) -> String {
    let verb = if run.options.is_destroy { "Destroy" } else { "Apply" };
    match run.output_contract.as_ref().map_or(0, |contract| contract.consumers) {
        1 => format!("{verb} and break 1 workspace"),
        many => format!("{verb} and break {many} workspaces"),
    }
}

/// `Destroy 6 resources`.
fn destroy_words(run: &Run) -> String {
    match counts(run).map(|counts| counts.destructions) {
        None | Some(0) => "Confirm destroy".to_owned(),
        Some(1) => "Destroy 1 resource".to_owned(),
        Some(many) => format!("Destroy {many} resources"),
    }
}

/// Question before a decision that interrupts or discards something.
pub(crate) struct Question {
    pub(crate) title: &'static str,
    pub(crate) text: &'static str,
    pub(crate) button: &'static str,
}

fn question(decision: RunDecision, run: &Run) -> Option<Question> {
    let (title, text, button) = match decision {
        RunDecision::Cancel if run.status == RunStatus::Applying => (
            "Cancel this apply?",
            "The apply is interrupted: changes made so far stay, and the rest is not applied.",
            "Cancel run",
        ),
        RunDecision::ForceCancel => (
            "Force cancel this run?",
            "The engine is killed without a chance to save its state. Resources that it is working on may be left out of \
             the state.",
            "Force cancel run",
        ),
        RunDecision::OverridePolicies => (
            "Override policies?",
            "The run goes on although mandatory policies failed. Your name is kept with it.",
            "Override policies",
        ),
        RunDecision::ForceExecute => (
            "Run now?",
            "This run starts next. Runs ahead of it that await approval are discarded, and queued ones are canceled.",
            "Run now",
        ),
        _ => return None,
    };
    Some(Question { title, text, button })
}

/// Starts a run like this one, or tells why that cannot be.
pub(crate) struct Retry {
    pub(crate) refusal: Option<String>,
}

impl Retry {
    /// `None` for a run that is not over, or that was applied.
    pub(crate) fn of(web: &Web, visitor: &Visitor, view: &RunView) -> Option<Self> {
        check_retry(view.run.status).ok()?;
        let refusal = web.control_plane.retry_refusal(&visitor.caller, view).map(|why| sentence(&why));
        Some(Self { refusal })
    }
}

/// `POST …/runs/{run}/retry`
pub(crate) async fn retry(
    State(web): State<Web>,
    Path(path): Path<RunPath>,
    VisitorForm(visitor, Nothing {}): VisitorForm<Nothing>,
) -> Result<Response, PageError> {
    let view = find(&web, &visitor, &path).await?;
    let started = web.control_plane.retry_run(&visitor.caller, view.run.id).await?;
    Ok(Flash::says(format!("Run {} started again.", view.run.id)).redirect_to(&address_of(&started)))
}

/// The field for a remark.
#[derive(Default)]
pub(crate) struct CommentBox {
    pub(crate) text: String,
    pub(crate) error: Option<String>,
    pub(crate) refusal: Option<String>,
}

impl CommentBox {
    pub(crate) fn for_visitor(self, visitor: &Visitor, view: &RunView) -> Self {
        let right = visitor.caller.may(Action::QueuePlan, view.resource());
        Self { refusal: (!right.allowed).then(|| right.reason.into_owned()), ..self }
    }
}

#[derive(Deserialize)]
pub(crate) struct DecisionForm {
    #[serde(default)]
    comment: String,
    /// The workspace's name, where something is destroyed.
    #[serde(default)]
    typed_name: String,
    /// The button said what the plan breaks.
    #[serde(default)]
    accept_output_changes: bool,
}

#[derive(Deserialize)]
pub(crate) struct DecisionPath {
    decision: String,
}

/// `POST …/runs/{run}/decisions/{decision}`
pub(crate) async fn decide(
    State(web): State<Web>,
    Path(path): Path<RunPath>,
    Path(DecisionPath { decision }): Path<DecisionPath>,
    VisitorForm(visitor, form): VisitorForm<DecisionForm>,
) -> Result<Response, PageError> {
    let view = find(&web, &visitor, &path).await?;
    let (control_plane, caller, run) = (&web.control_plane, &visitor.caller, view.run.id);
    let comment = Some(form.comment.trim().to_owned());
    let (decided, flash) = match decision.as_str() {
        "confirm" => {
            let name = view.workspace.name.as_str();
            if view.run.options.is_destroy && form.typed_name.trim() != name {
                let error = format!(
                    "Everything that this workspace manages would be destroyed. Type its name, {name}, to confirm that."
                );
                let (status, query) = (StatusCode::UNPROCESSABLE_ENTITY, ViewQuery::default());
                return render(&web, &visitor, &view, status, &query, CommentBox::default(), Some(error)).await;
            }
            let confirmed = control_plane.confirm_run(caller, run, comment, form.accept_output_changes).await;
            (confirmed, "Confirmed. The apply is queued.")
        }
        "discard" => (control_plane.discard_run(caller, run, comment).await, "Run discarded."),
        "cancel" => (control_plane.cancel_run(caller, run, comment).await, "Cancellation requested."),
        "force-cancel" => {
            (control_plane.force_cancel_run(caller, run, comment).await, "Forced cancellation requested.")
        }
        "override-policies" => {
            (control_plane.override_policies(caller, run, comment).await, "Policies overridden. The run goes on.")
        }
        "force-execute" => (
            control_plane.force_execute_run(caller, run).await,
            "This run was moved to the front; runs ahead of it were discarded.",
        ),
        _ => return Err(PageError::not_found("decision")),
    };
    Ok(Flash::says(flash).redirect_to(&address_of(&decided?)))
}

#[derive(Deserialize)]
pub(crate) struct CommentForm {
    #[serde(default)]
    body: String,
}

/// `POST …/runs/{run}/comments`
pub(crate) async fn comment(
    State(web): State<Web>,
    Path(path): Path<RunPath>,
    VisitorForm(visitor, form): VisitorForm<CommentForm>,
) -> Result<Response, PageError> {
    let view = find(&web, &visitor, &path).await?;
    // Browsers send line breaks as two characters.
    let body = form.body.replace("\r\n", "\n").trim().to_owned();
    match web.control_plane.create_comment(&visitor.caller, view.run.id, body.clone()).await {
        Ok(_) => Ok(Flash::says("Comment added.").redirect_to(&address_of(&view))),
        Err(Error::Invalid { detail, .. }) => {
            let comment_box = CommentBox { text: body, error: Some(detail), refusal: None };
            let (status, query) = (StatusCode::UNPROCESSABLE_ENTITY, ViewQuery::default());
            render(&web, &visitor, &view, status, &query, comment_box, None).await
        }
        Err(error) => Err(error.into()),
    }
}
