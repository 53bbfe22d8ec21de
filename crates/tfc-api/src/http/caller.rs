//! Authentication: the caller is the one whom the request's token identifies.

use axum::extract::{ConnectInfo, FromRequestParts, RawPathParams};
use axum::http::HeaderMap;
use axum::http::header::{AUTHORIZATION, USER_AGENT};
use axum::http::request::Parts;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use std::net::SocketAddr;
use taco_control_plane::{Caller, RequestInfo, RequestTarget};
use taco_domain::id::OrganizationPrefix;
use taco_domain::idempotency_record::IdempotencyKey;

use crate::Api;
use crate::error::ApiError;

/// Origin of a request: client address, user agent, ids.
fn request_info(parts: &Parts) -> Result<RequestInfo, ApiError> {
    let text = |name: &str| parts.headers.get(name).and_then(|value| value.to_str().ok()).map(str::to_owned);
    let address = parts.extensions.get::<ConnectInfo<SocketAddr>>().map(|info| info.0.ip());
    let client = text(USER_AGENT.as_str()).map(|agent| agent.chars().take(100).collect::<String>());
    let from: Vec<String> = [address.map(|address| address.to_string()), client].into_iter().flatten().collect();
    let from = (!from.is_empty()).then(|| from.join(" "));
    Ok(RequestInfo { id: text("x-request-id"), from, address, key: request_key(parts)? })
}

/// Idempotency key of a request: repeated under the same key, it gets the first answer again.
fn request_key(parts: &Parts) -> Result<Option<IdempotencyKey>, ApiError> {
    let Some(sent) = parts.headers.get("idempotency-key") else { return Ok(None) };
    let what = format!("{} {}", parts.method, parts.uri.path());
    let key = sent.to_str().ok().and_then(|text| IdempotencyKey::new(text, what));
    let longest = IdempotencyKey::MAX_BYTES;
    let detail = || format!("Idempotency-Key must be one word of 1 to {longest} letters, digits and signs");
    key.map(Some).ok_or_else(|| ApiError::bad_request(detail()))
}

fn bearer(headers: &HeaderMap) -> Option<String> {
    let (scheme, token) = headers.get(AUTHORIZATION)?.to_str().ok()?.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim().to_owned()).filter(|token| !token.is_empty())
}

/// The password of Basic authentication, whatever the user's name is.
fn basic_password(headers: &HeaderMap) -> Option<String> {
    let (scheme, credentials) = headers.get(AUTHORIZATION)?.to_str().ok()?.split_once(' ')?;
    let decoded = scheme.eq_ignore_ascii_case("basic").then(|| STANDARD.decode(credentials.trim()).ok())??;
    let text = String::from_utf8(decoded).ok()?;
    text.split_once(':').map(|(_, password)| password.to_owned()).filter(|password| !password.is_empty())
}

/// The organization that the path names, or to which the first id in it belongs.
fn about(path: &str) -> Option<RequestTarget> {
    let mut words = path.split('/');
    while let Some(word) = words.next() {
        if word == "organizations" {
            return words.next().map(|name| RequestTarget::Named(name.to_owned()));
        }
        if let Some(prefix) = OrganizationPrefix::of(word) {
            return Some(RequestTarget::At(prefix));
        }
    }
    None
}

/// Words in paths of the registry: what it has is named by its address, as in configurations.
const IN_REGISTRY: [&str; 9] =
    ["registry", "namespace", "module_name", "module_provider", "provider_name", "version", "os", "arch", "key_id"];

/// Checks that what the path names can be there at all: apart from organizations, workspaces in one of them, and what a
/// registry has, things are named by their ids.
async fn can_lead_somewhere(parts: &mut Parts) -> bool {
    let Ok(named) = RawPathParams::from_request_parts(parts, &()).await else { return false };
    let within_organization = named.iter().any(|(word, _)| word == "organization");
    named.iter().all(|(word, name)| match word {
        // Output commits are counted.
        "organization" | "action" | "output_commit" => true,
        "workspace" if within_organization => true,
        word if IN_REGISTRY.contains(&word) => is_plain_name(name),
        _ => OrganizationPrefix::of(name).is_some(),
    })
}

/// True for what could be a part of an address in the registry.
fn is_plain_name(name: &str) -> bool {
    name.len() <= 255 && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.+".contains(&byte))
}

/// Forms of `Authorization` that a route takes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Credentials {
    /// A bearer token.
    Bearer,
    /// Also as the password of Basic authentication: terraform's `http` backend knows no other way.
    BearerOrBasic,
}

/// Finds out who sent a request.
pub(crate) async fn recognise(api: &Api, parts: &mut Parts, credentials: Credentials) -> Result<Caller, ApiError> {
    let token = match credentials {
        Credentials::Bearer => bearer(&parts.headers),
        Credentials::BearerOrBasic => bearer(&parts.headers).or_else(|| basic_password(&parts.headers)),
    };
    let info = request_info(parts)?;
    // To recognise the caller is a look into the bucket, which nonsense is not worth.
    if token.is_some() && !can_lead_somewhere(parts).await {
        return Err(ApiError::not_found());
    }
    let caller = match token {
        _ if api.without_login => api.control_plane.without_login(info).await?,
        Some(token) => api.control_plane.authenticate_for(&token, info, about(parts.uri.path())).await?,
        None => {
            return Err(ApiError::unauthorized(
                "You are not logged in. Run `taco login` or `terraform login`, or send an API token as `Authorization: Bearer TOKEN`.",
            ));
        }
    };
    Ok(caller)
}
