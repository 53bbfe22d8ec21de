//! Addresses in answers: complete ones begin with the origin by which the client reached us.

use axum::http::header::HOST;
use axum::http::request::Parts;

use crate::Api;

/// Scheme, host and port, without a slash at the end.
#[derive(Clone, Debug)]
pub(crate) struct Address(String);

impl Address {
    /// A complete address for a path that begins with a slash.
    pub(crate) fn of(&self, path: &str) -> String {
        format!("{}{path}", self.0)
    }

    /// The host that the client asked for leads back to where it came from, also where the same server has several
    /// names. The scheme is the public address's: a proxy before the server may have taken the encryption off.
    pub(crate) fn of_request(parts: &Parts, api: &Api) -> Self {
        let asked = parts.headers.get(HOST).and_then(|host| host.to_str().ok()).or_else(|| parts.uri.host());
        let plain = |host: &&str| host.bytes().all(|byte| byte.is_ascii_alphanumeric() || b".-_:[]".contains(&byte));
        let scheme = api.public_address.split_once("://").map_or("http", |(scheme, _)| scheme);
        match asked.filter(plain).filter(|host| !host.is_empty()) {
            Some(host) => Self(format!("{scheme}://{host}")),
            None => Self(api.public_address.to_string()),
        }
    }
}
