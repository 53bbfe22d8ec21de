//! Table of the rights that each action requires.

use super::{Action, Rights};
use crate::team_access::{RunsRight, SettingsRight, StateRight, TeamsRight, VariablesRight};

/// One row: what an action is called, what it takes, and which tokens without a role may do it.
pub(super) struct Rule {
    pub(super) action: Action,
    /// Completes "You may not …".
    pub(super) words: &'static str,
    /// Completes "that takes …".
    pub(super) takes: &'static str,
    pub(super) granted: fn(&Rights) -> bool,
    /// Allowed for all members of the organization.
    pub(super) member: bool,
    pub(super) organization_token: bool,
    /// A run, in its own workspace.
    pub(super) own_run: bool,
    /// A run, in a workspace that shares its state with the run's.
    pub(super) consumer_run: bool,
    /// The agent that executes an apply, in the workspace of its run.
    pub(super) apply_agent: bool,
    /// A run task, about the run that it is asked about.
    pub(super) run_task: bool,
}

const fn rule(action: Action, words: &'static str, takes: &'static str, granted: fn(&Rights) -> bool) -> Rule {
    Rule {
        action,
        words,
        takes,
        granted,
        member: false,
        organization_token: false,
        own_run: false,
        consumer_run: false,
        apply_agent: false,
        run_task: false,
    }
}

impl Rule {
    const fn for_members(self) -> Self {
        Self { member: true, ..self }
    }

    const fn for_organization_token(self) -> Self {
        Self { organization_token: true, ..self }
    }

    const fn for_own_run(self) -> Self {
        Self { own_run: true, ..self }
    }

    const fn for_consumer_run(self) -> Self {
        Self { own_run: true, consumer_run: true, ..self }
    }

    const fn for_apply_agent(self) -> Self {
        Self { apply_agent: true, ..self }
    }

    const fn for_run_task(self) -> Self {
        Self { run_task: true, ..self }
    }
}

const SITE_ADMIN: &str = "a site admin";
const OWNER: &str = "an owner of the organization";
const WORKSPACE_ADMIN: &str = "admin access to the workspace";

