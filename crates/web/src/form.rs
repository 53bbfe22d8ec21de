//! Forms come from our own pages or not at all.
//!
//! Browsers say which site a form was on (`Sec-Fetch-Site`, `Origin`), and each form holds a proof that only pages of
//! the same session can have. Either would do; with both, a gap in one of them is no gap.

use axum::body::Bytes;
use axum::extract::{FromRequest, FromRequestParts, RawForm, Request};
use axum::http::header::{HOST, ORIGIN};
use axum::http::{HeaderMap, StatusCode};
use hmac::{Hmac, KeyInit, Mac};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer};
use sha2::Sha256;
use taco_control_plane::Error;
use url::Url;

use crate::error::PageError;
use crate::visitor::Visitor;
use crate::{Web, text};

const UNREADABLE: &str = "This form cannot be read";

/// Origin of a request, as far as the browser tells.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Sender {
    OurPage,
    AnotherSite,
    /// A program that is no browser.
    Silent,
}

impl Sender {
    pub fn of(headers: &HeaderMap) -> Self {
        let text = |name: &str| headers.get(name).map(|value| value.to_str().unwrap_or_default());
        if let Some(site) = text("sec-fetch-site") {
            // "none" is the visitor's own doing, such as sending a form again from the history.
            return if matches!(site, "same-origin" | "none") { Self::OurPage } else { Self::AnotherSite };
        }
        let Some(origin) = text(ORIGIN.as_str()) else { return Self::Silent };
        // Compared with where the browser thinks it is, not with the public address: people use other names of a server.
        let host = text(HOST.as_str()).unwrap_or_default();
        let origin_host = Url::parse(origin).ok().map(|_| origin.split_once("://").map_or("", |(_, host)| host));
        if !host.is_empty() && origin_host == Some(host) { Self::OurPage } else { Self::AnotherSite }
    }
}

/// A form that no other site has sent. A handler for someone who is logged in still has to check its proof: see
/// [`crate::visitor::Visitor::require_proof`].
pub(crate) struct OwnForm<T>(pub(crate) T);

impl<T: DeserializeOwned> FromRequest<Web> for OwnForm<T> {
    type Rejection = PageError;

    async fn from_request(request: Request, web: &Web) -> Result<Self, PageError> {
        Ok(Self(parse(&own_fields(request, web).await?)?))
    }
}

/// The fields of a form that no other site has sent, as they came.
async fn own_fields(request: Request, web: &Web) -> Result<Bytes, PageError> {
    match Sender::of(request.headers()) {
        Sender::AnotherSite => return Err(PageError::form_expired()),
        // Without login there is no proof either, so that nothing else would be asked.
        Sender::Silent if web.without_login => return Err(PageError::form_expired()),
        Sender::OurPage | Sender::Silent => {}
    }
    match RawForm::from_request(request, web).await {
        Ok(RawForm(fields)) => Ok(fields),
        Err(rejection) => Err(PageError::new(rejection.status(), UNREADABLE, rejection.body_text())),
    }
}

fn parse<T: DeserializeOwned>(fields: &[u8]) -> Result<T, PageError> {
    let refusal = |error: serde_html_form::de::Error| {
        PageError::new(StatusCode::UNPROCESSABLE_ENTITY, UNREADABLE, text::plain(&error.to_string()))
    };
    serde_html_form::from_bytes(fields).map_err(refusal)
}

/// The purpose of a form that any page of a session may hold.
pub(crate) const ANY_PAGE: &str = "page";

/// A form that a page of this very visitor has sent.
pub(crate) struct VisitorForm<T>(pub(crate) Visitor, pub(crate) T);

/// A form without fields of its own.
#[derive(Deserialize)]
pub(crate) struct Nothing {}

#[derive(Deserialize)]
struct Proven {
    #[serde(default)]
    proof: String,
}

impl<T: DeserializeOwned> FromRequest<Web> for VisitorForm<T> {
    type Rejection = PageError;

    async fn from_request(request: Request, web: &Web) -> Result<Self, PageError> {
        let (mut parts, body) = request.into_parts();
        let visitor = Visitor::from_request_parts(&mut parts, web).await?;
        let fields = own_fields(Request::from_parts(parts, body), web).await?;
        visitor.require_proof(ANY_PAGE, &parse::<Proven>(&fields)?.proof)?;
        Ok(Self(visitor, parse(&fields)?))
    }
}

/// A box that is ticked or not: browsers send it in the first case alone.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub(crate) struct Ticked(pub(crate) bool);

impl<'de> Deserialize<'de> for Ticked {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer).map(|_| Self(true))
    }
}

/// Text of several lines as it was typed: browsers send it with CRLF.
pub(crate) fn typed(text: &str) -> String {
    text.replace("\r\n", "\n")
}

/// Error in a submitted form, and the field next to which it is shown.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub(crate) struct Complaint(Option<(String, String)>);

impl Complaint {
    /// The complaint about one of these fields, or about the form as a whole. Other errors have a page of their own.
    pub(crate) fn of(error: Error, fields: &[&str]) -> Result<Self, PageError> {
        let Error::Invalid { pointer, detail } = error else { return Err(error.into()) };
        let field = pointer.rsplit('/').next().unwrap_or_default();
        let field = if fields.contains(&field) { field } else { "" };
        Ok(Self::about_field(field, detail))
    }

    pub(crate) fn about_field(field: &str, detail: impl Into<String>) -> Self {
        Self(Some((field.to_owned(), text::plain(&detail.into()))))
    }

    pub(crate) fn is_there(&self) -> bool {
        self.0.is_some()
    }

    /// Text of the error, whichever field it is about.
    pub(crate) fn text(&self) -> &str {
        self.0.as_ref().map_or("", |(_, detail)| detail)
    }

    /// Error to show next to a field; an empty name is the form as a whole.
    pub(crate) fn about(&self, field: &str) -> Option<&str> {
        self.0.as_ref().filter(|(about, _)| about == field).map(|(_, detail)| detail.as_str())
    }
}

/// CSRF token of a form for `purpose`: it proves that a page of this session made the form.
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
        Sender::of(&lines.collect())
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
    fn a_complaint_stands_beside_its_field_or_above_the_form() {
        let error = |pointer: &str| Error::Invalid { pointer: pointer.to_owned(), detail: "no".to_owned() };
        let beside = Complaint::of(error("/data/attributes/name"), &["name"]).expect("a complaint");
        assert_eq!((beside.about("name"), beside.about("")), (Some("no"), None));
        assert!(beside.is_there() && beside.text() == "no" && !Complaint::default().is_there());
        let above = Complaint::of(error("/data"), &["name"]).expect("a complaint");
        assert_eq!((above.about("name"), above.about("")), (None, Some("no")));
        assert!(Complaint::of(Error::NotFound("page"), &["name"]).is_err());
        assert_eq!(Complaint::default().about(""), None);
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
