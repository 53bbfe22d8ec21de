//! State of an organization, built from its ledger.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use taco_tables::tables;

use crate::agent::Agent;
use crate::agent_pool::AgentPool;
use crate::author::Author;
use crate::binding::Binding;
use crate::comment::Comment;
use crate::configuration_version::ConfigurationVersion;
use crate::execution::Execution;
use crate::gpg_key::GpgKey;
use crate::graph::consumption::Consumption;
use crate::graph::dependency::Dependency;
use crate::graph::output_commit::{OutputCommit, WorkspaceOutputs};
use crate::history::{HistorySegment, HistorySweep, RestoredBundle, WorkspaceHistory};
use crate::id::{ProjectId, TagId, TeamId, UserId, WorkspaceId};
use crate::idempotency_record::IdempotencyRecord;
use crate::membership::Membership;
use crate::module_version::ModuleVersion;
use crate::name::{NameKey, TagKey};
use crate::notifications::delivery::NotificationDelivery;
use crate::notifications::notification_configuration::NotificationConfiguration;
use crate::oauth_client::OauthClient;
use crate::oauth_token::OauthToken;
use crate::organization::Organization;
use crate::policy::Policy;
use crate::policy_parameter::PolicyParameter;
use crate::policy_set::PolicySet;
use crate::policy_set_version::PolicySetVersion;
use crate::project::Project;
use crate::provider_platform::ProviderPlatform;
use crate::provider_version::ProviderVersion;
use crate::registry_module::RegistryModule;
use crate::registry_provider::RegistryProvider;
use crate::reserved_tag_key::ReservedTagKey;
use crate::run::Run;
use crate::run_tasks::run_task::RunTask;
use crate::run_tasks::workspace_run_task::WorkspaceRunTask;
use crate::run_trigger::RunTrigger;
use crate::ssh_key::SshKey;
use crate::state_version::{StateOrigin, StateVersion, StateVersionStatus};
use crate::tag::tag_id;
use crate::team::Team;
use crate::team_access::{TeamProject, TeamWorkspace};
use crate::token::Token;
use crate::variable::{Variable, VariableOwner};
use crate::variable_set::VariableSet;
use crate::walks::walk::{Walk, WalkNode};
use crate::workspace::Workspace;

tables! {
    /// State of an organization, built from its ledger.
    pub struct OrganizationState {
        /// One row: see [`OrganizationState::organization`].
        pub organizations: Organization;
        pub projects: Project;
        pub workspaces: Workspace;
        pub state_versions: StateVersion;
        pub configuration_versions: ConfigurationVersion;
        pub runs: Run;
        pub comments: Comment;
        pub run_triggers: RunTrigger;
        pub ssh_keys: SshKey;
        pub agent_pools: AgentPool;
        pub agents: Agent;
        pub teams: Team;
        pub memberships: Membership;
        pub team_workspaces: TeamWorkspace;
        pub team_projects: TeamProject;
        /// Tokens of the organization, its teams and its agent pools.
        pub tokens: Token;
        /// Variables of workspaces and of variable sets.
        pub variables: Variable;
        pub variable_sets: VariableSet;
        pub bindings: Binding;
        pub idempotency_records: IdempotencyRecord;
        /// Segments with finished runs that left memory.
        pub history_segments: HistorySegment;
        pub history_sweeps: HistorySweep;
        pub restored_bundles: RestoredBundle;
        pub workspace_histories: WorkspaceHistory;
        pub output_commits: OutputCommit;
        /// Outputs of workspaces' current states.
        pub workspace_outputs: WorkspaceOutputs;
        pub dependencies: Dependency;
        pub consumptions: Consumption;
        pub walks: Walk;
        pub walk_nodes: WalkNode;
        pub reserved_tag_keys: ReservedTagKey;
        pub oauth_clients: OauthClient;
        pub oauth_tokens: OauthToken;
        pub registry_modules: RegistryModule;
        pub module_versions: ModuleVersion;
        pub registry_providers: RegistryProvider;
        pub provider_versions: ProviderVersion;
        pub provider_platforms: ProviderPlatform;
        pub gpg_keys: GpgKey;
        pub policies: Policy;
        pub policy_sets: PolicySet;
        pub policy_set_versions: PolicySetVersion;
        pub policy_parameters: PolicyParameter;
        pub notification_configurations: NotificationConfiguration;
        /// What is to be told, and has not been yet.
        pub notification_deliveries: NotificationDelivery;
        pub run_tasks: RunTask;
        pub workspace_run_tasks: WorkspaceRunTask;
    }
}

