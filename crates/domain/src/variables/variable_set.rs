//! Variables that several workspaces share.

use std::collections::BTreeSet;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use taco_tables::{Record, indexes, references};

use crate::attribute::{InvalidAttribute, nullable};
use crate::id::{ProjectId, VariableSetId, WorkspaceId};
use crate::name::{NameKey, VariableSetName};
use crate::organization::set;
use crate::workspace::Workspace;
use crate::workspace_settings::check_description;

/// Variables that several workspaces share. The variables themselves are records that name it as their owner.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, Debug)]
pub struct VariableSet {
    pub id: VariableSetId,
    pub name: VariableSetName,
    pub description: String,
    /// It applies to all workspaces, regardless of those it names.
    pub global: bool,
    /// It wins over what is more specific, and over the command line.
    pub priority: bool,
    /// The project that owns it, and beyond which it never applies; the organization owns it without one.
    pub parent: Option<ProjectId>,
    #[serde(default)]
    pub workspaces: BTreeSet<WorkspaceId>,
    #[serde(default)]
    pub projects: BTreeSet<ProjectId>,
    pub created_at: Timestamp,
}

/// Through what a set reaches a workspace, the widest first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum VariableSetScope {
    Global,
    Project,
    Workspace,
}

impl VariableSet {
    pub fn new(id: VariableSetId, name: VariableSetName, parent: Option<ProjectId>, now: Timestamp) -> Self {
        Self {
            id,
            name,
            description: String::new(),
            global: false,
            priority: false,
            parent,
            workspaces: BTreeSet::new(),
            projects: BTreeSet::new(),
            created_at: now,
        }
    }

    /// Through what the set reaches a workspace, if it does. Of several ways it is the one that counts most: the widest
    /// for a set with priority, otherwise the narrowest.
    pub fn scope_for(&self, workspace: &Workspace) -> Option<VariableSetScope> {
        if self.parent.is_some_and(|parent| parent != workspace.project) {
            return None;
        }
        if self.global {
            return Some(VariableSetScope::Global);
        }
        let project = self.projects.contains(&workspace.project).then_some(VariableSetScope::Project);
        let own = self.workspaces.contains(&workspace.id).then_some(VariableSetScope::Workspace);
        if self.priority { project.or(own) } else { own.or(project) }
    }
}

impl Record for VariableSet {
    const KIND: &'static str = "variable-set";
    const NOUN: &'static str = "variable set";
    const UNIQUE: &'static [&'static str] = &["name"];
    const CONCERNS_EVERYTHING: bool = true;
    type Id = VariableSetId;
    type Indexes = VariableSetIndexes;

    fn id(&self) -> &VariableSetId {
        &self.id
    }

    references! {
        "parent": ProjectId, cascade(|sets, id| sets.by().parent.get(id));
        "workspaces": WorkspaceId, unlink(|sets, id| sets.by().workspace.get(id), |set| set.workspaces.remove(id));
        "projects": ProjectId, unlink(|sets, id| sets.by().project.get(id), |set| set.projects.remove(id));
    }
}

indexes! {
    pub struct VariableSetIndexes for VariableSet {
        /// The order of lists.
        pub name: NameKey, unique "name" => |set| [set.name.key()];
        pub workspace: WorkspaceId => |set| set.workspaces.clone();
        pub project: ProjectId => |set| set.projects.clone();
        pub parent: ProjectId => |set| set.parent;
    }
}

/// The attributes of a request that makes or changes a variable set, spelled as on the wire.
#[derive(Clone, Default, Deserialize, Debug)]
#[serde(rename_all = "kebab-case", default)]
pub struct VariableSetPatch {
    pub name: Option<String>,
    #[serde(deserialize_with = "nullable")]
    pub description: Option<Option<String>>,
    pub global: Option<bool>,
    pub priority: Option<bool>,
    /// On the wire this is a relationship. It replaces all workspaces.
    #[serde(skip)]
    pub workspaces: Option<BTreeSet<WorkspaceId>>,
    /// On the wire this is a relationship. It replaces all projects.
    #[serde(skip)]
    pub projects: Option<BTreeSet<ProjectId>>,
}

impl VariableSetPatch {
    /// The set after the request. Whether its name is free and what it applies to exists, the caller finds out.
    pub fn apply(&self, before: &VariableSet) -> Result<VariableSet, InvalidAttribute> {
        let mut changed = before.clone();
        if let Some(name) = &self.name {
            changed.name = name.parse()?;
        }
        if let Some(description) = &self.description {
            changed.description = check_description(description.as_deref().unwrap_or_default())?;
        }
        set(&mut changed.global, self.global);
        set(&mut changed.priority, self.priority);
        set(&mut changed.workspaces, self.workspaces.clone());
        set(&mut changed.projects, self.projects.clone());
        if changed.global && changed.parent.is_some() {
            let detail = "Global cannot be true for a set that a project owns: it applies within the project alone";
            return Err(InvalidAttribute::new("global", detail));
        }
        Ok(changed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set() -> VariableSet {
        let id = VariableSetId::from_random([1; 16]);
        VariableSet::new(id, "keys".parse().expect("legal"), None, Timestamp::UNIX_EPOCH)
    }

    fn apply(json: &str, set: &VariableSet) -> Result<VariableSet, InvalidAttribute> {
        serde_json::from_str::<VariableSetPatch>(json).expect(json).apply(set)
    }

    #[test]
    fn a_sparse_request_changes_what_it_names() {
        assert_eq!(apply("{}", &set()), Ok(set()));
        let changed = apply(r#"{"name":"UpdatedName","description":"d","priority":true}"#, &set()).expect("legal");
        assert_eq!((changed.name.as_str(), changed.priority, changed.global), ("UpdatedName", true, false));
        assert_eq!(apply(r#"{"description":null}"#, &changed).expect("legal").description, "");
        assert_eq!(apply(r#"{"name":" "}"#, &set()).expect_err("no").attribute, "name");
    }

    #[test]
    fn a_set_of_a_project_stays_within_it() {
        let (here, there) = (ProjectId::from_random([1; 16]), ProjectId::from_random([2; 16]));
        let workspace = |project| {
            let id = WorkspaceId::from_random([3; 16]);
            Workspace::new(id, "web".parse().expect("legal"), project, Timestamp::UNIX_EPOCH)
        };
        let owned = VariableSet { parent: Some(here), workspaces: [workspace(here).id].into(), ..set() };
        assert_eq!(owned.scope_for(&workspace(here)), Some(VariableSetScope::Workspace));
        assert_eq!(owned.scope_for(&workspace(there)), None, "also when a workspace moves away");
        assert_eq!(apply(r#"{"global":true}"#, &owned).expect_err("no").attribute, "global");
    }
}
