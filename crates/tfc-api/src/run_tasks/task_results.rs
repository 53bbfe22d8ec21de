//! Results of run tasks: people read them, and a task sends its own with the token of its request.

use axum::Json;
use axum::response::IntoResponse;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::json;
use taco_control_plane::{LARGEST_OUTCOMES, SentAnswer, TaskOutcome, TaskResultView};
use taco_domain::run_task::TaskEnforcement;
use taco_domain::run_word::RunWord;
use taco_domain::small_map::SmallMap;
use taco_domain::task_result::TaskResultStatus;
use taco_domain::task_stage::StageKind;

use crate::body;
use crate::document::{Document, Identifier, ResourceObject};
use crate::error::ApiError;
use crate::request::{Answer, ApiRequest};
use crate::resource::Resource;
use crate::task_stages;

pub(crate) const KIND: &str = "task-results";
const OUTCOMES: &str = "task-result-outcomes";

#[derive(Serialize)]
#[serde(rename_all = "kebab-case")]
struct Attributes<'a> {
    message: &'a str,
    status: TaskResultStatus,
    status_timestamps: &'a SmallMap<RunWord, Timestamp>,
    url: Option<&'a str>,
    created_at: Timestamp,
    updated_at: Timestamp,
    task_id: String,
    task_name: &'a str,
    task_url: &'a str,
    stage: StageKind,
    is_speculative: bool,
    workspace_task_id: Option<String>,
    workspace_task_enforcement_level: TaskEnforcement,
    agent_pool_id: Option<&'a str>,
    taco_outcomes_count: u32,
}

impl Resource for TaskResultView {
    const KIND: &'static str = KIND;
    const INCLUDES: &'static [&'static str] = &["task-stage"];

    fn object(&self, _: &ApiRequest) -> Result<ResourceObject, ApiError> {
        let result = self.result()?;
        let attributes = Attributes {
            message: &result.message,
            status: result.status,
            status_timestamps: &result.timestamps,
            url: result.url.as_deref(),
            created_at: result.created_at,
            updated_at: result.updated_at,
            task_id: result.task.to_string(),
            task_name: &result.task_name,
            task_url: &result.task_url,
            stage: self.kind,
            is_speculative: self.run.run.options.plan_only,
            workspace_task_id: result.workspace_task.map(|id| id.to_string()),
            workspace_task_enforcement_level: result.enforcement,
            agent_pool_id: None,
            taco_outcomes_count: result.outcomes.as_ref().map_or(0, |stored| stored.count),
        };
        Ok(ResourceObject::new(KIND, self.id(), &attributes)
            .has_one("task-stage", Identifier::new(task_stages::KIND, self.run.run.stage_id(self.kind)))
            .link("self", format!("/api/v2/task-results/{}", self.id())))
    }

    async fn include(&self, _: &str, request: &ApiRequest, document: &mut Document) -> Result<(), ApiError> {
        document.include_some(self.stage().as_ref(), request)
    }
}

/// `GET /api/v2/task-results/{task_result}`
pub(crate) async fn read(request: ApiRequest) -> Answer {
    request.one(&request.control_plane.task_result(&request.caller, request.id("task_result")?).await?).await
}

/// `GET /api/v2/task-results/{task_result}/outcomes`
pub(crate) async fn outcomes(request: ApiRequest) -> Answer {
    let view = request.control_plane.task_result(&request.caller, request.id("task_result")?).await?;
    let outcomes = request.control_plane.task_outcomes(&view).await?.into_iter().enumerate();
    let object = |(index, outcome)| ResourceObject::new(OUTCOMES, format!("{}-{index}", view.id()), &outcome);
    let objects: Vec<_> = outcomes.map(|(index, outcome): (usize, TaskOutcome)| object((index, outcome))).collect();
    Ok(Document::many(objects).into_response())
}

/// Attributes of an answer. What else is sent, such as the provider's own numbers, is not kept.
#[derive(Default, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
struct Sent {
    status: Option<String>,
    message: Option<String>,
    url: Option<String>,
}

/// `PATCH /api/v2/task-results/{task_result}/callback`
pub(crate) async fn answer(request: ApiRequest) -> Answer {
    let id = request.id("task_result")?;
    let body = body::read(request.headers(), request.take_body(), LARGEST_OUTCOMES).await?;
    let sent = body.resource::<Sent>(KIND)?;
    let outcomes = sent.to_many::<TaskOutcome>("outcomes", OUTCOMES)?;
    let outcomes = outcomes.map(|outcomes| outcomes.into_iter().map(|outcome| outcome.attributes).collect());
    let Sent { status, message, url } = sent.attributes;
    let answer = SentAnswer { status, message, url, outcomes };
    request.control_plane.answer_task(&request.caller, id, answer).await?;
    Ok(Json(json!({})).into_response())
}