/// A tag and how many workspaces carry it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TagUse {
    pub id: TagId,
    pub key: TagKey,
    pub workspaces: usize,
}

impl OrganizationState {
    /// The organization itself; `None` before the ledger's first commit.
    pub fn organization(&self) -> Option<&Organization> {
        self.organizations.iter().next()
    }

    /// True for the team of the owners, who may do everything.
    pub fn is_owners(&self, team: TeamId) -> bool {
        self.organization().is_some_and(|organization| organization.owners_team == team)
    }

    /// The membership of a user who belongs to the organization; an invitation is none.
    pub fn membership_of(&self, user: &UserId) -> Option<&Membership> {
        let membership = self.memberships.by().user.first(user);
        membership.filter(|membership| membership.is_in_effect())
    }

    /// The project of exactly this name.
    pub fn project_named(&self, name: &str) -> Option<&Project> {
        self.projects.by().name.first(&NameKey::of(name)).filter(|project| project.name.as_str() == name)
    }

    /// The workspace of exactly this name.
    pub fn workspace_named(&self, name: &str) -> Option<&Workspace> {
        self.workspaces.by().name.first(&NameKey::of(name)).filter(|workspace| workspace.name.as_str() == name)
    }

    /// All workspaces by name.
    pub fn workspaces_by_name(&self) -> impl DoubleEndedIterator<Item = &Workspace> {
        self.workspaces.by().name.iter()
    }

    /// All workspaces, oldest first.
    pub fn workspaces_by_age(&self) -> impl DoubleEndedIterator<Item = &Workspace> {
        self.workspaces.by().age.iter()
    }

    /// A project's workspaces by name.
    pub fn workspaces_in(&self, project: ProjectId) -> impl Iterator<Item = &Workspace> {
        self.workspaces.by().project.under(&project)
    }

    /// The workspaces that carry a tag, by name.
    pub fn workspaces_tagged(&self, key: &TagKey) -> impl Iterator<Item = &Workspace> {
        self.workspaces.by().tag.under(key)
    }

    /// The tags that these workspaces carry, by key.
    pub fn tags_of(&self, mut wanted: impl FnMut(&WorkspaceId) -> bool) -> Vec<TagUse> {
        let mut tags: BTreeMap<&TagKey, TagUse> = BTreeMap::new();
        // One with two tags comes twice.
        let mut seen = BTreeSet::new();
        for workspace in self.workspaces.by().tag.iter() {
            if !seen.insert(workspace.id) || !wanted(&workspace.id) {
                continue;
            }
            for key in workspace.tags.keys() {
                let first =
                    || TagUse { id: tag_id(workspace.id.organization_prefix(), key), key: key.clone(), workspaces: 0 };
                tags.entry(key).or_insert_with(first).workspaces += 1;
            }
        }
        tags.into_values().collect()
    }

    /// The key of a tag that some workspace carries.
    pub fn tag_key(&self, id: &TagId) -> Option<&TagKey> {
        let workspace = self.workspaces.by().tag_id.first(id)?;
        workspace.tags.keys().find(|key| tag_id(workspace.id.organization_prefix(), key) == *id)
    }

