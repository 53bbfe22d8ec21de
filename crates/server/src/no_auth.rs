//! A server without authentication is for the machine it runs on.

use axum::Router;
use axum::extract::Request;
use axum::http::header::HOST;
use axum::http::{HeaderMap, Method, StatusCode};
use axum::middleware::{Next, from_fn};
use axum::response::Response;
use taco_web::Sender;
use url::{Host, Url};

use crate::error_document::error_document;

/// Refuses what a page of another site makes a browser on this machine send: nothing but the address of a request would
/// stand between that page and the site's admin.
pub(crate) fn only_for_this_machine(routes: Router) -> Router {
    routes.layer(from_fn(check))
}

async fn check(request: Request, next: Next) -> Response {
    match refusal(request.method(), request.headers()) {
        Some(detail) => error_document(StatusCode::FORBIDDEN, "forbidden", detail),
        None => next.run(request).await,
    }
}

fn refusal(method: &Method, headers: &HeaderMap) -> Option<&'static str> {
    let host = headers.get(HOST).and_then(|host| host.to_str().ok()).unwrap_or_default();
    // A page somewhere can let its own name point to 127.0.0.1, and the browser would take us for a part of that site.
    if !is_this_machine(host) {
        return Some(
            "This server runs without login and answers only under a name of the machine itself, as localhost.",
        );
    }
    // A browser shows no other site what it reads here, but it sends what changes something without asking us first.
    // Programs that are no browsers say nothing about sites.
    if !method.is_safe() && Sender::of(headers) == Sender::AnotherSite {
        return Some("This server runs without login and lets no page of another site change anything.");
    }
    None
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

    #[test]
    fn another_site_may_look_but_change_nothing() {
        let refuses = |method: &str, header: (&'static str, &str)| {
            let mut headers = HeaderMap::new();
            headers.insert(HOST, "localhost:8080".parse().expect("it is text"));
            headers.insert(header.0, header.1.parse().expect("it is text"));
            refusal(&method.parse().expect("it is a method"), &headers).is_some()
        };
        for method in ["POST", "PUT", "PATCH", "DELETE", "LOCK", "UNLOCK"] {
            for other in ["http://localhost:3000", "https://evil.test", "http://localhost:8080.evil.test", "null"] {
                assert!(refuses(method, ("origin", other)), "{method} from {other}");
            }
            for site in ["cross-site", "same-site"] {
                assert!(refuses(method, ("sec-fetch-site", site)), "{method}, {site}");
            }
            for own in [("origin", "http://localhost:8080"), ("sec-fetch-site", "same-origin"), ("accept", "*/*")] {
                assert!(!refuses(method, own), "{method}, {own:?}");
            }
        }
        for method in ["GET", "HEAD", "OPTIONS"] {
            assert!(!refuses(method, ("origin", "https://evil.test")), "{method}");
        }
    }
}
