//! Text that the next page shows and no other: a redirect brings it there in a cookie, which that page removes. The cookie
//! holds only for the session that it was set in, on one path, for a minute. So a secret is shown exactly once, and
//! reloading the page sends no form again.

use axum::extract::{Request, State};
use axum::http::header::{COOKIE, HeaderValue, SET_COOKIE};
use axum::http::{HeaderMap, Method};
use axum::middleware::Next;
use axum::response::{IntoResponse, Redirect, Response};

use crate::visitor::Visitor;
use crate::{Web, form, session_cookie};

const NAME: &str = "taco-once";

/// In seconds.
const MAX_AGE: u32 = 60;

/// Leads to the page at `path`, whose visitor then has `text` as [`Visitor::shown_once`].
pub(crate) fn redirect_to(web: &Web, visitor: &Visitor, path: &str, text: &str) -> Response {
    let value = format!("{}.{}", hex::encode(text), visitor.proof(&purpose(path, text)));
    ([(SET_COOKIE, header(web, &value, path, MAX_AGE))], Redirect::to(path)).into_response()
}

/// The text that was set in this very session for the page at `path`.
pub(crate) fn read(headers: &HeaderMap, session: &str, path: &str) -> Option<String> {
    let cookies = headers.get_all(COOKIE).into_iter().filter_map(|value| value.to_str().ok());
    let mut pairs = cookies.flat_map(|line| line.split(';')).filter_map(|pair| pair.trim().split_once('='));
    let (text, proof) = pairs.find(|(name, _)| *name == NAME)?.1.split_once('.')?;
    let text = String::from_utf8(hex::decode(text).ok()?).ok()?;
    form::is_proof(session, &purpose(path, &text), proof).then_some(text)
}

/// Takes the cookie away with the page that shows it.
pub(crate) async fn forget(State(web): State<Web>, request: Request, next: Next) -> Response {
    let headers = request.headers();
    let path = request.uri().path();
    let is_shown = request.method() == Method::GET && {
        let session = session_cookie::read(&web, headers).unwrap_or_default();
        read(headers, &session, path).is_some()
    };
    let path = if is_shown { path.to_owned() } else { String::new() };
    let mut response = next.run(request).await;
    if is_shown && response.status().is_success() {
        response.headers_mut().append(SET_COOKIE, header(&web, "", &path, 0));
    }
    response
}

fn purpose(path: &str, text: &str) -> String {
    format!("shown once\0{path}\0{text}")
}

fn header(web: &Web, value: &str, path: &str, seconds: u32) -> HeaderValue {
    let secure = if web.address.scheme() == "https" { "; Secure" } else { "" };
    let text = format!("{NAME}={value}; Path={path}; Max-Age={seconds}; HttpOnly; SameSite=Strict{secure}");
    let mut header = HeaderValue::try_from(text).expect("letters, digits and punctuation");
    header.set_sensitive(true);
    header
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_for_one_page_of_one_session() {
        let text = "taco_u_secret\n<line>; two";
        let value = format!("{}.{}", hex::encode(text), form::proof("session", &purpose("/app/a", text)));
        let read = |value: &str, session: &str, path: &str| {
            let line = format!("a=b; {NAME}={value}").parse().expect("a header");
            read(&HeaderMap::from_iter([(COOKIE, line)]), session, path)
        };
        assert_eq!(read(&value, "session", "/app/a").as_deref(), Some(text));
        assert_eq!(read(&value, "another", "/app/a"), None);
        assert_eq!(read(&value, "session", "/app/a/b"), None);
        let forged = format!("{}{}", hex::encode("x"), value);
        for forged in ["", ".", "zz.00", "00", &forged] {
            assert_eq!(read(forged, "session", "/app/a"), None, "{forged}");
        }
    }
}
