//! A workspace: a configuration's state, variables and history of runs.

use std::collections::BTreeSet;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use taco_tables::{Record, indexes, references};
use taco_words::graph::ContractPolicy;

use crate::attribute::{InvalidAttribute, nullable, nullable_id, shown};
use crate::engine::{Engine, UnknownEngine};
use crate::execution::{Execution, ExecutionPatch, OWN, SettingOverwrites};
use crate::graph::output_contract::asked_policy;
use crate::id::{AgentPoolId, ProjectId, StateVersionId, TagId, WorkspaceId};
use crate::lock::Lock;
use crate::name::{NameKey, TagKey, WorkspaceName};
use crate::organization::{Organization, set};
use crate::retention::RetentionPolicy;
use crate::ssh_key::SshKeyId;
use crate::tag::{TagBinding, Tags, tag_id, with_tags};
use crate::workspace_settings::{
    check_auto_destroy_duration, check_description, check_engine_version, check_trigger_pattern,
    check_working_directory,
};

/// Through what a workspace came to be.
#[derive(Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Debug)]
pub enum WorkspaceSource {
    #[serde(rename = "tfe-api")]
    Api,
    #[serde(rename = "tfe-ui")]
    Page,
    #[serde(rename = "terraform")]
    Terraform,
    #[serde(rename = "tfe-module")]
    Module,
}

/// The repository that a workspace follows.
#[derive(Clone, PartialEq, Eq, Default, Serialize, Deserialize, Debug)]
#[serde(rename_all = "kebab-case", default)]
pub struct VcsRepository {
    pub identifier: String,
    pub branch: String,
    pub ingress_submodules: bool,
    pub oauth_token_id: Option<String>,
    pub github_app_installation_id: Option<String>,
    pub tags_regex: Option<String>,
}

#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, Debug)]
pub struct Workspace {
    pub id: WorkspaceId,
    pub name: WorkspaceName,
    pub project: ProjectId,
    pub description: String,
    pub created_at: Timestamp,
    /// Time of the last change to its settings.
    pub updated_at: Timestamp,
    /// Its own setting; `None` where the project's counts.
    pub execution: Option<Execution>,
    /// Engine that plans and applies.
    #[serde(default)]
    pub engine: Engine,
    /// `latest`, a version or a constraint.
    pub terraform_version: String,
    pub working_directory: String,
    pub auto_apply: bool,
    pub auto_apply_run_trigger: bool,
    pub allow_destroy_plan: bool,
    pub assessments_enabled: bool,
    pub file_triggers_enabled: bool,
    pub queue_all_runs: bool,
    pub speculative_enabled: bool,
    pub structured_run_output_enabled: bool,
    pub trigger_prefixes: Vec<String>,
    pub trigger_patterns: Vec<String>,
    pub vcs_repository: Option<VcsRepository>,
    pub source: WorkspaceSource,
    pub source_name: Option<String>,
    pub source_url: Option<String>,
    pub migration_environment: Option<String>,
    pub auto_destroy_at: Option<Timestamp>,
    pub auto_destroy_activity_duration: Option<String>,
    pub inherits_project_auto_destroy: bool,
    /// Every run of the organization may read its state.
    pub global_remote_state: bool,
    /// Every run of the project may read its state.
    pub project_remote_state: bool,
    /// The runs of these may read its state.
    #[serde(default)]
    pub remote_state_consumers: BTreeSet<WorkspaceId>,
    #[serde(default)]
    pub tags: Tags,
    pub ssh_key: Option<SshKeyId>,
    pub lock: Option<Lock>,
    /// The id of the last lock of the `http` backend that was let go: its client may say so again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_released: Option<String>,
    /// The state that counts. A pending version never does.
    pub current_state_version: Option<StateVersionId>,
    /// Managed resources in the current state.
    #[serde(default)]
    pub resource_count: u64,
    /// Its own policy for plans that break outputs which others use; `None` where the project's counts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_contract: Option<ContractPolicy>,
    /// Its own policy for old data; `None` where the organization's counts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retention: Option<RetentionPolicy>,
}

