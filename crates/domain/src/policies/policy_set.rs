//! Sets of policies, and the workspaces that they apply to.

use std::collections::BTreeSet;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use taco_tables::{Record, indexes, references};
use taco_words::id_kinds;

use crate::attribute::{InvalidAttribute, nullable, shown};
use crate::author::Author;
use crate::id::{ProjectId, WorkspaceId};
use crate::name::{NameKey, name_kinds};
use crate::organization::set;
use crate::policy::{PolicyId, check_policy_name};
use crate::policy_set_version::PolicySetVersionId;
use crate::policy_words::{PolicyKind, check_text};
use crate::workspace::Workspace;

const MAX_UPDATE_PATTERNS: usize = 100;
const LONGEST_PATTERN: usize = 300;

id_kinds! {
    /// Policies that apply to the same workspaces.
    PolicySetId = "polset";
}

name_kinds! {
    PolicySetName: |name| check_policy_name(name);
}

/// Policies that apply to the same workspaces: those that it names, or those of its current version.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, Debug)]
pub struct PolicySet {
    pub id: PolicySetId,
    pub name: PolicySetName,
    #[serde(default)]
    pub description: String,
    pub kind: PolicyKind,
    /// It applies to all workspaces, regardless of those it names.
    #[serde(default)]
    pub global: bool,
    /// Somebody who may can let a run go on that it has stopped.
    #[serde(default)]
    pub overridable: bool,
    /// Asked for by Sentinel's sets; those of OPA are always evaluated by agents.
    #[serde(default)]
    pub agent_enabled: bool,
    /// Version of the program that evaluates it; `None` for whatever is newest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_version: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub policies_path: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub update_patterns: Vec<String>,
    #[serde(default)]
    pub policies: BTreeSet<PolicyId>,
    #[serde(default)]
    pub workspaces: BTreeSet<WorkspaceId>,
    #[serde(default)]
    pub projects: BTreeSet<ProjectId>,
    #[serde(default)]
    pub workspace_exclusions: BTreeSet<WorkspaceId>,
    #[serde(default)]
    pub project_exclusions: BTreeSet<ProjectId>,
    /// The version that was uploaded last and is good.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub current_version: Option<PolicySetVersionId>,
    /// The version that was announced last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub newest_version: Option<PolicySetVersionId>,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
    pub created_by: Author,
}

impl PolicySet {
    pub fn new(id: PolicySetId, name: PolicySetName, kind: PolicyKind, by: Author, now: Timestamp) -> Self {
        Self {
            id,
            name,
            description: String::new(),
            kind,
            global: false,
            overridable: false,
            agent_enabled: false,
            tool_version: None,
            policies_path: None,
            update_patterns: Vec::new(),
            policies: BTreeSet::new(),
            workspaces: BTreeSet::new(),
            projects: BTreeSet::new(),
            workspace_exclusions: BTreeSet::new(),
            project_exclusions: BTreeSet::new(),
            current_version: None,
            newest_version: None,
            created_at: now,
            updated_at: now,
            created_by: by,
        }
    }

    /// True if it applies to the runs of a workspace. What is excluded stays so, whatever else names it.
    pub fn applies_to(&self, workspace: &Workspace) -> bool {
        let is_excluded = self.workspace_exclusions.contains(&workspace.id)
            || self.project_exclusions.contains(&workspace.project) && !self.workspaces.contains(&workspace.id);
        let is_included =
            self.global || self.projects.contains(&workspace.project) || self.workspaces.contains(&workspace.id);
        is_included && !is_excluded
    }
}

impl Record for PolicySet {
    const KIND: &'static str = "policy-set";
    const NOUN: &'static str = "policy set";
    const UNIQUE: &'static [&'static str] = &["name"];
    const CONCERNS_EVERYTHING: bool = true;
    type Id = PolicySetId;
    type Indexes = PolicySetIndexes;

    fn id(&self) -> &PolicySetId {
        &self.id
    }

    references! {
        "policies": PolicyId, unlink(|sets, id| sets.by().policy.get(id), |set| set.policies.remove(id));
        "workspaces": WorkspaceId, unlink(|sets, id| sets.by().workspace.get(id), |set| set.workspaces.remove(id));
        "projects": ProjectId, unlink(|sets, id| sets.by().project.get(id), |set| set.projects.remove(id));
        "workspace_exclusions": WorkspaceId,
            unlink(|sets, id| sets.by().workspace_exclusion.get(id), |set| set.workspace_exclusions.remove(id));
        "project_exclusions": ProjectId,
            unlink(|sets, id| sets.by().project_exclusion.get(id), |set| set.project_exclusions.remove(id));
        "current_version": PolicySetVersionId, keep("versions are deleted with their set");
        "newest_version": PolicySetVersionId, keep("versions are deleted with their set");
    }
}

