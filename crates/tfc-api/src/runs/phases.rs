//! Plans and applies, with the address of their log.

use axum::body::Body as ResponseBody;
use axum::response::IntoResponse;
use jiff::Timestamp;
use serde::Serialize;
use taco_control_plane::{PlanForm, PlanOutput, RunView, SignedUrlPurpose};
use taco_domain::id::{AgentId, AgentPoolId, PlanId, RunId};
use taco_domain::phase::{Executor, Phase, PhaseKind, PhaseStatus};

use crate::document::{Document, ResourceObject};
use crate::error::ApiError;
use crate::request::{Answer, ApiRequest, no_content};
use crate::signed_url::{json_bytes, signed};

pub(crate) const PLANS: &str = "plans";
pub(crate) const APPLIES: &str = "applies";

#[derive(Serialize)]
#[serde(rename_all = "kebab-case")]
struct Attributes<'a> {
    status: PhaseStatus,
    status_timestamps: StatusTimestamps,
    log_read_url: String,
    resource_additions: u64,
    resource_changes: u64,
    resource_destructions: u64,
    resource_imports: u64,
    execution_details: Option<ExecutionDetails<'a>>,
    /// Error message for people.
    taco_error: Option<&'a str>,
    /// Report of its agent that came after the phase was given up.
    taco_late_outcome: Option<&'a str>,
    /// Reasons why it waited before it began, as its log shows them.
    taco_waits: Vec<Waited<'a>>,
    #[serde(flatten)]
    plan: Option<PlanAttributes>,
}

#[derive(Serialize)]
#[serde(rename_all = "kebab-case")]
struct PlanAttributes {
    has_changes: bool,
    generated_configuration: bool,
}

#[derive(Default, Serialize)]
#[serde(rename_all = "kebab-case")]
struct StatusTimestamps {
    #[serde(skip_serializing_if = "Option::is_none")]
    queued_at: Option<Timestamp>,
    #[serde(skip_serializing_if = "Option::is_none")]
    started_at: Option<Timestamp>,
    #[serde(skip_serializing_if = "Option::is_none")]
    finished_at: Option<Timestamp>,
    #[serde(skip_serializing_if = "Option::is_none")]
    errored_at: Option<Timestamp>,
    #[serde(skip_serializing_if = "Option::is_none")]
    canceled_at: Option<Timestamp>,
}

impl StatusTimestamps {
    fn of(phase: &Phase) -> Self {
        let ended = |status| phase.ended_at.filter(|_| phase.status == status);
        Self {
            queued_at: phase.queued_at,
            started_at: phase.started_at,
            finished_at: ended(PhaseStatus::Finished),
            errored_at: ended(PhaseStatus::Errored),
            canceled_at: ended(PhaseStatus::Canceled),
        }
    }
}

#[derive(Serialize)]
struct Waited<'a> {
    since: Timestamp,
    detail: &'a str,
}

/// The agent that executes it, or did.
#[derive(Serialize)]
#[serde(rename_all = "kebab-case")]
struct ExecutionDetails<'a> {
    agent_id: AgentId,
    agent_name: &'a str,
    agent_pool_id: Option<AgentPoolId>,
}

impl<'a> From<&'a Executor> for ExecutionDetails<'a> {
    fn from(executor: &'a Executor) -> Self {
        Self { agent_id: executor.agent, agent_name: &executor.agent_name, agent_pool_id: executor.pool }
    }
}

