//! `/app/{organization}`: first what needs the visitor, then the overall status; and `/queue`: what waits, and why.

use askama::Template;
use axum::extract::{Path, Query, State};
use axum::http::HeaderMap;
use axum::response::Response;
use jiff::Timestamp;
use serde::Deserialize;
use taco_control_plane::{Dashboard, RunView};
use taco_domain::workspace::Workspace;

use crate::Web;
use crate::error::PageError;
use crate::live::Version;
use crate::navigation::{Section, organization_address, workspace_address};
use crate::page::Layout;
use crate::pagination::{self, Pagination};
use crate::pictures::pages::DashboardPictures;
use crate::pictures::{Rows, lanes};
use crate::run::waits::Wait;
use crate::runs::{OrganizationPath, RunRow};
use crate::text::{Moment, plain, stopwatch};
use crate::visitor::Visitor;

#[derive(Template)]
#[template(path = "dashboard.html", blocks = ["live"])]
struct DashboardPage {
    layout: Layout,
    version: Version,
    now: Timestamp,
    address: String,
    to_decide: Vec<RunRow>,
    for_others: usize,
    under_way: Vec<RunRow>,
    failed: Vec<RunRow>,
    waiting: usize,
    agents: usize,
    busy_agents: usize,
    silent_agents: Vec<SilentAgent>,
    locked: Vec<LockedWorkspace>,
    has_workspaces: bool,
    pictures: DashboardPictures,
}

struct SilentAgent {
    name: String,
    pool_address: String,
}

struct LockedWorkspace {
    name: String,
    address: String,
    holder: String,
    since: Moment,
    reason: Option<String>,
}

impl LockedWorkspace {
    fn of(organization: &str, workspace: &Workspace) -> Option<Self> {
        let lock = workspace.lock.as_ref()?;
        Some(Self {
            name: workspace.name.to_string(),
            address: workspace_address(organization, workspace.name.as_str()),
            holder: plain(&lock.holder_name),
            since: Moment(lock.since),
            reason: lock.reason.as_deref().map(plain),
        })
    }
}

/// `GET /app/{organization}`
pub(crate) async fn show(
    State(web): State<Web>,
    visitor: Visitor,
    Path(OrganizationPath { organization }): Path<OrganizationPath>,
    headers: HeaderMap,
) -> Result<Response, PageError> {
    let version = Version::current(&web, &visitor, &organization).await?;
    if version.is_known(&headers) {
        return Ok(version.not_modified());
    }
    let Dashboard {
        org,
        to_decide,
        for_others,
        under_way,
        failed,
        waiting,
        locked,
        agents,
        busy_agents,
        silent_agents,
    } = web.control_plane.dashboard(&visitor.caller, &organization).await?;
    let rows = |views: &[RunView]| views.iter().map(RunRow::of).collect::<Vec<_>>();
    let address = organization_address(&organization);
    let silent = silent_agents.into_iter().map(|agent| SilentAgent {
        name: plain(&agent.name),
        pool_address: format!("{address}/agents/pools/{}", agent.pool),
    });
    let page = DashboardPage {
        layout: Layout::for_visitor(&web, &visitor)
            .in_organization(&organization, Section::Dashboard)
            .refreshed(Some(30)),
        version,
        now: web.control_plane.now(),
        to_decide: rows(&to_decide),
        for_others,
        under_way: rows(&under_way),
        failed: rows(&failed),
        waiting,
        agents,
        busy_agents,
        silent_agents: silent.collect(),
        locked: locked.iter().filter_map(|workspace| LockedWorkspace::of(&organization, workspace)).collect(),
        has_workspaces: org.workspace_count() > 0,
        pictures: DashboardPictures::of(&web, &visitor, &org).await,
        address,
    };
    Ok(page.version.answer(&headers, &page.as_live(), &page))
}

#[derive(Template)]
#[template(path = "queue.html", blocks = ["live"])]
struct QueuePage {
    layout: Layout,
    version: Version,
    rows: Vec<QueueRow>,
    pages: Pagination,
    lanes: Option<Rows>,
}

struct QueueRow {
    run: RunRow,
    reasons: Vec<Wait>,
    /// The agent that executes it.
    agent: Option<String>,
    waited: String,
    since: Moment,
}

impl QueueRow {
    fn of(web: &Web, view: &RunView) -> Self {
        let run = &view.run;
        let reasons = web.control_plane.wait_reasons(view);
        let phase = run.executing_phase().map(|kind| run.phase(kind));
        let agent = phase.and_then(|phase| phase.executor.as_ref()).map(|executor| plain(&executor.agent_name));
        let since = phase.and_then(|phase| phase.started_at).unwrap_or(run.created_at);
        Self {
            run: RunRow::of(view),
            reasons: reasons.iter().map(|reason| Wait::of(view, reason)).collect(),
            agent,
            waited: stopwatch(web.control_plane.now().duration_since(since)),
            since: Moment(since),
        }
    }
}

#[derive(Default, Deserialize)]
#[serde(default)]
pub(crate) struct QueueQuery {
    page: String,
}

/// `GET /app/{organization}/queue`
pub(crate) async fn queue(
    State(web): State<Web>,
    visitor: Visitor,
    Path(OrganizationPath { organization }): Path<OrganizationPath>,
    Query(query): Query<QueueQuery>,
    headers: HeaderMap,
) -> Result<Response, PageError> {
    let version = Version::current(&web, &visitor, &organization).await?;
    if version.is_known(&headers) {
        return Ok(version.not_modified());
    }
    let asked = pagination::asked_for(&query.page);
    let listed = web.control_plane.queued_runs(&visitor.caller, &organization, asked).await?;
    let lanes = web.control_plane.queue_lanes(&visitor.caller, &organization).await?;
    let address = format!("{}/queue", organization_address(&organization));
    let page = QueuePage {
        layout: Layout::for_visitor(&web, &visitor).in_organization(&organization, Section::Queue).refreshed(Some(10)),
        version,
        rows: listed.items.iter().map(|view| QueueRow::of(&web, view)).collect(),
        lanes: lanes::lanes(&lanes, &organization),
        pages: Pagination::of(&listed, |number| format!("{address}?page={number}")),
    };
    Ok(page.version.answer(&headers, &page.as_live(), &page))
}
