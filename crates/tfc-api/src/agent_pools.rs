//! Agent pools.

use jiff::Timestamp;
use serde::Serialize;
use taco_control_plane::{AgentPoolFilter, AgentPoolOrder, AgentPoolPatch, AgentPoolView};
use taco_domain::id::WorkspaceId;

use crate::body::Sent;
use crate::document::{Identifier, ResourceObject};
use crate::error::ApiError;
use crate::request::{Answer, ApiRequest, no_content};
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
        let Self { pool, open, users } = self;
        let attributes = Attributes {
            name: pool.name.as_str(),
            created_at: pool.created_at,
            organization_scoped: pool.organization_scoped,
            agent_count: request.control_plane.agents_present(pool.id),
        };
        let workspace = |id: &WorkspaceId| Identifier::new(workspaces::KIND, id);
        Ok(ResourceObject::new(KIND, pool.id, &attributes)
            .has_one("organization", organizations::identifier(open.entry().name.as_str()))
            .has_many("workspaces", users.iter().map(workspace))
            .has_many("allowed-workspaces", pool.allowed_workspaces.iter().map(workspace))
            .has_many("allowed-projects", pool.allowed_projects.iter().map(|id| Identifier::new(projects::KIND, id)))
            .has_many("excluded-workspaces", pool.excluded_workspaces.iter().map(workspace))
            .link("self", format!("/api/v2/agent-pools/{}", pool.id)))
    }
}

fn patch(sent: Sent<AgentPoolPatch>) -> Result<AgentPoolPatch, ApiError> {
    let allowed_workspaces = sent.ids("allowed-workspaces", workspaces::KIND)?;
    let allowed_projects = sent.ids("allowed-projects", projects::KIND)?;
    let excluded_workspaces = sent.ids("excluded-workspaces", workspaces::KIND)?;
    Ok(AgentPoolPatch { allowed_workspaces, allowed_projects, excluded_workspaces, ..sent.attributes })
}

/// `GET /api/v2/organizations/{organization}/agent-pools`
pub(crate) async fn list(request: ApiRequest) -> Answer {
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
    let organization = request.organization()?;
    request.page(request.control_plane.agent_pools(&request.caller, organization, &filter, query.page()?).await?).await
}

/// `POST /api/v2/organizations/{organization}/agent-pools`
pub(crate) async fn create(request: ApiRequest) -> Answer {
    let patch = patch(request.resource(KIND).await?)?;
    let organization = request.organization()?;
    request.created(&request.control_plane.create_agent_pool(&request.caller, organization, patch).await?)
}

/// `GET /api/v2/agent-pools/{pool}`
pub(crate) async fn read(request: ApiRequest) -> Answer {
    request.one(&request.control_plane.agent_pool(&request.caller, request.id("pool")?).await?).await
}

/// `PATCH /api/v2/agent-pools/{pool}`
pub(crate) async fn update(request: ApiRequest) -> Answer {
    let pool = request.id("pool")?;
    let patch = patch(request.resource(KIND).await?)?;
    request.changed(&request.control_plane.update_agent_pool(&request.caller, pool, patch).await?)
}

/// `DELETE /api/v2/agent-pools/{pool}`
pub(crate) async fn delete(request: ApiRequest) -> Answer {
    request.control_plane.delete_agent_pool(&request.caller, request.id("pool")?).await?;
    no_content()
}