    /// Execution settings of a project.
    pub fn default_execution(&self, project: &ProjectId) -> Execution {
        let own = self.projects.get(project).and_then(|project| project.default_execution);
        own.or(self.organization().map(|organization| organization.default_execution)).unwrap_or(Execution::REMOTE)
    }

    /// Execution settings that apply to the runs of a workspace.
    pub fn execution_of(&self, workspace: &Workspace) -> Execution {
        workspace.execution.unwrap_or_else(|| self.default_execution(&workspace.project))
    }

    /// A workspace's state versions, newest first.
    pub fn state_versions_of(&self, workspace: WorkspaceId) -> impl Iterator<Item = &StateVersion> {
        self.state_versions.by().workspace.under(&workspace)
    }

    /// True if an apply wrote this state on its way to a later one. The last one it wrote is not intermediate, even if
    /// its agent was lost meanwhile; nor is one recovered from such an agent afterwards.
    pub fn is_intermediate(&self, version: &StateVersion) -> bool {
        let Some(run) = version.run else { return false };
        let written_by_run = |version: &StateVersion| {
            version.created_by == Author::Run(run)
                && version.origin != StateOrigin::Rescue
                && !matches!(version.status, StateVersionStatus::Pending | StateVersionStatus::Discarded)
        };
        let of_run = self.state_versions.by().run.get(&run);
        let mut later = of_run.filter(|other| other.workspace == version.workspace && other.serial > version.serial);
        written_by_run(version) && later.any(written_by_run)
    }

    /// The variables of a workspace or a variable set, by key.
    pub fn variables_of(&self, owner: VariableOwner) -> impl Iterator<Item = &Variable> {
        self.variables.by().owner_and_key.under(&owner)
    }

    /// All variable sets by name.
    pub fn variable_sets_by_name(&self) -> impl Iterator<Item = &VariableSet> {
        self.variable_sets.by().name.iter()
    }

    /// Time of the last change to a workspace's settings or its state.
    pub fn latest_change(&self, workspace: &Workspace) -> Timestamp {
        self.latest_state_change(workspace).max(workspace.updated_at)
    }

    /// Time of the last change to a workspace's state; its creation time if it has none.
    pub fn latest_state_change(&self, workspace: &Workspace) -> Timestamp {
        self.current_state_version(workspace).map_or(workspace.created_at, |version| version.created_at)
    }

