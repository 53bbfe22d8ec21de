//! Policies that are managed by themselves, and their code.

pub(crate) mod policy_evaluations;
pub(crate) mod policy_parameters;
pub(crate) mod policy_set_versions;
pub(crate) mod policy_sets;
pub(crate) mod policy_stages;

use axum::body::to_bytes;
use axum::http::header::{CONTENT_TYPE, HeaderValue};
use axum::response::IntoResponse;
use jiff::Timestamp;
use serde::Serialize;
use taco_control_plane::{PolicyFilter, PolicyView};
use taco_domain::policy::PolicyPatch;
use taco_domain::policy_words::{EnforcementLevel, PolicyKind};

use crate::body::broken_off;
use crate::document::ResourceObject;
use crate::error::ApiError;
use crate::organizations;
use crate::request::{Answer, ApiRequest, no_content};
use crate::resource::Resource;

pub(crate) const KIND: &str = "policies";
/// Maximum size of the code of a policy, as Terraform Cloud has it.
const MAX_CODE_BYTES: usize = 10 * 1024 * 1024;

#[derive(Serialize)]
#[serde(rename_all = "kebab-case")]
struct Attributes<'a> {
    name: &'a str,
    kind: PolicyKind,
    query: Option<&'a str>,
    description: &'a str,
    enforce: Vec<Enforce>,
    enforcement_level: EnforcementLevel,
    policy_set_count: usize,
    updated_at: Timestamp,
}

/// How strict a policy was in an older spelling; clients know it of policies that have code.
#[derive(Serialize)]
struct Enforce {
    path: String,
    mode: EnforcementLevel,
}

impl Resource for PolicyView {
    const KIND: &'static str = KIND;

    fn object(&self, _: &ApiRequest) -> Result<ResourceObject, ApiError> {
        let policy = &self.policy;
        let enforce = policy.code.as_ref().map(|_| Enforce { path: policy.file_name(), mode: policy.level });
        let attributes = Attributes {
            name: policy.name.as_str(),
            kind: policy.kind,
            query: policy.query.as_deref(),
            description: &policy.description,
            enforce: enforce.into_iter().collect(),
            enforcement_level: policy.level,
            policy_set_count: self.set_count(),
            updated_at: policy.updated_at,
        };
        let address = format!("/api/v2/policies/{}", policy.id);
        let mut object = ResourceObject::new(KIND, policy.id, &attributes)
            .has_one("organization", organizations::identifier(self.org.entry().name.as_str()))
            .link("self", address.clone())
            .link("upload", format!("{address}/upload"));
        if policy.code.is_some() {
            object = object.link("download", format!("{address}/download"));
        }
        Ok(object)
    }
}

/// Policies, or policy sets, that a query asks for.
pub(crate) fn filter(request: &ApiRequest) -> Result<PolicyFilter, ApiError> {
    let kind = request.query.get("filter[kind]").filter(|kind| !kind.is_empty());
    let kind = kind.map(str::parse::<PolicyKind>).transpose();
    let kind = kind.map_err(|error| ApiError::invalid("filter[kind]", error.detail))?;
    Ok(PolicyFilter { search: request.query.text("search[name]"), kind })
}

/// `GET /api/v2/organizations/{organization}/policies`
pub(crate) async fn list(request: ApiRequest) -> Answer {
    let (organization, filter, page) = (request.organization()?, filter(&request)?, request.query.page()?);
    let listed = request.control_plane.policies(&request.caller, organization, &filter, page).await?;
    request.page(listed).await
}

/// `POST /api/v2/organizations/{organization}/policies`
pub(crate) async fn create(request: ApiRequest) -> Answer {
    let patch = request.attributes::<PolicyPatch>(KIND).await?;
    request.created(&request.control_plane.create_policy(&request.caller, request.organization()?, patch).await?)
}

/// `GET /api/v2/policies/{policy}`
pub(crate) async fn read(request: ApiRequest) -> Answer {
    request.one(&request.control_plane.policy(&request.caller, request.id("policy")?).await?).await
}

/// `PATCH /api/v2/policies/{policy}`
pub(crate) async fn update(request: ApiRequest) -> Answer {
    let (id, patch) = (request.id("policy")?, request.attributes::<PolicyPatch>(KIND).await?);
    request.changed(&request.control_plane.update_policy(&request.caller, id, patch).await?)
}

/// `DELETE /api/v2/policies/{policy}`
pub(crate) async fn delete(request: ApiRequest) -> Answer {
    request.control_plane.delete_policy(&request.caller, request.id("policy")?).await?;
    no_content()
}

/// `PUT /api/v2/policies/{policy}/upload`
pub(crate) async fn upload(request: ApiRequest) -> Answer {
    let id = request.id("policy")?;
    let code = to_bytes(request.take_body(), MAX_CODE_BYTES).await;
    let code = code.map_err(|error| broken_off(&error, MAX_CODE_BYTES))?;
    request.changed(&request.control_plane.upload_policy(&request.caller, id, code).await?)
}

/// `GET /api/v2/policies/{policy}/download`
pub(crate) async fn download(request: ApiRequest) -> Answer {
    let code = request.control_plane.policy_code(&request.caller, request.id("policy")?).await?;
    Ok(([(CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"))], code).into_response())
}
