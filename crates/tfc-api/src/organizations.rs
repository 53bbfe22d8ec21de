//! Organizations, their entitlements and their capacity. On the wire an organization's id is its name.

pub(crate) mod audit_trails;
pub(crate) mod explorer;
pub(crate) mod invitations;
pub(crate) mod organization_memberships;
pub(crate) mod organization_tags;
pub(crate) mod organization_tokens;
pub(crate) mod subscriptions;
pub(crate) mod token_lifetimes;

use axum::response::IntoResponse;
use jiff::Timestamp;
use serde::Serialize;
use taco_control_plane::{Caller, OrganizationView};
use taco_domain::execution::ExecutionMode;
use taco_domain::graph::output_contract::DEFAULT_POLICY;
use taco_domain::graph::words::ContractPolicy;
use taco_domain::id::OrganizationId;
use taco_domain::organization::{AuthenticationPolicy, OrganizationPatch};
use taco_domain::permission::Action;

use crate::document::{Document, Identifier, ResourceObject};
use crate::error::ApiError;
use crate::request::{Answer, ApiRequest, no_content};
use crate::resource::Resource;
use crate::{projects, retention};

pub(crate) const KIND: &str = "organizations";

#[derive(Serialize)]
#[serde(rename_all = "kebab-case")]
struct Attributes<'a> {
    name: &'a str,
    external_id: OrganizationId,
    email: &'a str,
    created_at: Timestamp,
    default_execution_mode: ExecutionMode,
    collaborator_auth_policy: AuthenticationPolicy,
    session_timeout: Option<u32>,
    session_remember: Option<u32>,
    owners_team_saml_role_id: Option<&'a str>,
    assessments_enforced: bool,
    cost_estimation_enabled: bool,
    stacks_enabled: bool,
    send_passing_statuses_for_untriggered_speculative_plans: bool,
    aggregated_commit_status_enabled: bool,
    speculative_plan_management_enabled: bool,
    allow_force_delete_workspaces: bool,
    user_tokens_enabled: bool,
    max_ttl_enabled: bool,
    taco_output_contract: ContractPolicy,
    is_unified: bool,
    saml_enabled: bool,
    two_factor_conformant: bool,
    fair_run_queuing_enabled: bool,
    trial_expires_at: Option<Timestamp>,
    remaining_testable_count: u32,
    enforce_hyok: bool,
    plan_expired: bool,
    permissions: Permissions,
}

#[derive(Serialize)]
#[serde(rename_all = "kebab-case")]
struct Permissions {
    can_access_via_teams: bool,
    can_create_module: bool,
    can_create_project: bool,
    can_create_provider: bool,
    can_create_team: bool,
    can_create_workspace: bool,
    can_create_workspace_migration: bool,
    can_deploy_no_code_modules: bool,
    can_destroy: bool,
    can_enable_stacks: bool,
    can_manage_auditing: bool,
    can_manage_no_code_modules: bool,
    can_manage_run_tasks: bool,
    can_manage_users: bool,
    can_traverse: bool,
    can_update: bool,
    can_update_agent_pools: bool,
    can_update_api_token: bool,
    can_update_hyok_configuration: bool,
    can_update_oauth: bool,
    can_update_sentinel: bool,
    can_update_ssh_keys: bool,
    can_view_hyok_feature_info: bool,
}

impl Permissions {
    fn of(caller: &Caller, view: &OrganizationView) -> Self {
        let may = |action| caller.may(action, view.org.resource()).allowed;
        Self {
            can_access_via_teams: may(Action::ReadOrganization),
            can_create_module: may(Action::ManageModules),
            can_create_project: may(Action::CreateProject),
            can_create_provider: may(Action::ManageProviders),
            can_create_team: may(Action::ManageTeams),
            can_create_workspace: may(Action::CreateWorkspace),
            can_create_workspace_migration: may(Action::CreateWorkspace),
            can_deploy_no_code_modules: may(Action::ManageModules),
            can_destroy: may(Action::DeleteOrganization),
            can_enable_stacks: false,
            can_manage_auditing: may(Action::UpdateOrganization),
            can_manage_no_code_modules: may(Action::ManageModules),
            can_manage_run_tasks: may(Action::ManageRunTasks),
            can_manage_users: may(Action::ManageMembership),
            can_traverse: may(Action::ReadOrganization),
            can_update: may(Action::UpdateOrganization),
            can_update_agent_pools: may(Action::ManageAgentPools),
            can_update_api_token: may(Action::ManageOrganizationToken),
            can_update_hyok_configuration: false,
            can_update_oauth: may(Action::ManageVcsSettings),
            can_update_sentinel: may(Action::ManagePolicies),
            can_update_ssh_keys: may(Action::ManageVcsSettings),
            can_view_hyok_feature_info: false,
        }
    }
}

pub(crate) fn identifier(name: &str) -> Identifier {
    Identifier::new(KIND, name)
}

impl Resource for OrganizationView {
    const KIND: &'static str = KIND;