impl Workspace {
    pub fn new(id: WorkspaceId, name: WorkspaceName, project: ProjectId, now: Timestamp) -> Self {
        Self {
            id,
            name,
            project,
            description: String::new(),
            created_at: now,
            updated_at: now,
            execution: None,
            engine: Engine::Terraform,
            terraform_version: "latest".to_owned(),
            working_directory: String::new(),
            auto_apply: false,
            auto_apply_run_trigger: false,
            allow_destroy_plan: true,
            assessments_enabled: false,
            file_triggers_enabled: true,
            queue_all_runs: false,
            speculative_enabled: true,
            structured_run_output_enabled: true,
            trigger_prefixes: Vec::new(),
            trigger_patterns: Vec::new(),
            vcs_repository: None,
            source: WorkspaceSource::Api,
            source_name: None,
            source_url: None,
            migration_environment: None,
            auto_destroy_at: None,
            auto_destroy_activity_duration: None,
            inherits_project_auto_destroy: true,
            global_remote_state: false,
            project_remote_state: false,
            remote_state_consumers: BTreeSet::new(),
            tags: Tags::new(),
            ssh_key: None,
            lock: None,
            last_released: None,
            current_state_version: None,
            resource_count: 0,
            output_contract: None,
            retention: None,
        }
    }

    /// True if runs of `consumer` may read this workspace's state and outputs.
    pub fn shares_state_with(&self, consumer: &Self) -> bool {
        self.id == consumer.id
            || self.global_remote_state
            || (self.project_remote_state && self.project == consumer.project)
            || self.remote_state_consumers.contains(&consumer.id)
    }
}

impl Record for Workspace {
    const KIND: &'static str = "workspace";
    const UNIQUE: &'static [&'static str] = &["name"];
    type Id = WorkspaceId;
    type Indexes = WorkspaceIndexes;

    fn id(&self) -> &WorkspaceId {
        &self.id
    }

    references! {
        "project": ProjectId, restrict(|workspaces, id| workspaces.by().project.under(id));
        "execution": AgentPoolId, unlink(|workspaces, id| workspaces.by().agent_pool.get(id), |workspace| {
            workspace.execution = None;
        });
        "ssh_key": SshKeyId, unlink(|workspaces, id| workspaces.by().ssh_key.get(id), |workspace| {
            workspace.ssh_key = None;
        });
        "remote_state_consumers": WorkspaceId, unlink(|workspaces, id| workspaces.by().consumer.get(id), |workspace| {
            workspace.remote_state_consumers.remove(id)
        });
        "current_state_version": StateVersionId, keep("states are deleted with their workspace");
    }
}

indexes! {
    pub struct WorkspaceIndexes for Workspace {
        /// The order of lists.
        pub name: NameKey, unique "name" => |workspace| [workspace.name.key()];
        /// Oldest first, those of one moment by name: nothing but a new name changes a workspace's place.
        pub age: (Timestamp, NameKey) => |workspace| [(workspace.created_at, workspace.name.key())];
        /// By name within a project.
        pub project: (ProjectId, NameKey) => |workspace| [(workspace.project, workspace.name.key())];
        /// By name within a tag.
        pub tag: (TagKey, NameKey) => |workspace| {
            workspace.tags.keys().map(|key| (key.clone(), workspace.name.key())).collect::<Vec<_>>()
        };
        pub tag_id: TagId => |workspace| {
            workspace.tags.keys().map(|key| tag_id(workspace.id.organization_prefix(), key)).collect::<Vec<_>>()
        };
        pub ssh_key: SshKeyId => |workspace| workspace.ssh_key;
        /// Workspaces whose state a consumer may read because it is on their list.
        pub consumer: WorkspaceId => |workspace| workspace.remote_state_consumers.clone();
        pub agent_pool: AgentPoolId => |workspace| workspace.execution.and_then(|execution| execution.agent_pool);
    }
}

/// VCS repository in a request.
#[derive(Clone, PartialEq, Eq, Default, Deserialize, Debug)]
#[serde(rename_all = "kebab-case", default)]
pub struct VcsRepositoryPatch {
    pub identifier: Option<String>,
    pub branch: Option<String>,
    pub ingress_submodules: Option<bool>,
    pub oauth_token_id: Option<String>,
    pub github_app_installation_id: Option<String>,
    pub tags_regex: Option<String>,
}

