//! Agent pools.

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use jiff::Timestamp;
use serde::Serialize;
use taco_control_plane::{AgentPoolFilter, AgentPoolOrder, AgentPoolPatch, AgentPoolView, Caller, ControlPlane};
use taco_domain::id::AgentPoolId;

use crate::body::{Body, NoAttributes, Sent};
use crate::document::{Document, Identifier, Resource};
use crate::error::ApiError;
use crate::path::InPath;
use crate::query::Query;
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

fn resource(control_plane: &ControlPlane, view: &AgentPoolView) -> Resource {
    let AgentPoolView { pool, open, users } = view;
    let attributes = Attributes {
        name: pool.name.as_str(),
        created_at: pool.created_at,
        organization_scoped: pool.organization_scoped,
        agent_count: control_plane.agents_present(pool.id),
    };
    let workspace = |id: &taco_domain::id::WorkspaceId| Identifier::new(workspaces::KIND, id);
    Resource::new(KIND, pool.id, &attributes)
        .has_one("organization", organizations::identifier(open.entry().name.as_str()))
        .has_many("workspaces", users.iter().map(workspace))
        .has_many("allowed-workspaces", pool.allowed_workspaces.iter().map(workspace))
        .has_many("allowed-projects", pool.allowed_projects.iter().map(|id| Identifier::new(projects::KIND, id)))
        .has_many("excluded-workspaces", pool.excluded_workspaces.iter().map(workspace))
        .link("self", format!("/api/v2/agent-pools/{}", pool.id))
}

fn ids<I: FromStr<Err: fmt::Display> + Ord>(
    sent: &Sent<AgentPoolPatch>,
    name: &str,
    kind: &str,
) -> Result<Option<BTreeSet<I>>, ApiError> {
    let Some(named) = sent.to_many::<NoAttributes>(name, kind)? else { return Ok(None) };
    named.iter().map(|thing| thing.id()).collect::<Result<BTreeSet<I>, _>>().map(Some)
}

fn read_patch(body: Body) -> Result<AgentPoolPatch, ApiError> {
    let sent = body.resource::<AgentPoolPatch>(KIND)?;
    let allowed_workspaces = ids(&sent, "allowed-workspaces", workspaces::KIND)?;
    let allowed_projects = ids(&sent, "allowed-projects", projects::KIND)?;
    let excluded_workspaces = ids(&sent, "excluded-workspaces", workspaces::KIND)?;
    Ok(AgentPoolPatch { allowed_workspaces, allowed_projects, excluded_workspaces, ..sent.attributes })
}

/// `GET /api/v2/organizations/{organization}/agent-pools`
pub(crate) async fn list(
    State(control_plane): State<ControlPlane>,
    caller: Caller,
    InPath(organization): InPath<String>,
    query: Query,
) -> Result<Document, ApiError> {
    let text = |key: &str| query.get(key).map(str::to_owned);
    let order = match query.get("sort") {
        Some("created-at") => AgentPoolOrder::OldestFirst,
        Some("-created-at") => AgentPoolOrder::NewestFirst,
        _ => AgentPoolOrder::Name,
    };
    let filter = AgentPoolFilter {
        name: text("q"),
        workspace: text("filter[allowed_workspaces][name]"),
        project: text("filter[allowed_projects][name]"),
        order,
    };
    let listed = control_plane.agent_pools(&caller, &organization, &filter, query.page()?).await?;
    Ok(Document::page(listed.map(|view| resource(&control_plane, &view))))
}

/// `POST /api/v2/organizations/{organization}/agent-pools`
pub(crate) async fn create(
    State(control_plane): State<ControlPlane>,
    caller: Caller,
    InPath(organization): InPath<String>,
    body: Body,
) -> Result<Response, ApiError> {
    let view = control_plane.create_agent_pool(&caller, &organization, read_patch(body)?).await?;
    Ok((StatusCode::CREATED, Document::one(resource(&control_plane, &view))).into_response())
}

/// `GET /api/v2/agent-pools/{pool}`
pub(crate) async fn read(
    State(control_plane): State<ControlPlane>,
    caller: Caller,
    InPath(pool): InPath<AgentPoolId>,
) -> Result<Document, ApiError> {
    Ok(Document::one(resource(&control_plane, &control_plane.agent_pool(&caller, pool).await?)))
}

/// `PATCH /api/v2/agent-pools/{pool}`
pub(crate) async fn update(
    State(control_plane): State<ControlPlane>,
    caller: Caller,
    InPath(pool): InPath<AgentPoolId>,
    body: Body,
) -> Result<Document, ApiError> {
    Ok(Document::one(resource(
        &control_plane,
        &control_plane.update_agent_pool(&caller, pool, read_patch(body)?).await?,
    )))
}

/// `DELETE /api/v2/agent-pools/{pool}`
pub(crate) async fn delete(
    State(control_plane): State<ControlPlane>,
    caller: Caller,
    InPath(pool): InPath<AgentPoolId>,
) -> Result<StatusCode, ApiError> {
    control_plane.delete_agent_pool(&caller, pool).await?;
    Ok(StatusCode::NO_CONTENT)
}
