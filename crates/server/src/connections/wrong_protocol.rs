//! Clients that speak https to a listener for http, or the other way round. Both are told so in words that they show.

use std::io;
use std::net::SocketAddr;
use std::sync::Once;

use axum::Router;
use axum::extract::Request;
use axum::http::header::{AUTHORIZATION, CONTENT_TYPE, LOCATION};
use axum::http::{Method, StatusCode};
use axum::response::{IntoResponse as _, Response};
use tokio::net::TcpStream;
use url::Url;

/// First byte of a TLS handshake. No method of HTTP begins with it.
pub(super) const CLIENT_HELLO: u8 = 0x16;

/// Waits for the first byte and looks at it, without taking it.
pub(super) async fn begins_tls(stream: &TcpStream) -> io::Result<bool> {
    let mut first = [0];
    let length = stream.peek(&mut first).await?;
    // A client that has closed already fails in the handshake.
    Ok(length == 0 || first[0] == CLIENT_HELLO)
}

/// A client spoke TLS to a listener that has none. It has got hyper's answer to what is no HTTP, which Go's clients know:
/// "server gave HTTP response to HTTPS client". The log has the rest, once: scanners come again and again.
pub(super) fn explain_tls(peer: SocketAddr) {
    static EXPLAINED: Once = Once::new();
    EXPLAINED.call_once(|| {
        tracing::warn!(
            event = "https_on_http_port",
            %peer,
            "a client tried https, but this server speaks plain http: use an address with http://, or start the server \
             with --tls-dev, or with --tls-cert and --tls-key"
        );
    });
}

/// Answers plain http on a listener with TLS: pages lead to their https address, everything else is told it.
pub(crate) fn lead_to_https(url: &Url) -> Router {
    let url = url.clone();
    Router::new().fallback(move |request: Request| {
        let answer = answer(&url, &request);
        async move { answer }
    })
}

fn answer(url: &Url, request: &Request) -> Response {
    let text = format!("This is the HTTPS port of taco. Use {}\n", url.as_str().trim_end_matches('/'));
    let plain = [(CONTENT_TYPE, "text/plain; charset=utf-8")];
    // A program that has sent its token in plain text should stop doing so, rather than do it again each time.
    let is_for_a_page = matches!(*request.method(), Method::GET | Method::HEAD);
    let path = request.uri().path_and_query().map_or("/", |path| path.as_str());
    let target = url.join(path).ok().filter(|target| target.origin() == url.origin());
    match target {
        // Not for ever: the next server on this port may speak plain http.
        Some(target) if is_for_a_page && url.scheme() == "https" && !request.headers().contains_key(AUTHORIZATION) => {
            (StatusCode::TEMPORARY_REDIRECT, plain, [(LOCATION, target.to_string())], text).into_response()
        }
        _ => (StatusCode::BAD_REQUEST, plain, text).into_response(),
    }
}

#[cfg(test)]
mod tests {
    use axum::body::Body;

    use super::*;

    fn answered(method: &str, path: &str, token: bool) -> (u16, Option<String>) {
        let url = "https://taco.test:8443/".parse().expect("an address");
        let mut request = Request::builder().method(method).uri(path);
        if token {
            request = request.header(AUTHORIZATION, "Bearer x");
        }
        let response = answer(&url, &request.body(Body::empty()).expect("a request"));
        let location = response.headers().get(LOCATION).map(|value| value.to_str().expect("text").to_owned());
        (response.status().as_u16(), location)
    }

    #[test]
    fn pages_lead_to_https_and_programs_are_told() {
        let to = |path: &str| (307, Some(format!("https://taco.test:8443{path}")));
        assert_eq!(answered("GET", "/app?a=b", false), to("/app?a=b"));
        assert_eq!(answered("HEAD", "/", false), to("/"));
        assert_eq!(answered("GET", "/api/v2/ping", true), (400, None));
        assert_eq!(answered("POST", "/login", false), (400, None));
        assert_eq!(answered("GET", "//evil.test/a", false), (400, None), "it leads to no other site");
    }
}