    /// A workspace's current state version.
    pub fn current_state_version(&self, workspace: &Workspace) -> Option<&StateVersion> {
        workspace.current_state_version.as_ref().and_then(|id| self.state_versions.get(id))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::{OrganizationId, RunId, StateVersionId};
    use crate::name::WorkspaceName;
    use crate::tag::{TagBinding, Tags, with_tags};

    fn organization_prefix() -> crate::id::OrganizationPrefix {
        OrganizationId::from_random([7; 16]).organization_prefix()
    }

    fn workspace(number: u8, name: &str, project: ProjectId, tags: &[&str]) -> Workspace {
        let bindings: Vec<_> = tags.iter().map(|key| TagBinding { key: (*key).into(), value: None }).collect();
        Workspace {
            tags: with_tags(&Tags::new(), &bindings).expect("legal"),
            ..Workspace::new(
                WorkspaceId::within(organization_prefix(), [number; 16]),
                name.parse::<WorkspaceName>().expect("legal"),
                project,
                Timestamp::UNIX_EPOCH,
            )
        }
    }

    fn state() -> (OrganizationState, ProjectId, ProjectId) {
        let (one, two) =
            (ProjectId::within(organization_prefix(), [1; 16]), ProjectId::within(organization_prefix(), [2; 16]));
        let mut state = OrganizationState::default();
        for workspace in [
            workspace(1, "web", one, &["prod", "web"]),
            workspace(2, "Api", one, &["prod"]),
            workspace(3, "batch", two, &[]),
        ] {
            state.workspaces.put(&workspace).expect("put");
        }
        (state, one, two)
    }

    fn names<'a>(workspaces: impl Iterator<Item = &'a Workspace>) -> Vec<&'a str> {
        workspaces.map(|workspace| workspace.name.as_str()).collect()
    }

    #[test]
    fn workspaces_are_listed_by_name() {
        let (state, one, two) = state();
        assert_eq!(names(state.workspaces_by_name()), ["Api", "batch", "web"]);
        assert_eq!(names(state.workspaces_in(one)), ["Api", "web"]);
        assert_eq!(names(state.workspaces_in(two)), ["batch"]);
        assert_eq!(names(state.workspaces_tagged(&"prod".parse().expect("legal"))), ["Api", "web"]);
        assert_eq!(names(state.workspaces_tagged(&"pro".parse().expect("legal"))), Vec::<&str>::new());
    }

    #[test]
    fn workspaces_are_listed_by_age_whatever_happens_to_them() {
        let (mut state, one, _) = state();
        let older = workspace(9, "zebra", one, &[]);
        let older = Workspace { created_at: Timestamp::MIN, updated_at: Timestamp::MAX, ..older };
        state.workspaces.put(&older).expect("put");
        assert_eq!(names(state.workspaces_by_age()), ["zebra", "Api", "batch", "web"]);
    }

    #[test]
    fn a_name_is_found_as_written_and_taken_in_any_case() {
        let (state, ..) = state();
        assert!(state.workspace_named("Api").is_some());
        assert!(state.workspace_named("api").is_none());
        let own = state.workspace_named("Api").expect("there").clone();
        let other = Workspace { name: "API".parse().expect("legal"), ..workspace(9, "new", own.project, &[]) };
        assert_eq!(state.workspaces.unique_conflict(&other), Some("name"));
        assert_eq!(state.workspaces.unique_conflict(&Workspace { name: other.name, ..own }), None);
    }

    #[test]
    fn tags_exist_while_something_carries_them() {
        let (mut state, ..) = state();
        let listed: Vec<_> =
            state.tags_of(|_| true).into_iter().map(|tag| (tag.key.to_string(), tag.workspaces)).collect();
        assert_eq!(listed, [("prod".to_owned(), 2), ("web".to_owned(), 1)]);
        let web = state.tags_of(|_| true)[1].id;
        assert_eq!(state.tag_key(&web).map(ToString::to_string), Some("web".to_owned()));
        let id = state.workspace_named("web").expect("there").id;
        state.workspaces.remove(&id);
        assert_eq!(state.tag_key(&web), None);
    }

    #[test]
    fn execution_is_inherited_from_project_and_organization() {
        let (mut state, one, _) = state();
        let mut organization = Organization::new(
            OrganizationId::from_random([7; 16]),
            "a@b.c".parse().expect("legal"),
            Timestamp::UNIX_EPOCH,
        );
        organization.default_execution = Execution::LOCAL;
        state.organizations.put(&organization).expect("put");
        let web = state.workspace_named("web").expect("there").clone();
        assert_eq!(state.execution_of(&web), Execution::LOCAL);
        let project = Project {
            default_execution: Some(Execution::REMOTE),
            ..Project::new(one, "one".parse().expect("legal"), Timestamp::UNIX_EPOCH)
        };
        state.projects.put(&project).expect("put");
        assert_eq!(state.execution_of(&web), Execution::REMOTE);
        assert_eq!(state.execution_of(&Workspace { execution: Some(Execution::LOCAL), ..web }), Execution::LOCAL);
    }

    #[test]
    fn state_versions_are_listed_newest_first() {
        let (mut state, ..) = state();
        let web = state.workspace_named("web").expect("there").id;
        let other = state.workspace_named("batch").expect("there").id;
        for (number, workspace, second) in [(1, web, 10), (2, other, 15), (3, web, 20), (4, web, 5)] {
            let version = StateVersion {
                id: StateVersionId::within(organization_prefix(), [number; 16]),
                workspace,
                status: StateVersionStatus::Finalized,
                serial: u64::from(number),
                lineage: "L".into(),
                md5: String::new(),
                blob: String::new(),
                sha256: String::new(),
                size: 0,
                force: false,
                origin: StateOrigin::Push,
                created_at: Timestamp::from_second(second).expect("a timestamp"),
                created_by: Author::Taco,
                run: None,
                terraform_version: None,
                encrypted: false,
                resource_count: 0,
                outputs: Vec::new(),
                unlisted_outputs: None,
                has_json: false,
                json_blob: String::new(),
                revealed: None,
            };
            state.state_versions.put(&version).expect("put");
        }
        let serials: Vec<u64> = state.state_versions_of(web).map(|version| version.serial).collect();
        assert_eq!(serials, [3, 1, 4]);
        assert!(!state.state_versions_of(web).any(|version| state.is_intermediate(version)), "no apply wrote them");

        let newest = state.state_versions_of(web).next().map(|version| (version.id, version.created_at)).expect("one");
        let workspace = state.workspaces.get(&web).expect("there").clone();
        assert_eq!(state.latest_change(&workspace), Timestamp::UNIX_EPOCH, "none of them is current");
        let workspace = Workspace { current_state_version: Some(newest.0), ..workspace };
        assert_eq!((state.latest_change(&workspace), state.latest_state_change(&workspace)), (newest.1, newest.1));
        let workspace = Workspace { updated_at: Timestamp::MAX, ..workspace };
        assert_eq!(state.latest_change(&workspace), Timestamp::MAX, "its settings changed after that");
        assert_eq!(state.latest_state_change(&workspace), newest.1, "its state did not");
    }

    #[test]
    fn what_an_apply_writes_on_its_way_is_intermediate() {
        let (mut state, ..) = state();
        let web = state.workspace_named("web").expect("there").id;
        let (one, two) = (RunId::within(organization_prefix(), [1; 16]), RunId::within(organization_prefix(), [2; 16]));
        let rows = [
            (1, Some(one), StateOrigin::Apply, StateVersionStatus::Finalized, true),
            (2, Some(one), StateOrigin::Apply, StateVersionStatus::BackingDataSoftDeleted, true),
            (3, Some(one), StateOrigin::Apply, StateVersionStatus::Finalized, false),
            (4, None, StateOrigin::Push, StateVersionStatus::Finalized, false),
            // Its agent was lost: what came later does not count, and what it wrote last is all there is of it.
            (5, Some(two), StateOrigin::Apply, StateVersionStatus::Finalized, false),
            (6, Some(two), StateOrigin::Rescue, StateVersionStatus::Finalized, false),
            (7, Some(two), StateOrigin::Apply, StateVersionStatus::Pending, false),
        ];
        for (serial, run, origin, status, _) in rows {
            let version = StateVersion {
                id: StateVersionId::within(organization_prefix(), [serial; 16]),
                workspace: web,
                status,
                serial: serial.into(),
                lineage: "L".into(),
                md5: String::new(),
                blob: String::new(),
                sha256: String::new(),
                size: 0,
                force: false,
                origin,
                created_at: Timestamp::from_second(serial.into()).expect("a timestamp"),
                created_by: run.map_or(Author::Taco, Author::Run),
                run,
                terraform_version: None,
                encrypted: false,
                resource_count: 0,
                outputs: Vec::new(),
                unlisted_outputs: None,
                has_json: false,
                json_blob: String::new(),
                revealed: None,
            };
            state.state_versions.put(&version).expect("put");
        }
        for (serial, .., expected) in rows {
            let version =
                state.state_versions.get(&StateVersionId::within(organization_prefix(), [serial; 16])).expect("there");
            assert_eq!(state.is_intermediate(version), expected, "serial {serial}");
        }
    }
}
