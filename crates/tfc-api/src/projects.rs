//! Projects.

use jiff::Timestamp;
use serde::Serialize;
use taco_control_plane::{Error, Listed, PageRequest, ProjectFilter, ProjectView};
use taco_domain::execution::{Execution, ExecutionMode};
use taco_domain::graph::words::ContractPolicy;
use taco_domain::id::ProjectId;
use taco_domain::permission::Action;
use taco_domain::project::ProjectPatch;

use crate::body::RequestResource;
use crate::crud::Crud;
use crate::document::{Document, Identifier, ResourceObject};
use crate::error::ApiError;
use crate::organizations;
use crate::request::ApiRequest;
use crate::resource::Resource;
use crate::tag_bindings::{self, effective_bindings_of_project, sent_bindings};

pub(crate) const KIND: &str = "projects";

#[derive(Serialize)]
#[serde(rename_all = "kebab-case")]
struct Attributes<'a> {
    name: &'a str,
    description: &'a str,
    created_at: Timestamp,
    default_execution_mode: ExecutionMode,
    auto_destroy_activity_duration: Option<&'a str>,
    /// `None` where the organization's policy counts.
    taco_output_contract: Option<ContractPolicy>,
    taco_effective_output_contract: ContractPolicy,
    is_unified: bool,
    workspace_count: usize,
    setting_overwrites: Overwrites,
    permissions: Permissions,
}

#[derive(Serialize)]
#[serde(rename_all = "kebab-case")]
struct Overwrites {
    default_execution_mode: bool,
    default_agent_pool: bool,
}

#[derive(Serialize)]
#[serde(rename_all = "kebab-case")]
struct Permissions {
    can_read: bool,
    can_update: bool,
    can_destroy: bool,
    can_create_workspace: bool,
    can_move_workspace: bool,
    can_manage_teams: bool,
}

impl Resource for ProjectView {
    const KIND: &'static str = KIND;
    const INCLUDES: &'static [&'static str] = &["effective-tag-bindings"];

    fn object(&self, request: &ApiRequest) -> Result<ResourceObject, ApiError> {
        let Self { project, org } = self;
        let may = |action| request.caller.may(action, self.resource()).allowed;
        let execution: Execution = self.default_execution();
        let overwrites = project.default_execution.is_some();
        let attributes = Attributes {
            name: project.name.as_str(),
            description: &project.description,
            created_at: project.created_at,
            default_execution_mode: execution.mode,
            auto_destroy_activity_duration: project.auto_destroy_activity_duration.as_deref(),
            taco_output_contract: project.output_contract,
            taco_effective_output_contract: self.contract_policy(),
            is_unified: false,
            workspace_count: self.workspace_count(),
            setting_overwrites: Overwrites { default_execution_mode: overwrites, default_agent_pool: overwrites },
            permissions: Permissions {
                can_read: may(Action::ReadProject),
                can_update: may(Action::UpdateProject),
                can_destroy: may(Action::DeleteProject),
                can_create_workspace: may(Action::CreateWorkspace),
                can_move_workspace: may(Action::MoveWorkspace),
                can_manage_teams: may(Action::ManageProjectTeams),
            },
        };
        let bindings = effective_bindings_of_project(project);
        Ok(ResourceObject::new(KIND, project.id, &attributes)
            .has_one("organization", organizations::identifier(org.entry().name.as_str()))
            .has_optional("default-agent-pool", execution.agent_pool.map(|pool| Identifier::new("agent-pools", pool)))
            .has_many(
                "effective-tag-bindings",
                bindings.iter().map(|binding| binding.identifier(tag_bindings::EFFECTIVE)),
            )
            .related(format!("/api/v2/projects/{}/effective-tag-bindings", project.id))
            .link("self", format!("/api/v2/projects/{}", project.id)))
    }

    async fn include(&self, _: &str, _: &ApiRequest, document: &mut Document) -> Result<(), ApiError> {
        for binding in effective_bindings_of_project(&self.project) {
            document.include(binding.object(tag_bindings::EFFECTIVE));
        }
        Ok(())
    }
}

impl Crud for ProjectView {
    type Id = ProjectId;
    type Patch = ProjectPatch;

    fn patch(sent: RequestResource<ProjectPatch>) -> Result<ProjectPatch, ApiError> {
        let pool = sent.to_one("default-agent-pool")?;
        let tag_bindings = sent_bindings(&sent, "tag-bindings")?;
        let default_agent_pool_id = sent.attributes.default_agent_pool_id.or(pool);
        Ok(ProjectPatch { default_agent_pool_id, tag_bindings, ..sent.attributes })
    }

    async fn list(request: &ApiRequest, organization: &str, page: PageRequest) -> Result<Listed<Self>, Error> {
        let query = &request.query;
        let filter =
            ProjectFilter { names: query.texts("filter[names]"), query: query.text("q"), tagged: query.tagged() };
        request.control_plane.projects(&request.caller, organization, &filter, page).await
    }

    async fn create(request: &ApiRequest, organization: &str, patch: ProjectPatch) -> Result<Self, Error> {
        request.control_plane.create_project(&request.caller, organization, patch).await
    }

    async fn read(request: &ApiRequest, id: ProjectId) -> Result<Self, Error> {
        request.control_plane.project(&request.caller, id).await
    }

    async fn update(request: &ApiRequest, id: ProjectId, patch: ProjectPatch) -> Result<Self, Error> {
        request.control_plane.update_project(&request.caller, id, patch).await
    }

    async fn delete(request: &ApiRequest, id: ProjectId) -> Result<(), Error> {
        request.control_plane.delete_project(&request.caller, id).await
    }
}
