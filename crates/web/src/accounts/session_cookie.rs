//! The cookie that keeps someone logged in. Its text is a secret of which the bucket has only a hash.

use axum::http::HeaderMap;
use axum::http::header::{COOKIE, HeaderValue};
use taco_domain::secret::Secret;

use crate::Web;

/// With this prefix browsers take the cookie only over https, for this very host and for all its paths.
const NAME_OVER_HTTPS: &str = "__Host-taco";
const NAME: &str = "taco";

/// The cookie's text, if the request has one that could be ours.
pub(crate) fn read(web: &Web, headers: &HeaderMap) -> Option<String> {
    let name = name(web);
    let cookies = headers.get_all(COOKIE).into_iter().filter_map(|value| value.to_str().ok());
    let mut pairs = cookies.flat_map(|line| line.split(';')).filter_map(|pair| pair.trim().split_once('='));
    pairs.find(|(key, value)| *key == name && value.parse::<Secret>().is_ok()).map(|(_, value)| value.to_owned())
}

pub(crate) fn set(web: &Web, secret: &Secret) -> HeaderValue {
    header(web, secret.reveal(), "")
}

pub(crate) fn remove(web: &Web) -> HeaderValue {
    header(web, "", "; Max-Age=0")
}

fn header(web: &Web, value: &str, more: &str) -> HeaderValue {
    let secure = if is_https(web) { "; Secure" } else { "" };
    let text = format!("{}={value}; Path=/; HttpOnly; SameSite=Lax{secure}{more}", name(web));
    let mut header = HeaderValue::try_from(text).expect("letters, digits and punctuation");
    header.set_sensitive(true);
    header
}

fn name(web: &Web) -> &'static str {
    if is_https(web) { NAME_OVER_HTTPS } else { NAME }
}

fn is_https(web: &Web) -> bool {
    web.address.scheme() == "https"
}
