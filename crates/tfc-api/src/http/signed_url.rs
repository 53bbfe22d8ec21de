//! Signed URLs: addresses that are their own credential, for one object, one verb, and a while. The credential is in
//! the path, because clients replace or reorder the query.

use std::fmt;

use axum::body::{Body, BodyDataStream};
use axum::extract::{Request, State};
use axum::http::header::{CONTENT_LENGTH, CONTENT_TYPE};
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use futures::StreamExt;
use jiff::SignedDuration;
use taco_control_plane::{ControlPlane, SignedUrlPurpose, SignedUrlToken};

use crate::error::ApiError;
use crate::path::ApiPath;
use crate::request::ApiRequest;

const DOWNLOAD_LIFETIME: SignedDuration = SignedDuration::from_hours(1);
const UPLOAD_LIFETIME: SignedDuration = SignedDuration::from_hours(25);
/// Clients follow a log at one address for as long as the phase takes.
const LOG_LIFETIME: SignedDuration = SignedDuration::from_hours(25);

fn segment(purpose: SignedUrlPurpose) -> &'static str {
    match purpose {
        SignedUrlPurpose::DownloadState | SignedUrlPurpose::UploadState => "state",
        SignedUrlPurpose::DownloadJsonState | SignedUrlPurpose::UploadJsonState => "json-state",
        SignedUrlPurpose::UploadConfiguration => "configuration",
        SignedUrlPurpose::ReadPlanLog | SignedUrlPurpose::ReadApplyLog => "log",
        // Clients look for this word in addresses of the registry.
        SignedUrlPurpose::UploadModule | SignedUrlPurpose::DownloadModule => "object/module",
        SignedUrlPurpose::UploadChecksums | SignedUrlPurpose::DownloadChecksums => "object/checksums",
        SignedUrlPurpose::UploadSignature | SignedUrlPurpose::DownloadSignature => "object/signature",
        SignedUrlPurpose::UploadProvider | SignedUrlPurpose::DownloadProvider => "object/provider",
        SignedUrlPurpose::UploadPolicySet => "policy-set",
    }
}

/// The address at which the caller can do what `purpose` says, without a token, for as long as they may.
pub(crate) fn signed(request: &ApiRequest, purpose: SignedUrlPurpose, id: impl fmt::Display) -> String {
    use SignedUrlPurpose as P;
    let lifetime = match purpose {
        P::DownloadState | P::DownloadJsonState => DOWNLOAD_LIFETIME,
        P::DownloadModule | P::DownloadChecksums | P::DownloadSignature | P::DownloadProvider => DOWNLOAD_LIFETIME,
        P::UploadState | P::UploadJsonState | P::UploadConfiguration => UPLOAD_LIFETIME,
        P::UploadModule | P::UploadChecksums | P::UploadSignature | P::UploadProvider => UPLOAD_LIFETIME,
        P::UploadPolicySet => DOWNLOAD_LIFETIME,
        P::ReadPlanLog | P::ReadApplyLog => LOG_LIFETIME,
    };
    let pass = request.control_plane.sign_url_token(&request.caller, purpose, &id, lifetime);
    request.address.of(&format!("/signed/{}/{id}/{pass}", segment(purpose)))
}

/// The minute of the request: within it, the same address is signed for the same end.
pub(crate) fn minute(request: &ApiRequest) -> i64 {
    request.control_plane.now().as_second().div_euclid(60)
}

pub(crate) type Signed = ApiPath<(String, String)>;

pub(crate) fn check(
    control_plane: &ControlPlane,
    purpose: SignedUrlPurpose,
    signed: &Signed,
) -> Result<SignedUrlToken, ApiError> {
    let ApiPath((object, pass)) = signed;
    Ok(control_plane.verify_url_token(purpose, object, pass)?)
}

pub(crate) fn body_of(
    request: Request,
) -> impl futures::Stream<Item = Result<bytes::Bytes, axum::Error>> + Send + 'static {
    // A stream must be able to cross threads alone; the body type promises it only inside of this wrapper.
    let stream: BodyDataStream = request.into_body().into_data_stream();
    stream.map(|piece| piece)
}

/// `GET /signed/state/{state_version}/{pass}`
pub(crate) async fn download_state(
    State(control_plane): State<ControlPlane>,
    signed: Signed,
) -> Result<Response, ApiError> {
    let pass = check(&control_plane, SignedUrlPurpose::DownloadState, &signed)?;
    let (_, download) = control_plane.download_state(&pass).await?;
    Ok(json_bytes(download.size, Body::from_stream(download.body)))
}

/// `PUT /signed/state/{state_version}/{pass}`
pub(crate) async fn upload_state(
    State(control_plane): State<ControlPlane>,
    signed: Signed,
    request: Request,
) -> Result<StatusCode, ApiError> {
    let pass = check(&control_plane, SignedUrlPurpose::UploadState, &signed)?;
    control_plane.upload_state(&pass, body_of(request)).await?;
    Ok(StatusCode::OK)
}

/// `GET /signed/json-state/{state_version}/{pass}`
pub(crate) async fn download_json_state(
    State(control_plane): State<ControlPlane>,
    signed: Signed,
) -> Result<Response, ApiError> {
    let pass = check(&control_plane, SignedUrlPurpose::DownloadJsonState, &signed)?;
    let download = control_plane.download_json_state(&pass).await?;
    Ok(json_bytes(download.size, Body::from_stream(download.body)))
}

/// `PUT /signed/json-state/{state_version}/{pass}`
pub(crate) async fn upload_json_state(
    State(control_plane): State<ControlPlane>,
    signed: Signed,
    request: Request,
) -> Result<StatusCode, ApiError> {
    let pass = check(&control_plane, SignedUrlPurpose::UploadJsonState, &signed)?;
    control_plane.upload_json_state(&pass, body_of(request)).await?;
    Ok(StatusCode::OK)
}

/// Bytes that are JSON, with their size, so that a client notices when some are missing.
pub(crate) fn json_bytes(size: u64, body: Body) -> Response {
    let mut headers = HeaderMap::new();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(CONTENT_LENGTH, HeaderValue::from(size));
    (headers, body).into_response()
}
