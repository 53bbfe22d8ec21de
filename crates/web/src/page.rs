//! What surrounds every page.

use askama::Template;
use axum::http::StatusCode;
use axum::response::{Html, IntoResponse, Response};
use jiff::Timestamp;
use jiff::tz::TimeZone;

use crate::visitor::Visitor;
use crate::{Web, style_sheet};

/// What `layout.html` shows around a page's own content.
pub(crate) struct Layout {
    pub(crate) style_sheet: String,
    pub(crate) without_login: bool,
    pub(crate) account: Option<Account>,
}

pub(crate) struct Account {
    pub(crate) username: String,
    /// Proof for the form that logs out.
    pub(crate) log_out: String,
}

impl Layout {
    /// For pages that anyone may see.
    pub(crate) fn of(web: &Web) -> Self {
        Self { style_sheet: style_sheet::path(), without_login: web.without_login, account: None }
    }

    pub(crate) fn for_visitor(web: &Web, visitor: &Visitor) -> Self {
        let account =
            Account { username: visitor.user.username.to_string(), log_out: visitor.proof(crate::login::LOG_OUT) };
        Self { account: Some(account), ..Self::of(web) }
    }
}

/// Fills a template.
pub(crate) fn render(status: StatusCode, template: &impl Template) -> Response {
    match template.render() {
        Ok(text) => (status, Html(text)).into_response(),
        Err(error) => {
            tracing::error!(%error, "a page could not be rendered");
            StatusCode::INTERNAL_SERVER_ERROR.into_response()
        }
    }
}

/// A moment for people, and for the `datetime` attribute beside it.
pub(crate) struct Moment(pub(crate) Timestamp);

impl Moment {
    pub(crate) fn exact(&self) -> String {
        self.0.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
    }

    pub(crate) fn text(&self) -> String {
        self.0.to_zoned(TimeZone::UTC).strftime("%-d %b %Y, %H:%M UTC").to_string()
    }
}
