//! Files of the registry at signed addresses: publishers send them there, and the engines get them.

use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::header::{CONTENT_LENGTH, CONTENT_TYPE, HeaderValue};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use taco_control_plane::{ControlPlane, SignedUrlPurpose as Purpose};

use crate::error::ApiError;
use crate::signed_url::{Signed, body_of, check};

/// `PUT /signed/object/module/{module_version}/{pass}`
pub(crate) async fn upload_module(
    State(control_plane): State<ControlPlane>,
    signed: Signed,
    request: Request,
) -> Result<StatusCode, ApiError> {
    let pass = check(&control_plane, Purpose::UploadModule, &signed)?;
    control_plane.upload_module(&pass, body_of(request)).await?;
    Ok(StatusCode::OK)
}

/// `GET /signed/object/module/{module_version}/{pass}/archive.tar.gz`
pub(crate) async fn download_module(
    State(control_plane): State<ControlPlane>,
    signed: Signed,
) -> Result<Response, ApiError> {
    let pass = check(&control_plane, Purpose::DownloadModule, &signed)?;
    let download = control_plane.download_module(&pass).await?;
    Ok(bytes("application/gzip", download.size, Body::from_stream(download.body)))
}

/// `PUT /signed/object/checksums/{provider_version}/{pass}`
pub(crate) async fn upload_checksums(
    State(control_plane): State<ControlPlane>,
    signed: Signed,
    request: Request,
) -> Result<StatusCode, ApiError> {
    let pass = check(&control_plane, Purpose::UploadChecksums, &signed)?;
    control_plane.upload_checksums(&pass, body_of(request)).await?;
    Ok(StatusCode::OK)
}

/// `PUT /signed/object/signature/{provider_version}/{pass}`
pub(crate) async fn upload_signature(
    State(control_plane): State<ControlPlane>,
    signed: Signed,
    request: Request,
) -> Result<StatusCode, ApiError> {
    let pass = check(&control_plane, Purpose::UploadSignature, &signed)?;
    control_plane.upload_signature(&pass, body_of(request)).await?;
    Ok(StatusCode::OK)
}

/// `PUT /signed/object/provider/{provider_platform}/{pass}`
pub(crate) async fn upload_provider(
    State(control_plane): State<ControlPlane>,
    signed: Signed,
    request: Request,
) -> Result<StatusCode, ApiError> {
    let pass = check(&control_plane, Purpose::UploadProvider, &signed)?;
    control_plane.upload_provider(&pass, body_of(request)).await?;
    Ok(StatusCode::OK)
}

/// `GET /signed/object/checksums/{provider_version}/{pass}`
pub(crate) async fn download_checksums(
    State(control_plane): State<ControlPlane>,
    signed: Signed,
) -> Result<Response, ApiError> {
    download(&control_plane, Purpose::DownloadChecksums, &signed, "text/plain; charset=utf-8").await
}

/// `GET /signed/object/signature/{provider_version}/{pass}`
pub(crate) async fn download_signature(
    State(control_plane): State<ControlPlane>,
    signed: Signed,
) -> Result<Response, ApiError> {
    download(&control_plane, Purpose::DownloadSignature, &signed, "application/pgp-signature").await
}

/// `GET /signed/object/provider/{provider_platform}/{pass}`
pub(crate) async fn download_provider(
    State(control_plane): State<ControlPlane>,
    signed: Signed,
) -> Result<Response, ApiError> {
    download(&control_plane, Purpose::DownloadProvider, &signed, "application/zip").await
}

async fn download(
    control_plane: &ControlPlane,
    purpose: Purpose,
    signed: &Signed,
    kind: &'static str,
) -> Result<Response, ApiError> {
    let pass = check(control_plane, purpose, signed)?;
    let download = control_plane.download_provider_file(&pass, purpose).await?;
    Ok(bytes(kind, download.size, Body::from_stream(download.body)))
}

/// Bytes with their size, so that a client notices when some are missing.
fn bytes(kind: &'static str, size: u64, body: Body) -> Response {
    let mut headers = HeaderMap::new();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    headers.insert(CONTENT_LENGTH, HeaderValue::from(size));
    (headers, body).into_response()
}
