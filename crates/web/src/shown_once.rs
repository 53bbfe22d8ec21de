//! Text that the next page shows and no other: a redirect brings it there in a cookie, which that page removes. The cookie
//! holds only for the session that it was set in, on one path, for a minute.

use axum::http::HeaderMap;
use axum::http::header::{COOKIE, HeaderValue};

use crate::visitor::Visitor;
use crate::{Web, form};

const NAME: &str = "taco-once";

/// In seconds.
const MAX_AGE: u32 = 60;

pub(crate) fn set(web: &Web, visitor: &Visitor, path: &str, text: &str) -> HeaderValue {
    let secure = if web.address.scheme() == "https" { "; Secure" } else { "" };
    let value = format!("{}.{}", hex::encode(text), visitor.proof(&purpose(text)));
    header(&format!("{NAME}={value}; Path={path}; Max-Age={MAX_AGE}; HttpOnly; SameSite=Strict{secure}"))
}

pub(crate) fn remove(path: &str) -> HeaderValue {
    header(&format!("{NAME}=; Path={path}; Max-Age=0; HttpOnly; SameSite=Strict"))
}

/// The text that was set in this very session.
pub(crate) fn read(headers: &HeaderMap, visitor: &Visitor) -> Option<String> {
    let cookies = headers.get_all(COOKIE).into_iter().filter_map(|value| value.to_str().ok());
    let mut pairs = cookies.flat_map(|line| line.split(';')).filter_map(|pair| pair.trim().split_once('='));
    let (text, proof) = pairs.find(|(name, _)| *name == NAME)?.1.split_once('.')?;
    let text = String::from_utf8(hex::decode(text).ok()?).ok()?;
    form::is_proof(&visitor.session, &purpose(&text), proof).then_some(text)
}

fn purpose(text: &str) -> String {
    format!("shown once\0{text}")
}

fn header(text: &str) -> HeaderValue {
    let mut header = HeaderValue::try_from(text).expect("letters, digits and punctuation");
    header.set_sensitive(true);
    header
}
