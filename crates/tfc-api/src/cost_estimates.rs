//! What a plan will cost. There are no prices here: an estimate counts the resources that it knows no price of.

use axum::extract::State;
use jiff::Timestamp;
use serde::Serialize;
use taco_control_plane::{Caller, ControlPlane};
use taco_domain::cost_estimate::{CostEstimate, CostEstimateProgress};
use taco_domain::id::CostEstimateId;

use crate::document::{Document, Identifier, Resource};
use crate::error::ApiError;
use crate::path::InPath;

const KIND: &str = "cost-estimates";

#[derive(Serialize)]
#[serde(rename_all = "kebab-case")]
struct Attributes {
    status: &'static str,
    status_timestamps: StatusTimestamps,
    resources_count: u64,
    matched_resources_count: u64,
    unmatched_resources_count: u64,
    /// Clients read numbers out of these texts.
    prior_monthly_cost: &'static str,
    proposed_monthly_cost: &'static str,
    delta_monthly_cost: &'static str,
    error_message: Option<&'static str>,
}

#[derive(Serialize)]
#[serde(rename_all = "kebab-case")]
struct StatusTimestamps {
    #[serde(skip_serializing_if = "Option::is_none")]
    finished_at: Option<Timestamp>,
    #[serde(skip_serializing_if = "Option::is_none")]
    canceled_at: Option<Timestamp>,
}

pub(crate) fn identifier(estimate: &CostEstimate) -> Identifier {
    Identifier::new(KIND, estimate.id)
}

pub(crate) fn resource(estimate: &CostEstimate) -> Resource {
    let ended = |progress| estimate.ended_at.filter(|_| estimate.progress == progress);
    let attributes = Attributes {
        status: match estimate.progress {
            CostEstimateProgress::Pending => "pending",
            CostEstimateProgress::Finished => "finished",
            CostEstimateProgress::Canceled => "canceled",
        },
        status_timestamps: StatusTimestamps {
            finished_at: ended(CostEstimateProgress::Finished),
            canceled_at: ended(CostEstimateProgress::Canceled),
        },
        resources_count: estimate.resources,
        matched_resources_count: 0,
        unmatched_resources_count: estimate.resources,
        prior_monthly_cost: "0.0",
        proposed_monthly_cost: "0.0",
        delta_monthly_cost: "0.0",
        error_message: None,
    };
    Resource::new(KIND, estimate.id, &attributes).link("self", format!("/api/v2/cost-estimates/{}", estimate.id))
}

/// `GET /api/v2/cost-estimates/{cost_estimate}`
pub(crate) async fn read(
    State(control_plane): State<ControlPlane>,
    caller: Caller,
    InPath(estimate): InPath<CostEstimateId>,
) -> Result<Document, ApiError> {
    let estimate = control_plane.cost_estimate(&caller, estimate).await?;
    Ok(Document::one(resource(&estimate)))
}
