//! Run triggers: an apply in one workspace, the source, starts a run in another.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use taco_control_plane::{RunTriggerView, TriggerDirection};
use taco_domain::attribute::shown;

use crate::document::{Document, Identifier, ResourceObject};
use crate::error::ApiError;
use crate::request::{Answer, ApiRequest, no_content};
use crate::resource::Resource;
use crate::workspaces;

#[derive(Serialize)]
#[serde(rename_all = "kebab-case")]
struct Attributes<'a> {
    created_at: Timestamp,
    workspace_name: &'a str,
    sourceable_name: &'a str,
    taco_only_when_outputs_changed: bool,
}

/// The attributes of a request that makes a trigger.
#[derive(Default, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
struct NewTrigger {
    taco_only_when_outputs_changed: bool,
}

impl Resource for RunTriggerView {
    const KIND: &'static str = "run-triggers";
    const INCLUDES: &'static [&'static str] = &["workspace", "sourceable"];

    fn object(&self, _: &ApiRequest) -> Result<ResourceObject, ApiError> {
        let attributes = Attributes {
            created_at: self.trigger.created_at,
            workspace_name: self.workspace.name.as_str(),
            sourceable_name: self.source.name.as_str(),
            taco_only_when_outputs_changed: self.trigger.only_when_outputs_changed,
        };
        Ok(ResourceObject::new(Self::KIND, self.trigger.id, &attributes)
            .has_one("workspace", Identifier::new(workspaces::KIND, self.workspace.id))
            .has_one("sourceable", Identifier::new(workspaces::KIND, self.source.id))
            .link("self", format!("/api/v2/run-triggers/{}", self.trigger.id)))
    }

    async fn include(&self, name: &str, request: &ApiRequest, document: &mut Document) -> Result<(), ApiError> {
        let caller = &request.caller;
        let beside = if name == "workspace" { self.readable_workspace(caller) } else { self.readable_source(caller) };
        document.include_some(beside.as_ref(), request)
    }
}

/// `GET /api/v2/workspaces/{workspace}/run-triggers`
pub(crate) async fn list(request: ApiRequest) -> Answer {
    let name = "filter[run-trigger][type]";
    let direction = match request.query.get(name) {
        None | Some("inbound") => TriggerDirection::Inbound,
        Some("outbound") => TriggerDirection::Outbound,
        Some(other) => {
            let detail = format!("{name} must be inbound or outbound; it is {}", shown(other));
            return Err(ApiError::parameter(name, detail));
        }
    };
    let (workspace, page) = (request.workspace()?, request.query.page()?);
    request.page(request.control_plane.run_triggers(&request.caller, &workspace, direction, page).await?).await
}

/// `POST /api/v2/workspaces/{workspace}/run-triggers`
pub(crate) async fn create(request: ApiRequest) -> Answer {
    let workspace = request.workspace()?;
    let sent = request.resource::<NewTrigger>(RunTriggerView::KIND).await?;
    let source = sent.to_one("sourceable")?.flatten().ok_or_else(|| {
        ApiError::invalid("/data/relationships/sourceable", "The workspace whose applies start runs must be given")
    })?;
    let looks = sent.attributes.taco_only_when_outputs_changed;
    request.created(&request.control_plane.create_run_trigger(&request.caller, &workspace, source, looks).await?)
}

/// `GET /api/v2/run-triggers/{run_trigger}`
pub(crate) async fn read(request: ApiRequest) -> Answer {
    request.one(&request.control_plane.run_trigger(&request.caller, request.id("run_trigger")?).await?).await
}

/// `DELETE /api/v2/run-triggers/{run_trigger}`
pub(crate) async fn delete(request: ApiRequest) -> Answer {
    request.control_plane.delete_run_trigger(&request.caller, request.id("run_trigger")?).await?;
    no_content()
}
