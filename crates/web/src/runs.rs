//! Lists of runs: of a workspace, and of an organization.

pub(crate) mod choose_workspace;
pub(crate) mod engine_line;
pub(crate) mod new_run;
pub(crate) mod plan_cache;
pub(crate) mod plan_view;
pub(crate) mod run;
pub(crate) mod run_query;

use askama::Template;
use axum::extract::{Path, Query, State};
use axum::http::HeaderMap;
use axum::response::Response;
use jiff::Timestamp;
use serde::Deserialize;
use taco_control_plane::{Listed, RunView, WorkspaceRef};
use taco_domain::id::RunId;
use taco_domain::phase::ResourceCounts;

use crate::Web;
use crate::badge::Badge;
use crate::error::PageError;
use crate::live::Version;
use crate::navigation::{Section, WorkspaceSection, organization_address, workspace_address};
use crate::page::Layout;
use crate::pagination::{self, Pagination};
use crate::run::page::{address_of, counts};
use crate::run_query::{ChosenDay, RunQuery, SourceChoice, StatusChip};
use crate::text::Moment;
use crate::visitor::Visitor;
use crate::words::{kind_words, list_title, source_words};

/// A run in a list.
pub(crate) struct RunRow {
    pub(crate) id: RunId,
    pub(crate) address: String,
    pub(crate) subject: String,
    pub(crate) badge: Badge,
    pub(crate) workspace: String,
    pub(crate) workspace_address: String,
    pub(crate) by: String,
    pub(crate) source: &'static str,
    pub(crate) created: Moment,
    pub(crate) counts: Option<ResourceCounts>,
    pub(crate) number: u64,
    pub(crate) kind: &'static str,
    pub(crate) destroys: bool,
}

impl RunRow {
    pub(crate) fn of(view: &RunView) -> Self {
        let (organization, workspace) = (view.org.entry().name.as_str(), view.workspace.name.as_str());
        Self {
            id: view.run.id,
            address: address_of(view),
            subject: list_title(&view.run.options),
            badge: Badge::of_run(view.run.status),
            workspace: workspace.to_owned(),
            workspace_address: workspace_address(organization, workspace),
            by: view.org.name_of(&view.run.created_by),
            source: source_words(view.run.source),
            created: Moment(view.run.created_at),
            counts: counts(&view.run),
            number: view.run.number,
            kind: kind_words(&view.run.options),
            destroys: view.run.options.is_destroy,
        }
    }
}

#[derive(Template)]
#[template(path = "runs.html", blocks = ["live"])]
struct RunsPage {
    layout: Layout,
    version: Version,
    now: Timestamp,
    address: String,
    /// Each row says of which workspace it is.
    of_organization: bool,
    rows: Vec<RunRow>,
    pages: Pagination,
    wanted: RunQuery,
    chips: Vec<StatusChip>,
    sources: Vec<SourceChoice>,
    day: Option<ChosenDay>,
    start: Start,
}

impl RunsPage {
    /// There is no run at all, as far as the visitor can see.
    fn is_empty(&self) -> bool {
        self.pages.total == 0 && !self.wanted.narrows()
    }

    fn caption(&self) -> &'static str {
        if self.wanted.narrows() { "Matching runs" } else { "All runs" }
    }
}

/// Link to start a run, or the reason why none can be started.
struct Start {
    address: String,
    /// Address of the configurations of the workspace whose runs these are.
    configurations: Option<String>,
    refusal: Option<String>,
}

#[derive(Deserialize)]
pub(crate) struct OrganizationPath {
    pub(crate) organization: String,
}

#[derive(Deserialize)]
pub(crate) struct WorkspacePath {
    pub(crate) organization: String,
    pub(crate) workspace: String,
}

impl WorkspacePath {
    pub(crate) fn reference(&self) -> WorkspaceRef {
        WorkspaceRef::Named { organization: self.organization.clone(), name: self.workspace.clone() }
    }
}

fn list(
    web: &Web,
    layout: Layout,
    version: Version,
    address: String,
    wanted: RunQuery,
    listed: &Listed<RunView>,
    start: Start,
) -> RunsPage {
    let live = listed.items.iter().any(|view| view.run.status.is_executing());
    let pages = Pagination::of(listed, |number| format!("{address}?{}", wanted.on_page(number).in_address()));
    RunsPage {
        layout: layout.refreshed(live.then_some(10)),
        version,
        now: web.control_plane.now(),
        of_organization: start.configurations.is_none(),
        rows: listed.items.iter().map(RunRow::of).collect(),
        pages,
        chips: wanted.chips(),
        sources: wanted.sources(),
        day: wanted.chosen_day(),
        wanted,
        start,
        address,
    }
}

/// `GET /app/{organization}/runs`
pub(crate) async fn of_organization(
    State(web): State<Web>,
    visitor: Visitor,
    Path(OrganizationPath { organization }): Path<OrganizationPath>,
    Query(wanted): Query<RunQuery>,
    headers: HeaderMap,
) -> Result<Response, PageError> {
    let version = Version::current(&web, &visitor, &organization).await?;
    if version.is_known(&headers) {
        return Ok(version.not_modified());
    }
    let page = pagination::asked_for(&wanted.page);
    let listed = web.control_plane.organization_runs(&visitor.caller, &organization, &wanted.filter(), page).await?;
    let layout = Layout::for_visitor(&web, &visitor).in_organization(&organization, Section::Runs);
    let address = format!("{}/runs", organization_address(&organization));
    let start = Start { address: format!("{address}/new"), configurations: None, refusal: None };
    let page = list(&web, layout, version, address, wanted, &listed, start);
    Ok(page.version.answer(&headers, &page.as_live(), &page))
}

/// `GET /app/{organization}/workspaces/{workspace}/runs`
pub(crate) async fn of_workspace(
    State(web): State<Web>,
    visitor: Visitor,
    Path(path): Path<WorkspacePath>,
    Query(wanted): Query<RunQuery>,
    headers: HeaderMap,
) -> Result<Response, PageError> {
    let version = Version::current(&web, &visitor, &path.organization).await?;
    if version.is_known(&headers) {
        return Ok(version.not_modified());
    }
    let (caller, reference) = (&visitor.caller, path.reference());
    let workspace = web.control_plane.workspace(caller, &reference).await?;
    let page = pagination::asked_for(&wanted.page);
    let listed = web.control_plane.workspace_runs(caller, &reference, &wanted.filter(), page).await?;
    let WorkspacePath { organization, workspace: name } = &path;
    let layout =
        Layout::for_visitor(&web, &visitor).in_workspace(organization, &workspace.workspace, WorkspaceSection::Runs);
    let address = format!("{}/runs", workspace_address(organization, name));
    let refusal = web.control_plane.new_run_refusal(caller, &workspace);
    let configurations = format!("{}/configurations", workspace_address(organization, name));
    let start = Start { address: format!("{address}/new"), configurations: Some(configurations), refusal };
    let page = list(&web, layout, version, address, wanted, &listed, start);
    Ok(page.version.answer(&headers, &page.as_live(), &page))
}
