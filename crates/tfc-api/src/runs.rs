//! Runs: start, list, read, and what people decide about them.

pub(crate) mod comments;
pub(crate) mod cost_estimates;
pub(crate) mod log_stream;
pub(crate) mod phases;
pub(crate) mod run_events;
pub(crate) mod run_triggers;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use taco_control_plane::{AffectedConsumerView, Caller, GivenVariable, OutputContractView, RunFilter, RunView};
use taco_domain::engine::Engine;
use taco_domain::graph::words::{BreakingChange, ContractPolicy, OutputUse};
use taco_domain::id::{RunId, WorkspaceId};
use taco_domain::permission::Action;
use taco_domain::phase::PhaseKind;
use taco_domain::run::RunSource;
use taco_domain::run_request::RunRequest;
use taco_domain::run_word::RunWord;
use taco_domain::small_map::SmallMap;
use taco_domain::variable::VariableCategory;
use taco_domain::wait_reason::WaitReason;

use crate::document::{Document, Identifier, ResourceObject};
use crate::error::ApiError;
use crate::policy_evaluations::PolicySummary;
use crate::query::Query;
use crate::request::{Answer, ApiRequest, accepted};
use crate::resource::Resource;
use crate::{client, configuration_versions, task_stages, users, workspaces};

pub(crate) const KIND: &str = "runs";

#[derive(Serialize)]
#[serde(rename_all = "kebab-case")]
struct Attributes<'a> {
    status: String,
    status_timestamps: &'a SmallMap<RunWord, Timestamp>,
    message: &'a str,
    source: RunSource,
    trigger_reason: &'static str,
    created_at: Timestamp,
    canceled_at: Option<Timestamp>,
    force_cancel_available_at: Option<Timestamp>,
    has_changes: bool,
    is_destroy: bool,
    auto_apply: bool,
    plan_only: bool,
    save_plan: bool,
    refresh: bool,
    refresh_only: bool,
    allow_empty_apply: bool,
    allow_config_generation: bool,
    target_addrs: Option<&'a [String]>,
    replace_addrs: Option<&'a [String]>,
    variables: Option<Vec<Variable>>,
    terraform_version: &'a str,
    taco_engine: Engine,
    position_in_queue: usize,
    /// Reasons why it waits; none for a run that is under way or over.
    taco_wait_reasons: Vec<Waits>,
    /// Outputs that its plan removes or retypes and that others use.
    taco_output_contract: Option<Contract>,
    /// What the plan was given for variables that are bound to outputs.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    taco_bound_variables: Vec<Bound>,
    /// What its policies said about the plan, and which of them stop it.
    #[serde(skip_serializing_if = "Option::is_none")]
    taco_policies: Option<PolicySummary>,
    actions: Actions,
    permissions: Permissions,
}

#[derive(Serialize)]
struct Variable {
    key: String,
    value: String,
}

/// A bound variable, without its value.
#[derive(Serialize)]
#[serde(rename_all = "kebab-case")]
struct Bound {
    variable: String,
    category: VariableCategory,
    producer: String,
    output: String,
    commit: Option<u32>,
    digest: String,
    sensitive: bool,
    /// The run whose plan announces the value.
    announced_by: Option<RunId>,
}

impl Bound {
    fn of(given: GivenVariable) -> Self {
        let GivenVariable { bound, producer } = given;
        Self {
            variable: bound.key,
            category: bound.category,
            producer,
            output: bound.output,
            commit: bound.commit,
            digest: bound.digest.to_string(),
            sensitive: bound.sensitive,
            announced_by: bound.announced_by,
        }
    }
}

#[derive(Serialize)]
#[serde(rename_all = "kebab-case")]
struct Contract {
    policy: ContractPolicy,
    /// The run does not apply by itself.
    stops: bool,
    consumer_count: u64,
    broken: Vec<BrokenOutput>,
    /// Number of broken outputs that are not listed.
    more_outputs: u64,
    sentences: Vec<String>,
    accepted_by: Option<String>,
    accepted_at: Option<Timestamp>,
}

