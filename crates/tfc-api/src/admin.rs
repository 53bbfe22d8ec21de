//! What site admins may ask. Go-tfe's own test suite wants a feature set and subscribes organizations to it: taco sells
//! nothing, so every organization has everything, and subscribing changes nothing.

use axum::extract::State;
use axum::http::StatusCode;
use taco_control_plane::{Caller, ControlPlane, Listed};
use taco_domain::permission::{Action, Resource as Thing};

use crate::document::Document;
use crate::error::ApiError;
use crate::path::InPath;
use crate::query::Query;
use crate::{organizations, subscriptions};

/// `GET /api/v2/admin/organizations`: all of them.
pub(crate) async fn list_organizations(
    State(control_plane): State<ControlPlane>,
    caller: Caller,
    query: Query,
) -> Result<Document, ApiError> {
    caller.require(Action::ManageSite, Thing::Site, "organizations")?;
    let listed = control_plane.organizations(&caller, query.get("q"), query.page()?).await?;
    Ok(Document::page(listed.map(|view| organizations::resource(&caller, &view))))
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
