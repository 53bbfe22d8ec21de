//! Roles of teams in words that people understand. Forms and the API have words of their own for them.

use taco_domain::team_access::{ProjectRole, WorkspaceRole};

/// What a team may do in a project or a workspace.
pub(crate) struct AccessRole {
    /// As forms send it: the API's word.
    pub(crate) value: String,
    pub(crate) name: &'static str,
    pub(crate) meaning: &'static str,
}

/// Roles in a workspace that forms offer.
pub(crate) const WORKSPACE_ROLES: [WorkspaceRole; 4] =
    [WorkspaceRole::Read, WorkspaceRole::Plan, WorkspaceRole::Write, WorkspaceRole::Admin];

/// Roles in a project that forms offer.
pub(crate) const PROJECT_ROLES: [ProjectRole; 4] =
    [ProjectRole::Read, ProjectRole::Write, ProjectRole::Maintain, ProjectRole::Admin];

const CUSTOM: (&str, &str) = ("Custom", "set through the API");

impl AccessRole {
    pub(crate) fn in_workspace(role: WorkspaceRole) -> Self {
        let (name, meaning) = match role {
            WorkspaceRole::Read => ("View", "see runs, states and variables"),
            WorkspaceRole::Plan => ("Plan", "also start plans"),
            WorkspaceRole::Write => ("Apply", "also apply runs, edit variables, lock"),
            WorkspaceRole::Admin => ("Full access", "also edit settings and team access, delete"),
            WorkspaceRole::Custom => CUSTOM,
        };
        Self { value: role.to_string(), name, meaning }
    }

    pub(crate) fn in_project(role: ProjectRole) -> Self {
        let (name, meaning) = match role {
            ProjectRole::Read => ("View", "see its workspaces, runs and states"),
            ProjectRole::Write => ("Apply", "also plan and apply runs, edit variables"),
            ProjectRole::Maintain => ("Manage workspaces", "also create, edit and delete them"),
            ProjectRole::Admin => ("Full access", "also edit the project and its team access"),
            ProjectRole::Custom => CUSTOM,
        };
        Self { value: role.to_string(), name, meaning }
    }

    pub(crate) fn all_in_workspace() -> Vec<Self> {
        WORKSPACE_ROLES.into_iter().map(Self::in_workspace).collect()
    }

    pub(crate) fn all_in_project() -> Vec<Self> {
        PROJECT_ROLES.into_iter().map(Self::in_project).collect()
    }
}
