//! `/app/{organization}/workspaces/{workspace}/states/{id}`: one version of a state, and its download.

use askama::Template;
use axum::body::Body;
use axum::extract::{Path, Query, State};
use axum::http::StatusCode;
use axum::http::header::{CONTENT_DISPOSITION, CONTENT_LENGTH, CONTENT_TYPE};
use axum::response::{IntoResponse, Response};
use jiff::Timestamp;
use taco_control_plane::{Error, PageRequest, StateFilter, StateVersionView, WorkspaceRef, WorkspaceView};
use taco_domain::id::StateVersionId;
use taco_domain::state_version::BackingDataAction;

use crate::error::PageError;
use crate::flash::Flash;
use crate::form::{Nothing, VisitorForm};
use crate::navigation::WorkspaceSection;
use crate::page::Layout;
use crate::pagination;
use crate::pictures::{Figure, resource_map};
use crate::state_parts::{OutputRows, ResourceQuery, Resources, ShownValue};
use crate::states::StateRow;
use crate::text::Moment;
use crate::visitor::Visitor;
use crate::workspace::{address_of, may_reveal, named};
use crate::{Web, page};

#[derive(Template)]
#[template(path = "state.html")]
struct StatePage {
    layout: Layout,
    address: String,
    version: StateRow,
    lineage: String,
    others: Vec<Other>,
    restore: Result<(), String>,
    /// The steps in which its bytes go.
    data_steps: Vec<DataStep>,
    outputs: OutputRows,
    overview: String,
    reveal: Result<(), String>,
    resources: Resources,
    map: Option<Figure>,
    now: Timestamp,
}

/// Action on a version's bytes.
struct DataStep {
    path: &'static str,
    word: &'static str,
    hint: &'static str,
    choice: Result<(), String>,
}

/// The name of each step in addresses, what it does, and what the page says afterwards.
const DATA_STEPS: [(&str, BackingDataAction, &str); 3] = [
    ("delete", BackingDataAction::SoftDelete, "data deleted. It can be restored."),
    ("bring-back", BackingDataAction::Restore, "data restored."),
    ("delete-for-good", BackingDataAction::PermanentlyDelete, "data deleted for good."),
];

impl DataStep {
    fn of(path: &'static str, action: BackingDataAction, choice: Result<(), String>) -> Self {
        let (word, hint) = match action {
            BackingDataAction::SoftDelete => ("Delete data", "It can be restored until it is deleted permanently."),
            BackingDataAction::Restore => ("Restore data", ""),
            BackingDataAction::PermanentlyDelete => ("Delete data permanently", "This can't be undone."),
        };
        Self { path, word, hint, choice }
    }
}

/// Another version, to compare with.
pub(crate) struct Other {
    pub(crate) id: StateVersionId,
    pub(crate) serial: u64,
    pub(crate) created: String,
    pub(crate) chosen: bool,
}

/// Organization, workspace, state version.
pub(crate) type StatePath = Path<(String, String, String)>;

/// The workspace and the version that a path names, if the one has the other.
pub(crate) async fn find(
    web: &Web,
    visitor: &Visitor,
    Path((organization, name, id)): StatePath,
) -> Result<(WorkspaceView, StateVersionView), PageError> {
    let id = id.parse().map_err(|_| PageError::not_found("state version"))?;
    let workspace = web.control_plane.workspace_with_states(&visitor.caller, &named((organization, name))).await?;
    let state = web.control_plane.state_version(&visitor.caller, id).await?;
    if state.version.workspace != workspace.workspace.id {
        return Err(PageError::not_found("state version"));
    }
    Ok((workspace, state))
}

