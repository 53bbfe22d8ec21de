//! State versions: announce or send one, list, read, restore.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::{StatusCode, Uri};
use axum::response::{IntoResponse, Redirect, Response};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use taco_control_plane::{Caller, ControlPlane, NewState, PassPurpose, StateFilter, StateVersionView, WorkspaceRef};
use taco_domain::attribute::shown;
use taco_domain::id::{StateVersionId, WorkspaceId};
use taco_domain::state_version::{BackingDataAction, StateVersionStatus};

use crate::Api;
use crate::address::Address;
use crate::body::{Body, NoAttributes};
use crate::document::{self, Document, Identifier, Resource};
use crate::error::ApiError;
use crate::inline_state::{self, Sent};
use crate::kept_answers::Question;
use crate::kept_summaries::SummaryText;
use crate::path::InPath;
use crate::query::Query;
use crate::signed_url::{minute, signed};
use crate::{state_version_outputs, users, workspaces};

pub(crate) const KIND: &str = "state-versions";

/// Asks terraform to send the state every so many seconds while it applies, so that a client that dies loses no more
/// than that. It never sends more often than every 20 s.
const SNAPSHOTS: [(&str, &str); 1] = [("x-terraform-snapshot-interval", "20")];

#[derive(Serialize)]
#[serde(rename_all = "kebab-case")]
struct Attributes<'a> {
    created_at: Timestamp,
    status: StateVersionStatus,
    serial: u64,
    size: u64,
    lineage: &'a str,
    md5: &'a str,
    hosted_state_download_url: Option<String>,
    hosted_state_upload_url: Option<String>,
    hosted_json_state_download_url: Option<String>,
    hosted_json_state_upload_url: Option<String>,
    state_version: u8,
    terraform_version: Option<&'a str>,
    /// OpenTofu encrypted it on the client.
    encrypted: bool,
    intermediate: bool,
    resources_processed: bool,
    billable_rum_count: Option<u64>,
    vcs_commit_sha: Option<&'a str>,
    vcs_commit_url: Option<&'a str>,
    /// The name of whoever wrote it; the relationship `created-by` has the id.
    taco_created_by: String,
    /// How many outputs it has where they are too many, or their names too long, to be named here.
    #[serde(skip_serializing_if = "Option::is_none")]
    taco_unlisted_outputs: Option<u64>,
    #[serde(flatten)]
    summary: Option<&'a SummaryText>,
}

pub(crate) fn resource(
    api: &Api,
    caller: &Caller,
    address: &Address,
    view: &StateVersionView,
    summary: Option<&SummaryText>,
) -> Resource {
    let pending = view.version.status == StateVersionStatus::Pending;
    let awaited = Awaited { state: pending, json: pending && !view.version.has_json };
    resource_awaiting(api, caller, address, view, summary, awaited)
}

/// The bytes that someone is told where to send.
struct Awaited {
    state: bool,
    json: bool,
}

fn resource_awaiting(
    api: &Api,
    caller: &Caller,
    address: &Address,
    view: &StateVersionView,
    summary: Option<&SummaryText>,
    awaited: Awaited,
) -> Resource {
    let version = &view.version;
    let finalized = version.status == StateVersionStatus::Finalized;
    let url = |wanted: bool, purpose| wanted.then(|| signed(api, caller, address, purpose, version.id));
    let attributes = Attributes {
        created_at: version.created_at,
        status: version.status,
        serial: version.serial,
        size: version.size,
        lineage: &version.lineage,
        md5: &version.md5,
        hosted_state_download_url: url(finalized, PassPurpose::DownloadState),
        hosted_state_upload_url: url(awaited.state, PassPurpose::UploadState),
        hosted_json_state_download_url: url(finalized && version.has_json, PassPurpose::DownloadJsonState),
        hosted_json_state_upload_url: url(awaited.json, PassPurpose::UploadJsonState),
        state_version: 4,
        terraform_version: version.terraform_version.as_deref(),
        encrypted: version.encrypted,
        intermediate: view.is_intermediate(),
        resources_processed: finalized,
        billable_rum_count: finalized.then_some(version.resource_count),
        vcs_commit_sha: None,
        vcs_commit_url: None,
        taco_created_by: view.open.name_of(&version.created_by),
        taco_unlisted_outputs: version.unlisted_outputs,
        summary,
    };
    let outputs = version.outputs.iter().map(|output| Identifier::new(state_version_outputs::KIND, output.id));
    Resource::new(KIND, version.id, &attributes)
        .has_one("workspace", Identifier::new(workspaces::KIND, version.workspace))
        .has_optional("run", version.run.map(|run| Identifier::new("runs", run)))
        .has_optional("created-by", users::author(&version.created_by))
        .has_many("outputs", outputs)
        .related(format!("/api/v2/state-versions/{}/outputs", version.id))
        .link("self", format!("/api/v2/state-versions/{}", version.id))
}

