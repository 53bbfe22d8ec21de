//! Workspaces: settings, locks, consumers of their state. Both CLIs read most of these attributes.

pub(crate) mod reserved_tag_keys;
pub(crate) mod tag_bindings;
pub(crate) mod tags;
pub(crate) mod workspace_includes;
pub(crate) mod workspace_resources;

use axum::http::HeaderMap;
use axum::http::header::USER_AGENT;
use axum::response::IntoResponse;
use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};
use taco_control_plane::{Caller, Deletion, ListChange, WorkspaceFilter, WorkspaceOrder, WorkspaceView};
use taco_domain::attribute::{nullable, shown};
use taco_domain::engine::Engine;
use taco_domain::execution::ExecutionMode;
use taco_domain::graph::words::ContractPolicy;
use taco_domain::lock::Lock;
use taco_domain::permission::Action;
use taco_domain::workspace::{VcsRepository, WorkspacePatch, WorkspaceSource};

use self::workspace_includes::INCLUDES;
use crate::document::{self, Document, Identifier, ResourceObject};
use crate::error::ApiError;
use crate::query::Query;
use crate::request::{Answer, ApiRequest, no_content};
use crate::resource::Resource;
use crate::response_cache::CacheKey;
use crate::{configuration_versions, organizations, projects, retention, runs, ssh_keys, users, variables};

pub(crate) const KIND: &str = "workspaces";

#[derive(Serialize)]
#[serde(rename_all = "kebab-case")]
struct Attributes<'a> {
    name: &'a str,
    description: &'a str,
    created_at: Timestamp,
    updated_at: Timestamp,
    latest_change_at: Timestamp,
    execution_mode: ExecutionMode,
    setting_overwrites: Overwrites,
    operations: bool,
    terraform_version: &'a str,
    taco_engine: Engine,
    /// `None` where the project's policy counts.
    taco_output_contract: Option<ContractPolicy>,
    taco_effective_output_contract: ContractPolicy,
    working_directory: &'a str,
    locked: bool,
    locked_reason: &'a str,
    auto_apply: bool,
    auto_apply_run_trigger: bool,
    allow_destroy_plan: bool,
    assessments_enabled: bool,
    can_queue_destroy_plan: bool,
    environment: &'static str,
    file_triggers_enabled: bool,
    global_remote_state: bool,
    project_remote_state: bool,
    queue_all_runs: bool,
    speculative_enabled: bool,
    structured_run_output_enabled: bool,
    trigger_prefixes: &'a [String],
    trigger_patterns: &'a [String],
    vcs_repo: Option<Repository<'a>>,
    vcs_repo_identifier: Option<&'a str>,
    source: WorkspaceSource,
    source_name: Option<&'a str>,
    source_url: Option<&'a str>,
    source_module_id: Option<&'a str>,
    migration_environment: Option<&'a str>,
    auto_destroy_at: Option<Timestamp>,
    auto_destroy_activity_duration: Option<&'a str>,
    auto_destroy_status: Option<&'a str>,
    inherits_project_auto_destroy: bool,
    no_code_upgrade_available: bool,
    hyok_enabled: bool,
    resource_count: u64,
    apply_duration_average: Option<u64>,
    plan_duration_average: Option<u64>,
    policy_check_failures: Option<u64>,
    run_failures: Option<usize>,
    workspace_kpis_runs_count: Option<usize>,
    tag_names: Vec<&'a str>,
    taco_lock: Option<LockDetails<'a>>,
    actions: Actions,
    permissions: Permissions,
}

/// Holder of the lock. Terraform Cloud tells a user's id and nothing else.
#[derive(Serialize)]
#[serde(rename_all = "kebab-case")]
struct LockDetails<'a> {
    holder: &'a str,
    holder_kind: &'static str,
    since: Timestamp,
    from: Option<&'a str>,
    reason: Option<&'a str>,
}

impl<'a> From<&'a Lock> for LockDetails<'a> {
    fn from(lock: &'a Lock) -> Self {
        Self {
            holder: &lock.holder_name,
            holder_kind: lock.holder.kind(),
            since: lock.since,
            from: lock.from.as_deref(),
            reason: lock.reason.as_deref(),
        }
    }
}

#[derive(Serialize)]
#[serde(rename_all = "kebab-case")]
struct Overwrites {
    execution_mode: bool,
    agent_pool: bool,
}

#[derive(Serialize)]
#[serde(rename_all = "kebab-case")]
struct Actions {
    is_destroyable: bool,
}

