//! The rows of the table, grouped by what they are about.

use taco_domain::permission::Action as A;

use super::Access::{All, Depends, Public, Right, SignedAddress, User};
use super::Place::{Account, Organization, Project, Site, Workspace};
use super::{Case, Route, get, post, sample};
use crate::{
    account, admin, admin_users, agent_pool, agents, audit_log, bindings, choose_workspace, configuration,
    configurations, consent, dashboard, dependencies, dependency_forms, graph, invitations, login, member, new_run,
    notification_form, notifications, oauth, organization_members, organization_secrets, organization_settings,
    organization_tags, organizations, output, output_history, password_link, projects, registry, registry_module,
    registry_provider, retention, run, runs, search, sessions, state, state_diff, state_resource, state_restore,
    state_upload, states, team, team_access, team_tokens, teams, theme, tokens, variable_form, variable_import,
    variable_set, variable_sets, variables, walks, workspace, workspace_control, workspace_general, workspace_lock,
    workspace_settings, workspace_sharing, workspaces,
};

/// What a state's data may go through.
const STATE_STEPS: &[Case] = &[
    Case { named: "delete", rights: &[(A::WriteState, Workspace)] },
    Case { named: "bring-back", rights: &[(A::WriteState, Workspace)] },
    Case { named: "delete-for-good", rights: &[(A::DeleteStateForGood, Workspace)] },
];
const RUN_DECISIONS: &[Case] = &[
    Case { named: "confirm", rights: &[(A::ApplyRun, Workspace)] },
    Case { named: "discard", rights: &[(A::ApplyRun, Workspace)] },
    Case { named: "cancel", rights: &[(A::ApplyRun, Workspace)] },
    Case { named: "force-cancel", rights: &[(A::ForceCancelRun, Workspace)] },
    Case { named: "force-execute", rights: &[(A::ForceCancelRun, Workspace)] },
];
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
/// Whoever gives a team access has to know of it.
const TEAM_IN_PROJECT: &[Case] = &[Case { named: "visible team", rights: &[(A::ManageProjectTeams, Project)] }];
const TEAM_IN_WORKSPACE: &[Case] = &[Case { named: "visible team", rights: &[(A::ManageWorkspaceTeams, Workspace)] }];
const TEAM_RIGHTS: &[(A, super::Place)] =
    &[(A::ManageTeams, Organization), (A::ManageOrganizationAccess, Organization)];
const PLAN_FILES: &[Case] = &[
    Case { named: "redacted", rights: &[(A::ReadRuns, Workspace)] },
    Case { named: "whole", rights: &[(A::ReadWholePlan, Workspace)] },
];