async fn summary(api: &Api, view: &StateVersionView) -> Result<Arc<SummaryText>, ApiError> {
    let id = view.version.id;
    // One that has not arrived yet will have another, and one whose data is gone has none.
    let finalized = view.version.status == StateVersionStatus::Finalized;
    if let Some(kept) = api.summaries.get(id).filter(|_| finalized) {
        return Ok(kept);
    }
    let text = SummaryText::of(&*api.control_plane.resource_summary(view).await?);
    Ok(if finalized { api.summaries.keep(id, text) } else { Arc::new(text) })
}

/// One version with all that can be told about it, and with what the query wants beside it.
async fn document(
    api: &Api,
    caller: &Caller,
    address: &Address,
    view: &StateVersionView,
    query: &Query,
) -> Result<Document, ApiError> {
    let summary = summary(api, view).await?;
    let mut document = Document::one(resource(api, caller, address, view, Some(&summary)));
    if query.includes("outputs") {
        for output in api.control_plane.outputs(caller, view.version.id).await? {
            document.include(state_version_outputs::resource(&output));
        }
    }
    if query.includes("created-by")
        && let taco_domain::Author::User(author) = view.version.created_by
        && let Ok(user) = api.control_plane.user(caller, author).await
    {
        document.include(users::resource(&user));
    }
    Ok(document)
}

/// The same, as it was said before if that was lately.
async fn answer(
    api: &Api,
    caller: &Caller,
    address: &Address,
    view: &StateVersionView,
    query: &Query,
    uri: &Uri,
) -> Result<Response, ApiError> {
    if query.get("include").is_some() {
        return Ok(document(api, caller, address, view, query).await?.into_response());
    }
    let (organization, moment) = (view.open.id(), view.open.moment());
    // Signed addresses are complete, others in the next minute, and bound to the caller's token.
    let token = caller.token.map(|id| id.to_string()).unwrap_or_default();
    let address_and_minute = format!("{} {} {token}", address.of(&uri.to_string()), minute(api));
    let question = Question { organization, moment, actor: caller.actor.clone(), address: address_and_minute };
    if let Some(kept) = api.answers.get(&question) {
        return Ok(document::response(kept));
    }
    let made = document(api, caller, address, view, query).await?.to_bytes();
    api.answers.keep(question, &made);
    Ok(document::response(made))
}

async fn page(
    api: &Api,
    caller: &Caller,
    address: &Address,
    workspace: &WorkspaceRef,
    query: &Query,
) -> Result<Document, ApiError> {
    let status = match query.get("filter[status]") {
        None => None,
        Some(text) => Some(serde_json::from_value(text.into()).map_err(|_| {
            ApiError::parameter("filter[status]", format!("{} is no status of a state version", shown(text)))
        })?),
    };
    let listed = api
        .control_plane
        .state_versions(caller, workspace, StateFilter { status, ..StateFilter::default() }, query.page()?)
        .await?;
    Ok(Document::page(listed.map(|view| resource(api, caller, address, &view, None))))
}

/// `GET /api/v2/state-versions?filter[organization][name]=…&filter[workspace][name]=…`
pub(crate) async fn list(
    State(api): State<Api>,
    caller: Caller,
    address: Address,
    query: Query,
) -> Result<Document, ApiError> {
    let required = |name: &str| {
        let value = query.get(name).map(str::to_owned);
        value.ok_or_else(|| ApiError::parameter(name, format!("{name} must be given")))
    };
    let organization = required("filter[organization][name]")?;
    let name = required("filter[workspace][name]")?;
    page(&api, &caller, &address, &WorkspaceRef::Named { organization, name }, &query).await
}

