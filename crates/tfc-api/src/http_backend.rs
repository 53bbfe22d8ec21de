//! Terraform's `http` backend: the same states, locks and versions under an address for each workspace.
//!
//! The lock lies at `/lock` below it. Clients lock with `LOCK` and `UNLOCK`, or as with GitLab with `POST` and
//! `DELETE`. One who writes names the lock in `?ID=`.
//!
//! `DELETE` of the state itself is not allowed, though GitLab has it, and neither terraform nor tofu sends it:
//! `docs/decisions/0011-a-state-is-not-deleted-at-its-address.md`.

use axum::Json;
use axum::body::{Body, to_bytes};
use axum::extract::{Request, State};
use axum::http::header::ALLOW;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use futures::StreamExt;
use taco_control_plane::{Caller, ControlPlane, Error, WorkspaceRef};
use taco_domain::lock::{Claim, Lock, LockInfo};

use crate::body::broken_off;
use crate::caller::BasicCaller;
use crate::error::{ApiError, no_such_method};
use crate::query::Query;
use crate::signed_url::json_bytes;
use crate::workspaces::InWorkspace;

/// A client tells about its lock in a few lines.
const LARGEST_LOCK: usize = 64 * 1024;

/// `GET /api/http-backend/{organization}/{workspace}`
pub(crate) async fn read(
    State(control_plane): State<ControlPlane>,
    BasicCaller(caller): BasicCaller,
    InWorkspace(wanted): InWorkspace,
) -> Result<Response, ApiError> {
    match control_plane.download_current_state(&caller, &wanted).await? {
        None => Ok(StatusCode::NO_CONTENT.into_response()),
        Some((_, download)) => Ok(json_bytes(download.size, Body::from_stream(download.body))),
    }
}

/// `POST /api/http-backend/{organization}/{workspace}?ID=…`
pub(crate) async fn write(
    State(control_plane): State<ControlPlane>,
    BasicCaller(caller): BasicCaller,
    InWorkspace(wanted): InWorkspace,
    query: Query,
    request: Request,
) -> Result<Response, ApiError> {
    let lock_id = query.get("ID").map(str::to_owned);
    let md5 = content_md5(request.headers())?;
    let body = request.into_body().into_data_stream().map(|piece| piece);
    match control_plane.write_state_with(&caller, &wanted, lock_id.clone(), md5, body).await {
        Ok(_) => Ok(StatusCode::OK.into_response()),
        Err(Error::Conflict(detail)) => match other_lock(&control_plane, &caller, &wanted, lock_id.as_deref()).await {
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

/// All that is done to a workspace's lock: `LOCK`, `UNLOCK`, `POST`, `PUT` or `DELETE` at
/// `/api/http-backend/{organization}/{workspace}/lock`
pub(crate) async fn lock(
    State(control_plane): State<ControlPlane>,
    BasicCaller(caller): BasicCaller,
    InWorkspace(wanted): InWorkspace,
    request: Request,
) -> Result<Response, ApiError> {
    let (method, uri) = (request.method().clone(), request.uri().clone());
    let body = to_bytes(request.into_body(), LARGEST_LOCK).await.map_err(|error| broken_off(&error, LARGEST_LOCK))?;
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
        (true, Some(id)) if id == id_in_api(&wanted) => control_plane.force_unlock_workspace(&caller, &wanted).await,
        (true, lock_id) => control_plane.unlock_workspace_with(&caller, &wanted, lock_id).await,
        (false, _) => control_plane.lock_workspace_with(&caller, &wanted, info).await,
    };
    match done {
        Ok(_) => Ok(StatusCode::OK.into_response()),
        Err(Error::Invalid { detail, .. }) if !unlocks => Err(ApiError::bad_request(detail)),
        Err(Error::Conflict(detail)) => match other_lock(&control_plane, &caller, &wanted, lock_id.as_deref()).await {
            Some(lock) => Ok((StatusCode::CONFLICT, Json(told(&lock, &wanted))).into_response()),
            None => Err(Error::Conflict(detail).into()),
        },
        Err(error) => Err(error.into()),
    }
}

/// The lock that is in the way, if it is another one.
async fn other_lock(
    control_plane: &ControlPlane,
    caller: &Caller,
    wanted: &WorkspaceRef,
    own: Option<&str>,
) -> Option<Lock> {
    let lock = control_plane.workspace(caller, wanted).await.ok()?.workspace.lock?;
    let claim = Claim::Http { author: caller.author(), lock_id: own.map(str::to_owned) };
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

/// What the `cloud` block calls a lock that was taken through the API. Nobody here took it, so that whoever unlocks
/// with this id uses force.
fn id_in_api(workspace: &WorkspaceRef) -> String {
    match workspace {
        WorkspaceRef::Named { organization, name } => format!("{organization}/{name}"),
        WorkspaceRef::Id(id) => id.to_string(),
    }
}
