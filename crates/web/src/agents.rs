//! `/app/{organization}/agents`: who executes runs, and the pools that say for whom.

pub(crate) mod agent_pool;

use askama::Template;
use axum::extract::{Path, Query, State};
use axum::http::StatusCode;
use axum::response::Response;
use jiff::Timestamp;
use serde::Deserialize;
use taco_control_plane::{AgentPoolFilter, AgentPoolPatch, AgentPoolView};
use taco_domain::agent::AgentPresence;
use taco_domain::id::AgentPoolId;
use taco_domain::permission::Action;

use crate::error::PageError;
use crate::flash::Flash;
use crate::form::{Complaint, VisitorForm};
use crate::navigation::{Section, organization_address};
use crate::page::Layout;
use crate::pagination::{self, Pagination};
use crate::pictures::{self, Rows};
use crate::runs::OrganizationPath;
use crate::text::{Moment, plain};
use crate::visitor::Visitor;
use crate::{Web, page};

pub(crate) fn pool_address(organization: &str, pool: AgentPoolId) -> String {
    format!("{}/agents/pools/{pool}", organization_address(organization))
}

#[derive(Template)]
#[template(path = "agents.html")]
struct AgentsPage {
    layout: Layout,
    now: Timestamp,
    address: String,
    pools: Vec<PoolRow>,
    pages: Pagination,
    /// Those within servers, which execute everything that needs no pool.
    within: Vec<PresentAgent>,
    /// Reason why the visitor cannot create a pool.
    refusal: Option<String>,
    name: String,
    complaint: Complaint,
    slots: Option<Rows>,
}

struct PoolRow {
    name: String,
    id: AgentPoolId,
    address: String,
    scope: String,
    present: usize,
    busy: usize,
}

struct PresentAgent {
    name: String,
    busy: u32,
    concurrency: u32,
    engines: String,
    version: String,
    heard: Option<Moment>,
}

impl PresentAgent {
    fn of(agent: &AgentPresence) -> Self {
        Self {
            name: plain(&agent.name),
            busy: agent.busy,
            concurrency: agent.concurrency,
            engines: plain(&agent.engines.join(", ")),
            version: plain(&agent.version),
            heard: agent.last_heard_at.map(Moment),
        }
    }
}

/// Scope of a pool in words: the workspaces that it works for.
pub(crate) fn scope(view: &AgentPoolView) -> String {
    let pool = &view.pool;
    let several = |count: usize, one: &str| match count {
        1 => format!("1 {one}"),
        count => format!("{count} {one}s"),
    };
    match pool.organization_scoped {
        true if pool.excluded_workspaces.is_empty() => "All workspaces".to_owned(),
        true => format!("All workspaces except {}", pool.excluded_workspaces.len()),
        false => format!(
            "{}, {}",
            several(pool.allowed_workspaces.len(), "workspace"),
            several(pool.allowed_projects.len(), "project")
        ),
    }
}

async fn render(
    web: &Web,
    visitor: &Visitor,
    organization: &str,
    number: &str,
    name: String,
    complaint: Complaint,
    status: StatusCode,
) -> Result<Response, PageError> {
    let filter = AgentPoolFilter::default();
    let asked = pagination::asked_for(number);
    let listed = web.control_plane.agent_pools(&visitor.caller, organization, &filter, asked).await?;
    let open = web.control_plane.organization_named(&visitor.caller, organization).await?;
    let right = visitor.caller.may(Action::ManageAgentPools, open.resource());
    let present = web.control_plane.presence().agents();
    let address = format!("{}/agents", organization_address(organization));
    let row = |view: &AgentPoolView| {
        let of_pool = || present.iter().filter(|agent| agent.pool == Some(view.pool.id));
        PoolRow {
            name: view.pool.name.to_string(),
            id: view.pool.id,
            address: pool_address(organization, view.pool.id),
            scope: scope(view),
            present: of_pool().count(),
            busy: of_pool().filter(|agent| agent.busy > 0).count(),
        }
    };
    let page = AgentsPage {
        layout: Layout::for_visitor(web, visitor).in_organization(organization, Section::Agents),
        now: web.control_plane.now(),
        pools: listed.items.iter().map(row).collect(),
        pages: Pagination::of(&listed, |number| format!("{address}?page={number}")),
        within: present.iter().filter(|agent| agent.pool.is_none()).map(PresentAgent::of).collect(),
        refusal: (!right.allowed).then(|| right.reason.into_owned()),
        name,
        complaint,
        address,
        slots: pictures::pages::agents(web, |pool| open.has_agent_pool(&pool)),
    };
    Ok(page::render(status, &page))
}

#[derive(Default, Deserialize)]
#[serde(default)]
pub(crate) struct AgentsQuery {
    page: String,
}

/// `GET /app/{organization}/agents`
pub(crate) async fn list(
    State(web): State<Web>,
    visitor: Visitor,
    Path(OrganizationPath { organization }): Path<OrganizationPath>,
    Query(query): Query<AgentsQuery>,
) -> Result<Response, PageError> {
    render(&web, &visitor, &organization, &query.page, String::new(), Complaint::default(), StatusCode::OK).await
}

#[derive(Deserialize)]
pub(crate) struct NewPool {
    #[serde(default)]
    name: String,
}

/// `POST /app/{organization}/agents`
pub(crate) async fn create(
    State(web): State<Web>,
    Path(OrganizationPath { organization }): Path<OrganizationPath>,
    VisitorForm(visitor, form): VisitorForm<NewPool>,
) -> Result<Response, PageError> {
    let name = form.name.trim().to_owned();
    let patch = AgentPoolPatch { name: Some(name.clone()), ..AgentPoolPatch::default() };
    match web.control_plane.create_agent_pool(&visitor.caller, &organization, patch).await {
        Ok(view) => {
            let address = pool_address(&organization, view.pool.id);
            Ok(Flash::created("Agent pool", &name).redirect_to(&address))
        }
        Err(error) => {
            let (complaint, status) = (Complaint::of(error, &["name"])?, StatusCode::UNPROCESSABLE_ENTITY);
            render(&web, &visitor, &organization, "", name, complaint, status).await
        }
    }
}
