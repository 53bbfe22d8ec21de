//! Walks: plans, applies or destroys of many units, in the order of the graph.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use taco_control_plane::{NewWalk, WalkNodeView, WalkView};
use taco_domain::id::{RunId, WorkspaceId};
use taco_domain::walks::walk::{OnFail, WalkApproval};
use taco_domain::walks::words::{WalkKind, WalkNodeState, WalkResult, WalkState};

use crate::document::ResourceObject;
use crate::error::ApiError;
use crate::request::{Answer, ApiRequest};
use crate::resource::Resource;
use crate::users;

pub(crate) const KIND: &str = "walks";

#[derive(Serialize)]
#[serde(rename_all = "kebab-case")]
struct Attributes<'a> {
    kind: WalkKind,
    state: WalkState,
    selection: &'a str,
    approval: WalkApproval,
    on_fail: OnFail,
    parallel: u32,
    attempt: u32,
    created_at: Timestamp,
    created_by_name: String,
    approved_by_name: Option<String>,
    canceled_by_name: Option<String>,
    ended_at: Option<Timestamp>,
    /// Number of nodes by state.
    counts: BTreeMap<&'static str, usize>,
}

impl Resource for WalkView {
    const KIND: &'static str = KIND;

    fn object(&self, request: &ApiRequest) -> Result<ResourceObject, ApiError> {
        let walk = &self.walk;
        let name = |decision: &taco_domain::walks::walk::Decision| self.name_of(&decision.by);
        let mut counts = BTreeMap::new();
        for view in self.nodes(&request.caller) {
            *counts.entry(view.node.state.word()).or_insert(0) += 1;
        }
        let attributes = Attributes {
            kind: walk.kind,
            state: walk.state,
            selection: self.selection(&request.caller),
            approval: walk.policy.approval,
            on_fail: walk.policy.on_fail,
            parallel: walk.policy.parallel,
            attempt: walk.attempt,
            created_at: walk.created_at,
            created_by_name: self.name_of(&walk.created_by),
            approved_by_name: walk.approved.as_ref().map(name),
            canceled_by_name: walk.canceled.as_ref().map(name),
            ended_at: walk.ended_at,
            counts,
        };
        Ok(ResourceObject::new(KIND, walk.id, &attributes)
            .has_optional("created-by", users::user(&walk.created_by))
            .link("self", format!("/api/v2/walks/{}", walk.id)))
    }
}

#[derive(Serialize)]
#[serde(rename_all = "kebab-case")]
struct NodeAttributes<'a> {
    unit: &'a str,
    /// Left out where the caller may not see the unit.
    #[serde(skip_serializing_if = "Option::is_none")]
    workspace_id: Option<WorkspaceId>,
    position: u32,
    needs: &'a [WorkspaceId],
    state: WalkNodeState,
    result: Option<WalkResult>,
    reason: Option<&'a str>,
    may_change: bool,
    runs: &'a [RunId],
    started_at: Option<Timestamp>,
    ended_at: Option<Timestamp>,
}

impl Resource for WalkNodeView {
    const KIND: &'static str = "walk-nodes";

    fn object(&self, _: &ApiRequest) -> Result<ResourceObject, ApiError> {
        let node = &self.node;
        let attributes = NodeAttributes {
            unit: &node.name,
            workspace_id: self.is_seen.then_some(node.workspace),
            position: node.position,
            needs: &node.needs,
            state: node.state,
            result: node.result,
            reason: node.reason.as_deref(),
            may_change: node.may_change,
            runs: &node.runs,
            started_at: node.started_at,
            ended_at: node.ended_at,
        };
        Ok(ResourceObject::new(Self::KIND, node.id, &attributes))
    }
}

/// `GET /api/v2/organizations/{organization}/walks`
pub(crate) async fn list(request: ApiRequest) -> Answer {
    let (organization, page) = (request.organization()?, request.query.page()?);
    request.page(request.control_plane.walks(&request.caller, organization, page).await?).await
}

/// `POST /api/v2/organizations/{organization}/walks`
pub(crate) async fn create(request: ApiRequest) -> Answer {
    let new: NewWalk = request.attributes(KIND).await?;
    let organization = request.organization()?;
    request.created(&request.control_plane.create_walk(&request.caller, organization, new).await?)
}

/// `GET /api/v2/walks/{walk}`
pub(crate) async fn read(request: ApiRequest) -> Answer {
    request.one(&request.control_plane.walk(&request.caller, request.id("walk")?).await?).await
}

/// `GET /api/v2/walks/{walk}/nodes`
pub(crate) async fn nodes(request: ApiRequest) -> Answer {
    let walk = request.control_plane.walk(&request.caller, request.id("walk")?).await?;
    request.all(&walk.nodes(&request.caller)).await
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Approval {
    /// Names of units; all that wait, if there are none.
    units: Vec<String>,
}

/// `POST /api/v2/walks/{walk}/actions/approve`
pub(crate) async fn approve(request: ApiRequest) -> Answer {
    let walk = request.id("walk")?;
    let Approval { units } = request.body().await?.action()?;
    request.changed(&request.control_plane.approve_walk(&request.caller, walk, units).await?)
}

/// `POST /api/v2/walks/{walk}/actions/resume`
pub(crate) async fn resume(request: ApiRequest) -> Answer {
    request.changed(&request.control_plane.resume_walk(&request.caller, request.id("walk")?).await?)
}

/// `POST /api/v2/walks/{walk}/actions/cancel`
pub(crate) async fn cancel(request: ApiRequest) -> Answer {
    request.changed(&request.control_plane.cancel_walk(&request.caller, request.id("walk")?).await?)
}