/// The attributes of a request that makes or changes a workspace, spelled as on the wire.
#[derive(Clone, Default, Deserialize, Debug)]
#[serde(rename_all = "kebab-case", default)]
pub struct WorkspacePatch {
    pub name: Option<String>,
    #[serde(deserialize_with = "nullable")]
    pub description: Option<Option<String>>,
    pub execution_mode: Option<String>,
    /// The old name of `execution-mode`: true is remote, false is local.
    pub operations: Option<bool>,
    #[serde(deserialize_with = "nullable_id")]
    pub agent_pool_id: Option<Option<AgentPoolId>>,
    pub setting_overwrites: Option<SettingOverwrites>,
    /// `terraform` or `tofu`; Terraform Cloud has no such setting.
    #[serde(rename = "taco-engine")]
    pub engine: Option<String>,
    pub terraform_version: Option<String>,
    #[serde(deserialize_with = "nullable")]
    pub working_directory: Option<Option<String>>,
    pub auto_apply: Option<bool>,
    pub auto_apply_run_trigger: Option<bool>,
    pub allow_destroy_plan: Option<bool>,
    pub assessments_enabled: Option<bool>,
    pub file_triggers_enabled: Option<bool>,
    pub queue_all_runs: Option<bool>,
    pub speculative_enabled: Option<bool>,
    pub structured_run_output_enabled: Option<bool>,
    #[serde(deserialize_with = "nullable")]
    pub trigger_prefixes: Option<Option<Vec<String>>>,
    #[serde(deserialize_with = "nullable")]
    pub trigger_patterns: Option<Option<Vec<String>>>,
    #[serde(deserialize_with = "nullable")]
    pub vcs_repo: Option<Option<VcsRepositoryPatch>>,
    #[serde(deserialize_with = "nullable")]
    pub source_name: Option<Option<String>>,
    #[serde(deserialize_with = "nullable")]
    pub source_url: Option<Option<String>>,
    #[serde(deserialize_with = "nullable")]
    pub migration_environment: Option<Option<String>>,
    #[serde(deserialize_with = "nullable")]
    pub auto_destroy_at: Option<Option<Timestamp>>,
    #[serde(deserialize_with = "nullable")]
    pub auto_destroy_activity_duration: Option<Option<String>>,
    pub inherits_project_auto_destroy: Option<bool>,
    pub global_remote_state: Option<bool>,
    pub project_remote_state: Option<bool>,
    /// `off`, `warn` or `stop`; null where the project's policy counts.
    #[serde(rename = "taco-output-contract", deserialize_with = "nullable")]
    pub output_contract: Option<Option<String>>,
    /// On the wire this is a relationship.
    #[serde(skip)]
    pub project: Option<ProjectId>,
    /// On the wire this is a relationship. It replaces all tags.
    #[serde(skip)]
    pub tag_bindings: Option<Vec<TagBinding>>,
}

impl WorkspacePatch {
    /// The workspace after the request. `inherited` is what its project says about execution. Whether its name is free
    /// and its project exists, the caller finds out.
    pub fn apply(
        &self,
        workspace: &Workspace,
        inherited: Execution,
        now: Timestamp,
    ) -> Result<Workspace, InvalidAttribute> {
        let mut changed = workspace.clone();
        if let Some(name) = &self.name {
            changed.name = name.parse()?;
        }
        if let Some(description) = &self.description {
            changed.description = check_description(description.as_deref().unwrap_or_default())?;
        }
        set(&mut changed.project, self.project);
        changed.execution = self.execution(changed.execution, inherited)?;
        if let Some(engine) = &self.engine {
            let unknown = |unknown: UnknownEngine| {
                InvalidAttribute::new("taco-engine", format!("{unknown}; it is {}", shown(engine)))
            };
            changed.engine = engine.parse().map_err(unknown)?;
        }
        if let Some(version) = &self.terraform_version {
            check_engine_version(version)?;
            changed.terraform_version = version.clone();
        }
        if let Some(directory) = &self.working_directory {
            let directory = directory.clone().unwrap_or_default();
            check_working_directory(&directory)?;
            changed.working_directory = directory;
        }
        self.apply_triggers(&mut changed)?;
        self.apply_repository(&mut changed)?;
        self.apply_auto_destroy(&mut changed)?;
        if let Some(bindings) = &self.tag_bindings {
            changed.tags = with_tags(&Tags::new(), bindings)?;
        }
        set(&mut changed.auto_apply, self.auto_apply);
        set(&mut changed.auto_apply_run_trigger, self.auto_apply_run_trigger);
        set(&mut changed.allow_destroy_plan, self.allow_destroy_plan);
        set(&mut changed.assessments_enabled, self.assessments_enabled);
        set(&mut changed.queue_all_runs, self.queue_all_runs);
        set(&mut changed.speculative_enabled, self.speculative_enabled);
        set(&mut changed.structured_run_output_enabled, self.structured_run_output_enabled);
        set(&mut changed.source_name, self.source_name.clone());
        set(&mut changed.source_url, self.source_url.clone());
        set(&mut changed.migration_environment, self.migration_environment.clone());
        set(&mut changed.global_remote_state, self.global_remote_state);
        set(&mut changed.project_remote_state, self.project_remote_state);
        set(&mut changed.output_contract, asked_policy(self.output_contract.as_ref())?);
        if changed != *workspace {
            changed.updated_at = now;
        }
        Ok(changed)
    }

