//! Task stages of runs.

use jiff::Timestamp;
use serde::Serialize;
use taco_control_plane::{Error, RunView, TaskStageView};
use taco_domain::run_word::RunWord;
use taco_domain::small_map::SmallMap;
use taco_domain::task_stage::{StageKind, TaskStageStatus};

use crate::document::{Document, Identifier, ResourceObject};
use crate::error::ApiError;
use crate::policy_evaluations::{self, PolicyEvaluation};
use crate::policy_stages::PolicyStage;
use crate::request::{Answer, ApiRequest};
use crate::resource::Resource;
use crate::{policy_stages, runs, task_results};

pub(crate) const KIND: &str = "task-stages";

#[derive(Serialize)]
#[serde(rename_all = "kebab-case")]
struct Attributes<'a> {
    stage: StageKind,
    status: Status,
    status_timestamps: &'a SmallMap<RunWord, Timestamp>,
    created_at: Timestamp,
    updated_at: Timestamp,
    actions: Actions,
    permissions: Permissions,
}

/// Status of a stage: that of its tasks, and once they have answered, that of the policies which are judged then.
#[derive(Serialize)]
#[serde(untagged)]
enum Status {
    Tasks(TaskStageStatus),
    Policies(&'static str),
}

/// Policies can be overridden. A task that is mandatory stops a run for good.
#[derive(Serialize)]
#[serde(rename_all = "kebab-case")]
struct Actions {
    is_overridable: bool,
}

#[derive(Serialize)]
#[serde(rename_all = "kebab-case")]
struct Permissions {
    can_override: bool,
    can_override_policy: bool,
    can_override_tasks: bool,
}

/// The policies that are judged in a stage, if any are.
fn policies_of(view: &TaskStageView) -> Option<PolicyStage> {
    let judges = view.stage.stage == StageKind::PostPlan && view.run.policies().is_some();
    judges.then(|| PolicyStage(view.run.clone()))
}

impl Resource for TaskStageView {
    const KIND: &'static str = KIND;
    const INCLUDES: &'static [&'static str] = &["task-results", "policy-evaluations"];

    fn object(&self, request: &ApiRequest) -> Result<ResourceObject, ApiError> {
        let (stage, run) = (&self.stage, &self.run.run);
        let policies = policies_of(self);
        let status = match &policies {
            Some(policies) if stage.status == TaskStageStatus::Passed => Status::Policies(policies.status()?),
            _ => Status::Tasks(stage.status),
        };
        let may_override = policies.is_some() && self.run.may_override_policies(&request.caller);
        let attributes = Attributes {
            stage: stage.stage,
            status,
            status_timestamps: &stage.timestamps,
            created_at: stage.created_at,
            updated_at: stage.updated_at,
            actions: Actions { is_overridable: policies.is_some() && run.waits_for_override() },
            permissions: Permissions {
                can_override: may_override,
                can_override_policy: may_override,
                can_override_tasks: false,
            },
        };
        let results = self.results().into_iter().map(|result| Identifier::new(task_results::KIND, result.id()));
        let evaluation = Identifier::new(policy_evaluations::KIND, run.policy_evaluation_id());
        Ok(ResourceObject::new(KIND, self.id(), &attributes)
            .has_one("run", Identifier::new(runs::KIND, run.id))
            .has_many("task-results", results)
            .has_many("policy-evaluations", policies.map(|_| evaluation))
            .link("self", format!("/api/v2/task-stages/{}", self.id())))
    }

    async fn include(&self, name: &str, request: &ApiRequest, document: &mut Document) -> Result<(), ApiError> {
        match name {
            "task-results" => document.include_all(&self.results(), request),
            _ => {
                let evaluation = policies_of(self).map(|PolicyStage(run)| PolicyEvaluation(run));
                document.include_some(evaluation.as_ref(), request)
            }
        }
    }
}

/// A stage of a run: one that asks tasks, or one that judges policies alone.
pub(crate) enum StageOfRun {
    Tasks(Box<TaskStageView>),
    Policies(Box<PolicyStage>),
}