#[derive(Serialize)]
#[serde(rename_all = "kebab-case")]
struct Repository<'a> {
    identifier: &'a str,
    display_identifier: &'a str,
    branch: &'a str,
    ingress_submodules: bool,
    oauth_token_id: Option<&'a str>,
    github_app_installation_id: Option<&'a str>,
    tags_regex: Option<&'a str>,
}

impl<'a> From<&'a VcsRepository> for Repository<'a> {
    fn from(repository: &'a VcsRepository) -> Self {
        Self {
            identifier: &repository.identifier,
            display_identifier: &repository.identifier,
            branch: &repository.branch,
            ingress_submodules: repository.ingress_submodules,
            oauth_token_id: repository.oauth_token_id.as_deref(),
            github_app_installation_id: repository.github_app_installation_id.as_deref(),
            tags_regex: repository.tags_regex.as_deref(),
        }
    }
}

#[derive(Serialize)]
#[serde(rename_all = "kebab-case")]
struct Permissions {
    can_create_state_versions: bool,
    can_destroy: bool,
    can_force_delete: bool,
    can_force_unlock: bool,
    can_lock: bool,
    can_manage_hyok: bool,
    can_manage_run_tasks: bool,
    can_manage_tags: bool,
    can_queue_apply: bool,
    can_queue_destroy: bool,
    can_queue_run: bool,
    can_read_settings: bool,
    can_read_state_outputs: bool,
    can_read_state_versions: bool,
    can_read_variable: bool,
    can_unlock: bool,
    can_update: bool,
    can_update_variable: bool,
}

impl Permissions {
    fn of(caller: &Caller, view: &WorkspaceView) -> Self {
        let may = |action| caller.may(action, view.resource()).allowed;
        // Each question costs, and a page asks them for a hundred workspaces: so none is asked twice.
        let [delete, lock] = [Action::DeleteWorkspace, Action::LockWorkspace].map(may);
        let [update, apply] = [Action::UpdateWorkspace, Action::ApplyRun].map(may);
        Self {
            can_create_state_versions: may(Action::WriteState),
            can_destroy: delete,
            can_force_delete: delete && view.forced_deletion(caller).is_ok(),
            can_force_unlock: may(Action::ForceUnlockWorkspace),
            can_lock: lock,
            can_manage_hyok: false,
            can_manage_run_tasks: may(Action::AttachRunTasks),
            can_manage_tags: update,
            can_queue_apply: apply,
            can_queue_destroy: apply,
            can_queue_run: may(Action::QueuePlan),
            can_read_settings: may(Action::ReadWorkspace),
            can_read_state_outputs: may(Action::ReadOutputs),
            can_read_state_versions: may(Action::ReadState),
            can_read_variable: may(Action::ReadVariables),
            can_unlock: lock,
            can_update: update,
            can_update_variable: may(Action::WriteVariables),
        }
    }
}

