//! State versions: announce or send one, list, read, restore.

use std::sync::Arc;

use axum::response::{IntoResponse, Redirect};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use taco_control_plane::{NewState, SignedUrlPurpose, StateFilter, StateVersionView, WorkspaceRef};
use taco_domain::attribute::shown;
use taco_domain::id::StateVersionId;
use taco_domain::state_version::{BackingDataAction, StateVersionStatus};

use crate::body::{Body, NoAttributes};
use crate::document::{self, Document, Identifier, ResourceObject};
use crate::error::ApiError;
use crate::inline_state::{self, StateBody};
use crate::request::{Answer, ApiRequest, no_content};
use crate::resource::Resource;
use crate::response_cache::CacheKey;
use crate::signed_url::{minute, signed};
use crate::summary_cache::SummaryText;
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
    /// The name of its author; the relationship `created-by` has the id.
    taco_created_by: String,
    /// Count of outputs where they are too many, or their names too long, to be named here.
    #[serde(skip_serializing_if = "Option::is_none")]
    taco_unlisted_outputs: Option<u64>,
    #[serde(flatten)]
    summary: Option<&'a SummaryText>,
}

/// A version with the parts of its document that are not in the record.
struct Details<'a> {
    view: &'a StateVersionView,
    summary: Option<&'a SummaryText>,
    awaited: Awaited,
}

/// The bytes that someone is told where to send.
struct Awaited {
    state: bool,
    json: bool,
}

impl Awaited {
    fn of(view: &StateVersionView) -> Self {
        let pending = view.version.status == StateVersionStatus::Pending;
        Self { state: pending, json: pending && !view.version.has_json }
    }
}

impl Resource for StateVersionView {
    const KIND: &'static str = KIND;

    fn object(&self, request: &ApiRequest) -> Result<ResourceObject, ApiError> {
        Details { view: self, summary: None, awaited: Awaited::of(self) }.object(request)
    }
}

impl Resource for Details<'_> {
    const KIND: &'static str = KIND;
    const INCLUDES: &'static [&'static str] = &["outputs", "created-by"];

    fn object(&self, request: &ApiRequest) -> Result<ResourceObject, ApiError> {
        let Self { view, summary, awaited } = self;
        let version = &view.version;
        let finalized = version.status == StateVersionStatus::Finalized;
        let url = |wanted: bool, purpose| wanted.then(|| signed(request, purpose, version.id));
        let attributes = Attributes {
            created_at: version.created_at,
            status: version.status,
            serial: version.serial,
            size: version.size,
            lineage: &version.lineage,
            md5: &version.md5,
            hosted_state_download_url: url(finalized, SignedUrlPurpose::DownloadState),
            hosted_state_upload_url: url(awaited.state, SignedUrlPurpose::UploadState),
            hosted_json_state_download_url: url(finalized && version.has_json, SignedUrlPurpose::DownloadJsonState),
            hosted_json_state_upload_url: url(awaited.json, SignedUrlPurpose::UploadJsonState),
            state_version: 4,
            terraform_version: version.terraform_version.as_deref(),
            encrypted: version.encrypted,
            intermediate: view.is_intermediate(),
            resources_processed: finalized,
            billable_rum_count: finalized.then_some(version.resource_count),
            vcs_commit_sha: None,
            vcs_commit_url: None,
            taco_created_by: view.org.name_of(&version.created_by),
            taco_unlisted_outputs: version.unlisted_outputs,
            summary: *summary,
        };
        let outputs = version.outputs.iter().map(|output| Identifier::new(state_version_outputs::KIND, output.id));
        Ok(ResourceObject::new(KIND, version.id, &attributes)
            .has_one("workspace", Identifier::new(workspaces::KIND, version.workspace))
            .has_optional("run", version.run.map(|run| Identifier::new("runs", run)))
            .has_optional("created-by", users::author(&version.created_by))
            .has_many("outputs", outputs)
            .related(format!("/api/v2/state-versions/{}/outputs", version.id))
            .link("self", format!("/api/v2/state-versions/{}", version.id)))
    }

    async fn include(&self, name: &str, request: &ApiRequest, document: &mut Document) -> Result<(), ApiError> {
        if name == "created-by" {
            return users::include(&self.view.version.created_by, request, document).await;
        }
        for output in request.control_plane.outputs(&request.caller, self.view.version.id).await? {
            document.include(output.object(request)?);
        }
        Ok(())
    }
}

async fn summary(request: &ApiRequest, view: &StateVersionView) -> Result<Arc<SummaryText>, ApiError> {
    let summaries = &request.api.summaries;
    let id = view.version.id;
    // One that has not arrived yet will have another, and one whose data is gone has none.
    let finalized = view.version.status == StateVersionStatus::Finalized;
    if let Some(kept) = summaries.get(id).filter(|_| finalized) {
        return Ok(kept);
    }
    let text = SummaryText::of(&*request.control_plane.resource_summary(view).await?);
    Ok(if finalized { summaries.insert(id, text) } else { Arc::new(text) })
}

/// One version with all that can be told about it, and with the resources that the query includes.
async fn document(request: &ApiRequest, view: &StateVersionView) -> Result<Document, ApiError> {
    let summary = summary(request, view).await?;
    request.document(&Details { view, summary: Some(&summary), awaited: Awaited::of(view) }).await
}

