//! Forms come from our own pages or not at all.
//!
//! Browsers say which site a form was on (`Sec-Fetch-Site`, `Origin`), and each form holds a proof that only pages of
//! the same session can have. Either would do; with both, a gap in one of them is no gap.

use axum::extract::{Form, FromRequest, Request};
use axum::http::HeaderMap;
use axum::http::header::{HOST, ORIGIN};
use hmac::{Hmac, KeyInit, Mac};
use serde::de::DeserializeOwned;
use sha2::Sha256;
use url::Url;

use crate::Web;
use crate::error::PageError;

/// Where a request comes from, as far as the browser tells.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Sender {
    OurPage,
    AnotherSite,
    /// A program that is no browser.
    Silent,
}

pub(crate) fn sender(headers: &HeaderMap) -> Sender {
    let text = |name: &str| headers.get(name).map(|value| value.to_str().unwrap_or_default());
    if let Some(site) = text("sec-fetch-site") {
        // "none" is the visitor's own doing, such as sending a form again from the history.
        return if matches!(site, "same-origin" | "none") { Sender::OurPage } else { Sender::AnotherSite };
    }
    let Some(origin) = text(ORIGIN.as_str()) else { return Sender::Silent };
    // Compared with where the browser thinks it is, not with the public address: people use other names of a server.
    let host = text(HOST.as_str()).unwrap_or_default();
    let origin_host = Url::parse(origin).ok().map(|_| origin.split_once("://").map_or("", |(_, host)| host));
    if !host.is_empty() && origin_host == Some(host) { Sender::OurPage } else { Sender::AnotherSite }
}

/// A form that no other site has sent. Whoever handles it for someone who is logged in still has to check its proof:
/// see [`crate::visitor::Visitor::require_proof`].
pub(crate) struct OwnForm<T>(pub(crate) T);

impl<T: DeserializeOwned> FromRequest<Web> for OwnForm<T> {
    type Rejection = PageError;

    async fn from_request(request: Request, web: &Web) -> Result<Self, PageError> {
        match sender(request.headers()) {
            Sender::AnotherSite => return Err(PageError::form_expired()),
            // Without login there is no proof either, so that nothing else would be asked.
            Sender::Silent if web.without_login => return Err(PageError::form_expired()),
            Sender::OurPage | Sender::Silent => {}
        }
        let Form(form) = Form::<T>::from_request(request, web).await.map_err(|rejection| {
            PageError::new(rejection.status(), "This form cannot be read", rejection.body_text())
        })?;
        Ok(Self(form))
    }
}

/// What a form for `purpose` holds as proof that a page of this session made it.
pub(crate) fn proof(session: &str, purpose: &str) -> String {
    hex::encode(mac(session, purpose).finalize().into_bytes())
}

/// Takes the same time for every wrong proof.
pub(crate) fn is_proof(session: &str, purpose: &str, proof: &str) -> bool {
    hex::decode(proof).is_ok_and(|proof| mac(session, purpose).verify_slice(&proof).is_ok())
}

fn mac(session: &str, purpose: &str) -> Hmac<Sha256> {
    let mut mac = Hmac::<Sha256>::new_from_slice(session.as_bytes()).expect("HMAC takes a key of any length");
    mac.update(b"form\0");
    mac.update(purpose.as_bytes());
    mac
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderName;

    use super::*;

    fn sent_with(lines: &[(&'static str, &'static str)]) -> Sender {
        let lines = lines.iter().map(|(name, value)| (HeaderName::from_static(name), value.parse().expect("a value")));
        sender(&lines.collect())
    }

    #[test]
    fn browsers_tell_which_site_a_form_was_on() {
        let host = ("host", "taco.test:8080");
        for (lines, expected) in [
            (vec![host], Sender::Silent),
            (vec![host, ("sec-fetch-site", "same-origin")], Sender::OurPage),
            (vec![host, ("sec-fetch-site", "none")], Sender::OurPage),
            (vec![host, ("sec-fetch-site", "same-site")], Sender::AnotherSite),
            (vec![host, ("sec-fetch-site", "cross-site")], Sender::AnotherSite),
            (vec![host, ("sec-fetch-site", "cross-site"), ("origin", "http://taco.test:8080")], Sender::AnotherSite),
            (vec![host, ("origin", "http://taco.test:8080")], Sender::OurPage),
            (vec![host, ("origin", "https://taco.test:8080")], Sender::OurPage),
            (vec![host, ("origin", "http://taco.test")], Sender::AnotherSite),
            (vec![host, ("origin", "http://evil.test:8080")], Sender::AnotherSite),
            (vec![host, ("origin", "null")], Sender::AnotherSite),
            (vec![("origin", "http://")], Sender::AnotherSite),
        ] {
            assert_eq!(sent_with(&lines), expected, "{lines:?}");
        }
    }

    #[test]
    fn a_proof_holds_for_one_session_and_one_purpose() {
        let made = proof("session", "purpose");
        assert!(is_proof("session", "purpose", &made));
        assert!(!is_proof("session", "other", &made));
        assert!(!is_proof("other", "purpose", &made));
        assert!(!is_proof("session", "purpose", ""));
        assert!(!is_proof("session", "purpose", &made[..10]));
    }
}