indexes! {
    pub struct PolicySetIndexes for PolicySet {
        /// The order of lists.
        pub name: NameKey, unique "name" => |set| [set.name.key()];
        pub policy: PolicyId => |set| set.policies.clone();
        pub workspace: WorkspaceId => |set| set.workspaces.clone();
        pub project: ProjectId => |set| set.projects.clone();
        pub workspace_exclusion: WorkspaceId => |set| set.workspace_exclusions.clone();
        pub project_exclusion: ProjectId => |set| set.project_exclusions.clone();
    }
}

/// The attributes of a request that makes or changes a policy set, spelled as on the wire.
#[derive(Clone, Default, Deserialize, Debug)]
#[serde(rename_all = "kebab-case", default)]
pub struct PolicySetPatch {
    pub name: Option<String>,
    #[serde(deserialize_with = "nullable")]
    pub description: Option<Option<String>>,
    pub kind: Option<String>,
    pub global: Option<bool>,
    #[serde(deserialize_with = "nullable")]
    pub overridable: Option<Option<bool>>,
    pub agent_enabled: Option<bool>,
    #[serde(deserialize_with = "nullable")]
    pub policy_tool_version: Option<Option<String>>,
    #[serde(deserialize_with = "nullable")]
    pub policies_path: Option<Option<String>>,
    #[serde(deserialize_with = "nullable")]
    pub policy_update_patterns: Option<Option<Vec<String>>>,
    #[serde(deserialize_with = "nullable")]
    pub vcs_repo: Option<Option<serde_json::Value>>,
    #[serde(skip)]
    pub targets: PolicySetTargets,
}

/// What a set has and applies to, as far as a request names it. On the wire these are relationships, and each replaces what
/// was there.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct PolicySetTargets {
    pub policies: Option<BTreeSet<PolicyId>>,
    pub workspaces: Option<BTreeSet<WorkspaceId>>,
    pub projects: Option<BTreeSet<ProjectId>>,
    pub workspace_exclusions: Option<BTreeSet<WorkspaceId>>,
    pub project_exclusions: Option<BTreeSet<ProjectId>>,
}

impl PolicySetPatch {
    /// The kind that the request names; Terraform Cloud's own without one.
    pub fn kind(&self) -> Result<PolicyKind, InvalidAttribute> {
        self.kind.as_deref().filter(|kind| !kind.is_empty()).map_or(Ok(PolicyKind::Sentinel), str::parse)
    }

    /// The set after the request. Whether its name is free and what it names exists, the caller finds out.
    pub fn apply(&self, before: &PolicySet, now: Timestamp) -> Result<PolicySet, InvalidAttribute> {
        let mut changed = before.clone();
        if let Some(name) = &self.name {
            changed.name = name.parse()?;
        }
        if let Some(description) = &self.description {
            changed.description = check_text(description.as_deref().unwrap_or_default())?;
        }
        if self.vcs_repo.iter().flatten().any(|repository| !repository.is_null()) {
            let detail = "Policy sets are not read from VCS repositories yet: upload versions, with taco policy-set upload \
                          or through the API";
            return Err(InvalidAttribute::new("vcs-repo", detail));
        }
        set(&mut changed.global, self.global);
        set(&mut changed.overridable, self.overridable.flatten());
        set(&mut changed.agent_enabled, self.agent_enabled);
        if let Some(version) = &self.policy_tool_version {
            let version =
                version.as_deref().map(str::trim).filter(|version| !version.is_empty() && *version != "latest");
            changed.tool_version = version.map(|version| check_version(version, before.kind)).transpose()?;
        }
        if let Some(path) = &self.policies_path {
            changed.policies_path = path.clone().filter(|path| !path.is_empty()).map(check_pattern).transpose()?;
        }
        if let Some(patterns) = &self.policy_update_patterns {
            let patterns = patterns.clone().unwrap_or_default();
            if patterns.len() > MAX_UPDATE_PATTERNS {
                let detail =
                    format!("There may be at most {MAX_UPDATE_PATTERNS} patterns; there are {}", patterns.len());
                return Err(InvalidAttribute::new("policy-update-patterns", detail));
            }
            changed.update_patterns = patterns.into_iter().map(check_pattern).collect::<Result<_, _>>()?;
        }
        let targets = self.targets.clone();
        set(&mut changed.policies, targets.policies);
        set(&mut changed.workspaces, targets.workspaces);
        set(&mut changed.projects, targets.projects);
        set(&mut changed.workspace_exclusions, targets.workspace_exclusions);
        set(&mut changed.project_exclusions, targets.project_exclusions);
        if changed != *before {
            changed.updated_at = now;
        }
        Ok(changed)
    }
}

