//! Audit trails. Of all that clients ask for, this alone is no JSON:API in Terraform Cloud.

use axum::Json;
use axum::http::StatusCode;
use axum::response::IntoResponse;
use jiff::Timestamp;
use serde::Serialize;
use taco_control_plane::{AuditEvent, AuditTrail, Listed, PageRequest};
use taco_domain::attribute::shown;
use taco_domain::id::OrganizationId;
use taco_domain::permission::Actor;

use crate::error::ApiError;
use crate::query::Query;
use crate::request::{Answer, ApiRequest};

#[derive(Serialize)]
struct Trail {
    data: Vec<Event>,
    pagination: Pagination,
}

#[derive(Serialize)]
struct Event {
    id: String,
    version: &'static str,
    #[serde(rename = "type")]
    kind: &'static str,
    timestamp: Timestamp,
    auth: Auth,
    request: Request,
    resource: Thing,
}

#[derive(Serialize)]
struct Auth {
    accessor_id: String,
    description: String,
    #[serde(rename = "type")]
    kind: &'static str,
    impersonator_id: Option<String>,
    organization_id: OrganizationId,
}

#[derive(Serialize)]
struct Request {
    id: Option<String>,
}

#[derive(Serialize)]
struct Thing {
    id: Option<String>,
    #[serde(rename = "type")]
    kind: String,
    action: String,
    meta: Meta,
}

#[derive(Serialize)]
struct Meta {
    commit: u64,
}

/// Pagination as elsewhere, but spelled with low lines.
#[derive(Serialize)]
struct Pagination {
    current_page: usize,
    prev_page: Option<usize>,
    next_page: Option<usize>,
    total_pages: usize,
    total_count: usize,
}

impl Pagination {
    fn of<T>(listed: &Listed<T>) -> Self {
        let (current_page, total_pages) = (listed.page.number(), listed.total_pages());
        Self {
            current_page,
            prev_page: (current_page > 1).then(|| (current_page - 1).min(total_pages)),
            next_page: (current_page < total_pages).then_some(current_page + 1),
            total_pages,
            total_count: listed.total,
        }
    }
}

fn event(event: AuditEvent, organization_id: OrganizationId) -> Event {
    let AuditEvent { id, at, actor, actor_name, by_taco, request, action, thing, commit } = event;
    let (noun, verb) = action.split_once('.').unwrap_or(("", &action));
    let (kind, id_of_thing) = thing.map_or_else(|| (noun.to_owned(), None), |(kind, id)| (kind, Some(id)));
    // An action on something else than its name says keeps the whole name: `phase.take` is done to a run.
    let done = if kind == noun { verb } else { &action };
    Event {
        id,
        version: "0",
        kind: "Resource",
        timestamp: at,
        auth: Auth {
            accessor_id: actor,
            description: actor_name,
            kind: if by_taco { "System" } else { "Client" },
            impersonator_id: None,
            organization_id,
        },
        request: Request { id: request },
        resource: Thing {
            id: id_of_thing,
            kind: kind.replace('-', "_"),
            action: done.replace('-', "_"),
            meta: Meta { commit },
        },
    }
}

fn trail(AuditTrail { organization, events }: AuditTrail) -> Json<Trail> {
    let pagination = Pagination::of(&events);
    Json(Trail { data: events.items.into_iter().map(|item| event(item, organization)).collect(), pagination })
}

fn since(query: &Query) -> Result<Option<Timestamp>, ApiError> {
    let parse = |text: &str| {
        let detail = || format!("since must be a date as 2026-01-31T17:52:46.000Z; it is {}", shown(text));
        text.parse().map_err(|_| ApiError::parameter("since", detail()))
    };
    query.get("since").map(parse).transpose()
}

/// The page that a query asks for. The default size is the largest, as in Terraform Cloud.
fn page(query: &Query) -> Result<PageRequest, ApiError> {
    let page = query.page()?;
    let size = if query.get("page[size]").is_some() { page.size() } else { PageRequest::LARGEST_SIZE };
    Ok(PageRequest::new(page.number(), size))
}

/// `GET /api/v2/organization/audit-trail`, where the token says which organization it is.
pub(crate) async fn of_token(request: ApiRequest) -> Answer {
    if !matches!(request.caller.actor, Actor::Organization(_) | Actor::AuditTrail(_)) {
        let detail = "An organization's token, or one for its audit trail, says whose trail it is. With any other token \
                      ask for /api/v2/organizations/NAME/audit-trail.";
        return Err(ApiError::new(StatusCode::NOT_FOUND, "not found", detail));
    }
    read(&request, None).await
}

/// `GET /api/v2/organizations/{organization}/audit-trail`
pub(crate) async fn of_organization(request: ApiRequest) -> Answer {
    read(&request, Some(request.organization()?)).await
}

async fn read(request: &ApiRequest, organization: Option<&str>) -> Answer {
    let (since, page) = (since(&request.query)?, page(&request.query)?);
    Ok(trail(request.control_plane.audit_trail(&request.caller, organization, since, page).await?).into_response())
}
