//! An organization: its entry among the others, which the site's ledger has, and its settings, which its own has.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use taco_tables::{Record, indexes, references};
use taco_words::graph::ContractPolicy;

use crate::attribute::{InvalidAttribute, nullable, shown};
use crate::execution::{DEFAULT, Execution, ExecutionPatch, SettingOverwrites};
use crate::graph::output_contract::asked_policy;
use crate::id::{AgentPoolId, MembershipId, OrganizationId, OrganizationPrefix, ProjectId, TeamId, UserId};
use crate::membership::{Membership, MembershipStatus};
use crate::name::{Email, NameKey, OrganizationName};
use crate::project::Project;
use crate::retention::RetentionPolicy;
use crate::team::Team;
use crate::token_lifetime::TokenLifetime;

/// Entry of an organization in the site's ledger, because names are unique there.
#[derive(Clone, PartialEq, Serialize, Deserialize, Debug)]
pub struct OrganizationEntry {
    pub id: OrganizationId,
    pub name: OrganizationName,
    pub created_at: Timestamp,
    pub founder: UserId,
    pub founder_email: Email,
    /// Its first settings. What they are today, its own ledger says.
    pub founding: Organization,
}

impl Record for OrganizationEntry {
    const KIND: &'static str = "organization-entry";
    const NOUN: &'static str = "organization";
    const UNIQUE: &'static [&'static str] = &["name"];
    type Id = OrganizationId;
    type Indexes = OrganizationEntryIndexes;

    fn id(&self) -> &OrganizationId {
        &self.id
    }
}

indexes! {
    pub struct OrganizationEntryIndexes for OrganizationEntry {
        pub name: NameKey, unique "name" => |entry| [entry.name.key()];
        /// Unique.
        pub prefix: OrganizationPrefix => |entry| [entry.id.organization_prefix()];
        pub founder: UserId => |entry| [entry.founder];
    }
}

/// First records of an organization's own ledger.
#[derive(Clone, PartialEq, Debug)]
pub struct FirstRecords {
    pub organization: Organization,
    pub default_project: Project,
    pub owners: Team,
    pub founder: Membership,
}

impl OrganizationEntry {
    /// Every server derives the same records, so any of them may write the first commit.
    pub fn first_records(&self) -> FirstRecords {
        let owners = Team::owners(self.founding.owners_team, self.created_at);
        FirstRecords {
            organization: self.founding.clone(),
            default_project: Project::default_of(self.founding.default_project, self.created_at),
            founder: Membership {
                id: MembershipId::derived(self.id.organization_prefix(), "founder"),
                user: self.founder,
                email: self.founder_email.clone(),
                status: MembershipStatus::Active,
                teams: [owners.id].into(),
                created_at: self.created_at,
                link: None,
            },
            owners,
        }
    }
}

/// Login requirements for members.
#[derive(Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Debug)]
#[serde(rename_all = "snake_case")]
pub enum AuthenticationPolicy {
    Password,
    TwoFactorMandatory,
}

/// An organization's settings. Its name is in its [`OrganizationEntry`].
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, Debug)]
pub struct Organization {
    pub id: OrganizationId,
    pub email: Email,
    pub created_at: Timestamp,
    pub default_project: ProjectId,
    pub owners_team: TeamId,
    /// Default for projects and workspaces that have no setting of their own.
    pub default_execution: Execution,
    pub collaborator_auth_policy: AuthenticationPolicy,
    /// Minutes.
    pub session_remember: Option<u32>,
    /// Minutes.
    pub session_timeout: Option<u32>,
    pub owners_team_saml_role_id: Option<String>,
    pub assessments_enforced: bool,
    pub cost_estimation_enabled: bool,
    pub stacks_enabled: bool,
    pub send_passing_statuses_for_untriggered_speculative_plans: bool,
    pub aggregated_commit_status_enabled: bool,
    pub speculative_plan_management_enabled: bool,
    pub allow_force_delete_workspaces: bool,
    /// True if personal tokens of users are accepted by this organization; otherwise only those of its teams.
    pub user_tokens_enabled: bool,
    /// True if the limits below are enforced.
    pub max_ttl_enabled: bool,
    /// Maximum lifetimes of tokens, by kind; two years where nothing was set.
    #[serde(default)]
    pub token_lifetimes: BTreeMap<String, TokenLifetime>,
    /// Policy for plans that break outputs which others use, unless a project or workspace has its own; `None` for the
    /// default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_contract: Option<ContractPolicy>,
    /// Policy for old data of workspaces that have none of their own; `None` keeps everything.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retention: Option<RetentionPolicy>,
}