impl StageOfRun {
    fn identifier(&self) -> Identifier {
        match self {
            Self::Tasks(view) => Identifier::new(KIND, view.id()),
            Self::Policies(stage) => policy_stages::identifier(&stage.0.run),
        }
    }

    /// True if policies are judged in it.
    pub(crate) fn judges(&self) -> bool {
        match self {
            Self::Tasks(view) => policies_of(view).is_some(),
            Self::Policies(_) => true,
        }
    }
}

impl Resource for StageOfRun {
    const KIND: &'static str = KIND;
    const INCLUDES: &'static [&'static str] = <TaskStageView as Resource>::INCLUDES;

    fn object(&self, request: &ApiRequest) -> Result<ResourceObject, ApiError> {
        match self {
            Self::Tasks(stage) => stage.object(request),
            Self::Policies(stage) => stage.object(request),
        }
    }

    async fn include(&self, name: &str, request: &ApiRequest, document: &mut Document) -> Result<(), ApiError> {
        match self {
            Self::Tasks(stage) => stage.include(name, request, document).await,
            Self::Policies(stage) if PolicyStage::INCLUDES.contains(&name) => {
                stage.include(name, request, document).await
            }
            Self::Policies(_) => Ok(()),
        }
    }
}

/// The stages of a run, in the order in which their turns come.
pub(crate) fn stages_of(run: &RunView) -> Vec<StageOfRun> {
    let tasks = run.task_stages();
    let judges_alone = run.policies().is_some() && !tasks.iter().any(|view| view.stage.stage == StageKind::PostPlan);
    let before_plan = tasks.iter().filter(|view| view.stage.stage < StageKind::PostPlan).count();
    let mut stages: Vec<StageOfRun> = tasks.into_iter().map(|view| StageOfRun::Tasks(Box::new(view))).collect();
    if judges_alone {
        stages.insert(before_plan, StageOfRun::Policies(Box::new(PolicyStage(run.clone()))));
    }
    stages
}

/// Identifiers of the same.
pub(crate) fn identifiers(run: &RunView) -> Vec<Identifier> {
    stages_of(run).iter().map(StageOfRun::identifier).collect()
}

/// Identifier of the stage of a run in which its policies are judged.
pub(crate) fn judging(run: &RunView) -> Option<Identifier> {
    stages_of(run).iter().find(|stage| stage.judges()).map(StageOfRun::identifier)
}

/// The stage in the path of a request.
pub(crate) async fn stage_in_path(request: &ApiRequest) -> Result<StageOfRun, ApiError> {
    let ApiRequest { control_plane, caller, .. } = request;
    match control_plane.task_stage(caller, request.id("task_stage")?).await {
        Ok(view) => Ok(StageOfRun::Tasks(Box::new(view))),
        Err(Error::NotFound(_)) => {
            let run = control_plane.policy_stage(caller, request.id("task_stage")?).await?;
            Ok(StageOfRun::Policies(Box::new(PolicyStage(run))))
        }
        Err(error) => Err(error.into()),
    }
}

/// The run whose policies are judged in the stage in the path of a request.
pub(crate) async fn judged_in_path(request: &ApiRequest) -> Result<RunView, ApiError> {
    match stage_in_path(request).await? {
        StageOfRun::Policies(stage) => Ok(stage.0),
        StageOfRun::Tasks(view) => policies_of(&view).map(|stage| stage.0).ok_or_else(ApiError::not_found),
    }
}

/// `GET /api/v2/runs/{run}/task-stages`
pub(crate) async fn list(request: ApiRequest) -> Answer {
    let run = request.control_plane.run(&request.caller, request.id("run")?).await?;
    request.page_of(stages_of(&run)).await
}

/// `GET /api/v2/task-stages/{task_stage}`
pub(crate) async fn read(request: ApiRequest) -> Answer {
    request.one(&stage_in_path(&request).await?).await
}
