//! The rows of the table, grouped by what they are about.

use taco_control_plane::{AgentPoolView, OauthClientView, ProjectView, TeamView};
use taco_domain::permission::Action as A;
use taco_domain::ssh_key::SshKey;

use super::Access::{All, Depends, OrganizationToken, Public, Right, SignedAddress, TaskToken, Token, User};
use super::Place::{Account, Organization, Project, Site, Source, Workspace};
use super::{Case, Rights, Route, crud, delete, get, group, open, patch, post, route, sample};
use crate::{
    account, admin, admin_users, agents, audit_trails, authentication_tokens, bindings, comments,
    configuration_versions, cost_estimates, dependencies, discovery, explorer, gpg_keys, graph, http_backend,
    invitations, log_stream, module_protocol, not_implemented, notification_configurations, oauth_clients,
    oauth_tokens, organization_memberships, organization_tags, organization_tokens, organizations, output_commits,
    phases, ping, policies, policy_evaluations, policy_parameters, policy_set_versions, policy_sets, policy_stages,
    provider_platforms, provider_protocol, provider_versions, registry_files, registry_modules, registry_providers,
    reserved_tag_keys, retention, run_events, run_tasks, run_triggers, runs, signed_url, state_version_outputs,
    state_versions, subscriptions, tag_bindings, tags, task_results, task_stages, team_members, team_projects,
    team_workspaces, teams, token_lifetimes, user_tokens, users, variable_sets, variables, versions, walks,
    workspace_includes, workspace_resources, workspace_run_tasks, workspaces,
};

const GET: &[&str] = &["GET"];
const PUT: &[&str] = &["PUT"];

const ALWAYS_EMPTY: &str = "Always empty: nothing of the kind can be made yet.";
const SIGNED: &str = "The address comes out of other answers, and is its own credential.";
const KEPT_ONLY: &str =
    "Connections are kept and shown. Taco does not ask forges yet, and connects with tokens that people make there.";
const SENTINEL: &str = "Rego alone is evaluated. What is written in Sentinel is stored, shown as not evaluated, and stops runs \
                        where it is mandatory: write it for OPA, or ask a run task.";
const ENTERPRISE: &str = "An endpoint of Terraform Enterprise.";

/// Secret teams are known to their members and to those who manage teams.
const TEAM_READ: &[Case] = &[
    Case { named: "team", rights: &[(A::ManageTeams, Organization)] },
    Case { named: "visible team", rights: &[(A::ReadDirectory, Organization)] },
];
/// Owners are chosen by owners.
const TEAM_MEMBERS: &[Case] = &[
    Case { named: "team", rights: &[(A::ManageMembership, Organization), (A::ManageTeams, Organization)] },
    Case { named: "visible team", rights: &[(A::ManageMembership, Organization)] },
    Case { named: "owners", rights: &[(A::ManageOwners, Organization)] },
];
const TEAM_TOKENS: &[Case] = &[
    Case { named: "team", rights: &[(A::ManageTeams, Organization)] },
    Case { named: "owners", rights: &[(A::ManageOwners, Organization)] },
];
const TOKENS_READ: &[Case] = &[
    Case { named: "token of the user", rights: &[(A::ReadAccount, Account)] },
    Case { named: "token of the team", rights: &[(A::ManageTeams, Organization)] },
    Case { named: "token of the owners", rights: &[(A::ManageOwners, Organization)] },
    Case { named: "token of the organization", rights: &[(A::ManageOrganizationToken, Organization)] },
    Case { named: "token of the audit trail", rights: &[(A::ManageOrganizationToken, Organization)] },
    Case { named: "token of the pool", rights: &[(A::ManageAgentPools, Organization)] },
];
const TOKENS_REVOKED: &[Case] = &[
    Case { named: "token of the user", rights: &[(A::UpdateAccount, Account)] },
    Case { named: "token of the team", rights: &[(A::ManageTeams, Organization)] },
    Case { named: "token of the owners", rights: &[(A::ManageOwners, Organization)] },
    Case { named: "token of the organization", rights: &[(A::ManageOrganizationToken, Organization)] },
    Case { named: "token of the audit trail", rights: &[(A::ManageOrganizationToken, Organization)] },
    Case { named: "token of the pool", rights: &[(A::ManageAgentPools, Organization)] },
];
const NOTIFICATIONS: &[Case] = &[
    Case { named: "notification of the workspace", rights: &[(A::ManageNotifications, Workspace)] },
    Case { named: "notification of the project", rights: &[(A::ManageNotifications, Project)] },
    Case { named: "notification of the team", rights: &[(A::ManageTeams, Organization)] },
];
/// Access of other teams is for those who decide it.
const WORKSPACE_TEAM_READ: &[(A, super::Place)] =
    &[(A::ReadWorkspaceTeams, Workspace), (A::ManageWorkspaceTeams, Workspace)];
const PROJECT_TEAM_READ: &[(A, super::Place)] = &[(A::ReadProject, Project), (A::ManageProjectTeams, Project)];
/// A trigger names both of its ends.
const TRIGGER_READ: &[(A, super::Place)] = &[(A::ReadRuns, Workspace), (A::ReadWorkspace, Source)];