impl Resource for WorkspaceView {
    const KIND: &'static str = KIND;
    const INCLUDES: &'static [&'static str] = INCLUDES;

    fn object(&self, request: &ApiRequest) -> Result<ResourceObject, ApiError> {
        let Self { workspace, org } = self;
        let caller = &request.caller;
        let organization = org.entry().name.as_str();
        let execution = self.execution();
        let overwrites = workspace.execution.is_some();
        let lock_reason = workspace.lock.as_ref().and_then(|lock| lock.reason.as_deref());
        let statistics = self.run_statistics();
        let milliseconds = |time: Option<SignedDuration>| time.and_then(|time| u64::try_from(time.as_millis()).ok());
        let attributes = Attributes {
            name: workspace.name.as_str(),
            description: &workspace.description,
            created_at: workspace.created_at,
            updated_at: workspace.updated_at,
            latest_change_at: self.latest_state_change(),
            execution_mode: execution.mode,
            setting_overwrites: Overwrites { execution_mode: overwrites, agent_pool: overwrites },
            operations: execution.mode != ExecutionMode::Local,
            terraform_version: &workspace.terraform_version,
            taco_engine: workspace.engine,
            taco_output_contract: workspace.output_contract,
            taco_effective_output_contract: self.contract_policy(),
            working_directory: &workspace.working_directory,
            locked: workspace.lock.is_some(),
            locked_reason: lock_reason.unwrap_or_default(),
            auto_apply: workspace.auto_apply,
            auto_apply_run_trigger: workspace.auto_apply_run_trigger,
            allow_destroy_plan: workspace.allow_destroy_plan,
            assessments_enabled: workspace.assessments_enabled,
            can_queue_destroy_plan: workspace.allow_destroy_plan,
            environment: "default",
            file_triggers_enabled: workspace.file_triggers_enabled,
            global_remote_state: workspace.global_remote_state,
            project_remote_state: workspace.project_remote_state,
            queue_all_runs: workspace.queue_all_runs,
            speculative_enabled: workspace.speculative_enabled,
            structured_run_output_enabled: workspace.structured_run_output_enabled,
            trigger_prefixes: &workspace.trigger_prefixes,
            trigger_patterns: &workspace.trigger_patterns,
            vcs_repo: workspace.vcs_repository.as_ref().map(Repository::from),
            vcs_repo_identifier: workspace.vcs_repository.as_ref().map(|repository| repository.identifier.as_str()),
            source: workspace.source,
            source_name: workspace.source_name.as_deref(),
            source_url: workspace.source_url.as_deref(),
            source_module_id: None,
            migration_environment: workspace.migration_environment.as_deref(),
            auto_destroy_at: workspace.auto_destroy_at,
            auto_destroy_activity_duration: workspace.auto_destroy_activity_duration.as_deref(),
            auto_destroy_status: None,
            inherits_project_auto_destroy: workspace.inherits_project_auto_destroy,
            no_code_upgrade_available: false,
            hyok_enabled: false,
            resource_count: workspace.resource_count,
            apply_duration_average: milliseconds(statistics.apply_average),
            plan_duration_average: milliseconds(statistics.plan_average),
            policy_check_failures: None,
            run_failures: Some(statistics.failures),
            workspace_kpis_runs_count: Some(statistics.runs),
            tag_names: workspace.tags.keys().map(taco_domain::name::TagKey::as_str).collect(),
            taco_lock: workspace.lock.as_ref().map(LockDetails::from),
            actions: Actions { is_destroyable: true },
            permissions: Permissions::of(caller, self),
        };
        let id = workspace.id;
        let state_version = workspace.current_state_version;
        let outputs = self.current_state_version().map(|version| version.outputs.as_slice());
        let effective = tag_bindings::effective_bindings(self);
        let (current_run, latest_run) = (self.current_run(), self.latest_run());
        let configuration = self.current_configuration();
        let object = ResourceObject::new(KIND, id, &attributes);
        let owner = format!("/api/v2/workspaces/{id}");
        Ok(retention::with_policy(object, &owner, id.characters(), workspace.retention)
            .has_one("organization", organizations::identifier(organization))
            .has_one("project", Identifier::new(projects::KIND, workspace.project))
            .has_optional("current-run", current_run.map(|run| Identifier::new(runs::KIND, run.id)))
            .has_optional("latest-run", latest_run.map(|run| Identifier::new(runs::KIND, run.id)))
            .has_optional(
                "current-configuration-version",
                configuration.map(|version| Identifier::new(configuration_versions::KIND, version.id)),
            )
            .has_optional("current-state-version", state_version.map(|id| Identifier::new("state-versions", id)))
            .related(format!("/api/v2/workspaces/{id}/current-state-version"))
            .has_many(
                "outputs",
                outputs.unwrap_or_default().iter().map(|output| Identifier::new("workspace-outputs", output.id)),
            )
            .has_optional("locked-by", workspace.lock.as_ref().and_then(|lock| users::author(&lock.holder)))
            .has_optional("ssh-key", workspace.ssh_key.map(|key| Identifier::new(ssh_keys::KIND, key)))
            .has_optional("agent-pool", execution.agent_pool.map(|pool| Identifier::new("agent-pools", pool)))
            .has_many("effective-tag-bindings", effective.iter().map(|tag| tag.identifier(tag_bindings::EFFECTIVE)))
            .related(format!("/api/v2/workspaces/{id}/effective-tag-bindings"))
            .has_many(
                "remote-state-consumers",
                self.remote_state_consumers(caller).map(|consumer| Identifier::new(KIND, consumer.id)),
            )
            .related(format!("/api/v2/workspaces/{id}/relationships/remote-state-consumers"))
            .has_many(
                "vars",
                self.variables_seen_by(caller).map(|variable| Identifier::new(variables::KIND, variable.id)),
            )
            .related(format!("/api/v2/workspaces/{id}/vars"))
            .link("self", format!("/api/v2/organizations/{organization}/workspaces/{}", workspace.name))
            .link("self-html", format!("/app/{organization}/workspaces/{}", workspace.name)))
    }

    async fn include(&self, name: &str, request: &ApiRequest, document: &mut Document) -> Result<(), ApiError> {
        workspace_includes::include(name, request, self, document).await
    }
}

