//! Terraform's `http` backend: the same states, locks and versions under an address for each workspace.
//!
//! The lock is at `/lock` below it. Clients lock with `LOCK` and `UNLOCK`, or as with GitLab with `POST` and `DELETE`.
//! One who writes names the lock in `?ID=`.
//!
//! `DELETE` of the state itself is not allowed, though GitLab has it, and neither terraform nor tofu sends it:
//! `docs/decisions/0011-a-state-is-not-deleted-at-its-address.md`.

use axum::Json;
use axum::body::{Body, to_bytes};
use axum::http::header::ALLOW;
use axum::http::{HeaderMap, StatusCode};
use axum::response::IntoResponse;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use futures::StreamExt;
use taco_control_plane::{Error, WorkspaceRef};
use taco_domain::lock::{Claim, Lock, LockInfo};

use crate::body::broken_off;
use crate::error::{ApiError, no_such_method};
use crate::request::{Answer, ApiRequest, no_content};
use crate::signed_url::json_bytes;

/// A client tells about its lock in a few lines.
const MAX_LOCK_INFO_BYTES: usize = 64 * 1024;

/// `GET /api/http-backend/{organization}/{workspace}`
pub(crate) async fn read(request: ApiRequest) -> Answer {
    match request.control_plane.download_current_state(&request.caller, &request.workspace()?).await? {
        None => no_content(),
        Some((_, download)) => Ok(json_bytes(download.size, Body::from_stream(download.body))),
    }
}

/// `POST /api/http-backend/{organization}/{workspace}?ID=…`
pub(crate) async fn write(request: ApiRequest) -> Answer {
    let wanted = request.workspace()?;
    let lock_id = request.query.text("ID");
    let md5 = content_md5(request.headers())?;
    let body = request.take_body().into_data_stream().map(|piece| piece);
    match request.control_plane.write_state_with(&request.caller, &wanted, lock_id.clone(), md5, body).await {
        Ok(_) => Ok(StatusCode::OK.into_response()),
        Err(Error::Conflict(detail)) => match other_lock(&request, &wanted, lock_id.as_deref()).await {
            Some(lock) => Ok((StatusCode::LOCKED, Json(told(&lock, &wanted))).into_response()),
            None => Err(Error::Conflict(detail).into()),
        },
        Err(error) => Err(error.into()),
    }
}

/// The digest that the client sent along, as hexadecimal text.
fn content_md5(headers: &HeaderMap) -> Result<Option<String>, ApiError> {
    let Some(sent) = headers.get("content-md5").and_then(|value| value.to_str().ok()) else { return Ok(None) };
    let decoded = STANDARD.decode(sent.trim()).ok().filter(|bytes| bytes.len() == 16);
    let bytes = decoded.ok_or_else(|| ApiError::bad_request("Content-MD5 must be 16 bytes in base64"))?;
    Ok(Some(bytes.iter().map(|byte| format!("{byte:02x}")).collect()))
}

/// Changes of a workspace's lock: `LOCK`, `UNLOCK`, `POST`, `PUT` or `DELETE` at
/// `/api/http-backend/{organization}/{workspace}/lock`
pub(crate) async fn lock(request: ApiRequest) -> Answer {
    let ApiRequest { control_plane, caller, .. } = &request;
    let wanted = request.workspace()?;
    let (method, uri) = (request.parts.method.clone(), request.uri().clone());
    let body = to_bytes(request.take_body(), MAX_LOCK_INFO_BYTES)
        .await
        .map_err(|error| broken_off(&error, MAX_LOCK_INFO_BYTES))?;
    let unlocks = match method.as_str() {
        "LOCK" | "POST" | "PUT" => false,
        "UNLOCK" | "DELETE" => true,
        _ => return Err(no_such_method(method, uri).await.with(ALLOW, "LOCK,UNLOCK,POST,PUT,DELETE")),
    };
    // Terraform's `force-unlock` sends nothing at all.
    let info = if body.iter().all(u8::is_ascii_whitespace) && unlocks {
        LockInfo::default()
    } else {
        serde_json::from_slice::<LockInfo>(&body)
            .map_err(|error| ApiError::bad_request(format!("The body must tell about the lock: {error}")))?
    };
    let lock_id = Some(info.id.clone()).filter(|id| !id.is_empty());
    let done = match (unlocks, lock_id.clone()) {
        (true, Some(id)) if id == id_in_api(&wanted) => control_plane.force_unlock_workspace(caller, &wanted).await,
        (true, lock_id) => control_plane.unlock_workspace_with(caller, &wanted, lock_id).await,
        (false, _) => control_plane.lock_workspace_with(caller, &wanted, info).await,
    };
    match done {
        Ok(_) => Ok(StatusCode::OK.into_response()),
        Err(Error::Invalid { detail, .. }) if !unlocks => Err(ApiError::bad_request(detail)),
        Err(Error::Conflict(detail)) => match other_lock(&request, &wanted, lock_id.as_deref()).await {
            Some(lock) => Ok((StatusCode::CONFLICT, Json(told(&lock, &wanted))).into_response()),
            None => Err(Error::Conflict(detail).into()),
        },
        Err(error) => Err(error.into()),
    }
}

/// The lock that is in the way, if it is another one.
async fn other_lock(request: &ApiRequest, wanted: &WorkspaceRef, own: Option<&str>) -> Option<Lock> {
    let lock = request.control_plane.workspace(&request.caller, wanted).await.ok()?.workspace.lock?;
    let claim = Claim::Http { author: request.caller.author(), lock_id: own.map(str::to_owned) };
    (!lock.is_held_by(&claim)).then_some(lock)
}

/// A lock as clients of this backend know them, also if it was taken in another way.
fn told(lock: &Lock, workspace: &WorkspaceRef) -> LockInfo {
    lock.http.clone().unwrap_or_else(|| LockInfo {
        id: id_in_api(workspace),
        operation: lock.reason.clone().unwrap_or_default(),
        info: lock.in_words(),
        who: lock.holder_name.clone(),
        version: String::new(),
        created: lock.since.to_string(),
        path: String::new(),
    })
}

/// The id that the `cloud` block shows for a lock that was taken through the API. No client of this backend took it, so
/// unlocking with this id is by force.
fn id_in_api(workspace: &WorkspaceRef) -> String {
    match workspace {
        WorkspaceRef::Named { organization, name } => format!("{organization}/{name}"),
        WorkspaceRef::Id(id) => id.to_string(),
    }
}
