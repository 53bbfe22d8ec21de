//! Headers on every answer. Clients read them to find out what they talk to.

use axum::http::HeaderValue;
use axum::response::Response;

/// Versions are claims about behaviour, not about this program: what clients may expect of the API.
const HEADERS: [(&str, &str); 5] = [
    // From 2.5 on, the `cloud` block works; from 2.6 on, import blocks do inside a run.
    ("tfp-api-version", "2.6"),
    // One of two names that clients know. The other one, HCP Terraform, switches to behaviour that only HashiCorp has.
    ("tfp-appname", "Terraform Enterprise"),
    // Structured plan output takes v202302 or later.
    ("x-tfe-version", "v202510-1"),
    ("x-tfe-current-version", "1.0.0"),
    // A token decides what an answer has.
    ("cache-control", "no-store"),
];

pub(crate) fn add(mut response: Response) -> Response {
    for (name, value) in HEADERS {
        response.headers_mut().entry(name).or_insert(HeaderValue::from_static(value));
    }
    response
}
