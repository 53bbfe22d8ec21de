//! The way through an HTTP proxy, for agents that have no other.

use std::io;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use url::Url;

const MAX_RESPONSE_BYTES: usize = 16 * 1024;

/// The proxy for a server, by the variables that most programs know.
pub(crate) fn for_server(server: &Url, variable: impl Fn(&str) -> Option<String>) -> Option<Url> {
    let either =
        |upper: &str| variable(upper).or_else(|| variable(&upper.to_ascii_lowercase())).filter(|v| !v.is_empty());
    let host = server.host_str()?.trim_matches(['[', ']']);
    if either("NO_PROXY").is_some_and(|exceptions| is_excepted(host, &exceptions)) || is_loopback(host) {
        return None;
    }
    let name = if server.scheme() == "https" { "HTTPS_PROXY" } else { "HTTP_PROXY" };
    let address = either(name).or_else(|| either("ALL_PROXY"))?;
    let address = if address.contains("://") { address } else { format!("http://{address}") };
    Url::parse(&address).ok().filter(|proxy| proxy.scheme() == "http")
}

fn is_loopback(host: &str) -> bool {
    host == "localhost" || host.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback())
}

/// `example.com` excepts itself and what is below it.
fn is_excepted(host: &str, exceptions: &str) -> bool {
    exceptions.split(',').map(|exception| exception.trim().trim_start_matches('.')).any(|exception| {
        let below = host.strip_suffix(exception).is_some_and(|rest| rest.is_empty() || rest.ends_with('.'));
        exception == "*" || (!exception.is_empty() && below)
    })
}

/// A stream that ends at the server.
pub(crate) async fn tunnel(proxy: &Url, host: &str, port: u16) -> io::Result<TcpStream> {
    let place = (proxy.host_str().unwrap_or_default(), proxy.port_or_known_default().unwrap_or(3128));
    let mut stream = TcpStream::connect(place).await?;
    let target = if host.contains(':') { format!("[{host}]:{port}") } else { format!("{host}:{port}") };
    let mut request = format!("CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n");
    if let Some(password) = proxy.password() {
        let credentials = STANDARD.encode(format!("{}:{password}", proxy.username()));
        request.push_str(&format!("Proxy-Authorization: Basic {credentials}\r\n"));
    }
    stream.write_all(format!("{request}\r\n").as_bytes()).await?;
    let mut answer = Vec::new();
    // One byte at a time: what follows belongs to the server.
    while !answer.ends_with(b"\r\n\r\n") {
        if answer.len() > MAX_RESPONSE_BYTES {
            return Err(io::Error::other("the proxy says too much"));
        }
        answer.push(stream.read_u8().await?);
    }
    let answer = String::from_utf8_lossy(&answer).into_owned();
    let line = answer.lines().next().unwrap_or_default();
    match line.split_whitespace().nth(1) {
        Some("200") => Ok(stream),
        _ => Err(io::Error::other(format!("the proxy {} answered {line}", place.0))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_proxy_follows_from_the_usual_variables() {
        let variables = |name: &str| match name {
            "HTTPS_PROXY" => Some("http://proxy:3128".to_owned()),
            "http_proxy" => Some("plain:8080".to_owned()),
            "no_proxy" => Some("internal, .corp.example,10.0.0.1".to_owned()),
            _ => None,
        };
        for (server, expected) in [
            ("https://taco.example", Some("http://proxy:3128/")),
            ("http://taco.example", Some("http://plain:8080/")),
            ("https://internal", None),
            ("https://taco.corp.example", None),
            ("https://notcorp.example", Some("http://proxy:3128/")),
            ("https://10.0.0.1", None),
            ("http://localhost:8080", None),
            ("http://127.0.0.1:8080", None),
        ] {
            let found = for_server(&Url::parse(server).expect(server), variables);
            assert_eq!(found.as_ref().map(Url::as_str), expected, "{server}");
        }
        assert_eq!(for_server(&Url::parse("https://a").expect("a"), |_| None), None);
    }

    #[tokio::test]
    async fn a_tunnel_is_asked_for_and_a_refusal_is_told() {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let port = listener.local_addr().expect("an address").port();
        let serving = tokio::spawn(async move {
            let mut requests = Vec::new();
            for answer in ["HTTP/1.1 200 Connection established\r\n\r\nhello", "HTTP/1.1 403 Forbidden\r\n\r\n"] {
                let (mut stream, _) = listener.accept().await.expect("a connection");
                let mut request = vec![0; 1024];
                let count = stream.read(&mut request).await.expect("a request");
                requests.push(String::from_utf8_lossy(&request[..count]).into_owned());
                stream.write_all(answer.as_bytes()).await.expect("an answer");
            }
            requests
        });
        let proxy = Url::parse(&format!("http://me:secret@127.0.0.1:{port}")).expect("an address");
        let mut stream = tunnel(&proxy, "taco.example", 443).await.expect("a tunnel");
        let mut text = String::new();
        stream.read_to_string(&mut text).await.expect("a text");
        assert_eq!(text, "hello");
        let error = tunnel(&proxy, "taco.example", 443).await.expect_err("refused");
        assert!(error.to_string().contains("403 Forbidden"), "{error}");
        let requests = serving.await.expect("no panic");
        let expected = "CONNECT taco.example:443 HTTP/1.1\r\nHost: taco.example:443\r\nProxy-Authorization: Basic bWU6c2VjcmV0\r\n\r\n";
        assert_eq!(requests[0], expected);
    }
}
