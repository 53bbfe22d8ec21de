//! A project: workspaces that belong together.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use taco_tables::{Record, indexes, references};
use taco_words::graph::ContractPolicy;

use crate::attribute::{InvalidAttribute, nullable, nullable_id};
use crate::execution::{DEFAULT, Execution, ExecutionPatch, SettingOverwrites};
use crate::graph::output_contract::asked_policy;
use crate::id::{AgentPoolId, ProjectId};
use crate::name::{NameKey, ProjectName};
use crate::organization::set;
use crate::tag::{TagBinding, Tags, with_tags};
use crate::workspace_settings::{check_auto_destroy_duration, check_description};

#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, Debug)]
pub struct Project {
    pub id: ProjectId,
    pub name: ProjectName,
    pub description: String,
    pub created_at: Timestamp,
    /// Its own default for workspaces; `None` where the organization's counts.
    pub default_execution: Option<Execution>,
    /// Such as `14d`.
    pub auto_destroy_activity_duration: Option<String>,
    #[serde(default)]
    pub tags: Tags,
    /// Its own policy for plans that break outputs which others use; `None` where the organization's counts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_contract: Option<ContractPolicy>,
}

impl Project {
    pub fn new(id: ProjectId, name: ProjectName, now: Timestamp) -> Self {
        Self {
            id,
            name,
            description: String::new(),
            created_at: now,
            default_execution: None,
            auto_destroy_activity_duration: None,
            tags: Tags::new(),
            output_contract: None,
        }
    }

    /// The one that every organization begins with.
    pub fn default_of(id: ProjectId, now: Timestamp) -> Self {
        Self::new(id, "Default Project".parse().expect("a legal name"), now)
    }
}

impl Record for Project {
    const KIND: &'static str = "project";
    const UNIQUE: &'static [&'static str] = &["name"];
    type Id = ProjectId;
    type Indexes = ProjectIndexes;

    fn id(&self) -> &ProjectId {
        &self.id
    }

    references! {
        "default_execution": AgentPoolId, unlink(|projects, id| projects.by().agent_pool.get(id), |project| {
            project.default_execution = None;
        });
    }
}

indexes! {
    pub struct ProjectIndexes for Project {
        pub name: NameKey, unique "name" => |project| [project.name.key()];
        pub agent_pool: AgentPoolId => |project| project.default_execution.and_then(|execution| execution.agent_pool);
    }
}

/// The attributes of a request that makes or changes a project, spelled as on the wire.
#[derive(Clone, Default, Deserialize, Debug)]
#[serde(rename_all = "kebab-case", default)]
pub struct ProjectPatch {
    pub name: Option<String>,
    #[serde(deserialize_with = "nullable")]
    pub description: Option<Option<String>>,
    pub default_execution_mode: Option<String>,
    #[serde(deserialize_with = "nullable_id")]
    pub default_agent_pool_id: Option<Option<AgentPoolId>>,
    pub setting_overwrites: Option<SettingOverwrites>,
    #[serde(deserialize_with = "nullable")]
    pub auto_destroy_activity_duration: Option<Option<String>>,
    /// `off`, `warn` or `stop`; null where the organization's policy counts.
    #[serde(rename = "taco-output-contract", deserialize_with = "nullable")]
    pub output_contract: Option<Option<String>>,
    /// On the wire this is a relationship. It replaces all tags.
    #[serde(skip)]
    pub tag_bindings: Option<Vec<TagBinding>>,
}

impl ProjectPatch {
    /// The project after the request. Whether its name is free, the caller finds out.
    pub fn apply(&self, project: &Project, organization_default: Execution) -> Result<Project, InvalidAttribute> {
        let mut changed = project.clone();
        if let Some(name) = &self.name {
            changed.name = name.parse()?;
        }
        if let Some(description) = &self.description {
            changed.description = check_description(description.as_deref().unwrap_or_default())?;
        }
        let execution = ExecutionPatch {
            mode: self.default_execution_mode.as_deref(),
            agent_pool: self.default_agent_pool_id,
            overwrites: self.setting_overwrites.unwrap_or_default(),
        };
        changed.default_execution = execution.apply(changed.default_execution, organization_default, &DEFAULT)?;
        if let Some(Some(duration)) = &self.auto_destroy_activity_duration {
            check_auto_destroy_duration(duration)?;
        }
        set(&mut changed.auto_destroy_activity_duration, self.auto_destroy_activity_duration.clone());
        set(&mut changed.output_contract, asked_policy(self.output_contract.as_ref())?);
        if let Some(bindings) = &self.tag_bindings {
            changed.tags = with_tags(&Tags::new(), bindings)?;
        }
        Ok(changed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn patch(json: &str) -> ProjectPatch {
        serde_json::from_str(json).expect("attributes")
    }

    fn project() -> Project {
        Project::default_of(ProjectId::from_random([1; 16]), Timestamp::UNIX_EPOCH)
    }

    #[test]
    fn a_sparse_request_changes_what_it_names() {
        let before = project();
        assert_eq!(patch("{}").apply(&before, Execution::REMOTE), Ok(before.clone()));
        let after = patch(r#"{"name":"new project name","description":"qux","default-execution-mode":"local"}"#)
            .apply(&before, Execution::REMOTE)
            .expect("legal");
        assert_eq!((after.name.as_str(), after.description.as_str()), ("new project name", "qux"));
        assert_eq!(after.default_execution, Some(Execution::LOCAL));
        let after = patch(r#"{"description":null,"setting-overwrites":{"default-execution-mode":false}}"#)
            .apply(&after, Execution::REMOTE)
            .expect("legal");
        assert_eq!((after.description.as_str(), after.default_execution), ("", None));
    }

    #[test]
    fn refusals_are_worded_as_clients_expect() {
        for (json, expected) in [
            (r#"{"name":"! / nope"}"#, "Name may only contain"),
            (
                r#"{"auto-destroy-activity-duration":"20m"}"#,
                "Auto destroy activity duration has an incorrect format, we expect up to 4 numeric digits and 1 unit ('d' or 'h')",
            ),
            (r#"{"default-execution-mode":"agent"}"#, "must be specified when using 'agent' execution mode"),
        ] {
            let detail = patch(json).apply(&project(), Execution::REMOTE).expect_err(json).detail;
            assert!(detail.contains(expected), "{detail}");
        }
    }
}