impl Organization {
    pub fn new(id: OrganizationId, email: Email, now: Timestamp) -> Self {
        Self {
            id,
            email,
            created_at: now,
            default_project: ProjectId::derived(id.organization_prefix(), "default"),
            owners_team: TeamId::derived(id.organization_prefix(), "owners"),
            default_execution: Execution::REMOTE,
            collaborator_auth_policy: AuthenticationPolicy::Password,
            session_remember: None,
            session_timeout: None,
            owners_team_saml_role_id: None,
            assessments_enforced: false,
            cost_estimation_enabled: false,
            stacks_enabled: false,
            send_passing_statuses_for_untriggered_speculative_plans: false,
            aggregated_commit_status_enabled: true,
            speculative_plan_management_enabled: true,
            allow_force_delete_workspaces: false,
            user_tokens_enabled: true,
            max_ttl_enabled: false,
            token_lifetimes: BTreeMap::new(),
            output_contract: None,
            retention: None,
        }
    }
}

impl Record for Organization {
    const KIND: &'static str = "organization";
    const CONCERNS_EVERYTHING: bool = true;
    type Id = OrganizationId;
    type Indexes = ();

    fn id(&self) -> &OrganizationId {
        &self.id
    }

    references! {
        "default_project": ProjectId, restrict(|all, id| all.iter().filter(|it| it.default_project == *id));
        "owners_team": TeamId, restrict(|all, id| all.iter().filter(|it| it.owners_team == *id));
        "default_execution": AgentPoolId, unlink(
            |all, id| all.iter().filter(|it| it.default_execution.agent_pool == Some(*id)),
            |organization| organization.default_execution = Execution::REMOTE
        );
    }
}

/// The attributes of a request that makes or changes an organization, spelled as on the wire.
#[derive(Clone, Default, Deserialize, Debug)]
#[serde(rename_all = "kebab-case", default)]
pub struct OrganizationPatch {
    pub name: Option<String>,
    pub email: Option<String>,
    pub default_execution_mode: Option<String>,
    /// On the wire this is a relationship.
    #[serde(skip)]
    pub default_agent_pool: Option<Option<AgentPoolId>>,
    pub collaborator_auth_policy: Option<String>,
    #[serde(deserialize_with = "nullable")]
    pub session_remember: Option<Option<u32>>,
    #[serde(deserialize_with = "nullable")]
    pub session_timeout: Option<Option<u32>>,
    #[serde(deserialize_with = "nullable")]
    pub owners_team_saml_role_id: Option<Option<String>>,
    pub assessments_enforced: Option<bool>,
    pub cost_estimation_enabled: Option<bool>,
    pub stacks_enabled: Option<bool>,
    pub send_passing_statuses_for_untriggered_speculative_plans: Option<bool>,
    pub aggregated_commit_status_enabled: Option<bool>,
    pub speculative_plan_management_enabled: Option<bool>,
    pub allow_force_delete_workspaces: Option<bool>,
    pub user_tokens_enabled: Option<bool>,
    pub max_ttl_enabled: Option<bool>,
    /// `off`, `warn` or `stop`; null is the default.
    #[serde(rename = "taco-output-contract", deserialize_with = "nullable")]
    pub output_contract: Option<Option<String>>,
}

impl OrganizationPatch {
    /// The name it asks for.
    pub fn name(&self) -> Result<Option<OrganizationName>, InvalidAttribute> {
        self.name.as_deref().map(str::parse).transpose()
    }

    /// The settings after the request; the name is not among them.
    pub fn apply(&self, organization: &Organization) -> Result<Organization, InvalidAttribute> {
        let mut changed = organization.clone();
        if let Some(email) = &self.email {
            changed.email = email.parse()?;
        }
        let execution = ExecutionPatch {
            mode: self.default_execution_mode.as_deref(),
            agent_pool: self.default_agent_pool,
            overwrites: SettingOverwrites::default(),
        };
        changed.default_execution =
            execution.apply(Some(changed.default_execution), Execution::REMOTE, &DEFAULT)?.unwrap_or(Execution::REMOTE);
        if let Some(policy) = &self.collaborator_auth_policy {
            changed.collaborator_auth_policy = match policy.as_str() {
                "password" => AuthenticationPolicy::Password,
                "two_factor_mandatory" => AuthenticationPolicy::TwoFactorMandatory,
                other => {
                    let detail = format!(
                        "Collaborator auth policy must be password or two_factor_mandatory; it is {}",
                        shown(other)
                    );
                    return Err(InvalidAttribute::new("collaborator-auth-policy", detail));
                }
            };
        }
        for (attribute, asked, setting) in [
            ("session-remember", self.session_remember, &mut changed.session_remember),
            ("session-timeout", self.session_timeout, &mut changed.session_timeout),
        ] {
            if asked == Some(Some(0)) {
                return Err(InvalidAttribute::new(attribute, "It is a number of minutes, at least 1; it is 0"));
            }
            set(setting, asked);
        }
        set(&mut changed.owners_team_saml_role_id, self.owners_team_saml_role_id.clone());
        set(&mut changed.assessments_enforced, self.assessments_enforced);
        set(&mut changed.cost_estimation_enabled, self.cost_estimation_enabled);
        set(&mut changed.stacks_enabled, self.stacks_enabled);
        set(&mut changed.speculative_plan_management_enabled, self.speculative_plan_management_enabled);
        set(&mut changed.allow_force_delete_workspaces, self.allow_force_delete_workspaces);
        set(&mut changed.user_tokens_enabled, self.user_tokens_enabled);
        set(&mut changed.max_ttl_enabled, self.max_ttl_enabled);
        set(&mut changed.output_contract, asked_policy(self.output_contract.as_ref())?);
        self.apply_commit_statuses(&mut changed)?;
        Ok(changed)
    }