fn check_pattern(text: String) -> Result<String, InvalidAttribute> {
    if text.len() > LONGEST_PATTERN || text.chars().any(char::is_control) {
        let detail = format!("A path or pattern has at most {LONGEST_PATTERN} bytes; one is {}", shown(&text));
        return Err(InvalidAttribute::new("policy-update-patterns", detail));
    }
    Ok(text)
}

/// An exact version of the program. Of OPA, only those count that read Rego of before and after 1.0.
fn check_version(version: &str, kind: PolicyKind) -> Result<String, InvalidAttribute> {
    let refuse = |detail: String| Err(InvalidAttribute::new("policy-tool-version", detail));
    let plain = |text: &str| text.len() <= 60 && text.chars().all(|c| c.is_ascii_alphanumeric() || ".-+".contains(c));
    if !plain(version) {
        return refuse(format!("Policy tool version must be a version such as 1.22.0; it is {}", shown(version)));
    }
    if kind == PolicyKind::Opa {
        let version = version.trim_start_matches('v');
        let numbers: Option<Vec<u64>> = version.split('.').map(|number| number.parse().ok()).collect();
        match numbers.as_deref() {
            Some([major, minor, _]) if (*major, *minor) >= MIN_OPA_VERSION => return Ok(version.to_owned()),
            _ => {
                let detail = format!(
                    "Policy tool version must be a release of OPA, {}.{}.0 or newer, such as 1.22.0, or latest; it is {}",
                    MIN_OPA_VERSION.0,
                    MIN_OPA_VERSION.1,
                    shown(version)
                );
                return refuse(detail);
            }
        }
    }
    Ok(version.to_owned())
}

const MIN_OPA_VERSION: (u64, u64) = (1, 4);

#[cfg(test)]
mod tests {
    use super::*;

    fn set() -> PolicySet {
        let id = PolicySetId::from_random([1; 16]);
        PolicySet::new(id, "all".parse().expect("legal"), PolicyKind::Opa, Author::Taco, Timestamp::UNIX_EPOCH)
    }

    #[test]
    fn a_set_applies_to_what_it_names_and_not_to_what_it_excludes() {
        let (here, there) = (ProjectId::from_random([1; 16]), ProjectId::from_random([2; 16]));
        let workspace = |number, project| {
            let id = WorkspaceId::from_random([number; 16]);
            Workspace::new(id, "web".parse().expect("legal"), project, Timestamp::UNIX_EPOCH)
        };
        let (web, db) = (workspace(3, here), workspace(4, there));
        assert!(!set().applies_to(&web));
        let named = PolicySet { workspaces: [web.id].into(), ..set() };
        assert!(named.applies_to(&web) && !named.applies_to(&db));
        let of_project = PolicySet { projects: [there].into(), ..set() };
        assert!(!of_project.applies_to(&web) && of_project.applies_to(&db));
        let global = PolicySet { global: true, ..set() };
        assert!(global.applies_to(&web) && global.applies_to(&db));
        let without = PolicySet { workspace_exclusions: [web.id].into(), ..global.clone() };
        assert!(!without.applies_to(&web) && without.applies_to(&db));
        let without = PolicySet { project_exclusions: [here].into(), ..global };
        assert!(!without.applies_to(&web) && without.applies_to(&db));
        let nonetheless = PolicySet { workspaces: [web.id].into(), ..without };
        assert!(nonetheless.applies_to(&web), "a workspace is named more closely than its project");
    }

    #[test]
    fn versions_of_opa_read_both_syntaxes() {
        let version = |text: &str| check_version(text, PolicyKind::Opa);
        assert_eq!(version("1.4.0").as_deref(), Ok("1.4.0"));
        assert_eq!(version("v1.22.0").as_deref(), Ok("1.22.0"));
        for refused in ["1.3.9", "0.68.0", "1.22", "newest", "1.2.3; rm", "../1.9.0"] {
            assert_eq!(version(refused).expect_err(refused).attribute, "policy-tool-version");
        }
    }
}