/// Every action. Owners and site admins pass every row from `ReadOrganization` on, so those do not name them.
pub(super) const RULES: &[Rule] = {
    use Action as A;
    &[
        rule(A::ManageSite, "manage the site", SITE_ADMIN, |_| false),
        rule(A::CreateOrganization, "create organizations", "a user's own token or session", |_| false),
        rule(A::ReadAccount, "see this account", "being its user", |_| false),
        rule(A::UpdateAccount, "change this account", "being its user", |_| false),
        rule(A::ReadOrganization, "see the organization", "being a member of it", |_| false)
            .for_members()
            .for_organization_token()
            .for_own_run(),
        rule(
            A::ReadDirectory,
            "see members, teams, agent pools, policies and SSH keys",
            "being a member of the organization",
            |_| false,
        )
        .for_members()
        .for_organization_token(),
        rule(A::UpdateOrganization, "change the organization's settings", OWNER, |_| false),
        rule(A::DeleteOrganization, "delete the organization", OWNER, |_| false),
        rule(A::ManageOrganizationToken, "manage the organization's token", OWNER, |_| false),
        rule(A::ReadAuditTrail, "read the audit trail", "the organization's token or one for the audit trail", |_| {
            false
        })
        .for_organization_token(),
        rule(A::ManageMembership, "manage the organization's members", "a team that manages membership", |rights| {
            rights.organization.manage_membership
        })
        .for_organization_token(),
        rule(A::ManageOwners, "choose the organization's owners", OWNER, |_| false),
        rule(A::ManageTeams, "manage teams", "a team that manages teams", |rights| rights.organization.manage_teams)
            .for_organization_token(),
        rule(
            A::ManageOrganizationAccess,
            "change what teams may do in the organization",
            "a team that manages organization access",
            |rights| rights.organization.manage_organization_access,
        )
        .for_organization_token(),
        rule(A::ManageVcsSettings, "manage SSH keys and VCS settings", "a team that manages VCS settings", |rights| {
            rights.organization.manage_vcs_settings
        })
        .for_organization_token(),
        rule(A::ManageAgentPools, "manage agent pools", "a team that manages agent pools", |rights| {
            rights.organization.manage_agent_pools
        })
        .for_organization_token(),
        rule(A::ManageRunTasks, "manage run tasks", "a team that manages run tasks", |rights| {
            rights.organization.manage_run_tasks
        })
        .for_organization_token(),
        rule(A::ManagePolicies, "manage policies", "a team that manages policies", |rights| {
            rights.organization.manage_policies
        })
        .for_organization_token(),
        rule(A::OverridePolicies, "override policies", "a team that manages policy overrides", |rights| {
            rights.organization.manage_policy_overrides
        }),
        rule(A::ManageModules, "manage the registry's modules", "a team that manages modules", |rights| {
            rights.organization.manage_modules
        })
        .for_organization_token(),
        rule(A::ManageProviders, "manage the registry's providers", "a team that manages providers", |rights| {
            rights.organization.manage_providers
        })
        .for_organization_token(),
        rule(A::DownloadModules, "download modules", "being a member of the organization", |_| false)
            .for_members()
            .for_organization_token()
            .for_own_run(),
        rule(A::CreateProject, "create projects", "a team that manages projects", |rights| {
            rights.organization.manage_projects
        })
        .for_organization_token(),
        rule(
            A::ReadVariableSets,
            "see the organization's variable sets",
            "a team that sees all workspaces",
            |rights| rights.workspace.variables >= VariablesRight::Read,
        )
        .for_organization_token(),
        rule(
            A::ManageVariableSets,
            "change the organization's variable sets",
            "a team that manages all workspaces",
            |rights| rights.organization.manage_workspaces || rights.organization.manage_projects,
        )
        .for_organization_token(),
        rule(A::ReadProject, "see the project", "read access to the project", |rights| rights.project.read)
            .for_organization_token(),
        rule(A::UpdateProject, "change the project's settings", "admin access to the project", |rights| {
            rights.project.settings >= SettingsRight::Update
        })
        .for_organization_token(),
        rule(A::DeleteProject, "delete the project", "admin access to the project", |rights| {
            rights.project.settings >= SettingsRight::Delete
        })
        .for_organization_token(),
        rule(
            A::ManageProjectTeams,
            "change what teams may do in the project",
            "admin access to the project",
            |rights| rights.project.teams >= TeamsRight::Manage,
        )
        .for_organization_token(),
        rule(A::ReadProjectVariableSets, "see the project's variable sets", "read access to the project", |rights| {
            rights.project.variable_sets >= VariablesRight::Read
        })
        .for_organization_token(),
        rule(
            A::WriteProjectVariableSets,
            "change the project's variable sets",
            "admin access to the project",
            |rights| rights.project.variable_sets >= VariablesRight::Write,
        )
        .for_organization_token(),
        rule(A::CreateWorkspace, "create workspaces in the project", "maintain access to the project", |rights| {
            rights.project.create_workspaces
        })
        .for_organization_token(),
        rule(A::ReadWorkspace, "see the workspace", "read access to the workspace", |rights| {
            rights.workspace.runs >= RunsRight::Read
        })
        .for_organization_token()
        .for_consumer_run(),
        rule(A::ReadRuns, "see the workspace's runs", "read access to the workspace", |rights| {
            rights.workspace.runs >= RunsRight::Read
        })
        .for_organization_token()
        .for_own_run(),
        rule(
            A::ReadWorkspaceTeams,
            "see what teams may do in the workspace",
            "read access to the workspace",
            |rights| rights.workspace.runs >= RunsRight::Read,
        )
        .for_organization_token(),
        rule(A::UpdateWorkspace, "change the workspace's settings", WORKSPACE_ADMIN, |rights| rights.workspace.admin)
            .for_organization_token(),
        rule(A::DeleteWorkspace, "delete the workspace", WORKSPACE_ADMIN, |rights| {
            rights.workspace.admin || rights.project.delete_workspaces
        })
        .for_organization_token(),
        rule(A::MoveWorkspace, "move the workspace to another project", "admin access to the project", |rights| {
            rights.project.move_workspaces
        })
        .for_organization_token(),
        rule(A::ManageWorkspaceTeams, "change what teams may do in the workspace", WORKSPACE_ADMIN, |rights| {
            rights.workspace.admin
        })
        .for_organization_token(),
        rule(A::QueuePlan, "plan in the workspace", "plan access to the workspace", |rights| {
            rights.workspace.runs >= RunsRight::Plan
        }),
        rule(A::DownloadConfiguration, "download configurations", "plan access to the workspace", |rights| {
            rights.workspace.runs >= RunsRight::Plan
        })
        .for_run_task(),
        rule(A::ApplyRun, "apply, discard or cancel runs", "write access to the workspace", |rights| {
            rights.workspace.runs >= RunsRight::Apply
        }),
        rule(A::ForceCancelRun, "force runs to stop or to start", WORKSPACE_ADMIN, |rights| rights.workspace.admin),
        rule(A::ReadWholePlan, "read whole plans", WORKSPACE_ADMIN, |rights| rights.workspace.admin).for_run_task(),
        rule(A::ReadVariables, "see the workspace's variables", "read access to the workspace", |rights| {
            rights.workspace.variables >= VariablesRight::Read
        })
        .for_organization_token(),
        rule(A::WriteVariables, "change the workspace's variables", "write access to the workspace", |rights| {
            rights.workspace.variables >= VariablesRight::Write
        })
        .for_organization_token(),
        rule(A::ReadOutputs, "read the workspace's outputs", "read access to the workspace", |rights| {
            rights.workspace.state_versions >= StateRight::ReadOutputs
        })
        .for_organization_token()
        .for_consumer_run(),
        rule(A::ReadState, "read the workspace's state", "read access to the workspace", |rights| {
            rights.workspace.state_versions >= StateRight::Read
        })
        .for_organization_token()
        .for_consumer_run(),
        rule(A::WriteState, "write the workspace's state", "write access to the workspace", |rights| {
            rights.workspace.state_versions >= StateRight::Write
        })
        .for_apply_agent(),
        rule(A::DeleteStateForGood, "delete the data of a state for good", WORKSPACE_ADMIN, |rights| {
            rights.workspace.admin
        }),
        rule(A::LockWorkspace, "lock or unlock the workspace", "write access to the workspace", |rights| {
            rights.workspace.workspace_locking
        }),
        rule(A::ForceUnlockWorkspace, "force-unlock the workspace", WORKSPACE_ADMIN, |rights| rights.workspace.admin),
        rule(A::ManageNotifications, "manage notifications", WORKSPACE_ADMIN, |rights| rights.workspace.admin),
        rule(A::AttachRunTasks, "attach run tasks to the workspace", WORKSPACE_ADMIN, |rights| {
            rights.workspace.run_tasks
        })
        .for_organization_token(),
    ]
};
