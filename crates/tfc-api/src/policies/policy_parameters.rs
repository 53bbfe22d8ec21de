//! Parameters of policy sets. Sensitive values go in and never come out.

use serde::Serialize;
use taco_domain::policy_parameter::{PolicyParameter, PolicyParameterPatch};

use crate::document::{Identifier, ResourceObject};
use crate::error::ApiError;
use crate::policy_sets;
use crate::request::{Answer, ApiRequest, no_content};
use crate::resource::Resource;

const KIND: &str = "vars";

#[derive(Serialize)]
#[serde(rename_all = "kebab-case")]
struct Attributes<'a> {
    key: &'a str,
    value: Option<&'a str>,
    category: &'static str,
    sensitive: bool,
}

impl Resource for PolicyParameter {
    const KIND: &'static str = KIND;

    fn object(&self, _: &ApiRequest) -> Result<ResourceObject, ApiError> {
        let attributes = Attributes {
            key: &self.key,
            value: self.shown_value(),
            category: "policy-set",
            sensitive: self.is_sensitive(),
        };
        Ok(ResourceObject::new(KIND, self.id, &attributes)
            .has_one("configurable", Identifier::new(policy_sets::KIND, self.set))
            .link("self", format!("/api/v2/policy-sets/{}/parameters/{}", self.set, self.id)))
    }
}

/// `GET /api/v2/policy-sets/{policy_set}/parameters`
pub(crate) async fn list(request: ApiRequest) -> Answer {
    request.page_of(request.control_plane.policy_parameters(&request.caller, request.id("policy_set")?).await?).await
}

/// `POST /api/v2/policy-sets/{policy_set}/parameters`
pub(crate) async fn create(request: ApiRequest) -> Answer {
    let (set, patch) = (request.id("policy_set")?, request.attributes::<PolicyParameterPatch>(KIND).await?);
    request.created(&request.control_plane.create_policy_parameter(&request.caller, set, patch).await?)
}

/// `GET /api/v2/policy-sets/{policy_set}/parameters/{policy_parameter}`
pub(crate) async fn read(request: ApiRequest) -> Answer {
    let (set, id) = (request.id("policy_set")?, request.id("policy_parameter")?);
    request.one(&request.control_plane.policy_parameter(&request.caller, set, id).await?).await
}

/// `PATCH /api/v2/policy-sets/{policy_set}/parameters/{policy_parameter}`
pub(crate) async fn update(request: ApiRequest) -> Answer {
    let (set, id) = (request.id("policy_set")?, request.id("policy_parameter")?);
    let patch = request.attributes::<PolicyParameterPatch>(KIND).await?;
    request.changed(&request.control_plane.update_policy_parameter(&request.caller, set, id, patch).await?)
}

/// `DELETE /api/v2/policy-sets/{policy_set}/parameters/{policy_parameter}`
pub(crate) async fn delete(request: ApiRequest) -> Answer {
    let (set, id) = (request.id("policy_set")?, request.id("policy_parameter")?);
    request.control_plane.delete_policy_parameter(&request.caller, set, id).await?;
    no_content()
}
