use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use taco_tables::{Record, indexes};

use crate::id::TeamId;
use crate::name::{NameKey, TeamName};

/// The team that every organization has, whose members may do everything in it.
pub const OWNERS: &str = "owners";

/// Members of an organization who share rights.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, Debug)]
pub struct Team {
    pub id: TeamId,
    pub name: TeamName,
    pub visibility: TeamVisibility,
    #[serde(default)]
    pub organization_access: OrganizationAccess,
    pub sso_team_id: Option<String>,
    /// True if members who are not owners may create tokens for it.
    pub allow_member_token_management: bool,
    pub created_at: Timestamp,
}

/// Visibility of a team.
#[derive(Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Debug)]
#[serde(rename_all = "kebab-case")]
pub enum TeamVisibility {
    /// Its members, and those who manage teams.
    Secret,
    /// Every member of the organization.
    Organization,
}

/// Rights of a team in the whole organization.
#[derive(Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, Debug)]
#[serde(rename_all = "kebab-case", default)]
pub struct OrganizationAccess {
    pub manage_policies: bool,
    pub manage_policy_overrides: bool,
    pub delegate_policy_overrides: bool,
    pub manage_workspaces: bool,
    pub manage_vcs_settings: bool,
    pub manage_providers: bool,
    pub manage_modules: bool,
    pub manage_run_tasks: bool,
    pub manage_projects: bool,
    pub read_workspaces: bool,
    pub read_projects: bool,
    pub manage_membership: bool,
    pub manage_teams: bool,
    pub manage_organization_access: bool,
    pub access_secret_teams: bool,
    pub manage_agent_pools: bool,
}

impl OrganizationAccess {
    /// Rights that this has and `other` lacks.
    pub fn beyond(&self, other: &Self) -> Self {
        Self {
            manage_policies: self.manage_policies && !other.manage_policies,
            manage_policy_overrides: self.manage_policy_overrides && !other.manage_policy_overrides,
            delegate_policy_overrides: self.delegate_policy_overrides && !other.delegate_policy_overrides,
            manage_workspaces: self.manage_workspaces && !other.manage_workspaces,
            manage_vcs_settings: self.manage_vcs_settings && !other.manage_vcs_settings,
            manage_providers: self.manage_providers && !other.manage_providers,
            manage_modules: self.manage_modules && !other.manage_modules,
            manage_run_tasks: self.manage_run_tasks && !other.manage_run_tasks,
            manage_projects: self.manage_projects && !other.manage_projects,
            read_workspaces: self.read_workspaces && !other.read_workspaces,
            read_projects: self.read_projects && !other.read_projects,
            manage_membership: self.manage_membership && !other.manage_membership,
            manage_teams: self.manage_teams && !other.manage_teams,
            manage_organization_access: self.manage_organization_access && !other.manage_organization_access,
            access_secret_teams: self.access_secret_teams && !other.access_secret_teams,
            manage_agent_pools: self.manage_agent_pools && !other.manage_agent_pools,
        }
    }
}

impl Team {
    pub fn new(id: TeamId, name: TeamName, now: Timestamp) -> Self {
        Self {
            id,
            name,
            visibility: TeamVisibility::Secret,
            organization_access: OrganizationAccess::default(),
            sso_team_id: None,
            allow_member_token_management: true,
            created_at: now,
        }
    }

    pub fn owners(id: TeamId, now: Timestamp) -> Self {
        Self { visibility: TeamVisibility::Organization, ..Self::new(id, OWNERS.parse().expect("a legal name"), now) }
    }
}

impl Record for Team {
    const KIND: &'static str = "team";
    const UNIQUE: &'static [&'static str] = &["name"];
    type Id = TeamId;
    type Indexes = TeamIndexes;

    fn id(&self) -> &TeamId {
        &self.id
    }
}

indexes! {
    pub struct TeamIndexes for Team {
        pub name: NameKey, unique "name" => |team| [team.name.key()];
    }
}
