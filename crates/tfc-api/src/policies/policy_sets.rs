//! Policy sets, and what they have and apply to.

use axum::http::StatusCode;
use axum::response::IntoResponse;
use jiff::Timestamp;
use serde::Serialize;
use taco_control_plane::{ListChange, PolicySetView};
use taco_domain::policy_set::{PolicySetPatch, PolicySetTargets};
use taco_domain::policy_words::PolicyKind;

use crate::body::RequestResource;
use crate::document::{Document, Identifier, ResourceObject};
use crate::error::ApiError;
use crate::policies::{self, filter};
use crate::request::{Answer, ApiRequest, no_content};
use crate::resource::Resource;
use crate::{organizations, policy_set_versions, projects, workspaces};

pub(crate) const KIND: &str = "policy-sets";

#[derive(Serialize)]
#[serde(rename_all = "kebab-case")]
struct Attributes<'a> {
    name: &'a str,
    description: &'a str,
    kind: PolicyKind,
    global: bool,
    overridable: Option<bool>,
    agent_enabled: bool,
    policy_tool_version: &'a str,
    policies_path: Option<&'a str>,
    policy_update_patterns: &'a [String],
    tag_selectors: [(); 0],
    versioned: bool,
    vcs_repo: Option<()>,
    policy_count: usize,
    workspace_count: usize,
    project_count: usize,
    created_at: Timestamp,
    updated_at: Timestamp,
}

impl Resource for PolicySetView {
    const KIND: &'static str = KIND;
    const INCLUDES: &'static [&'static str] = &[
        "policies",
        "workspaces",
        "projects",
        "workspace-exclusions",
        "project-exclusions",
        "current-version",
        "newest-version",
    ];

    fn object(&self, request: &ApiRequest) -> Result<ResourceObject, ApiError> {
        let set = &self.set;
        // Sets of Sentinel have these settings only where agents were to evaluate them.
        let (is_opa, is_with_tool) = (set.kind == PolicyKind::Opa, set.kind == PolicyKind::Opa || set.agent_enabled);
        let caller = &request.caller;
        let workspaces_of = |ids| {
            let seen = self.workspaces_seen_by(caller, ids);
            seen.into_iter().map(|view| Identifier::new(workspaces::KIND, view.workspace.id)).collect::<Vec<_>>()
        };
        let projects_of = |ids| {
            let seen = self.projects_seen_by(caller, ids);
            seen.into_iter().map(|view| Identifier::new(projects::KIND, view.project.id)).collect::<Vec<_>>()
        };
        let (workspaces, projects) = (workspaces_of(&set.workspaces), projects_of(&set.projects));
        let attributes = Attributes {
            name: set.name.as_str(),
            description: &set.description,
            kind: set.kind,
            global: set.global,
            overridable: is_with_tool.then_some(set.overridable),
            agent_enabled: is_opa || set.agent_enabled,
            policy_tool_version: set.tool_version.as_deref().filter(|_| is_with_tool).unwrap_or_default(),
            policies_path: set.policies_path.as_deref(),
            policy_update_patterns: &set.update_patterns,
            tag_selectors: [],
            versioned: set.newest_version.is_some(),
            vcs_repo: None,
            policy_count: self.policy_count(),
            workspace_count: workspaces.len(),
            project_count: projects.len(),
            created_at: set.created_at,
            updated_at: set.updated_at,
        };
        let version = |id| Identifier::new(policy_set_versions::KIND, id);
        let mut object = ResourceObject::new(KIND, set.id, &attributes)
            .has_one("organization", organizations::identifier(self.org.entry().name.as_str()))
            .has_many("policies", set.policies.iter().map(|id| Identifier::new(policies::KIND, id)))
            .has_many("workspaces", workspaces)
            .has_many("projects", projects)
            .has_many("workspace-exclusions", workspaces_of(&set.workspace_exclusions))
            .has_many("project-exclusions", projects_of(&set.project_exclusions));
        if let Some(newest) = set.newest_version {
            object = object.has_one("newest-version", version(newest));
        }
        if let Some(current) = set.current_version {
            object = object.has_one("current-version", version(current));
        }
        Ok(object.link("self", format!("/api/v2/policy-sets/{}", set.id)))
    }

    async fn include(&self, name: &str, request: &ApiRequest, document: &mut Document) -> Result<(), ApiError> {
        let (set, caller) = (&self.set, &request.caller);
        match name {
            "policies" => document.include_all(&self.policies(), request),
            "workspaces" => document.include_all(&self.workspaces_seen_by(caller, &set.workspaces), request),
            "projects" => document.include_all(&self.projects_seen_by(caller, &set.projects), request),
            "workspace-exclusions" => {
                document.include_all(&self.workspaces_seen_by(caller, &set.workspace_exclusions), request)
            }
            "project-exclusions" => {
                document.include_all(&self.projects_seen_by(caller, &set.project_exclusions), request)
            }
            "current-version" => document.include_some(self.current_version().as_ref(), request),
            _ => document.include_some(self.newest_version().as_ref(), request),
        }
    }
}

