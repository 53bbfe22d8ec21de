//! Agents, and the tokens with which they come.

use axum::extract::State;
use axum::response::Response;
use jiff::Timestamp;
use serde::Serialize;
use taco_control_plane::{AgentView, Caller, ControlPlane};
use taco_domain::agent::AgentStatus;
use taco_domain::id::{AgentId, AgentPoolId};

use crate::agent_pools;
use crate::authentication_tokens::{self, issued, wanted};
use crate::body::Body;
use crate::document::{Document, Identifier, Resource};
use crate::error::ApiError;
use crate::path::InPath;
use crate::query::Query;

const KIND: &str = "agents";

#[derive(Serialize)]
#[serde(rename_all = "kebab-case")]
struct Attributes<'a> {
    name: &'a str,
    status: AgentStatus,
    ip_address: Option<&'a str>,
    last_ping_at: Option<Timestamp>,
    taco_version: &'a str,
}

fn resource(view: &AgentView) -> Resource {
    let agent = &view.agent;
    // What a client calls itself stands behind its address.
    let address = agent.address.as_deref().and_then(|from| from.split(' ').next());
    let attributes = Attributes {
        name: &agent.name,
        status: view.status,
        ip_address: address,
        last_ping_at: view.last_heard_at,
        taco_version: &agent.version,
    };
    Resource::new(KIND, agent.id, &attributes)
        .has_one("agent-pool", Identifier::new(agent_pools::KIND, agent.pool))
        .link("self", format!("/api/v2/agents/{}", agent.id))
}

/// `GET /api/v2/agent-pools/{pool}/agents`
pub(crate) async fn list(
    State(control_plane): State<ControlPlane>,
    caller: Caller,
    InPath(pool): InPath<AgentPoolId>,
    query: Query,
) -> Result<Document, ApiError> {
    let listed = control_plane.agents(&caller, pool, query.page()?).await?;
    Ok(Document::page(listed.map(|view| resource(&view))))
}

/// `GET /api/v2/agents/{agent}`
pub(crate) async fn read(
    State(control_plane): State<ControlPlane>,
    caller: Caller,
    InPath(agent): InPath<AgentId>,
) -> Result<Document, ApiError> {
    Ok(Document::one(resource(&control_plane.agent(&caller, agent).await?)))
}

/// `GET /api/v2/agent-pools/{pool}/authentication-tokens`
pub(crate) async fn list_tokens(
    State(control_plane): State<ControlPlane>,
    caller: Caller,
    InPath(pool): InPath<AgentPoolId>,
    query: Query,
) -> Result<Document, ApiError> {
    let listed = control_plane.agent_pool_tokens(&caller, pool, query.page()?).await?;
    Ok(Document::page(listed.map(|token| authentication_tokens::resource(&token, None))))
}

/// `POST /api/v2/agent-pools/{pool}/authentication-tokens`
pub(crate) async fn create_token(
    State(control_plane): State<ControlPlane>,
    caller: Caller,
    InPath(pool): InPath<AgentPoolId>,
    body: Body,
) -> Result<Response, ApiError> {
    Ok(issued(&control_plane.create_agent_pool_token(&caller, pool, wanted(body)?).await?))
}