#[rustfmt::skip]
pub(super) fn groups() -> Vec<Vec<Route>> {
    vec![
        // Logging in, and the login of programs.
        vec![
            get("/", Public, organizations::home),
            get("/login", Public, login::show),
            post("/login", Public, login::log_in).form(sample::LOGIN),
            post("/logout", User, login::log_out),
            post("/theme", Public, theme::choose).form(sample::THEME),
            get("/setup/{secret}", SignedAddress, password_link::show),
            post("/setup/{secret}", SignedAddress, password_link::set_password).form(sample::NEW_PASSWORD),
            get("/oauth/authorize", User, consent::show).query(sample::CONSENT_QUERY),
            post("/oauth/authorize", User, consent::decide).form(sample::CONSENT),
            post("/oauth/token", Public, oauth::token),
        ],
        // A person's own account.
        vec![
            get("/app/settings/account", User, account::show),
            post("/app/settings/account", User, account::update).form(sample::PROFILE),
            post("/app/settings/account/password", User, account::change_password).form(sample::PASSWORDS),
            get("/app/settings/tokens", User, tokens::list),
            post("/app/settings/tokens", User, tokens::create).form(sample::NEW_TOKEN),
            post("/app/settings/tokens/{token_id}/revoke", Right(A::UpdateAccount, Account), tokens::revoke),
            get("/app/settings/sessions", User, sessions::list),
            post("/app/settings/sessions/close-others", User, sessions::close_others),
            post("/app/settings/sessions/{session}/revoke", Right(A::UpdateAccount, Account), sessions::revoke),
            get("/app/settings/invitations/{invitation}", User, invitations::show),
            post("/app/settings/invitations/{invitation}/accept", User, invitations::accept),
            post("/app/settings/invitations/{invitation}/decline", User, invitations::decline),
        ],
        // The site.
        vec![
            get("/app/admin", Right(A::ManageSite, Site), admin::show),
            get("/app/admin/users", Right(A::ManageSite, Site), admin_users::list),
            post("/app/admin/users", Right(A::ManageSite, Site), admin_users::create).form(sample::NEW_USER),
            post("/app/admin/users/{user}/suspend", Right(A::ManageSite, Site), admin_users::suspend),
            post("/app/admin/users/{user}/resume", Right(A::ManageSite, Site), admin_users::resume),
            post("/app/admin/users/{user}/password-link", Right(A::ManageSite, Site), admin_users::renew_link),
            post("/app/admin/users/{user}/verify-email", Right(A::ManageSite, Site), admin_users::verify_email),
            get("/app/admin/audit", Right(A::ManageSite, Site), audit_log::of_site),
            get("/app/admin/audit/export.csv", Right(A::ManageSite, Site), audit_log::site_csv),
            get("/app/admin/audit/export.jsonl", Right(A::ManageSite, Site), audit_log::site_json),
        ],
        // Organizations and their settings.
        vec![
            get("/app", User, organizations::start),
            get("/app/organizations", User, organizations::list),
            post("/app/organizations", Right(A::CreateOrganization, Site), organizations::create).form(sample::NEW_ORGANIZATION),
            get("/app/{organization}", Right(A::ReadOrganization, Organization), dashboard::show),
            get("/app/organizations/search", User, search::everywhere).query("q=a"),
            get("/app/{organization}/search", Right(A::ReadOrganization, Organization), search::in_organization).query("q=a"),
            get("/app/{organization}/queue", Right(A::ReadOrganization, Organization), dashboard::queue),
            get("/app/{organization}/settings", Right(A::ReadDirectory, Organization), organization_settings::show),
            post("/app/{organization}/settings", Right(A::UpdateOrganization, Organization), organization_settings::save).form(sample::ORGANIZATION),
            post("/app/{organization}/settings/delete", Right(A::DeleteOrganization, Organization), organization_settings::delete).form(sample::DELETE_ORGANIZATION),
            get("/app/{organization}/settings/audit", Right(A::ReadAuditTrail, Organization), audit_log::of_organization),
            get("/app/{organization}/settings/audit/export.csv", Right(A::ReadAuditTrail, Organization), audit_log::organization_csv),
            get("/app/{organization}/settings/audit/export.jsonl", Right(A::ReadAuditTrail, Organization), audit_log::organization_json),
            get("/app/{organization}/settings/tokens", Right(A::ReadDirectory, Organization), organization_settings::show_tokens),
            get("/app/{organization}/settings/ssh-keys", Right(A::ReadDirectory, Organization), organization_settings::show_keys),
            get("/app/{organization}/settings/tags", Right(A::ReadOrganization, Organization), organization_tags::list),
            post("/app/{organization}/settings/tags/delete", Right(A::UpdateWorkspace, Workspace), organization_tags::delete).form(sample::TAG),
            get("/app/{organization}/settings/retention", Right(A::ReadDirectory, Organization), retention::show_of_organization),
            post("/app/{organization}/settings/retention", Right(A::UpdateOrganization, Organization), retention::save_of_organization).form(sample::RETENTION),
            get("/app/{organization}/settings/members", Right(A::ReadDirectory, Organization), organization_members::list),
            post("/app/{organization}/settings/members", Right(A::ManageMembership, Organization), organization_members::invite).form(sample::NEW_MEMBER),
            post("/app/{organization}/settings/members/{member}/remove", Right(A::ManageMembership, Organization), organization_members::remove),
            post("/app/{organization}/settings/members/{member}/link", Right(A::ManageMembership, Organization), organization_members::renew_link),
            get("/app/{organization}/settings/members/{member}", Right(A::ReadDirectory, Organization), member::show),
            post("/app/{organization}/settings/members/{member}/teams", Right(A::ManageMembership, Organization), member::set_teams).form(sample::TEAM),
            get("/app/{organization}/settings/teams", Right(A::ReadDirectory, Organization), teams::list),
            post("/app/{organization}/settings/teams", Right(A::ManageTeams, Organization), teams::create).form(sample::NAMED),
            get("/app/{organization}/settings/teams/new", Right(A::ReadDirectory, Organization), teams::show_new),
            get("/app/{organization}/settings/teams/{team}", Depends(TEAM_READ), team::show),
            post("/app/{organization}/settings/teams/{team}", Right(A::ManageTeams, Organization), team::update).form(sample::NAMED),
            post("/app/{organization}/settings/teams/{team}/rights", All(TEAM_RIGHTS), team::update_rights).form(sample::TEAM_RIGHTS),
            post("/app/{organization}/settings/teams/{team}/members", Depends(TEAM_MEMBERS), team::add_member).form(sample::TEAM_MEMBER),
            post("/app/{organization}/settings/teams/{team}/members/remove", Depends(TEAM_MEMBERS), team::remove_member).form(sample::TEAM_MEMBER),
            post("/app/{organization}/settings/teams/{team}/projects", Depends(TEAM_IN_PROJECT), team_access::add_project).form(sample::TEAM_PROJECT),
            post("/app/{organization}/settings/teams/{team}/projects/{team_project}", Right(A::ManageProjectTeams, Project), team_access::change_project).form(sample::TEAM_PROJECT),
            post("/app/{organization}/settings/teams/{team}/projects/{team_project}/remove", Right(A::ManageProjectTeams, Project), team_access::remove_project),
            post("/app/{organization}/settings/teams/{team}/workspaces", Depends(TEAM_IN_WORKSPACE), team_access::add_workspace).form(sample::TEAM_WORKSPACE),
            post("/app/{organization}/settings/teams/{team}/workspaces/{team_workspace}", Right(A::ManageWorkspaceTeams, Workspace), team_access::change_workspace).form(sample::TEAM_WORKSPACE),
            post("/app/{organization}/settings/teams/{team}/workspaces/{team_workspace}/remove", Right(A::ManageWorkspaceTeams, Workspace), team_access::remove_workspace),
            post("/app/{organization}/settings/teams/{team}/tokens", Depends(TEAM_TOKENS), team_tokens::create).form(sample::NEW_TOKEN),
            post("/app/{organization}/settings/teams/{team}/tokens/{team_token}/revoke", Right(A::ManageTeams, Organization), team_tokens::revoke),
            post("/app/{organization}/settings/teams/{team}/delete", Right(A::ManageTeams, Organization), team::delete),
            post("/app/{organization}/settings/tokens/{kind}", Right(A::ManageOrganizationToken, Organization), organization_secrets::make_token).form(sample::NEW_TOKEN),
            post("/app/{organization}/settings/tokens/{kind}/revoke", Right(A::ManageOrganizationToken, Organization), organization_secrets::revoke_token),
            post("/app/{organization}/settings/ssh-keys", Right(A::ManageVcsSettings, Organization), organization_secrets::add_key).form(sample::NEW_KEY),
            post("/app/{organization}/settings/ssh-keys/{key}", Right(A::ManageVcsSettings, Organization), organization_secrets::rename_key).form(sample::NAMED),
            post("/app/{organization}/settings/ssh-keys/{key}/delete", Right(A::ManageVcsSettings, Organization), organization_secrets::delete_key),
        ],
        // Agents.
        vec![
            get("/app/{organization}/walks", Right(A::ReadDirectory, Organization), walks::list),
            post("/app/{organization}/walks", Right(A::ReadDirectory, Organization), walks::create).form(sample::WALK),
            get("/app/{organization}/walks/{walk}", Right(A::ReadDirectory, Organization), walks::show),
            post("/app/{organization}/walks/{walk}/approve", Right(A::ApplyRun, Workspace), walks::approve),
            post("/app/{organization}/walks/{walk}/resume", Right(A::QueuePlan, Workspace), walks::resume),
            post("/app/{organization}/walks/{walk}/cancel", Right(A::QueuePlan, Workspace), walks::cancel),
            get("/app/{organization}/registry", Right(A::DownloadModules, Organization), registry::modules),
            get("/app/{organization}/registry/providers", Right(A::DownloadModules, Organization), registry::providers),
            get("/app/{organization}/registry/providers/{provider}", Right(A::DownloadModules, Organization), registry_provider::show),
            get("/app/{organization}/registry/modules/{module}", Right(A::DownloadModules, Organization), registry_module::show),
            post("/app/{organization}/registry/modules/{module}", Right(A::ManageModules, Organization), registry_module::deprecate).form(sample::DEPRECATION),
            post("/app/{organization}/registry/modules/{module}/versions/{version}/delete", Right(A::ManageModules, Organization), registry_module::delete_version),
            get("/app/{organization}/agents", Right(A::ReadDirectory, Organization), agents::list),
            post("/app/{organization}/agents", Right(A::ManageAgentPools, Organization), agents::create).form(sample::NAMED),
            get("/app/{organization}/agents/pools/{pool}", Right(A::ReadDirectory, Organization), agent_pool::show),
            post("/app/{organization}/agents/pools/{pool}", Right(A::ManageAgentPools, Organization), agent_pool::update).form(sample::NAMED),
            post("/app/{organization}/agents/pools/{pool}/delete", Right(A::ManageAgentPools, Organization), agent_pool::delete).form(sample::DELETE_POOL),
            post("/app/{organization}/agents/pools/{pool}/tokens", Right(A::ManageAgentPools, Organization), agent_pool::create_token).form(sample::NEW_TOKEN),
            post("/app/{organization}/agents/pools/{pool}/tokens/{token}/revoke", Right(A::ManageAgentPools, Organization), agent_pool::revoke_token),
        ],
        // Projects.
        vec![
            get("/app/{organization}/projects", Right(A::ReadOrganization, Organization), projects::list),
            post("/app/{organization}/projects", Right(A::CreateProject, Organization), projects::create).form(sample::NAMED),
            get("/app/{organization}/projects/{project}", Right(A::ReadProject, Project), projects::show),
            post("/app/{organization}/projects/{project}", Right(A::UpdateProject, Project), projects::update).form(sample::NAMED),
            post("/app/{organization}/projects/{project}/delete", Right(A::DeleteProject, Project), projects::delete),
        ],
        // Workspaces and their settings. What CLIs print has a shorter address.
        vec![
            get("/app/{organization}/workspaces", Right(A::ReadOrganization, Organization), workspaces::list),
            post("/app/{organization}/workspaces", Right(A::CreateWorkspace, Project), workspaces::create).form(sample::NEW_WORKSPACE),
            get("/app/{organization}/{workspace}", Right(A::ReadWorkspace, Workspace), workspace::redirect),
            get("/app/{organization}/workspaces/{workspace}", Right(A::ReadWorkspace, Workspace), workspace::show),
            post("/app/{organization}/workspaces/{workspace}/lock", Right(A::LockWorkspace, Workspace), workspace_lock::lock),
            post("/app/{organization}/workspaces/{workspace}/unlock", Right(A::LockWorkspace, Workspace), workspace_lock::unlock),
            post("/app/{organization}/workspaces/{workspace}/force-unlock", Right(A::ForceUnlockWorkspace, Workspace), workspace_lock::force_unlock),
            get("/app/{organization}/workspaces/{workspace}/settings", Right(A::ReadWorkspace, Workspace), workspace_settings::show),
            get("/app/{organization}/workspaces/{workspace}/settings/execution", Right(A::ReadWorkspace, Workspace), workspace_settings::show_execution),
            get("/app/{organization}/workspaces/{workspace}/settings/locking", Right(A::ReadWorkspace, Workspace), workspace_settings::show_locking),
            get("/app/{organization}/workspaces/{workspace}/settings/sharing", Right(A::ReadWorkspace, Workspace), workspace_settings::show_sharing),
            get("/app/{organization}/workspaces/{workspace}/settings/triggers", Right(A::ReadWorkspace, Workspace), workspace_settings::show_triggers),
            get("/app/{organization}/workspaces/{workspace}/settings/teams", Right(A::ReadWorkspace, Workspace), workspace_settings::show_teams),
            get("/app/{organization}/workspaces/{workspace}/settings/delete", Right(A::ReadWorkspace, Workspace), workspace_settings::show_deletion),
            get("/app/{organization}/workspaces/{workspace}/settings/retention", Right(A::ReadWorkspace, Workspace), retention::show_of_workspace),
            post("/app/{organization}/workspaces/{workspace}/settings/retention", Right(A::DeleteStateForGood, Workspace), retention::save_of_workspace).form(sample::RETENTION),
            post("/app/{organization}/workspaces/{workspace}/settings/general", Right(A::UpdateWorkspace, Workspace), workspace_general::save_general).form(sample::NAMED),
            post("/app/{organization}/workspaces/{workspace}/settings/execution", Right(A::UpdateWorkspace, Workspace), workspace_general::save_execution).form(sample::EXECUTION),
            post("/app/{organization}/workspaces/{workspace}/settings/sharing", Right(A::UpdateWorkspace, Workspace), workspace_sharing::save_sharing),
            post("/app/{organization}/workspaces/{workspace}/settings/consumers", Right(A::UpdateWorkspace, Workspace), workspace_sharing::add_consumer).form(sample::SOURCE),
            post("/app/{organization}/workspaces/{workspace}/settings/consumers/remove", Right(A::UpdateWorkspace, Workspace), workspace_sharing::remove_consumer).form(sample::SOURCE),
            post("/app/{organization}/workspaces/{workspace}/settings/triggers", Right(A::UpdateWorkspace, Workspace), workspace_sharing::add_trigger).form(sample::SOURCE),
            post("/app/{organization}/workspaces/{workspace}/settings/triggers/{trigger}/delete", Right(A::UpdateWorkspace, Workspace), workspace_sharing::remove_trigger),
            post("/app/{organization}/workspaces/{workspace}/settings/ssh-key", Right(A::UpdateWorkspace, Workspace), workspace_sharing::choose_key).form(sample::KEY),
            post("/app/{organization}/workspaces/{workspace}/settings/teams", Right(A::ManageWorkspaceTeams, Workspace), workspace_control::add_team).form(sample::TEAM),
            post("/app/{organization}/workspaces/{workspace}/settings/teams/{access}", Right(A::ManageWorkspaceTeams, Workspace), workspace_control::change_team).form(sample::TEAM),
            post("/app/{organization}/workspaces/{workspace}/settings/teams/{access}/remove", Right(A::ManageWorkspaceTeams, Workspace), workspace_control::remove_team),
            post("/app/{organization}/workspaces/{workspace}/settings/delete", Right(A::DeleteWorkspace, Workspace), workspace_control::delete).form(sample::DELETE_WORKSPACE),
        ],
        // Notifications of workspaces, projects and teams.
        vec![
            get("/app/{organization}/workspaces/{workspace}/settings/notifications", Right(A::ManageNotifications, Workspace), notifications::list),
            post("/app/{organization}/workspaces/{workspace}/settings/notifications", Right(A::ManageNotifications, Workspace), notification_form::create).form(sample::NOTIFICATION),
            get("/app/{organization}/workspaces/{workspace}/settings/notifications/new", Right(A::ManageNotifications, Workspace), notification_form::show_new),
            get("/app/{organization}/workspaces/{workspace}/settings/notifications/{notification}", Right(A::ManageNotifications, Workspace), notification_form::show),
            post("/app/{organization}/workspaces/{workspace}/settings/notifications/{notification}", Right(A::ManageNotifications, Workspace), notification_form::update).form(sample::NOTIFICATION),
            post("/app/{organization}/workspaces/{workspace}/settings/notifications/{notification}/test", Right(A::ManageNotifications, Workspace), notifications::test),
            post("/app/{organization}/workspaces/{workspace}/settings/notifications/{notification}/delete", Right(A::ManageNotifications, Workspace), notifications::delete),
            get("/app/{organization}/projects/{project}/notifications", Right(A::ManageNotifications, Project), notifications::list),
            post("/app/{organization}/projects/{project}/notifications", Right(A::ManageNotifications, Project), notification_form::create).form(sample::NOTIFICATION),
            get("/app/{organization}/projects/{project}/notifications/new", Right(A::ManageNotifications, Project), notification_form::show_new),
            get("/app/{organization}/projects/{project}/notifications/{notification}", Right(A::ManageNotifications, Project), notification_form::show),
            post("/app/{organization}/projects/{project}/notifications/{notification}", Right(A::ManageNotifications, Project), notification_form::update).form(sample::NOTIFICATION),
            post("/app/{organization}/projects/{project}/notifications/{notification}/test", Right(A::ManageNotifications, Project), notifications::test),
            post("/app/{organization}/projects/{project}/notifications/{notification}/delete", Right(A::ManageNotifications, Project), notifications::delete),
            get("/app/{organization}/settings/teams/{team}/notifications", Right(A::ManageTeams, Organization), notifications::list),
            post("/app/{organization}/settings/teams/{team}/notifications", Right(A::ManageTeams, Organization), notification_form::create).form(sample::NOTIFICATION),
            get("/app/{organization}/settings/teams/{team}/notifications/new", Right(A::ManageTeams, Organization), notification_form::show_new),
            get("/app/{organization}/settings/teams/{team}/notifications/{notification}", Right(A::ManageTeams, Organization), notification_form::show),
            post("/app/{organization}/settings/teams/{team}/notifications/{notification}", Right(A::ManageTeams, Organization), notification_form::update).form(sample::NOTIFICATION),
            post("/app/{organization}/settings/teams/{team}/notifications/{notification}/test", Right(A::ManageTeams, Organization), notifications::test),
            post("/app/{organization}/settings/teams/{team}/notifications/{notification}/delete", Right(A::ManageTeams, Organization), notifications::delete),
        ],
        // States and configurations.
        vec![
            get("/app/{organization}/workspaces/{workspace}/states", Right(A::ReadState, Workspace), states::list),
            post("/app/{organization}/workspaces/{workspace}/states", Right(A::WriteState, Workspace), state_upload::upload)
                .form(sample::NEW_STATE).body_limit(state_upload::MAX_FORM_BYTES),
            get("/app/{organization}/workspaces/{workspace}/states/{state}", Right(A::ReadState, Workspace), state::show),
            get("/app/{organization}/workspaces/{workspace}/states/{state}/diff", Right(A::ReadState, Workspace), state_diff::show),
            get("/app/{organization}/workspaces/{workspace}/states/{state}/download", Right(A::ReadState, Workspace), state::download),
            post("/app/{organization}/workspaces/{workspace}/states/{state}/restore", Right(A::WriteState, Workspace), state_restore::restore),
            get("/app/{organization}/workspaces/{workspace}/states/{state}/restore", Right(A::ReadState, Workspace), state_restore::show),
            get("/app/{organization}/workspaces/{workspace}/states/{state}/resources", Right(A::ReadState, Workspace), state_resource::show).query(sample::RESOURCE),
            post("/app/{organization}/workspaces/{workspace}/states/{state}/data/{step}", Depends(STATE_STEPS), state::change_data),
            post("/app/{organization}/workspaces/{workspace}/outputs/{output}/reveal", Right(A::ReadState, Workspace), output::reveal),
            get("/app/{organization}/workspaces/{workspace}/configurations", Right(A::ReadRuns, Workspace), configurations::list),
            get("/app/{organization}/workspaces/{workspace}/configurations/{configuration}", Right(A::QueuePlan, Workspace), configuration::download),
            post("/app/{organization}/workspaces/{workspace}/configurations/{configuration}/{step}", Right(A::ApplyRun, Workspace), configurations::change),
        ],
        // The graph of states.
        vec![
            get("/app/{organization}/graph", Right(A::ReadOrganization, Organization), graph::show),
            get("/app/{organization}/workspaces/{workspace}/dependencies", Right(A::ReadRuns, Workspace), dependencies::show),
            post("/app/{organization}/workspaces/{workspace}/dependencies", Right(A::UpdateWorkspace, Workspace), dependency_forms::declare).form(sample::DEPENDENCY),
            post("/app/{organization}/workspaces/{workspace}/dependencies/{dependency}/policy", Right(A::UpdateWorkspace, Workspace), dependency_forms::set_policy).form(sample::POLICY),
            post("/app/{organization}/workspaces/{workspace}/dependencies/{dependency}/mute", Right(A::UpdateWorkspace, Workspace), dependency_forms::mute),
            post("/app/{organization}/workspaces/{workspace}/dependencies/{dependency}/unmute", Right(A::UpdateWorkspace, Workspace), dependency_forms::unmute),
            post("/app/{organization}/workspaces/{workspace}/dependencies/{dependency}/acknowledge", Right(A::UpdateWorkspace, Workspace), dependency_forms::acknowledge),
            post("/app/{organization}/workspaces/{workspace}/dependencies/{dependency}/trigger", Right(A::UpdateWorkspace, Workspace), dependency_forms::trigger),
            post("/app/{organization}/workspaces/{workspace}/dependencies/{dependency}/remove", Right(A::UpdateWorkspace, Workspace), dependency_forms::remove),
            get("/app/{organization}/workspaces/{workspace}/outputs/history", Right(A::ReadOutputs, Workspace), output_history::show),
        ],
        // Runs.
        vec![
            get("/app/{organization}/runs", Right(A::ReadOrganization, Organization), runs::of_organization),
            get("/app/{organization}/runs/new", Right(A::ReadOrganization, Organization), choose_workspace::show),
            get("/app/{organization}/workspaces/{workspace}/runs", Right(A::ReadRuns, Workspace), runs::of_workspace),
            get("/app/{organization}/workspaces/{workspace}/runs/new", Right(A::ReadRuns, Workspace), new_run::show),
            post("/app/{organization}/workspaces/{workspace}/runs/new", Right(A::QueuePlan, Workspace), new_run::start).form(sample::NEW_RUN),
            // It only spells the address in full: nothing is looked up.
            get("/app/{organization}/{workspace}/runs/{run}", Public, run::page::redirect),
            get("/app/{organization}/workspaces/{workspace}/runs/{run}", Right(A::ReadRuns, Workspace), run::page::show),
            get("/app/{organization}/workspaces/{workspace}/runs/{run}/events", Right(A::ReadRuns, Workspace), run::events::follow),
            get("/app/{organization}/workspaces/{workspace}/runs/{run}/log/{phase}", Right(A::ReadRuns, Workspace), run::log::whole),
            get("/app/{organization}/workspaces/{workspace}/runs/{run}/log/{phase}/part", Right(A::ReadRuns, Workspace), run::log::earlier),
            get("/app/{organization}/workspaces/{workspace}/runs/{run}/plan/{form}", Depends(PLAN_FILES), run::plan::download),
            post("/app/{organization}/workspaces/{workspace}/runs/{run}/comments", Right(A::QueuePlan, Workspace), run::actions::comment).form(sample::COMMENT),
            post("/app/{organization}/workspaces/{workspace}/runs/{run}/decisions/{decision}", Depends(RUN_DECISIONS), run::actions::decide),
            post("/app/{organization}/workspaces/{workspace}/runs/{run}/retry", Right(A::QueuePlan, Workspace), run::actions::retry),
        ],
        // Variables of workspaces and of variable sets.
        vec![
            get("/app/{organization}/workspaces/{workspace}/variables", Right(A::ReadVariables, Workspace), variables::list),
            post("/app/{organization}/workspaces/{workspace}/variables", Right(A::WriteVariables, Workspace), variable_form::create).form(sample::VARIABLE),
            post("/app/{organization}/workspaces/{workspace}/variables/import", Right(A::WriteVariables, Workspace), variable_import::preview).form(sample::IMPORT),
            post("/app/{organization}/workspaces/{workspace}/variables/import/confirm", Right(A::WriteVariables, Workspace), variable_import::confirm),
            post("/app/{organization}/workspaces/{workspace}/bindings", Right(A::WriteVariables, Workspace), bindings::create).form(sample::BINDING),
            post("/app/{organization}/workspaces/{workspace}/bindings/{binding}/delete", Right(A::WriteVariables, Workspace), bindings::delete),
            get("/app/{organization}/workspaces/{workspace}/variables/{variable}", Right(A::ReadVariables, Workspace), variable_form::show),
            post("/app/{organization}/workspaces/{workspace}/variables/{variable}", Right(A::WriteVariables, Workspace), variable_form::update).form(sample::VARIABLE),
            post("/app/{organization}/workspaces/{workspace}/variables/{variable}/delete", Right(A::WriteVariables, Workspace), variable_form::delete),
            get("/app/{organization}/variable-sets", Right(A::ReadOrganization, Organization), variable_sets::list),
            post("/app/{organization}/variable-sets", Right(A::ManageVariableSets, Organization), variable_sets::create).form(sample::NAMED),
            get("/app/{organization}/variable-sets/{variable_set}", Right(A::ReadVariableSets, Organization), variable_set::show),
            post("/app/{organization}/variable-sets/{variable_set}", Right(A::ManageVariableSets, Organization), variable_set::update).form(sample::NAMED),
            post("/app/{organization}/variable-sets/{variable_set}/apply", Right(A::ManageVariableSets, Organization), variable_set::apply).form(sample::TARGET),
            post("/app/{organization}/variable-sets/{variable_set}/withdraw", Right(A::ManageVariableSets, Organization), variable_set::withdraw).form(sample::TARGET),
            post("/app/{organization}/variable-sets/{variable_set}/delete", Right(A::ManageVariableSets, Organization), variable_set::delete),
            post("/app/{organization}/variable-sets/{variable_set}/variables", Right(A::ManageVariableSets, Organization), variable_form::create).form(sample::VARIABLE),
            post("/app/{organization}/variable-sets/{variable_set}/variables/import", Right(A::ManageVariableSets, Organization), variable_import::preview).form(sample::IMPORT),
            post("/app/{organization}/variable-sets/{variable_set}/variables/import/confirm", Right(A::ManageVariableSets, Organization), variable_import::confirm),
            get("/app/{organization}/variable-sets/{variable_set}/variables/{variable}", Right(A::ReadVariableSets, Organization), variable_form::show),
            post("/app/{organization}/variable-sets/{variable_set}/variables/{variable}", Right(A::ManageVariableSets, Organization), variable_form::update).form(sample::VARIABLE),
            post("/app/{organization}/variable-sets/{variable_set}/variables/{variable}/delete", Right(A::ManageVariableSets, Organization), variable_form::delete),
        ],
    ]
}
