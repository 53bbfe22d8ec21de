//! `/app/{organization}/runs/new`: the workspace in which a run is to start.

use askama::Template;
use axum::extract::{Path, Query, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Redirect, Response};
use taco_control_plane::{WorkspaceFilter, WorkspaceView};
use url::form_urlencoded::Serializer;

use crate::badge::Badge;
use crate::error::PageError;
use crate::navigation::{Section, organization_address, workspace_address};
use crate::page::Layout;
use crate::pagination::{self, PageQuery, Pagination};
use crate::runs::OrganizationPath;
use crate::text::plain;
use crate::visitor::Visitor;
use crate::{Web, page};

#[derive(Template)]
#[template(path = "choose_workspace.html")]
struct ChoicePage {
    layout: Layout,
    address: String,
    /// Of the list of workspaces.
    workspaces: String,
    search: String,
    rows: Vec<Row>,
    pages: Pagination,
}

struct Row {
    name: String,
    /// Of the form that starts a run in it, or the reason why none can be started.
    start: Result<String, String>,
    project: String,
    latest: Option<Badge>,
    locked_by: Option<String>,
}

impl Row {
    fn of(web: &Web, visitor: &Visitor, view: &WorkspaceView) -> Self {
        let WorkspaceView { workspace, org } = view;
        let address = format!("{}/runs/new", workspace_address(org.entry().name.as_str(), workspace.name.as_str()));
        Self {
            name: workspace.name.to_string(),
            start: match web.control_plane.new_run_refusal(&visitor.caller, view) {
                None => Ok(address),
                Some(why) => Err(why),
            },
            project: view.project().map(|project| project.name.to_string()).unwrap_or_default(),
            latest: view.current_run().map(|run| Badge::of_run(run.status)),
            locked_by: workspace.lock.as_ref().map(|lock| plain(&lock.holder_name)),
        }
    }
}

/// `GET /app/{organization}/runs/new`
pub(crate) async fn show(
    State(web): State<Web>,
    visitor: Visitor,
    Path(OrganizationPath { organization }): Path<OrganizationPath>,
    Query(PageQuery { search, page }): Query<PageQuery>,
) -> Result<Response, PageError> {
    let name = Some(search.trim().to_owned()).filter(|name| !name.is_empty());
    let filter = WorkspaceFilter { name, ..WorkspaceFilter::default() };
    let asked = pagination::asked_for(&page);
    let listed = web.control_plane.workspaces(&visitor.caller, &organization, &filter, asked).await?;
    let address = format!("{}/runs/new", organization_address(&organization));
    let rows: Vec<Row> = listed.items.iter().map(|view| Row::of(&web, &visitor, view)).collect();
    if let ([Row { start: Ok(only), .. }], true) = (rows.as_slice(), search.is_empty()) {
        return Ok(Redirect::to(only).into_response());
    }
    let at = |number: usize| {
        let mut query = Serializer::new(String::new());
        query.append_pair("search", &search).append_pair("page", &number.to_string());
        format!("{address}?{}", query.finish())
    };
    let page = ChoicePage {
        layout: Layout::for_visitor(&web, &visitor).in_organization(&organization, Section::Runs),
        pages: Pagination::of(&listed, at),
        workspaces: format!("{}/workspaces", organization_address(&organization)),
        rows,
        search,
        address,
    };
    Ok(page::render(StatusCode::OK, &page))
}