#[rustfmt::skip]
pub(super) fn groups() -> Vec<Vec<Route>> {
    vec![
        group("Discovery and health", None, vec![
            open(GET, "/.well-known/terraform.json", Public, discovery::discovery)
                .says("Tells terraform and tofu where the services of this server are."),
            open(GET, "/api/v2/ping", Public, ping::ping)
                .says("Answers with the headers by which clients tell what they talk to."),
            open(GET, "/versions", Public, versions::versions)
                .says("Shows the version of this server and the engines that its own agents have.").only_in_taco(),
        ]),
        group("Account, users and tokens", Some("account"), vec![
            get("/api/v2/account/details", User, account::read)
                .says("Shows the account of the caller."),
            patch("/api/v2/account/update", User, account::update)
                .says("Changes the caller's name or address."),
            get("/api/v2/account/invitations", User, invitations::list)
                .says("Lists the organizations that the caller is invited to.").only_in_taco(),
            post("/api/v2/account/invitations/actions/accept", User, invitations::accept)
                .says("Accepts an invitation, by its id or its link.").only_in_taco(),
            post("/api/v2/account/invitations/actions/decline", User, invitations::decline)
                .says("Declines an invitation, by its id or its link.").only_in_taco(),
            get("/api/v2/users/{user}", Right(A::ReadAccount, Account), users::read)
                .says("Shows a user."),
            get("/api/v2/users/{user}/authentication-tokens", Right(A::ReadAccount, Account), user_tokens::list)
                .says("Lists a user's tokens, without their texts."),
            post("/api/v2/users/{user}/authentication-tokens", Right(A::UpdateAccount, Account), user_tokens::create)
                .says("Issues a token for a user. Only this answer has its text."),
            get("/api/v2/authentication-tokens/{token}", Depends(TOKENS_READ), authentication_tokens::read)
                .says("Shows a token of any kind, without its text."),
            delete("/api/v2/authentication-tokens/{token}", Depends(TOKENS_REVOKED), authentication_tokens::delete)
                .says("Revokes a token of any kind."),
        ]),
        group("Organizations", Some("organizations"), vec![
            get("/api/v2/organizations", Token, organizations::list)
                .says("Lists the organizations that the caller may see."),
            post("/api/v2/organizations", Right(A::CreateOrganization, Site), organizations::create)
                .says("Founds an organization; the caller is its first owner."),
            get("/api/v2/organizations/{organization}", Right(A::ReadOrganization, Organization), organizations::read)
                .says("Shows an organization, by its name."),
            patch("/api/v2/organizations/{organization}", Right(A::UpdateOrganization, Organization), organizations::update)
                .says("Changes an organization's settings."),
            delete("/api/v2/organizations/{organization}", Right(A::DeleteOrganization, Organization), organizations::delete)
                .says("Deletes an organization with all that it has."),
            get("/api/v2/organizations/{organization}/entitlement-set", Right(A::ReadOrganization, Organization), organizations::entitlements)
                .says("Shows which features an organization has.").differs("All features that there are, without limits."),
            get("/api/v2/organizations/{organization}/relationships/data-retention-policy", Right(A::ReadOrganization, Organization), retention::read_of_organization)
                .says("Shows the policy for old data of workspaces that have none of their own."),
            post("/api/v2/organizations/{organization}/relationships/data-retention-policy", Right(A::UpdateOrganization, Organization), retention::set_of_organization)
                .says("Sets that policy.").body(sample::RETENTION),
            delete("/api/v2/organizations/{organization}/relationships/data-retention-policy", Right(A::UpdateOrganization, Organization), retention::delete_of_organization)
                .says("Keeps everything, but where a workspace has a policy of its own."),
            get("/api/v2/organizations/{organization}/capacity", Right(A::ReadOrganization, Organization), organizations::capacity)
                .says("Counts an organization's queued and running runs."),
            get("/api/v2/organizations/{organization}/subscription", Right(A::ReadOrganization, Organization), subscriptions::read)
                .says("Shows an organization's subscription.").differs("There is one, it is free and has everything."),
            get("/api/v2/organizations/{organization}/explorer", Right(A::ReadDirectory, Organization), explorer::list)
                .says("Lists workspaces with their latest run and state.").query("type=workspaces").differs("`type=workspaces` only, without filters; drift and checks are `null`."),
            get("/api/v2/organizations/{organization}/audit-trail", Right(A::ReadAuditTrail, Organization), audit_trails::of_organization)
                .says("Lists what happened in an organization, newest first.").only_in_taco(),
            get("/api/v2/organization/audit-trail", OrganizationToken, audit_trails::of_token)
                .says("Lists what happened in the organization that the token belongs to."),
            get("/api/v2/organizations/{organization}/authentication-token", Right(A::ManageOrganizationToken, Organization), organization_tokens::read)
                .says("Shows the organization's token, or with `token=audit-trails` that of its audit trail."),
            post("/api/v2/organizations/{organization}/authentication-token", Right(A::ManageOrganizationToken, Organization), organization_tokens::create)
                .says("Issues that token; an earlier one ends."),
            delete("/api/v2/organizations/{organization}/authentication-token", Right(A::ManageOrganizationToken, Organization), organization_tokens::delete)
                .says("Revokes that token."),
            get("/api/v2/organizations/{organization}/token-ttl-policies", Right(A::UpdateOrganization, Organization), token_lifetimes::list)
                .says("Lists how long tokens of each kind may live."),
            patch("/api/v2/organizations/{organization}/token-ttl-policies", Right(A::UpdateOrganization, Organization), token_lifetimes::update)
                .says("Changes how long tokens of each kind may live."),
            get("/api/v2/organizations/{organization}/organization-memberships", Right(A::ReadDirectory, Organization), organization_memberships::list)
                .says("Lists members and those who are invited."),
            post("/api/v2/organizations/{organization}/organization-memberships", Right(A::ManageMembership, Organization), organization_memberships::create)
                .says("Invites someone by address.").differs("No mail is sent: the answer has the link to pass on."),
            get("/api/v2/organization-memberships/{membership}", Right(A::ReadDirectory, Organization), organization_memberships::read)
                .says("Shows a membership or an invitation."),
            delete("/api/v2/organization-memberships/{membership}", Right(A::ManageMembership, Organization), organization_memberships::delete)
                .says("Removes a member, or takes an invitation back."),
            post("/api/v2/organization-memberships/{membership}/actions/renew-invitation", Right(A::ManageMembership, Organization), organization_memberships::renew)
                .says("Makes a new link for an invitation; the earlier one ends.").only_in_taco(),
        ]),
        group("Teams", Some("teams"), [crud::<TeamView>(
            "a team",
            "/api/v2/organizations/{organization}/teams",
            "/api/v2/teams/{team}",
            Rights {
                list: Right(A::ReadDirectory, Organization),
                create: Right(A::ManageTeams, Organization),
                read: Depends(TEAM_READ),
                update: Right(A::ManageTeams, Organization),
                delete: Right(A::ManageTeams, Organization),
            },
        ), vec![
            get("/api/v2/organizations/{organization}/team-tokens", Right(A::ManageTeams, Organization), teams::list_tokens)
                .says("Lists the tokens of an organization's teams."),
            get("/api/v2/teams/{team}/authentication-token", Depends(TEAM_TOKENS), teams::read_token)
                .says("Shows a team's token, without its text."),
            post("/api/v2/teams/{team}/authentication-token", Depends(TEAM_TOKENS), teams::create_token)
                .says("Issues a team's token; an earlier one ends."),
            delete("/api/v2/teams/{team}/authentication-token", Depends(TEAM_TOKENS), teams::delete_token)
                .says("Revokes a team's token."),
            post("/api/v2/teams/{team}/authentication-tokens", Depends(TEAM_TOKENS), teams::create_token)
                .says("Issues one of several tokens of a team."),
            post("/api/v2/teams/{team}/relationships/users", Depends(TEAM_MEMBERS), team_members::add_users)
                .says("Adds members to a team, by their names.").body(sample::USER_LIST),
            delete("/api/v2/teams/{team}/relationships/users", Depends(TEAM_MEMBERS), team_members::remove_users)
                .says("Removes members from a team, by their names.").body(sample::USER_LIST),
            post("/api/v2/teams/{team}/relationships/organization-memberships", Depends(TEAM_MEMBERS), team_members::add_memberships)
                .says("Adds members to a team, by their memberships.").body(sample::MEMBERSHIP_LIST),
            delete("/api/v2/teams/{team}/relationships/organization-memberships", Depends(TEAM_MEMBERS), team_members::remove_memberships)
                .says("Removes members from a team, by their memberships.").body(sample::MEMBERSHIP_LIST),
            get("/api/v2/team-workspaces", Right(A::ReadWorkspaceTeams, Workspace), team_workspaces::list)
                .says("Lists which teams have access to a workspace.").query("filter[workspace][id]={workspace}"),
            post("/api/v2/team-workspaces", Right(A::ManageWorkspaceTeams, Workspace), team_workspaces::create)
                .says("Gives a team access to a workspace.").body(sample::TEAM_WORKSPACE),
            get("/api/v2/team-workspaces/{team_workspace}", All(WORKSPACE_TEAM_READ), team_workspaces::read)
                .says("Shows a team's access to a workspace."),
            patch("/api/v2/team-workspaces/{team_workspace}", Right(A::ManageWorkspaceTeams, Workspace), team_workspaces::update)
                .says("Changes a team's access to a workspace."),
            delete("/api/v2/team-workspaces/{team_workspace}", Right(A::ManageWorkspaceTeams, Workspace), team_workspaces::delete)
                .says("Takes a team's access to a workspace away."),
            get("/api/v2/team-projects", Right(A::ReadProject, Project), team_projects::list)
                .says("Lists which teams have access to a project.").query("filter[project][id]={project}"),
            post("/api/v2/team-projects", Right(A::ManageProjectTeams, Project), team_projects::create)
                .says("Gives a team access to a project.").body(sample::TEAM_PROJECT),
            get("/api/v2/team-projects/{team_project}", All(PROJECT_TEAM_READ), team_projects::read)
                .says("Shows a team's access to a project."),
            patch("/api/v2/team-projects/{team_project}", Right(A::ManageProjectTeams, Project), team_projects::update)
                .says("Changes a team's access to a project."),
            delete("/api/v2/team-projects/{team_project}", Right(A::ManageProjectTeams, Project), team_projects::delete)
                .says("Takes a team's access to a project away."),
        ]].concat()),
        group("Agents", Some("agents"), [crud::<AgentPoolView>(
            "an agent pool",
            "/api/v2/organizations/{organization}/agent-pools",
            "/api/v2/agent-pools/{pool}",
            Rights::new(Right(A::ReadDirectory, Organization), Right(A::ManageAgentPools, Organization)),
        ), vec![
            get("/api/v2/agent-pools/{pool}/authentication-tokens", Right(A::ManageAgentPools, Organization), agents::list_tokens)
                .says("Lists an agent pool's tokens, without their texts."),
            post("/api/v2/agent-pools/{pool}/authentication-tokens", Right(A::ManageAgentPools, Organization), agents::create_token)
                .says("Issues a token for agents of a pool. Only this answer has its text."),
            get("/api/v2/agent-pools/{pool}/agents", Right(A::ReadDirectory, Organization), agents::list)
                .says("Lists the agents of a pool."),
            get("/api/v2/agents/{agent}", Right(A::ReadDirectory, Organization), agents::read)
                .says("Shows an agent."),
        ]].concat()),
        group("SSH keys", Some("ssh-keys"), crud::<SshKey>(
            "an SSH key",
            "/api/v2/organizations/{organization}/ssh-keys",
            "/api/v2/ssh-keys/{key}",
            Rights::new(Right(A::ReadDirectory, Organization), Right(A::ManageVcsSettings, Organization)),
        )),
        group("Version control", Some("oauth-clients"), [crud::<OauthClientView>(
            "an OAuth client",
            "/api/v2/organizations/{organization}/oauth-clients",
            "/api/v2/oauth-clients/{oauth_client}",
            Rights::new(Right(A::ReadDirectory, Organization), Right(A::ManageVcsSettings, Organization)),
        ).into_iter().map(|route| route.body(sample::OAUTH_CLIENT).differs(KEPT_ONLY)).collect(), vec![
            post("/api/v2/oauth-clients/{oauth_client}/relationships/projects", Right(A::ManageVcsSettings, Organization), oauth_clients::add_projects)
                .says("Lets the workspaces of more projects use an OAuth client.").body(sample::PROJECT_LIST),
            delete("/api/v2/oauth-clients/{oauth_client}/relationships/projects", Right(A::ManageVcsSettings, Organization), oauth_clients::remove_projects)
                .says("Takes projects from an OAuth client.").body(sample::PROJECT_LIST),
            get("/api/v2/oauth-clients/{oauth_client}/oauth-tokens", Right(A::ReadDirectory, Organization), oauth_tokens::list_of_client)
                .says("Lists the tokens of an OAuth client, without their texts."),
        ]].concat()),
        group("Version control", Some("oauth-tokens"), vec![
            get("/api/v2/organizations/{organization}/oauth-tokens", Right(A::ReadDirectory, Organization), oauth_tokens::list)
                .says("Lists an organization's OAuth tokens, without their texts."),
            get("/api/v2/oauth-tokens/{oauth_token}", Right(A::ReadDirectory, Organization), oauth_tokens::read)
                .says("Shows an OAuth token, without its text."),
            patch("/api/v2/oauth-tokens/{oauth_token}", Right(A::ManageVcsSettings, Organization), oauth_tokens::update)
                .says("Changes the SSH key of an OAuth token."),
            delete("/api/v2/oauth-tokens/{oauth_token}", Right(A::ManageVcsSettings, Organization), oauth_tokens::delete)
                .says("Deletes an OAuth token. Its client stays."),
        ]),
        group("Tags", Some("reserved-tag-keys"), vec![
            get("/api/v2/organizations/{organization}/reserved-tag-keys", Right(A::ReadOrganization, Organization), reserved_tag_keys::list)
                .says("Lists an organization's reserved tag keys."),
            post("/api/v2/organizations/{organization}/reserved-tag-keys", Right(A::UpdateOrganization, Organization), reserved_tag_keys::create)
                .says("Reserves a tag key. With `disable-overrides`, workspaces cannot give it another value than their project.").body(sample::RESERVED_TAG_KEY),
            patch("/api/v2/reserved-tag-keys/{reserved_tag_key}", Right(A::UpdateOrganization, Organization), reserved_tag_keys::update)
                .says("Changes a reserved tag key.").body(sample::RESERVED_TAG_KEY),
            delete("/api/v2/reserved-tag-keys/{reserved_tag_key}", Right(A::UpdateOrganization, Organization), reserved_tag_keys::delete)
                .says("Lets a reserved tag key go. Tags that have it stay."),
        ]),
        group("Tags", Some("organization-tags"), vec![
            get("/api/v2/organizations/{organization}/tags", Right(A::ReadOrganization, Organization), organization_tags::list)
                .says("Lists the tags of the workspaces that the caller may see."),
            delete("/api/v2/organizations/{organization}/tags", Right(A::UpdateWorkspace, Workspace), organization_tags::delete)
                .says("Takes tags from every workspace that carries them.").body(sample::TAG_LIST),
            post("/api/v2/tags/{tag}/relationships/workspaces", Right(A::UpdateWorkspace, Workspace), organization_tags::add_workspaces)
                .says("Gives a tag to workspaces.").body(sample::WORKSPACE_LIST),
        ]),
        group("Projects", Some("projects"), [crud::<ProjectView>(
            "a project",
            "/api/v2/organizations/{organization}/projects",
            "/api/v2/projects/{project}",
            Rights {
                list: Right(A::ReadOrganization, Organization),
                create: Right(A::CreateProject, Organization),
                read: Right(A::ReadProject, Project),
                update: Right(A::UpdateProject, Project),
                delete: Right(A::DeleteProject, Project),
            },
        ), vec![
            get("/api/v2/projects/{project}/tag-bindings", Right(A::ReadProject, Project), tag_bindings::of_project)
                .says("Lists a project's tags with their values."),
            patch("/api/v2/projects/{project}/tag-bindings", Right(A::UpdateProject, Project), tag_bindings::add_to_project)
                .says("Adds tags to a project, or changes their values.").body(sample::TAG_BINDINGS),
            get("/api/v2/projects/{project}/effective-tag-bindings", Right(A::ReadProject, Project), tag_bindings::effective_of_project)
                .says("Lists the tags that count for a project."),
        ]].concat()),
        group("Workspaces", Some("workspaces"), vec![
            get("/api/v2/organizations/{organization}/workspaces", Right(A::ReadOrganization, Organization), workspaces::list)
                .says("Lists the workspaces that the caller may see."),
            post("/api/v2/organizations/{organization}/workspaces", Right(A::CreateWorkspace, Project), workspaces::create)
                .says("Makes a workspace.").body(sample::NEW_WORKSPACE),
            get("/api/v2/organizations/{organization}/workspaces/{workspace}", Right(A::ReadWorkspace, Workspace), workspaces::read)
                .says("Shows a workspace, by its name."),
            patch("/api/v2/organizations/{organization}/workspaces/{workspace}", Right(A::UpdateWorkspace, Workspace), workspaces::update)
                .says("Changes a workspace, by its name."),
            delete("/api/v2/organizations/{organization}/workspaces/{workspace}", Right(A::DeleteWorkspace, Workspace), workspaces::delete)
                .says("Deletes a workspace with its states and runs, by its name."),
            post("/api/v2/organizations/{organization}/workspaces/{workspace}/actions/safe-delete", Right(A::DeleteWorkspace, Workspace), workspaces::safe_delete)
                .says("Deletes a workspace if it manages nothing, by its name."),
            get("/api/v2/workspaces/{workspace}", Right(A::ReadWorkspace, Workspace), workspaces::read)
                .says("Shows a workspace."),
            patch("/api/v2/workspaces/{workspace}", Right(A::UpdateWorkspace, Workspace), workspaces::update)
                .says("Changes a workspace."),
            delete("/api/v2/workspaces/{workspace}", Right(A::DeleteWorkspace, Workspace), workspaces::delete)
                .says("Deletes a workspace with its states and runs."),
            post("/api/v2/workspaces/{workspace}/actions/safe-delete", Right(A::DeleteWorkspace, Workspace), workspaces::safe_delete)
                .says("Deletes a workspace if it manages nothing."),
            post("/api/v2/workspaces/{workspace}/actions/lock", Right(A::LockWorkspace, Workspace), workspaces::lock)
                .says("Locks a workspace."),
            post("/api/v2/workspaces/{workspace}/actions/unlock", Right(A::LockWorkspace, Workspace), workspaces::unlock)
                .says("Unlocks a workspace that the caller has locked."),
            post("/api/v2/workspaces/{workspace}/actions/force-unlock", Right(A::ForceUnlockWorkspace, Workspace), workspaces::force_unlock)
                .says("Unlocks a workspace that anyone has locked."),
            patch("/api/v2/workspaces/{workspace}/relationships/ssh-key", Right(A::UpdateWorkspace, Workspace), workspaces::assign_ssh_key)
                .says("Chooses the SSH key with which runs fetch modules, or none."),
            get("/api/v2/workspaces/{workspace}/remote-state-consumers", Right(A::ReadRuns, Workspace), workspaces::list_consumers)
                .says("Lists the workspaces that may read this one's state.").only_in_taco(),
            get("/api/v2/workspaces/{workspace}/relationships/remote-state-consumers", Right(A::ReadRuns, Workspace), workspaces::list_consumers)
                .says("Lists the workspaces that may read this one's state."),
            post("/api/v2/workspaces/{workspace}/relationships/remote-state-consumers", Right(A::UpdateWorkspace, Workspace), workspaces::add_consumers)
                .says("Lets further workspaces read this one's state.").body(sample::EMPTY_LIST),
            patch("/api/v2/workspaces/{workspace}/relationships/remote-state-consumers", Right(A::UpdateWorkspace, Workspace), workspaces::replace_consumers)
                .says("Replaces the list of workspaces that may read this one's state.").body(sample::EMPTY_LIST),
            delete("/api/v2/workspaces/{workspace}/relationships/remote-state-consumers", Right(A::UpdateWorkspace, Workspace), workspaces::remove_consumers)
                .says("Takes workspaces from that list.").body(sample::EMPTY_LIST),
            get("/api/v2/workspaces/{workspace}/relationships/tags", Right(A::ReadRuns, Workspace), tags::list)
                .says("Lists a workspace's tags."),
            post("/api/v2/workspaces/{workspace}/relationships/tags", Right(A::UpdateWorkspace, Workspace), tags::add)
                .says("Adds tags to a workspace.").body(sample::TAG_LIST),
            delete("/api/v2/workspaces/{workspace}/relationships/tags", Right(A::UpdateWorkspace, Workspace), tags::remove)
                .says("Takes tags from a workspace.").body(sample::TAG_LIST),
            get("/api/v2/workspaces/{workspace}/tag-bindings", Right(A::ReadRuns, Workspace), tag_bindings::of_workspace)
                .says("Lists a workspace's own tags with their values."),
            patch("/api/v2/workspaces/{workspace}/tag-bindings", Right(A::UpdateWorkspace, Workspace), tag_bindings::add_to_workspace)
                .says("Adds tags to a workspace, or changes their values.").body(sample::TAG_BINDINGS),
            get("/api/v2/workspaces/{workspace}/effective-tag-bindings", Right(A::ReadRuns, Workspace), tag_bindings::effective_of_workspace)
                .says("Lists a workspace's tags and those of its project."),
            get("/api/v2/workspaces/{workspace}/relationships/data-retention-policy", Right(A::ReadWorkspace, Workspace), retention::read_of_workspace)
                .says("Shows a workspace's own policy for old data."),
            post("/api/v2/workspaces/{workspace}/relationships/data-retention-policy", Right(A::DeleteStateForGood, Workspace), retention::set_of_workspace)
                .says("Sets for how long a workspace keeps states and configurations that are not current any more, or that it keeps them for ever.").body(sample::RETENTION),
            delete("/api/v2/workspaces/{workspace}/relationships/data-retention-policy", Right(A::DeleteStateForGood, Workspace), retention::delete_of_workspace)
                .says("Lets the organization's policy for old data count."),
            get("/api/v2/workspaces/{workspace}/data-retention-preview", Right(A::ReadWorkspace, Workspace), retention::preview)
                .says("Lists what the policy, or one with as many days as the query says, would delete now.").only_in_taco(),
            get("/api/v2/workspaces/{workspace}/readme", Right(A::ReadRuns, Workspace), workspace_includes::readme)
                .says("Shows the README of the current configuration."),
            get("/api/v2/workspaces/{workspace}/resources", Right(A::ReadState, Workspace), workspace_resources::list)
                .says("Lists what the current state manages."),
        ]),
        group("Variables", Some("workspace-variables"), vec![
            get("/api/v2/workspaces/{workspace}/vars", Right(A::ReadVariables, Workspace), variables::list)
                .says("Lists a workspace's own variables. Sensitive values are `null`."),
            post("/api/v2/workspaces/{workspace}/vars", Right(A::WriteVariables, Workspace), variables::create)
                .says("Makes a variable of a workspace.").body(sample::VARIABLE),
            get("/api/v2/workspaces/{workspace}/vars/{variable}", Right(A::ReadVariables, Workspace), variables::read)
                .says("Shows a variable of a workspace."),
            patch("/api/v2/workspaces/{workspace}/vars/{variable}", Right(A::WriteVariables, Workspace), variables::update)
                .says("Changes a variable of a workspace."),
            delete("/api/v2/workspaces/{workspace}/vars/{variable}", Right(A::WriteVariables, Workspace), variables::delete)
                .says("Deletes a variable of a workspace."),
            get("/api/v2/workspaces/{workspace}/all-vars", Right(A::ReadVariables, Workspace), variables::list_effective)
                .says("Lists the variables that runs of a workspace get, also from variable sets."),
            get("/api/v2/workspaces/{workspace}/bindings", Right(A::ReadVariables, Workspace), bindings::list)
                .says("Lists the variables of a workspace that take their values from other workspaces' outputs.").only_in_taco(),
            post("/api/v2/workspaces/{workspace}/bindings", Right(A::WriteVariables, Workspace), bindings::create)
                .says("Binds a variable to an output of another workspace, by the producer's name or id: each plan takes the output as it is then. The producer has to share its state with the workspace, and the caller has to be allowed to read the output.")
                .body(sample::BINDING).only_in_taco(),
            get("/api/v2/bindings/{binding}", Right(A::ReadVariables, Workspace), bindings::read)
                .says("Shows a binding; `problem` says why a run would get no value now.").only_in_taco(),
            delete("/api/v2/bindings/{binding}", Right(A::WriteVariables, Workspace), bindings::delete)
                .says("Removes a binding: later plans don't have the variable.").only_in_taco(),
            get("/api/v2/vars", Right(A::ReadVariables, Workspace), variables::list_by_name)
                .says("Lists a workspace's own variables, by its name.").query(sample::BY_NAME),
            post("/api/v2/vars", Right(A::WriteVariables, Workspace), variables::create_by_relationship)
                .says("Makes a variable of the workspace that the body names.").body(sample::VARIABLE),
            patch("/api/v2/vars/{variable}", Right(A::WriteVariables, Workspace), variables::update_by_id)
                .says("Changes a variable, by its id alone."),
            delete("/api/v2/vars/{variable}", Right(A::WriteVariables, Workspace), variables::delete_by_id)
                .says("Deletes a variable, by its id alone."),
        ]),
        group("Variable sets", Some("variable-sets"), vec![
            get("/api/v2/organizations/{organization}/varsets", Right(A::ReadOrganization, Organization), variable_sets::list)
                .says("Lists an organization's variable sets."),
            post("/api/v2/organizations/{organization}/varsets", Right(A::ManageVariableSets, Organization), variable_sets::create)
                .says("Makes a variable set, also with variables and with what it is applied to."),
            get("/api/v2/projects/{project}/varsets", Right(A::ReadProjectVariableSets, Project), variable_sets::list_of_project)
                .says("Lists the variable sets that count for a project."),
            get("/api/v2/workspaces/{workspace}/varsets", Right(A::ReadVariables, Workspace), variable_sets::list_of_workspace)
                .says("Lists the variable sets that count for a workspace."),
            get("/api/v2/varsets/{variable_set}", Right(A::ReadVariableSets, Organization), variable_sets::read)
                .says("Shows a variable set."),
            patch("/api/v2/varsets/{variable_set}", Right(A::ManageVariableSets, Organization), variable_sets::update)
                .says("Changes a variable set."),
            delete("/api/v2/varsets/{variable_set}", Right(A::ManageVariableSets, Organization), variable_sets::delete)
                .says("Deletes a variable set with its variables."),
            post("/api/v2/varsets/{variable_set}/relationships/workspaces", Right(A::ManageVariableSets, Organization), variable_sets::add_workspaces)
                .says("Applies a variable set to workspaces.").body(sample::WORKSPACE_LIST),
            delete("/api/v2/varsets/{variable_set}/relationships/workspaces", Right(A::ManageVariableSets, Organization), variable_sets::remove_workspaces)
                .says("Takes a variable set from workspaces.").body(sample::WORKSPACE_LIST),
            post("/api/v2/varsets/{variable_set}/relationships/projects", Right(A::ManageVariableSets, Organization), variable_sets::add_projects)
                .says("Applies a variable set to projects.").body(sample::PROJECT_LIST),
            delete("/api/v2/varsets/{variable_set}/relationships/projects", Right(A::ManageVariableSets, Organization), variable_sets::remove_projects)
                .says("Takes a variable set from projects.").body(sample::PROJECT_LIST),
            get("/api/v2/varsets/{variable_set}/relationships/vars", Right(A::ReadVariableSets, Organization), variables::list)
                .says("Lists the variables of a variable set."),
            post("/api/v2/varsets/{variable_set}/relationships/vars", Right(A::ManageVariableSets, Organization), variables::create)
                .says("Makes a variable of a variable set.").body(sample::VARIABLE),
            get("/api/v2/varsets/{variable_set}/relationships/vars/{set_variable}", Right(A::ReadVariableSets, Organization), variables::read)
                .says("Shows a variable of a variable set."),
            patch("/api/v2/varsets/{variable_set}/relationships/vars/{set_variable}", Right(A::ManageVariableSets, Organization), variables::update)
                .says("Changes a variable of a variable set."),
            delete("/api/v2/varsets/{variable_set}/relationships/vars/{set_variable}", Right(A::ManageVariableSets, Organization), variables::delete)
                .says("Deletes a variable of a variable set."),
        ]),
        group("Configurations", Some("configuration-versions"), vec![
            get("/api/v2/workspaces/{workspace}/configuration-versions", Right(A::ReadRuns, Workspace), configuration_versions::list)
                .says("Lists a workspace's configurations, newest first."),
            post("/api/v2/workspaces/{workspace}/configuration-versions", Right(A::QueuePlan, Workspace), configuration_versions::create)
                .says("Announces a configuration. The answer has the address to which its archive is sent."),
            get("/api/v2/configuration-versions/{configuration_version}", Right(A::ReadRuns, Workspace), configuration_versions::read)
                .says("Shows a configuration."),
            get("/api/v2/configuration-versions/{configuration_version}/download", Right(A::DownloadConfiguration, Workspace), configuration_versions::download)
                .says("Sends a configuration's archive.").differs("The archive itself, not a redirect."),
            post("/api/v2/configuration-versions/{configuration_version}/actions/{action}", Right(A::ApplyRun, Workspace), configuration_versions::act)
                .says("Archives a configuration, or deletes or restores its archive."),
            open(PUT, "/signed/configuration/{configuration_version}/{pass}", SignedAddress, configuration_versions::upload)
                .says("Takes a configuration's archive.").differs(SIGNED),
        ]),
        group("Runs", Some("run"), vec![
            post("/api/v2/runs", Right(A::QueuePlan, Workspace), runs::create)
                .says("Starts a run.").body(sample::NEW_RUN),
            get("/api/v2/runs/{run}", Right(A::ReadRuns, Workspace), runs::read)
                .says("Shows a run."),
            get("/api/v2/workspaces/{workspace}/runs", Right(A::ReadRuns, Workspace), runs::list_of_workspace)
                .says("Lists a workspace's runs, newest first."),
            get("/api/v2/organizations/{organization}/runs", Right(A::ReadOrganization, Organization), runs::list_of_organization)
                .says("Lists the runs of all workspaces that the caller may see."),
            get("/api/v2/organizations/{organization}/runs/queue", Right(A::ReadOrganization, Organization), runs::queue)
                .says("Lists queued and running runs, in the order of the queue."),
            post("/api/v2/runs/{run}/actions/apply", Right(A::ApplyRun, Workspace), runs::apply)
                .says("Lets a plan be applied.").differs("`accept-output-changes` applies also what an output contract stopped."),
            post("/api/v2/runs/{run}/actions/discard", Right(A::ApplyRun, Workspace), runs::discard)
                .says("Ends a run whose plan shall not be applied."),
            post("/api/v2/runs/{run}/actions/cancel", Right(A::ApplyRun, Workspace), runs::cancel)
                .says("Cancels a run; the agent that executes it ends the engine."),
            post("/api/v2/runs/{run}/actions/force-cancel", Right(A::ForceCancelRun, Workspace), runs::force_cancel)
                .says("Ends a run whose agent did not end it in time."),
            post("/api/v2/runs/{run}/actions/force-execute", Right(A::ForceCancelRun, Workspace), runs::force_execute)
                .says("Lets a run begin before those that wait in front of it."),
            get("/api/v2/runs/{run}/task-stages", Right(A::ReadRuns, Workspace), task_stages::list)
                .says("Lists a run's task stages, in the order in which their turns come."),
            post("/api/v2/runs/{run}/actions/override-policies", Right(A::OverridePolicies, Workspace), policy_stages::override_run)
                .says("Lets a run go on that mandatory policies have stopped.").only_in_taco(),
            get("/api/v2/runs/{run}/policy-checks", Right(A::ReadRuns, Workspace), not_implemented::empty_list_of_run)
                .says("Lists a run's policy checks.").differs(ALWAYS_EMPTY),
            get("/api/v2/runs/{run}/run-events", Right(A::ReadRuns, Workspace), run_events::list)
                .says("Lists what happened to a run."),
            get("/api/v2/run-events/{run_event}", Right(A::ReadRuns, Workspace), run_events::read)
                .says("Shows something that happened to a run."),
            get("/api/v2/runs/{run}/comments", Right(A::ReadRuns, Workspace), comments::list)
                .says("Lists what people said about a run."),
            post("/api/v2/runs/{run}/comments", Right(A::QueuePlan, Workspace), comments::create)
                .says("Says something about a run.").body(sample::COMMENT),
            get("/api/v2/comments/{comment}", Right(A::ReadRuns, Workspace), comments::read)
                .says("Shows a comment."),
            get("/api/v2/runs/{run}/plan", Right(A::ReadRuns, Workspace), phases::plan_of_run)
                .says("Shows the plan of a run."),
            get("/api/v2/runs/{run}/plan/json-output", Right(A::ReadWholePlan, Workspace), phases::json_output_of_run)
                .says("Sends the plan of a run as JSON, with sensitive values.").differs("The JSON itself, not a redirect; 204 until it is there."),
            get("/api/v2/runs/{run}/apply", Right(A::ReadRuns, Workspace), phases::apply_of_run)
                .says("Shows the apply of a run."),
            get("/api/v2/plans/{plan}", Right(A::ReadRuns, Workspace), phases::read_plan)
                .says("Shows a plan."),
            get("/api/v2/plans/{plan}/json-output", Right(A::ReadWholePlan, Workspace), phases::json_output)
                .says("Sends a plan as JSON, with sensitive values.").differs("The JSON itself, not a redirect; 204 until it is there."),
            get("/api/v2/plans/{plan}/json-output-redacted", Right(A::ReadRuns, Workspace), phases::json_output_redacted)
                .says("Sends a plan as JSON, without sensitive values.").differs("The JSON itself, not a redirect; 204 until it is there."),
            get("/api/v2/applies/{apply}", Right(A::ReadRuns, Workspace), phases::read_apply)
                .says("Shows an apply."),
            get("/api/v2/cost-estimates/{cost_estimate}", Right(A::ReadRuns, Workspace), cost_estimates::read)
                .says("Shows a cost estimate.").differs("It counts resources; there are no prices."),
            open(GET, "/signed/log/{log}/{pass}", SignedAddress, log_stream::read)
                .says("Sends the log of a plan or an apply, from an offset on.").differs(SIGNED),
            get("/api/v2/workspaces/{workspace}/run-triggers", Right(A::ReadRuns, Workspace), run_triggers::list)
                .says("Lists a workspace's run triggers."),
            post("/api/v2/workspaces/{workspace}/run-triggers", Right(A::UpdateWorkspace, Workspace), run_triggers::create)
                .says("Lets applies in another workspace start runs in this one.").body(sample::RUN_TRIGGER),
            get("/api/v2/run-triggers/{run_trigger}", All(TRIGGER_READ), run_triggers::read)
                .says("Shows a run trigger."),
            delete("/api/v2/run-triggers/{run_trigger}", Right(A::UpdateWorkspace, Workspace), run_triggers::delete)
                .says("Deletes a run trigger."),
        ]),
        group("Modules of the private registry", Some("private-registry/modules"), vec![
            get("/api/v2/organizations/{organization}/registry-modules", Right(A::DownloadModules, Organization), registry_modules::list)
                .says("Lists an organization's modules by name. `q` is a part of an address."),
            post("/api/v2/organizations/{organization}/registry-modules", Right(A::ManageModules, Organization), registry_modules::create)
                .says("Creates a module, without versions.").body(sample::MODULE),
            post("/api/v2/organizations/{organization}/registry-modules/vcs", Right(A::ManageModules, Organization), registry_modules::create_from_vcs)
                .says("Creates a module from a repository.").differs("Always refused: there are no version control connections yet."),
            get("/api/v2/organizations/{organization}/registry-modules/{registry}/{namespace}/{module_name}/{module_provider}", Right(A::DownloadModules, Organization), registry_modules::read)
                .says("Shows a module, by its address."),
            patch("/api/v2/organizations/{organization}/registry-modules/{registry}/{namespace}/{module_name}/{module_provider}", Right(A::ManageModules, Organization), registry_modules::update)
                .says("Changes whether a module may be used without writing configuration.").differs("`no-code` alone can be changed."),
            delete("/api/v2/organizations/{organization}/registry-modules/{registry}/{namespace}/{module_name}", Right(A::ManageModules, Organization), registry_modules::delete)
                .says("Deletes the modules of a name, for every provider."),
            delete("/api/v2/organizations/{organization}/registry-modules/{registry}/{namespace}/{module_name}/{module_provider}", Right(A::ManageModules, Organization), registry_modules::delete)
                .says("Deletes a module with its versions."),
            post("/api/v2/organizations/{organization}/registry-modules/{registry}/{namespace}/{module_name}/{module_provider}/versions", Right(A::ManageModules, Organization), registry_modules::create_version)
                .says("Announces a version. The link `upload` is the address to which its archive is sent.").body(sample::VERSION),
            get("/api/v2/organizations/{organization}/registry-modules/{registry}/{namespace}/{module_name}/{module_provider}/version", Right(A::DownloadModules, Organization), registry_modules::read_version_in_query)
                .says("Shows the version that `module_version` names, or the latest.").query("module_version={version}"),
            get("/api/v2/organizations/{organization}/registry-modules/{registry}/{namespace}/{module_name}/{module_provider}/{version}", Right(A::DownloadModules, Organization), registry_modules::read_version)
                .says("Shows a version.").only_in_taco(),
            patch("/api/v2/organizations/{organization}/registry-modules/{registry}/{namespace}/{module_name}/{module_provider}/{version}", Right(A::ManageModules, Organization), registry_modules::update_version)
                .says("Deprecates a version with a reason and a link, or takes that back.").body(sample::DEPRECATION),
            delete("/api/v2/organizations/{organization}/registry-modules/{registry}/{namespace}/{module_name}/{module_provider}/{version}", Right(A::ManageModules, Organization), registry_modules::delete_version)
                .says("Deletes a version; with its last version a module is deleted, too."),
            get("/api/v2/registry-modules/{module}", Right(A::DownloadModules, Organization), registry_modules::read)
                .says("Shows a module, by its id."),
            post("/api/v2/registry-modules/{organization}/{module_name}/{module_provider}/versions", Right(A::ManageModules, Organization), registry_modules::create_version)
                .says("Announces a version, at an older address.").body(sample::VERSION),
            post("/api/v2/registry-modules/actions/delete/{organization}/{module_name}", Right(A::ManageModules, Organization), registry_modules::delete)
                .says("Deletes the modules of a name, at an older address."),
            post("/api/v2/registry-modules/actions/delete/{organization}/{module_name}/{module_provider}", Right(A::ManageModules, Organization), registry_modules::delete)
                .says("Deletes a module, at an older address."),
            post("/api/v2/registry-modules/actions/delete/{organization}/{module_name}/{module_provider}/{version}", Right(A::ManageModules, Organization), registry_modules::delete_version)
                .says("Deletes a version, at an older address."),
            get("/api/registry/v1/modules/{namespace}/{module_name}/{module_provider}/versions", Right(A::DownloadModules, Organization), module_protocol::versions)
                .says("Lists the versions of a module, for terraform and tofu."),
            get("/api/registry/v1/modules/{namespace}/{module_name}/{module_provider}/download", Right(A::DownloadModules, Organization), module_protocol::download)
                .says("Tells in `X-Terraform-Get` where the latest version of a module is."),
            get("/api/registry/v1/modules/{namespace}/{module_name}/{module_provider}", Right(A::DownloadModules, Organization), module_protocol::details)
                .says("Shows the latest version of a module with its README, inputs and outputs."),
            get("/api/registry/v1/modules/{namespace}/{module_name}/{module_provider}/{version}", Right(A::DownloadModules, Organization), module_protocol::details)
                .says("Shows a version of a module with its README, inputs and outputs."),
            get("/api/registry/v1/modules/{namespace}/{module_name}/{module_provider}/{version}/download", Right(A::DownloadModules, Organization), module_protocol::download)
                .says("Tells in `X-Terraform-Get` where a version of a module is."),
            open(PUT, "/signed/object/module/{module_version}/{pass}", SignedAddress, registry_files::upload_module)
                .says("Takes the archive of a module version.").differs(SIGNED),
            open(GET, "/signed/object/module/{module_version}/{pass}/archive.tar.gz", SignedAddress, registry_files::download_module)
                .says("Sends the archive of a module version.").differs(SIGNED),
        ]),
        group("Providers of the private registry", Some("private-registry/providers"), vec![
            get("/api/v2/organizations/{organization}/registry-providers", Right(A::DownloadModules, Organization), registry_providers::list)
                .says("Lists an organization's providers by name. `q` is a part of an address."),
            post("/api/v2/organizations/{organization}/registry-providers", Right(A::ManageProviders, Organization), registry_providers::create)
                .says("Creates a provider, without versions.").body(sample::PROVIDER),
            get("/api/v2/organizations/{organization}/registry-providers/{registry}/{namespace}/{provider_name}", Right(A::DownloadModules, Organization), registry_providers::read)
                .says("Shows a provider, by its address."),
            delete("/api/v2/organizations/{organization}/registry-providers/{registry}/{namespace}/{provider_name}", Right(A::ManageProviders, Organization), registry_providers::delete)
                .says("Deletes a provider with its versions."),
            get("/api/v2/registry-providers/{provider}", Right(A::DownloadModules, Organization), registry_providers::read)
                .says("Shows a provider, by its id."),
            get("/api/v2/organizations/{organization}/registry-providers/{registry}/{namespace}/{provider_name}/versions", Right(A::DownloadModules, Organization), provider_versions::list)
                .says("Lists the versions of a provider, newest first."),
            post("/api/v2/organizations/{organization}/registry-providers/{registry}/{namespace}/{provider_name}/versions", Right(A::ManageProviders, Organization), provider_versions::create)
                .says("Announces a version. Its links are the addresses to which SHA256SUMS and its signature are sent.").body(sample::PROVIDER_VERSION),
            get("/api/v2/organizations/{organization}/registry-providers/{registry}/{namespace}/{provider_name}/versions/{version}", Right(A::DownloadModules, Organization), provider_versions::read)
                .says("Shows a version of a provider."),
            delete("/api/v2/organizations/{organization}/registry-providers/{registry}/{namespace}/{provider_name}/versions/{version}", Right(A::ManageProviders, Organization), provider_versions::delete)
                .says("Deletes a version of a provider with its platforms."),
            get("/api/v2/organizations/{organization}/registry-providers/{registry}/{namespace}/{provider_name}/versions/{version}/platforms", Right(A::DownloadModules, Organization), provider_platforms::list)
                .says("Lists the platforms of a version."),
            post("/api/v2/organizations/{organization}/registry-providers/{registry}/{namespace}/{provider_name}/versions/{version}/platforms", Right(A::ManageProviders, Organization), provider_platforms::create)
                .says("Announces a platform. Its link is the address to which the archive is sent.").body(sample::PROVIDER_PLATFORM),
            get("/api/v2/organizations/{organization}/registry-providers/{registry}/{namespace}/{provider_name}/versions/{version}/platforms/{os}/{arch}", Right(A::DownloadModules, Organization), provider_platforms::read)
                .says("Shows a platform."),
            delete("/api/v2/organizations/{organization}/registry-providers/{registry}/{namespace}/{provider_name}/versions/{version}/platforms/{os}/{arch}", Right(A::ManageProviders, Organization), provider_platforms::delete)
                .says("Deletes a platform."),
            get("/api/registry/v1/providers/{namespace}/{provider_name}/versions", Right(A::DownloadModules, Organization), provider_protocol::versions)
                .says("Lists the versions of a provider, for terraform and tofu."),
            get("/api/registry/v1/providers/{namespace}/{provider_name}/{version}/download/{os}/{arch}", Right(A::DownloadModules, Organization), provider_protocol::download)
                .says("Tells where the archive for a platform is, with its checksums and who signed them."),
            open(PUT, "/signed/object/checksums/{provider_version}/{pass}", SignedAddress, registry_files::upload_checksums)
                .says("Takes SHA256SUMS of a provider version.").differs(SIGNED),
            open(GET, "/signed/object/checksums/{provider_version}/{pass}", SignedAddress, registry_files::download_checksums)
                .says("Sends SHA256SUMS of a provider version.").differs(SIGNED),
            open(PUT, "/signed/object/signature/{provider_version}/{pass}", SignedAddress, registry_files::upload_signature)
                .says("Takes the signature of SHA256SUMS.").differs(SIGNED),
            open(GET, "/signed/object/signature/{provider_version}/{pass}", SignedAddress, registry_files::download_signature)
                .says("Sends the signature of SHA256SUMS.").differs(SIGNED),
            open(PUT, "/signed/object/provider/{provider_platform}/{pass}", SignedAddress, registry_files::upload_provider)
                .says("Takes the archive of a platform.").differs(SIGNED),
            open(GET, "/signed/object/provider/{provider_platform}/{pass}", SignedAddress, registry_files::download_provider)
                .says("Sends the archive of a platform.").differs(SIGNED),
            get("/api/registry/private/v2/gpg-keys", Right(A::DownloadModules, Organization), gpg_keys::list)
                .says("Lists the GPG keys of organizations whose providers they sign.").query("filter[namespace]={organization}"),
            post("/api/registry/private/v2/gpg-keys", Right(A::ManageProviders, Organization), gpg_keys::create)
                .says("Adds the public GPG key of someone who signs providers.").body(sample::GPG_KEY),
            get("/api/registry/private/v2/gpg-keys/{namespace}/{key_id}", Right(A::DownloadModules, Organization), gpg_keys::read)
                .says("Shows a GPG key."),
            patch("/api/registry/private/v2/gpg-keys/{namespace}/{key_id}", Right(A::ManageProviders, Organization), gpg_keys::update)
                .says("Moves a GPG key to another organization.").body(sample::MOVED_KEY),
            delete("/api/registry/private/v2/gpg-keys/{namespace}/{key_id}", Right(A::ManageProviders, Organization), gpg_keys::delete)
                .says("Deletes a GPG key that has signed nothing which is still there."),
        ]),
        group("Notifications", Some("notification-configurations"), vec![
            get("/api/v2/workspaces/{workspace}/notification-configurations", Right(A::ManageNotifications, Workspace), notification_configurations::list_of_workspace)
                .says("Lists a workspace's notification configurations."),
            post("/api/v2/workspaces/{workspace}/notification-configurations", Right(A::ManageNotifications, Workspace), notification_configurations::create_in_workspace)
                .says("Creates a notification configuration; one that is enabled has to answer a verification.").body(sample::NOTIFICATION),
            get("/api/v2/projects/{project}/notification-configurations", Right(A::ManageNotifications, Project), notification_configurations::list_of_project)
                .says("Lists a project's notification configurations."),
            post("/api/v2/projects/{project}/notification-configurations", Right(A::ManageNotifications, Project), notification_configurations::create_in_project)
                .says("Creates a notification configuration for all workspaces of a project.").body(sample::NOTIFICATION),
            get("/api/v2/teams/{team}/notification-configurations", Right(A::ManageTeams, Organization), notification_configurations::list_of_team)
                .says("Lists a team's notification configurations."),
            post("/api/v2/teams/{team}/notification-configurations", Right(A::ManageTeams, Organization), notification_configurations::create_in_team)
                .says("Creates a notification configuration of a team.").body(sample::NOTIFICATION),
            get("/api/v2/notification-configurations/{notification}", Depends(NOTIFICATIONS), notification_configurations::read)
                .says("Shows a notification configuration, without its token."),
            patch("/api/v2/notification-configurations/{notification}", Depends(NOTIFICATIONS), notification_configurations::update)
                .says("Changes a notification configuration; one that is disabled forgets what waits for it.").body(sample::RENAMED),
            delete("/api/v2/notification-configurations/{notification}", Depends(NOTIFICATIONS), notification_configurations::delete)
                .says("Deletes a notification configuration."),
            post("/api/v2/notification-configurations/{notification}/actions/verify", Depends(NOTIFICATIONS), notification_configurations::verify)
                .says("Sends a verification; 422 says what was answered instead of 200 to 299."),
        ]),
        group("Run tasks", Some("run-tasks/run-tasks"), vec![
            get("/api/v2/organizations/{organization}/tasks", Right(A::ReadDirectory, Organization), run_tasks::list)
                .says("Lists an organization's run tasks by name, without their keys."),
            post("/api/v2/organizations/{organization}/tasks", Right(A::ManageRunTasks, Organization), run_tasks::create)
                .says("Creates a run task; one that is enabled has to answer a test request with 200.").body(sample::RUN_TASK),
            get("/api/v2/tasks/{task}", Right(A::ReadDirectory, Organization), run_tasks::read)
                .says("Shows a run task, without its key."),
            patch("/api/v2/tasks/{task}", Right(A::ManageRunTasks, Organization), run_tasks::update)
                .says("Changes a run task.").body(sample::RENAMED),
            delete("/api/v2/tasks/{task}", Right(A::ManageRunTasks, Organization), run_tasks::delete)
                .says("Deletes a run task, also from all workspaces."),
            get("/api/v2/workspaces/{workspace}/tasks", Right(A::ReadRuns, Workspace), workspace_run_tasks::list)
                .says("Lists the run tasks of a workspace."),
            post("/api/v2/workspaces/{workspace}/tasks", Right(A::AttachRunTasks, Workspace), workspace_run_tasks::create)
                .says("Has a run task asked about the runs of a workspace.").body(sample::WORKSPACE_TASK),
            get("/api/v2/workspaces/{workspace}/tasks/{workspace_task}", Right(A::ReadRuns, Workspace), workspace_run_tasks::read)
                .says("Shows a workspace's run task."),
            patch("/api/v2/workspaces/{workspace}/tasks/{workspace_task}", Right(A::AttachRunTasks, Workspace), workspace_run_tasks::update)
                .says("Changes the stages or the enforcement level of a workspace's run task.").body(sample::ENFORCED),
            delete("/api/v2/workspaces/{workspace}/tasks/{workspace_task}", Right(A::AttachRunTasks, Workspace), workspace_run_tasks::delete)
                .says("Removes a run task from a workspace."),
            get("/api/v2/task-stages/{task_stage}", Right(A::ReadRuns, Workspace), task_stages::read)
                .says("Shows a task stage of a run."),
            get("/api/v2/task-results/{task_result}", Right(A::ReadRuns, Workspace), task_results::read)
                .says("Shows what a run task answered."),
            get("/api/v2/task-results/{task_result}/outcomes", Right(A::ReadRuns, Workspace), task_results::outcomes)
                .says("Lists the outcomes that a run task sent with its answer.").only_in_taco(),
            patch("/api/v2/task-results/{task_result}/callback", TaskToken, task_results::answer)
                .says("Takes in the answer of a run task: running, passed or failed. It takes the token of the request that asked.").body(sample::TASK_ANSWER),
        ]),
        group("Walks", None, vec![
            get("/api/v2/organizations/{organization}/walks", Right(A::ReadDirectory, Organization), walks::list)
                .says("Lists an organization's walks, newest first.").only_in_taco(),
            post("/api/v2/organizations/{organization}/walks", Right(A::QueuePlan, Workspace), walks::create)
                .says("Begins a walk: plans, applies or destroys workspaces in the order of the graph. It takes the right to run each of them.").only_in_taco().body(sample::WALK),
            get("/api/v2/walks/{walk}", Right(A::ReadDirectory, Organization), walks::read)
                .says("Shows a walk.").only_in_taco(),
            get("/api/v2/walks/{walk}/nodes", Right(A::ReadDirectory, Organization), walks::nodes)
                .says("Lists the workspaces of a walk in order, each with its state and the reason for it.").only_in_taco(),
            post("/api/v2/walks/{walk}/actions/approve", Right(A::ApplyRun, Workspace), walks::approve)
                .says("Lets plans of a walk be applied: those of the named workspaces, or all that wait.").only_in_taco(),
            post("/api/v2/walks/{walk}/actions/resume", Right(A::QueuePlan, Workspace), walks::resume)
                .says("Tries again what failed, was blocked or canceled in a walk.").only_in_taco(),
            post("/api/v2/walks/{walk}/actions/cancel", Right(A::QueuePlan, Workspace), walks::cancel)
                .says("Stops a walk: its runs are asked to stop, and no more begin.").only_in_taco(),
        ]),
        group("States", Some("state-versions"), vec![
            get("/api/v2/state-versions", Right(A::ReadState, Workspace), state_versions::list)
                .says("Lists a workspace's state versions, by its name.").query(sample::BY_NAME),
            get("/api/v2/workspaces/{workspace}/state-versions", Right(A::ReadState, Workspace), state_versions::list_of_workspace)
                .says("Lists a workspace's state versions, newest first.").only_in_taco(),
            post("/api/v2/workspaces/{workspace}/state-versions", Right(A::WriteState, Workspace), state_versions::create)
                .says("Writes a state, or announces one that is sent to an address in the answer.").body(sample::NEW_STATE),
            patch("/api/v2/workspaces/{workspace}/state-versions", Right(A::WriteState, Workspace), state_versions::restore)
                .says("Writes the content of an older state version again.").body(sample::ROLLBACK),
            get("/api/v2/workspaces/{workspace}/current-state-version", Right(A::ReadState, Workspace), state_versions::current)
                .says("Shows the current state version."),
            get("/api/v2/state-versions/{state_version}", Right(A::ReadState, Workspace), state_versions::read)
                .says("Shows a state version."),
            get("/api/v2/state-versions/{state_version}/download", Right(A::ReadState, Workspace), state_versions::download)
                .says("Redirects to the address of a state's content."),
            post("/api/v2/state-versions/{state_version}/actions/{action}", Right(A::WriteState, Workspace), state_versions::backing_data)
                .says("Deletes or restores the content of an older state version."),
            get("/api/v2/state-versions/{state_version}/outputs", Right(A::ReadOutputs, Workspace), state_version_outputs::list)
                .says("Lists the outputs of a state version."),
            get("/api/v2/workspaces/{workspace}/current-state-version-outputs", Right(A::ReadOutputs, Workspace), state_version_outputs::current)
                .says("Lists the outputs of the current state, without sensitive values."),
            get("/api/v2/state-version-outputs/{output}", Right(A::ReadOutputs, Workspace), state_version_outputs::read)
                .says("Shows an output with its value."),
            open(GET, "/signed/state/{state_version}/{pass}", SignedAddress, signed_url::download_state)
                .says("Sends a state's content.").differs(SIGNED),
            open(PUT, "/signed/state/{state_version}/{pass}", SignedAddress, signed_url::upload_state)
                .says("Takes a state's content.").differs(SIGNED),
            open(GET, "/signed/json-state/{state_version}/{pass}", SignedAddress, signed_url::download_json_state)
                .says("Sends a state in the engine's own JSON format.").differs(SIGNED),
            open(PUT, "/signed/json-state/{state_version}/{pass}", SignedAddress, signed_url::upload_json_state)
                .says("Takes a state in the engine's own JSON format.").differs(SIGNED),
        ]),
        group("Graph of states", None, vec![
            get("/api/v2/organizations/{organization}/graph", Right(A::ReadOrganization, Organization), graph::read)
                .says("Shows which state uses which outputs of which other, and what is stale.").only_in_taco(),
            get("/api/v2/workspaces/{workspace}/why", Right(A::ReadRuns, Workspace), graph::why)
                .says("Tells why a workspace is as fresh as it is.").only_in_taco(),
            get("/api/v2/workspaces/{workspace}/output-commits", Right(A::ReadOutputs, Workspace), output_commits::list)
                .says("Lists the changes of a workspace's outputs, newest first.").only_in_taco(),
            get("/api/v2/workspaces/{workspace}/output-comparison", Right(A::ReadOutputs, Workspace), output_commits::diff)
                .says("Tells which outputs differ between two output commits.").query("from=0&to=1").only_in_taco(),
            get("/api/v2/workspaces/{workspace}/output-commits/{output_commit}", Right(A::ReadOutputs, Workspace), output_commits::read)
                .says("Shows all outputs as they were after one change; `newest` is the last.").only_in_taco(),
            get("/api/v2/workspaces/{workspace}/dependencies", Right(A::ReadRuns, Workspace), dependencies::list)
                .says("Lists the workspaces whose outputs a workspace uses; with `filter[direction]=downstream` those that use its own.").only_in_taco(),
            post("/api/v2/workspaces/{workspace}/dependencies", Right(A::UpdateWorkspace, Workspace), dependencies::create)
                .says("Declares that a workspace uses outputs of another.").body(sample::DEPENDENCY).only_in_taco(),
            get("/api/v2/dependencies/{dependency}", Right(A::ReadRuns, Workspace), dependencies::read)
                .says("Shows a dependency, and how it is known.").only_in_taco(),
            patch("/api/v2/dependencies/{dependency}", Right(A::UpdateWorkspace, Workspace), dependencies::update)
                .says("Mutes a dependency, lets it count again, or sets what a change of it does.").body(sample::MUTED).only_in_taco(),
            delete("/api/v2/dependencies/{dependency}", Right(A::UpdateWorkspace, Workspace), dependencies::delete)
                .says("Takes back what was declared.").only_in_taco(),
            post("/api/v2/dependencies/{dependency}/actions/acknowledge", Right(A::UpdateWorkspace, Workspace), dependencies::acknowledge)
                .says("Says that a workspace is up to date with a producer as it is now.").body(sample::ACKNOWLEDGED).only_in_taco(),
        ]),
        group("Terraform's `http` backend", None, vec![
            get("/api/http-backend/{organization}/{workspace}", Right(A::ReadState, Workspace), http_backend::read)
                .says("Sends the current state.").or_basic().only_in_taco(),
            route(&["POST", "PUT"], "/api/http-backend/{organization}/{workspace}", Right(A::WriteState, Workspace), http_backend::write)
                .says("Writes a state; `ID` names the lock.").or_basic().body(sample::LOCK_INFO).only_in_taco(),
            route(&["LOCK", "UNLOCK", "POST", "PUT", "DELETE"], "/api/http-backend/{organization}/{workspace}/lock", Right(A::LockWorkspace, Workspace), http_backend::lock)
                .says("Locks or unlocks a workspace.").or_basic().body(sample::LOCK_INFO).only_in_taco(),
        ]),
        group("Policies", Some("policies"), vec![
            get("/api/v2/organizations/{organization}/policies", Right(A::ReadDirectory, Organization), policies::list)
                .says("Lists policies by name."),
            post("/api/v2/organizations/{organization}/policies", Right(A::ManagePolicies, Organization), policies::create)
                .says("Creates a policy; its code is uploaded afterwards.").differs(SENTINEL).body(sample::POLICY),
            get("/api/v2/policies/{policy}", Right(A::ReadDirectory, Organization), policies::read)
                .says("Shows a policy."),
            patch("/api/v2/policies/{policy}", Right(A::ManagePolicies, Organization), policies::update)
                .says("Changes a policy.").body(sample::DESCRIBED),
            delete("/api/v2/policies/{policy}", Right(A::ManagePolicies, Organization), policies::delete)
                .says("Deletes a policy; sets that have it go on without it."),
            route(PUT, "/api/v2/policies/{policy}/upload", Right(A::ManagePolicies, Organization), policies::upload)
                .says("Takes the code of a policy, at most 10 MiB. Rego that does not compile is refused with file and line.").body(sample::REGO),
            get("/api/v2/policies/{policy}/download", Right(A::ReadDirectory, Organization), policies::download)
                .says("Sends the code of a policy."),
            get("/api/v2/organizations/{organization}/policy-sets", Right(A::ReadDirectory, Organization), policy_sets::list)
                .says("Lists policy sets by name."),
            post("/api/v2/organizations/{organization}/policy-sets", Right(A::ManagePolicies, Organization), policy_sets::create)
                .says("Creates a policy set.").differs(SENTINEL).body(sample::POLICY_SET),
            get("/api/v2/policy-sets/{policy_set}", Right(A::ReadDirectory, Organization), policy_sets::read)
                .says("Shows a policy set."),
            patch("/api/v2/policy-sets/{policy_set}", Right(A::ManagePolicies, Organization), policy_sets::update)
                .says("Changes a policy set.").body(sample::DESCRIBED),
            delete("/api/v2/policy-sets/{policy_set}", Right(A::ManagePolicies, Organization), policy_sets::delete)
                .says("Deletes a policy set with its versions and parameters."),
            post("/api/v2/policy-sets/{policy_set}/relationships/policies", Right(A::ManagePolicies, Organization), policy_sets::add)
                .says("Adds policies to a policy set.").body(sample::POLICY_LIST),
            delete("/api/v2/policy-sets/{policy_set}/relationships/policies", Right(A::ManagePolicies, Organization), policy_sets::remove)
                .says("Removes policies from a policy set.").body(sample::POLICY_LIST),
            post("/api/v2/policy-sets/{policy_set}/relationships/workspaces", Right(A::ManagePolicies, Organization), policy_sets::add)
                .says("Adds workspaces to a policy set.").body(sample::WORKSPACE_LIST),
            delete("/api/v2/policy-sets/{policy_set}/relationships/workspaces", Right(A::ManagePolicies, Organization), policy_sets::remove)
                .says("Removes workspaces from a policy set.").body(sample::WORKSPACE_LIST),
            post("/api/v2/policy-sets/{policy_set}/relationships/projects", Right(A::ManagePolicies, Organization), policy_sets::add)
                .says("Adds projects to a policy set.").body(sample::PROJECT_LIST),
            delete("/api/v2/policy-sets/{policy_set}/relationships/projects", Right(A::ManagePolicies, Organization), policy_sets::remove)
                .says("Removes projects from a policy set.").body(sample::PROJECT_LIST),
            post("/api/v2/policy-sets/{policy_set}/relationships/workspace-exclusions", Right(A::ManagePolicies, Organization), policy_sets::add)
                .says("Adds excluded workspaces to a policy set.").body(sample::WORKSPACE_LIST),
            delete("/api/v2/policy-sets/{policy_set}/relationships/workspace-exclusions", Right(A::ManagePolicies, Organization), policy_sets::remove)
                .says("Removes excluded workspaces from a policy set.").body(sample::WORKSPACE_LIST),
            post("/api/v2/policy-sets/{policy_set}/relationships/project-exclusions", Right(A::ManagePolicies, Organization), policy_sets::add)
                .says("Adds excluded projects to a policy set.").body(sample::PROJECT_LIST),
            delete("/api/v2/policy-sets/{policy_set}/relationships/project-exclusions", Right(A::ManagePolicies, Organization), policy_sets::remove)
                .says("Removes excluded projects from a policy set.").body(sample::PROJECT_LIST),
            post("/api/v2/policy-sets/{policy_set}/versions", Right(A::ManagePolicies, Organization), policy_set_versions::create)
                .says("Announces a version of a policy set, and tells where to send its archive."),
            get("/api/v2/policy-set-versions/{policy_set_version}", Right(A::ReadDirectory, Organization), policy_set_versions::read)
                .says("Shows a version of a policy set."),
            open(PUT, "/signed/policy-set/{policy_set_version}/{pass}", SignedAddress, policy_set_versions::upload)
                .says("Takes the archive of a policy set version: `policies.hcl` or `policies.json`, and `*.rego`.").differs(SIGNED),
            get("/api/v2/policy-sets/{policy_set}/parameters", Right(A::ReadDirectory, Organization), policy_parameters::list)
                .says("Lists the parameters of a policy set."),
            post("/api/v2/policy-sets/{policy_set}/parameters", Right(A::ManagePolicies, Organization), policy_parameters::create)
                .says("Creates a parameter: policies see it as `input.parameters`.").body(sample::POLICY_PARAMETER),
            get("/api/v2/policy-sets/{policy_set}/parameters/{policy_parameter}", Right(A::ReadDirectory, Organization), policy_parameters::read)
                .says("Shows a parameter; a sensitive one without its value."),
            patch("/api/v2/policy-sets/{policy_set}/parameters/{policy_parameter}", Right(A::ManagePolicies, Organization), policy_parameters::update)
                .says("Changes a parameter.").body(sample::POLICY_PARAMETER),
            delete("/api/v2/policy-sets/{policy_set}/parameters/{policy_parameter}", Right(A::ManagePolicies, Organization), policy_parameters::delete)
                .says("Deletes a parameter."),
            get("/api/v2/task-stages/{task_stage}/policy-evaluations", Right(A::ReadRuns, Workspace), policy_stages::evaluations)
                .says("Lists the policy evaluations of a task stage."),
            post("/api/v2/task-stages/{task_stage}/actions/override", Right(A::OverridePolicies, Workspace), policy_stages::override_stage)
                .says("Lets a run go on that mandatory policies have stopped."),
            get("/api/v2/policy-evaluations/{policy_evaluation}", Right(A::ReadRuns, Workspace), policy_evaluations::read)
                .says("Shows what policies said about a plan."),
            get("/api/v2/policy-evaluations/{policy_evaluation}/policy-set-outcomes", Right(A::ReadRuns, Workspace), policy_evaluations::outcomes)
                .says("Lists what each policy set said about a plan."),
            get("/api/v2/policy-set-outcomes/{policy_set_outcome}", Right(A::ReadRuns, Workspace), policy_evaluations::outcome)
                .says("Shows what a policy set said about a plan."),
        ]),
        group("Lists that are always empty", None, vec![
            get("/api/v2/workspaces/{workspace}/assessment-results", Right(A::ReadRuns, Workspace), not_implemented::empty_list_of_workspace)
                .says("Lists a workspace's health assessments.").differs(ALWAYS_EMPTY),
        ]),
        group("Site administration", None, vec![
            get("/api/v2/admin/organizations", Right(A::ManageSite, Site), admin::list_organizations)
                .says("Lists all organizations, and in `meta` those that cannot be read.").differs(ENTERPRISE),
            get("/api/v2/admin/feature-sets", Right(A::ManageSite, Site), admin::feature_sets)
                .says("Lists feature sets: there is one.").differs(ENTERPRISE),
            post("/api/v2/admin/organizations/{organization}/subscription", Right(A::ManageSite, Site), admin::subscribe)
                .says("Subscribes an organization to a feature set, which changes nothing.").differs(ENTERPRISE),
            get("/api/v2/admin/users", Right(A::ManageSite, Site), admin_users::list)
                .says("Lists users. `q` is a part of a username or an address.").differs(ENTERPRISE),
            post("/api/v2/admin/users/{user}/actions/suspend", Right(A::ManageSite, Site), admin_users::suspend)
                .says("Suspends a user: their sessions and tokens no longer work.").differs(ENTERPRISE),
            post("/api/v2/admin/users/{user}/actions/unsuspend", Right(A::ManageSite, Site), admin_users::unsuspend)
                .says("Lets a suspended user log in again.").differs(ENTERPRISE),
        ]),
    ]
}
