//! Logging in and out.

use std::time::Duration;

use askama::Template;
use axum::extract::{Query, Request, State};
use axum::http::header::SET_COOKIE;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Redirect, Response};
use serde::Deserialize;
use taco_control_plane::{Error, OpenedSession};
use taco_domain::id::UserId;
use url::form_urlencoded;

use crate::error::PageError;
use crate::form::{Nothing, OwnForm, VisitorForm};
use crate::page::Layout;
use crate::theme::Theme;
use crate::visitor::{self, Visitor};
use crate::{Web, page, session_cookie};

const HOME: &str = "/app";

#[derive(Template)]
#[template(path = "login.html")]
struct LoginPage<'a> {
    layout: Layout,
    username: &'a str,
    next: &'a str,
    error: Option<&'a str>,
    /// True while nobody has a password.
    needs_setup: bool,
}

/// The address of the login page for someone who wants to go to `next`.
pub(crate) fn address(next: &str) -> String {
    if next.is_empty() || next == HOME {
        return "/login".to_owned();
    }
    format!("/login?{}", form_urlencoded::Serializer::new(String::new()).append_pair("next", next).finish())
}

/// Page to return to after the login: always one of our own.
pub(crate) fn place_to_return_to(next: &str) -> &str {
    let is_ours = [HOME, "/oauth/authorize"]
        .iter()
        .any(|page| next.strip_prefix(page).is_some_and(|rest| rest.is_empty() || rest.starts_with(['/', '?'])));
    if is_ours && next.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'\\') { next } else { HOME }
}

#[derive(Deserialize, Debug)]
pub(crate) struct LoginQuery {
    #[serde(default)]
    next: String,
}

/// `GET /login`
pub(crate) async fn show(
    State(web): State<Web>,
    Query(query): Query<LoginQuery>,
    request: Request,
) -> Result<Response, PageError> {
    let next = place_to_return_to(&query.next);
    if Visitor::recognise(&web, request.headers(), request.extensions()).await?.is_some() {
        return Ok(Redirect::to(next).into_response());
    }
    let needs_setup = web.control_plane.needs_setup();
    let page = LoginPage {
        layout: Layout::of(&web).themed(Theme::of(request.headers())),
        username: "",
        next,
        error: None,
        needs_setup,
    };
    Ok(page::render(StatusCode::OK, &page))
}

#[derive(Deserialize)]
pub(crate) struct Credentials {
    username: String,
    password: String,
    #[serde(default)]
    next: String,
}

/// `POST /login`
pub(crate) async fn log_in(
    State(web): State<Web>,
    client: Client,
    headers: HeaderMap,
    OwnForm(form): OwnForm<Credentials>,
) -> Result<Response, PageError> {
    let next = place_to_return_to(&form.next);
    let again = |error| LoginPage {
        layout: Layout::of(&web).themed(Theme::of(&headers)),
        username: &form.username,
        next,
        error: Some(error),
        needs_setup: web.control_plane.needs_setup(),
    };
    if let Err(wait) = client.may_try(&web, &form.username) {
        let page = again("Too many attempts. Wait a minute, then try again.");
        return Ok(page::to_repeat_after(page::render(StatusCode::TOO_MANY_REQUESTS, &page), wait));
    }
    match client.open_session(&web, &form.username, form.password).await {
        Ok(session) => Ok(entered(&web, &session, next)),
        Err(Error::Unauthorized(_)) => {
            Ok(page::render(StatusCode::UNAUTHORIZED, &again("Incorrect username or password.")))
        }
        Err(Error::TooManyRequests { detail, retry_after }) => {
            let page = page::render(StatusCode::TOO_MANY_REQUESTS, &again(&detail));
            Ok(page::to_repeat_after(page, retry_after))
        }
        Err(error) => Err(error.into()),
    }
}

/// The first answer in a new session.
pub(crate) fn entered(web: &Web, session: &OpenedSession, next: &str) -> Response {
    ([(SET_COOKIE, session_cookie::set(web, &session.secret))], Redirect::to(next)).into_response()
}

/// `POST /logout`
pub(crate) async fn log_out(
    State(web): State<Web>,
    headers: HeaderMap,
    VisitorForm(_, Nothing {}): VisitorForm<Nothing>,
) -> Result<Response, PageError> {
    if let Some(cookie) = session_cookie::read(&web, &headers) {
        web.control_plane.log_out(&cookie).await?;
    }
    Ok(([(SET_COOKIE, session_cookie::remove(&web))], Redirect::to("/login")).into_response())
}

/// Browser details that are stored with a session.
pub(crate) struct Client {
    address: String,
    user_agent: Option<String>,
    request: taco_control_plane::RequestInfo,
}

impl<S: Sync> axum::extract::FromRequestParts<S> for Client {
    type Rejection = std::convert::Infallible;

    async fn from_request_parts(parts: &mut axum::http::request::Parts, _: &S) -> Result<Self, Self::Rejection> {
        Ok(Self {
            address: visitor::client_address(&parts.extensions).map(|address| address.to_string()).unwrap_or_default(),
            user_agent: visitor::user_agent(&parts.headers),
            request: visitor::request_info(&parts.headers, &parts.extensions),
        })
    }
}

impl Client {
    /// Counts an attempt to guess the password of someone whose session this is, from wherever it is tried: a session
    /// can be stolen. `Err` says how long to wait.
    pub(crate) fn may_try_own(&self, web: &Web, user: UserId) -> Result<(), Duration> {
        web.login_limit.attempt_within_session(&user.to_string())
    }

    /// Counts an attempt to guess this user's password; `Err` says how long to wait.
    pub(crate) fn may_try(&self, web: &Web, username: &str) -> Result<(), Duration> {
        web.login_limit.attempt(&self.address, username)
    }

    pub(crate) async fn open_session(self, web: &Web, name: &str, password: String) -> Result<OpenedSession, Error> {
        web.control_plane.log_in(name, password, &self.request, self.user_agent).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn after_the_login_one_stays_here() {
        for next in ["/app", "/app/settings/tokens?source=terraform-login", "/oauth/authorize?client_id=x&state=y%20z"]
        {
            assert_eq!(place_to_return_to(next), next);
            assert_eq!(
                place_to_return_to(address(next).split("next=").nth(1).unwrap_or("/app")),
                HOME,
                "still encoded"
            );
        }
        for next in ["", "/", "//evil.test", "https://evil.test", "/\\evil.test", "/application", "/app\\..", "/app x"]
        {
            assert_eq!(place_to_return_to(next), HOME, "{next}");
        }
    }
}
