//! Outputs of states. Values of sensitive ones are shown to those who may read the whole state, except among those of a
//! workspace's current state: clients ask for them one by one.

use serde::Serialize;
use serde_json::value::RawValue;
use taco_control_plane::OutputView;

use crate::document::ResourceObject;
use crate::error::ApiError;
use crate::request::{Answer, ApiRequest};
use crate::resource::Resource;

pub(crate) const KIND: &str = "state-version-outputs";

#[derive(Serialize)]
#[serde(rename_all = "kebab-case")]
struct Attributes<'a> {
    name: &'a str,
    sensitive: bool,
    #[serde(rename = "type")]
    type_name: &'a str,
    value: Option<&'a RawValue>,
    detailed_type: Option<&'a RawValue>,
}

impl Resource for OutputView {
    const KIND: &'static str = KIND;

    fn object(&self, _: &ApiRequest) -> Result<ResourceObject, ApiError> {
        let attributes = Attributes {
            name: &self.name,
            sensitive: self.sensitive,
            type_name: self.type_name,
            value: self.value.as_deref(),
            detailed_type: self.detailed_type.as_deref(),
        };
        Ok(ResourceObject::new(KIND, self.id, &attributes)
            .link("self", format!("/api/v2/state-version-outputs/{}", self.id)))
    }
}

/// `GET /api/v2/state-versions/{state_version}/outputs`
pub(crate) async fn list(request: ApiRequest) -> Answer {
    request.page_of(request.control_plane.outputs(&request.caller, request.id("state_version")?).await?).await
}

/// `GET /api/v2/workspaces/{workspace}/current-state-version-outputs`
pub(crate) async fn current(request: ApiRequest) -> Answer {
    // The CLIs ask for no further page.
    request.all(&request.control_plane.current_outputs(&request.caller, &request.workspace()?).await?).await
}

/// `GET /api/v2/state-version-outputs/{output}`
pub(crate) async fn read(request: ApiRequest) -> Answer {
    request.one(&request.control_plane.output(&request.caller, request.id("output")?).await?).await
}
