//! Headers on every answer. Clients read them to find out what they talk to.

use axum::http::{HeaderName, HeaderValue};
use axum::response::Response;

/// Versions are claims about behaviour, not about this program: what clients may expect of the API.
static HEADERS: [(HeaderName, HeaderValue); 5] = [
    // From 2.5 on, the `cloud` block works; from 2.6 on, import blocks do inside a run.
    header("tfp-api-version", "2.6"),
    // One of two names that clients know. The other one, HCP Terraform, switches to behaviour that only HashiCorp has.
    header("tfp-appname", "Terraform Enterprise"),
    // Structured plan output takes v202302 or later.
    header("x-tfe-version", "v202510-1"),
    header("x-tfe-current-version", "1.0.0"),
    // A token decides what an answer has.
    header("cache-control", "no-store"),
];

const fn header(name: &'static str, value: &'static str) -> (HeaderName, HeaderValue) {
    (HeaderName::from_static(name), HeaderValue::from_static(value))
}

pub(crate) fn add(mut response: Response) -> Response {
    for (name, value) in &HEADERS {
        response.headers_mut().entry(name).or_insert_with(|| value.clone());
    }
    response
}
