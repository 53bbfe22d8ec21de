//! Cost estimates of plans. There are no prices here: an estimate counts the resources that it knows no price of.

use jiff::Timestamp;
use serde::Serialize;
use taco_domain::cost_estimate::{CostEstimate, CostEstimateProgress};

use crate::document::{Identifier, ResourceObject};
use crate::error::ApiError;
use crate::request::{Answer, ApiRequest};
use crate::resource::Resource;

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

impl Resource for CostEstimate {
    const KIND: &'static str = KIND;

    fn object(&self, _: &ApiRequest) -> Result<ResourceObject, ApiError> {
        let ended = |progress| self.ended_at.filter(|_| self.progress == progress);
        let attributes = Attributes {
            status: match self.progress {
                CostEstimateProgress::Pending => "pending",
                CostEstimateProgress::Finished => "finished",
                CostEstimateProgress::Canceled => "canceled",
            },
            status_timestamps: StatusTimestamps {
                finished_at: ended(CostEstimateProgress::Finished),
                canceled_at: ended(CostEstimateProgress::Canceled),
            },
            resources_count: self.resources,
            matched_resources_count: 0,
            unmatched_resources_count: self.resources,
            prior_monthly_cost: "0.0",
            proposed_monthly_cost: "0.0",
            delta_monthly_cost: "0.0",
            error_message: None,
        };
        Ok(ResourceObject::new(KIND, self.id, &attributes).link("self", format!("/api/v2/cost-estimates/{}", self.id)))
    }
}

/// `GET /api/v2/cost-estimates/{cost_estimate}`
pub(crate) async fn read(request: ApiRequest) -> Answer {
    request.one(&request.control_plane.cost_estimate(&request.caller, request.id("cost_estimate")?).await?).await
}