/// The versions that one can be compared with: the newest ones, and `chosen` in any case.
pub(crate) async fn others(
    web: &Web,
    visitor: &Visitor,
    state: &StateVersionView,
    chosen: Option<StateVersionId>,
) -> Result<Vec<Other>, Error> {
    let workspace = WorkspaceRef::Id(state.version.workspace);
    let listed = web
        .control_plane
        .state_versions(&visitor.caller, &workspace, StateFilter::default(), PageRequest::new(1, pagination::ROWS))
        .await?;
    let mut others = listed.items;
    if let Some(id) = chosen
        && others.iter().all(|other| other.version.id != id)
    {
        others.push(web.control_plane.state_version(&visitor.caller, id).await?);
    }
    others.retain(|other| other.version.id != state.version.id);
    let of = |other: StateVersionView| Other {
        id: other.version.id,
        serial: other.version.serial,
        created: Moment(other.version.created_at).text(),
        chosen: chosen == Some(other.version.id),
    };
    Ok(others.into_iter().map(of).collect())
}

/// `GET /app/{organization}/workspaces/{workspace}/states/{id}`
pub(crate) async fn show(
    State(web): State<Web>,
    visitor: Visitor,
    path: StatePath,
    Query(query): Query<ResourceQuery>,
) -> Result<Response, PageError> {
    let (workspace, state) = find(&web, &visitor, path).await?;
    let overview = address_of(&workspace);
    let address = format!("{overview}/states/{}", state.version.id);
    let before = web.control_plane.state_before(&state).await?;
    let (summary, outputs, others) = tokio::try_join!(
        web.control_plane.resource_summary(&state),
        web.control_plane.outputs_without_secrets(&visitor.caller, state.version.id),
        others(&web, &visitor, &state, before),
    )?;
    let organization = workspace.org.entry().name.as_str();
    let possible = DATA_STEPS.iter().filter(|(_, action, _)| state.is_possible(*action));
    let choice = |action: BackingDataAction| state.data_choice(&visitor.caller, action);
    let page = StatePage {
        layout: Layout::for_visitor(&web, &visitor)
            .in_workspace(organization, &workspace.workspace, WorkspaceSection::States)
            .called(state.version.id, &format!("Serial {}", state.version.serial)),
        version: StateRow::of(&state, &overview),
        lineage: state.version.lineage.clone(),
        others,
        restore: state.restore_choice(&visitor.caller),
        data_steps: possible.map(|(path, action, _)| DataStep::of(path, *action, choice(*action))).collect(),
        outputs: OutputRows::of(outputs),
        reveal: may_reveal(&visitor, &workspace),
        map: resource_map::resource_map(&summary, &address),
        resources: Resources::of(&summary, query, &address, &address),
        address,
        overview,
        now: web.control_plane.now(),
    };
    Ok(page::render(StatusCode::OK, &page))
}

/// `GET /app/{organization}/workspaces/{workspace}/states/{id}/download`
pub(crate) async fn download(State(web): State<Web>, visitor: Visitor, path: StatePath) -> Result<Response, PageError> {
    let (workspace, state) = find(&web, &visitor, path).await?;
    let (view, download) = web.control_plane.download_state_version(&visitor.caller, state.version.id).await?;
    // Names of workspaces need no quoting: see `taco_domain::name`.
    let file = format!("{}-{}.tfstate", workspace.workspace.name, view.version.serial);
    let headers = [
        (CONTENT_TYPE, "application/json".to_owned()),
        (CONTENT_LENGTH, download.size.to_string()),
        (CONTENT_DISPOSITION, format!("attachment; filename=\"{file}\"")),
    ];
    Ok((headers, Body::from_stream(download.body)).into_response())
}

/// `POST /app/{organization}/workspaces/{workspace}/states/{id}/data/{step}`: what becomes of its bytes.
pub(crate) async fn change_data(
    State(web): State<Web>,
    Path((organization, name, id, step)): Path<(String, String, String, String)>,
    VisitorForm(visitor, Nothing {}): VisitorForm<Nothing>,
) -> Result<Response, PageError> {
    let known = DATA_STEPS.into_iter().find(|(path, ..)| *path == step);
    let (_, action, done) = known.ok_or_else(|| PageError::not_found("page"))?;
    let (workspace, state) = find(&web, &visitor, Path((organization, name, id))).await?;
    web.control_plane.change_backing_data(&visitor.caller, state.version.id, action).await?;
    let address = format!("{}/states/{}", address_of(&workspace), state.version.id);
    Ok(Flash::says(format!("State {}: {done}", state.version.serial)).redirect_to(&address))
}
