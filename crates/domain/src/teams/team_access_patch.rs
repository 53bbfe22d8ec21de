//! Requests that give a team rights in a project or a workspace, spelled as on the wire.
//!
//! A fixed role is a name for a set of rights; only a custom one may be put together.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::attribute::InvalidAttribute;
use crate::team_access::{
    ProjectRights, ProjectRole, RunsRight, SettingsRight, StateRight, TeamProject, TeamWorkspace, TeamsRight,
    VariablesRight, WorkspaceRights, WorkspaceRole,
};

/// Right of a team to download mock data. The wire has strings where a flag would do.
#[derive(Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Debug)]
#[serde(rename_all = "kebab-case")]
pub enum MocksRight {
    None,
    Read,
}

impl From<bool> for MocksRight {
    fn from(may: bool) -> Self {
        if may { Self::Read } else { Self::None }
    }
}

/// Changes to rights in the workspaces of a project; omitted ones stay.
#[derive(Clone, PartialEq, Eq, Default, Deserialize, Debug)]
#[serde(rename_all = "kebab-case", default)]
pub struct WorkspaceRightsPatch {
    pub runs: Option<RunsRight>,
    pub variables: Option<VariablesRight>,
    pub state_versions: Option<StateRight>,
    pub sentinel_mocks: Option<MocksRight>,
    pub locking: Option<bool>,
    pub run_tasks: Option<bool>,
    pub policy_overrides: Option<bool>,
    pub create: Option<bool>,
    #[serde(rename = "move")]
    pub move_workspaces: Option<bool>,
    pub delete: Option<bool>,
}

#[derive(Clone, PartialEq, Eq, Default, Deserialize, Debug)]
#[serde(rename_all = "kebab-case", default)]
pub struct ProjectRightsPatch {
    pub settings: Option<SettingsRight>,
    pub teams: Option<TeamsRight>,
    pub variable_sets: Option<VariablesRight>,
}

#[derive(Clone, Default, Deserialize, Debug)]
#[serde(rename_all = "kebab-case", default)]
pub struct TeamWorkspacePatch {
    pub access: Option<WorkspaceRole>,
    pub runs: Option<RunsRight>,
    pub variables: Option<VariablesRight>,
    pub state_versions: Option<StateRight>,
    pub sentinel_mocks: Option<MocksRight>,
    pub workspace_locking: Option<bool>,
    pub run_tasks: Option<bool>,
    pub policy_overrides: Option<bool>,
}

#[derive(Clone, Default, Deserialize, Debug)]
#[serde(rename_all = "kebab-case", default)]
pub struct TeamProjectPatch {
    pub access: Option<ProjectRole>,
    pub project_access: Option<ProjectRightsPatch>,
    pub workspace_access: Option<WorkspaceRightsPatch>,
}

impl WorkspaceRightsPatch {
    /// The first right that is spelled out.
    fn named(&self) -> Option<&'static str> {
        let given = [
            ("runs", self.runs.is_some()),
            ("variables", self.variables.is_some()),
            ("state-versions", self.state_versions.is_some()),
            ("sentinel-mocks", self.sentinel_mocks.is_some()),
            ("workspace-locking", self.locking.is_some()),
            ("run-tasks", self.run_tasks.is_some()),
            ("policy-overrides", self.policy_overrides.is_some()),
        ];
        given.into_iter().find(|(_, given)| *given).map(|(name, _)| name)
    }

    fn apply(&self, before: WorkspaceRights) -> WorkspaceRights {
        WorkspaceRights {
            runs: self.runs.unwrap_or(before.runs),
            variables: self.variables.unwrap_or(before.variables),
            state_versions: self.state_versions.unwrap_or(before.state_versions),
            sentinel_mocks: self.sentinel_mocks.map_or(before.sentinel_mocks, |right| right == MocksRight::Read),
            workspace_locking: self.locking.unwrap_or(before.workspace_locking),
            run_tasks: self.run_tasks.unwrap_or(before.run_tasks),
            policy_overrides: self.policy_overrides.unwrap_or(before.policy_overrides),
            admin: false,
        }
    }
}

/// Error with the text of Terraform Cloud, which clients look for.
fn only_custom(attribute: &'static str, access: impl fmt::Display) -> InvalidAttribute {
    let words = attribute.replace('-', " ");
    let (first, rest) = words.split_at(1);
    let words = first.to_uppercase() + rest;
    let detail = format!(
        "{words} is read-only when access level is '{access}'; use the 'custom' access level to set this attribute."
    );
    InvalidAttribute::new(attribute, detail)
}

impl TeamWorkspacePatch {
    fn rights(&self) -> WorkspaceRightsPatch {
        WorkspaceRightsPatch {
            runs: self.runs,
            variables: self.variables,
            state_versions: self.state_versions,
            sentinel_mocks: self.sentinel_mocks,
            locking: self.workspace_locking,
            run_tasks: self.run_tasks,
            policy_overrides: self.policy_overrides,
            ..WorkspaceRightsPatch::default()
        }
    }

