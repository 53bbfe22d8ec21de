//! Runs: start, list, read, and what people decide about them.

use std::collections::BTreeMap;

use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use taco_control_plane::{Caller, ControlPlane, Listed, RunFilter, RunView};
use taco_domain::Author;
use taco_domain::engine::Engine;
use taco_domain::id::RunId;
use taco_domain::permission::Action;
use taco_domain::phase::PhaseKind;
use taco_domain::run::RunSource;
use taco_domain::run_request::RunRequest;
use taco_domain::wait_reason::WaitReason;

use crate::address::Address;
use crate::body::Body;
use crate::document::{Document, Identifier, Resource};
use crate::error::ApiError;
use crate::path::InPath;
use crate::query::Query;
use crate::workspaces::InWorkspace;
use crate::{Api, client, comments, configuration_versions, cost_estimates, phases, run_events, users, workspaces};

pub(crate) const KIND: &str = "runs";

#[derive(Serialize)]
#[serde(rename_all = "kebab-case")]
struct Attributes<'a> {
    status: String,
    status_timestamps: &'a BTreeMap<String, Timestamp>,
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
    /// Why it waits; empty for a run that is under way or over.
    taco_wait_reasons: Vec<Waits>,
    actions: Actions,
    permissions: Permissions,
}

#[derive(Serialize)]
struct Variable {
    key: String,
    value: String,
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

pub(crate) fn resource(control_plane: &ControlPlane, caller: &Caller, view: &RunView) -> Result<Resource, ApiError> {
    let RunView { run, open, .. } = view;
    let variables = control_plane.run_variables(caller, view)?;
    let variables = variables.into_iter().map(|(key, value)| Variable { key, value }).collect::<Vec<_>>();
    let waits = control_plane.wait_reasons(view).into_iter();
    let attributes = Attributes {
        status: run.status_on_the_wire(),
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
        position_in_queue: open.state.position_in_queue(run),
        taco_wait_reasons: waits.map(|reason| Waits { detail: reason.in_words(), reason }).collect(),
        actions: Actions {
            is_cancelable: run.status.is_cancelable() && run.cancel.is_none(),
            is_confirmable: run.status.is_confirmable(),
            is_discardable: run.status.is_discardable(),
            is_force_cancelable: control_plane.is_force_cancelable(run),
        },
        permissions: Permissions::of(caller, view),
    };
    let id = run.id;
    let events = (0..run.history.len()).map(|index| Identifier::new(run_events::KIND, run.event_id(index)));
    let comments = view.comments().into_iter().map(|comment| Identifier::new(comments::KIND, comment.id));
    Ok(Resource::new(KIND, id, &attributes)
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
        .has_many("task-stages", [])
        .has_many("run-events", events)
        .related(format!("/api/v2/runs/{id}/run-events"))
        .has_many("comments", comments)
        .related(format!("/api/v2/runs/{id}/comments"))
        .link("self", format!("/api/v2/runs/{id}")))
}

/// What the query wants beside a run. What nobody knows is left out: clients ask for things that taco does not have.
async fn include(
    api: &Api,
    caller: &Caller,
    address: &Address,
    view: &RunView,
    query: &Query,
    document: &mut Document,
) -> Result<(), ApiError> {
    if query.includes("plan") {
        document.include(phases::resource(api, caller, address, view, PhaseKind::Plan));
    }
    if query.includes("apply") {
        document.include(phases::resource(api, caller, address, view, PhaseKind::Apply));
    }
    if query.includes("cost-estimate")
        && let Some(estimate) = view.run.cost_estimate()
    {
        document.include(cost_estimates::resource(&estimate));
    }
    if query.includes("workspace") {
        document.include(workspaces::resource(caller, &workspaces::view_of(view)));
    }
    if query.includes("configuration-version")
        && let Some(version) = view.configuration()
    {
        document.include(configuration_versions::resource(version, None));
    }
    if query.includes("created-by")
        && let Author::User(author) = view.run.created_by
        && let Ok(user) = api.control_plane.user(caller, author).await
    {
        document.include(users::resource(&user));
    }
    Ok(())
}

async fn document(
    api: &Api,
    caller: &Caller,
    address: &Address,
    view: &RunView,
    query: &Query,
) -> Result<Document, ApiError> {
    let mut document = Document::one(resource(&api.control_plane, caller, view)?);
    include(api, caller, address, view, query, &mut document).await?;
    Ok(document)
}

async fn page(
    api: &Api,
    caller: &Caller,
    address: &Address,
    listed: Listed<RunView>,
    query: &Query,
) -> Result<Document, ApiError> {
    let views = listed.items.clone();
    let resources =
        views.iter().map(|view| resource(&api.control_plane, caller, view)).collect::<Result<Vec<_>, _>>()?;
    let mut document = Document::page(Listed { items: resources, page: listed.page, total: listed.total });
    for view in &views {
        include(api, caller, address, view, query, &mut document).await?;
    }
    Ok(document)
}

fn filter(query: &Query) -> RunFilter {
    let list = |key: &str| query.list(key).into_iter().map(str::to_owned).collect::<Vec<_>>();
    let text = |key: &str| query.get(key).map(str::to_owned);
    let (user, commit) = (text("search[user]"), text("search[commit]"));
    // Terraform Cloud lets these two overrule the general one.
    let special = user.is_some() || commit.is_some();
    RunFilter {
        statuses: list("filter[status]"),
        status_groups: list("filter[status_group]"),
        sources: list("filter[source]"),
        operations: list("filter[operation]"),
        workspaces: list("filter[workspace_names]"),
        agent_pools: list("filter[agent_pool_names]"),
        timeframe: text("filter[timeframe]"),
        text: text("search[basic]").filter(|_| !special),
        user,
        commit,
    }
}

/// `POST /api/v2/runs`
pub(crate) async fn create(
    State(api): State<Api>,
    caller: Caller,
    address: Address,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, ApiError> {
    let sent = body.resource::<RunRequest>(KIND)?;
    let workspace = sent.to_one("workspace")?.flatten();
    let configuration_version = sent.to_one("configuration-version")?.flatten();
    let request = RunRequest { workspace, configuration_version, ..sent.attributes };
    let view = api.control_plane.create_run(&caller, request, client::source(&headers)).await?;
    let document = document(&api, &caller, &address, &view, &Query::default()).await?;
    Ok((StatusCode::CREATED, document).into_response())
}

/// `GET /api/v2/runs/{run}`
pub(crate) async fn read(
    State(api): State<Api>,
    caller: Caller,
    address: Address,
    InPath(run): InPath<RunId>,
    query: Query,
) -> Result<Document, ApiError> {
    let view = api.control_plane.run(&caller, run).await?;
    document(&api, &caller, &address, &view, &query).await
}

/// `GET /api/v2/workspaces/{workspace}/runs`
pub(crate) async fn list_of_workspace(
    State(api): State<Api>,
    caller: Caller,
    address: Address,
    InWorkspace(workspace): InWorkspace,
    query: Query,
) -> Result<Document, ApiError> {
    let listed = api.control_plane.workspace_runs(&caller, &workspace, &filter(&query), query.page()?).await?;
    page(&api, &caller, &address, listed, &query).await
}

/// `GET /api/v2/organizations/{organization}/runs`
pub(crate) async fn list_of_organization(
    State(api): State<Api>,
    caller: Caller,
    address: Address,
    InPath(organization): InPath<String>,
    query: Query,
) -> Result<Document, ApiError> {
    let listed = api.control_plane.organization_runs(&caller, &organization, &filter(&query), query.page()?).await?;
    page(&api, &caller, &address, listed, &query).await
}

/// `GET /api/v2/organizations/{organization}/runs/queue`
pub(crate) async fn queue(
    State(api): State<Api>,
    caller: Caller,
    address: Address,
    InPath(organization): InPath<String>,
    query: Query,
) -> Result<Document, ApiError> {
    let listed = api.control_plane.run_queue(&caller, &organization, query.page()?).await?;
    page(&api, &caller, &address, listed, &query).await
}

/// What an action may say.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Said {
    comment: Option<String>,
}

/// `POST /api/v2/runs/{run}/actions/apply`
pub(crate) async fn apply(
    State(control_plane): State<ControlPlane>,
    caller: Caller,
    InPath(run): InPath<RunId>,
    body: Body,
) -> Result<StatusCode, ApiError> {
    let Said { comment } = body.action()?;
    control_plane.confirm_run(&caller, run, comment).await?;
    Ok(StatusCode::ACCEPTED)
}

/// `POST /api/v2/runs/{run}/actions/discard`
pub(crate) async fn discard(
    State(control_plane): State<ControlPlane>,
    caller: Caller,
    InPath(run): InPath<RunId>,
    body: Body,
) -> Result<StatusCode, ApiError> {
    let Said { comment } = body.action()?;
    control_plane.discard_run(&caller, run, comment).await?;
    Ok(StatusCode::ACCEPTED)
}

/// `POST /api/v2/runs/{run}/actions/cancel`
pub(crate) async fn cancel(
    State(control_plane): State<ControlPlane>,
    caller: Caller,
    InPath(run): InPath<RunId>,
    body: Body,
) -> Result<StatusCode, ApiError> {
    let Said { comment } = body.action()?;
    control_plane.cancel_run(&caller, run, comment).await?;
    Ok(StatusCode::ACCEPTED)
}

/// `POST /api/v2/runs/{run}/actions/force-cancel`
pub(crate) async fn force_cancel(
    State(control_plane): State<ControlPlane>,
    caller: Caller,
    InPath(run): InPath<RunId>,
    body: Body,
) -> Result<StatusCode, ApiError> {
    let Said { comment } = body.action()?;
    control_plane.force_cancel_run(&caller, run, comment).await?;
    Ok(StatusCode::ACCEPTED)
}

/// `POST /api/v2/runs/{run}/actions/force-execute`
pub(crate) async fn force_execute(
    State(control_plane): State<ControlPlane>,
    caller: Caller,
    InPath(run): InPath<RunId>,
) -> Result<StatusCode, ApiError> {
    control_plane.force_execute_run(&caller, run).await?;
    Ok(StatusCode::ACCEPTED)
}