#[derive(Serialize)]
#[serde(rename_all = "kebab-case")]
struct BrokenOutput {
    output: String,
    change: BreakingChange,
    certain: bool,
    consumers: Vec<Consumer>,
    /// Number of consumers that are not listed.
    more_consumers: u64,
}

#[derive(Serialize)]
#[serde(rename_all = "kebab-case")]
struct Consumer {
    /// `None` for one that the caller may not see.
    id: Option<WorkspaceId>,
    name: String,
    #[serde(rename = "use")]
    how: OutputUse,
}

impl From<OutputContractView> for Contract {
    fn from(view: OutputContractView) -> Self {
        let OutputContractView { contract, broken, sentences, accepted_by } = view;
        let consumer = |it: AffectedConsumerView| Consumer { id: it.id, name: it.name, how: it.how };
        let broken = broken.into_iter().map(|it| BrokenOutput {
            output: it.output,
            change: it.change,
            certain: it.certain,
            consumers: it.consumers.into_iter().map(consumer).collect(),
            more_consumers: it.unlisted,
        });
        Self {
            policy: contract.policy,
            stops: contract.stops,
            consumer_count: contract.consumers,
            broken: broken.collect(),
            more_outputs: contract.unlisted,
            sentences,
            accepted_by,
            accepted_at: contract.accepted.map(|accepted| accepted.at),
        }
    }
}

#[derive(Serialize)]
struct Waits {
    #[serde(flatten)]
    reason: WaitReason,
    detail: String,
}

#[derive(Serialize)]
#[serde(rename_all = "kebab-case")]
struct Actions {
    is_cancelable: bool,
    is_confirmable: bool,
    is_discardable: bool,
    is_force_cancelable: bool,
}

#[derive(Serialize)]
#[serde(rename_all = "kebab-case")]
struct Permissions {
    can_apply: bool,
    can_cancel: bool,
    can_comment: bool,
    can_discard: bool,
    can_force_cancel: bool,
    can_force_execute: bool,
    can_override_policy_check: bool,
}

impl Permissions {
    fn of(caller: &Caller, view: &RunView) -> Self {
        let may = |action| caller.may(action, view.resource()).allowed;
        let (apply, force) = (may(Action::ApplyRun), may(Action::ForceCancelRun));
        Self {
            can_apply: apply,
            can_cancel: apply,
            can_comment: may(Action::QueuePlan),
            can_discard: apply,
            can_force_cancel: force,
            can_force_execute: force,
            can_override_policy_check: false,
        }
    }
}

fn trigger_reason(source: RunSource) -> &'static str {
    match source {
        RunSource::RunTrigger => "run_trigger",
        RunSource::ConfigurationVersion => "configuration_version",
        RunSource::Api | RunSource::Page | RunSource::Terraform | RunSource::Cloud => "manual",
    }
}

/// An attribute that clients compare with nothing when it is empty.
fn unless_empty(list: &[String]) -> Option<&[String]> {
    Some(list).filter(|list| !list.is_empty())
}

