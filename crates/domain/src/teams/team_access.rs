//! Access of a team to a project or a workspace. Every role is a set of rights, so that fixed and custom roles are
//! treated alike.

use std::fmt;

use serde::{Deserialize, Serialize};
use taco_tables::{Record, indexes, references};

use crate::id::{ProjectId, TeamId, TeamProjectId, TeamWorkspaceId, WorkspaceId};

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, Deserialize, Debug)]
#[serde(rename_all = "kebab-case")]
pub enum RunsRight {
    #[default]
    None,
    Read,
    Plan,
    Apply,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, Deserialize, Debug)]
#[serde(rename_all = "kebab-case")]
pub enum VariablesRight {
    #[default]
    None,
    Read,
    Write,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, Deserialize, Debug)]
#[serde(rename_all = "kebab-case")]
pub enum StateRight {
    #[default]
    None,
    ReadOutputs,
    Read,
    Write,
}

/// Rights in a workspace.
#[derive(Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, Debug)]
#[serde(rename_all = "kebab-case", default)]
pub struct WorkspaceRights {
    pub runs: RunsRight,
    pub variables: VariablesRight,
    pub state_versions: StateRight,
    pub sentinel_mocks: bool,
    pub workspace_locking: bool,
    pub run_tasks: bool,
    pub policy_overrides: bool,
    /// Settings, deletion, and everything that needs force. No custom role has it.
    pub admin: bool,
}

impl WorkspaceRights {
    pub const NONE: Self = Self {
        runs: RunsRight::None,
        variables: VariablesRight::None,
        state_versions: StateRight::None,
        sentinel_mocks: false,
        workspace_locking: false,
        run_tasks: false,
        policy_overrides: false,
        admin: false,
    };
    pub const READ: Self =
        Self { runs: RunsRight::Read, variables: VariablesRight::Read, state_versions: StateRight::Read, ..Self::NONE };
    pub const PLAN: Self = Self { runs: RunsRight::Plan, ..Self::READ };
    pub const WRITE: Self = Self {
        runs: RunsRight::Apply,
        variables: VariablesRight::Write,
        state_versions: StateRight::Write,
        sentinel_mocks: true,
        workspace_locking: true,
        ..Self::NONE
    };
    pub const ADMIN: Self = Self { run_tasks: true, policy_overrides: true, admin: true, ..Self::WRITE };
}

#[derive(Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Debug)]
#[serde(rename_all = "kebab-case")]
pub enum WorkspaceRole {
    Read,
    Plan,
    Write,
    Admin,
    Custom,
}

impl fmt::Display for WorkspaceRole {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Read => "read",
            Self::Plan => "plan",
            Self::Write => "write",
            Self::Admin => "admin",
            Self::Custom => "custom",
        })
    }
}

/// A team's rights in one workspace.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, Debug)]
pub struct TeamWorkspace {
    pub id: TeamWorkspaceId,
    pub team: TeamId,
    pub workspace: WorkspaceId,
    pub access: WorkspaceRole,
    /// Rights that count if `access` is custom.
    #[serde(default)]
    pub custom: WorkspaceRights,
}

impl TeamWorkspace {
    pub fn rights(&self) -> WorkspaceRights {
        match self.access {
            WorkspaceRole::Read => WorkspaceRights::READ,
            WorkspaceRole::Plan => WorkspaceRights::PLAN,
            WorkspaceRole::Write => WorkspaceRights::WRITE,
            WorkspaceRole::Admin => WorkspaceRights::ADMIN,
            WorkspaceRole::Custom => WorkspaceRights { admin: false, ..self.custom },
        }
    }
}

impl Record for TeamWorkspace {
    const KIND: &'static str = "team-workspace";
    const NOUN: &'static str = "team access";
    const PART_OF: &'static [&'static str] = &["team", "workspace"];
    type Id = TeamWorkspaceId;
    type Indexes = TeamWorkspaceIndexes;

    fn id(&self) -> &TeamWorkspaceId {
        &self.id
    }

    references! {
        "team": TeamId, cascade(|accesses, id| accesses.by().team.get(id));
        "workspace": WorkspaceId, cascade(|accesses, id| accesses.by().workspace.get(id));
    }
}

