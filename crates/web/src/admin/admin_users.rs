//! `/app/admin/users`: the site's people. A link with which one sets a password is shown once, after a redirect, so that
//! nothing is sent again when the page is reloaded.

use askama::Template;
use axum::extract::{Path, Query, State};
use axum::http::StatusCode;
use axum::response::Response;
use jiff::Timestamp;
use serde::Deserialize;
use taco_control_plane::PasswordLinkText;
use taco_domain::id::UserId;
use taco_domain::user::User;

use crate::badge::Badge;
use crate::error::PageError;
use crate::flash::Flash;
use crate::form::{Complaint, Nothing, Ticked, VisitorForm};
use crate::list_page::ListPage;
use crate::page::Layout;
use crate::pagination::{self, PageQuery};
use crate::rail::Rail;
use crate::text::Moment;
use crate::visitor::Visitor;
use crate::{Web, page, password_link, shown_once};

const PATH: &str = "/app/admin/users";

struct UserRow {
    id: UserId,
    username: String,
    email: String,
    has_verified_email: bool,
    site_admin: bool,
    badge: Badge,
    suspended: bool,
    created: Moment,
    is_visitor: bool,
}

impl UserRow {
    fn of(user: User, visitor: &Visitor) -> Self {
        Self {
            id: user.id,
            badge: match (user.suspended, user.password.is_some()) {
                (true, _) => Badge::new("Suspended", "–", "off"),
                (false, true) => Badge::new("Active", "✓", "good"),
                (false, false) => Badge::new("No password yet", "○", "calm"),
            },
            suspended: user.suspended,
            has_verified_email: user.has_verified_email(),
            site_admin: user.site_admin,
            created: Moment(user.created_at),
            is_visitor: user.id == visitor.user.id,
            username: user.username.to_string(),
            email: user.email.to_string(),
        }
    }
}

/// A link that was created just now.
struct NewLink {
    username: String,
    address: String,
    expires: Moment,
}

impl NewLink {
    /// The text that a redirect carries: see [`shown_once`].
    fn spelled(web: &Web, link: &PasswordLinkText) -> String {
        let site = web.address.as_str().trim_end_matches('/');
        format!("{}\n{}\n{}", link.username, link.expires_at, password_link::address(&site, link))
    }

    fn read(text: &str) -> Option<Self> {
        let mut lines = text.lines();
        let username = lines.next()?.to_owned();
        let expires = Moment(lines.next()?.parse().ok()?);
        Some(Self { username, expires, address: lines.next()?.to_owned() })
    }
}

#[derive(Clone, Default, Deserialize)]
#[serde(default)]
pub(crate) struct NewUser {
    username: String,
    email: String,
    site_admin: Ticked,
    #[serde(skip)]
    complaint: Complaint,
}

#[derive(Template)]
#[template(path = "admin_users.html")]
struct UsersPage {
    layout: Layout,
    rail: Rail,
    now: Timestamp,
    list: ListPage<UserRow>,
    link: Option<NewLink>,
    form: NewUser,
}

impl UsersPage {
    async fn new(web: &Web, visitor: &Visitor, wanted: &PageQuery, form: NewUser) -> Result<Self, PageError> {
        let search = wanted.search.trim();
        let users = web.control_plane.users(&visitor.caller, Some(search), pagination::asked_for(&wanted.page)).await?;
        Ok(Self {
            layout: Layout::for_visitor(web, visitor),
            rail: Rail::of_site("/users"),
            now: web.control_plane.now(),
            list: ListPage::of(PATH.to_owned(), search, users, |user| UserRow::of(user, visitor)),
            link: None,
            form,
        })
    }
}

/// `GET /app/admin/users`
pub(crate) async fn list(
    State(web): State<Web>,
    visitor: Visitor,
    Query(wanted): Query<PageQuery>,
) -> Result<Response, PageError> {
    let page = UsersPage::new(&web, &visitor, &wanted, NewUser::default()).await?;
    let link = visitor.shown_once.as_deref().and_then(NewLink::read);
    Ok(page::render(StatusCode::OK, &UsersPage { link, ..page }))
}

/// Leads to the list, which then shows the link.
fn redirect_with(web: &Web, visitor: &Visitor, link: &PasswordLinkText) -> Response {
    shown_once::redirect_to(web, visitor, PATH, &NewLink::spelled(web, link))
}

/// `POST /app/admin/users`
pub(crate) async fn create(
    State(web): State<Web>,
    VisitorForm(visitor, form): VisitorForm<NewUser>,
) -> Result<Response, PageError> {
    let (username, email) = (form.username.trim(), form.email.trim());
    match web.control_plane.create_user(&visitor.caller, username, email, form.site_admin.0).await {
        Ok((_, link)) => Ok(redirect_with(&web, &visitor, &link)),
        Err(error) => {
            let form = NewUser { complaint: Complaint::of(error, &["username", "email"])?, ..form };
            let page = UsersPage::new(&web, &visitor, &PageQuery::default(), form).await?;
            Ok(page::render(StatusCode::UNPROCESSABLE_ENTITY, &page))
        }
    }
}

fn user_id(id: &str) -> Result<UserId, PageError> {
    id.parse().map_err(|_| PageError::not_found("user"))
}

/// `POST /app/admin/users/{user}/suspend`
pub(crate) async fn suspend(
    State(web): State<Web>,
    Path(id): Path<String>,
    VisitorForm(visitor, Nothing {}): VisitorForm<Nothing>,
) -> Result<Response, PageError> {
    let user = web.control_plane.suspend_user(&visitor.caller, user_id(&id)?, true).await?;
    let text = format!("User {} suspended. Their sessions and tokens no longer work.", user.username);
    Ok(Flash::says(text).redirect_to(PATH))
}

/// `POST /app/admin/users/{user}/resume`
pub(crate) async fn resume(
    State(web): State<Web>,
    Path(id): Path<String>,
    VisitorForm(visitor, Nothing {}): VisitorForm<Nothing>,
) -> Result<Response, PageError> {
    let user = web.control_plane.suspend_user(&visitor.caller, user_id(&id)?, false).await?;
    Ok(Flash::says(format!("User {} can log in again.", user.username)).redirect_to(PATH))
}

/// The address that the site admin saw.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(crate) struct SeenEmail {
    email: String,
}

/// `POST /app/admin/users/{user}/verify-email`
pub(crate) async fn verify_email(
    State(web): State<Web>,
    Path(id): Path<String>,
    VisitorForm(visitor, form): VisitorForm<SeenEmail>,
) -> Result<Response, PageError> {
    let user = web.control_plane.verify_email(&visitor.caller, user_id(&id)?, &form.email).await?;
    let text = format!("Email address of {} verified. Invitations to it are theirs.", user.username);
    Ok(Flash::says(text).redirect_to(PATH))
}

/// `POST /app/admin/users/{user}/password-link`
pub(crate) async fn renew_link(
    State(web): State<Web>,
    Path(id): Path<String>,
    VisitorForm(visitor, Nothing {}): VisitorForm<Nothing>,
) -> Result<Response, PageError> {
    let link = web.control_plane.renew_password_link(&visitor.caller, user_id(&id)?).await?;
    Ok(redirect_with(&web, &visitor, &link))
}
