//! Subscriptions: taco sells nothing, so that all of them have everything for nothing.

use axum::response::IntoResponse;
use jiff::Timestamp;
use serde::Serialize;

use crate::document::{Document, Identifier, ResourceObject};
use crate::organizations;
use crate::request::{Answer, ApiRequest};

#[derive(Serialize)]
#[serde(rename_all = "kebab-case")]
struct FeatureSet {
    name: &'static str,
    cost: u32,
    is_current: bool,
    is_free_tier: bool,
}

const FEATURE_SETS: &str = "feature-sets";
const EVERYTHING: &str = "fs-everything";

/// The one feature set that there is.
pub(crate) fn everything() -> ResourceObject {
    let attributes = FeatureSet { name: "Everything", cost: 0, is_current: true, is_free_tier: true };
    ResourceObject::new(FEATURE_SETS, EVERYTHING, &attributes)
}

#[derive(Serialize)]
#[serde(rename_all = "kebab-case")]
struct Attributes {
    start_at: Timestamp,
    end_at: Option<Timestamp>,
    is_active: bool,
    is_public_free_tier: bool,
    is_self_serve_trial: bool,
    /// No limits.
    runs_ceiling: Option<u32>,
    agents_ceiling: Option<u32>,
    contract_start_at: Option<Timestamp>,
    contract_user_limit: Option<u32>,
    contract_apply_limit: Option<u32>,
}

/// `GET /api/v2/organizations/{organization}/subscription`
pub(crate) async fn read(request: ApiRequest) -> Answer {
    let view = request.control_plane.organization(&request.caller, request.organization()?).await?;
    let attributes = Attributes {
        start_at: view.organization.created_at,
        end_at: None,
        is_active: true,
        is_public_free_tier: true,
        is_self_serve_trial: false,
        runs_ceiling: None,
        agents_ceiling: None,
        contract_start_at: None,
        contract_user_limit: None,
        contract_apply_limit: None,
    };
    let object = ResourceObject::new("subscriptions", view.organization.id, &attributes)
        .has_one("organization", organizations::identifier(&view.name))
        .has_optional("billing-account", None)
        .has_one("feature-set", Identifier::new(FEATURE_SETS, EVERYTHING))
        .link("self", format!("/api/v2/organizations/{}/subscription", view.name));
    Ok(Document::one(object).including([everything()]).into_response())
}