    fn execution(&self, own: Option<Execution>, inherited: Execution) -> Result<Option<Execution>, InvalidAttribute> {
        if self.operations.is_some() && self.execution_mode.is_some() {
            let detail = "Operations is the old word for execution-mode: send one of them, not both";
            return Err(InvalidAttribute::new("operations", detail));
        }
        let from_operations = self.operations.map(|remote| if remote { "remote" } else { "local" });
        let patch = ExecutionPatch {
            mode: self.execution_mode.as_deref().or(from_operations),
            agent_pool: self.agent_pool_id,
            overwrites: self.setting_overwrites.unwrap_or_default(),
        };
        patch.apply(own, inherited, &OWN)
    }

    fn apply_triggers(&self, changed: &mut Workspace) -> Result<(), InvalidAttribute> {
        set(&mut changed.file_triggers_enabled, self.file_triggers_enabled);
        let asked = |list: &Option<Option<Vec<String>>>| list.clone().map(Option::unwrap_or_default);
        let (prefixes, patterns) = (asked(&self.trigger_prefixes), asked(&self.trigger_patterns));
        for pattern in patterns.iter().flatten() {
            check_trigger_pattern(pattern)?;
        }
        let names_some = |list: &Option<Vec<String>>| list.as_ref().is_some_and(|list| !list.is_empty());
        match (names_some(&prefixes), names_some(&patterns)) {
            (true, true) => {
                let detail = "Trigger patterns and trigger prefixes cannot be used together: send one of them";
                return Err(InvalidAttribute::new("trigger-patterns", detail));
            }
            // Asking for one way ends the other.
            (true, false) => changed.trigger_patterns.clear(),
            (false, true) => changed.trigger_prefixes.clear(),
            (false, false) => {}
        }
        set(&mut changed.trigger_prefixes, prefixes);
        set(&mut changed.trigger_patterns, patterns);
        Ok(())
    }

    fn apply_repository(&self, changed: &mut Workspace) -> Result<(), InvalidAttribute> {
        match &self.vcs_repo {
            None => {}
            Some(None) => changed.vcs_repository = None,
            Some(Some(asked)) => {
                let mut repository = changed.vcs_repository.take().unwrap_or_default();
                set(&mut repository.identifier, asked.identifier.clone());
                set(&mut repository.branch, asked.branch.clone());
                set(&mut repository.ingress_submodules, asked.ingress_submodules);
                set(&mut repository.oauth_token_id, asked.oauth_token_id.clone().map(Some));
                set(&mut repository.github_app_installation_id, asked.github_app_installation_id.clone().map(Some));
                set(&mut repository.tags_regex, asked.tags_regex.clone().map(Some));
                if repository.identifier.is_empty() {
                    return Err(InvalidAttribute::new("vcs-repo", "Vcs repo identifier can't be blank"));
                }
                changed.vcs_repository = Some(repository);
            }
        }
        Ok(())
    }

    fn apply_auto_destroy(&self, changed: &mut Workspace) -> Result<(), InvalidAttribute> {
        if let Some(Some(duration)) = &self.auto_destroy_activity_duration {
            check_auto_destroy_duration(duration)?;
        }
        set(&mut changed.auto_destroy_at, self.auto_destroy_at);
        set(&mut changed.auto_destroy_activity_duration, self.auto_destroy_activity_duration.clone());
        set(&mut changed.inherits_project_auto_destroy, self.inherits_project_auto_destroy);
        Ok(())
    }
}

/// Reason why a workspace is not deleted by `safe-delete`. Clients look for "locked"; any other text means that it
/// still manages resources.
#[derive(Clone, PartialEq, Eq, thiserror::Error, Debug)]
pub enum NotSafeToDelete {
    #[error("The workspace is locked and cannot be deleted: it {0}")]
    Locked(String),
    #[error("The workspace still manages {0} resources: destroy them first, or force-delete the workspace")]
    ManagesResources(u64),
}

