//! What site admins may ask. Go-tfe's own test suite wants a feature set and subscribes organizations to it: taco sells
//! nothing, so every organization has everything, and subscribing changes nothing.

use axum::extract::State;
use axum::http::StatusCode;
use taco_control_plane::{Caller, ControlPlane, Listed};
use taco_domain::permission::{Action, Resource as Thing};

use crate::document::{Document, UnreadableOrganization};
use crate::error::ApiError;
use crate::path::InPath;
use crate::query::Query;
use crate::{organizations, subscriptions};

/// `GET /api/v2/admin/organizations`: all of them. `meta` names those that cannot be read, and why.
pub(crate) async fn list_organizations(
    State(control_plane): State<ControlPlane>,
    caller: Caller,
    query: Query,
) -> Result<Document, ApiError> {
    caller.require(Action::ManageSite, Thing::Site, "organizations")?;
    let listed = control_plane.organizations(&caller, query.get("q"), query.page()?).await?;
    let unreadable = control_plane.unreadable_organizations(&caller)?.into_iter();
    let unreadable = unreadable.map(|(name, ledger)| UnreadableOrganization {
        id: ledger.organization.map(|id| id.to_string()).unwrap_or_default(),
        name,
        object: ledger.object,
        reason: ledger.why,
        since: ledger.since,
    });
    let page = Document::page(listed.map(|view| organizations::resource(&caller, &view)));
    Ok(page.without(unreadable.collect()))
}

/// `GET /api/v2/admin/feature-sets`
pub(crate) async fn feature_sets(caller: Caller, query: Query) -> Result<Document, ApiError> {
    caller.require(Action::ManageSite, Thing::Site, "feature sets")?;
    Ok(Document::page(Listed::from_all([subscriptions::everything()], query.page()?)))
}

/// `POST /api/v2/admin/organizations/{organization}/subscription`
pub(crate) async fn subscribe(
    State(control_plane): State<ControlPlane>,
    caller: Caller,
    InPath(organization): InPath<String>,
) -> Result<StatusCode, ApiError> {
    caller.require(Action::ManageSite, Thing::Site, "organization")?;
    control_plane.organization(&caller, &organization).await?;
    Ok(StatusCode::NO_CONTENT)
}
