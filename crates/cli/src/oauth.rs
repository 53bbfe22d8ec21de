//! Logging in with a browser, the way `terraform login` does: OAuth with PKCE, and a listener on this machine that gets
//! the code.

use std::io::{self, IsTerminal};
use std::net::Ipv4Addr;
use std::ops::Range;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::Deserialize;
use sha2::{Digest, Sha256};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use url::Url;

use crate::api::Api;
use crate::browser;
use crate::failure::Failure;

/// Maximum size of a browser's request for the page that we show.
const MAX_REQUEST_BYTES: usize = 16 * 1024;

const DONE: &str = "You are logged in. You can close this window.";

/// Login settings of a server, under `login.v1` of its discovery.
#[derive(Deserialize, Debug)]
pub(crate) struct LoginService {
    client: String,
    authz: String,
    token: String,
    /// The first, and the one after the last.
    #[serde(default = "any_port")]
    ports: (u16, u16),
}

fn any_port() -> (u16, u16) {
    (1024, u16::MAX)
}

impl LoginService {
    fn ports(&self) -> Range<u16> {
        self.ports.0..self.ports.1
    }
}

/// Response that the browser brings back.
#[derive(PartialEq, Eq, Debug)]
enum AuthorizationResponse {
    Code(String),
    Refused(String),
}

/// A token, after a person has agreed in the browser.
pub(crate) async fn log_in(api: &Api, service: &LoginService) -> Result<String, Failure> {
    let (verifier, state) = (random()?, random()?);
    let (listener, port) = listen(service.ports()).await?;
    let redirect = format!("http://localhost:{port}/login");
    let mut address = api.address(&service.authz)?;
    address.query_pairs_mut().extend_pairs([
        ("client_id", service.client.as_str()),
        ("code_challenge", &URL_SAFE_NO_PAD.encode(Sha256::digest(&verifier))),
        ("code_challenge_method", "S256"),
        ("redirect_uri", &redirect),
        ("response_type", "code"),
        ("state", &state),
    ]);
    eprintln!("Open this URL to log in:\n\n  {address}\n\nWaiting… (Ctrl-C to cancel)");
    if io::stderr().is_terminal() {
        browser::open(&address);
    }
    let code = match wait(&listener, &state).await? {
        AuthorizationResponse::Code(code) => code,
        AuthorizationResponse::Refused(why) => return Err(Failure::error("login failed").because(why)),
    };
    let exchange = [
        ("client_id", service.client.as_str()),
        ("code", &code),
        ("code_verifier", &verifier),
        ("grant_type", "authorization_code"),
        ("redirect_uri", &redirect),
    ];
    api.exchange(&service.token, &exchange).await
}

/// 256 random bits that cannot be guessed, as text.
fn random() -> Result<String, Failure> {
    let mut bytes = [0; 32];
    getrandom::fill(&mut bytes).map_err(|error| Failure::error("no randomness").because(error))?;
    Ok(URL_SAFE_NO_PAD.encode(bytes))
}

async fn listen(ports: Range<u16>) -> Result<(TcpListener, u16), Failure> {
    for port in ports.clone() {
        if let Ok(listener) = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).await {
            return Ok((listener, port));
        }
    }
    Err(Failure::error("the browser could not bring its answer back")
        .because(format!("all ports from {} to {} of this machine are taken", ports.start, ports.end.saturating_sub(1)))
        .hint("wait for other logins to end, or use --paste"))
}

/// Answers requests until one has brought something under our `state`. Browsers ask for icons too.
async fn wait(listener: &TcpListener, state: &str) -> Result<AuthorizationResponse, Failure> {
    loop {
        let (mut connection, _) = listener.accept().await?;
        let Some(path) = requested(&mut connection).await else { continue };
        let response = parse_callback(&path, state);
        let (status, text) = match &response {
            Some(AuthorizationResponse::Code(_)) => ("200 OK", DONE),
            Some(AuthorizationResponse::Refused(_)) => ("200 OK", "Login failed. See your terminal for details."),
            None => ("404 Not Found", "There is nothing here."),
        };
        let page = format!("<!doctype html><meta charset=utf-8><title>taco login</title><p>{text}</p>");
        let head = "content-type: text/html; charset=utf-8\r\nconnection: close\r\ncontent-length";
        let answer = format!("HTTP/1.1 {status}\r\n{head}: {}\r\n\r\n{page}", page.len());
        // A browser that is gone by now does no harm: we have what it brought.
        connection.write_all(answer.as_bytes()).await.ok();
        connection.shutdown().await.ok();
        if let Some(response) = response {
            return Ok(response);
        }
    }
}

/// The path and query that a browser asks for, if it asks for anything.
async fn requested(connection: &mut TcpStream) -> Option<String> {
    let mut request = Vec::new();
    while !request.windows(4).any(|window| window == b"\r\n\r\n") {
        let mut piece = [0; 1024];
        let length = connection.read(&mut piece).await.ok().filter(|length| *length > 0)?;
        request.extend_from_slice(&piece[..length]);
        if request.len() > MAX_REQUEST_BYTES {
            return None;
        }
    }
    let text = String::from_utf8_lossy(&request).into_owned();
    text.strip_prefix("GET ")?.split(' ').next().map(str::to_owned)
}

fn parse_callback(path: &str, state: &str) -> Option<AuthorizationResponse> {
    let address = Url::parse("http://localhost").ok()?.join(path).ok()?;
    let value =
        |wanted: &str| address.query_pairs().find(|(name, _)| name == wanted).map(|(_, value)| value.into_owned());
    // Another page on this machine cannot know our state, so what it brings is not for us.
    if address.path() != "/login" || value("state")? != state {
        return None;
    }
    match (value("code"), value("error")) {
        (Some(code), None) => Some(AuthorizationResponse::Code(code)),
        (_, Some(error)) if error == "access_denied" => {
            Some(AuthorizationResponse::Refused("it was denied in the browser".to_owned()))
        }
        (_, Some(error)) => Some(AuthorizationResponse::Refused(value("error_description").unwrap_or(error))),
        (None, None) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_comes_under_our_state_counts() {
        assert_eq!(parse_callback("/login?code=abc&state=s", "s"), Some(AuthorizationResponse::Code("abc".to_owned())));
        let denied = Some(AuthorizationResponse::Refused("it was denied in the browser".to_owned()));
        assert_eq!(parse_callback("/login?error=access_denied&state=s", "s"), denied);
        for path in
            ["/login?code=abc&state=t", "/login?code=abc", "/other?code=abc&state=s", "/favicon.ico", "/login?state=s"]
        {
            assert_eq!(parse_callback(path, "s"), None, "{path}");
        }
    }
}