fn patch(sent: &RequestResource<PolicySetPatch>) -> Result<PolicySetPatch, ApiError> {
    let targets = PolicySetTargets {
        policies: sent.ids("policies", policies::KIND)?,
        workspaces: sent.ids("workspaces", workspaces::KIND)?,
        projects: sent.ids("projects", projects::KIND)?,
        workspace_exclusions: sent.ids("workspace-exclusions", workspaces::KIND)?,
        project_exclusions: sent.ids("project-exclusions", projects::KIND)?,
    };
    Ok(PolicySetPatch { targets, ..sent.attributes.clone() })
}

/// `GET /api/v2/organizations/{organization}/policy-sets`
pub(crate) async fn list(request: ApiRequest) -> Answer {
    let (organization, filter, page) = (request.organization()?, filter(&request)?, request.query.page()?);
    let listed = request.control_plane.policy_sets(&request.caller, organization, &filter, page).await?;
    request.page(listed).await
}

/// `POST /api/v2/organizations/{organization}/policy-sets`
pub(crate) async fn create(request: ApiRequest) -> Answer {
    let patch = patch(&request.resource(KIND).await?)?;
    let view = request.control_plane.create_policy_set(&request.caller, request.organization()?, patch).await?;
    Ok((StatusCode::CREATED, request.document(&view).await?).into_response())
}

/// `GET /api/v2/policy-sets/{policy_set}`
pub(crate) async fn read(request: ApiRequest) -> Answer {
    request.one(&request.control_plane.policy_set(&request.caller, request.id("policy_set")?).await?).await
}

/// `PATCH /api/v2/policy-sets/{policy_set}`
pub(crate) async fn update(request: ApiRequest) -> Answer {
    let (id, patch) = (request.id("policy_set")?, patch(&request.resource(KIND).await?)?);
    request.one(&request.control_plane.update_policy_set(&request.caller, id, patch).await?).await
}

/// `DELETE /api/v2/policy-sets/{policy_set}`
pub(crate) async fn delete(request: ApiRequest) -> Answer {
    request.control_plane.delete_policy_set(&request.caller, request.id("policy_set")?).await?;
    no_content()
}

/// Things that a set has or applies to, as the last word of a path names them.
async fn targets(request: &ApiRequest) -> Result<PolicySetTargets, ApiError> {
    let mut targets = PolicySetTargets::default();
    match request.uri().path().rsplit('/').next() {
        Some("policies") => targets.policies = Some(request.ids(policies::KIND).await?),
        Some("workspaces") => targets.workspaces = Some(request.ids(workspaces::KIND).await?),
        Some("projects") => targets.projects = Some(request.ids(projects::KIND).await?),
        Some("workspace-exclusions") => targets.workspace_exclusions = Some(request.ids(workspaces::KIND).await?),
        Some("project-exclusions") => targets.project_exclusions = Some(request.ids(projects::KIND).await?),
        _ => return Err(ApiError::not_found()),
    }
    Ok(targets)
}

async fn change(request: &ApiRequest, change: ListChange) -> Answer {
    let (id, targets) = (request.id("policy_set")?, targets(request).await?);
    request.control_plane.change_policy_set(&request.caller, id, targets, change).await?;
    no_content()
}

/// `POST /api/v2/policy-sets/{policy_set}/relationships/…`
pub(crate) async fn add(request: ApiRequest) -> Answer {
    change(&request, ListChange::Add).await
}

/// `DELETE /api/v2/policy-sets/{policy_set}/relationships/…`
pub(crate) async fn remove(request: ApiRequest) -> Answer {
    change(&request, ListChange::Remove).await
}