/// The plan or the apply of a run.
pub(crate) fn object(request: &ApiRequest, view: &RunView, kind: PhaseKind) -> ResourceObject {
    let run = &view.run;
    let phase = run.phase(kind);
    let log_read_url = match kind {
        PhaseKind::Plan => signed(request, SignedUrlPurpose::ReadPlanLog, run.plan_id()),
        PhaseKind::Apply => signed(request, SignedUrlPurpose::ReadApplyLog, run.apply_id()),
    };
    let plan = PlanAttributes {
        has_changes: run.has_changes.unwrap_or_default(),
        generated_configuration: run.generated_configuration,
    };
    let attributes = Attributes {
        status: match phase.status {
            PhaseStatus::Finished if !run.has_ended_for_readers(kind) => PhaseStatus::Running,
            status => status,
        },
        status_timestamps: StatusTimestamps::of(phase),
        log_read_url,
        resource_additions: phase.counts.additions,
        resource_changes: phase.counts.changes,
        resource_destructions: phase.counts.destructions,
        resource_imports: phase.counts.imports,
        execution_details: phase.executor.as_ref().map(ExecutionDetails::from),
        taco_error: phase.error.as_deref(),
        taco_late_outcome: phase.late_outcome.as_deref(),
        taco_waits: phase.waits.iter().map(|note| Waited { since: note.at, detail: &note.text }).collect(),
        plan: (kind == PhaseKind::Plan).then_some(plan),
    };
    match kind {
        PhaseKind::Plan => {
            let path = format!("/api/v2/plans/{}", run.plan_id());
            let output = format!("{path}/json-output");
            ResourceObject::new(PLANS, run.plan_id(), &attributes)
                .has_many("exports", [])
                .link("self", path)
                .link("json-output", output)
        }
        PhaseKind::Apply => ResourceObject::new(APPLIES, run.apply_id(), &attributes)
            .has_many("state-versions", [])
            .link("self", format!("/api/v2/applies/{}", run.apply_id())),
    }
}

fn document(request: &ApiRequest, view: &RunView, kind: PhaseKind) -> Answer {
    Ok(Document::one(object(request, view, kind)).into_response())
}

/// `GET /api/v2/plans/{plan}`
pub(crate) async fn read_plan(request: ApiRequest) -> Answer {
    let view = request.control_plane.run_of_plan(&request.caller, request.id("plan")?).await?;
    document(&request, &view, PhaseKind::Plan)
}

/// `GET /api/v2/applies/{apply}`
pub(crate) async fn read_apply(request: ApiRequest) -> Answer {
    let view = request.control_plane.run_of_apply(&request.caller, request.id("apply")?).await?;
    document(&request, &view, PhaseKind::Apply)
}

/// `GET /api/v2/runs/{run}/plan`
pub(crate) async fn plan_of_run(request: ApiRequest) -> Answer {
    let view = request.control_plane.run(&request.caller, request.id("run")?).await?;
    document(&request, &view, PhaseKind::Plan)
}

/// `GET /api/v2/runs/{run}/apply`
pub(crate) async fn apply_of_run(request: ApiRequest) -> Answer {
    let view = request.control_plane.run(&request.caller, request.id("run")?).await?;
    document(&request, &view, PhaseKind::Apply)
}

async fn output(request: &ApiRequest, plan: PlanId, form: PlanForm) -> Answer {
    match request.control_plane.plan_output(&request.caller, plan, form).await? {
        PlanOutput::Ready(download) => Ok(json_bytes(download.size, ResponseBody::from_stream(download.body))),
        PlanOutput::NotYet => no_content(),
    }
}

/// `GET /api/v2/plans/{plan}/json-output`, also below a run
pub(crate) async fn json_output(request: ApiRequest) -> Answer {
    output(&request, request.id("plan")?, PlanForm::Json).await
}

/// `GET /api/v2/plans/{plan}/json-output-redacted`
pub(crate) async fn json_output_redacted(request: ApiRequest) -> Answer {
    output(&request, request.id("plan")?, PlanForm::Redacted).await
}

/// `GET /api/v2/runs/{run}/plan/json-output`
pub(crate) async fn json_output_of_run(request: ApiRequest) -> Answer {
    let run: RunId = request.id("run")?;
    let plan = PlanId::from_characters(run.characters()).map_err(|_| ApiError::not_found())?;
    output(&request, plan, PlanForm::Json).await
}
