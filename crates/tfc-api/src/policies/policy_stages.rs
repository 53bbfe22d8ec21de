//! The task stage on which clients look for the policies of a run.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::Serialize;
use taco_control_plane::RunView;
use taco_domain::run::Run;
use taco_domain::run_policies::PolicyVerdict;

use crate::document::{Document, Identifier, ResourceObject};
use crate::error::ApiError;
use crate::policy_evaluations::{self, PolicyEvaluation};
use crate::request::{Answer, ApiRequest};
use crate::resource::Resource;
use crate::runs;
use crate::task_stages::{judged_in_path, stages_of};

pub(crate) const KIND: &str = "task-stages";

/// The stage of a run's policies.
pub(crate) fn identifier(run: &Run) -> Identifier {
    Identifier::new(KIND, run.policy_stage_id())
}

#[derive(Serialize)]
#[serde(rename_all = "kebab-case")]
struct Attributes {
    stage: &'static str,
    status: &'static str,
    status_timestamps: BTreeMap<String, Timestamp>,
    created_at: Timestamp,
    updated_at: Timestamp,
    actions: Actions,
    permissions: Permissions,
}

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

/// The stage after the plan of a run with policies.
pub(crate) struct PolicyStage(pub(crate) RunView);

impl PolicyStage {
    pub(crate) fn status(&self) -> Result<&'static str, ApiError> {
        let policies = self.0.policies().ok_or_else(ApiError::not_found)?;
        let run = &self.0.run;
        Ok(match policies.evaluated_at {
            // Clients have seen it when the run began, and look again.
            None if run.status.is_final() => "unreachable",
            None => "pending",
            Some(_) if run.waits_for_override() => "awaiting_override",
            Some(_) => match policies.verdict(run.options.plan_only) {
                PolicyVerdict::GoesOn => "passed",
                PolicyVerdict::WaitsForOverride => "canceled",
                PolicyVerdict::Stops => "failed",
            },
        })
    }
}

impl Resource for PolicyStage {
    const KIND: &'static str = KIND;
    const INCLUDES: &'static [&'static str] = &["policy-evaluations"];

    fn object(&self, request: &ApiRequest) -> Result<ResourceObject, ApiError> {
        let run = &self.0.run;
        let policies = self.0.policies().ok_or_else(ApiError::not_found)?;
        let status = self.status()?;
        let may_override = self.0.may_override_policies(&request.caller);
        let at = policies.overridden.as_ref().map(|word| word.at).or(policies.evaluated_at);
        let attributes = Attributes {
            stage: "post_plan",
            status,
            status_timestamps: at.into_iter().map(|at| (format!("{}-at", status.replace('_', "-")), at)).collect(),
            created_at: run.created_at,
            updated_at: at.unwrap_or(run.created_at),
            actions: Actions { is_overridable: run.waits_for_override() },
            permissions: Permissions {
                can_override: may_override,
                can_override_policy: may_override,
                can_override_tasks: false,
            },
        };
        Ok(ResourceObject::new(KIND, run.policy_stage_id(), &attributes)
            .has_one("run", Identifier::new(runs::KIND, run.id))
            .has_many("task-results", [])
            .has_many("policy-evaluations", [Identifier::new(policy_evaluations::KIND, run.policy_evaluation_id())])
            .link("self", format!("/api/v2/task-stages/{}", run.policy_stage_id())))
    }

    async fn include(&self, _: &str, request: &ApiRequest, document: &mut Document) -> Result<(), ApiError> {
        document.include_some(Some(&PolicyEvaluation(self.0.clone())), request)
    }
}

/// `GET /api/v2/task-stages/{task_stage}/policy-evaluations`
pub(crate) async fn evaluations(request: ApiRequest) -> Answer {
    request.page_of([PolicyEvaluation(judged_in_path(&request).await?)]).await
}

/// What somebody says who overrides.
#[derive(Default, serde::Deserialize)]
#[serde(default)]
struct Said {
    comment: Option<String>,
}

/// `POST /api/v2/task-stages/{task_stage}/actions/override`
pub(crate) async fn override_stage(request: ApiRequest) -> Answer {
    let run = judged_in_path(&request).await?.run.id;
    let Said { comment } = request.body().await?.action()?;
    let run = request.control_plane.override_policies(&request.caller, run, comment).await?;
    let changed = stages_of(&run).into_iter().find(|stage| stage.judges());
    request.changed(&changed.ok_or_else(ApiError::not_found)?)
}

/// `POST /api/v2/runs/{run}/actions/override-policies`
pub(crate) async fn override_run(request: ApiRequest) -> Answer {
    let run = request.id("run")?;
    let Said { comment } = request.body().await?.action()?;
    request.control_plane.override_policies(&request.caller, run, comment).await?;
    crate::request::accepted()
}
