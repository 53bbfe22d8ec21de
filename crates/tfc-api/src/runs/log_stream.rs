//! Logs of plans and applies, at addresses that are their own credential.
//!
//! Clients throw the query of the address away and send `limit` and `offset` in its place. What is answered are the
//! stored bytes, the marks at both ends among them; nothing where there is nothing (yet), and never that it was not
//! found: that ends the client. A client that has read everything is kept waiting for a while, so that it need not ask
//! again and again.

use std::time::Duration;

use axum::extract::State;
use axum::http::Uri;
use axum::http::header::{CONTENT_TYPE, HeaderName, X_CONTENT_TYPE_OPTIONS};
use taco_control_plane::{ControlPlane, SignedUrlPurpose};
use taco_domain::attribute::shown;
use taco_domain::id::PlanId;
use taco_domain::phase::PhaseKind;

use crate::error::ApiError;
use crate::path::ApiPath;
use crate::query::Query;
use crate::signed_url::{Signed, check};

/// The longest that a client is kept waiting.
const MAX_WAIT: Duration = Duration::from_secs(20);
const DEFAULT_LOG_BYTES: u64 = 64 * 1024;
const MAX_LOG_BYTES: u64 = 1024 * 1024;

fn number(query: &Query, key: &str, default: u64) -> Result<u64, ApiError> {
    let Some(text) = query.get(key) else { return Ok(default) };
    text.parse().map_err(|_| ApiError::parameter(key, format!("{key} must be a whole number; it is {}", shown(text))))
}

/// `GET /signed/log/{log}/{pass}`
pub(crate) async fn read(
    State(control_plane): State<ControlPlane>,
    ApiPath((log, pass)): Signed,
    uri: Uri,
) -> Result<([(HeaderName, &'static str); 2], Vec<u8>), ApiError> {
    let query = Query::parse(uri.query().unwrap_or_default());
    let (kind, purpose) = match log.parse::<PlanId>() {
        Ok(_) => (PhaseKind::Plan, SignedUrlPurpose::ReadPlanLog),
        Err(_) => (PhaseKind::Apply, SignedUrlPurpose::ReadApplyLog),
    };
    let pass = check(&control_plane, purpose, &ApiPath((log, pass)))?;
    let limit = number(&query, "limit", DEFAULT_LOG_BYTES)?.min(MAX_LOG_BYTES);
    let offset = number(&query, "offset", 0)?;
    let bytes = match limit {
        0 => Vec::new(),
        limit => control_plane.read_log(&pass, kind, offset, limit as usize, MAX_WAIT).await?,
    };
    // What a run prints must not be taken for a page.
    Ok(([(CONTENT_TYPE, "text/plain; charset=utf-8"), (X_CONTENT_TYPE_OPTIONS, "nosniff")], bytes))
}