    fn object(&self, request: &ApiRequest) -> Result<ResourceObject, ApiError> {
        let organization = &self.organization;
        let attributes = Attributes {
            name: &self.name,
            external_id: organization.id,
            email: organization.email.as_str(),
            created_at: organization.created_at,
            default_execution_mode: organization.default_execution.mode,
            collaborator_auth_policy: organization.collaborator_auth_policy,
            session_timeout: organization.session_timeout,
            session_remember: organization.session_remember,
            owners_team_saml_role_id: organization.owners_team_saml_role_id.as_deref(),
            assessments_enforced: organization.assessments_enforced,
            cost_estimation_enabled: organization.cost_estimation_enabled,
            stacks_enabled: organization.stacks_enabled,
            send_passing_statuses_for_untriggered_speculative_plans: organization
                .send_passing_statuses_for_untriggered_speculative_plans,
            aggregated_commit_status_enabled: organization.aggregated_commit_status_enabled,
            speculative_plan_management_enabled: organization.speculative_plan_management_enabled,
            allow_force_delete_workspaces: organization.allow_force_delete_workspaces,
            user_tokens_enabled: organization.user_tokens_enabled,
            max_ttl_enabled: organization.max_ttl_enabled,
            taco_output_contract: organization.output_contract.unwrap_or(DEFAULT_POLICY),
            is_unified: false,
            saml_enabled: false,
            two_factor_conformant: true,
            fair_run_queuing_enabled: true,
            trial_expires_at: None,
            remaining_testable_count: u32::MAX,
            enforce_hyok: false,
            plan_expired: false,
            permissions: Permissions::of(&request.caller, self),
        };
        let name = &self.name;
        let pool = organization.default_execution.agent_pool.map(|pool| Identifier::new("agent-pools", pool));
        let (object, owner) = (ResourceObject::new(KIND, name, &attributes), format!("/api/v2/organizations/{name}"));
        Ok(retention::with_policy(object, &owner, organization.id.characters(), organization.retention)
            .has_one("default-project", Identifier::new(projects::KIND, organization.default_project))
            .related(format!("/api/v2/projects/{}", organization.default_project))
            .has_optional("default-agent-pool", pool)
            .has_one("entitlement-set", Identifier::new("entitlement-sets", organization.id))
            .related(format!("/api/v2/organizations/{name}/entitlement-set"))
            .link("self", format!("/api/v2/organizations/{name}")))
    }
}

async fn patch(request: &ApiRequest) -> Result<OrganizationPatch, ApiError> {
    let sent = request.resource::<OrganizationPatch>(KIND).await?;
    let default_agent_pool = sent.to_one("default-agent-pool")?;
    Ok(OrganizationPatch { default_agent_pool, ..sent.attributes })
}

/// `GET /api/v2/organizations`
pub(crate) async fn list(request: ApiRequest) -> Answer {
    let query = &request.query;
    let text = query.get("q").or(query.get("q[name]")).or(query.get("q[email]"));
    request.page(request.control_plane.organizations(&request.caller, text, query.page()?).await?).await
}

/// `POST /api/v2/organizations`
pub(crate) async fn create(request: ApiRequest) -> Answer {
    request.created(&request.control_plane.create_organization(&request.caller, &patch(&request).await?).await?)
}

/// `GET /api/v2/organizations/{organization}`
pub(crate) async fn read(request: ApiRequest) -> Answer {
    let view = request.control_plane.organization(&request.caller, request.organization()?).await?;
    let mut document = request.document(&view).await?;
    if request.query.includes("default-project") {
        let project = request.control_plane.project(&request.caller, view.organization.default_project).await?;
        document.include(project.object(&request)?);
    }
    Ok(document.into_response())
}

/// `PATCH /api/v2/organizations/{organization}`
pub(crate) async fn update(request: ApiRequest) -> Answer {
    let patch = patch(&request).await?;
    let organization = request.organization()?;
    request.changed(&request.control_plane.update_organization(&request.caller, organization, &patch).await?)
}

/// `DELETE /api/v2/organizations/{organization}`
pub(crate) async fn delete(request: ApiRequest) -> Answer {
    request.control_plane.delete_organization(&request.caller, request.organization()?).await?;
    no_content()
}

/// `GET /api/v2/organizations/{organization}/entitlement-set`
pub(crate) async fn entitlements(request: ApiRequest) -> Answer {
    let name = request.organization()?;
    let (view, entitlements) = request.control_plane.entitlements(&request.caller, name).await?;
    let object = ResourceObject::new("entitlement-sets", view.organization.id, &entitlements)
        .link("self", format!("/api/v2/organizations/{name}/entitlement-set"));
    Ok(Document::one(object).into_response())
}

#[derive(Serialize)]
struct Capacity {
    pending: usize,
    running: usize,
}

/// `GET /api/v2/organizations/{organization}/capacity`
pub(crate) async fn capacity(request: ApiRequest) -> Answer {
    let name = request.organization()?;
    let taco_control_plane::Capacity { pending, running } =
        request.control_plane.capacity(&request.caller, name).await?;
    let object = ResourceObject::new("organization-capacity", name, &Capacity { pending, running });
    Ok(Document::one(object).into_response())
}
