//! Data retention policies of organizations and workspaces. On the wire each kind of policy has a type of its own.

use serde::{Deserialize, Serialize};
use taco_control_plane::{ExpiredData, OrganizationView, WorkspaceView};
use taco_domain::id::WorkspaceId;
use taco_domain::retention::{RetentionPolicy, RetentionPolicyId};

use crate::document::{Identifier, ResourceObject};
use crate::error::ApiError;
use crate::request::{Answer, ApiRequest, no_content};
use crate::resource::Resource;

const DELETE_OLDER: &str = "data-retention-policy-delete-olders";
const DONT_DELETE: &str = "data-retention-policy-dont-deletes";
/// What clients from before 2024 call the first.
const LEGACY: &str = "data-retention-policies";

/// A policy and whose it is.
struct OwnedPolicy {
    /// The characters of its owner's id.
    owner: String,
    policy: RetentionPolicy,
}

#[derive(Serialize)]
#[serde(rename_all = "kebab-case")]
struct Attributes {
    #[serde(skip_serializing_if = "Option::is_none")]
    delete_older_than_n_days: Option<u32>,
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
struct DeleteOlder {
    delete_older_than_n_days: Option<i64>,
}

fn kind_of(policy: RetentionPolicy) -> &'static str {
    match policy {
        RetentionPolicy::DeleteOlderThanDays(_) => DELETE_OLDER,
        RetentionPolicy::DontDelete => DONT_DELETE,
    }
}

fn id_of(owner: &str) -> String {
    RetentionPolicyId::from_characters(owner).map(|id| id.to_string()).unwrap_or_default()
}

/// The object of a workspace or an organization, with its own policy if it has one.
pub(crate) fn with_policy(
    object: ResourceObject,
    address: &str,
    owner: &str,
    policy: Option<RetentionPolicy>,
) -> ResourceObject {
    let Some(policy) = policy else { return object };
    object
        .has_one("data-retention-policy", Identifier::new(kind_of(policy), id_of(owner)))
        .related(format!("{address}/relationships/data-retention-policy"))
}

impl Resource for OwnedPolicy {
    const KIND: &'static str = DELETE_OLDER;

    fn object(&self, _: &ApiRequest) -> Result<ResourceObject, ApiError> {
        let delete_older_than_n_days = match self.policy {
            RetentionPolicy::DeleteOlderThanDays(days) => Some(days),
            RetentionPolicy::DontDelete => None,
        };
        let attributes = Attributes { delete_older_than_n_days };
        Ok(ResourceObject::new(kind_of(self.policy), id_of(&self.owner), &attributes))
    }
}

/// The policy that the body asks for.
async fn asked(request: &ApiRequest) -> Result<RetentionPolicy, ApiError> {
    let body = request.body().await?;
    let kind = match body.kind() {
        Some(DONT_DELETE) => return Ok(RetentionPolicy::DontDelete),
        Some(LEGACY) => LEGACY,
        _ => DELETE_OLDER,
    };
    let DeleteOlder { delete_older_than_n_days } = body.resource(kind)?.attributes;
    let pointer = "/data/attributes/delete-older-than-n-days";
    let days = delete_older_than_n_days
        .ok_or_else(|| ApiError::invalid(pointer, "Delete older than n days can't be blank: it is a number of days"))?;
    Ok(RetentionPolicy::delete_older_than(days)?)
}

fn of_workspace(view: &WorkspaceView) -> Option<OwnedPolicy> {
    let owner = view.workspace.id.characters().to_owned();
    view.workspace.retention.map(|policy| OwnedPolicy { owner, policy })
}

fn of_organization(view: &OrganizationView) -> Option<OwnedPolicy> {
    let owner = view.organization.id.characters().to_owned();
    view.organization.retention.map(|policy| OwnedPolicy { owner, policy })
}

