//! `/app/{organization}/walks`: walks over the graph, and one of them as it goes on.

use askama::Template;
use axum::extract::{Path, Query, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use jiff::Timestamp;
use serde::Deserialize;
use taco_control_plane::{Error, NewWalk, WalkNodeView, WalkView};
use taco_domain::walks::walk::WalkId;
use taco_domain::walks::words::{WalkKind, WalkNodeState, WalkState};

use crate::badge::Badge;
use crate::error::PageError;
use crate::flash::Flash;
use crate::form::{Complaint, VisitorForm};
use crate::live::Version;
use crate::navigation::{Section, organization_address, workspace_address};
use crate::page::Layout;
use crate::pagination::{self, Pagination};
use crate::runs::OrganizationPath;
use crate::text::{Moment, plain};
use crate::visitor::Visitor;
use crate::{Web, page};

/// Seconds between two looks at a walk that goes on, for browsers without scripts.
const REFRESH_SECONDS: u32 = 5;

impl Badge {
    fn of_walk(state: WalkState) -> Self {
        match state {
            WalkState::Running => Self::new("Running", "◔", "busy"),
            WalkState::NeedsApproval => Self::new("Needs approval", "!", "asks"),
            WalkState::Done => Self::new("Done", "✓", "good"),
            WalkState::Failed => Self::new("Failed", "✕", "bad"),
            WalkState::Canceled => Self::new("Canceled", "–", "off"),
        }
    }

    fn of_walk_node(state: WalkNodeState) -> Self {
        match state {
            WalkNodeState::Waiting => Self::new("Waiting", "○", "calm"),
            WalkNodeState::Ready => Self::new("Ready", "○", "calm"),
            WalkNodeState::Planning => Self::new("Planning", "◔", "busy"),
            WalkNodeState::NeedsApproval => Self::new("Needs approval", "!", "asks"),
            WalkNodeState::Applying => Self::new("Applying", "◑", "busy"),
            WalkNodeState::Done => Self::new("Done", "✓", "good"),
            WalkNodeState::CutOff => Self::new("Nothing to do", "–", "off"),
            WalkNodeState::Failed => Self::new("Failed", "✕", "bad"),
            WalkNodeState::Canceled => Self::new("Canceled", "–", "off"),
            WalkNodeState::Blocked => Self::new("Blocked", "⊘", "asks"),
            WalkNodeState::Outdated => Self::new("Outdated", "◔", "asks"),
        }
    }
}

fn walks_address(organization: &str) -> String {
    format!("{}/walks", organization_address(organization))
}

fn kind_words(kind: WalkKind) -> &'static str {
    match kind {
        WalkKind::Plan => "Plan",
        WalkKind::Apply => "Apply",
        WalkKind::Destroy => "Destroy",
    }
}

struct WalkRow {
    id: WalkId,
    address: String,
    kind: &'static str,
    badge: Badge,
    selection: String,
    by: String,
    created: Moment,
    units: usize,
    ended: usize,
}

impl WalkRow {
    fn of(visitor: &Visitor, organization: &str, view: &WalkView) -> Self {
        let nodes = view.nodes(&visitor.caller);
        Self {
            id: view.walk.id,
            address: format!("{}/{}", walks_address(organization), view.walk.id),
            kind: kind_words(view.walk.kind),
            badge: Badge::of_walk(view.walk.state),
            selection: plain(view.selection(&visitor.caller)),
            by: plain(&view.name_of(&view.walk.created_by)),
            created: Moment(view.walk.created_at),
            units: nodes.len(),
            ended: nodes.iter().filter(|view| view.node.has_ended()).count(),
        }
    }
}

#[derive(Template)]
#[template(path = "walks.html", blocks = ["live"])]
struct WalksPage {
    layout: Layout,
    version: Version,
    now: Timestamp,
    address: String,
    rows: Vec<WalkRow>,
    pages: Pagination,
    form: WalkForm,
    complaint: Complaint,
}

/// The fields of a new walk.
#[derive(Clone, Default, Deserialize)]
#[serde(default)]
pub(crate) struct WalkForm {
    kind: String,
    /// `from`, `stale` or `all`.
    choice: String,
    /// Names, separated by blanks or commas.
    from: String,
    approval: String,
}