/// Checks whether the workspace is unlocked and manages no resources.
pub fn check_safe_delete(workspace: &Workspace) -> Result<(), NotSafeToDelete> {
    match &workspace.lock {
        Some(lock) => Err(NotSafeToDelete::Locked(lock.in_words())),
        None if workspace.resource_count > 0 => Err(NotSafeToDelete::ManagesResources(workspace.resource_count)),
        None => Ok(()),
    }
}

/// Refusal to delete this workspace, for someone who may delete workspaces.
#[derive(Clone, Copy, PartialEq, Eq, thiserror::Error, Debug)]
#[error(
    "The workspace still manages {0} resources: only an owner of the organization may delete it, unless the \
     organization's settings let others do so; or destroy the resources first"
)]
pub struct OwnerRequired(pub u64);

/// Checks whether a workspace may be deleted that still manages resources. Owners may, and others if the organization
/// lets them.
pub fn check_forced_delete(
    workspace: &Workspace,
    organization: Option<&Organization>,
    by_owner: bool,
) -> Result<(), OwnerRequired> {
    let others_may = organization.is_some_and(|organization| organization.allow_force_delete_workspaces);
    match workspace.resource_count {
        count if count > 0 && !by_owner && !others_may => Err(OwnerRequired(count)),
        _ => Ok(()),
    }
}

