//! The one table of routes. The router is made from it, and so is the test that calls every route with every kind of
//! caller.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::handler::Handler as AxumHandler;
use axum::routing::{MethodFilter, MethodRouter, any, on};
use taco_domain::permission::Action;

use crate::caller::Credentials;
use crate::request::{Answer, ApiRequest, Handler, dispatch};
use crate::{
    Api, absent, account, admin, agent_pools, agents, audit_trails, authentication_tokens, comments,
    configuration_versions, cost_estimates, discovery, explorer, http_backend, invitations, log_stream,
    organization_memberships, organization_tags, organization_tokens, organizations, phases, ping, projects,
    run_events, run_triggers, runs, signed_url, ssh_keys, state_version_outputs, state_versions, subscriptions,
    tag_bindings, tags, team_members, team_projects, team_workspaces, teams, token_lifetimes, user_tokens, users,
    variable_set_variables, variable_sets, variables, versions, workspace_resources, workspace_surroundings,
    workspaces,
};

/// What a route asks of its caller.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Access {
    /// Nothing: everyone may know the answer.
    Public,
    /// The address itself is the credential.
    SignedAddress,
    /// A valid token. The answer holds what its caller may see, and nothing else.
    Token,
    /// The right to do this to what the path names.
    Right(Action),
}

/// One row of the table.
#[derive(Clone)]
pub struct Route {
    /// Usually one; where clients may choose among several, all of them.
    pub methods: &'static [&'static str],
    pub path: &'static str,
    pub access: Access,
    endpoint: Endpoint,
}

#[derive(Clone)]
enum Endpoint {
    /// For callers with a token.
    Api(Handler, Credentials),
    /// For everyone, or for whoever knows the address.
    Open(Box<MethodRouter<Api>>),
}

/// A route for callers with a token.
fn route<H, F>(methods: &'static [&'static str], path: &'static str, access: Access, handler: H) -> Route
where
    H: Fn(ApiRequest) -> F + Send + Sync + 'static,
    F: Future<Output = Answer> + Send + 'static,
{
    let handler: Handler = Arc::new(move |request| Box::pin(handler(request)));
    Route { methods, path, access, endpoint: Endpoint::Api(handler, Credentials::Bearer) }
}

/// A route that takes no token.
fn open<H, T>(methods: &'static [&'static str], path: &'static str, access: Access, handler: H) -> Route
where
    H: AxumHandler<T, Api>,
    T: 'static,
{
    Route { methods, path, access, endpoint: Endpoint::Open(Box::new(by_method(methods, handler))) }
}

impl Route {
    /// Takes a token also as the password of Basic authentication.
    fn or_basic(self) -> Self {
        match self.endpoint {
            Endpoint::Api(handler, _) => Self { endpoint: Endpoint::Api(handler, Credentials::BearerOrBasic), ..self },
            Endpoint::Open(_) => self,
        }
    }

    pub(crate) fn into_service(self) -> MethodRouter<Api> {
        match self.endpoint {
            Endpoint::Open(service) => *service,
            Endpoint::Api(handler, credentials) => {
                by_method(self.methods, move |State(api): State<Api>, request: Request| {
                    dispatch(api, credentials, Arc::clone(&handler), request)
                })
            }
        }
    }
}

fn by_method<H, T>(methods: &[&str], handler: H) -> MethodRouter<Api>
where
    H: AxumHandler<T, Api>,
    T: 'static,
{
    let standard = |method: &&str| match *method {
        "GET" => Some(MethodFilter::GET),
        "POST" => Some(MethodFilter::POST),
        "PUT" => Some(MethodFilter::PUT),
        "PATCH" => Some(MethodFilter::PATCH),
        "DELETE" => Some(MethodFilter::DELETE),
        _ => None,
    };
    let filter: Option<Vec<MethodFilter>> = methods.iter().map(standard).collect();
    match filter.and_then(|filters| filters.into_iter().reduce(MethodFilter::or)) {
        Some(filter) => on(filter, handler),
        // The router knows standard methods alone; such a handler looks at the method itself.
        None => any(handler),
    }
}

const GET: &[&str] = &["GET"];
const POST: &[&str] = &["POST"];
const PUT: &[&str] = &["PUT"];
const PATCH: &[&str] = &["PATCH"];
const DELETE: &[&str] = &["DELETE"];