    /// One status for all workspaces and a status for untriggered plans exclude each other: asking for one ends the
    /// other.
    fn apply_commit_statuses(&self, changed: &mut Organization) -> Result<(), InvalidAttribute> {
        let aggregated = self.aggregated_commit_status_enabled;
        let untriggered = self.send_passing_statuses_for_untriggered_speculative_plans;
        if aggregated == Some(true) && untriggered == Some(true) {
            return Err(InvalidAttribute::new(
                "aggregated-commit-status-enabled",
                "Aggregated commit status can only be enabled while \
                 send-passing-statuses-for-untriggered-speculative-plans is false",
            ));
        }
        set(&mut changed.aggregated_commit_status_enabled, aggregated.or((untriggered == Some(true)).then_some(false)));
        set(
            &mut changed.send_passing_statuses_for_untriggered_speculative_plans,
            untriggered.or((aggregated == Some(true)).then_some(false)),
        );
        Ok(())
    }
}

/// Takes over what a sparse request has.
pub(crate) fn set<T>(setting: &mut T, asked: Option<T>) {
    if let Some(value) = asked {
        *setting = value;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn organization() -> Organization {
        let id = OrganizationId::from_random([1; 16]);
        Organization::new(id, "a@b.c".parse().expect("legal"), Timestamp::UNIX_EPOCH)
    }

    fn patch(json: &str) -> OrganizationPatch {
        serde_json::from_str(json).expect("attributes")
    }

    #[test]
    fn a_sparse_request_changes_what_it_names() {
        let before = organization();
        assert_eq!(patch("{}").apply(&before), Ok(before.clone()));
        let after = patch(r#"{"session-timeout":3600,"default-execution-mode":"local","user-tokens-enabled":false}"#)
            .apply(&before)
            .expect("legal");
        assert_eq!(after.session_timeout, Some(3600));
        assert_eq!(after.default_execution, Execution::LOCAL);
        assert!(!after.user_tokens_enabled);
        assert_eq!(after.email, before.email);
        let after = patch(r#"{"session-timeout":null}"#).apply(&after).expect("legal");
        assert_eq!(after.session_timeout, None);
    }

    #[test]
    fn illegal_settings_are_refused() {
        let mut with_pool = patch("{}");
        with_pool.default_agent_pool = Some(Some(AgentPoolId::from_random([2; 16])));
        for (patch, attribute) in [
            (patch(r#"{"email":"nobody"}"#), "email"),
            (patch(r#"{"default-execution-mode":"moon"}"#), "default-execution-mode"),
            (patch(r#"{"default-execution-mode":"agent"}"#), "default-agent-pool-id"),
            (patch(r#"{"collaborator-auth-policy":"none"}"#), "collaborator-auth-policy"),
            (patch(r#"{"session-remember":0}"#), "session-remember"),
            (with_pool, "default-agent-pool-id"),
        ] {
            assert_eq!(patch.apply(&organization()).expect_err(attribute).attribute, attribute);
        }
        assert!(patch(r#"{"name":"x"}"#).name().is_err());
    }

    #[test]
    fn commit_statuses_exclude_each_other() {
        let untriggered = r#"{"send-passing-statuses-for-untriggered-speculative-plans":true}"#;
        let after = patch(untriggered).apply(&organization()).expect("legal");
        assert!(!after.aggregated_commit_status_enabled);
        let after = patch(r#"{"aggregated-commit-status-enabled":true}"#).apply(&after).expect("legal");
        assert!(!after.send_passing_statuses_for_untriggered_speculative_plans);
    }

    #[test]
    fn every_server_derives_the_same_first_records() {
        let founding = organization();
        let entry = OrganizationEntry {
            id: founding.id,
            name: "acme".parse().expect("legal"),
            created_at: founding.created_at,
            founder: UserId::from_random([3; 16]),
            founder_email: "jane@acme.test".parse().expect("legal"),
            founding,
        };
        let first = entry.first_records();
        assert_eq!(first, entry.first_records());
        assert_eq!(first.default_project.id, first.organization.default_project);
        assert_eq!(first.owners.id, first.organization.owners_team);
        assert!(first.founder.teams.contains(&first.owners.id));
        assert_eq!(first.default_project.name.as_str(), "Default Project");
    }
}