/// Refuses a list of consumers that names the workspace itself.
pub fn check_consumers(workspace: &Workspace, consumers: &BTreeSet<WorkspaceId>) -> Result<(), InvalidAttribute> {
    if consumers.contains(&workspace.id) {
        let detail = format!("A workspace reads its own state anyway; leave out {}", shown(&workspace.id.to_string()));
        return Err(InvalidAttribute::new("remote-state-consumers", detail));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::author::Author;

    fn workspace(number: u8) -> Workspace {
        let project = ProjectId::from_random([1; 16]);
        Workspace::new(
            WorkspaceId::from_random([number; 16]),
            "web".parse().expect("legal"),
            project,
            Timestamp::UNIX_EPOCH,
        )
    }

    fn later() -> Timestamp {
        "2026-01-01T00:00:00Z".parse().expect("a timestamp")
    }

    fn apply(json: &str, workspace: &Workspace) -> Result<Workspace, InvalidAttribute> {
        serde_json::from_str::<WorkspacePatch>(json).expect(json).apply(workspace, Execution::REMOTE, later())
    }

    #[test]
    fn a_request_that_changes_nothing_leaves_no_trace() {
        let before = workspace(1);
        assert_eq!(apply("{}", &before), Ok(before.clone()));
        assert_eq!(apply(r#"{"name":"web","auto-apply":false}"#, &before), Ok(before));
    }

    #[test]
    fn a_sparse_request_changes_what_it_names() {
        let json = r#"{
            "name": "renamed", "allow-destroy-plan": false, "auto-apply": true, "auto-destroy-at": "2025-01-01T00:00:00Z",
            "file-triggers-enabled": false, "operations": false, "queue-all-runs": true, "speculative-enabled": false,
            "description": "updated", "structured-run-output-enabled": false, "terraform-version": "0.11.1",
            "trigger-prefixes": ["/modules", "/shared"], "working-directory": "baz/", "an-attribute-of-tomorrow": 1
        }"#;
        let after = apply(json, &workspace(1)).expect("legal");
        assert_eq!(after.name.as_str(), "renamed");
        assert_eq!(after.execution, Some(Execution::LOCAL));
        assert_eq!(after.trigger_prefixes, ["/modules", "/shared"]);
        assert_eq!(after.updated_at, later());
        assert!(after.auto_destroy_at.is_some());
        let after =
            apply(r#"{"auto-destroy-at": null, "description": null, "trigger-prefixes": []}"#, &after).expect("legal");
        assert_eq!((after.auto_destroy_at, after.description.as_str()), (None, ""));
        assert!(after.trigger_prefixes.is_empty());
        assert_eq!(after.terraform_version, "0.11.1");
    }

    #[test]
    fn illegal_settings_are_refused_by_name() {
        for (json, attribute) in [
            (r#"{"name":"a b"}"#, "name"),
            (r#"{"execution-mode":"remote","operations":true}"#, "operations"),
            (r#"{"execution-mode":"agent"}"#, "agent-pool-id"),
            (r#"{"terraform-version":"nonexisting"}"#, "terraform-version"),
            (r#"{"working-directory":"../x"}"#, "working-directory"),
            (r#"{"trigger-patterns":["["]}"#, "trigger-patterns"),
            (r#"{"trigger-patterns":["/a"],"trigger-prefixes":["/b"]}"#, "trigger-patterns"),
            (r#"{"auto-destroy-activity-duration":"1w"}"#, "auto-destroy-activity-duration"),
            (r#"{"vcs-repo":{"branch":"main"}}"#, "vcs-repo"),
        ] {
            assert_eq!(apply(json, &workspace(1)).expect_err(json).attribute, attribute, "{json}");
        }
    }

    #[test]
    fn patterns_and_prefixes_take_each_others_place() {
        let with_prefixes = apply(r#"{"trigger-prefixes":["/a"]}"#, &workspace(1)).expect("legal");
        let with_patterns =
            apply(r#"{"trigger-prefixes":[],"trigger-patterns":["/b/**"]}"#, &with_prefixes).expect("legal");
        assert!(with_patterns.trigger_prefixes.is_empty());
        assert_eq!(with_patterns.trigger_patterns, ["/b/**"]);
    }

    #[test]
    fn a_repository_can_be_set_changed_and_removed() {
        let followed =
            apply(r#"{"vcs-repo":{"identifier":"acme/web","oauth-token-id":"ot-1"}}"#, &workspace(1)).expect("legal");
        let moved = apply(r#"{"vcs-repo":{"branch":"main"}}"#, &followed).expect("legal");
        let repository = moved.vcs_repository.as_ref().expect("a repository");
        assert_eq!((repository.identifier.as_str(), repository.branch.as_str()), ("acme/web", "main"));
        assert_eq!(apply(r#"{"vcs-repo":null}"#, &moved).expect("legal").vcs_repository, None);
    }

    #[test]
    fn state_is_shared_with_itself_the_listed_the_project_or_all() {
        let (producer, consumer) = (workspace(1), workspace(2));
        let elsewhere = Workspace { project: ProjectId::from_random([9; 16]), ..workspace(3) };
        assert!(producer.shares_state_with(&producer));
        assert!(!producer.shares_state_with(&consumer));
        let listed = Workspace { remote_state_consumers: [consumer.id].into(), ..producer.clone() };
        assert!(listed.shares_state_with(&consumer) && !listed.shares_state_with(&elsewhere));
        let project = Workspace { project_remote_state: true, ..producer.clone() };
        assert!(project.shares_state_with(&consumer) && !project.shares_state_with(&elsewhere));
        let global = Workspace { global_remote_state: true, ..producer };
        assert!(global.shares_state_with(&elsewhere));
    }

    #[test]
    fn what_still_manages_resources_is_deleted_by_owners_or_where_the_organization_lets_others() {
        let empty = workspace(1);
        let full = Workspace { resource_count: 3, ..empty.clone() };
        assert_eq!(check_forced_delete(&empty, None, false), Ok(()));
        assert_eq!(check_forced_delete(&full, None, true), Ok(()));
        assert_eq!(check_forced_delete(&full, None, false), Err(OwnerRequired(3)));
        let id = crate::id::OrganizationId::from_random([1; 16]);
        let mut organization = Organization::new(id, "a@acme.test".parse().expect("an address"), later());
        for (others_may, expected) in [(false, Err(OwnerRequired(3))), (true, Ok(()))] {
            organization.allow_force_delete_workspaces = others_may;
            assert_eq!(check_forced_delete(&full, Some(&organization), false), expected);
        }
    }

    #[test]
    fn a_workspace_is_deleted_safely_when_it_is_free_and_empty() {
        let empty = workspace(1);
        assert_eq!(check_safe_delete(&empty), Ok(()));
        let full = Workspace { resource_count: 3, ..empty.clone() };
        assert!(check_safe_delete(&full).expect_err("full").to_string().contains("still manages 3 resources"));
        let lock = Lock {
            holder: Author::Taco,
            holder_name: "taco".into(),
            since: later(),
            reason: None,
            from: None,
            http: None,
        };
        let locked = Workspace { lock: Some(lock), ..empty };
        assert!(check_safe_delete(&locked).expect_err("locked").to_string().contains("locked"));
    }
}