/// `GET /api/v2/workspaces/{workspace}/state-versions`
pub(crate) async fn list_of_workspace(
    State(api): State<Api>,
    caller: Caller,
    address: Address,
    InPath(workspace): InPath<WorkspaceId>,
    query: Query,
) -> Result<Document, ApiError> {
    page(&api, &caller, &address, &WorkspaceRef::Id(workspace), &query).await
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
struct Described {
    #[serde(flatten)]
    new: NewState,
    /// A text was cut out before; what is none has to be refused.
    #[serde(rename = "state")]
    _state: Option<String>,
}

/// What a request says about a state, without the state.
fn new_state(body: Body) -> Result<NewState, ApiError> {
    let sent = body.resource::<Described>(KIND)?;
    let run = sent.to_one("run")?.flatten();
    Ok(NewState { run, ..sent.attributes.new })
}

/// `POST /api/v2/workspaces/{workspace}/state-versions`
pub(crate) async fn create(
    State(api): State<Api>,
    caller: Caller,
    address: Address,
    InPath(workspace): InPath<WorkspaceId>,
    request: Request,
) -> Result<Response, ApiError> {
    let view = match inline_state::read(request).await? {
        Sent::WithoutState(body) => {
            let view = api.control_plane.announce_state(&caller, workspace, new_state(body)?).await?;
            let summary = summary(&api, &view).await?;
            // Also if all of it is there already. Go-tfe sends in any case what it announced, and to an empty address if
            // it is told none; whoever sends the same again hears that it is there.
            let awaited = Awaited { state: true, json: true };
            let document = Document::one(resource_awaiting(&api, &caller, &address, &view, Some(&summary), awaited));
            return Ok((StatusCode::CREATED, SNAPSHOTS, document).into_response());
        }
        Sent::WithState(inline) => {
            let (bytes, surroundings) = inline.split();
            let describe = || new_state(surroundings.body()?);
            let written = api.control_plane.write_state(&caller, workspace, bytes, describe).await;
            written.map_err(|error| surroundings.failure().unwrap_or(error))?
        }
    };
    let document = document(&api, &caller, &address, &view, &Query::default()).await?;
    Ok((StatusCode::CREATED, SNAPSHOTS, document).into_response())
}

/// `PATCH /api/v2/workspaces/{workspace}/state-versions`: back to the content of an older version.
pub(crate) async fn restore(
    State(api): State<Api>,
    caller: Caller,
    address: Address,
    InPath(workspace): InPath<WorkspaceId>,
    body: Body,
) -> Result<Response, ApiError> {
    let sent = body.resource::<NoAttributes>(KIND)?;
    let from: StateVersionId = sent.to_one("rollback-state-version")?.flatten().ok_or_else(|| {
        ApiError::invalid("/data/relationships/rollback-state-version", "The version to go back to must be given")
    })?;
    let view = api.control_plane.restore_state(&caller, workspace, from).await?;
    let document = document(&api, &caller, &address, &view, &Query::default()).await?;
    Ok((StatusCode::CREATED, document).into_response())
}

/// `GET /api/v2/workspaces/{workspace}/current-state-version`
pub(crate) async fn current(
    State(api): State<Api>,
    caller: Caller,
    address: Address,
    InPath(workspace): InPath<WorkspaceId>,
    query: Query,
    uri: Uri,
) -> Result<Response, ApiError> {
    let view = api.control_plane.current_state_version(&caller, workspace).await?;
    Ok((SNAPSHOTS, answer(&api, &caller, &address, &view, &query, &uri).await?).into_response())
}

/// `GET /api/v2/state-versions/{state_version}`
pub(crate) async fn read(
    State(api): State<Api>,
    caller: Caller,
    address: Address,
    InPath(version): InPath<StateVersionId>,
    query: Query,
    uri: Uri,
) -> Result<Response, ApiError> {
    let view = api.control_plane.state_version(&caller, version).await?;
    answer(&api, &caller, &address, &view, &query, &uri).await
}

/// `GET /api/v2/state-versions/{state_version}/download`
pub(crate) async fn download(
    State(api): State<Api>,
    caller: Caller,
    address: Address,
    InPath(version): InPath<StateVersionId>,
) -> Result<Redirect, ApiError> {
    let view = api.control_plane.state_version(&caller, version).await?;
    Ok(Redirect::temporary(&signed(&api, &caller, &address, PassPurpose::DownloadState, view.version.id)))
}

/// `POST /api/v2/state-versions/{state_version}/actions/{action}`
pub(crate) async fn backing_data(
    State(control_plane): State<ControlPlane>,
    caller: Caller,
    InPath((version, action)): InPath<(StateVersionId, String)>,
) -> Result<StatusCode, ApiError> {
    let action = match action.as_str() {
        "soft_delete_backing_data" => BackingDataAction::SoftDelete,
        "restore_backing_data" => BackingDataAction::Restore,
        "permanently_delete_backing_data" => BackingDataAction::PermanentlyDelete,
        _ => return Err(ApiError::not_found()),
    };
    control_plane.change_backing_data(&caller, version, action).await?;
    Ok(StatusCode::NO_CONTENT)
}
