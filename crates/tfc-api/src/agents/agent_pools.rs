//! Agent pools.

use jiff::Timestamp;
use serde::Serialize;
use taco_control_plane::{AgentPoolFilter, AgentPoolOrder, AgentPoolPatch, AgentPoolView, Error, Listed, PageRequest};
use taco_domain::id::{AgentPoolId, WorkspaceId};

use crate::body::RequestResource;
use crate::crud::Crud;
use crate::document::{Identifier, ResourceObject};
use crate::error::ApiError;
use crate::request::ApiRequest;
use crate::resource::Resource;
use crate::{organizations, projects, workspaces};

pub(crate) const KIND: &str = "agent-pools";

#[derive(Serialize)]
#[serde(rename_all = "kebab-case")]
struct Attributes<'a> {
    name: &'a str,
    created_at: Timestamp,
    organization_scoped: bool,
    agent_count: usize,
}

impl Resource for AgentPoolView {
    const KIND: &'static str = KIND;

    fn object(&self, request: &ApiRequest) -> Result<ResourceObject, ApiError> {
        let Self { pool, org, users } = self;
        let attributes = Attributes {
            name: pool.name.as_str(),
            created_at: pool.created_at,
            organization_scoped: pool.organization_scoped,
            agent_count: request.control_plane.agents_present(pool.id),
        };
        let workspace = |id: &WorkspaceId| Identifier::new(workspaces::KIND, id);
        Ok(ResourceObject::new(KIND, pool.id, &attributes)
            .has_one("organization", organizations::identifier(org.entry().name.as_str()))
            .has_many("workspaces", users.iter().map(workspace))
            .has_many("allowed-workspaces", pool.allowed_workspaces.iter().map(workspace))
            .has_many("allowed-projects", pool.allowed_projects.iter().map(|id| Identifier::new(projects::KIND, id)))
            .has_many("excluded-workspaces", pool.excluded_workspaces.iter().map(workspace))
            .link("self", format!("/api/v2/agent-pools/{}", pool.id)))
    }
}

impl Crud for AgentPoolView {
    type Id = AgentPoolId;
    type Patch = AgentPoolPatch;

    fn patch(sent: RequestResource<AgentPoolPatch>) -> Result<AgentPoolPatch, ApiError> {
        let allowed_workspaces = sent.ids("allowed-workspaces", workspaces::KIND)?;
        let allowed_projects = sent.ids("allowed-projects", projects::KIND)?;
        let excluded_workspaces = sent.ids("excluded-workspaces", workspaces::KIND)?;
        Ok(AgentPoolPatch { allowed_workspaces, allowed_projects, excluded_workspaces, ..sent.attributes })
    }

    async fn list(request: &ApiRequest, organization: &str, page: PageRequest) -> Result<Listed<Self>, Error> {
        let query = &request.query;
        let filter = AgentPoolFilter {
            name: query.text("q"),
            workspace: query.text("filter[allowed_workspaces][name]"),
            project: query.text("filter[allowed_projects][name]"),
            order: match query.get("sort") {
                Some("created-at") => AgentPoolOrder::OldestFirst,
                Some("-created-at") => AgentPoolOrder::NewestFirst,
                _ => AgentPoolOrder::Name,
            },
        };
        request.control_plane.agent_pools(&request.caller, organization, &filter, page).await
    }

    async fn create(request: &ApiRequest, organization: &str, patch: AgentPoolPatch) -> Result<Self, Error> {
        request.control_plane.create_agent_pool(&request.caller, organization, patch).await
    }

    async fn read(request: &ApiRequest, id: AgentPoolId) -> Result<Self, Error> {
        request.control_plane.agent_pool(&request.caller, id).await
    }

    async fn update(request: &ApiRequest, id: AgentPoolId, patch: AgentPoolPatch) -> Result<Self, Error> {
        request.control_plane.update_agent_pool(&request.caller, id, patch).await
    }

    async fn delete(request: &ApiRequest, id: AgentPoolId) -> Result<(), Error> {
        request.control_plane.delete_agent_pool(&request.caller, id).await
    }
}
