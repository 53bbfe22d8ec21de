use std::collections::BTreeSet;
use std::fmt;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use taco_tables::{Record, indexes, references};

use crate::id::{AgentPoolId, ProjectId, WorkspaceId};
use crate::name::{AgentPoolName, NameKey};

/// The agents that may execute certain workspaces' runs. It is the boundary between teams that do not trust each other:
/// everyone who may plan runs code there.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, Debug)]
pub struct AgentPool {
    pub id: AgentPoolId,
    pub name: AgentPoolName,
    /// Every workspace of the organization may use it; otherwise the allowed ones alone.
    pub organization_scoped: bool,
    #[serde(default)]
    pub allowed_workspaces: BTreeSet<WorkspaceId>,
    #[serde(default)]
    pub allowed_projects: BTreeSet<ProjectId>,
    #[serde(default)]
    pub excluded_workspaces: BTreeSet<WorkspaceId>,
    pub created_at: Timestamp,
}

impl AgentPool {
    /// True if its agents may execute a workspace's runs.
    pub fn allows(&self, workspace: WorkspaceId, project: ProjectId) -> bool {
        let is_within = self.allows_project(project) || self.allowed_workspaces.contains(&workspace);
        is_within && !self.excluded_workspaces.contains(&workspace)
    }

    /// True if it can be the default of a project: of all its workspaces, but for those that it excludes one by one.
    pub fn allows_project(&self, project: ProjectId) -> bool {
        self.organization_scoped || self.allowed_projects.contains(&project)
    }

    /// Workspaces it allows, for people. Those who see a pool see these ids as well, but not always the names.
    pub fn allowed_in_words(&self) -> String {
        let mut words = match (self.organization_scoped, self.allowed_workspaces.len(), self.allowed_projects.len()) {
            (true, ..) => "every workspace of the organization".to_owned(),
            (false, 0, 0) => "no workspace yet".to_owned(),
            (false, _, 0) => format!("the workspaces {}", listed(&self.allowed_workspaces)),
            (false, 0, _) => format!("the workspaces of the projects {}", listed(&self.allowed_projects)),
            (false, ..) => format!(
                "the workspaces {} and those of the projects {}",
                listed(&self.allowed_workspaces),
                listed(&self.allowed_projects)
            ),
        };
        if !self.excluded_workspaces.is_empty() {
            words.push_str(&format!(", except {}", listed(&self.excluded_workspaces)));
        }
        words
    }
}

fn listed(ids: &BTreeSet<impl fmt::Display>) -> String {
    const MAX_LISTED_IDS: usize = 5;
    let shown: Vec<String> = ids.iter().take(MAX_LISTED_IDS).map(ToString::to_string).collect();
    let more = ids.len().saturating_sub(MAX_LISTED_IDS);
    let shown = shown.join(", ");
    if more > 0 { format!("{shown} and {more} more") } else { shown }
}

impl Record for AgentPool {
    const KIND: &'static str = "agent-pool";
    const NOUN: &'static str = "agent pool";
    const UNIQUE: &'static [&'static str] = &["name"];
    type Id = AgentPoolId;
    type Indexes = AgentPoolIndexes;

    fn id(&self) -> &AgentPoolId {
        &self.id
    }

    references! {
        "allowed_workspaces": WorkspaceId, unlink(|pools, id| pools.by().workspace.get(id), |pool| {
            pool.allowed_workspaces.remove(id)
        });
        "excluded_workspaces": WorkspaceId, unlink(|pools, id| pools.by().workspace.get(id), |pool| {
            pool.excluded_workspaces.remove(id)
        });
        "allowed_projects": ProjectId, unlink(|pools, id| pools.by().project.get(id), |pool| {
            pool.allowed_projects.remove(id)
        });
    }
}

indexes! {
    pub struct AgentPoolIndexes for AgentPool {
        pub name: NameKey, unique "name" => |pool| [pool.name.key()];
        /// Pools on one of whose lists a workspace is.
        pub workspace: WorkspaceId => |pool| {
            pool.allowed_workspaces.union(&pool.excluded_workspaces).copied().collect::<Vec<_>>()
        };
        pub project: ProjectId => |pool| pool.allowed_projects.clone();
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) fn given_pool(name: &str) -> AgentPool {
        AgentPool {
            id: AgentPoolId::from_random([5; 16]),
            name: name.parse().expect("a name"),
            organization_scoped: false,
            allowed_workspaces: BTreeSet::new(),
            allowed_projects: BTreeSet::new(),
            excluded_workspaces: BTreeSet::new(),
            created_at: Timestamp::UNIX_EPOCH,
        }
    }

    #[test]
    fn a_pool_allows_what_is_within_its_limits() {
        let (web, other) = (WorkspaceId::from_random([1; 16]), WorkspaceId::from_random([2; 16]));
        let (network, default) = (ProjectId::from_random([3; 16]), ProjectId::from_random([4; 16]));
        let none = given_pool("rack");
        let everyone = AgentPool { organization_scoped: true, ..none.clone() };
        let one = AgentPool { allowed_workspaces: [web].into(), ..none.clone() };
        let project = AgentPool { allowed_projects: [network].into(), ..none.clone() };
        let but_one = AgentPool { excluded_workspaces: [web].into(), ..everyone.clone() };
        let of_project_but_one = AgentPool { excluded_workspaces: [web].into(), ..project.clone() };
        for (pool, workspace, of, expected, words) in [
            (&none, web, default, false, "no workspace yet".to_owned()),
            (&everyone, web, default, true, "every workspace of the organization".to_owned()),
            (&one, web, default, true, format!("the workspaces {web}")),
            (&one, other, default, false, format!("the workspaces {web}")),
            (&project, web, network, true, format!("the workspaces of the projects {network}")),
            (&project, web, default, false, format!("the workspaces of the projects {network}")),
            (&but_one, web, default, false, format!("every workspace of the organization, except {web}")),
            (&but_one, other, default, true, format!("every workspace of the organization, except {web}")),
            (
                &of_project_but_one,
                web,
                network,
                false,
                format!("the workspaces of the projects {network}, except {web}"),
            ),
        ] {
            assert_eq!(pool.allows(workspace, of), expected, "{pool:?}");
            assert_eq!(pool.allowed_in_words(), words);
        }
        assert!(everyone.allows_project(default) && but_one.allows_project(default));
        assert!(project.allows_project(network) && !project.allows_project(default) && !one.allows_project(default));
    }
}
