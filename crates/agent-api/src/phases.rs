//! Downloads and uploads of an agent for one attempt at a phase, with that attempt's token.

use axum::body::{Body, BodyDataStream, to_bytes};
use axum::extract::{Path, Query, Request, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use futures::{Stream, StreamExt};
use serde::Deserialize;
use taco_agent_protocol::PhaseAttempt;
use taco_agent_protocol::{LogConflict, Outcome, PhaseKind, Upload};
use taco_control_plane::{Error, LogRefusal, PhaseCaller, PlanForm, RequestInfo};
use taco_domain::id::RunId;

use crate::AgentApi;
use crate::error::{AgentError, bearer};
use crate::translation::{outcome, policy_bundle};

/// Maximum size of a piece of a log, and of the text of an outcome.
const MAX_SMALL_BODY_BYTES: usize = 4 * 1024 * 1024;

type PhasePath = Path<(String, String, String, String)>;

/// Offset of a piece of a log.
#[derive(Deserialize)]
pub(crate) struct At {
    #[serde(default)]
    offset: u64,
}

/// `GET /api/agent/v1/phases/{run}/{phase}/{epoch}/{configuration, state, plan or policies}`
pub(crate) async fn fetch(
    State(api): State<AgentApi>,
    path: PhasePath,
    headers: HeaderMap,
) -> Result<Response, AgentError> {
    let (attempt, what) = named(path)?;
    let caller = api.control_plane.phase_caller(bearer(&headers)?, request_info(&headers)).await?;
    let caller = only(attempt, caller)?;
    let download = match what.as_str() {
        "configuration" => api.control_plane.phase_configuration(&caller).await?,
        "state" => api.control_plane.phase_state(&caller).await?,
        "policies" => {
            let bundle = policy_bundle(api.control_plane.phase_policies(&caller).await?);
            return Ok(axum::Json(bundle).into_response());
        }
        "plan" => api.control_plane.phase_plan(&caller).await?,
        _ => return Err(Error::NotFound("object").into()),
    };
    Ok(Body::from_stream(download.body).into_response())
}

/// `PUT /api/agent/v1/phases/{run}/{phase}/{epoch}/{plan, json-plan, redacted-plan, log, state or outcome}`
pub(crate) async fn upload(
    State(api): State<AgentApi>,
    path: PhasePath,
    Query(at): Query<At>,
    request: Request,
) -> Result<StatusCode, AgentError> {
    let (attempt, what) = named(path)?;
    let what = Upload::ALL.into_iter().find(|upload| upload.word() == what).ok_or(Error::NotFound("object"))?;
    let plane = &api.control_plane;
    let (token, info) = (bearer(request.headers())?, request_info(request.headers()));
    let caller = match what {
        Upload::State => plane.phase_caller(token, info).await?,
        Upload::Plan | Upload::JsonPlan | Upload::RedactedPlan | Upload::Log | Upload::Outcome => {
            plane.phase_sender(token, info).await?
        }
    };
    let caller = only(attempt, caller)?;
    match what {
        Upload::Plan => plane.upload_plan(&caller, PlanForm::File, body_of(request)).await?,
        Upload::JsonPlan => plane.upload_plan(&caller, PlanForm::Json, body_of(request)).await?,
        Upload::RedactedPlan => plane.upload_plan(&caller, PlanForm::Redacted, body_of(request)).await?,
        Upload::State => {
            plane.write_phase_state(&caller, body_of(request)).await?;
        }
        Upload::Log => {
            let bytes = small(request).await?;
            plane.append_log(&caller, at.offset, bytes).await.map_err(|refusal| match refusal {
                LogRefusal::Elsewhere { next } => AgentError::LogConflict(LogConflict { next }),
                LogRefusal::Error(error) => error.into(),
            })?;
        }
        Upload::Outcome => {
            let bytes = small(request).await?;
            let parsed: Outcome = serde_json::from_slice(&bytes).map_err(|error| Error::Invalid {
                pointer: String::new(),
                detail: format!("this is no outcome of a phase: {error}"),
            })?;
            let outcome = outcome(parsed);
            tokio::time::sleep(plane.wait_before_finish(&caller, &outcome)).await;
            plane.finish_phase(&caller, outcome).await?;
            api.scheduler.finished(&caller.attempt);
        }
    }
    Ok(StatusCode::NO_CONTENT)
}

/// Attempt and resource that a path names.
fn named(Path((run, phase, epoch, what)): PhasePath) -> Result<(PhaseAttempt, String), AgentError> {
    let attempt = || -> Option<PhaseAttempt> {
        let (run, kind) = (run.parse::<RunId>().ok()?, phase.parse::<PhaseKind>().ok()?);
        Some(PhaseAttempt { run, phase: kind, epoch: epoch.parse().ok()? })
    };
    Ok((attempt().ok_or(Error::NotFound("phase"))?, what))
}

fn request_info(headers: &HeaderMap) -> RequestInfo {
    let id = headers.get("x-request-id").and_then(|value| value.to_str().ok()).map(str::to_owned);
    RequestInfo { id, ..RequestInfo::default() }
}

/// The token says which attempt may be read or written; the path has to say the same.
fn only(named: PhaseAttempt, caller: PhaseCaller) -> Result<PhaseCaller, AgentError> {
    match caller.attempt == named {
        true => Ok(caller),
        false => Err(Error::NotFound("phase").into()),
    }
}

async fn small(request: Request) -> Result<Bytes, AgentError> {
    let too_large = |_| Error::TooLarge { limit: MAX_SMALL_BODY_BYTES as u64 };
    Ok(to_bytes(request.into_body(), MAX_SMALL_BODY_BYTES).await.map_err(too_large)?)
}

fn body_of(request: Request) -> impl Stream<Item = Result<Bytes, axum::Error>> + Send + 'static {
    let stream: BodyDataStream = request.into_body().into_data_stream();
    stream.map(|piece| piece)
}
