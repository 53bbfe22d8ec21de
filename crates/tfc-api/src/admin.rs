//! Requests of site admins. Go-tfe's own test suite wants a feature set and subscribes organizations to it: taco sells
//! nothing, so every organization has everything, and subscribing changes nothing.

use axum::response::IntoResponse;
use taco_control_plane::Listed;

use crate::document::{Document, UnreadableOrganization};
use crate::request::{Answer, ApiRequest, no_content};
use crate::subscriptions;

/// `GET /api/v2/admin/organizations`: all of them. `meta` names those that cannot be read, and why.
pub(crate) async fn list_organizations(request: ApiRequest) -> Answer {
    let ApiRequest { control_plane, caller, query, .. } = &request;
    control_plane.require_site_admin(caller)?;
    let listed = control_plane.organizations(caller, query.get("q"), query.page()?).await?;
    let unreadable = control_plane.unreadable_organizations(caller)?.into_iter();
    let unreadable = unreadable.map(|(name, ledger)| UnreadableOrganization {
        id: ledger.organization.map(|id| id.to_string()).unwrap_or_default(),
        name,
        object: ledger.object,
        reason: ledger.why,
        since: ledger.since,
    });
    Ok(request.page_document(&listed)?.without(unreadable.collect()).into_response())
}

/// `GET /api/v2/admin/feature-sets`
pub(crate) async fn feature_sets(request: ApiRequest) -> Answer {
    request.control_plane.require_site_admin(&request.caller)?;
    Ok(Document::page(Listed::from_all([subscriptions::everything()], request.query.page()?)).into_response())
}

/// `POST /api/v2/admin/organizations/{organization}/subscription`
pub(crate) async fn subscribe(request: ApiRequest) -> Answer {
    request.control_plane.require_site_admin(&request.caller)?;
    request.control_plane.organization(&request.caller, request.organization()?).await?;
    no_content()
}