/// All routes, grouped by what they are about.
#[rustfmt::skip]
pub fn all() -> Vec<Route> {
    use Access::{Public, Right, SignedAddress, Token};
    use Action as A;
    vec![
        open(GET, "/.well-known/terraform.json", Public, discovery::discovery),
        open(GET, "/api/v2/ping", Public, ping::ping),
        open(GET, "/versions", Public, versions::versions),

        route(GET, "/api/v2/account/details", Token, account::read),
        route(PATCH, "/api/v2/account/update", Token, account::update),
        route(GET, "/api/v2/account/invitations", Token, invitations::list),
        route(POST, "/api/v2/account/invitations/actions/accept", Token, invitations::accept),
        route(POST, "/api/v2/account/invitations/actions/decline", Token, invitations::decline),
        route(GET, "/api/v2/users/{user}", Right(A::ReadAccount), users::read),
        route(GET, "/api/v2/users/{user}/authentication-tokens", Right(A::ReadAccount), user_tokens::list),
        route(POST, "/api/v2/users/{user}/authentication-tokens", Right(A::UpdateAccount), user_tokens::create),
        route(GET, "/api/v2/authentication-tokens/{token}", Token, authentication_tokens::read),
        route(DELETE, "/api/v2/authentication-tokens/{token}", Token, authentication_tokens::delete),

        route(GET, "/api/v2/organizations", Token, organizations::list),
        route(POST, "/api/v2/organizations", Right(A::CreateOrganization), organizations::create),
        route(GET, "/api/v2/organizations/{organization}", Right(A::ReadOrganization), organizations::read),
        route(PATCH, "/api/v2/organizations/{organization}", Right(A::UpdateOrganization), organizations::update),
        route(DELETE, "/api/v2/organizations/{organization}", Right(A::DeleteOrganization), organizations::delete),
        route(GET, "/api/v2/organizations/{organization}/entitlement-set", Right(A::ReadOrganization), organizations::entitlements),
        route(GET, "/api/v2/organizations/{organization}/capacity", Right(A::ReadOrganization), organizations::capacity),
        route(GET, "/api/v2/organizations/{organization}/subscription", Right(A::ReadOrganization), subscriptions::read),
        route(GET, "/api/v2/organizations/{organization}/explorer", Right(A::ReadDirectory), explorer::list),
        route(GET, "/api/v2/organizations/{organization}/audit-trail", Right(A::ReadAuditTrail), audit_trails::of_organization),
        route(GET, "/api/v2/organization/audit-trail", Token, audit_trails::of_token),
        route(GET, "/api/v2/organizations/{organization}/authentication-token", Right(A::ManageOrganizationToken), organization_tokens::read),
        route(POST, "/api/v2/organizations/{organization}/authentication-token", Right(A::ManageOrganizationToken), organization_tokens::create),
        route(DELETE, "/api/v2/organizations/{organization}/authentication-token", Right(A::ManageOrganizationToken), organization_tokens::delete),
        route(GET, "/api/v2/organizations/{organization}/token-ttl-policies", Right(A::UpdateOrganization), token_lifetimes::list),
        route(PATCH, "/api/v2/organizations/{organization}/token-ttl-policies", Right(A::UpdateOrganization), token_lifetimes::update),
        route(GET, "/api/v2/organizations/{organization}/organization-memberships", Right(A::ReadDirectory), organization_memberships::list),
        route(POST, "/api/v2/organizations/{organization}/organization-memberships", Right(A::ManageMembership), organization_memberships::create),
        route(GET, "/api/v2/organization-memberships/{membership}", Right(A::ReadDirectory), organization_memberships::read),
        route(DELETE, "/api/v2/organization-memberships/{membership}", Right(A::ManageMembership), organization_memberships::delete),
        route(POST, "/api/v2/organization-memberships/{membership}/actions/renew-invitation", Right(A::ManageMembership), organization_memberships::renew),
        route(GET, "/api/v2/organizations/{organization}/teams", Right(A::ReadDirectory), teams::list),
        route(POST, "/api/v2/organizations/{organization}/teams", Right(A::ManageTeams), teams::create),
        route(GET, "/api/v2/teams/{team}", Right(A::ReadDirectory), teams::read),
        route(PATCH, "/api/v2/teams/{team}", Right(A::ManageTeams), teams::update),
        route(DELETE, "/api/v2/teams/{team}", Right(A::ManageTeams), teams::delete),
        route(GET, "/api/v2/organizations/{organization}/team-tokens", Right(A::ManageTeams), teams::list_tokens),
        route(GET, "/api/v2/teams/{team}/authentication-token", Right(A::ManageTeams), teams::read_token),
        route(POST, "/api/v2/teams/{team}/authentication-token", Right(A::ManageTeams), teams::create_token),
        route(DELETE, "/api/v2/teams/{team}/authentication-token", Right(A::ManageTeams), teams::delete_token),
        route(POST, "/api/v2/teams/{team}/authentication-tokens", Right(A::ManageTeams), teams::create_token),
        route(POST, "/api/v2/teams/{team}/relationships/users", Right(A::ManageMembership), team_members::add_users),
        route(DELETE, "/api/v2/teams/{team}/relationships/users", Right(A::ManageMembership), team_members::remove_users),
        route(POST, "/api/v2/teams/{team}/relationships/organization-memberships", Right(A::ManageMembership), team_members::add_memberships),
        route(DELETE, "/api/v2/teams/{team}/relationships/organization-memberships", Right(A::ManageMembership), team_members::remove_memberships),
        route(GET, "/api/v2/team-workspaces", Right(A::ReadWorkspaceTeams), team_workspaces::list),
        route(POST, "/api/v2/team-workspaces", Right(A::ManageWorkspaceTeams), team_workspaces::create),
        route(GET, "/api/v2/team-workspaces/{team_workspace}", Right(A::ReadWorkspaceTeams), team_workspaces::read),
        route(PATCH, "/api/v2/team-workspaces/{team_workspace}", Right(A::ManageWorkspaceTeams), team_workspaces::update),
        route(DELETE, "/api/v2/team-workspaces/{team_workspace}", Right(A::ManageWorkspaceTeams), team_workspaces::delete),
        route(GET, "/api/v2/team-projects", Right(A::ReadProject), team_projects::list),
        route(POST, "/api/v2/team-projects", Right(A::ManageProjectTeams), team_projects::create),
        route(GET, "/api/v2/team-projects/{team_project}", Right(A::ReadProject), team_projects::read),
        route(PATCH, "/api/v2/team-projects/{team_project}", Right(A::ManageProjectTeams), team_projects::update),
        route(DELETE, "/api/v2/team-projects/{team_project}", Right(A::ManageProjectTeams), team_projects::delete),
        route(GET, "/api/v2/organizations/{organization}/agent-pools", Right(A::ReadDirectory), agent_pools::list),
        route(POST, "/api/v2/organizations/{organization}/agent-pools", Right(A::ManageAgentPools), agent_pools::create),
        route(GET, "/api/v2/agent-pools/{pool}", Right(A::ReadDirectory), agent_pools::read),
        route(PATCH, "/api/v2/agent-pools/{pool}", Right(A::ManageAgentPools), agent_pools::update),
        route(DELETE, "/api/v2/agent-pools/{pool}", Right(A::ManageAgentPools), agent_pools::delete),
        route(GET, "/api/v2/agent-pools/{pool}/authentication-tokens", Right(A::ManageAgentPools), agents::list_tokens),
        route(POST, "/api/v2/agent-pools/{pool}/authentication-tokens", Right(A::ManageAgentPools), agents::create_token),
        route(GET, "/api/v2/agent-pools/{pool}/agents", Right(A::ReadDirectory), agents::list),
        route(GET, "/api/v2/agents/{agent}", Right(A::ReadDirectory), agents::read),
        route(GET, "/api/v2/organizations/{organization}/ssh-keys", Right(A::ReadDirectory), ssh_keys::list),
        route(POST, "/api/v2/organizations/{organization}/ssh-keys", Right(A::ManageVcsSettings), ssh_keys::create),
        route(GET, "/api/v2/ssh-keys/{key}", Right(A::ReadDirectory), ssh_keys::read),
        route(PATCH, "/api/v2/ssh-keys/{key}", Right(A::ManageVcsSettings), ssh_keys::update),
        route(DELETE, "/api/v2/ssh-keys/{key}", Right(A::ManageVcsSettings), ssh_keys::delete),
        route(GET, "/api/v2/organizations/{organization}/tags", Right(A::ReadOrganization), organization_tags::list),
        route(DELETE, "/api/v2/organizations/{organization}/tags", Right(A::UpdateWorkspace), organization_tags::delete),
        route(POST, "/api/v2/tags/{tag}/relationships/workspaces", Right(A::UpdateWorkspace), organization_tags::add_workspaces),

        route(GET, "/api/v2/organizations/{organization}/projects", Right(A::ReadOrganization), projects::list),
        route(POST, "/api/v2/organizations/{organization}/projects", Right(A::CreateProject), projects::create),
        route(GET, "/api/v2/projects/{project}", Right(A::ReadProject), projects::read),
        route(PATCH, "/api/v2/projects/{project}", Right(A::UpdateProject), projects::update),
        route(DELETE, "/api/v2/projects/{project}", Right(A::DeleteProject), projects::delete),
        route(GET, "/api/v2/projects/{project}/tag-bindings", Right(A::ReadProject), tag_bindings::of_project),
        route(PATCH, "/api/v2/projects/{project}/tag-bindings", Right(A::UpdateProject), tag_bindings::add_to_project),
        route(GET, "/api/v2/projects/{project}/effective-tag-bindings", Right(A::ReadProject), tag_bindings::effective_of_project),

        route(GET, "/api/v2/organizations/{organization}/workspaces", Right(A::ReadOrganization), workspaces::list),
        route(POST, "/api/v2/organizations/{organization}/workspaces", Right(A::CreateWorkspace), workspaces::create),
        route(GET, "/api/v2/organizations/{organization}/workspaces/{workspace}", Right(A::ReadWorkspace), workspaces::read),
        route(PATCH, "/api/v2/organizations/{organization}/workspaces/{workspace}", Right(A::UpdateWorkspace), workspaces::update),
        route(DELETE, "/api/v2/organizations/{organization}/workspaces/{workspace}", Right(A::DeleteWorkspace), workspaces::delete),
        route(POST, "/api/v2/organizations/{organization}/workspaces/{workspace}/actions/safe-delete", Right(A::DeleteWorkspace), workspaces::safe_delete),
        route(GET, "/api/v2/workspaces/{workspace}", Right(A::ReadWorkspace), workspaces::read),
        route(PATCH, "/api/v2/workspaces/{workspace}", Right(A::UpdateWorkspace), workspaces::update),
        route(DELETE, "/api/v2/workspaces/{workspace}", Right(A::DeleteWorkspace), workspaces::delete),
        route(POST, "/api/v2/workspaces/{workspace}/actions/safe-delete", Right(A::DeleteWorkspace), workspaces::safe_delete),
        route(POST, "/api/v2/workspaces/{workspace}/actions/lock", Right(A::LockWorkspace), workspaces::lock),
        route(POST, "/api/v2/workspaces/{workspace}/actions/unlock", Right(A::LockWorkspace), workspaces::unlock),
        route(POST, "/api/v2/workspaces/{workspace}/actions/force-unlock", Right(A::ForceUnlockWorkspace), workspaces::force_unlock),
        route(PATCH, "/api/v2/workspaces/{workspace}/relationships/ssh-key", Right(A::UpdateWorkspace), workspaces::assign_ssh_key),
        route(GET, "/api/v2/workspaces/{workspace}/remote-state-consumers", Right(A::ReadRuns), workspaces::list_consumers),
        route(GET, "/api/v2/workspaces/{workspace}/relationships/remote-state-consumers", Right(A::ReadRuns), workspaces::list_consumers),
        route(POST, "/api/v2/workspaces/{workspace}/relationships/remote-state-consumers", Right(A::UpdateWorkspace), workspaces::add_consumers),
        route(PATCH, "/api/v2/workspaces/{workspace}/relationships/remote-state-consumers", Right(A::UpdateWorkspace), workspaces::replace_consumers),
        route(DELETE, "/api/v2/workspaces/{workspace}/relationships/remote-state-consumers", Right(A::UpdateWorkspace), workspaces::remove_consumers),
        route(GET, "/api/v2/workspaces/{workspace}/relationships/tags", Right(A::ReadRuns), tags::list),
        route(POST, "/api/v2/workspaces/{workspace}/relationships/tags", Right(A::UpdateWorkspace), tags::add),
        route(DELETE, "/api/v2/workspaces/{workspace}/relationships/tags", Right(A::UpdateWorkspace), tags::remove),
        route(GET, "/api/v2/workspaces/{workspace}/tag-bindings", Right(A::ReadRuns), tag_bindings::of_workspace),
        route(PATCH, "/api/v2/workspaces/{workspace}/tag-bindings", Right(A::UpdateWorkspace), tag_bindings::add_to_workspace),
        route(GET, "/api/v2/workspaces/{workspace}/effective-tag-bindings", Right(A::ReadRuns), tag_bindings::effective_of_workspace),
        route(GET, "/api/v2/workspaces/{workspace}/readme", Right(A::ReadRuns), workspace_surroundings::readme),
        route(GET, "/api/v2/workspaces/{workspace}/resources", Right(A::ReadState), workspace_resources::list),

        route(GET, "/api/v2/workspaces/{workspace}/vars", Right(A::ReadVariables), variables::list),
        route(POST, "/api/v2/workspaces/{workspace}/vars", Right(A::WriteVariables), variables::create),
        route(GET, "/api/v2/workspaces/{workspace}/vars/{variable}", Right(A::ReadVariables), variables::read),
        route(PATCH, "/api/v2/workspaces/{workspace}/vars/{variable}", Right(A::WriteVariables), variables::update),
        route(DELETE, "/api/v2/workspaces/{workspace}/vars/{variable}", Right(A::WriteVariables), variables::delete),
        route(GET, "/api/v2/workspaces/{workspace}/all-vars", Right(A::ReadVariables), variables::list_effective),
        route(GET, "/api/v2/vars", Right(A::ReadVariables), variables::list_by_name),
        route(POST, "/api/v2/vars", Right(A::WriteVariables), variables::create_by_relationship),
        route(PATCH, "/api/v2/vars/{variable}", Right(A::WriteVariables), variables::update_by_id),
        route(DELETE, "/api/v2/vars/{variable}", Right(A::WriteVariables), variables::delete_by_id),

        route(GET, "/api/v2/organizations/{organization}/varsets", Right(A::ReadOrganization), variable_sets::list),
        route(POST, "/api/v2/organizations/{organization}/varsets", Right(A::ManageVariableSets), variable_sets::create),
        route(GET, "/api/v2/projects/{project}/varsets", Right(A::ReadProjectVariableSets), variable_sets::list_of_project),
        route(GET, "/api/v2/workspaces/{workspace}/varsets", Right(A::ReadVariables), variable_sets::list_of_workspace),
        route(GET, "/api/v2/varsets/{variable_set}", Right(A::ReadVariableSets), variable_sets::read),
        route(PATCH, "/api/v2/varsets/{variable_set}", Right(A::ManageVariableSets), variable_sets::update),
        route(DELETE, "/api/v2/varsets/{variable_set}", Right(A::ManageVariableSets), variable_sets::delete),
        route(POST, "/api/v2/varsets/{variable_set}/relationships/workspaces", Right(A::ManageVariableSets), variable_sets::add_workspaces),
        route(DELETE, "/api/v2/varsets/{variable_set}/relationships/workspaces", Right(A::ManageVariableSets), variable_sets::remove_workspaces),
        route(POST, "/api/v2/varsets/{variable_set}/relationships/projects", Right(A::ManageVariableSets), variable_sets::add_projects),
        route(DELETE, "/api/v2/varsets/{variable_set}/relationships/projects", Right(A::ManageVariableSets), variable_sets::remove_projects),
        route(GET, "/api/v2/varsets/{variable_set}/relationships/vars", Right(A::ReadVariableSets), variable_set_variables::list),
        route(POST, "/api/v2/varsets/{variable_set}/relationships/vars", Right(A::ManageVariableSets), variable_set_variables::create),
        route(GET, "/api/v2/varsets/{variable_set}/relationships/vars/{set_variable}", Right(A::ReadVariableSets), variable_set_variables::read),
        route(PATCH, "/api/v2/varsets/{variable_set}/relationships/vars/{set_variable}", Right(A::ManageVariableSets), variable_set_variables::update),
        route(DELETE, "/api/v2/varsets/{variable_set}/relationships/vars/{set_variable}", Right(A::ManageVariableSets), variable_set_variables::delete),

        route(GET, "/api/v2/workspaces/{workspace}/configuration-versions", Right(A::ReadRuns), configuration_versions::list),
        route(POST, "/api/v2/workspaces/{workspace}/configuration-versions", Right(A::QueuePlan), configuration_versions::create),
        route(GET, "/api/v2/configuration-versions/{configuration_version}", Right(A::ReadRuns), configuration_versions::read),
        route(GET, "/api/v2/configuration-versions/{configuration_version}/download", Right(A::QueuePlan), configuration_versions::download),
        route(POST, "/api/v2/configuration-versions/{configuration_version}/actions/{action}", Right(A::ApplyRun), configuration_versions::act),
        open(PUT, "/signed/configuration/{configuration_version}/{pass}", SignedAddress, configuration_versions::upload),

        route(POST, "/api/v2/runs", Right(A::QueuePlan), runs::create),
        route(GET, "/api/v2/runs/{run}", Right(A::ReadRuns), runs::read),
        route(GET, "/api/v2/workspaces/{workspace}/runs", Right(A::ReadRuns), runs::list_of_workspace),
        route(GET, "/api/v2/organizations/{organization}/runs", Right(A::ReadOrganization), runs::list_of_organization),
        route(GET, "/api/v2/organizations/{organization}/runs/queue", Right(A::ReadOrganization), runs::queue),
        route(POST, "/api/v2/runs/{run}/actions/apply", Right(A::ApplyRun), runs::apply),
        route(POST, "/api/v2/runs/{run}/actions/discard", Right(A::ApplyRun), runs::discard),
        route(POST, "/api/v2/runs/{run}/actions/cancel", Right(A::ApplyRun), runs::cancel),
        route(POST, "/api/v2/runs/{run}/actions/force-cancel", Right(A::ForceCancelRun), runs::force_cancel),
        route(POST, "/api/v2/runs/{run}/actions/force-execute", Right(A::ForceCancelRun), runs::force_execute),
        route(GET, "/api/v2/runs/{run}/task-stages", Right(A::ReadRuns), absent::of_run),
        route(GET, "/api/v2/runs/{run}/policy-checks", Right(A::ReadRuns), absent::of_run),
        route(GET, "/api/v2/runs/{run}/run-events", Right(A::ReadRuns), run_events::list),
        route(GET, "/api/v2/run-events/{run_event}", Right(A::ReadRuns), run_events::read),
        route(GET, "/api/v2/runs/{run}/comments", Right(A::ReadRuns), comments::list),
        route(POST, "/api/v2/runs/{run}/comments", Right(A::QueuePlan), comments::create),
        route(GET, "/api/v2/comments/{comment}", Right(A::ReadRuns), comments::read),
        route(GET, "/api/v2/runs/{run}/plan", Right(A::ReadRuns), phases::plan_of_run),
        route(GET, "/api/v2/runs/{run}/plan/json-output", Right(A::ReadWholePlan), phases::json_output_of_run),
        route(GET, "/api/v2/runs/{run}/apply", Right(A::ReadRuns), phases::apply_of_run),
        route(GET, "/api/v2/plans/{plan}", Right(A::ReadRuns), phases::read_plan),
        route(GET, "/api/v2/plans/{plan}/json-output", Right(A::ReadWholePlan), phases::json_output),
        route(GET, "/api/v2/plans/{plan}/json-output-redacted", Right(A::ReadRuns), phases::json_output_redacted),
        route(GET, "/api/v2/applies/{apply}", Right(A::ReadRuns), phases::read_apply),
        route(GET, "/api/v2/cost-estimates/{cost_estimate}", Right(A::ReadRuns), cost_estimates::read),
        open(GET, "/signed/log/{log}/{pass}", SignedAddress, log_stream::read),
        route(GET, "/api/v2/workspaces/{workspace}/run-triggers", Right(A::ReadRuns), run_triggers::list),
        route(POST, "/api/v2/workspaces/{workspace}/run-triggers", Right(A::UpdateWorkspace), run_triggers::create),
        route(GET, "/api/v2/run-triggers/{run_trigger}", Right(A::ReadRuns), run_triggers::read),
        route(DELETE, "/api/v2/run-triggers/{run_trigger}", Right(A::UpdateWorkspace), run_triggers::delete),

        route(GET, "/api/v2/state-versions", Right(A::ReadState), state_versions::list),
        route(GET, "/api/v2/workspaces/{workspace}/state-versions", Right(A::ReadState), state_versions::list_of_workspace),
        route(POST, "/api/v2/workspaces/{workspace}/state-versions", Right(A::WriteState), state_versions::create),
        route(PATCH, "/api/v2/workspaces/{workspace}/state-versions", Right(A::WriteState), state_versions::restore),
        route(GET, "/api/v2/workspaces/{workspace}/current-state-version", Right(A::ReadState), state_versions::current),
        route(GET, "/api/v2/state-versions/{state_version}", Right(A::ReadState), state_versions::read),
        route(GET, "/api/v2/state-versions/{state_version}/download", Right(A::ReadState), state_versions::download),
        route(POST, "/api/v2/state-versions/{state_version}/actions/{action}", Right(A::WriteState), state_versions::backing_data),
        route(GET, "/api/v2/state-versions/{state_version}/outputs", Right(A::ReadOutputs), state_version_outputs::list),
        route(GET, "/api/v2/workspaces/{workspace}/current-state-version-outputs", Right(A::ReadOutputs), state_version_outputs::current),
        route(GET, "/api/v2/state-version-outputs/{output}", Right(A::ReadOutputs), state_version_outputs::read),
        open(GET, "/signed/state/{state_version}/{pass}", SignedAddress, signed_url::download_state),
        open(PUT, "/signed/state/{state_version}/{pass}", SignedAddress, signed_url::upload_state),
        open(GET, "/signed/json-state/{state_version}/{pass}", SignedAddress, signed_url::download_json_state),
        open(PUT, "/signed/json-state/{state_version}/{pass}", SignedAddress, signed_url::upload_json_state),

        route(GET, "/api/http-backend/{organization}/{workspace}", Right(A::ReadState), http_backend::read).or_basic(),
        route(&["POST", "PUT"], "/api/http-backend/{organization}/{workspace}", Right(A::WriteState), http_backend::write).or_basic(),
        route(&["LOCK", "UNLOCK", "POST", "PUT", "DELETE"], "/api/http-backend/{organization}/{workspace}/lock", Right(A::LockWorkspace), http_backend::lock).or_basic(),

        route(GET, "/api/v2/organizations/{organization}/policies", Right(A::ReadOrganization), absent::of_organization),
        route(GET, "/api/v2/organizations/{organization}/policy-sets", Right(A::ReadOrganization), absent::of_organization),
        route(GET, "/api/v2/organizations/{organization}/tasks", Right(A::ReadOrganization), absent::of_organization),
        route(GET, "/api/v2/organizations/{organization}/registry-modules", Right(A::ReadOrganization), absent::of_organization),
        route(GET, "/api/v2/organizations/{organization}/registry-providers", Right(A::ReadOrganization), absent::of_organization),
        route(GET, "/api/v2/organizations/{organization}/oauth-clients", Right(A::ReadOrganization), absent::of_organization),
        route(GET, "/api/v2/organizations/{organization}/reserved-tag-keys", Right(A::ReadOrganization), absent::of_organization),
        route(GET, "/api/v2/workspaces/{workspace}/tasks", Right(A::ReadRuns), absent::of_workspace),
        route(GET, "/api/v2/workspaces/{workspace}/notification-configurations", Right(A::ReadRuns), absent::of_workspace),
        route(GET, "/api/v2/workspaces/{workspace}/assessment-results", Right(A::ReadRuns), absent::of_workspace),

        route(GET, "/api/v2/admin/organizations", Right(A::ManageSite), admin::list_organizations),
        route(GET, "/api/v2/admin/feature-sets", Right(A::ManageSite), admin::feature_sets),
        route(POST, "/api/v2/admin/organizations/{organization}/subscription", Right(A::ManageSite), admin::subscribe),
    ]
}
