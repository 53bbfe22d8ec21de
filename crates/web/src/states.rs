//! `/app/{organization}/workspaces/{workspace}/states`: all versions of a workspace's state, newest first.

pub(crate) mod output;
pub(crate) mod state;
pub(crate) mod state_diff;
pub(crate) mod state_parts;
pub(crate) mod state_resource;
pub(crate) mod state_restore;
pub(crate) mod state_upload;

use askama::Template;
use axum::extract::{Path, Query, State};
use axum::http::StatusCode;
use axum::response::Response;
use jiff::Timestamp;
use serde::Deserialize;
use taco_control_plane::{StateFilter, StateVersionView};
use taco_domain::id::StateVersionId;
use taco_domain::state_version::{StateOrigin, StateVersionStatus};

use crate::error::PageError;
use crate::form::Complaint;
use crate::navigation::WorkspaceSection;
use crate::page::Layout;
use crate::pagination::{self, Pagination};
use crate::state_upload::UploadBox;
use crate::text::{self, Moment};
use crate::visitor::Visitor;
use crate::workspace::{address_of, named};
use crate::{Web, page};

#[derive(Template)]
#[template(path = "states.html")]
struct StatesPage {
    layout: Layout,
    address: String,
    /// Of the workspace.
    overview: String,
    rows: Vec<StateRow>,
    pages: Pagination,
    /// True if the list includes the intermediate states of applies.
    all: bool,
    upload: UploadBox,
    now: Timestamp,
}

/// One version of a state, as lists and its own page show it.
pub(crate) struct StateRow {
    pub(crate) id: StateVersionId,
    pub(crate) serial: u64,
    pub(crate) current: bool,
    pub(crate) created: Moment,
    pub(crate) by: String,
    pub(crate) run: Option<(String, String)>,
    pub(crate) origin: String,
    pub(crate) resources: u64,
    pub(crate) size: String,
    pub(crate) engine: String,
    pub(crate) encrypted: bool,
    /// Its bytes are there.
    pub(crate) readable: bool,
    /// An apply wrote it on its way to a later one.
    pub(crate) intermediate: bool,
}

impl StateRow {
    /// `workspace` is the address of the workspace's page.
    pub(crate) fn of(view: &StateVersionView, workspace: &str) -> Self {
        let StateVersionView { version, .. } = view;
        Self {
            id: version.id,
            serial: version.serial,
            current: view.is_current(),
            created: Moment(version.created_at),
            by: author(view),
            run: version.run.map(|id| (id.to_string(), format!("{workspace}/runs/{id}"))),
            origin: origin_in_words(view),
            resources: version.resource_count,
            size: text::size(version.size),
            engine: version.terraform_version.as_deref().map(text::plain).unwrap_or_default(),
            encrypted: version.encrypted,
            readable: version.status == StateVersionStatus::Finalized,
            intermediate: view.is_intermediate(),
        }
    }
}

/// Of a state that a run wrote, whoever started the run.
fn author(view: &StateVersionView) -> String {
    let StateVersionView { version, org } = view;
    match view.starter_of_run() {
        Some(starter) => org.name_of(&starter),
        None => org.name_of(&version.created_by),
    }
}

fn origin_in_words(view: &StateVersionView) -> String {
    match view.version.origin {
        StateOrigin::Apply => "apply".to_owned(),
        StateOrigin::RefreshOnly => "refresh".to_owned(),
        StateOrigin::Push | StateOrigin::Unknown => "pushed by a client".to_owned(),
        StateOrigin::Import => "import".to_owned(),
        StateOrigin::StateCommand => "state command".to_owned(),
        StateOrigin::Restore(_) => match view.restored_serial() {
            Some(serial) => format!("restored from serial {serial}"),
            None => "restored".to_owned(),
        },
        StateOrigin::OutOfBand => "written outside taco".to_owned(),
        StateOrigin::Rescue => "recovered from a lost agent".to_owned(),
    }
}

/// Query of the list's address.
#[derive(Deserialize, Default)]
#[serde(default)]
pub(crate) struct StatesQuery {
    page: String,
    /// `1`: with what applies wrote on their way.
    intermediate: String,
}

/// `GET /app/{organization}/workspaces/{workspace}/states`
pub(crate) async fn list(
    State(web): State<Web>,
    visitor: Visitor,
    Path(path): Path<(String, String)>,
    Query(wanted): Query<StatesQuery>,
) -> Result<Response, PageError> {
    render(&web, &visitor, path, wanted, Complaint::default(), StatusCode::OK).await
}

/// The page, perhaps with what was wrong about a state that was sent to it.
pub(crate) async fn render(
    web: &Web,
    visitor: &Visitor,
    path: (String, String),
    wanted: StatesQuery,
    complaint: Complaint,
    status: StatusCode,
) -> Result<Response, PageError> {
    let workspace = named(path);
    let view = web.control_plane.workspace_with_states(&visitor.caller, &workspace).await?;
    let number = pagination::asked_for(&wanted.page);
    let all = wanted.intermediate == "1";
    let filter = StateFilter { status: None, without_intermediate: !all };
    let listed = web.control_plane.state_versions(&visitor.caller, &workspace, filter, number).await?;
    let overview = address_of(&view);
    let address = format!("{overview}/states");
    let organization = view.org.entry().name.as_str();
    let page = StatesPage {
        layout: Layout::for_visitor(web, visitor).in_workspace(organization, &view.workspace, WorkspaceSection::States),
        pages: Pagination::of(&listed, |number| {
            format!("{address}?page={number}{}", if all { "&intermediate=1" } else { "" })
        }),
        all,
        rows: listed.items.iter().map(|view| StateRow::of(view, &overview)).collect(),
        upload: UploadBox::of(visitor, &view, complaint),
        address,
        overview,
        now: web.control_plane.now(),
    };
    Ok(page::render(status, &page))
}
