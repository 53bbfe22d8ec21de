//! What the agent of a plan is given to evaluate: the policies that its run began with, and the run as they see it.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use taco_boxed::boxed;
use taco_domain::Author;
use taco_domain::policy_words::{PolicyFile, PolicyKind};
use taco_domain::run::Run;
use taco_domain::run_policies::{RunPolicy, RunPolicySet};
use taco_domain::user::User;
use taco_domain::variable::StoredValue;
use taco_domain::variable_precedence::{EffectiveValue, variables_for_run};
use taco_domain::workspace::Workspace;

use crate::control_plane::{ControlPlane, OrganizationSnapshot};
use crate::error::Error;
use crate::phases::PhaseCaller;

/// Policies of a phase as its agent gets them.
#[derive(Clone)]
pub struct PhasePolicies {
    /// What policies see as `input.run`.
    pub run: Value,
    pub sets: Vec<PhasePolicySet>,
}

#[derive(Clone)]
pub struct PhasePolicySet {
    pub id: String,
    pub name: String,
    pub tool_version: Option<String>,
    pub parameters: Vec<PhasePolicyParameter>,
    pub groups: Vec<PhasePolicyGroup>,
    pub error: Option<String>,
}

#[derive(Clone)]
pub struct PhasePolicyParameter {
    pub key: String,
    pub value: String,
    pub sensitive: bool,
}

/// Modules that see each other.
#[derive(Clone)]
pub struct PhasePolicyGroup {
    pub syntax: Option<&'static str>,
    pub modules: BTreeMap<String, String>,
    pub policies: Vec<RunPolicy>,
}

#[boxed]
impl ControlPlane {
    /// The policies that apply to the plan of an attempt.
    pub async fn phase_policies(&self, caller: &PhaseCaller) -> Result<PhasePolicies, Error> {
        let run = caller.run_under_way()?;
        let mut sets = Vec::new();
        for set in run.policies.iter().flat_map(|policies| &policies.sets) {
            if set.kind == PolicyKind::Opa {
                sets.push(self.phase_policy_set(&caller.org, set).await?);
            }
        }
        let workspace = caller.org.get::<Workspace>(&run.workspace)?;
        Ok(PhasePolicies { run: self.run_input(&caller.org, run, workspace), sets })
    }

    async fn phase_policy_set(&self, org: &OrganizationSnapshot, set: &RunPolicySet) -> Result<PhasePolicySet, Error> {
        let mut given = PhasePolicySet {
            id: set.set.to_string(),
            name: set.name.clone(),
            tool_version: set.tool_version.clone(),
            parameters: Vec::new(),
            groups: Vec::new(),
            error: None,
        };
        match self.groups_of(org, set).await {
            Ok(groups) => given.groups = groups,
            Err(Error::NotFound(_)) => {
                given.error =
                    Some("its code was replaced or deleted while the run was planned: run it again".to_owned());
            }
            Err(other) => return Err(other),
        }
        for parameter in org.state.policy_parameters.by().set.under(&set.set) {
            let (value, sensitive) = match &parameter.value {
                StoredValue::Plain(value) => (value.clone(), false),
                StoredValue::Sealed(sealed) => (self.unseal(&parameter.id.to_string(), sealed)?, true),
            };
            given.parameters.push(PhasePolicyParameter { key: parameter.key.clone(), value, sensitive });
        }
        Ok(given)
    }

    /// Those that were uploaded together see each other, and the others are alone.
    async fn groups_of(&self, org: &OrganizationSnapshot, set: &RunPolicySet) -> Result<Vec<PhasePolicyGroup>, Error> {
        let mut groups = Vec::new();
        let of_version: Vec<RunPolicy> = set.policies.iter().filter(|policy| policy.code.is_none()).cloned().collect();
        if let Some(file) = &set.code {
            let bytes = self.read_policy_code(org, file).await?;
            let modules = serde_json::from_slice(&bytes).map_err(|_| Error::NotFound("policy code"))?;
            groups.push(PhasePolicyGroup { syntax: syntax(file), modules, policies: of_version });
        } else if !of_version.is_empty() {
            // Nothing was ever uploaded for them, so the agent finds no rule.
            groups.push(PhasePolicyGroup { syntax: Some("v1"), modules: BTreeMap::new(), policies: of_version });
        }
        for policy in &set.policies {
            let Some(file) = &policy.code else { continue };
            let text = String::from_utf8_lossy(&self.read_policy_code(org, file).await?).into_owned();
            let modules = [(format!("{}.rego", policy.name), text)].into();
            groups.push(PhasePolicyGroup { syntax: syntax(file), modules, policies: vec![policy.clone()] });
        }
        Ok(groups)
    }

    /// The run as policies see it, under the names that Terraform Cloud documents.
    fn run_input(&self, org: &OrganizationSnapshot, run: &Run, workspace: &Workspace) -> Value {
        let state = &org.state;
        let project = state.projects.get(&workspace.project);
        let variables: serde_json::Map<String, Value> = variables_for_run(state, workspace, &[])
            .into_iter()
            .map(|variable| {
                let category = variable.category;
                let sensitive = matches!(&variable.value, EffectiveValue::Stored(StoredValue::Sealed(_)));
                (variable.key.clone(), json!({ "category": category, "sensitive": sensitive }))
            })
            .collect();
        let execution_mode = state.execution_of(workspace).mode.to_string();
        let options = &run.options;
        json!({
            "id": run.id,
            "created_at": run.created_at,
            "created_by": name_of(org, run.created_by),
            "message": options.message,
            "commit_sha": null,
            "is_destroy": options.is_destroy,
            "refresh": options.refresh,
            "refresh_only": options.refresh_only,
            "replace_addrs": options.replace_addrs,
            "speculative": options.plan_only,
            "target_addrs": options.target_addrs,
            "project": { "id": workspace.project, "name": project.map(|project| project.name.as_str()) },
            "variables": variables,
            "organization": { "name": org.entry().name.as_str() },
            "workspace": {
                "id": workspace.id,
                "name": workspace.name.as_str(),
                "created_at": workspace.created_at,
                "description": workspace.description,
                "execution_mode": execution_mode,
                "auto_apply": workspace.auto_apply,
                "tags": workspace.tags.keys().map(|key| key.as_str().to_owned()).collect::<Vec<_>>(),
                "working_directory": workspace.working_directory,
                "vcs_repo": null,
            },
        })
    }
}

fn syntax(file: &PolicyFile) -> Option<&'static str> {
    file.syntax.map(|syntax| syntax.as_str())
}

/// The name of a user; others are told by what they are.
fn name_of(org: &OrganizationSnapshot, author: Author) -> String {
    match author {
        Author::User(id) => {
            org.site().users.get(&id).map_or_else(|| author.to_string(), |user: &User| user.username.to_string())
        }
        other => other.to_string(),
    }
}
