//! `/app/admin`: how the site is doing, its servers and its organizations. For others than site admins there is no such
//! page.

pub(crate) mod admin_users;

use askama::Template;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use jiff::Timestamp;
use taco_control_plane::{BucketStatus, PageRequest, SiteStatus};

use crate::badge::Badge;
use crate::error::PageError;
use crate::navigation::organization_address;
use crate::page::Layout;
use crate::pictures::pages::SitePictures;
use crate::rail::Rail;
use crate::text::Moment;
use crate::visitor::Visitor;
use crate::{Web, page};

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

#[derive(Template)]
#[template(path = "admin.html")]
struct AdminPage {
    layout: Layout,
    rail: Rail,
    now: Timestamp,
    version: &'static str,
    system: String,
    location: String,
    status: SiteStatus,
    pictures: SitePictures,
    bucket: Badge,
    bucket_detail: String,
    servers: Vec<ServerRow>,
    engines: Vec<(String, String)>,
    organizations: Vec<OrganizationRow>,
    damaged: Vec<DamagedRow>,
}

/// Status of the bucket, as a badge and a sentence.
fn bucket_in_words(status: &BucketStatus) -> (Badge, String) {
    match status {
        BucketStatus::Answers { after, format, created_at, created_by } => (
            Badge::new("Healthy", "✓", "good"),
            format!(
                "Answered in {} ms. Format {format}, created on {} by {created_by}.",
                after.as_millis() + 1,
                Moment(*created_at).text()
            ),
        ),
        BucketStatus::Empty => (
            Badge::new("Empty", "✗", "bad"),
            "The object that marks this bucket as taco's is missing. Run taco doctor.".to_owned(),
        ),
        BucketStatus::Silent => (
            Badge::new("Unreachable", "✗", "bad"),
            "No answer from the bucket. See the server log, or run taco doctor.".to_owned(),
        ),
    }
}

impl AdminPage {
    async fn new(web: &Web, visitor: &Visitor) -> Result<Self, PageError> {
        let caller = &visitor.caller;
        let status = web.control_plane.site_status(caller).await?;
        let (bucket, bucket_detail) = bucket_in_words(&status.bucket);
        let first = PageRequest::new(1, PageRequest::LARGEST_SIZE);
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
            rail: Rail::of_site(""),
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
            pictures: SitePictures::of(web, &status),
            status,
        })
    }
}

/// `GET /app/admin`
pub(crate) async fn show(State(web): State<Web>, visitor: Visitor) -> Result<Response, PageError> {
    Ok(page::render(StatusCode::OK, &AdminPage::new(&web, &visitor).await?))
}