impl WalkForm {
    fn new_walk(&self) -> NewWalk {
        let names = self.from.split([' ', ',']).filter(|name| !name.is_empty()).map(str::to_owned);
        NewWalk {
            kind: Some(self.kind.clone()).filter(|kind| !kind.is_empty()),
            from: if self.choice == "from" || self.choice.is_empty() { names.collect() } else { Vec::new() },
            stale: self.choice == "stale",
            all: self.choice == "all",
            approval: Some(self.approval.clone()).filter(|approval| !approval.is_empty()),
            ..NewWalk::default()
        }
    }
}

#[derive(Default, Deserialize)]
#[serde(default)]
pub(crate) struct WalksQuery {
    page: String,
    from: String,
}

/// `GET /app/{organization}/walks`
pub(crate) async fn list(
    State(web): State<Web>,
    visitor: Visitor,
    Path(OrganizationPath { organization }): Path<OrganizationPath>,
    Query(query): Query<WalksQuery>,
    headers: HeaderMap,
) -> Result<Response, PageError> {
    let version = Version::current(&web, &visitor, &organization).await?;
    if version.is_known(&headers) {
        return Ok(version.not_modified());
    }
    let form = WalkForm { from: plain(&query.from), ..WalkForm::default() };
    let page = walks_page(&web, &visitor, &organization, version, &query.page, form, Complaint::default()).await?;
    Ok(page.version.answer(&headers, &page.as_live(), &page))
}

async fn walks_page(
    web: &Web,
    visitor: &Visitor,
    organization: &str,
    version: Version,
    number: &str,
    form: WalkForm,
    complaint: Complaint,
) -> Result<WalksPage, PageError> {
    let asked = pagination::asked_for(number);
    let listed = web.control_plane.walks(&visitor.caller, organization, asked).await?;
    let address = walks_address(organization);
    let goes_on = listed.items.iter().any(|view| view.walk.is_open());
    let layout = Layout::for_visitor(web, visitor).in_organization(organization, Section::Runs);
    Ok(WalksPage {
        layout: layout.refreshed(goes_on.then_some(REFRESH_SECONDS)),
        version,
        now: web.control_plane.now(),
        rows: listed.items.iter().map(|view| WalkRow::of(visitor, organization, view)).collect(),
        pages: Pagination::of(&listed, |number| format!("{address}?page={number}")),
        address,
        form,
        complaint,
    })
}

/// `POST /app/{organization}/walks`
pub(crate) async fn create(
    State(web): State<Web>,
    Path(OrganizationPath { organization }): Path<OrganizationPath>,
    VisitorForm(visitor, form): VisitorForm<WalkForm>,
) -> Result<Response, PageError> {
    match web.control_plane.create_walk(&visitor.caller, &organization, form.new_walk()).await {
        Ok(view) => {
            let address = format!("{}/{}", walks_address(&organization), view.walk.id);
            Ok(Flash::says(format!("Walk {} started.", view.walk.id)).redirect_to(&address))
        }
        Err(error) => {
            let fields = ["from", "kind", "approval", "parallel", "on-fail"];
            let (complaint, status) = (Complaint::of(error, &fields)?, StatusCode::UNPROCESSABLE_ENTITY);
            let version = Version::current(&web, &visitor, &organization).await?;
            let page = walks_page(&web, &visitor, &organization, version, "", form, complaint).await?;
            Ok(page::render(status, &page))
        }
    }
}

#[derive(Template)]
#[template(path = "walk.html", blocks = ["live"])]
struct WalkPage {
    layout: Layout,
    version: Version,
    now: Timestamp,
    row: WalkRow,
    nodes: Vec<NodeRow>,
    /// Some plan waits for approval.
    waits: bool,
    is_open: bool,
    can_be_resumed: bool,
    approved_by: Option<String>,
    canceled_by: Option<String>,
}

struct NodeRow {
    name: String,
    /// `None` for a unit that the visitor may not see.
    address: Option<String>,
    badge: Badge,
    reason: String,
    runs: Vec<(String, String)>,
}