    /// A team's access after the request.
    pub fn apply(&self, before: &TeamWorkspace) -> Result<TeamWorkspace, InvalidAttribute> {
        let access = self.access.unwrap_or(before.access);
        let custom = match (access, self.rights().named()) {
            (WorkspaceRole::Custom, _) => self.rights().apply(before.custom),
            (_, Some(named)) => return Err(only_custom(named, access)),
            (_, None) => WorkspaceRights::NONE,
        };
        Ok(TeamWorkspace { access, custom, ..before.clone() })
    }
}

impl TeamProjectPatch {
    pub fn apply(&self, before: &TeamProject) -> Result<TeamProject, InvalidAttribute> {
        let access = self.access.unwrap_or(before.access);
        let project = self.project_access.clone().unwrap_or_default();
        let workspaces = self.workspace_access.clone().unwrap_or_default();
        if access != ProjectRole::Custom {
            // The provider `tfe` sends both with every role, and nothing in them.
            if project != ProjectRightsPatch::default() {
                return Err(only_custom("project-access", access));
            }
            if workspaces != WorkspaceRightsPatch::default() {
                return Err(only_custom("workspace-access", access));
            }
            return Ok(TeamProject {
                access,
                custom: ProjectRights::NONE,
                custom_workspaces: WorkspaceRights::NONE,
                ..before.clone()
            });
        }
        let custom = ProjectRights {
            read: true,
            settings: project.settings.unwrap_or(before.custom.settings),
            teams: project.teams.unwrap_or(before.custom.teams),
            variable_sets: project.variable_sets.unwrap_or(before.custom.variable_sets),
            create_workspaces: workspaces.create.unwrap_or(before.custom.create_workspaces),
            move_workspaces: workspaces.move_workspaces.unwrap_or(before.custom.move_workspaces),
            delete_workspaces: workspaces.delete.unwrap_or(before.custom.delete_workspaces),
        };
        Ok(TeamProject {
            access,
            custom,
            custom_workspaces: workspaces.apply(before.custom_workspaces),
            ..before.clone()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::{ProjectId, TeamId, TeamProjectId, TeamWorkspaceId, WorkspaceId};

    fn workspace(json: &str, before: &TeamWorkspace) -> Result<TeamWorkspace, String> {
        let patch: TeamWorkspacePatch = serde_json::from_str(json).map_err(|error| error.to_string())?;
        patch.apply(before).map_err(|invalid| invalid.detail)
    }

    #[test]
    fn rights_are_spelled_out_for_custom_access_alone() {
        let none = TeamWorkspace {
            id: TeamWorkspaceId::from_random([1; 16]),
            team: TeamId::from_random([2; 16]),
            workspace: WorkspaceId::from_random([3; 16]),
            access: WorkspaceRole::Read,
            custom: WorkspaceRights::NONE,
        };
        assert_eq!(workspace(r#"{"access":"plan"}"#, &none).map(|access| access.rights()), Ok(WorkspaceRights::PLAN));
        let refused = workspace(r#"{"access":"write","runs":"apply"}"#, &none);
        let words =
            "Runs is read-only when access level is 'write'; use the 'custom' access level to set this attribute.";
        assert_eq!(refused, Err(words.to_owned()));
        assert!(workspace(r#"{"access":"king"}"#, &none).is_err_and(|error| error.contains("`read`, `plan`")));
        let custom = workspace(r#"{"access":"custom","runs":"plan","sentinel-mocks":"read"}"#, &none).expect("legal");
        let more = workspace(r#"{"workspace-locking":true}"#, &custom).expect("legal");
        let rights = more.rights();
        assert_eq!((rights.runs, rights.sentinel_mocks, rights.workspace_locking), (RunsRight::Plan, true, true));
        assert_eq!(workspace(r#"{"access":"read"}"#, &more).map(|access| access.custom), Ok(WorkspaceRights::NONE));
    }

    #[test]
    fn a_project_has_rights_of_its_own_and_of_its_workspaces() {
        let before = TeamProject {
            id: TeamProjectId::from_random([1; 16]),
            team: TeamId::from_random([2; 16]),
            project: ProjectId::from_random([3; 16]),
            access: ProjectRole::Read,
            custom: ProjectRights::NONE,
            custom_workspaces: WorkspaceRights::NONE,
        };
        let patch: TeamProjectPatch = serde_json::from_str(
            r#"{"access":"custom","project-access":{"settings":"update"},"workspace-access":{"create":true,"locking":true}}"#,
        )
        .expect("a patch");
        let after = patch.apply(&before).expect("legal");
        assert_eq!(after.rights().settings, SettingsRight::Update);
        assert!(after.rights().create_workspaces && after.workspace_rights().workspace_locking);
        let fixed = TeamProjectPatch { access: Some(ProjectRole::Admin), ..patch };
        assert_eq!(fixed.apply(&before).expect_err("fixed").attribute, "project-access");
        let fixed = TeamProjectPatch { project_access: Some(ProjectRightsPatch::default()), ..fixed };
        assert_eq!(fixed.apply(&before).expect_err("fixed").attribute, "workspace-access");
        let fixed = TeamProjectPatch { workspace_access: Some(WorkspaceRightsPatch::default()), ..fixed };
        assert_eq!(fixed.apply(&after).map(|access| access.access), Ok(ProjectRole::Admin));
    }
}
