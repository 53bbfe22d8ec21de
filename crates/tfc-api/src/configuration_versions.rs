//! Configuration versions: announced here, uploaded to a signed address.

use axum::body::Body as ResponseBody;
use axum::extract::{Request, State};
use axum::http::header::{CONTENT_LENGTH, CONTENT_TYPE, HeaderValue};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use jiff::Timestamp;
use serde::Serialize;
use taco_control_plane::{
    Caller, ConfigurationAction, ConfigurationVersionView, ControlPlane, NewConfiguration, PassPurpose,
};
use taco_domain::configuration_version::{ConfigurationStatus, ConfigurationVersion};
use taco_domain::id::ConfigurationVersionId;
use taco_domain::state_version::BackingDataAction;

use crate::address::Address;
use crate::body::Body;
use crate::document::{Document, Identifier, Resource};
use crate::error::ApiError;
use crate::path::InPath;
use crate::query::Query;
use crate::signed_url::{Signed, body_of, check, signed};
use crate::workspaces::InWorkspace;
use crate::{Api, client, workspaces};

pub(crate) const KIND: &str = "configuration-versions";

#[derive(Serialize)]
#[serde(rename_all = "kebab-case")]
struct Attributes<'a> {
    status: ConfigurationStatus,
    auto_queue_runs: bool,
    speculative: bool,
    provisional: bool,
    source: &'a str,
    changed_files: [&'a str; 0],
    error: Option<&'a str>,
    error_message: Option<&'a str>,
    created_at: Timestamp,
    status_timestamps: StatusTimestamps,
    /// Only in the answer to the request that announced it.
    #[serde(skip_serializing_if = "Option::is_none")]
    upload_url: Option<String>,
}

#[derive(Serialize)]
#[serde(rename_all = "kebab-case")]
struct StatusTimestamps {
    #[serde(skip_serializing_if = "Option::is_none")]
    uploaded_at: Option<Timestamp>,
    #[serde(skip_serializing_if = "Option::is_none")]
    finished_at: Option<Timestamp>,
}

pub(crate) fn resource(version: &ConfigurationVersion, upload_url: Option<String>) -> Resource {
    let attributes = Attributes {
        status: version.status,
        auto_queue_runs: version.auto_queue_runs,
        speculative: version.speculative,
        provisional: version.provisional,
        source: &version.source,
        changed_files: [],
        error: version.error.as_deref(),
        error_message: version.error_message.as_deref(),
        created_at: version.created_at,
        status_timestamps: StatusTimestamps { uploaded_at: version.uploaded_at, finished_at: version.uploaded_at },
        upload_url,
    };
    Resource::new(KIND, version.id, &attributes)
        .has_one("workspace", Identifier::new(workspaces::KIND, version.workspace))
        .has_optional("ingress-attributes", None)
        .link("self", format!("/api/v2/configuration-versions/{}", version.id))
        .link("download", format!("/api/v2/configuration-versions/{}/download", version.id))
}

/// `POST /api/v2/workspaces/{workspace}/configuration-versions`
pub(crate) async fn create(
    State(api): State<Api>,
    caller: Caller,
    address: Address,
    InWorkspace(workspace): InWorkspace,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, ApiError> {
    let new: NewConfiguration = body.resource(KIND)?.attributes;
    let source = client::source(&headers);
    let made = api.control_plane.create_configuration_version(&caller, &workspace, new, source).await?;
    let ConfigurationVersionView { version, .. } = made;
    let upload_url = signed(&api, &caller, &address, PassPurpose::UploadConfiguration, version.id);
    Ok((StatusCode::CREATED, Document::one(resource(&version, Some(upload_url)))).into_response())
}

/// `GET /api/v2/workspaces/{workspace}/configuration-versions`
pub(crate) async fn list(
    State(control_plane): State<ControlPlane>,
    caller: Caller,
    InWorkspace(workspace): InWorkspace,
    query: Query,
) -> Result<Document, ApiError> {
    let listed = control_plane.configuration_versions(&caller, &workspace, query.page()?).await?;
    Ok(Document::page(listed.map(|view| resource(&view.version, None))))
}

/// `GET /api/v2/configuration-versions/{configuration_version}`
pub(crate) async fn read(
    State(control_plane): State<ControlPlane>,
    caller: Caller,
    InPath(id): InPath<ConfigurationVersionId>,
) -> Result<Document, ApiError> {
    Ok(Document::one(resource(&control_plane.configuration_version(&caller, id).await?.version, None)))
}

/// `GET /api/v2/configuration-versions/{configuration_version}/download`
pub(crate) async fn download(
    State(control_plane): State<ControlPlane>,
    caller: Caller,
    InPath(id): InPath<ConfigurationVersionId>,
) -> Result<Response, ApiError> {
    let download = control_plane.download_configuration(&caller, id).await?;
    let mut headers = HeaderMap::new();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/gzip"));
    headers.insert(CONTENT_LENGTH, HeaderValue::from(download.size));
    Ok((headers, ResponseBody::from_stream(download.body)).into_response())
}

/// `POST /api/v2/configuration-versions/{configuration_version}/actions/{action}`
pub(crate) async fn act(
    State(control_plane): State<ControlPlane>,
    caller: Caller,
    InPath((id, action)): InPath<(ConfigurationVersionId, String)>,
) -> Result<StatusCode, ApiError> {
    let action = match action.as_str() {
        "archive" => ConfigurationAction::Archive,
        "soft_delete_backing_data" => ConfigurationAction::BackingData(BackingDataAction::SoftDelete),
        "restore_backing_data" => ConfigurationAction::BackingData(BackingDataAction::Restore),
        "permanently_delete_backing_data" => ConfigurationAction::BackingData(BackingDataAction::PermanentlyDelete),
        _ => return Err(ApiError::not_found()),
    };
    control_plane.change_configuration(&caller, id, action).await?;
    Ok(StatusCode::ACCEPTED)
}

/// `PUT /signed/configuration/{configuration_version}/{pass}`
pub(crate) async fn upload(
    State(control_plane): State<ControlPlane>,
    signed: Signed,
    request: Request,
) -> Result<StatusCode, ApiError> {
    let pass = check(&control_plane, PassPurpose::UploadConfiguration, &signed)?;
    control_plane.upload_configuration(&pass, body_of(request)).await?;
    Ok(StatusCode::OK)
}