async fn patch(request: &ApiRequest) -> Result<WorkspacePatch, ApiError> {
    let sent = request.resource::<WorkspacePatch>(KIND).await?;
    let project = sent.to_one("project")?.flatten();
    let pool = sent.to_one("agent-pool")?;
    let plain_tags = tags::sent_tags(&sent)?;
    let bindings = tag_bindings::sent_bindings(&sent, "tag-bindings")?;
    let tag_bindings = match (plain_tags, bindings) {
        (Some(mut all), Some(bindings)) => {
            all.extend(bindings);
            Some(all)
        }
        (tags, bindings) => tags.or(bindings),
    };
    let agent_pool_id = sent.attributes.agent_pool_id.or(pool);
    Ok(WorkspacePatch { project, agent_pool_id, tag_bindings, ..sent.attributes })
}

/// The order that a query asks for; unknown ones are read as `name`. Without one, Terraform Cloud promises an order
/// that is arbitrary but stable.
fn order(query: &Query) -> WorkspaceOrder {
    match query.get("sort") {
        None => WorkspaceOrder::Age,
        Some("current-run.created-at") => WorkspaceOrder::CurrentRun,
        Some("-current-run.created-at") => WorkspaceOrder::CurrentRunReversed,
        Some("latest-change-at") => WorkspaceOrder::LatestStateChange,
        Some("-latest-change-at") => WorkspaceOrder::LatestStateChangeReversed,
        Some(sort) if sort.starts_with('-') => WorkspaceOrder::NameReversed,
        Some(_) => WorkspaceOrder::Name,
    }
}

/// Cache key of a response about a workspace with which nothing is included.
fn cache_key(request: &ApiRequest, WorkspaceView { org, .. }: &WorkspaceView) -> CacheKey {
    let (organization, moment) = (org.id(), org.moment());
    CacheKey { organization, moment, actor: request.caller.actor.clone(), address: request.uri().to_string() }
}

fn filter(query: &Query) -> Result<WorkspaceFilter, ApiError> {
    let project = match query.get("filter[project][id]") {
        None => None,
        Some(id) => Some(
            id.parse()
                .map_err(|_| ApiError::parameter("filter[project][id]", format!("{} is no project's id", shown(id))))?,
        ),
    };
    Ok(WorkspaceFilter {
        name: query.text("search[name]"),
        wildcard_name: query.text("search[wildcard-name]"),
        project,
        tags: query.texts("search[tags]"),
        exclude_tags: query.texts("search[exclude-tags]"),
        tagged: query.tagged(),
        current_run: query.texts("filter[current-run][status]"),
        locked: false,
        order: order(query),
    })
}

/// `GET /api/v2/organizations/{organization}/workspaces`
pub(crate) async fn list(request: ApiRequest) -> Answer {
    let ApiRequest { api, control_plane, caller, query, .. } = &request;
    let filter = filter(query)?;
    let listed = control_plane.workspaces(caller, request.organization()?, &filter, query.page()?).await?;
    if query.get("include").is_some() {
        return request.page(listed).await;
    }
    let make = || request.page_document(&listed).map(|document| document.to_bytes());
    Ok(document::response(match listed.items.first() {
        Some(first) => api.responses.get_or_insert_with(cache_key(&request, first), make)?,
        None => make()?,
    }))
}

/// Terraform and tofu say their version with each request; others who use the API do not.
fn source(headers: &HeaderMap) -> WorkspaceSource {
    if headers.contains_key("terraform-version") { WorkspaceSource::Terraform } else { WorkspaceSource::Api }
}

/// Tells whether OpenTofu asks. Who makes a workspace with it wants its runs to have it, too; it knows no attribute to
/// say so.
fn is_tofu(headers: &HeaderMap) -> bool {
    headers.get(USER_AGENT).is_some_and(|agent| agent.as_bytes().starts_with(b"OpenTofu/"))
}

/// `POST /api/v2/organizations/{organization}/workspaces`
pub(crate) async fn create(request: ApiRequest) -> Answer {
    let mut patch = patch(&request).await?;
    patch.engine = patch.engine.or_else(|| is_tofu(request.headers()).then(|| Engine::Tofu.to_string()));
    let (organization, source) = (request.organization()?, source(request.headers()));
    request.created(&request.control_plane.create_workspace(&request.caller, organization, patch, source).await?)
}

