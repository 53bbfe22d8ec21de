//! Clients, told apart by their headers. Terraform and tofu say their version with each request, and the `cloud` block
//! names itself.

use axum::http::HeaderMap;
use taco_domain::run::RunSource;

/// Source of a run or a configuration.
pub(crate) fn source(headers: &HeaderMap) -> RunSource {
    let integration = headers.get("x-terraform-integration").and_then(|value| value.to_str().ok());
    match integration {
        Some("cloud") => RunSource::Cloud,
        // The `remote` backend shows the log as it is, so it needs one that people can read.
        _ if headers.contains_key("terraform-version") => RunSource::Terraform,
        _ => RunSource::Api,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clients_are_told_apart_by_what_they_send() {
        let with = |pairs: &[(&'static str, &'static str)]| {
            let parse = |(name, value): &(&'static str, &'static str)| {
                (axum::http::HeaderName::from_static(name), axum::http::HeaderValue::from_static(value))
            };
            source(&pairs.iter().map(parse).collect::<HeaderMap>())
        };
        assert_eq!(with(&[]), RunSource::Api);
        assert_eq!(with(&[("terraform-version", "1.11.4")]), RunSource::Terraform);
        assert_eq!(with(&[("terraform-version", "1.11.4"), ("x-terraform-integration", "cloud")]), RunSource::Cloud);
    }
}
