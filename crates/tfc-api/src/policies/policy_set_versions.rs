//! Versions of policy sets: announced here, and sent to a signed address.

use std::collections::BTreeMap;

use axum::extract::{Request, State};
use axum::http::StatusCode;
use jiff::Timestamp;
use serde::Serialize;
use taco_control_plane::{ControlPlane, PolicySetVersionView, SignedUrlPurpose};
use taco_domain::policy_set_version::PolicySetVersionStatus;

use crate::document::{Document, Identifier, ResourceObject};
use crate::error::ApiError;
use crate::policy_sets;
use crate::request::{Answer, ApiRequest};
use crate::resource::Resource;
use crate::signed_url::{Signed, body_of, check, signed};

pub(crate) const KIND: &str = "policy-set-versions";

#[derive(Serialize)]
#[serde(rename_all = "kebab-case")]
struct Attributes<'a> {
    source: &'static str,
    status: &'static str,
    status_timestamps: BTreeMap<&'static str, Timestamp>,
    error: Option<&'a str>,
    error_message: Option<&'a str>,
    ingress_attributes: Option<()>,
    created_at: Timestamp,
    updated_at: Timestamp,
}

impl Resource for PolicySetVersionView {
    const KIND: &'static str = KIND;

    fn object(&self, _: &ApiRequest) -> Result<ResourceObject, ApiError> {
        let version = &self.version;
        let mut timestamps = BTreeMap::from([("pending-at", version.created_at)]);
        match version.status {
            PolicySetVersionStatus::Pending => {}
            PolicySetVersionStatus::Ready => drop(timestamps.insert("ready-at", version.updated_at)),
            PolicySetVersionStatus::Errored => drop(timestamps.insert("errored-at", version.updated_at)),
        }
        let error = version.error.as_deref();
        let attributes = Attributes {
            source: "tfe-api",
            status: version.status.as_str(),
            status_timestamps: timestamps,
            error: error.map(|_| "invalid_policy_set"),
            error_message: error,
            ingress_attributes: None,
            created_at: version.created_at,
            updated_at: version.updated_at,
        };
        Ok(ResourceObject::new(KIND, version.id, &attributes)
            .has_one("policy-set", Identifier::new(policy_sets::KIND, version.set))
            .link("self", format!("/api/v2/policy-set-versions/{}", version.id)))
    }
}

/// The version with the address to which its archive is sent, as long as that can help.
fn with_upload(request: &ApiRequest, view: &PolicySetVersionView) -> Result<ResourceObject, ApiError> {
    let object = view.object(request)?;
    Ok(match view.version.status {
        PolicySetVersionStatus::Ready => object,
        _ => object.link("upload", signed(request, SignedUrlPurpose::UploadPolicySet, view.version.id)),
    })
}

/// `POST /api/v2/policy-sets/{policy_set}/versions`
pub(crate) async fn create(request: ApiRequest) -> Answer {
    let set = request.id("policy_set")?;
    let view = request.control_plane.create_policy_set_version(&request.caller, set).await?;
    use axum::response::IntoResponse as _;
    Ok((StatusCode::CREATED, Document::one(with_upload(&request, &view)?)).into_response())
}

/// `GET /api/v2/policy-set-versions/{policy_set_version}`
pub(crate) async fn read(request: ApiRequest) -> Answer {
    let view = request.control_plane.policy_set_version(&request.caller, request.id("policy_set_version")?).await?;
    use axum::response::IntoResponse as _;
    let set = request.control_plane.policy_set(&request.caller, view.version.set).await?;
    // Only whoever may send it gets the address.
    let object = match set.may_manage(&request.caller).allowed {
        true => with_upload(&request, &view)?,
        false => view.object(&request)?,
    };
    Ok(Document::one(object).into_response())
}

/// `PUT /signed/policy-set/{policy_set_version}/{pass}`
pub(crate) async fn upload(
    State(control_plane): State<ControlPlane>,
    signed: Signed,
    request: Request,
) -> Result<StatusCode, ApiError> {
    let pass = check(&control_plane, SignedUrlPurpose::UploadPolicySet, &signed)?;
    control_plane.upload_policy_set_version(&pass, body_of(request)).await?;
    Ok(StatusCode::OK)
}
