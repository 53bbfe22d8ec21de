//! Layout around every page.

use std::time::Duration;

use askama::Template;
use axum::http::StatusCode;
use axum::http::header::{HeaderValue, RETRY_AFTER};
use axum::response::{Html, IntoResponse, Response};
use taco_domain::Author;
use taco_domain::lock::Lock;
use taco_domain::workspace::Workspace;

use crate::badge::Badge;
use crate::flash::Flash;
use crate::form::{self, ANY_PAGE};
use crate::navigation::{self, Crumb, Section, Tabs, WorkspaceSection};
use crate::static_files::{STATIC_FILES, StaticFiles};
use crate::theme::Theme;
use crate::visitor::Visitor;
use crate::{Web, search, text};

/// Data that `layout.html` shows around a page's own content.
pub(crate) struct Layout {
    pub(crate) files: &'static StaticFiles,
    pub(crate) theme: Theme,
    pub(crate) without_login: bool,
    pub(crate) account: Option<Account>,
    pub(crate) organization: Option<Tabs>,
    pub(crate) workspace: Option<Tabs>,
    /// Flash message about the last action.
    pub(crate) flash: Option<Flash>,
    /// The way to this page from its tab.
    pub(crate) crumbs: Vec<Crumb>,
    /// Who has locked the workspace.
    pub(crate) locked_by: Option<String>,
    /// Address of the search.
    pub(crate) search: String,
    /// Favicon: a coloured one on the page of something that has a status.
    pub(crate) icon: &'static str,
    /// After so many seconds, browsers without scripts load the page again.
    pub(crate) refresh: Option<u32>,
}

pub(crate) struct Account {
    pub(crate) username: String,
    pub(crate) site_admin: bool,
    /// CSRF token that every form of the page contains as `proof`.
    pub(crate) proof: String,
    /// The address of this page.
    pub(crate) here: String,
}

impl Layout {
    /// For pages that anyone may see.
    pub(crate) fn of(web: &Web) -> Self {
        Self {
            files: &STATIC_FILES,
            theme: Theme::System,
            without_login: web.without_login,
            account: None,
            organization: None,
            workspace: None,
            flash: None,
            crumbs: Vec::new(),
            locked_by: None,
            search: search::address(None),
            icon: &STATIC_FILES.icon.path,
            refresh: None,
        }
    }

    /// Of a visitor in nobody's session.
    #[cfg(test)]
    pub(crate) fn for_tests() -> Self {
        Self {
            files: &STATIC_FILES,
            theme: Theme::System,
            without_login: false,
            account: None,
            organization: None,
            workspace: None,
            flash: None,
            crumbs: Vec::new(),
            locked_by: None,
            search: search::address(None),
            icon: &STATIC_FILES.icon.path,
            refresh: None,
        }
    }

    pub(crate) fn for_visitor(web: &Web, visitor: &Visitor) -> Self {
        let account = Account {
            username: visitor.user.username.to_string(),
            site_admin: visitor.user.site_admin,
            proof: form::proof(&visitor.session, ANY_PAGE),
            here: visitor.here.clone(),
        };
        Self { account: Some(account), theme: visitor.theme, flash: visitor.flash.clone(), ..Self::of(web) }
    }

    pub(crate) fn in_organization(self, organization: &str, here: impl Into<Option<Section>>) -> Self {
        let crumbs = self.account.as_ref().map(|account| navigation::crumbs(&account.here)).unwrap_or_default();
        let search = search::address(Some(organization));
        Self { organization: Some(Tabs::of_organization(organization, here)), crumbs, search, ..self }
    }

    pub(crate) fn in_workspace(self, organization: &str, workspace: &Workspace, here: WorkspaceSection) -> Self {
        let tabs = Tabs::of_workspace(organization, workspace.name.as_str(), here);
        let locked_by = workspace.lock.as_ref().map(lock_holder);
        Self { workspace: Some(tabs), locked_by, ..self.in_organization(organization, Section::Workspaces) }
    }

    /// Gives a step of the way to the page a better name than its part of the address.
    pub(crate) fn called(mut self, segment: impl ToString, name: &str) -> Self {
        let segment = segment.to_string();
        self.crumbs.iter_mut().for_each(|crumb| crumb.is_called(&segment, name));
        self
    }

    /// Lets the favicon show a status.
    pub(crate) fn with_status(self, badge: Badge) -> Self {
        Self { icon: STATIC_FILES.icon_of(badge.tone), ..self }
    }

    pub(crate) fn themed(self, theme: Theme) -> Self {
        Self { theme, ..self }
    }

    pub(crate) fn refreshed(self, seconds: Option<u32>) -> Self {
        Self { refresh: seconds, ..self }
    }

    /// CSRF token for the forms of this page; empty without a login.
    pub(crate) fn proof(&self) -> &str {
        self.account.as_ref().map_or("", |account| &account.proof)
    }
}

/// The holder's name; a run has none, and the overview leads to it.
fn lock_holder(lock: &Lock) -> String {
    match lock.holder {
        Author::Run(_) => "a run".to_owned(),
        _ => text::plain(&lock.holder_name),
    }
}

/// Says when it is worth asking again.
pub(crate) fn to_repeat_after(mut response: Response, wait: Duration) -> Response {
    response.headers_mut().insert(RETRY_AFTER, HeaderValue::from(wait.as_secs().max(1)));
    response
}

/// Fills a template.
pub(crate) fn render(status: StatusCode, template: &impl Template) -> Response {
    match template.render() {
        Ok(text) => (status, Html(text)).into_response(),
        Err(error) => {
            tracing::error!(event = "page_render_failed", %error, "a page could not be rendered");
            StatusCode::INTERNAL_SERVER_ERROR.into_response()
        }
    }
}
