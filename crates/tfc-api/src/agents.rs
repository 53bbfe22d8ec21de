//! Agents, and the tokens with which they come.

pub(crate) mod agent_pools;

use jiff::Timestamp;
use serde::Serialize;
use taco_control_plane::AgentView;
use taco_domain::agent::AgentStatus;

use crate::authentication_tokens::new_token;
use crate::document::{Identifier, ResourceObject};
use crate::error::ApiError;
use crate::request::{Answer, ApiRequest};
use crate::resource::Resource;

#[derive(Serialize)]
#[serde(rename_all = "kebab-case")]
struct Attributes<'a> {
    name: &'a str,
    status: AgentStatus,
    ip_address: Option<&'a str>,
    last_ping_at: Option<Timestamp>,
    taco_version: &'a str,
}

impl Resource for AgentView {
    const KIND: &'static str = "agents";

    fn object(&self, _: &ApiRequest) -> Result<ResourceObject, ApiError> {
        let agent = &self.agent;
        // The client's name for itself follows its address.
        let address = agent.address.as_deref().and_then(|from| from.split(' ').next());
        let attributes = Attributes {
            name: &agent.name,
            status: self.status,
            ip_address: address,
            last_ping_at: self.last_heard_at,
            taco_version: &agent.version,
        };
        Ok(ResourceObject::new(Self::KIND, agent.id, &attributes)
            .has_one("agent-pool", Identifier::new(agent_pools::KIND, agent.pool))
            .link("self", format!("/api/v2/agents/{}", agent.id)))
    }
}

/// `GET /api/v2/agent-pools/{pool}/agents`
pub(crate) async fn list(request: ApiRequest) -> Answer {
    let page = request.query.page()?;
    request.page(request.control_plane.agents(&request.caller, request.id("pool")?, page).await?).await
}

/// `GET /api/v2/agents/{agent}`
pub(crate) async fn read(request: ApiRequest) -> Answer {
    request.one(&request.control_plane.agent(&request.caller, request.id("agent")?).await?).await
}

/// `GET /api/v2/agent-pools/{pool}/authentication-tokens`
pub(crate) async fn list_tokens(request: ApiRequest) -> Answer {
    let page = request.query.page()?;
    request.page(request.control_plane.agent_pool_tokens(&request.caller, request.id("pool")?, page).await?).await
}

/// `POST /api/v2/agent-pools/{pool}/authentication-tokens`
pub(crate) async fn create_token(request: ApiRequest) -> Answer {
    let (pool, new) = (request.id("pool")?, new_token(request.body().await?)?);
    request.created(&request.control_plane.create_agent_pool_token(&request.caller, pool, new).await?)
}
