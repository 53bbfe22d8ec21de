//! `/app/settings/sessions`: where a person is logged in.

use askama::Template;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::http::header::SET_COOKIE;
use axum::response::{IntoResponse, Redirect, Response};
use jiff::Timestamp;
use taco_domain::id::SessionId;
use taco_domain::session::Session;

use crate::error::PageError;
use crate::flash::Flash;
use crate::form::{Nothing, VisitorForm};
use crate::page::Layout;
use crate::rail::Rail;
use crate::text::Moment;
use crate::visitor::Visitor;
use crate::{Web, page, session_cookie, text};

const PATH: &str = "/app/settings/sessions";

#[derive(Template)]
#[template(path = "sessions.html")]
struct SessionsPage {
    layout: Layout,
    rail: Rail,
    sessions: Vec<Row>,
    now: Timestamp,
}

struct Row {
    id: SessionId,
    browser: String,
    /// All that the browser says of itself.
    user_agent: String,
    address: String,
    opened: Moment,
    last_used: Moment,
    ends: Moment,
    is_this_one: bool,
}

impl Row {
    fn of(session: Session, this_one: Option<SessionId>) -> Self {
        let user_agent = text::plain(session.user_agent.as_deref().unwrap_or_default());
        Self {
            id: session.id,
            browser: browser_in_words(&user_agent),
            user_agent,
            opened: Moment(session.created_at),
            last_used: Moment(session.last_used_at),
            ends: Moment(session.ends_at()),
            is_this_one: Some(session.id) == this_one,
            address: session.address.unwrap_or_default(),
        }
    }
}

/// `Firefox on Linux`, as far as the browser tells. Most of them also claim to be others, so the order counts.
fn browser_in_words(user_agent: &str) -> String {
    let first = |names: &[(&str, &'static str)]| {
        names.iter().find(|(part, _)| user_agent.contains(part)).map(|(_, name)| *name)
    };
    let browser = first(&[
        ("Edg", "Edge"),
        ("OPR/", "Opera"),
        ("Firefox/", "Firefox"),
        ("FxiOS/", "Firefox"),
        ("CriOS/", "Chrome"),
        ("Chrome/", "Chrome"),
        ("Safari/", "Safari"),
    ]);
    let system = first(&[
        ("iPhone", "iPhone"),
        ("iPad", "iPad"),
        ("Android", "Android"),
        ("Windows", "Windows"),
        ("Mac OS X", "macOS"),
        ("CrOS", "ChromeOS"),
        ("Linux", "Linux"),
    ]);
    match (browser, system) {
        (Some(browser), Some(system)) => format!("{browser} on {system}"),
        (Some(name), None) | (None, Some(name)) => name.to_owned(),
        (None, None) if user_agent.is_empty() => "Unknown browser".to_owned(),
        (None, None) => user_agent.chars().take(60).collect(),
    }
}

/// `GET /app/settings/sessions`
pub(crate) async fn list(State(web): State<Web>, visitor: Visitor) -> Result<Response, PageError> {
    let sessions = web.control_plane.sessions(&visitor.caller, visitor.user.id).await?;
    let this_one = web.control_plane.session_of_cookie(&visitor.caller, &visitor.session);
    let page = SessionsPage {
        layout: Layout::for_visitor(&web, &visitor),
        rail: Rail::of_account("/sessions"),
        sessions: sessions.into_iter().map(|session| Row::of(session, this_one)).collect(),
        now: web.control_plane.now(),
    };
    Ok(page::render(StatusCode::OK, &page))
}

/// `POST /app/settings/sessions/{session}/revoke`
pub(crate) async fn revoke(
    State(web): State<Web>,
    Path(id): Path<String>,
    VisitorForm(visitor, Nothing {}): VisitorForm<Nothing>,
) -> Result<Response, PageError> {
    let id: SessionId = id.parse().map_err(|_| PageError::not_found("session"))?;
    let this_one = web.control_plane.session_of_cookie(&visitor.caller, &visitor.session);
    web.control_plane.close_session(&visitor.caller, id).await?;
    if this_one == Some(id) {
        return Ok(([(SET_COOKIE, session_cookie::remove(&web))], Redirect::to("/login")).into_response());
    }
    Ok(Flash::says("Session ended.").redirect_to(PATH))
}

/// `POST /app/settings/sessions/close-others`
pub(crate) async fn close_others(
    State(web): State<Web>,
    VisitorForm(visitor, Nothing {}): VisitorForm<Nothing>,
) -> Result<Response, PageError> {
    let kept = web.control_plane.session_of_cookie(&visitor.caller, &visitor.session);
    web.control_plane.close_other_sessions(&visitor.caller, visitor.user.id, kept).await?;
    Ok(Flash::says("Your other sessions have ended.").redirect_to(PATH))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_browser_is_told_by_what_it_says_of_itself() {
        let linux = "Mozilla/5.0 (X11; Linux x86_64)";
        let mac = "Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/605.1.15";
        for (user_agent, expected) in [
            (format!("{linux} Gecko/20100101 Firefox/145.0"), "Firefox on Linux"),
            (format!("{linux} AppleWebKit/537.36 Chrome/142.0.0.0 Safari/537.36"), "Chrome on Linux"),
            (format!("{mac} Version/26.0 Safari/605.1.15"), "Safari on macOS"),
            ("Mozilla/5.0 (Windows NT 10.0) Chrome/142.0 Safari/537.36 Edg/142.0".to_owned(), "Edge on Windows"),
            ("curl/8.5".to_owned(), "curl/8.5"),
            (String::new(), "Unknown browser"),
        ] {
            assert_eq!(browser_in_words(&user_agent), expected);
        }
    }
}
