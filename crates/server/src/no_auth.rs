//! A server that asks nobody who they are is for the machine it runs on.

use axum::Router;
use axum::extract::Request;
use axum::http::StatusCode;
use axum::http::header::HOST;
use axum::middleware::{Next, from_fn};
use axum::response::Response;
use url::{Host, Url};

use crate::error_document::error_document;

/// Refuses requests that name another host. A page somewhere can let its own name point to 127.0.0.1, and the browser
/// would take us for a part of that site.
pub(crate) fn only_for_this_machine(routes: Router) -> Router {
    routes.layer(from_fn(check))
}

async fn check(request: Request, next: Next) -> Response {
    let host = request.headers().get(HOST).and_then(|host| host.to_str().ok()).unwrap_or_default();
    if is_this_machine(host) {
        return next.run(request).await;
    }
    let detail = "This server runs without login and answers only under a name of the machine itself, as localhost.";
    error_document(StatusCode::FORBIDDEN, "forbidden", detail)
}

fn is_this_machine(host: &str) -> bool {
    let url = Url::parse(&format!("http://{host}"));
    match url.as_ref().ok().and_then(Url::host) {
        Some(Host::Domain(name)) => name == "localhost",
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => address.is_loopback(),
        None => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_of_this_machine_count() {
        for host in ["localhost", "localhost:8080", "127.0.0.1:8080", "[::1]:8080", "LOCALHOST"] {
            assert!(is_this_machine(host), "{host}");
        }
        for host in ["", "evil.test", "localhost.evil.test:8080", "10.0.0.1", "evil.test@localhost.evil.test"] {
            assert!(!is_this_machine(host), "{host}");
        }
    }
}
