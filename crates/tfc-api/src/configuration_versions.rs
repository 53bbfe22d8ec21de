//! Configuration versions: announced here, uploaded to a signed address.

use axum::body::Body as ResponseBody;
use axum::extract::{Request, State};
use axum::http::header::{CONTENT_LENGTH, CONTENT_TYPE, HeaderValue};
use axum::http::{HeaderMap, StatusCode};
use axum::response::IntoResponse;
use jiff::Timestamp;
use serde::Serialize;
use taco_control_plane::{ConfigurationAction, ControlPlane, NewConfiguration, SignedUrlPurpose};
use taco_domain::configuration_version::{ConfigurationStatus, ConfigurationVersion};
use taco_domain::state_version::BackingDataAction;

use crate::document::{Identifier, ResourceObject};
use crate::error::ApiError;
use crate::request::{Answer, ApiRequest, accepted};
use crate::resource::Resource;
use crate::signed_url::{Signed, body_of, check, signed};
use crate::{client, workspaces};

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

/// A version that was announced just now, with the address to which its archive is sent.
struct Announced {
    version: ConfigurationVersion,
    upload_url: String,
}

fn object(version: &ConfigurationVersion, upload_url: Option<String>) -> ResourceObject {
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
    ResourceObject::new(KIND, version.id, &attributes)
        .has_one("workspace", Identifier::new(workspaces::KIND, version.workspace))
        .has_optional("ingress-attributes", None)
        .link("self", format!("/api/v2/configuration-versions/{}", version.id))
        .link("download", format!("/api/v2/configuration-versions/{}/download", version.id))
}

impl Resource for ConfigurationVersion {
    const KIND: &'static str = KIND;

    fn object(&self, _: &ApiRequest) -> Result<ResourceObject, ApiError> {
        Ok(object(self, None))
    }
}

impl Resource for Announced {
    const KIND: &'static str = KIND;

    fn object(&self, _: &ApiRequest) -> Result<ResourceObject, ApiError> {
        Ok(object(&self.version, Some(self.upload_url.clone())))
    }
}

/// `POST /api/v2/workspaces/{workspace}/configuration-versions`
pub(crate) async fn create(request: ApiRequest) -> Answer {
    let workspace = request.workspace()?;
    let new: NewConfiguration = request.attributes(KIND).await?;
    let source = client::source(request.headers());
    let made = request.control_plane.create_configuration_version(&request.caller, &workspace, new, source).await?;
    let upload_url = signed(&request, SignedUrlPurpose::UploadConfiguration, made.version.id);
    request.created(&Announced { version: made.version, upload_url })
}

/// `GET /api/v2/workspaces/{workspace}/configuration-versions`
pub(crate) async fn list(request: ApiRequest) -> Answer {
    let (workspace, page) = (request.workspace()?, request.query.page()?);
    let listed = request.control_plane.configuration_versions(&request.caller, &workspace, page).await?;
    request.page(listed.map(|view| view.version)).await
}

/// `GET /api/v2/configuration-versions/{configuration_version}`
pub(crate) async fn read(request: ApiRequest) -> Answer {
    let id = request.id("configuration_version")?;
    request.one(&request.control_plane.configuration_version(&request.caller, id).await?.version).await
}

/// `GET /api/v2/configuration-versions/{configuration_version}/download`
pub(crate) async fn download(request: ApiRequest) -> Answer {
    let id = request.id("configuration_version")?;
    let download = request.control_plane.download_configuration(&request.caller, id).await?;
    let mut headers = HeaderMap::new();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/gzip"));
    headers.insert(CONTENT_LENGTH, HeaderValue::from(download.size));
    Ok((headers, ResponseBody::from_stream(download.body)).into_response())
}

/// `POST /api/v2/configuration-versions/{configuration_version}/actions/{action}`
pub(crate) async fn act(request: ApiRequest) -> Answer {
    let action = match request.name("action")? {
        "archive" => ConfigurationAction::Archive,
        "soft_delete_backing_data" => ConfigurationAction::BackingData(BackingDataAction::SoftDelete),
        "restore_backing_data" => ConfigurationAction::BackingData(BackingDataAction::Restore),
        "permanently_delete_backing_data" => ConfigurationAction::BackingData(BackingDataAction::PermanentlyDelete),
        _ => return Err(ApiError::not_found()),
    };
    let id = request.id("configuration_version")?;
    request.control_plane.change_configuration(&request.caller, id, action).await?;
    accepted()
}

/// `PUT /signed/configuration/{configuration_version}/{pass}`
pub(crate) async fn upload(
    State(control_plane): State<ControlPlane>,
    signed: Signed,
    request: Request,
) -> Result<StatusCode, ApiError> {
    let pass = check(&control_plane, SignedUrlPurpose::UploadConfiguration, &signed)?;
    control_plane.upload_configuration(&pass, body_of(request)).await?;
    Ok(StatusCode::OK)
}