indexes! {
    pub struct TeamWorkspaceIndexes for TeamWorkspace {
        /// Unique.
        pub team_and_workspace: (TeamId, WorkspaceId) => |access| [(access.team, access.workspace)];
        pub team: TeamId => |access| [access.team];
        pub workspace: WorkspaceId => |access| [access.workspace];
    }
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, Deserialize, Debug)]
#[serde(rename_all = "kebab-case")]
pub enum SettingsRight {
    #[default]
    Read,
    Update,
    Delete,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, Deserialize, Debug)]
#[serde(rename_all = "kebab-case")]
pub enum TeamsRight {
    #[default]
    None,
    Read,
    Manage,
}

/// Rights in a project as such.
#[derive(Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, Debug)]
#[serde(rename_all = "kebab-case", default)]
pub struct ProjectRights {
    /// Knows of the project.
    pub read: bool,
    pub settings: SettingsRight,
    pub teams: TeamsRight,
    pub variable_sets: VariablesRight,
    pub create_workspaces: bool,
    pub move_workspaces: bool,
    pub delete_workspaces: bool,
}

impl ProjectRights {
    pub const NONE: Self = Self {
        read: false,
        settings: SettingsRight::Read,
        teams: TeamsRight::None,
        variable_sets: VariablesRight::None,
        create_workspaces: false,
        move_workspaces: false,
        delete_workspaces: false,
    };
    pub const READ: Self = Self { read: true, variable_sets: VariablesRight::Read, ..Self::NONE };
    pub const MAINTAIN: Self = Self { create_workspaces: true, delete_workspaces: true, ..Self::READ };
    pub const ADMIN: Self = Self {
        settings: SettingsRight::Delete,
        teams: TeamsRight::Manage,
        variable_sets: VariablesRight::Write,
        move_workspaces: true,
        ..Self::MAINTAIN
    };
}

#[derive(Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Debug)]
#[serde(rename_all = "kebab-case")]
pub enum ProjectRole {
    Read,
    Write,
    Maintain,
    Admin,
    Custom,
}

impl fmt::Display for ProjectRole {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::Maintain => "maintain",
            Self::Admin => "admin",
            Self::Custom => "custom",
        })
    }
}

/// A team's rights in one project and in all its workspaces.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, Debug)]
pub struct TeamProject {
    pub id: TeamProjectId,
    pub team: TeamId,
    pub project: ProjectId,
    pub access: ProjectRole,
    /// Rights that count if `access` is custom.
    #[serde(default)]
    pub custom: ProjectRights,
    #[serde(default)]
    pub custom_workspaces: WorkspaceRights,
}

impl TeamProject {
    pub fn rights(&self) -> ProjectRights {
        match self.access {
            ProjectRole::Read | ProjectRole::Write => ProjectRights::READ,
            ProjectRole::Maintain => ProjectRights::MAINTAIN,
            ProjectRole::Admin => ProjectRights::ADMIN,
            ProjectRole::Custom => ProjectRights { read: true, ..self.custom },
        }
    }

    /// Rights in each workspace of the project.
    pub fn workspace_rights(&self) -> WorkspaceRights {
        match self.access {
            ProjectRole::Read => WorkspaceRights::READ,
            ProjectRole::Write => WorkspaceRights::WRITE,
            ProjectRole::Maintain | ProjectRole::Admin => WorkspaceRights::ADMIN,
            ProjectRole::Custom => WorkspaceRights { admin: false, ..self.custom_workspaces },
        }
    }
}

impl Record for TeamProject {
    const KIND: &'static str = "team-project";
    const NOUN: &'static str = "team access";
    const PART_OF: &'static [&'static str] = &["team", "project"];
    type Id = TeamProjectId;
    type Indexes = TeamProjectIndexes;

    fn id(&self) -> &TeamProjectId {
        &self.id
    }

    references! {
        "team": TeamId, cascade(|accesses, id| accesses.by().team.get(id));
        "project": ProjectId, cascade(|accesses, id| accesses.by().project.get(id));
    }
}

indexes! {
    pub struct TeamProjectIndexes for TeamProject {
        /// Unique.
        pub team_and_project: (TeamId, ProjectId) => |access| [(access.team, access.project)];
        pub team: TeamId => |access| [access.team];
        pub project: ProjectId => |access| [access.project];
    }
}
