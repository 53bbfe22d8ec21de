//! Parsers of this crate for `crates/fuzz-targets`; no part of the API.

use std::net::IpAddr;

use axum::http::{HeaderMap, HeaderValue};

use crate::trusted_proxies::TrustedProxies;

/// Client of a request that came from `peer` with this `X-Forwarded-For`, where `trusted` are proxies.
pub fn client(trusted: &str, peer: IpAddr, forwarded_for: &[u8]) -> Option<IpAddr> {
    let mut headers = HeaderMap::new();
    headers.append("x-forwarded-for", HeaderValue::from_bytes(forwarded_for).ok()?);
    Some(TrustedProxies::parse(trusted).ok()?.client(peer, &headers))
}
