//! Flash messages: what was done, said once by the next page.
//!
//! The answer to a form is a redirect; its message travels in a cookie that the next page takes away again. Nothing of
//! it is in an address, so that it is neither told again after a reload nor sent along with a link. The cookie names the
//! page that it is for and is signed for the visitor's session: no other text can be brought onto a page from outside.

use axum::extract::{Request, State};
use axum::http::header::{CONTENT_TYPE, COOKIE, HeaderValue, SET_COOKIE};
use axum::http::{HeaderMap, Method};
use axum::middleware::Next;
use axum::response::{IntoResponse, Redirect, Response};
use url::form_urlencoded;

use crate::text::plain;
use crate::{Web, form, live, session_cookie};

const COOKIE_NAME: &str = "taco-flash";

/// A browser that never asks for the page forgets the message.
const MAX_AGE_SECONDS: u32 = 60;

/// A cookie has room for about 4,000 bytes.
const MAX_CHARS: usize = 400;

/// Message about what was done, for the next page.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Flash(String);

impl Flash {
    /// A whole sentence. It names the thing that was changed.
    pub(crate) fn says(text: impl AsRef<str>) -> Self {
        Self(plain(text.as_ref()).chars().take(MAX_CHARS).collect())
    }

    /// `Workspace network created.`
    pub(crate) fn created(what: &str, name: impl AsRef<str>) -> Self {
        Self::says(format!("{what} {} created.", name.as_ref()))
    }

    pub(crate) fn saved(what: &str, name: impl AsRef<str>) -> Self {
        Self::says(format!("{what} {} saved.", name.as_ref()))
    }

    pub(crate) fn deleted(what: &str, name: impl AsRef<str>) -> Self {
        Self::says(format!("{what} {} deleted.", name.as_ref()))
    }

    pub(crate) fn text(&self) -> &str {
        &self.0
    }

    /// Leads to the page at `address`, which then shows this message.
    pub(crate) fn redirect_to(self, address: &str) -> Response {
        let path = path_of(address).to_owned();
        let mut response = Redirect::to(address).into_response();
        response.extensions_mut().insert(Pending { path, flash: self });
        response
    }

    /// The message that a request for `path` brings along.
    pub(crate) fn brought(headers: &HeaderMap, session: &str, path: &str) -> Option<Self> {
        let value = cookie(headers)?;
        let (proof, sealed) = value.split_once('.')?;
        let decoded = form_urlencoded::parse(sealed.as_bytes()).next()?.0;
        if !form::is_proof(session, &purpose(&decoded), proof) {
            return None;
        }
        let (wanted, text) = decoded.split_once('\n')?;
        (wanted == path).then(|| Self::says(text))
    }
}

/// A message that waits for its cookie.
#[derive(Clone)]
struct Pending {
    path: String,
    flash: Flash,
}

/// Puts a handler's message into its cookie, and takes the cookie away once a page has shown it.
pub(crate) async fn carry(State(web): State<Web>, request: Request, next: Next) -> Response {
    let headers = request.headers();
    let session = session_cookie::read(&web, headers).unwrap_or_default();
    let is_page = request.method() == Method::GET && !live::wants_part(headers);
    let is_shown = is_page && Flash::brought(headers, &session, request.uri().path()).is_some();
    let mut response = next.run(request).await;
    let cookie = if let Some(Pending { path, flash }) = response.extensions_mut().remove::<Pending>() {
        Some(header(&web, &sealed(&session, &path, &flash), MAX_AGE_SECONDS))
    } else {
        (is_shown && is_html(&response)).then(|| header(&web, "", 0))
    };
    if let Some(cookie) = cookie {
        response.headers_mut().append(SET_COOKIE, cookie);
    }
    response
}

fn sealed(session: &str, path: &str, flash: &Flash) -> String {
    let content = format!("{path}\n{}", flash.text());
    let proof = form::proof(session, &purpose(&content));
    format!("{proof}.{}", form_urlencoded::byte_serialize(content.as_bytes()).collect::<String>())
}

fn purpose(content: &str) -> String {
    format!("flash\0{content}")
}

fn path_of(address: &str) -> &str {
    let end = address.find(['?', '#']).unwrap_or(address.len());
    &address[..end]
}

fn is_html(response: &Response) -> bool {
    let kind = response.headers().get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
    kind.is_some_and(|kind| kind.starts_with("text/html"))
}

fn cookie(headers: &HeaderMap) -> Option<&str> {
    let lines = headers.get_all(COOKIE).into_iter().filter_map(|value| value.to_str().ok());
    let mut pairs = lines.flat_map(|line| line.split(';')).filter_map(|pair| pair.trim().split_once('='));
    pairs.find(|(name, _)| *name == COOKIE_NAME).map(|(_, value)| value)
}

fn header(web: &Web, value: &str, seconds: u32) -> HeaderValue {
    let secure = if web.address.scheme() == "https" { "; Secure" } else { "" };
    let text = format!("{COOKIE_NAME}={value}; Path=/app; HttpOnly; SameSite=Lax; Max-Age={seconds}{secure}");
    HeaderValue::try_from(text).expect("letters, digits and punctuation")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn brought(value: &str, session: &str, path: &str) -> Option<Flash> {
        let line = format!("a=b; {COOKIE_NAME}={value}");
        Flash::brought(&HeaderMap::from_iter([(COOKIE, line.parse().expect("a value"))]), session, path)
    }

    #[test]
    fn a_message_is_for_one_page_of_one_session() {
        let flash = Flash::created("Workspace", "a <b> & é;\n c");
        let value = sealed("session", "/app/acme", &flash);
        assert!(value.bytes().all(|byte| byte.is_ascii_graphic() && !b"\",;\\".contains(&byte)), "{value}");
        assert_eq!(brought(&value, "session", "/app/acme"), Some(flash));
        assert_eq!(brought(&value, "session", "/app/other"), None);
        assert_eq!(brought(&value, "another", "/app/acme"), None);
        for forged in ["", ".", "00.%2Fapp%2Facme%0AHello", "Hello", &value.replace("created", "deleted")] {
            assert_eq!(brought(forged, "session", "/app/acme"), None, "{forged}");
        }
    }

    #[test]
    fn the_path_of_an_address_ends_where_its_query_begins() {
        for (address, path) in [("/app/a", "/app/a"), ("/app/a?x=1", "/app/a"), ("/app/a#b", "/app/a")] {
            assert_eq!(path_of(address), path);
        }
    }
}
