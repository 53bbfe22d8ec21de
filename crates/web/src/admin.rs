//! `/app/admin`: how the site is doing, its organizations and its people. For others than site admins there is no
//! such page.

use askama::Template;
use axum::extract::{Path, Query, State};
use axum::http::StatusCode;
use axum::response::Response;
use jiff::Timestamp;
use serde::Deserialize;
use taco_control_plane::{BucketStatus, PageRequest, PasswordLinkText, SiteStatus};
use taco_domain::id::UserId;
use taco_domain::user::User;

use crate::badge::Badge;
use crate::error::PageError;
use crate::flash::Flash;
use crate::form::{Complaint, Nothing, Ticked, VisitorForm};
use crate::navigation::organization_address;
use crate::page::Layout;
use crate::text::Moment;
use crate::visitor::Visitor;
use crate::{Web, page, password_link};

const PATH: &str = "/app/admin";

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

struct OrganizationRow {
    name: String,
    address: String,
    email: String,
    workspaces: usize,
    created: Moment,
}

/// An organization that cannot be read.
struct DamagedRow {
    name: String,
    object: String,
    why: String,
    since: Moment,
}

struct ServerRow {
    name: String,
    address: Option<String>,
    started: Moment,
    seen: Moment,
    agents: usize,
}

/// A link that was made just now.
struct NewLink {
    username: String,
    address: String,
    expires: Moment,
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

#[derive(Default, Deserialize)]
#[serde(default)]
pub(crate) struct Search {
    search: String,
}

#[derive(Template)]
#[template(path = "admin.html")]
struct AdminPage {
    layout: Layout,
    now: Timestamp,
    version: &'static str,
    system: String,
    location: String,
    status: SiteStatus,
    bucket: Badge,
    bucket_detail: String,
    servers: Vec<ServerRow>,
    engines: Vec<(String, String)>,
    organizations: Vec<OrganizationRow>,
    damaged: Vec<DamagedRow>,
    users: Vec<UserRow>,
    users_total: usize,
    query: String,
    link: Option<NewLink>,
    form: NewUser,
}

/// Status of the bucket, as a badge and a sentence.
fn bucket_in_words(status: &BucketStatus) -> (Badge, String) {
    match status {
        BucketStatus::Answers { after, format, created_at, created_by } => (
            Badge::new("Answers", "✓", "good"),
            format!(
                "It answered within {} ms. It has format {format} and was made on {} by {created_by}.",
                after.as_millis() + 1,
                Moment(*created_at).text()
            ),
        ),
        BucketStatus::Empty => {
            (Badge::new("Empty", "✗", "bad"), "What marks it as taco's is gone: run taco doctor.".to_owned())
        }
        BucketStatus::Silent => (
            Badge::new("Does not answer", "✗", "bad"),
            "The server's log tells why; taco doctor tries everything.".to_owned(),
        ),
    }
}

impl AdminPage {
    async fn new(
        web: &Web,
        visitor: &Visitor,
        query: String,
        link: Option<PasswordLinkText>,
        form: NewUser,
    ) -> Result<Self, PageError> {
        let caller = &visitor.caller;
        let status = web.control_plane.site_status(caller).await?;
        let (bucket, bucket_detail) = bucket_in_words(&status.bucket);
        let first = PageRequest::new(1, PageRequest::LARGEST_SIZE);
        let users = web.control_plane.users(caller, Some(&query), first).await?;
        let organizations = web.control_plane.organizations(caller, None, first).await?;
        let organizations = organizations.items.into_iter().map(|view| OrganizationRow {
            address: organization_address(&view.name),
            email: view.organization.email.to_string(),
            workspaces: view.org.workspace_count(),
            created: Moment(view.organization.created_at),
            name: view.name,
        });
        let servers = status.others.iter().map(|server| ServerRow {
            name: server.server.clone(),
            address: server.address.clone(),
            started: Moment(server.started_at),
            seen: Moment(server.seen_at),
            agents: server.agents,
        });
        let damaged = web.control_plane.unreadable_organizations(caller)?.into_iter().map(|(name, ledger)| {
            DamagedRow { name, object: ledger.object, why: ledger.why, since: Moment(ledger.since) }
        });
        let engines = web.control_plane.presence().engines().into_iter();
        Ok(Self {
            layout: Layout::for_visitor(web, visitor),
            now: web.control_plane.now(),
            version: env!("CARGO_PKG_VERSION"),
            system: format!("{} on {}", std::env::consts::ARCH, std::env::consts::OS),
            location: web.bucket.to_string(),
            bucket,
            bucket_detail,
            servers: servers.collect(),
            engines: engines.map(|(name, all)| (name, all.into_iter().collect::<Vec<_>>().join(", "))).collect(),
            organizations: organizations.collect(),
            damaged: damaged.collect(),
            users_total: users.total,
            users: users.items.into_iter().map(|user| UserRow::of(user, visitor)).collect(),
            query,
            link: link.map(|link| NewLink {
                username: link.username.clone(),
                address: password_link::address(&web.address.as_str().trim_end_matches('/'), &link),
                expires: Moment(link.expires_at),
            }),
            status,
            form,
        })
    }
}

/// `GET /app/admin`
pub(crate) async fn show(
    State(web): State<Web>,
    visitor: Visitor,
    Query(search): Query<Search>,
) -> Result<Response, PageError> {
    let page = AdminPage::new(&web, &visitor, search.search, None, NewUser::default()).await?;
    Ok(page::render(StatusCode::OK, &page))
}

/// `POST /app/admin/users`. The answer is the page itself, for it is the only one that ever shows the link.
pub(crate) async fn create_user(
    State(web): State<Web>,
    VisitorForm(visitor, form): VisitorForm<NewUser>,
) -> Result<Response, PageError> {
    let (username, email) = (form.username.trim(), form.email.trim());
    let page = match web.control_plane.create_user(&visitor.caller, username, email, form.site_admin.0).await {
        Ok((user, link)) => {
            let query = user.username.to_string();
            let page = AdminPage::new(&web, &visitor, query, Some(link), NewUser::default()).await?;
            // The caller looked at the site before the user was made.
            let users = vec![UserRow::of(user, &visitor)];
            return Ok(page::render(StatusCode::CREATED, &AdminPage { users, users_total: 1, ..page }));
        }
        Err(error) => {
            let form = NewUser { complaint: Complaint::of(error, &["username", "email"])?, ..form };
            AdminPage::new(&web, &visitor, String::new(), None, form).await?
        }
    };
    Ok(page::render(StatusCode::UNPROCESSABLE_ENTITY, &page))
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

/// `POST /app/admin/users/{user}/password-link`. The answer is the page itself, as for a new user.
pub(crate) async fn renew_link(
    State(web): State<Web>,
    Path(id): Path<String>,
    VisitorForm(visitor, Nothing {}): VisitorForm<Nothing>,
) -> Result<Response, PageError> {
    let link = web.control_plane.renew_password_link(&visitor.caller, user_id(&id)?).await?;
    let page = AdminPage::new(&web, &visitor, String::new(), Some(link), NewUser::default()).await?;
    Ok(page::render(StatusCode::CREATED, &page))
}