/// The same, as it was said before if that was lately.
async fn answer(request: &ApiRequest, view: &StateVersionView) -> Answer {
    if request.query.get("include").is_some() {
        return Ok(document(request, view).await?.into_response());
    }
    let (answers, caller) = (&request.api.responses, &request.caller);
    let (organization, moment) = (view.org.id(), view.org.moment());
    // Signed addresses are complete, others in the next minute, and bound to the caller's token.
    let token = caller.token.map(|id| id.to_string()).unwrap_or_default();
    let address_and_minute = format!("{} {} {token}", request.address.of(&request.uri().to_string()), minute(request));
    let key = CacheKey { organization, moment, actor: caller.actor.clone(), address: address_and_minute };
    if let Some(kept) = answers.get(&key) {
        return Ok(document::response(kept));
    }
    let made = document(request, view).await?.to_bytes();
    answers.insert(key, &made);
    Ok(document::response(made))
}

async fn page(request: &ApiRequest, workspace: &WorkspaceRef) -> Answer {
    let query = &request.query;
    let status = match query.get("filter[status]") {
        None => None,
        Some(text) => Some(serde_json::from_value(text.into()).map_err(|_| {
            ApiError::parameter("filter[status]", format!("{} is no status of a state version", shown(text)))
        })?),
    };
    let filter = StateFilter { status, ..StateFilter::default() };
    request.page(request.control_plane.state_versions(&request.caller, workspace, filter, query.page()?).await?).await
}

/// `GET /api/v2/state-versions?filter[organization][name]=…&filter[workspace][name]=…`
pub(crate) async fn list(request: ApiRequest) -> Answer {
    page(&request, &request.workspace_in_query()?).await
}

/// `GET /api/v2/workspaces/{workspace}/state-versions`
pub(crate) async fn list_of_workspace(request: ApiRequest) -> Answer {
    page(&request, &request.workspace()?).await
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

/// Attributes of a request that writes or announces a state.
fn new_state(body: Body) -> Result<NewState, ApiError> {
    let sent = body.resource::<Described>(KIND)?;
    let run = sent.to_one("run")?.flatten();
    Ok(NewState { run, ..sent.attributes.new })
}

/// `POST /api/v2/workspaces/{workspace}/state-versions`
pub(crate) async fn create(request: ApiRequest) -> Answer {
    let ApiRequest { control_plane, caller, .. } = &request;
    let workspace = request.id("workspace")?;
    let view = match inline_state::read(request.headers(), request.take_body()).await? {
        StateBody::WithoutState(body) => {
            let view = control_plane.announce_state(caller, workspace, new_state(body)?).await?;
            let summary = summary(&request, &view).await?;
            // Also if all of it is there already. Go-tfe sends in any case what it announced, and to an empty address
            // if it is told none; a client that sends the same again is told that it is there.
            let awaited = Awaited { state: true, json: true };
            let announced = Details { view: &view, summary: Some(&summary), awaited };
            return Ok((SNAPSHOTS, request.created(&announced)?).into_response());
        }
        StateBody::WithState(inline) => {
            let (bytes, rest) = inline.split();
            let describe = || new_state(rest.body()?);
            let written = control_plane.write_state(caller, workspace, bytes, describe).await;
            written.map_err(|error| rest.failure().unwrap_or(error))?
        }
    };
    Ok((SNAPSHOTS, written(&request, &view).await?).into_response())
}

/// A version that was made just now.
async fn written(request: &ApiRequest, view: &StateVersionView) -> Answer {
    let summary = summary(request, view).await?;
    request.created(&Details { view, summary: Some(&summary), awaited: Awaited::of(view) })
}

/// `PATCH /api/v2/workspaces/{workspace}/state-versions`: back to the content of an older version.
pub(crate) async fn restore(request: ApiRequest) -> Answer {
    let workspace = request.id("workspace")?;
    let sent = request.resource::<NoAttributes>(KIND).await?;
    let from: StateVersionId = sent.to_one("rollback-state-version")?.flatten().ok_or_else(|| {
        ApiError::invalid("/data/relationships/rollback-state-version", "The version to go back to must be given")
    })?;
    written(&request, &request.control_plane.restore_state(&request.caller, workspace, from).await?).await
}

/// `GET /api/v2/workspaces/{workspace}/current-state-version`
pub(crate) async fn current(request: ApiRequest) -> Answer {
    let view = request.control_plane.current_state_version(&request.caller, request.id("workspace")?).await?;
    Ok((SNAPSHOTS, answer(&request, &view).await?).into_response())
}

/// `GET /api/v2/state-versions/{state_version}`
pub(crate) async fn read(request: ApiRequest) -> Answer {
    let view = request.control_plane.state_version(&request.caller, request.id("state_version")?).await?;
    answer(&request, &view).await
}

/// `GET /api/v2/state-versions/{state_version}/download`
pub(crate) async fn download(request: ApiRequest) -> Answer {
    let view = request.control_plane.state_version(&request.caller, request.id("state_version")?).await?;
    Ok(Redirect::temporary(&signed(&request, SignedUrlPurpose::DownloadState, view.version.id)).into_response())
}

/// `POST /api/v2/state-versions/{state_version}/actions/{action}`
pub(crate) async fn backing_data(request: ApiRequest) -> Answer {
    let action = match request.name("action")? {
        "soft_delete_backing_data" => BackingDataAction::SoftDelete,
        "restore_backing_data" => BackingDataAction::Restore,
        "permanently_delete_backing_data" => BackingDataAction::PermanentlyDelete,
        _ => return Err(ApiError::not_found()),
    };
    request.control_plane.change_backing_data(&request.caller, request.id("state_version")?, action).await?;
    no_content()
}