/// `GET /api/v2/workspaces/{workspace}`, and by organization and name
pub(crate) async fn read(request: ApiRequest) -> Answer {
    let view = request.control_plane.workspace(&request.caller, &request.workspace()?).await?;
    if request.query.get("include").is_some() {
        return Ok(workspace_includes::document(&request, &view).await?.into_response());
    }
    let make = || view.object(&request).map(|object| Document::one(object).to_bytes());
    Ok(document::response(request.api.responses.get_or_insert_with(cache_key(&request, &view), make)?))
}

/// `PATCH /api/v2/workspaces/{workspace}`, and by organization and name
pub(crate) async fn update(request: ApiRequest) -> Answer {
    let (wanted, patch) = (request.workspace()?, patch(&request).await?);
    request.changed(&request.control_plane.update_workspace(&request.caller, &wanted, patch).await?)
}

/// `DELETE /api/v2/workspaces/{workspace}`, and by organization and name
pub(crate) async fn delete(request: ApiRequest) -> Answer {
    request.control_plane.delete_workspace(&request.caller, &request.workspace()?, Deletion::Forced).await?;
    no_content()
}

/// `POST /api/v2/workspaces/{workspace}/actions/safe-delete`, and by organization and name
pub(crate) async fn safe_delete(request: ApiRequest) -> Answer {
    request.control_plane.delete_workspace(&request.caller, &request.workspace()?, Deletion::Safe).await?;
    no_content()
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct LockOptions {
    reason: Option<String>,
}

/// `POST /api/v2/workspaces/{workspace}/actions/lock`
pub(crate) async fn lock(request: ApiRequest) -> Answer {
    let wanted = request.workspace()?;
    let LockOptions { reason } = request.body().await?.action()?;
    request.changed(&request.control_plane.lock_workspace(&request.caller, &wanted, reason).await?)
}

/// `POST /api/v2/workspaces/{workspace}/actions/unlock`
pub(crate) async fn unlock(request: ApiRequest) -> Answer {
    request.changed(&request.control_plane.unlock_workspace(&request.caller, &request.workspace()?).await?)
}

/// `POST /api/v2/workspaces/{workspace}/actions/force-unlock`
pub(crate) async fn force_unlock(request: ApiRequest) -> Answer {
    request.changed(&request.control_plane.force_unlock_workspace(&request.caller, &request.workspace()?).await?)
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct KeyToAssign {
    /// It is among the attributes, not in `data.id`.
    #[serde(deserialize_with = "nullable")]
    id: Option<Option<String>>,
}

/// `PATCH /api/v2/workspaces/{workspace}/relationships/ssh-key`
pub(crate) async fn assign_ssh_key(request: ApiRequest) -> Answer {
    let wanted = request.workspace()?;
    let KeyToAssign { id } = request.attributes(KIND).await?;
    let key = id.flatten().map(|id| id.parse().map_err(|_| ApiError::not_found())).transpose()?;
    request.changed(&request.control_plane.assign_ssh_key(&request.caller, &wanted, key).await?)
}

/// `GET /api/v2/workspaces/{workspace}/relationships/remote-state-consumers`
pub(crate) async fn list_consumers(request: ApiRequest) -> Answer {
    let (wanted, page) = (request.workspace()?, request.query.page()?);
    let listed = request.control_plane.remote_state_consumers(&request.caller, &wanted, page).await?;
    request.page_without_includes(&listed)
}

async fn change_consumers(request: &ApiRequest, change: ListChange) -> Answer {
    let (wanted, consumers) = (request.workspace()?, request.ids(KIND).await?);
    request.control_plane.change_remote_state_consumers(&request.caller, &wanted, consumers, change).await?;
    no_content()
}

/// `POST /api/v2/workspaces/{workspace}/relationships/remote-state-consumers`
pub(crate) async fn add_consumers(request: ApiRequest) -> Answer {
    change_consumers(&request, ListChange::Add).await
}

/// `PATCH /api/v2/workspaces/{workspace}/relationships/remote-state-consumers`
pub(crate) async fn replace_consumers(request: ApiRequest) -> Answer {
    change_consumers(&request, ListChange::Replace).await
}

/// `DELETE /api/v2/workspaces/{workspace}/relationships/remote-state-consumers`
pub(crate) async fn remove_consumers(request: ApiRequest) -> Answer {
    change_consumers(&request, ListChange::Remove).await
}