impl Resource for RunView {
    const KIND: &'static str = KIND;
    const INCLUDES: &'static [&'static str] =
        &["plan", "apply", "cost-estimate", "workspace", "configuration-version", "created-by", "task-stages"];

    fn object(&self, request: &ApiRequest) -> Result<ResourceObject, ApiError> {
        let run = &self.run;
        let control_plane = &request.control_plane;
        let variables = control_plane.run_variables(&request.caller, self)?;
        let variables = variables.into_iter().map(|(key, value)| Variable { key, value }).collect::<Vec<_>>();
        let waits = control_plane.wait_reasons(self).into_iter();
        let attributes = Attributes {
            status: run.status_on_the_wire().to_owned(),
            status_timestamps: &run.timestamps,
            message: &run.options.message,
            source: run.source,
            trigger_reason: trigger_reason(run.source),
            created_at: run.created_at,
            canceled_at: run.cancel.as_ref().map(|request| request.at),
            force_cancel_available_at: control_plane.force_cancel_available_at(run),
            has_changes: run.has_changes.unwrap_or_default(),
            is_destroy: run.options.is_destroy,
            auto_apply: run.options.auto_apply,
            plan_only: run.options.plan_only,
            save_plan: run.options.save_plan,
            refresh: run.options.refresh,
            refresh_only: run.options.refresh_only,
            allow_empty_apply: run.options.allow_empty_apply,
            allow_config_generation: run.options.allow_config_generation,
            target_addrs: unless_empty(&run.options.target_addrs),
            replace_addrs: unless_empty(&run.options.replace_addrs),
            variables: Some(variables).filter(|variables| !variables.is_empty()),
            terraform_version: &run.options.terraform_version,
            taco_engine: run.options.engine,
            position_in_queue: self.position_in_queue(),
            taco_wait_reasons: waits.map(|reason| Waits { detail: reason.in_words(), reason }).collect(),
            taco_output_contract: self.output_contract(&request.caller).map(Contract::from),
            taco_bound_variables: self.given_variables(&request.caller).into_iter().map(Bound::of).collect(),
            taco_policies: self.policies().map(PolicySummary::of),
            actions: Actions {
                is_cancelable: run.check_cancel().is_ok(),
                is_confirmable: run.status.is_confirmable(),
                is_discardable: run.status.is_discardable(),
                is_force_cancelable: control_plane.is_force_cancelable(run),
            },
            permissions: Permissions::of(&request.caller, self),
        };
        let id = run.id;
        let events = (0..run.history.len()).map(|index| Identifier::new(run_events::KIND, run.event_id(index)));
        let stages = task_stages::identifiers(self);
        let comments = self.comments().into_iter().map(|comment| Identifier::new(comments::KIND, comment.id));
        Ok(ResourceObject::new(KIND, id, &attributes)
            .has_one("workspace", Identifier::new(workspaces::KIND, run.workspace))
            .has_one("plan", Identifier::new(phases::PLANS, run.plan_id()))
            .related(format!("/api/v2/runs/{id}/plan"))
            .has_one("apply", Identifier::new(phases::APPLIES, run.apply_id()))
            .related(format!("/api/v2/runs/{id}/apply"))
            .has_one("configuration-version", Identifier::new(configuration_versions::KIND, run.configuration_version))
            .related(format!("/api/v2/configuration-versions/{}", run.configuration_version))
            .has_optional("created-by", users::user(&run.created_by))
            .has_optional("confirmed-by", run.confirmed_by.as_ref().and_then(users::user))
            .has_optional("cost-estimate", run.cost_estimate().as_ref().map(cost_estimates::identifier))
            .has_many("policy-checks", [])
            .related(format!("/api/v2/runs/{id}/policy-checks"))
            .has_many("task-stages", stages)
            .related(format!("/api/v2/runs/{id}/task-stages"))
            .has_many("run-events", events)
            .related(format!("/api/v2/runs/{id}/run-events"))
            .has_many("comments", comments)
            .related(format!("/api/v2/runs/{id}/comments"))
            .link("self", format!("/api/v2/runs/{id}")))
    }

    async fn include(&self, name: &str, request: &ApiRequest, document: &mut Document) -> Result<(), ApiError> {
        match name {
            "plan" => document.include(phases::object(request, self, PhaseKind::Plan)),
            "apply" => document.include(phases::object(request, self, PhaseKind::Apply)),
            "workspace" => document.include(self.workspace_view().object(request)?),
            "created-by" => users::include(&self.run.created_by, request, document).await?,
            "cost-estimate" => document.include_some(self.run.cost_estimate().as_ref(), request)?,
            "task-stages" => document.include_all(&task_stages::stages_of(self), request)?,
            _ => document.include_some(self.configuration(), request)?,
        }
        Ok(())
    }
}