impl NodeRow {
    fn of(organization: &str, view: &WalkNodeView) -> Self {
        let node = &view.node;
        let workspace = workspace_address(organization, &node.name);
        let runs = node.runs.iter().map(|run| (run.to_string(), format!("{workspace}/runs/{run}")));
        Self {
            name: plain(&node.name),
            runs: runs.collect(),
            address: view.is_seen.then_some(workspace),
            badge: Badge::of_walk_node(node.state),
            reason: plain(node.reason.as_deref().unwrap_or_default()),
        }
    }
}

#[derive(Deserialize)]
pub(crate) struct WalkPath {
    organization: String,
    walk: WalkId,
}

/// `GET /app/{organization}/walks/{walk}`
pub(crate) async fn show(
    State(web): State<Web>,
    visitor: Visitor,
    Path(WalkPath { organization, walk }): Path<WalkPath>,
    headers: HeaderMap,
) -> Result<Response, PageError> {
    let version = Version::current(&web, &visitor, &organization).await?;
    if version.is_known(&headers) {
        return Ok(version.not_modified());
    }
    let view = web.control_plane.walk(&visitor.caller, walk).await?;
    let nodes = view.nodes(&visitor.caller);
    let layout = Layout::for_visitor(&web, &visitor).in_organization(&organization, Section::Runs);
    let name = |decision: &taco_domain::walks::walk::Decision| plain(&view.name_of(&decision.by));
    let page = WalkPage {
        layout: layout.refreshed(view.walk.is_open().then_some(REFRESH_SECONDS)),
        version,
        now: web.control_plane.now(),
        row: WalkRow::of(&visitor, &organization, &view),
        waits: nodes.iter().any(|view| view.node.state == WalkNodeState::NeedsApproval),
        nodes: nodes.iter().map(|view| NodeRow::of(&organization, view)).collect(),
        is_open: view.walk.is_open(),
        can_be_resumed: matches!(view.walk.state, WalkState::Failed | WalkState::Canceled),
        approved_by: view.walk.approved.as_ref().map(name),
        canceled_by: view.walk.canceled.as_ref().map(name),
    };
    Ok(page.version.answer(&headers, &page.as_live(), &page))
}

#[derive(Default, Deserialize)]
pub(crate) struct NoFields {}

fn decided(path: &WalkPath, done: Result<WalkView, Error>, sentence: &str) -> Result<Response, PageError> {
    let address = format!("{}/{}", walks_address(&path.organization), path.walk);
    match done {
        Ok(_) => Ok(Flash::says(sentence).redirect_to(&address)),
        // Somebody was quicker.
        Err(Error::Conflict(why)) => Ok(Flash::says(why).redirect_to(&address)),
        Err(error) => Err(error.into()),
    }
}

/// `POST /app/{organization}/walks/{walk}/approve`
pub(crate) async fn approve(
    State(web): State<Web>,
    Path(path): Path<WalkPath>,
    VisitorForm(visitor, NoFields {}): VisitorForm<NoFields>,
) -> Result<Response, PageError> {
    let done = web.control_plane.approve_walk(&visitor.caller, path.walk, Vec::new()).await;
    decided(&path, done, "Approved.")
}

/// `POST /app/{organization}/walks/{walk}/resume`
pub(crate) async fn resume(
    State(web): State<Web>,
    Path(path): Path<WalkPath>,
    VisitorForm(visitor, NoFields {}): VisitorForm<NoFields>,
) -> Result<Response, PageError> {
    let done = web.control_plane.resume_walk(&visitor.caller, path.walk).await;
    decided(&path, done, "Resumed: what was not done is tried again.")
}

/// `POST /app/{organization}/walks/{walk}/cancel`
pub(crate) async fn cancel(
    State(web): State<Web>,
    Path(path): Path<WalkPath>,
    VisitorForm(visitor, NoFields {}): VisitorForm<NoFields>,
) -> Result<Response, PageError> {
    let done = web.control_plane.cancel_walk(&visitor.caller, path.walk).await;
    decided(&path, done, "Canceling: runs are asked to stop, and no more begin.")
}