/// `GET /api/v2/workspaces/{workspace}/relationships/data-retention-policy`
pub(crate) async fn read_of_workspace(request: ApiRequest) -> Answer {
    let view = request.control_plane.workspace(&request.caller, &request.workspace()?).await?;
    request.one(&of_workspace(&view).ok_or_else(ApiError::not_found)?).await
}

/// `POST /api/v2/workspaces/{workspace}/relationships/data-retention-policy`
pub(crate) async fn set_of_workspace(request: ApiRequest) -> Answer {
    let policy = Some(asked(&request).await?);
    let ApiRequest { control_plane, caller, .. } = &request;
    let view = control_plane.set_workspace_retention(caller, &request.workspace()?, policy).await?;
    request.changed(&of_workspace(&view).ok_or_else(ApiError::not_found)?)
}

/// `DELETE /api/v2/workspaces/{workspace}/relationships/data-retention-policy`
pub(crate) async fn delete_of_workspace(request: ApiRequest) -> Answer {
    let ApiRequest { control_plane, caller, .. } = &request;
    control_plane.set_workspace_retention(caller, &request.workspace()?, None).await?;
    no_content()
}

/// `GET /api/v2/organizations/{organization}/relationships/data-retention-policy`
pub(crate) async fn read_of_organization(request: ApiRequest) -> Answer {
    let view = request.control_plane.organization(&request.caller, request.organization()?).await?;
    request.one(&of_organization(&view).ok_or_else(ApiError::not_found)?).await
}

/// `POST /api/v2/organizations/{organization}/relationships/data-retention-policy`
pub(crate) async fn set_of_organization(request: ApiRequest) -> Answer {
    let policy = Some(asked(&request).await?);
    let ApiRequest { control_plane, caller, .. } = &request;
    let view = control_plane.set_organization_retention(caller, request.organization()?, policy).await?;
    request.changed(&of_organization(&view).ok_or_else(ApiError::not_found)?)
}

/// `DELETE /api/v2/organizations/{organization}/relationships/data-retention-policy`
pub(crate) async fn delete_of_organization(request: ApiRequest) -> Answer {
    let ApiRequest { control_plane, caller, .. } = &request;
    control_plane.set_organization_retention(caller, request.organization()?, None).await?;
    no_content()
}

/// What a policy would delete from a workspace.
struct Preview {
    workspace: WorkspaceId,
    expired: ExpiredData,
}

#[derive(Serialize)]
#[serde(rename_all = "kebab-case")]
struct PreviewAttributes {
    state_version_count: usize,
    configuration_version_count: usize,
}

impl Resource for Preview {
    const KIND: &'static str = "data-retention-previews";

    fn object(&self, _: &ApiRequest) -> Result<ResourceObject, ApiError> {
        let ExpiredData { states, configurations } = &self.expired;
        let attributes =
            PreviewAttributes { state_version_count: states.len(), configuration_version_count: configurations.len() };
        let states = states.iter().map(|id| Identifier::new("state-versions", *id));
        let configurations = configurations.iter().map(|id| Identifier::new("configuration-versions", *id));
        Ok(ResourceObject::new(Self::KIND, self.workspace, &attributes)
            .has_many("state-versions", states)
            .has_many("configuration-versions", configurations))
    }
}

/// `GET /api/v2/workspaces/{workspace}/data-retention-preview`
pub(crate) async fn preview(request: ApiRequest) -> Answer {
    let ApiRequest { control_plane, caller, query, .. } = &request;
    let wanted = request.workspace()?;
    let policy = match query.get("delete-older-than-n-days") {
        Some(days) => {
            let days: i64 = days
                .parse()
                .map_err(|_| ApiError::bad_request("delete-older-than-n-days is a number of days, such as 30"))?;
            Some(RetentionPolicy::delete_older_than(days)?)
        }
        None => None,
    };
    let workspace = control_plane.workspace(caller, &wanted).await?.workspace.id;
    let expired = control_plane.preview_retention(caller, &wanted, policy).await?;
    request.one(&Preview { workspace, expired }).await
}