fn filter(query: &Query) -> RunFilter {
    let (user, commit) = (query.text("search[user]"), query.text("search[commit]"));
    // Terraform Cloud lets these two overrule the general one.
    let special = user.is_some() || commit.is_some();
    RunFilter {
        statuses: query.texts("filter[status]"),
        status_groups: query.texts("filter[status_group]"),
        sources: query.texts("filter[source]"),
        operations: query.texts("filter[operation]"),
        workspaces: query.texts("filter[workspace_names]"),
        agent_pools: query.texts("filter[agent_pool_names]"),
        timeframe: query.text("filter[timeframe]"),
        text: query.text("search[basic]").filter(|_| !special),
        user,
        commit,
    }
}

/// `POST /api/v2/runs`
pub(crate) async fn create(request: ApiRequest) -> Answer {
    let sent = request.resource::<RunRequest>(KIND).await?;
    let workspace = sent.to_one("workspace")?.flatten();
    let configuration_version = sent.to_one("configuration-version")?.flatten();
    let wanted = RunRequest { workspace, configuration_version, ..sent.attributes };
    let source = client::source(request.headers());
    request.created(&request.control_plane.create_run(&request.caller, wanted, source).await?)
}

/// `GET /api/v2/runs/{run}`
pub(crate) async fn read(request: ApiRequest) -> Answer {
    request.one(&request.control_plane.run(&request.caller, request.id("run")?).await?).await
}

/// `GET /api/v2/workspaces/{workspace}/runs`
pub(crate) async fn list_of_workspace(request: ApiRequest) -> Answer {
    let ApiRequest { control_plane, caller, query, .. } = &request;
    let workspace = request.workspace()?;
    request.page(control_plane.workspace_runs(caller, &workspace, &filter(query), query.page()?).await?).await
}

/// `GET /api/v2/organizations/{organization}/runs`
pub(crate) async fn list_of_organization(request: ApiRequest) -> Answer {
    let ApiRequest { control_plane, caller, query, .. } = &request;
    let organization = request.organization()?;
    request.page(control_plane.organization_runs(caller, organization, &filter(query), query.page()?).await?).await
}

/// `GET /api/v2/organizations/{organization}/runs/queue`
pub(crate) async fn queue(request: ApiRequest) -> Answer {
    let (organization, page) = (request.organization()?, request.query.page()?);
    request.page(request.control_plane.run_queue(&request.caller, organization, page).await?).await
}

/// Attributes of an action.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Said {
    comment: Option<String>,
}

/// Attributes of a confirmation.
#[derive(Default, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
struct Confirmation {
    comment: Option<String>,
    accept_output_changes: bool,
}

/// The run that an action is about, and what is said with it.
async fn decision(request: &ApiRequest) -> Result<(RunId, Option<String>), ApiError> {
    let run = request.id("run")?;
    let Said { comment } = request.body().await?.action()?;
    Ok((run, comment))
}

/// `POST /api/v2/runs/{run}/actions/apply`
pub(crate) async fn apply(request: ApiRequest) -> Answer {
    let run = request.id("run")?;
    let Confirmation { comment, accept_output_changes } = request.body().await?.action()?;
    request.control_plane.confirm_run(&request.caller, run, comment, accept_output_changes).await?;
    accepted()
}

/// `POST /api/v2/runs/{run}/actions/discard`
pub(crate) async fn discard(request: ApiRequest) -> Answer {
    let (run, comment) = decision(&request).await?;
    request.control_plane.discard_run(&request.caller, run, comment).await?;
    accepted()
}

/// `POST /api/v2/runs/{run}/actions/cancel`
pub(crate) async fn cancel(request: ApiRequest) -> Answer {
    let (run, comment) = decision(&request).await?;
    request.control_plane.cancel_run(&request.caller, run, comment).await?;
    accepted()
}

/// `POST /api/v2/runs/{run}/actions/force-cancel`
pub(crate) async fn force_cancel(request: ApiRequest) -> Answer {
    let (run, comment) = decision(&request).await?;
    request.control_plane.force_cancel_run(&request.caller, run, comment).await?;
    accepted()
}

/// `POST /api/v2/runs/{run}/actions/force-execute`
pub(crate) async fn force_execute(request: ApiRequest) -> Answer {
    request.control_plane.force_execute_run(&request.caller, request.id("run")?).await?;
    accepted()
}
