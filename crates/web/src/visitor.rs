//! Visitor of a page.

use std::net::{IpAddr, SocketAddr};

use axum::extract::{ConnectInfo, FromRequestParts};
use axum::http::request::Parts;
use axum::http::{Extensions, HeaderMap, Method};
use taco_control_plane::{Caller, Error, RequestInfo};
use taco_domain::user::User;

use crate::error::PageError;
use crate::flash::Flash;
use crate::theme::Theme;
use crate::{Web, form, session_cookie, shown_once};

/// Someone who is logged in.
pub(crate) struct Visitor {
    pub(crate) caller: Caller,
    pub(crate) user: User,
    /// The cookie's text, to which forms are bound; empty on a site without login.
    pub(crate) session: String,
    pub(crate) theme: Theme,
    /// The address of the page that is asked for.
    pub(crate) here: String,
    /// Message about what they did just before.
    pub(crate) flash: Option<Flash>,
    /// Text that this page shows and no other, such as a new token: see [`shown_once`].
    pub(crate) shown_once: Option<String>,
}

impl Visitor {
    /// Visitor whom the cookie identifies, or `None`.
    pub(crate) async fn recognise(
        web: &Web,
        headers: &HeaderMap,
        extensions: &Extensions,
    ) -> Result<Option<Self>, Error> {
        let request = request_info(headers, extensions);
        let (caller, session) = if web.without_login {
            (web.control_plane.without_login(request).await?, String::new())
        } else {
            let Some(cookie) = session_cookie::read(web, headers) else { return Ok(None) };
            match web.control_plane.authenticate_session(&cookie, request).await {
                Err(Error::Unauthorized(_)) => return Ok(None),
                other => (other?, cookie),
            }
        };
        let user = web.control_plane.account(&caller).await?;
        let theme = Theme::of(headers);
        Ok(Some(Self { caller, user, session, theme, here: String::new(), flash: None, shown_once: None }))
    }

    /// CSRF token for a form with this purpose.
    pub(crate) fn proof(&self, purpose: &str) -> String {
        form::proof(&self.session, purpose)
    }

    /// Refuses a form that was not on one of this visitor's own pages.
    pub(crate) fn require_proof(&self, purpose: &str, proof: &str) -> Result<(), PageError> {
        if form::is_proof(&self.session, purpose, proof) { Ok(()) } else { Err(PageError::form_expired()) }
    }
}

impl FromRequestParts<Web> for Visitor {
    type Rejection = PageError;

    async fn from_request_parts(parts: &mut Parts, web: &Web) -> Result<Self, PageError> {
        let visitor = Self::recognise(web, &parts.headers, &parts.extensions).await?;
        let here = parts.uri.path_and_query().map_or("", |address| address.as_str()).to_owned();
        match visitor {
            Some(visitor) => {
                let flash = Flash::brought(&parts.headers, &visitor.session, parts.uri.path());
                let shown_once = shown_once::read(&parts.headers, &visitor.session, parts.uri.path());
                Ok(Self { here, flash, shown_once, ..visitor })
            }
            // A form is lost with its session; its page can be come back to.
            None => Err(PageError::LogIn { next: if parts.method == Method::GET { here } else { String::new() } }),
        }
    }
}

/// The client's address, for limits.
pub(crate) fn client_address(extensions: &Extensions) -> Option<IpAddr> {
    extensions.get::<ConnectInfo<SocketAddr>>().map(|info| info.0.ip())
}

pub(crate) fn user_agent(headers: &HeaderMap) -> Option<String> {
    let agent = headers.get("user-agent")?.to_str().ok()?;
    Some(agent.chars().take(200).collect())
}

/// Id and source of the request, from its headers and connection.
pub(crate) fn request_info(headers: &HeaderMap, extensions: &Extensions) -> RequestInfo {
    let id = headers.get("x-request-id").and_then(|id| id.to_str().ok()).map(str::to_owned);
    let address = client_address(extensions);
    RequestInfo { id, from: address.map(|address| address.to_string()), address, key: None }
}
